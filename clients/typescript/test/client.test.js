/** The client against the service at $URL, whose loop "news" has a catalogue of two arms. */

import assert from "node:assert/strict";
import http from "node:http";
import { after, before, beforeEach, test } from "node:test";
import { Client, ServiceError, UnreachableError } from "driftbandit";

const URL_ = process.env.URL;
const said = [];
const warn = (message) => said.push(message);
let between; // a proxy that can be told to fail
let fault; // what it does instead of passing a request on
let passed; // how many requests it had

before(async () => {
  between = http.createServer(async (request, response) => {
    passed += 1;
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    if (fault?.(response)) return;
    const { method, headers, url } = request;
    const target = http.request(URL_ + url, { method, headers: { ...headers, host: "localhost" } });
    target.on("response", (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
    });
    target.end(Buffer.concat(chunks));
  });
  await new Promise((listening) => between.listen(0, "127.0.0.1", listening));
});
beforeEach(() => {
  said.length = passed = 0;
  fault = undefined;
});
after(() => {
  between.close();
  between.closeAllConnections();
});

const direct = (loop) => new Client(URL_, loop, { timeoutMs: 20_000 }); // a busy machine is slow
const away = (response) => response.destroy() || true;
const busy = (response) => response.writeHead(503).end('{"detail": "busy"}') || true;
const proxied = (options) =>
  new Client(`http://127.0.0.1:${between.address().port}`, "news", { warn, timeoutMs: 1500, ...options });

test("it decides, and rewards count", async () => {
  const client = direct("news");
  const made = await client.decide({ age: 31 }, { key: "ann" });
  assert.ok(["a", "b"].includes(made.arm));
  assert.equal(made.probability, made.probabilities[made.arm]);
  assert.equal(made.role, "active");
  assert.deepEqual(made.places, []);
  assert.equal(await client.reward(made.id, 1), "counted");
  assert.equal(await client.metric(made.id, "cost", 0.25), "recorded");
  assert.equal(await client.metric("nowhere", "cost", 0.25), "unknown");
  assert.equal(await client.cancel((await client.decide({ age: 40 })).id), "cancelled");
});

test("arms by name, and slates", async () => {
  const client = direct("news");
  assert.equal((await client.decide({ age: 31 }, { arms: ["b"] })).arm, "b");
  const slate = await client.decide({ age: 31 }, { k: 2 });
  assert.deepEqual(slate.places.map((each) => each.arm).sort(), ["a", "b"]);
  assert.equal(slate.arm, null);
  assert.equal(await client.reward(slate.id, 1, { position: 1 }), "counted");
  assert.equal(await client.cancel(slate.id, { position: 0 }), "cancelled");
  const arena = direct("arena"); // learns from preferences
  const pair = await arena.decide({ age: 31 }, { k: 2 });
  assert.equal(await arena.prefer(pair.id, 1), "counted");
  assert.equal(await arena.prefer(pair.id, 0), "corrected");
  const [winner, loser] = [await arena.decide({ age: 31 }), await arena.decide({ age: 62 })];
  assert.equal(await arena.prefer(winner.id, loser.id), "counted");
  assert.equal(await arena.prefer(loser.id, winner.id), "corrected");
});

test("an answer that is lost is asked for again, under the same id", async () => {
  let failures = 3;
  fault = (response) => failures-- > 0 && (failures % 2 ? away : busy)(response);
  const made = await proxied({ timeoutMs: 20_000 }).decide({ age: 31 });
  assert.equal(passed, 4);
  const again = await direct("news").decide({ age: 31 }, { id: made.id });
  assert.deepEqual(again, made);
});

test("while the service is away the default is played, and told later", async () => {
  const client = proxied();
  fault = away;
  const made = await client.decide({ age: 31 }, { default: "b" });
  assert.deepEqual([made.arm, made.probability, made.role], ["b", 1, "fallback"]);
  assert.equal(client.waiting, 1);
  assert.match(said[0], /is the default/);
  await assert.rejects(client.reward(made.id, 1), UnreachableError);
  fault = undefined;
  assert.equal(await client.reward(made.id, 1), "counted"); // its decision goes first
  assert.equal(client.waiting, 0);
});

test("fallbacks are sent with the next decision, each once", async () => {
  const client = proxied();
  fault = busy;
  const options = { arms: ["a", "b"], default: ["b", "a"], k: 2 };
  const slate = await client.decide({ age: 31 }, options);
  assert.deepEqual(slate.places.map((each) => each.arm), ["b", "a"]);
  await Promise.all(Array.from({ length: 20 }, () => client.decide({ age: 50 }, { default: "a" })));
  assert.equal(client.waiting, 21);
  fault = undefined;
  passed = 0;
  await client.decide({ age: 31 });
  await Promise.all([client.send(), client.send()]);
  assert.equal(client.waiting, 0);
  assert.equal(passed, 2); // the decision, and one batch
});

test("a refused fallback does not block the others", async () => {
  const client = proxied();
  fault = away;
  await client.decide({ aeg: 31 }, { default: "a" });
  await client.decide({ age: 31 }, { default: "a" });
  fault = undefined;
  await client.send();
  assert.equal(client.waiting, 0);
  assert.equal(said.filter((each) => /refused.*aeg/.test(each)).length, 1);
});

test("without a default it is an error, and a refusal is never a fallback", async () => {
  const client = direct("news");
  fault = away;
  await assert.rejects(proxied().decide({ age: 31 }), UnreachableError);
  const refused = client.decide({ aeg: 31 }, { default: "a" });
  await assert.rejects(refused, (error) => error instanceof ServiceError && error.status === 422);
  await assert.rejects(direct("nothing").decide({}), { status: 404 });
});

test("an answer that never comes ends in time", async () => {
  fault = () => true;
  const begun = performance.now();
  assert.equal((await proxied().decide({ age: 31 }, { default: "a" })).role, "fallback");
  assert.ok(performance.now() - begun < 4000);
});

test("wrong input is named, and nothing is sent", async () => {
  const client = proxied();
  await assert.rejects(client.decide({ age: NaN }, { default: "a" }), /age must be a finite number/);
  await assert.rejects(client.reward("..", 1), /a name in a path/);
  assert.equal(passed, 0);
  assert.throws(() => new Client("shop", "news"), /url must look like/);
  assert.throws(() => new Client(URL_, "news", { timeoutMs: 0 }), /timeoutMs/);
});
