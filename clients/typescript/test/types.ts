/** Programs that must compile, and some that must not: `npm run check` compiles this file and never runs it. */

import { Client, ServiceError, trackRewards } from "driftbandit";
import type { Arm, ClientOptions, Columns, Decision, DecideOptions, Place, Problem, Value } from "driftbandit";

const options: ClientOptions = { apiKey: "a", timeoutMs: 100, warn: console.warn };
const ages: Value = [31, "b"];
const context: Columns = { age: 31, member: true, ages };
const catalogue = ["summer", "winter"] as const;

export async function decides(client: Client): Promise<Arm | null> {
  const asked: DecideOptions = { arms: catalogue, key: "user-17", default: "summer" };
  const decision: Decision = await client.decide(context, asked);
  const places: readonly Place[] = decision.places;
  const shares: number[] = places.map((place) => place.probabilities[place.arm]);
  await client.decide(context, { arms: [{ price: shares[0] }, { price: 2 }], default: [0, 1], k: 2 });
  await client.decide(context, { arms: { summer: { price: 1 } }, id: "d1" });
  const outcome: string = await client.reward(decision.id, 1, { position: 0 });
  const preferred: string = await client.prefer(decision.id, 1);
  const compared: string = await client.prefer(decision.id, "d2");
  await client.metric(decision.id, outcome + preferred + compared, 1);
  await client.cancel(decision.id, { position: 1 });
  return decision.arm;
}

export async function mistakes(client: Client): Promise<void> {
  // @ts-expect-error: a column holds no dates
  await client.decide({ born: new Date() });
  // @ts-expect-error: nor do those of arms
  await client.decide(context, { arms: { summer: { since: new Date() } } });
  // @ts-expect-error: the client's own clock says when
  await client.decide(context, { at: 0 });
  // @ts-expect-error: there is no such option
  await client.decide(context, { arm: "summer" });
  // @ts-expect-error: a reward is a number
  await client.reward("d1", "1");
  // @ts-expect-error: a pair has two arms
  await client.prefer("d1", 2);
  // @ts-expect-error: a position, too
  await client.cancel("d1", { position: "0" });
}

export function remedy(error: unknown): string | undefined {
  const problem: Problem = error instanceof ServiceError ? error.problem : {};
  return problem.detail;
}

export const provider: { name: string } = trackRewards({ name: "a" }, "http://b", { purchase: "banner" }, options);
