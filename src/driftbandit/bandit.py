"""One learner, as an application holds it: recipe, memory, lock."""

from __future__ import annotations

import math
import os
from threading import RLock
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import ArrayLike
from scipy.special import ndtri

from driftbandit import files, validate
from driftbandit.compiled import direct
from driftbandit.linalg import dot
from driftbandit.policies import Policy, Scores, memory_bytes
from driftbandit.policies.policy import Floats
from driftbandit.recipe import Recipe

SLACK = 1.0 + 1e-6  # contexts normalised in single precision may be a little too long


class Prediction(NamedTuple):
    """Mean reward of every arm and the interval around it."""

    mean: Floats
    lower: Floats
    upper: Floats


@njit(cache=True)
def first_bad_row(X: Floats, limit: float) -> int:
    """First row that is not finite or longer than `limit`, or -1."""
    for a in range(len(X)):
        square = dot(X[a], X[a])
        if not square <= limit * limit:  # NaN compares false
            return a
    return -1


_first_bad_row = direct(first_bad_row)


class Bandit:
    """A policy that remembers: what an application creates once and asks ever after.

    Every method checks its input first and leaves the memory untouched if it raises. Rewards
    may come late and in any order: `update` needs only the context that was played.
    One lock guards every method, so threads may share a bandit; they take turns.

    >>> from driftbandit import DOMD, Problem
    >>> bandit = Bandit(DOMD(problem=Problem(dim=2), half_life=500))
    >>> arms = [[1.0, 0.0], [0.0, 1.0]]
    >>> arm = bandit.choose(arms)
    >>> bandit.update(arms[arm], 1)
    >>> bandit.rounds
    1
    """

    def __init__(self, policy: Policy, *, seed: int = 0) -> None:
        if not isinstance(policy, Policy):
            raise ValueError(f"policy must be a policy such as DOMD(problem=...), got {policy!r}")
        self.policy = policy
        self._memory = policy.init(1)
        self._rng = np.random.default_rng(validate.count("seed", seed, "for its own luck", least=0))
        self._lock = RLock()
        self._limit = policy.problem.context_norm * SLACK

    def choose(self, arms: ArrayLike) -> int:
        """Index of the arm to play, of arms (n_arms, dim); their number may change every call."""
        X = self._contexts(arms)
        with self._lock:
            noise = None
            if self.policy.noise_size:
                noise = self._rng.standard_normal((1, self.policy.noise_size))
            return int(self.policy.choose(self._memory, X[None], noise)[0])

    def update(self, x: ArrayLike, reward: float) -> None:
        """Learn that the context x (dim,) was played and gave this reward, now or long ago."""
        row = np.asarray(x)
        if row.ndim != 1:
            raise ValueError(
                f"x must be one context of shape ({self.policy.problem.dim},), got {_shape(x)}: "
                "pass arms[arm], the row that was played"
            )
        X = self._contexts(row[None])
        r = np.array([self._reward(reward)])
        with self._lock:
            self._memory = self.policy.update(self._memory, X, r)

    def scores(self, arms: ArrayLike) -> Scores:
        """Mean, bonus and upper bound of every arm, each (n_arms,), on the policy's own scale."""
        X = self._contexts(arms)
        with self._lock:
            return Scores(*(column[0] for column in self.policy.scores(self._memory, X[None])))

    def predict(self, arms: ArrayLike, *, level: float | None = None) -> Prediction:
        """Mean reward of every arm with an interval.

        By default the interval is the policy's own (the theorem's radius for `from_theory`).
        With `level=0.95`, say, it is the Gaussian one of the curvature, whatever the bonus.
        """
        X = self._contexts(arms)
        with self._lock:
            return self._predict(X, level)

    def _predict(self, X: Floats, level: float | None) -> Prediction:
        family, mean = self.policy.problem.family, X @ self.theta
        if level is None:
            width = self.policy.scores(self._memory, X[None]).bonus[0]
        else:
            level = validate.interval("level", level, "coverage", low=0.0, high=math.nextafter(1, 0))
            deviation = np.sqrt(np.einsum("ad,da->a", X, np.linalg.solve(self.curvature, X.T)))
            width = ndtri(0.5 + 0.5 * level) * deviation
        return Prediction(family.mu(mean), family.mu(mean - width), family.mu(mean + width))

    def forget(self, steps: float) -> None:
        """Age the memory by so many rounds without data, for example over a night."""
        steps = validate.nonnegative("steps", steps, "rounds that passed without data")
        with self._lock:
            self._memory = self.policy.forget(self._memory, steps)

    @property
    def theta(self) -> Floats:
        """The estimate, (dim,); a read-only view."""
        return self._view("theta")

    @property
    def curvature(self) -> Floats:
        """The curvature H, (dim, dim); its inverse is the posterior covariance. Read-only view."""
        return self._view("H")

    @property
    def rounds(self) -> int:
        """Updates so far."""
        return int(self._memory.t[0])

    @property
    def memory_bytes(self) -> int:
        """Size of everything this bandit remembers."""
        return memory_bytes(self._memory)

    def _view(self, name: str) -> Floats:
        array = getattr(self._memory, name, None)
        if array is None:
            raise AttributeError(f"{self.policy.name} keeps no {name}")
        view: Floats = array[0]
        view.flags.writeable = False
        return view

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to one npz file (arrays and a JSON header, no pickle), atomically."""
        with self._lock:
            header = {"policy": self.policy.to_dict(), "rng": self._rng.bit_generator.state}
            files.write(path, "bandit", header, self._memory._asdict())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Bandit:
        """The bandit that `save` wrote; it goes on bit for bit as if it had never stopped."""
        header, arrays = files.read(path, "bandit")
        try:
            bandit = cls(Recipe.from_dict(header["policy"]))
            bandit._rng.bit_generator.state = header["rng"]
            bandit._memory = _fitting(bandit._memory, arrays)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path} is damaged or foreign: {error}; restore it from a copy") from None
        return bandit

    def __repr__(self) -> str:
        return f"Bandit({self.policy!r}, rounds={self.rounds})"

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            return {k: v for k, v in self.__dict__.items() if k != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=RLock())

    def _contexts(self, arms: ArrayLike) -> Floats:
        """arms as a clean (n_arms, dim) array, or a ValueError that says what is wrong."""
        d = self.policy.problem.dim
        try:
            X = np.ascontiguousarray(arms, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(
                f"contexts must be numbers in an array of shape (n_arms, {d}), got {_shape(arms)}"
            ) from None
        if X.ndim != 2 or X.shape[1] != d:
            raise ValueError(f"contexts must have shape (n_arms, {d}), got {X.shape}: one row per arm")
        if not len(X):
            raise ValueError("there are no arms to choose from: pass at least one row")
        bad = _first_bad_row(X, self._limit)
        if bad >= 0:
            self._complain(X[bad], bad)
        return X

    def _complain(self, row: Floats, index: int) -> None:
        if not np.isfinite(row).all():
            raise ValueError(f"context {index} holds NaN or infinity: {row}; clean the features first")
        raise ValueError(
            f"context {index} has norm {math.hypot(*row):.6g}, above context_norm = "
            f"{self.policy.problem.context_norm:g}: scale the features down, or raise "
            "Problem(context_norm=...)"
        )

    def _reward(self, reward: float) -> float:
        family = self.policy.problem.family
        try:
            r = float(reward)
        except (TypeError, ValueError):
            r = math.nan
        if isinstance(reward, str) or not math.isfinite(r) or not family.contains(r):
            raise ValueError(
                f"reward must be {family.support} for {family!r}, got {reward!r}: "
                "rescale it or choose another family"
            )
        return r


def _shape(value: Any) -> str:
    return str(value.shape) if hasattr(value, "shape") else f"{type(value).__name__} {str(value)[:80]}"


def _fitting(memory: Any, arrays: dict[str, Any]) -> Any:
    """The saved arrays as a memory like `memory`, if they look like one."""
    for name, fresh in memory._asdict().items():
        saved = arrays[name]
        if saved.dtype != fresh.dtype or saved.ndim != fresh.ndim or not np.isfinite(saved).all():
            raise ValueError(f"its array {name!r} has {saved.dtype} {saved.shape}")
    return type(memory)(**{name: arrays[name] for name in memory._fields})
