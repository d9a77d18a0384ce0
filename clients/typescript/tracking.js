/** Rewards for OpenFeature, whose protocol has none: `track` of an OpenFeature client sends them.
 *
 * A hook remembers the decision of every evaluation by flag and targeting key. A tracked event
 * becomes the reward of the latest decision of its flags for that targeting key. */

import { Client } from "./client.js";

const MOST = 10_000; // decisions that are remembered; beyond, the oldest are not

export function trackRewards(provider, url, events, options = {}) {
  const warn = options.warn ?? ((message) => console.warn(message));
  const named = new Map(Object.entries(events).map(([event, flags]) => [event, [flags].flat()]));
  const clients = new Map();
  for (const flag of [...named.values()].flat()) clients.set(flag, new Client(url, flag, options));
  const decisions = new Map();

  const after = ({ flagKey, context }, { flagMetadata }) => {
    const id = flagMetadata?.decision_id;
    if (id === undefined || !clients.has(flagKey)) return;
    const own = name(flagKey, context);
    decisions.delete(own);
    decisions.set(own, id);
    if (decisions.size > MOST) decisions.delete(decisions.keys().next().value);
  };

  const sent = new Set(); // rewards that are under way, as promises
  const track = (event, context, details) => {
    for (const flag of named.get(event) ?? []) {
      const id = decisions.get(name(flag, context));
      if (id === undefined) {
        warn(`${event} is no reward: ${flag} was not evaluated for this key`);
        continue;
      }
      const one = clients
        .get(flag)
        .reward(id, details?.value ?? 1)
        .catch((error) => warn(`the reward of decision ${id} is lost: ${error.message}`))
        .finally(() => sent.delete(one));
      sent.add(one);
    }
  };

  const close = provider.onClose?.bind(provider);
  provider.onClose = async () => {
    await Promise.all(sent);
    await close?.();
  };
  provider.hooks = [...(provider.hooks ?? []), { after }];
  provider.track = track;
  return provider;
}

function name(flag, context) {
  return JSON.stringify([flag, context?.targetingKey ?? null]);
}
