"""before/with_vw.py with driftbandit; docs/from-vw.md shows both."""

# %% program
import random

from driftbandit import Category, Features, Loop, Number, Reward

TOPICS = ["sport", "world", "music"]
rng = random.Random(0)
features = Features(context={"age": Number(18, 90)}, arm={"topic": Category(TOPICS)})
loop = Loop("news.db", features=features, reward=Reward(0, 1), exploration=0.05)
arms = {topic: {"topic": topic} for topic in TOPICS}

clicks = 0
for _ in range(200):
    age = rng.randint(18, 90)
    decision = loop.decide({"age": age}, arms)
    click = rng.random() < (
        0.5 if decision.arm == ("world" if age > 50 else "music") else 0.1
    )
    loop.reward(
        decision.id, int(click)
    )  # now or later: the loop remembers what was asked
    clicks += click
print(f"{clicks} clicks")
loop.close()  # everything is in news.db
