"""A reward family of one's own; docs/gallery/own-family.md explains it."""

# %% family
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import exp1

from driftbandit import DOMD, Bandit, Bernoulli, Family, Problem
from driftbandit.checks import check_family


@dataclass(frozen=True)
class AtLeastOne(Family):
    """1 if anything happened, where things happen at the rate e^z; 0 if nothing did."""

    R = 1.0  # the largest reward
    quasi = True  # the variance, mu (1 - mu), is at most mu', not equal to it
    self_concordance = 20.0  # |mu''| = |1 - e^z| mu', and z is at most 3

    def m(self, z):
        return z + exp1(rate(z))  # m' = mu

    def mu(self, z):
        return -np.expm1(-rate(z))  # 1 - exp(-e^z)

    def dmu(self, z):
        return rate(z) * np.exp(-rate(z))

    def draw(self, z, u):
        return (np.asarray(u) > 1 - self.mu(z)).astype(float)


def rate(z):
    return np.exp(np.clip(z, -700, 700))  # finite for every z


# %% play
check_family(AtLeastOne(), S=3.0)  # or an error names the method that is wrong
rng, theta, found = np.random.default_rng(0), np.array([-1.0, 2.5]), {}
where = rng.uniform(-0.8, 0.8, 5000), np.linspace(-0.8, 0.8)
seen, shown = (np.c_[np.full(len(u), 0.6), u] for u in where)
rewards, truth = (
    AtLeastOne().draw(seen @ theta, rng.random(5000)),
    AtLeastOne().mu(shown @ theta),
)
for family in (AtLeastOne(), Bernoulli()):
    bandit = Bandit(DOMD(problem=Problem(dim=2, family=family), discount=1.0))
    for x, reward in zip(seen, rewards):
        bandit.update(x, reward)
    found[type(family).__name__] = mean = bandit.predict(shown).mean
    print(f"{type(family).__name__}: off by {np.abs(mean - truth).max():.3f} at most")

# %% figure
fig, ax = plt.subplots()
for name, mean in found.items():
    ax.plot(shown[:, 1], mean, label=f"learnt as {name}")
ax.plot(shown[:, 1], truth, "k:", label="the truth")
ax.set(xlabel="second feature", ylabel="chance that anything happens")
ax.legend()
fig.savefig("own_family.svg")
