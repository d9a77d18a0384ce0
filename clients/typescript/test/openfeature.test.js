/** OpenFeature's official providers against a service at $URL, which has the flags `banner` (sticky)
 * and `news` (not sticky). */

import assert from "node:assert/strict";
import { after, test } from "node:test";

import { OFREPProvider } from "@openfeature/ofrep-provider";
import { OFREPWebProvider } from "@openfeature/ofrep-web-provider";
import { ErrorCode, OpenFeature } from "@openfeature/server-sdk";
import { OpenFeature as WebFeature } from "@openfeature/web-sdk";
import { trackRewards } from "driftbandit";

const url = process.env.URL;
const visitor = { targetingKey: "ann", age: 31 };
const asked = [];
const told = [];
const fetch = async (to, options) => {
  const answer = await globalThis.fetch(to, options);
  asked.push({ path: new URL(to.url ?? to).pathname, status: answer.status });
  return answer;
};

const provider = new OFREPProvider({ baseUrl: url });
const warn = (message) => told.push(message);
await OpenFeature.setProviderAndWait(trackRewards(provider, url, { purchase: "banner" }, { fetch, warn }));
const client = OpenFeature.getClient();

after(() => Promise.all([OpenFeature.close(), WebFeature.close()]));

test("the server SDK gets a sticky answer, and its track is the reward", async () => {
  const first = await client.getStringDetails("banner", "none", visitor);
  assert.equal(first.errorCode, undefined);
  assert.equal(first.reason, "SPLIT");
  assert.ok(["a", "b"].includes(first.value));
  const again = await client.getStringDetails("banner", "none", { ...visitor, age: 80 });
  assert.deepEqual(again.flagMetadata, first.flagMetadata);
  client.track("purchase", visitor, { value: 0.5 });
  client.track("purchase", { targetingKey: "bob" });
  client.track("unknown", visitor);
  await OpenFeature.close(); // waits for rewards
  assert.deepEqual(asked, [{ path: `/v1/loops/banner/decisions/${first.flagMetadata.decision_id}/reward`, status: 200 }]);
  assert.match(told.join(), /^purchase is no reward: banner was not evaluated for this key$/);
});

test("the server SDK has the codes of the protocol", async () => {
  const cases = [
    ["nothing", visitor, ErrorCode.FLAG_NOT_FOUND],
    ["banner", { targetingKey: "ann", age: "old" }, ErrorCode.INVALID_CONTEXT],
    ["banner", { age: 31 }, ErrorCode.TARGETING_KEY_MISSING],
  ];
  await OpenFeature.setProviderAndWait(new OFREPProvider({ baseUrl: url }));
  for (const [flag, context, code] of cases) {
    const found = await OpenFeature.getClient().getStringDetails(flag, "none", context);
    assert.deepEqual([found.value, found.errorCode], ["none", code]);
  }
  const wrong = await OpenFeature.getClient().getBooleanDetails("banner", false, visitor);
  assert.equal(wrong.errorCode, ErrorCode.TYPE_MISMATCH);
});

test("the web SDK fetches all flags at once, and again only if they have changed", async () => {
  const polls = [];
  const watched = async (to, options) => {
    const answer = await globalThis.fetch(to, options);
    polls.push(answer.status);
    return answer;
  };
  await WebFeature.setContext({ targetingKey: "cyd", age: 31 });
  const web = new OFREPWebProvider({ baseUrl: url, pollInterval: 30, fetchImplementation: watched });
  await WebFeature.setProviderAndWait(web);
  const found = WebFeature.getClient().getStringDetails("banner", "none");
  assert.equal(found.errorCode, undefined);
  assert.ok(["a", "b"].includes(found.value));
  const alone = await OpenFeature.getClient().getStringDetails("banner", "none", { targetingKey: "cyd", age: 9 });
  assert.equal(alone.flagMetadata.decision_id, found.flagMetadata.decision_id);
  assert.equal(WebFeature.getClient().getStringDetails("news", "none").value, "none");
  const end = Date.now() + 10_000;
  while (polls.length < 3 && Date.now() < end) await new Promise((wake) => setTimeout(wake, 10));
  assert.deepEqual([...new Set(polls)], [200, 304]);
});
