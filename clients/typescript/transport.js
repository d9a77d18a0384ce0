/** Requests of the client, repeated while there is time. */

const AGAIN = [429, 502, 503, 504]; // answers after which the same request may do better
const PAUSE = 20; // milliseconds before the first repetition; each one doubles it

/** What the service refused; `problem` is all that it said. */
export class ServiceError extends Error {
  constructor(problem) {
    super(problem.detail ?? "the service did not say what is wrong");
    this.name = "ServiceError";
    this.problem = problem;
    this.status = problem.status ?? 0;
  }
}

/** The service did not answer in time. */
export class UnreachableError extends Error {
  constructor(message) {
    super(message);
    this.name = "UnreachableError";
  }
}

export class Transport {
  #base;
  #headers;
  #timeoutMs;
  #fetch;

  constructor(url, apiKey, timeoutMs, fetch) {
    this.#base = address(url);
    if (!(Number.isFinite(timeoutMs) && timeoutMs > 0)) {
      throw new RangeError(`timeoutMs must be a number of milliseconds above 0, got ${timeoutMs}`);
    }
    this.#headers = { "content-type": "application/json" };
    if (apiKey) this.#headers.authorization = `Bearer ${apiKey}`;
    this.#timeoutMs = timeoutMs;
    this.#fetch = fetch;
  }

  /** Send a request, and repeat it while there is time: that changes nothing. `keepalive` lets it
   * outlive the page that sends it. */
  async call(method, path, body, keepalive = false) {
    const request = { method, headers: this.#headers, keepalive };
    if (body !== undefined) request.body = JSON.stringify(body, finite);
    const end = performance.now() + this.#timeoutMs;
    let wrong = "no time was left";
    for (let pause = PAUSE; ; pause *= 2) {
      const left = end - performance.now();
      if (left <= 0) break;
      try {
        const signal = AbortSignal.timeout(Math.ceil(left));
        const answer = await this.#fetch(this.#base + path, { ...request, signal });
        const found = await answer.json();
        if (answer.ok) return found;
        if (!AGAIN.includes(answer.status)) throw new ServiceError({ status: answer.status, ...found });
        wrong = `${answer.status}: ${found.detail}`;
      } catch (error) {
        if (error instanceof ServiceError) throw error;
        wrong = error.cause?.message || error.message;
      }
      const rest = Math.max(0, end - performance.now());
      await new Promise((wake) => setTimeout(wake, Math.min(pause * (0.5 + Math.random() / 2), rest)));
    }
    throw new UnreachableError(`${this.#base} is unreachable (${wrong}): start it, or pass a default`);
  }
}

/** Return a name as a part of a path. URLs resolve "." and ".." even if they are encoded. */
export function part(name) {
  if (typeof name !== "string" || ["", ".", ".."].includes(name)) {
    throw new RangeError(`a name in a path must be text other than "", "." and "..", got ${name}`);
  }
  return encodeURIComponent(name);
}

function address(url) {
  let found;
  try {
    found = new URL(url, globalThis.location?.href);
  } catch {
    found = { protocol: "" };
  }
  if (!["http:", "https:"].includes(found.protocol)) {
    throw new RangeError(`url must look like "http://127.0.0.1:8100", got ${url}`);
  }
  return found.origin + found.pathname.replace(/\/+$/, "");
}

/** JSON has no NaN: without this it would silently become null, a missing value. */
function finite(name, value) {
  if (typeof value === "number" && !Number.isFinite(value)) {
    throw new RangeError(`${name} must be a finite number, got ${value}: leave it out if unknown`);
  }
  return value;
}
