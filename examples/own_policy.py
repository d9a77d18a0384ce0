"""A policy of one's own; docs/gallery/own-policy.md explains it."""

# %% policy
from dataclasses import dataclass
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np

from driftbandit import AutoDOMD, Policy, Scores, SignFlip, Uniform, simulate
from driftbandit.checks import check_policy


class Memory(NamedTuple):
    A: np.ndarray  # (n, d, d), what was seen of each direction
    b: np.ndarray  # (n, d), what it gave
    t: np.ndarray  # (n,), rounds


@dataclass(frozen=True, kw_only=True)
class FadingRidge(Policy):
    """Ridge regression that forgets, with a bonus for what is not known."""

    discount: float = 0.99
    bonus: float = 1.0

    def init(self, n=1):
        d = self.problem.dim
        return Memory(
            np.tile(np.eye(d), (n, 1, 1)), np.zeros((n, d)), np.zeros(n, dtype=np.int64)
        )

    def scores(self, memory, arms):
        inverse = np.linalg.inv(memory.A)
        mean = np.einsum("nad,nde,ne->na", arms, inverse, memory.b)
        width = self.bonus * np.sqrt(np.einsum("nad,nde,nae->na", arms, inverse, arms))
        return Scores(mean, width, mean + width)

    def update(self, memory, x, r, noise=None):
        memory.A[:] = self.discount * memory.A + x[:, :, None] * x[:, None, :]
        memory.A[:] += (1 - self.discount) * np.eye(self.problem.dim)
        memory.b[:] = self.discount * memory.b + (r - 0.5)[:, None] * x
        memory.t[:] += 1
        return memory


# %% play
world = SignFlip(horizon=2000, radius=3.0)
check_policy(FadingRidge(problem=world.problem))  # or an error says what is wrong
runs = {}
for policy in (FadingRidge, AutoDOMD, Uniform):
    runs[policy.__name__] = run = simulate(
        policy(problem=world.problem), world, seeds=range(8)
    )
    print(f"{policy.__name__}: regret {run.total.mean():.0f} ± {run.total.std():.0f}")

# %% figure
fig, ax = plt.subplots()
for (name, run), colour in zip(runs.items(), ["C1", "C0", "C2"]):
    ax.plot(run.mean(), colour, label=name)
ax.set(xlabel="round", ylabel="regret so far, mean of 8 seeds")
ax.legend()
fig.savefig("own_policy.svg")
