"""dLinUCB: a team of LinUCB models, of which those that predict badly are sent away.

Wu, Iyer, Wang 2018. Every round the model with the least optimistic rate of failures decides. Every
model whose prediction was close enough learns. When all models fail, a new one joins.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from driftbandit import validate
from driftbandit.policies.base import Floats, Ints
from driftbandit.policies.index import index_scores
from driftbandit.policies.linear import LinUCB
from driftbandit.policies.master import widened
from driftbandit.theory import detection, rivals


class Team(NamedTuple):
    """Everything n learners remember: M places for models each, more when all are taken."""

    theta: Floats  # (n, d)             estimate of the model that decides
    H: Floats  # (n, d, d)          its design
    V: Floats  # (n, M, d, d)
    b: Floats  # (n, M, d)
    size: Ints  # (n, M)             rounds that a model learnt from
    seen: Ints  # (n, M)             rounds that it predicted
    failed: Ints  # (n, M, memory)     which of the latest it failed in, 0 or 1
    alive: Ints  # (n, M)             whether there is a model, 0 or 1
    born: Ints  # (n, M)             how many models came before it
    decides: Ints  # (n,)               the place of the model that decides
    created: Ints  # (n,)               models so far
    t: Ints  # (n,)               rounds seen


@dataclass(frozen=True, kw_only=True)
class DynamicLinUCB(LinUCB):
    """dLinUCB (Wu, Iyer, Wang 2018).

    | here | paper | |
    |---|---|---|
    | `recent` | tau | rounds that a rate of failures looks back |
    | `delta` | delta_1 | how often a good model fails |
    | `doubt` | delta_2 | how often the error of that rate is larger than thought |
    | `spare` | delta_1~ | rates so little above their error bring no new model |
    | `tolerance` | | factor on the error that noise excuses |
    """

    recent: int = 200
    doubt: float = 0.01
    spare: float = 0.002
    tolerance: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        meaning = "probability that the error of a rate is underestimated"
        self._set(
            recent=validate.count("recent", self.recent, "rounds of a rate of failures"),
            doubt=validate.interval("doubt", self.doubt, meaning, low=0.0, high=1.0),
            spare=validate.nonnegative("spare", self.spare, "rate that brings no new model"),
            tolerance=validate.positive("tolerance", self.tolerance, "factor on excused errors"),
        )

    @property
    def name(self) -> str:
        return "dLinUCB"

    @property
    def growing(self) -> dict[str, tuple[int, ...]]:
        return dict.fromkeys(("V", "b", "size", "seen", "failed", "alive", "born"), (1,))

    @property
    def _epsilon(self) -> float:
        """The error that noise excuses."""
        deviation = rivals.reward_deviation(self.problem)
        return self.tolerance * detection.dlinucb_tolerance(deviation, self.delta)

    def init(self, n: int = 1) -> Any:
        d, places = self.problem.dim, 2
        V = np.tile(self._lam * np.eye(d), (n, places, 1, 1))
        return Team(
            theta=np.zeros((n, d)),
            H=V[:, 0].copy(),
            V=V,
            b=np.zeros((n, places, d)),
            size=np.zeros((n, places), dtype=np.int64),
            seen=np.zeros((n, places), dtype=np.int64),
            failed=np.zeros((n, places, self.recent), dtype=np.int64),
            alive=np.tile(np.arange(places) == 0, (n, 1)).astype(np.int64),
            born=np.zeros((n, places), dtype=np.int64),
            decides=np.zeros(n, dtype=np.int64),
            created=np.ones(n, dtype=np.int64),
            t=np.zeros(n, dtype=np.int64),
        )

    def radius(self, memory: Any) -> Floats:
        size = memory.size[np.arange(len(memory.t)), memory.decides]
        return np.asarray(self.coefficient(size + 1.0))

    def rates(self, memory: Any) -> tuple[Floats, Floats]:
        """The rate of failures of every model in its latest rounds and its error, (n, M) each."""
        n = np.minimum(memory.seen, self.recent)
        rate = memory.failed.sum(axis=2) / np.maximum(n, 1)
        return rate, detection.dlinucb_doubt(n, self.doubt)

    def errors(self, memory: Any, x: Floats, r: Floats) -> Floats:
        """How far off each prediction was, less what radius and noise excuse, (n, M)."""
        family, excuse = self.problem.family, self._epsilon
        out = np.empty(memory.size.shape)
        for m in range(out.shape[1]):
            V, width = memory.V[:, m], self.scale * self.coefficient(memory.size[:, m] + 1.0)
            theta = np.linalg.solve(V, memory.b[:, m, :, None])[:, :, 0]
            mean, bonus, _ = index_scores(family, True, theta, V, width, x[:, None, :])
            out[:, m] = np.abs(r - mean[:, 0]) - bonus[:, 0] - excuse
        return out

    def update(self, memory: Any, x: Floats, r: Floats, noise: Floats | None = None) -> Any:
        x, r = self._played(memory, x, r)
        r = r - self._zero
        self._judge(memory, x, r)
        memory = self._hire(memory)
        memory.decides[:] = self._elected(memory)
        rows = np.arange(len(memory.t)), memory.decides
        memory.H[:] = memory.V[rows]
        memory.theta[:] = np.linalg.solve(memory.H, memory.b[rows][:, :, None])[:, :, 0]
        memory.t[:] += 1
        return memory

    def _elected(self, s: Any) -> Ints:
        """The model with the least optimistic rate of failures, (n,); of several, the oldest."""
        rate, doubt = self.rates(s)
        hope = np.where(s.alive == 1, rate - math.sqrt(math.log(self.recent)) * doubt, np.inf)
        least = hope == hope.min(axis=1, keepdims=True)
        return np.asarray(np.argmin(np.where(least, s.born, np.inf), axis=1))

    def _judge(self, s: Any, x: Floats, r: Floats) -> None:
        """Note who failed, and teach the others."""
        failed = self.errors(s, x, r) > 0.0
        rows, models = np.nonzero(s.alive)
        s.failed[rows, models, s.seen[rows, models] % self.recent] = failed[rows, models]
        s.seen[rows, models] += 1
        rows, models = np.nonzero((s.alive == 1) & ~failed)
        s.V[rows, models] += x[rows, :, None] * x[rows, None, :]
        s.b[rows, models] += r[rows, None] * x[rows]
        s.size[rows, models] += 1

    def _hire(self, s: Any) -> Any:
        """Send bad models away; where no model is good, a new one joins."""
        rate, doubt = self.rates(s)
        alive = s.alive == 1
        good = alive & (rate < doubt + self.spare)
        s.alive[alive & ~good & (rate >= doubt + self.delta)] = 0
        for i in np.flatnonzero(~good.any(axis=1)):
            if s.alive[i].all():
                s = self._more_places(s)
            place = int(np.argmin(s.alive[i]))
            s.V[i, place] = self._lam * np.eye(self.problem.dim)
            for array in (s.b, s.size, s.seen, s.failed):
                array[i, place] = 0
            s.alive[i, place], s.born[i, place] = 1, s.created[i]
            s.created[i] += 1
        return s

    def _more_places(self, s: Any) -> Any:
        """Twice as many places, the new ones as `init` makes them."""
        n, M = s.size.shape
        old = {name: getattr(s, name) for name in self.growing}
        more = {name: widened(a, (n, 2 * M, *a.shape[2:])) for name, a in old.items()}
        more["V"][:, M:] = self._lam * np.eye(self.problem.dim)
        return s._replace(**more)
