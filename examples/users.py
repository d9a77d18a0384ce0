"""A learner for each user, born from the population; docs/gallery/users.md explains it."""

# %% world
import numpy as np

from driftbandit import DOMD, Bandit, Category, Features, Loop, Reward

GENRES, USERS, VISITS = ["crime", "comedy", "drama", "nature"], 80, 40
rng = np.random.default_rng(0)
# Most people like comedy; everybody has tastes of their own.
likes = 1 / (1 + np.exp(1.5 - np.array([0.0, 1.5, 0.0, 0.0]) - rng.standard_normal((USERS, 4))))
# Users come one after another, and stay for a while.
visitors = np.repeat(np.arange(USERS), VISITS)
visitors = visitors[np.argsort(visitors + rng.uniform(0, 10, len(visitors)))].tolist()
luck = rng.random(len(visitors))


# %% play
def play(decide):
    """Who liked what they saw: a line for each user, in the order of their visits."""
    liked = [[] for _ in range(USERS)]
    for user, u in zip(visitors, luck):
        k, learn = decide(user)
        liked[user].append(u < likes[user, k])
        learn(int(liked[user][-1]))
    return np.array(liked)


def asking(bandits):
    def decide(user):
        k = bandits[user].choose(X)
        return k, lambda reward: bandits[user].update(X[k], reward)

    return decide


def asking_loop(user):
    made = loop.decide({}, ARMS, key=str(user))
    return GENRES.index(made.arm), lambda reward: loop.reward(made.id, reward)


# %% compare
ARMS = {genre: {"genre": genre} for genre in GENRES}
features = Features(context={}, arm={"genre": Category(GENRES)})
X, policy = features.encode({}, ARMS), DOMD(problem=features.problem(Reward(0, 1)))
loop = Loop(":memory:", features=features, reward=Reward(0, 1), key="user_id", seed=0)
found = {
    "one learner for all": play(asking([Bandit(policy)] * USERS)),
    "one for each, from nothing": play(asking([Bandit(policy) for _ in range(USERS)])),
    "one for each, from the population": play(asking_loop),
}
for name, liked in found.items():
    print(f"{name}: {liked[:, :10].mean():.0%} of the first ten, {liked[:, -10:].mean():.0%} later")

# %% figure
import matplotlib.pyplot as plt

fig, ax = plt.subplots()
for name, liked in found.items():
    smooth = np.convolve(liked.mean(axis=0), np.full(8, 1 / 8), "valid")
    ax.plot(np.arange(8, VISITS + 1), smooth, label=name)
ax.set(xlabel="visit of a user", ylabel="share that is liked (mean of 8)")
ax.legend()
fig.savefig("users.svg")
