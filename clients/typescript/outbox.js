/** The outbox: fallback decisions of a client, until the service has them. */

const MOST = 10_000; // decisions; beyond, the oldest are dropped
const LENGTH = 200_000; // of a batch as text, about: services refuse large bodies

export class Outbox {
  #waiting = new Map(); // by id, in the order in which they were made

  get size() {
    return this.#waiting.size;
  }

  has(id) {
    return this.#waiting.has(id);
  }

  /** Keep a decision; return the id of the one that is dropped for it, if any. */
  add(decision) {
    this.#waiting.set(decision.id, decision);
    if (this.#waiting.size <= MOST) return undefined;
    const [oldest] = this.#waiting.keys();
    this.#waiting.delete(oldest);
    return oldest;
  }

  /** Return the oldest, as many as one request holds. They stay until they are removed. */
  batch() {
    const found = [];
    let length = 0;
    for (const each of this.#waiting.values()) {
      if (length >= LENGTH) break;
      found.push(each);
      length += JSON.stringify(each).length;
    }
    return found;
  }

  remove(batch) {
    for (const each of batch) this.#waiting.delete(each.id);
  }
}
