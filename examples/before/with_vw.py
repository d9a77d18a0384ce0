"""A news page with Vowpal Wabbit; ../from_vw.py is the same with driftbandit."""

# %% program
import random

import vowpalwabbit

TOPICS = ["sport", "world", "music"]
rng = random.Random(0)
vw = vowpalwabbit.Workspace(
    "--cb_explore_adf --epsilon 0.05 --power_t 0 -l 0.1 -q ua --quiet"
)

clicks = 0
for _ in range(200):
    age = rng.randint(18, 90)
    lines = [
        f"shared |u age:{age / 90:.3f}",
        *(f"|a topic={topic}" for topic in TOPICS),
    ]
    chances = vw.predict(lines)
    k = rng.choices(range(len(TOPICS)), chances)[0]
    click = rng.random() < (
        0.5 if TOPICS[k] == ("world" if age > 50 else "music") else 0.1
    )
    lines[k + 1] = (
        f"0:{-int(click)}:{chances[k]} {lines[k + 1]}"  # action:cost:probability
    )
    vw.learn(lines)
    clicks += click
print(f"{clicks} clicks")
vw.save("news.vw")
