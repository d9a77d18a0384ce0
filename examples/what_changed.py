"""Finding out what changed; docs/gallery/what-changed.md explains it."""

# %% run
import numpy as np

from driftbandit import Category, Features, Loop, Reward

TOPICS, DEVICES, HOUR = ["sport", "world", "music"], ["phone", "desktop"], 3600.0
ARMS = {topic: {"topic": topic} for topic in TOPICS}
features = Features(context={"device": Category(DEVICES)}, arm={"topic": Category(TOPICS)})
simulated = {"clock": "events", "teaching": "caller", "seed": 0}  # live: leave these out
loop = Loop(":memory:", features=features, reward=Reward(0, 1), floor=0.2, **simulated)


def chance(device, topic, hour):
    """Of a click. From hour 30 on music no longer plays on phones."""
    if topic == "music" and device == "phone" and hour >= 30:
        return 0.02
    return {"sport": 0.2, "world": 0.25, "music": 0.4}[topic]


rng, clicks = np.random.default_rng(0), []
for at in np.arange(0.0, 48 * HOUR, 60.0):
    device, luck = DEVICES[rng.integers(2)], rng.random()
    decision = loop.decide({"device": device}, ARMS, at=at)
    clicks.append(luck < chance(device, decision.arm, at / HOUR))
    loop.reward(decision.id, int(clicks[-1]), at=at)

# %% ask
health = loop.health(since=24 * HOUR)
print(health)

# %% figure
import matplotlib.pyplot as plt

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6))
left.plot(np.arange(48), np.reshape(clicks, (48, 60)).mean(axis=1))
left.axvline(30, color="grey", linestyle=":")
left.set(xlabel="hour", ylabel="share of clicks", ylim=0, title="What one sees")
names = [change.term for change in health.changed]
right.barh(names, [change.before for change in health.changed], 0.4, label="a day ago")
right.barh(names, [c.after for c in health.changed], -0.4, align="edge", label="now")
right.set(xlabel="adds to x'theta", title="What changed")
right.legend()
fig.tight_layout()
fig.savefig("what_changed.svg")
