/** The types of the client. Messages are those of openapi.d.ts, which `npm run types` generates. */

import type { components } from "./openapi.js";

type Messages = components["schemas"];
type DecisionRequest = Messages["DecisionRequest"];
type Position = Pick<Messages["RewardRequest"], "position">;
type Outcome = Messages["OutcomeResponse"]["outcome"];
export {}; // the names above are not for other modules

/** A value of a column. The loop declares its columns, so the OpenAPI document does not know them. */
export type Value = string | number | boolean | null | readonly (string | number)[];
/** Columns by name. */
export type Columns = { readonly [column: string]: Value | undefined };
/** The name of an arm. If arms are a list of columns, it is a position in that list. */
export type Arm = Messages["ServedPosition"]["arm"];

/** What a decision is asked with, beside its context. */
export interface DecideOptions extends Omit<DecisionRequest, "context" | "at"> {
  /** Columns of arms by name, or in a list; names of arms of the catalogue; or nothing: all of these. */
  readonly arms?: { readonly [name: string]: Columns } | readonly Columns[] | readonly string[] | null;
  /** The same id gives the same answer. Without one, the client makes one up. */
  readonly id?: DecisionRequest["id"];
  /** Whose decision it is, such as a user's id. */
  readonly key?: DecisionRequest["key"];
  /** The arm to play if the loop does not choose or the service is unreachable; of a slate, a list. */
  readonly default?: DecisionRequest["default"];
  /** How many arms a slate has. */
  readonly k?: DecisionRequest["k"];
}

/** One position of a slate. */
export type Place = Messages["ServedPosition"];

/** A decision. `role` is "fallback" if the service was unreachable and the default is played. A
 * slate has `places` in order, and no arm of its own. */
export type Decision = Required<Messages["DecisionResponse"]>;

/** What went wrong, as RFC 9457 has it; `detail` names the remedy. */
export type Problem = Partial<Messages["ProblemDetails"]>;

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
  reward(id: string, value: number, options?: Position): Promise<Outcome>;
  /** Say which arm of a pair was better, that at position 0 or 1; return what became of it. */
  prefer(id: string, position: 0 | 1): Promise<Outcome>;
  /** Say which of two decisions was better, each of which played one arm. */
  prefer(winner: string, loser: string): Promise<Outcome>;
  /** Record another number about a decision, such as its cost; return what became of it. */
  metric(id: string, name: string, value: number, options?: Position): Promise<Outcome>;
  /** Say that a decision, or a position of a slate, was never shown. */
  cancel(id: string, options?: Position): Promise<Outcome>;
  /** How many fallback decisions wait to be sent. */
  readonly waiting: number;
  /** Send fallback decisions to the loop. `decide` and `reward` do that, too: call it before a
   * process ends. */
  send(): Promise<void>;
}

/** Return an OpenFeature provider whose `track` sends rewards to a decision service. `events` are the
 * flags that a tracked event is a reward of, such as { purchase: "banner" }. The reward is the
 * event's value, or 1 if it has none. `OpenFeature.close()` waits until all are sent. */
export function trackRewards<Provider extends object>(
  provider: Provider,
  url: string,
  events: { readonly [event: string]: string | readonly string[] },
  options?: ClientOptions,
): Provider;
