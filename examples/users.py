"""A learner for each user; docs/gallery/users.md explains it."""

# %% world
import matplotlib.pyplot as plt
import numpy as np

from driftbandit import DOMD, Bandit, Category, Features, Loop, Reward

SLOTS, GENRES = (
    ["morning", "noon", "evening", "night"],
    ["crime", "comedy", "drama", "nature"],
)
ARMS, USERS, VISITS = {genre: {"genre": genre} for genre in GENRES}, 60, 60
rng = np.random.default_rng(2)
likes = 1 / (
    1 + np.exp(2.5 - 2.2 * np.eye(4) - 1.6 * rng.standard_normal((USERS, 1, 4)))
)
when = np.arange(USERS)[:, None] + rng.uniform(
    0, 10, (USERS, VISITS)
)  # one after another
users = np.argsort(when, axis=None) // VISITS
visits = list(
    zip(users.tolist(), rng.integers(4, size=len(users)), rng.random(len(users)))
)


# %% play
def play(decide):
    liked = [[] for _ in range(USERS)]  # by user, visit by visit
    for user, slot, luck in visits:
        k, learn = decide(user, slot)
        liked[user].append(luck < likes[user, slot, k])
        learn(int(liked[user][-1]))
    return np.array(liked)


def ask_bandit(bandit, x):
    return (k := bandit.choose(x)), lambda reward: bandit.update(x[k], reward)


def ask_loop(user, slot):
    made = loop.decide({"slot": SLOTS[slot]}, ARMS, key=str(user))
    return GENRES.index(made.arm), lambda reward: loop.reward(made.id, reward)


# %% compare
slots, genres = Category(SLOTS, required=True), Category(GENRES, required=True)
features, reward = (
    Features(context={"slot": slots}, arm={"genre": genres}),
    Reward(0, 1),
)
X = [features.encode({"slot": slot}, ARMS) for slot in SLOTS]
policy = DOMD(problem=features.problem(reward), bonus=2.0)
bandits = [Bandit(policy) for _ in range(USERS + 1)]
options = {"policy": policy, "key": "user_id", "seed": 0, "training": "inline"}
loop = Loop(":memory:", features=features, reward=reward, **options)
found = {
    "one learner for all": play(lambda user, slot: ask_bandit(bandits[-1], X[slot])),
    "one for each, from nothing": play(
        lambda user, slot: ask_bandit(bandits[user], X[slot])
    ),
    "one for each, from the population": play(ask_loop),
}
for name, liked in found.items():
    first, later = liked[:, :10].mean(), liked[:, -10:].mean()
    print(f"{name}: {first:.0%} of the first ten, {later:.0%} later")

# %% figure
fig, ax = plt.subplots()
for (name, liked), colour in zip(found.items(), ["C1", "C2", "C0"]):
    mean = liked.mean(axis=0).reshape(-1, 10).mean(axis=1)
    ax.plot(np.arange(5, VISITS, 10), mean, colour, label=name)
ax.set(xlabel="visit of a user", ylabel="share that is liked")
ax.legend()
fig.savefig("users.svg")
