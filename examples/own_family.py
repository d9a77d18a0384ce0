"""A reward family of one's own; docs/gallery/own-family.md explains it."""

# %% family
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import exp1

from driftbandit import DOMD, Bernoulli, Circle, Family, simulate
from driftbandit.checks import check_family


@dataclass(frozen=True)
class AtLeastOne(Family):
    """1 if anything happened in an hour, where things happen at the rate e^z; 0 if nothing did."""

    reach: float = 2.0  # |x'theta| is at most this
    R = 1.0  # the largest reward
    quasi = True  # the variance, mu (1 - mu), is at most mu', not equal to it

    @property
    def self_concordance(self):
        return max(1.0, np.expm1(self.reach))  # mu'' = (1 - e^z) mu'

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
check_family(AtLeastOne(), S=2.0)  # it is right, or an error names the method
world = Circle(horizon=2000, radius=2.0, family=AtLeastOne())
families = {"AtLeastOne": AtLeastOne(), "Bernoulli": Bernoulli()}
runs = {}
for name, family in families.items():
    policy = DOMD(problem=replace(world.problem, family=family))
    runs[name] = run = simulate(policy, world, seeds=range(8))
    print(f"{name}: regret {run.total.mean():.0f} ± {run.total.std():.0f}")

# %% figure
import matplotlib.pyplot as plt

fig, ax = plt.subplots()
z = np.linspace(-2, 2)
for name, family in families.items():
    ax.plot(z, family.mu(z), label=name)
ax.set(xlabel="z = x'theta", ylabel="mean reward")
ax.legend()
fig.savefig("own_family.svg")
