"""before/with_bayesianbandits.py with driftbandit; the site shows both."""

# %% program
import numpy as np

from driftbandit import AutoDOMD, Bandit, Category, Features, Number

TOPICS = ["sport", "world", "music"]
rng = np.random.default_rng(0)
features = Features(context={"age": Number(18, 90)}, arm={"topic": Category(TOPICS)})
bandit = Bandit(AutoDOMD(problem=features.problem(), exploration="thompson"), seed=0)
arms = [{"topic": topic} for topic in TOPICS]

clicks = 0
for _ in range(200):
    age = int(rng.integers(18, 91))
    X = features.encode({"age": age}, arms)
    k = bandit.choose(X)
    click = rng.random() < (
        0.5 if TOPICS[k] == ("world" if age > 50 else "music") else 0.1
    )
    bandit.update(X[k], int(click))
    clicks += click
print(f"{clicks} clicks")
bandit.save("news.npz")
