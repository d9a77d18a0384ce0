/** A value of a column. */
export type Value = string | number | boolean | null | readonly (string | number)[];
/** Columns by name. */
export type Columns = { readonly [column: string]: Value | undefined };
/** The name of an arm. If arms are a list of columns, it is a position in that list. */
export type Arm = string | number;

export interface DecideOptions {
  /** Columns of arms by name, or in a list; names of arms of the catalogue; or nothing: all of these. */
  arms?: { readonly [name: string]: Columns } | readonly Columns[] | readonly string[];
  /** The same id gives the same answer. Without one, the client makes one up. */
  id?: string;
  /** Whose decision it is, such as a user's id. */
  key?: string;
  /** The arm to play if the loop does not choose or the service is unreachable; of a slate, a list. */
  default?: Arm | readonly Arm[];
  /** How many arms a slate has. */
  k?: number;
}

/** One position of a slate. */
export interface Place {
  arm: Arm;
  probability: number;
  probabilities: { [arm: string]: number };
}

/** A decision. `role` is "fallback" if the service was unreachable and the default is played. A
 * slate has `places` in order, and no arm of its own. */
export interface Decision {
  id: string;
  arm: Arm | null;
  probability: number;
  probabilities: { [arm: string]: number };
  role: string;
  places: Place[];
}

/** What went wrong, as RFC 9457 has it; `detail` names the remedy. */
export interface Problem {
  title?: string;
  status?: number;
  detail?: string;
}

export interface ClientOptions {
  apiKey?: string;
  /** For a call with all its repetitions; 2000 by default. */
  timeoutMs?: number;
  /** Takes the place of the global fetch. */
  fetch?: typeof globalThis.fetch;
  /** Is told of fallbacks and refused records; console.warn by default. */
  warn?: (message: string) => void;
}

/** What the service refused; `problem` is all that it said. */
export class ServiceError extends Error {
  readonly problem: Problem;
  readonly status: number;
}

/** The service did not answer in time. */
export class UnreachableError extends Error {}

/** One loop of a service. */
export class Client {
  constructor(url: string, loop: string, options?: ClientOptions);
  /** Choose among arms, or `k` of them. If the service is unreachable, return the default, and tell
   * the loop later; without a default, reject with an UnreachableError. */
  decide(context: Columns, options?: DecideOptions): Promise<Decision>;
  /** Say what a decision gave, or a position of a slate; return what became of it. */
  reward(id: string, value: number, options?: { position?: number }): Promise<string>;
  /** Record another number about a decision, such as its cost. */
  metric(id: string, name: string, value: number, options?: { position?: number }): Promise<void>;
  /** Say that a decision, or a position of a slate, was never shown. */
  cancel(id: string, options?: { position?: number }): Promise<string>;
  /** How many fallback decisions wait to be sent. */
  readonly waiting: number;
  /** Send fallback decisions to the loop. `decide` and `reward` do that, too: call it before a
   * process ends. */
  send(): Promise<void>;
}
