"""One learner, as an application holds it: recipe and memory."""

from __future__ import annotations

import math
import os
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, overload

import numpy as np
from numpy.typing import ArrayLike

from driftbandit import files, validate
from driftbandit.armset import ArmSet
from driftbandit.policies.policy import Floats, Ints, Policy, Scores, Single, memory_bytes
from driftbandit.ranking import row_norms
from driftbandit.recipe import Recipe

if TYPE_CHECKING:
    from driftbandit.policies.auto import AutoDOMD, Explanation

SLACK = 1.0 + 1e-6  # contexts normalised in single precision may be a little too long


class Prediction(NamedTuple):
    """Mean reward of every arm and the interval around it."""

    mean: Floats
    lower: Floats
    upper: Floats


class Bandit:
    """A policy that remembers: what an application creates once and asks ever after.

    Every method checks its input first and leaves the memory untouched if it raises. Rewards
    may come late and in any order: `update` needs only the context that was played.
    Threads may share a bandit; they take turns.

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
            raise ValueError(
                f"policy must be a policy such as DOMD(problem=...), got {validate.show(policy)}"
            )
        self.policy = policy
        self._rng = np.random.default_rng(validate.count("seed", seed, "for its own luck", least=0))
        self._noise = self._rng.standard_normal((1, policy.noise_size))  # of the latest decision
        self._limit = policy.problem.context_norm * SLACK
        self._start(policy.init(1))

    def _start(self, memory: Any) -> None:
        """Go on from this memory."""
        self._lock = Lock()
        self._single = self.policy.single(memory, self._limit) or Single(
            memory,
            self._choose_plain,
            self._update_plain,
            self._best_plain,
            self._forget_plain,
            self._copy_plain,
        )
        self._memory, self._choose, self._update = self._single[:3]

    @overload
    def choose(self, arms: ArrayLike | ArmSet) -> int: ...
    @overload
    def choose(self, arms: ArrayLike | ArmSet, *, k: int) -> Ints: ...
    def choose(self, arms: Any, *, k: int | None = None) -> int | Ints:
        """Index of the arm to play, of arms (n_arms, dim); their number may change every call.

        With `k` the indices of the k best arms, best first. A catalogue of thousands that stays
        the same is best held as an `ArmSet`.
        """
        if k is not None:
            return self._slate(arms, k)
        arm = self._choose(arms)
        return arm if arm >= 0 else int(self._slate(arms, 1)[0])

    def _slate(self, arms: Any, k: int) -> Ints:
        if isinstance(arms, ArmSet):
            X, norms = arms.array, arms.norms
        else:
            X = self._array(arms, 2)
            norms = row_norms(X)
        known = X.shape[1] == self.policy.problem.dim and len(X) > 0
        if not known or not norms.max() <= self._limit:
            self._complain(X)
        k = validate.count("k", k, "arms to choose")
        if k > len(X):
            raise ValueError(f"k must be at most the number of arms, {len(X)}, got {k}")
        return self._single.best(X, norms, k)

    def update(self, x: ArrayLike, reward: float) -> None:
        """Learn that the context x (dim,) was played and gave this reward, now or long ago."""
        if self._update(x, reward):
            return
        if not self._update(self._array(x, 1), self._number(reward)):
            self._complain(x)
            self._complain_reward(reward)

    def _choose_plain(self, arms: Floats) -> int:
        X = self._array(arms, 2)
        return int(self._best_plain(X, None, 1)[0]) if self._are_contexts(X) else -1

    def _best_plain(self, X: Floats, _norm: Any, k: int) -> Ints:
        with self._lock:
            self._noise = self._rng.standard_normal((1, self.policy.noise_size))
            return self.policy.best(self._memory, X[None], k, self._noise)[0]

    def _update_plain(self, x: Floats, reward: float) -> bool:
        X, r = self._array(x, 1)[None], self._number(reward)
        if not self._are_contexts(X) or not self.policy.problem.family.contains(r):
            return False
        with self._lock:
            self._memory = self.policy.update(self._memory, X, np.array([r]), self._noise)
        return True

    def _forget_plain(self, steps: float) -> None:
        with self._lock:
            self._memory = self.policy.forget(self._memory, steps)

    def _copy_plain(self) -> Any:
        return type(self._memory)(*(a.copy() for a in self._memory))

    def scores(self, arms: ArrayLike) -> Scores:
        """Mean, bonus and upper bound of every arm, each (n_arms,), on the policy's own scale."""
        X, memory = self._contexts(arms), self._now()
        return Scores(*(column[0] for column in self.policy.scores(memory, X[None])))

    def predict(self, arms: ArrayLike, *, level: float | None = None) -> Prediction:
        """Mean reward of every arm with an interval.

        By default the interval is the policy's own (the theorem's radius for `from_theory`).
        With `level=0.95`, say, it is a Gaussian interval around the estimate, whatever the bonus.
        It describes a world that stands still; drift comes on top.
        """
        X, memory = self._contexts(arms), self._now()
        if level is not None:
            level = validate.number("level", level, "coverage, below 1")
            if not 0.0 < level < 1.0:
                raise ValueError(f"level must be between 0 and 1, such as 0.95, got {level}")
        if not hasattr(memory, "H"):
            raise ValueError(f"{self.policy.name} keeps no estimate to predict from: use DOMD")
        family, mean = self.policy.problem.family, X @ memory.theta[0]
        if level is None:
            center, width, _ = (column[0] for column in self.policy.scores(memory, X[None]))
            if self.policy.on_reward_scale:
                low, high = family.link.low, family.link.high
                return Prediction(center, *np.clip([center - width, center + width], low, high))
        else:
            deviation = self.policy.deviation(memory, X[None])
            if deviation is None:
                raise ValueError(f"{self.policy.name} has no deviation: drop level, or use DOMD")
            from statistics import NormalDist  # several milliseconds that few need

            width = NormalDist().inv_cdf(0.5 + 0.5 * level) * deviation[0]
        return Prediction(family.mu(mean), family.mu(mean - width), family.mu(mean + width))

    def explain(self) -> Explanation:
        """What an AutoDOMD makes of its world: effective memory, weights, and a word for it."""
        with self._lock:
            return self._auto().explain(self._memory)[0]

    def plot_memory(self, ax: Any = None, **style: Any) -> Any:
        """The effective memory of an AutoDOMD over its life, in rounds; returns the axes."""
        import matplotlib.pyplot as plt

        with self._lock:
            rounds, (memory,) = self._auto().memory_over_time(self._memory)
        ax = plt.gca() if ax is None else ax
        ax.plot(rounds, memory, **style)
        ax.set(xlabel="round $t$", ylabel="effective memory in rounds", yscale="log")
        return ax

    def _auto(self) -> AutoDOMD:
        from driftbandit.policies.auto import AutoDOMD  # who has another need not load it

        if not isinstance(self.policy, AutoDOMD):
            raise ValueError(
                f"{self.policy.name} does not choose its memory, so there is nothing to explain: "
                "use AutoDOMD(problem=...)"
            )
        return self.policy

    def forget(self, steps: float) -> None:
        """Age the memory by so many rounds without data, for example over a night."""
        steps = validate.nonnegative("steps", steps, "rounds that passed without data")
        self._single.forget(steps)

    def _now(self) -> Any:
        """A copy of the memory, between two updates of other threads."""
        with self._lock:
            return self._single.copy()

    @property
    def theta(self) -> Floats:
        """The estimate, (dim,); a read-only view."""
        return self._view("theta")

    @property
    def curvature(self) -> Floats:
        """The matrix H, (dim, dim), whose inverse norm is the bonus: DOMD's discounted curvature, a
        rival's design matrix. A read-only view."""
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
            header = {
                "policy": self.policy.to_dict(),
                "rng": self._rng.bit_generator.state,
                "noise": self._noise.tolist(),
            }
            memory = self._single.copy()
        files.write(path, "bandit", header, memory._asdict())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Bandit:
        """The bandit that `save` wrote; it goes on bit for bit as if it had never stopped."""
        header, arrays = files.read(path, "bandit")
        try:
            bandit = cls(Recipe.from_dict(header["policy"]))
            bandit._rng.bit_generator.state = header["rng"]
            bandit._noise = np.array(header["noise"], dtype=float).reshape(bandit._noise.shape)
            bandit._start(_fitting(bandit.policy, arrays))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ValueError(
                f"{path} is damaged or foreign: {error}; restore it from a copy"
            ) from None
        return bandit

    def __repr__(self) -> str:
        return f"Bandit({self.policy!r}, rounds={self.rounds})"

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            memory = self._single.copy()._asdict()
            return {"policy": self.policy, "memory": memory, "rng": self._rng, "noise": self._noise}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["policy"])  # type: ignore[misc]
        self._rng, self._noise = state["rng"], state["noise"]
        self._start(type(self._memory)(**state["memory"]))

    def _contexts(self, arms: ArrayLike) -> Floats:
        """arms as a clean (n_arms, dim) array."""
        X = self._array(arms, 2)
        if not self._are_contexts(X):
            self._complain(X)
        return X

    def _are_contexts(self, X: Floats) -> bool:
        if X.shape[1] != self.policy.problem.dim or not len(X):
            return False
        with np.errstate(over="ignore"):
            return bool((np.einsum("ad,ad->a", X, X) <= self._limit**2).all())

    def _array(self, value: ArrayLike, ndim: int) -> Floats:
        """`value` as an array that compiled code takes: contiguous, float64."""
        try:
            given = np.asarray(value)
            X = np.require(given, np.float64, ["C", "A"]) if given.dtype.kind in "biuf" else given
        except (TypeError, ValueError, OverflowError):
            self._complain_shape(value, ndim)
        if X.dtype != np.float64 or X.ndim != ndim:
            self._complain_shape(value, ndim)
        return X

    def _complain_shape(self, given: Any, ndim: int) -> NoReturn:
        d = self.policy.problem.dim
        row = (
            f"({d},), the row that was played"
            if ndim == 1
            else f"(n_arms >= 1, {d}), a row per arm"
        )
        got = (
            f"{given.dtype} {given.shape}"
            if isinstance(given, np.ndarray)
            else validate.show(given)
        )
        raise ValueError(f"expected real numbers of shape {row}, because dim={d}; got {got}")

    def _complain(self, given: ArrayLike) -> None:
        """Say what is wrong with these contexts, if anything is."""
        X = np.asarray(given, dtype=float)
        if X.shape[-1] != self.policy.problem.dim or not X.size:
            self._complain_shape(X, X.ndim)
        for index, row in enumerate(np.atleast_2d(X)):
            if not np.isfinite(row).all():
                raise ValueError(
                    f"context {index} holds NaN or infinity: {row}; clean the features"
                )
            if math.hypot(*row) > self._limit:
                raise ValueError(
                    f"context {index} has norm {math.hypot(*row):.6g}, above context_norm="
                    f"{self.policy.problem.context_norm:g}: scale the features down, or raise "
                    "Problem(context_norm=...)"
                )

    def _number(self, reward: float) -> float:
        r = float(reward) if isinstance(reward, (bool, np.bool_)) else validate.real(reward)
        if math.isnan(r):
            self._complain_reward(reward)
        return r

    def _complain_reward(self, reward: Any) -> NoReturn:
        family = self.policy.problem.family
        raise ValueError(
            f"reward must be {family.support} for {family!r}, got {validate.show(reward)}: "
            "rescale it or choose another family"
        )


def _fitting(policy: Policy, arrays: dict[str, Any]) -> Any:
    """The saved arrays as a memory of one learner, if they look like one of this policy."""
    fresh = policy.init(1)
    for name, array in zip(fresh._fields, fresh):
        saved, free = arrays[name], policy.growing.get(name, ())
        shape = tuple(array.shape[k] if k in free else n for k, n in enumerate(saved.shape))
        if saved.dtype != array.dtype or shape != array.shape:
            raise ValueError(f"its array {name!r} is {saved.dtype} {saved.shape}")
    memory = type(fresh)(**{name: arrays[name] for name in fresh._fields})
    if not policy.sane(memory):
        raise ValueError(f"no {policy.name} can have this memory")
    return memory
