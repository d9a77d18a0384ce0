"""A news page whose clicks come late; docs/gallery/late-clicks.md explains it."""

# %% world
import heapq

import matplotlib.pyplot as plt
import numpy as np

from driftbandit import Category, Features, Loop, Number, Reward

TOPICS = ["sport", "world", "music"]
ARMS = {topic: {"topic": topic} for topic in TOPICS}


def chance(age, topic):
    """Of a click: older readers like world news, younger ones music."""
    return 0.4 if topic == ("world" if age > 50 else "music") else 0.1


# %% play
def play(reward, tell_silence):
    """2,000 readers, ten per minute. Clicks come after 5 minutes, silence after 10."""
    features = Features(
        context={"age": Number(18, 90)}, arm={"topic": Category(TOPICS)}
    )
    simulated = {
        "clock": "events",
        "training": "inline",
        "seed": 0,
    }  # live: leave these out
    loop = Loop(
        ":memory:", features=features, reward=reward, exploration=0.05, **simulated
    )
    rng, on_the_way, clicks = np.random.default_rng(1), [], []
    for reader in range(2000):
        now = 6.0 * reader
        while on_the_way and on_the_way[0][0] <= now:
            at, id, click = heapq.heappop(on_the_way)
            if click or tell_silence:
                loop.reward(id, click, at=at)
        age, luck = int(rng.integers(18, 90)), rng.random()
        decision = loop.decide({"age": age}, ARMS, id=f"reader {reader}", at=now)
        click = int(luck < chance(age, decision.arm))
        heapq.heappush(on_the_way, (now + (300 if click else 600), decision.id, click))
        clicks.append(click)
    return np.array(clicks)


# %% compare
found = {
    "trained as it comes": play(Reward(0, 1), tell_silence=True),
    "trained when the window closes": play(
        Reward(0, 1, wait="10min", missing=0), False
    ),
}
for name, clicks in found.items():
    print(f"{name}: {clicks[-1000:].mean():.0%} of the last 1,000 readers clicked")

# %% figure
fig, ax = plt.subplots()
for (name, clicks), colour in zip(found.items(), ["C1", "C0"]):
    mean = np.convolve(clicks, np.full(300, 1 / 300), mode="valid")
    ax.plot(mean, colour, label=name)
ax.axhline(0.2, color="grey", linestyle=":", label="chance")
ax.set(xlabel="reader", ylabel="share that clicks (mean of 300)", ylim=0)
ax.legend()
fig.savefig("late_clicks.svg")
