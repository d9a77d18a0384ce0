"""Finding out what changed; docs/gallery/what-changed.md explains it."""

# %% run
import matplotlib.pyplot as plt
import numpy as np

from driftbandit import Category, Features, Loop, Number, Reward

TOPICS, HOUR = ["sport", "world", "music"], 3600.0
ARMS = {topic: {"topic": topic} for topic in TOPICS}
features = Features(
    context={"age": Number(18, 90, required=True)},
    arm={"topic": Category(TOPICS, required=True)},
)
simulated = {
    "clock": "events",
    "training": "inline",
    "seed": 0,
}  # live: leave these out
loop = Loop(
    ":memory:", features=features, reward=Reward(0, 1), exploration=0.3, **simulated
)


def chance(topic, hour):
    """Of a click. At hour 30 the player of music breaks, and a tournament begins."""
    if hour < 30:
        return {"sport": 0.2, "world": 0.3, "music": 0.5}[topic]
    return {"sport": 0.5, "world": 0.3, "music": 0.05}[topic]


rng, clicks = np.random.default_rng(0), []
for at in np.arange(0.0, 48 * HOUR, 60.0):
    age, luck = int(rng.integers(18, 90)), rng.random()
    decision = loop.decide({"age": age}, ARMS, id=f"visit {at:.0f}", at=at)
    clicks.append(luck < chance(decision.arm, at / HOUR))
    loop.reward(decision.id, int(clicks[-1]), at=at)

# %% ask
health = loop.health(since=24 * HOUR)
print(health)

# %% figure
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
left.plot(np.arange(48), np.reshape(clicks, (48, 60)).mean(axis=1))
left.axvline(30, color="grey", linestyle=":")
left.set(xlabel="hour", ylabel="share of clicks", ylim=0, title="What one sees")
names = [change.term for change in health.changed]
y = np.arange(len(names))
right.barh(
    y + 0.2, [change.before for change in health.changed], 0.4, label="a day ago"
)
right.barh(y - 0.2, [change.after for change in health.changed], 0.4, label="now")
right.set_yticks(y, names)
right.set(xlabel="adds to x'theta", title="What changed")
right.legend()
fig.savefig("what_changed.svg")
