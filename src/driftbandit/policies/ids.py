"""Information-directed sampling: the least squared regret per information about the best arm."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from driftbandit import validate
from driftbandit.policies.base import Floats, Ints
from driftbandit.policies.glm import DGLMTS
from driftbandit.policies.index import IndexPolicy, draws
from driftbandit.policies.likelihood import History

SETS = 32  # of points, in turn: what one misses, the next may find


@lru_cache(maxsize=8)
def _normals(count: int, dim: int) -> Floats:
    """Standard normals (SETS, count, dim), always the same, in opposite pairs."""
    half = np.random.default_rng(0).standard_normal((SETS, (count + 1) // 2, dim))
    return np.concatenate([half, -half], axis=1)[:, :count]


def regret_and_information(values: Floats) -> tuple[Floats, Floats]:
    """Delta and v, (n, N) each, from joint draws (n, N, m) of the arms' mean rewards f:

    Delta_a = E max f - E f_a,     v_a = sum_b P(b is best) (E[f_a | b is best] - E f_a)^2.
    """
    mean, best = values.mean(axis=2), np.argmax(values, axis=1)
    is_best = (best[:, :, None] == np.arange(values.shape[1])).astype(float)  # (n, m, N)
    often = is_best.sum(axis=1)
    given = (values @ is_best) / np.maximum(often, 1.0)[:, None, :]
    v = ((given - mean[:, :, None]) ** 2 * (often / values.shape[2])[:, None, :]).sum(axis=2)
    return np.maximum(values.max(axis=1).mean(axis=1)[:, None] - mean, 0.0), v


def ratio(regret: Floats, information: Floats) -> Floats:
    """regret^2 / information: 0 if there is no regret, else infinite if there is no information."""
    out = np.where(regret > 0.0, np.inf, 0.0)
    return np.divide(regret**2, information, out=out, where=(regret > 0.0) & (information > 0.0))


def best_pair(delta: Floats, v: Floats) -> tuple[Ints, Ints, Floats]:
    """Arms a and b (n,) and the probability q of a at which mixing two arms has the least ratio
    Delta^2 / v: no distribution over all arms has less (Russo and Van Roy 2018, Proposition 6).
    If there is nothing to learn, a is the arm with the least regret.

    With A = Delta_a - Delta_b and C = v_a - v_b the ratio of a mixture is convex in q and has slope
    0 at (C Delta_b - 2 A v_b) / (A C).
    """
    A, C = delta[:, :, None] - delta[:, None, :], v[:, :, None] - v[:, None, :]
    top = C * delta[:, None, :] - 2.0 * A * v[:, None, :]
    flat = np.divide(top, A * C, out=np.ones_like(A), where=A * C != 0.0)
    q = np.clip(flat, 0.0, 1.0)
    mixed = ratio(delta[:, None, :] + q * A, v[:, None, :] + q * C)
    alone = np.broadcast_to(ratio(delta, v)[:, :, None], A.shape)  # a for certain
    q = np.where(mixed < alone, q, 1.0)
    n, N = delta.shape
    ratios, rows = np.minimum(mixed, alone).reshape(n, N * N), np.arange(n)
    pair = np.argmin(ratios, axis=1)
    nothing, least = np.isinf(ratios[rows, pair]), np.argmin(delta, axis=1)
    a, b = np.where(nothing, least, pair // N), np.where(nothing, least, pair % N)
    return a, b, q[rows, a, b]


@dataclass(frozen=True, kw_only=True)
class IDS(DGLMTS):
    """Variance-based information-directed sampling (Russo, Van Roy 2018) over the discounted
    posterior of D-GLM-TS.

    It plays the mixture of two arms with the least Delta^2 / v. Both are means over `draws`
    parameters from the posterior, at fixed points that change from round to round; only the choice
    between the two arms is left to chance. A round costs O(N^2) for N arms.
    """

    exploration: str = "ids"
    draws: int = 200

    explorations: ClassVar[tuple[str, ...]] = (*IndexPolicy.explorations, "ids")

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set(draws=validate.count("draws", self.draws, "from the posterior", least=2))

    @property
    def name(self) -> str:
        return "IDS"

    @property
    def noise_size(self) -> int:
        return 1 if self.exploration == "ids" else super().noise_size

    def choose(self, memory: History, arms: Floats, noise: Floats | None = None) -> Ints:
        if self.exploration != "ids":
            return super().choose(memory, arms, noise)
        if noise is None:
            raise ValueError("IDS tosses a coin: pass standard normals of shape (n, 1)")
        a, b, q = best_pair(*regret_and_information(self.values(memory, arms)))
        from scipy.special import ndtr

        return np.where(ndtr(noise[:, 0]) < q, a, b)

    def values(self, memory: History, arms: Floats) -> Floats:
        """Mean rewards of every arm under every draw, (n, N, draws)."""
        arms = self._arms(memory, arms)
        normals = _normals(self.draws, self.problem.dim)[memory.t % SETS]
        thetas = draws(memory.theta, memory.H, self.width(memory), normals)
        return np.asarray(self.problem.family.mu(arms @ np.swapaxes(thetas, 1, 2)))
