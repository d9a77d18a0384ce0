"""Slates of ten from 100,000 items; docs/gallery/catalogue.md explains it."""

# %% world
import matplotlib.pyplot as plt
import numpy as np

from driftbandit import ArmSet, AutoDOMD, Bandit, Problem

rng = np.random.default_rng(0)
ITEMS, DIM, SLATES, K = 100_000, 16, 400, 10
items = rng.standard_normal((ITEMS, DIM))
items /= np.linalg.norm(items, axis=1, keepdims=True)
tastes = (
    4.0 * items[rng.integers(ITEMS, size=2)]
)  # in the first half, and in the second


def chance(chosen, slate):
    """Of a click on each of the chosen items."""
    return 1 / (1 + np.exp(1.0 - items[chosen] @ tastes[slate // (SLATES // 2)]))


# %% play
catalogue = ArmSet(items)  # converted and checked once
bandit = Bandit(AutoDOMD(problem=Problem(dim=DIM)))
clicks = np.zeros(SLATES)
for slate in range(SLATES):
    chosen = bandit.choose(catalogue, k=K)  # the ten best of all, best first, exactly
    clicked = rng.random(K) < chance(chosen, slate)
    for item, click in zip(chosen, clicked):
        bandit.update(items[item], int(click))
    clicks[slate] = clicked.sum()
print(f"clicks on a slate of ten: first 20 slates {clicks[:20].mean():.1f},", end=" ")
print(f"before the change {clicks[180:200].mean():.1f},", end=" ")
print(f"at the end {clicks[-20:].mean():.1f}")

# %% check
slow = np.argsort(-bandit.scores(items).upper, kind="stable")[:K]  # values all 100,000
print(
    "the slate is that of a full sort:", set(slow) == set(bandit.choose(catalogue, k=K))
)

# %% figure
everyone = np.arange(ITEMS)
best = [np.sort(chance(everyone, slate))[-K:].sum() for slate in (0, SLATES - 1)]
random = [K * chance(everyone, slate).mean() for slate in (0, SLATES - 1)]
fig, ax = plt.subplots()
ax.plot(
    np.arange(9, SLATES),
    np.convolve(clicks, np.full(10, 0.1), "valid"),
    label="AutoDOMD",
)
halves = [0, SLATES // 2, SLATES]
ax.step(
    halves, [best[0], *best], "grey", ls="--", label="the ten best, if one knew them"
)
ax.step(halves, [random[0], *random], "grey", ls=":", label="ten at random")
ax.set(xlabel="slate", ylabel="clicks on a slate of ten (mean of 10)", ylim=(0, 10.5))
ax.legend()
fig.savefig("catalogue.svg")
