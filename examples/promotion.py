"""Shadow, trial and promotion; docs/gallery/promotion.md explains it."""

# %% world
import matplotlib.pyplot as plt
import numpy as np

from driftbandit import Category, Features, Flag, Loop, Number, Reward

age, topic = Number(18, 90), Category(["sport", "world", "music"])
today = Features(context={"age": age}, arm={"topic": topic})
idea = Features(context={"age": age, "subscriber": Flag()}, arm={"topic": topic})
arms = {name: {"topic": name} for name in ("sport", "world", "music")}
rng, clicks = np.random.default_rng(0), []


def readers(loop, n):
    """Subscribers read world news, others music. The loop is not told."""
    for _ in range(n):
        now, subscriber = 60.0 * len(clicks), bool(rng.random() < 0.5)
        context = {"age": int(rng.integers(18, 90)), "subscriber": subscriber}
        decision = loop.decide(context, arms, id=f"reader {len(clicks)}", at=now)
        likes = 0.6 if decision.arm == ("world" if subscriber else "music") else 0.1
        clicks.append(int(rng.random() < likes))
        loop.reward(decision.id, clicks[-1], at=now)


# %% run
reward = Reward(0, 1, wait="10min", missing=0)
simulated = {
    "clock": "events",
    "training": "inline",
    "seed": 0,
}  # live: leave these out
loop, looks = (
    Loop(":memory:", features=today, reward=reward, exploration=0.2, **simulated),
    [],
)
loop.shadow("idea", features=idea)  # learns from every decision, never acts
readers(loop, 300)
loop.trial("idea", share=0.3)  # three decisions in ten are its own
for _ in range(40):
    readers(loop, 50)
    lead = loop.compare().lead("idea", "live")
    looks.append((len(clicks), lead.value, lead.low, lead.high))
    if lead.better == 1:
        break
print(loop.compare())
loop.promote("idea", expected_live="live")  # raises an error where it is not proved
print(f"promoted after {len(clicks)} readers, and {len(looks)} looks")
readers(loop, 600)

# %% figure
fig, ax = plt.subplots()
reader, value, low, high = np.array(looks).T
ax.fill_between(reader, low, high, alpha=0.2)
ax.plot(reader, value, "o-", label="idea minus live, 95 % at every look")
ax.axhline(0, color="black", linewidth=1)
ax.axvline(reader[-1], color="grey", linestyle=":", label="promoted")
ax.set(xlabel="reader", ylabel="clicks a reader")
ax.legend()
fig.savefig("promotion.svg")
