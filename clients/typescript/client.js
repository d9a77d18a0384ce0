/** The client of a decision service, for browsers and servers. It needs nothing but fetch.
 *
 * It retries failed calls, and falls back to the default arm if the service is unreachable. */

import { Outbox } from "./outbox.js";
import { ServiceError, Transport, UnreachableError, part } from "./transport.js";

export { trackRewards } from "./tracking.js";
export { ServiceError, UnreachableError };

export class Client {
  #path;
  #transport;
  #warn;
  #outbox = new Outbox();
  #sending; // the batch that is under way, as a promise

  constructor(url, loop, options = {}) {
    const { apiKey, timeoutMs = 2000, fetch = globalThis.fetch.bind(globalThis) } = options;
    this.#path = `/v1/loops/${part(loop)}`;
    this.#transport = new Transport(url, apiKey, timeoutMs, fetch);
    this.#warn = options.warn ?? ((message) => console.warn(message));
  }

  async decide(context, options = {}) {
    const asked = { ...options, context, id: options.id ?? newId() };
    try {
      const made = await this.#call("POST", "/decisions", asked);
      this.#sendBatch().catch(() => {}); // the decision does not wait for it; what fails stays
      return { places: [], ...made };
    } catch (error) {
      if (!(error instanceof UnreachableError) || asked.default == null) throw error;
      this.#warn(`decision ${asked.id} is the default: ${error.message}`);
      return this.#fallback(asked);
    }
  }

  #fallback(asked) {
    const { id, default: played } = asked;
    const dropped = this.#outbox.add({ ...asked, at: Date.now() / 1000 });
    if (dropped !== undefined) this.#warn(`decision ${dropped} is dropped: too many others wait`);
    const made = { id, probability: 1, probabilities: {}, role: "fallback" };
    if (asked.k == null) return { ...made, arm: played, places: [] };
    const places = played.map((arm) => ({ arm, probability: 1, probabilities: {} }));
    return { ...made, arm: null, places };
  }

  async reward(id, value, { position } = {}) {
    const path = `/decisions/${part(id)}/reward`;
    await this.#sendFirst(id);
    return (await this.#call("PUT", path, { value, position }, true)).outcome;
  }

  async prefer(id, other) {
    const path = `/decisions/${part(id)}/preference`;
    const said = typeof other === "string" ? { over: other } : { position: other };
    await this.#sendFirst(id);
    if (said.over != null) await this.#sendFirst(said.over);
    return (await this.#call("PUT", path, said, true)).outcome;
  }

  async metric(id, name, value, { position } = {}) {
    const path = `/decisions/${part(id)}/metrics/${part(name)}`;
    await this.#sendFirst(id);
    return (await this.#call("PUT", path, { value, position }, true)).outcome;
  }

  async cancel(id, { position } = {}) {
    const path = `/decisions/${part(id)}` + (position == null ? "" : `?position=${position}`);
    await this.#sendFirst(id);
    return (await this.#call("DELETE", path, undefined, true)).outcome;
  }

  get waiting() {
    return this.#outbox.size;
  }

  async send() {
    while (this.#outbox.size > 0) await this.#sendBatch();
  }

  /** A decision comes before what is said about it. */
  async #sendFirst(id) {
    while (this.#outbox.has(id)) await this.#sendBatch();
  }

  /** Send one batch; whoever calls while it is under way waits for the same one. */
  #sendBatch() {
    this.#sending ??= this.#sendOldest().finally(() => {
      this.#sending = undefined;
    });
    return this.#sending;
  }

  async #sendOldest() {
    const batch = this.#outbox.batch();
    if (batch.length === 0) return;
    try {
      const found = await this.#call("POST", "/records", { decisions: batch });
      found.decisions.forEach(({ problem }, k) => {
        if (problem) this.#warn(`decision ${batch[k].id} is refused: ${problem.detail}`);
      });
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      this.#warn(`${batch.length} fallback decisions are refused: ${error.message}`);
    }
    this.#outbox.remove(batch);
  }

  #call(method, path, body, keepalive) {
    return this.#transport.call(method, this.#path + path, body, keepalive);
  }
}

/** Return an id of its own. It begins with the time, so that neighbours are stored together.
 * crypto.randomUUID would not do: pages without TLS do not have it. */
function newId() {
  const random = crypto.getRandomValues(new Uint8Array(10));
  const hex = Array.from(random, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return Date.now().toString(16).padStart(12, "0") + hex;
}
