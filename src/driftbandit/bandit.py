"""One learner, as an application holds it: recipe and memory."""

from __future__ import annotations

import math
import os
import struct
import sys
from typing import TYPE_CHECKING, Any, NoReturn, overload

import numpy as np
from numpy.typing import ArrayLike

from driftbandit import files, validate
from driftbandit.armset import ArmSet
from driftbandit.core.engine import MANY
from driftbandit.families import CUSTOM
from driftbandit.fork_safety import NormalStream, forkable_lock
from driftbandit.policies.base import Floats, Ints, Policy, Scores, memory_bytes
from driftbandit.policies.items import ItemSlots, PointEstimate
from driftbandit.policies.rows import RowPolicy
from driftbandit.prediction import Prediction, bonuses, predictions
from driftbandit.recipe import Recipe

if TYPE_CHECKING:
    from driftbandit.policies.auto import AutoDOMD, Explanation


GIL: bool = getattr(sys, "_is_gil_enabled", lambda: True)()
ARRAY = np.ndarray
FLOAT = np.dtype(np.float64)  # in this machine's byte order, which numba does not look at


class Bandit:
    """A policy with state. Create one per application and call it for every decision.

    Every method checks its input first and leaves the memory untouched if it raises. Rewards
    may come late and in any order: `update` needs only the context that was played.
    Threads may share a bandit; they take turns. `name` is the policy's name, and `draws` says if it
    draws random numbers to choose.

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
        self.policy, self.name, self._lock = policy, policy.name, forkable_lock()
        self._stream = NormalStream(seed, policy.noise_size)
        self._start(policy.init(1))

    def _start(self, memory: Any) -> None:
        """Resume from this memory."""
        self._memory, self._row, self._slots = memory, None, None
        if isinstance(self.policy, RowPolicy):
            rows = self.policy.rows(memory)
            self._memory, self._row = self.policy.view(rows), rows[0]
            if self.policy.problem.items is not None:
                self._row = rows[0, : self.policy.kernel_size]
                self._slots = ItemSlots(self.policy, rows[0])
        self._prepare(self._row is not None)

    @classmethod
    def from_row(cls, policy: RowPolicy, row: Floats) -> Bandit:
        """Return a bandit that resumes from a row of this policy, and writes into it."""
        bandit = cls(policy)
        bandit._start(policy.view(row[None]))
        return bandit

    def _prepare(self, compiled: bool) -> None:
        """Look up what every call needs: kernels, or the same by the protocol of policies."""
        self._noise = np.zeros(self.policy.noise_size)  # of the latest decision
        self.draws, self._recipe, self._high_dim = self._noise.size > 0, self._noise, None
        self._rank: Any = None  # loaded when a slate or a draw asks for it
        self._afford: Any = None  # the same for prices
        self._choose: Any = self._choose_by_protocol
        self._best = np.empty(1, dtype=np.int64)  # scratch: a kernel's answer is also returned
        self._learn: Any = self._learn_by_protocol
        if compiled and isinstance(self.policy, RowPolicy):
            self._recipe, engine = self.policy.recipe, self.policy.engine
            self._learn, self._high_dim = engine.learn(), engine.high_dim
            if engine.mixed or engine.high_dim is not None:
                self._choose, self._rank = None, engine.slate()
            else:
                self._choose = engine.choose()
            if not GIL or engine.custom is not None:  # which gives the lock up while Python runs
                self._choose, self._learn = self._locked(engine.choose()), self._locked(self._learn)
            if self._slots is not None:
                self._learn = self._learn_item(engine.learn(), self._slots)

    def _locked(self, call: Any) -> Any:
        """Kernels on one row are atomic because they keep the GIL, where there is one."""

        def in_turn(*args: Any) -> Any:
            with self._lock:
                return call(*args)

        return in_turn

    def _learn_item(self, learn: Any, slots: ItemSlots) -> Any:
        """The kernel for contexts that may name an item, which gets a slot first."""
        problem = self.policy.problem

        def in_turn(q: Any, row: Any, x: Floats, r: Any, steps: float, large: Any) -> bool:
            if x.shape != (problem.dim,) or not problem.family.contains(float(r)):
                return False
            if problem.first_bad(x[None]) >= 0:
                return False
            with self._lock:
                return bool(learn(q, row, slots.take(x), float(r), steps, large))

        return in_turn

    def placed(self, X: Floats) -> Floats:
        """Return rows (n_arms, dim) as the learner sees them: with names of items in their slots,
        if they name any."""
        if self._slots is None or X.ndim != 2 or X.shape[1] != self.policy.problem.dim:
            return X
        return self._slots.placed(X)

    @property
    def estimate(self) -> PointEstimate:
        """A copy of theta, and of which names of items hold slots."""
        if self._slots is None:
            return PointEstimate(self._view("theta").copy())
        with self._lock:
            return PointEstimate(self.theta.copy(), self._slots.at, self._slots.held.copy())

    @overload
    def choose(self, arms: ArrayLike | ArmSet) -> int: ...
    @overload
    def choose(self, arms: ArrayLike | ArmSet, *, k: int) -> Ints: ...
    def choose(self, arms: Any, *, k: int | None = None) -> int | Ints:
        """Return the index of the arm to play, of arms (n_arms, dim); their number may change every
        call.

        With `k` the indices of the k best arms, best first.
        """
        X: Any = arms
        if type(X) is not ARRAY or X.dtype is not FLOAT:
            X = self._array(arms, 2)
        if self._slots is not None:
            X = self.placed(X)
        if k is None and not self.draws:
            q, row, arm = self._recipe, self._row, -1
            try:
                if self._choose is not None:
                    arm = self._choose(q, row, X)
                elif len(X) < MANY:
                    arm = self._rank(q, row, X, self._noise, self._best, self._high_dim)
                if arm >= 0:
                    return arm
            except (TypeError, ValueError, IndexError):  # an array of another kind
                pass
        return self._slate(X, k)

    def _slate(self, X: Floats, k: int | None) -> int | Ints:
        """The k best arms, or the best for one draw of noise, or of very many; or what is wrong
        with the arms."""
        if not X.flags.carray or X.ndim != 2:
            X = self._array(X, 2)
        best = np.empty(1 if k is None else self._positions(k, X), dtype=np.int64)
        with self._lock:
            noise = self._stream.peek() if self.draws else self._noise
            if self._row is None:
                arm = self._rank_by_protocol(X, noise, best)
            else:
                rank = self._rank = self._rank or self.policy.engine.slate()  # type: ignore[attr-defined]
                arm = rank(self._recipe, self._searched(X), X, noise, best, self._high_dim)
            if self.draws and arm >= 0:
                self._stream.step()
                self._noise = noise
        if arm < 0:
            self._complain(X)
        return arm if k is None else best

    def _searched(self, X: Floats) -> Any:
        """The row for a search among these arms: where they are many, with the smallest eigenvalue
        of H for a floor, so that few of them need their norm."""
        d = self.policy.problem.dim
        if self._row is None or len(X) < max(MANY, 20 * d):
            return self._row
        row = self._row_now().copy()
        memory = self.policy.view(row[None])  # type: ignore[attr-defined]
        least = np.linalg.eigvalsh(memory.H[0])[0] - 1e-13 * np.trace(memory.H[0])
        memory.floor[0] = max(memory.floor[0], least)
        return row

    def _rank_by_protocol(self, X: Floats, noise: Floats, best: Ints) -> int:
        """What kernels do for a row, for other policies."""
        problem = self.policy.problem
        if X.shape[1:] != (problem.dim,) or not len(X) or problem.first_bad(X) >= 0:
            return -1
        best[:] = self.policy.best(self._memory, X[None], best.size, noise[None])[0]
        return int(best[0])

    def _choose_by_protocol(self, _recipe: Any, _row: Any, X: Floats) -> int:
        with self._lock:
            return self._rank_by_protocol(X, self._noise, np.empty(1, dtype=np.int64))

    def _positions(self, k: Any, X: Floats) -> int:
        k = validate.count("k", k, "arms to choose")
        if k > len(X):
            raise ValueError(f"k must be at most the number of arms, {len(X)}, got {k}")
        return k

    def update(self, x: ArrayLike, reward: float, *, steps: float = 1.0) -> None:
        """Learn that the context x (dim,) was played and gave this reward, now or long ago.

        The memory ages by `steps` first: rounds, or the time since the last update in units of
        one round, as `half_life` counts them.
        """
        if type(x) is not ARRAY or x.dtype is not FLOAT:
            x = self._array(x, 1)
        if type(steps) is not float or steps != 1.0:
            steps = validate.nonnegative("steps", steps, "rounds since the last update")
        try:
            learnt = self._learn(self._recipe, self._row, x, reward, steps, self._high_dim)
        except (TypeError, ValueError, IndexError, OverflowError):  # something of another kind
            if self._row is None:  # no kernel that refused its types: the policy's own error
                raise
            x, r = self._array(x, 1), self._number(reward)
            learnt = self._learn(self._recipe, self._row, x, r, steps, self._high_dim)
        if not learnt:
            self._complain(x, 1)
            self._complain_reward(reward)

    def _learn_by_protocol(
        self, _recipe: Any, _row: Any, x: Floats, reward: Any, steps: float, _high_dim: Any
    ) -> bool:
        problem, r = self.policy.problem, self._number(reward)
        if x.shape != (problem.dim,) or not problem.family.contains(r):
            return False
        if problem.first_bad(x[None]) >= 0:
            return False
        with self._lock:
            if steps != 1.0:
                self._memory = self.policy.forget(self._memory, steps - 1.0)
            X, noise = x[None], self._noise[None]
            memory = self._copy() if problem.family.link.code == CUSTOM else self._memory
            self._memory = self.policy.update(memory, X, np.array([r]), noise)
        return True

    def scores(self, arms: ArrayLike) -> Scores:
        """Return the mean, bonus and upper bound of each arm, each (n_arms,), on the policy's own
        scale."""
        X, memory = self._contexts(arms), self._copy()
        return Scores(*(column[0] for column in self.policy.scores(memory, X[None])))

    def afford(self, arms: ArrayLike, penalty: ArrayLike, *, optimism: float = 1.0) -> int:
        """Return the arm with the largest upper bound of its mean reward less its `penalty`
        (n_arms,), such as a price. The bound has the part `optimism` of the policy's bonus."""
        X: Any = arms
        cost: Any = penalty
        if type(X) is not ARRAY or X.dtype is not FLOAT or not X.flags.carray:
            X = self._array(arms, 2)
        if type(cost) is not ARRAY or cost.dtype is not FLOAT:
            cost = self._array(penalty, 1)
        if self._afford is None:
            policy = self.policy
            if not isinstance(policy, RowPolicy) or policy.engine.custom is not None:
                return self._afford_by_protocol(X, cost, optimism)
            self._afford = policy.engine.afford()
        if self._slots is not None:
            X = self.placed(X)
        with self._lock:
            arm: int = self._afford(self._recipe, self._row, X, cost, optimism, self._high_dim)
        if arm < 0:
            self._complain(X)
        return arm

    def _afford_by_protocol(self, X: Floats, penalty: Floats, optimism: float) -> int:
        mean, _, upper = self.scores(X)
        bound = mean + optimism * (upper - mean)
        mu = bound if self.policy.on_reward_scale else self.policy.problem.family.mu(bound)
        return int(np.argmax(mu - penalty))

    def predict(self, arms: ArrayLike, *, level: float | None = None) -> Prediction:
        """Return the mean reward of each arm with an interval.

        By default the interval is the policy's own (the theorem's radius for `from_theory`).
        With `level=0.95`, say, it is a Gaussian interval around the estimate, whatever the bonus.
        It describes an environment that does not change; drift comes on top.
        """
        X, memory = self._contexts(arms), self._copy()
        found = predictions(self.policy, memory, X[None], level)
        return Prediction(*(column[0] for column in found))

    def bonus(self, arms: ArrayLike) -> Floats | None:
        """Return the exploration bonus of every arm, in units of x'theta, or None if the policy
        has none that is added to it."""
        X, memory = self._contexts(arms), self._copy()
        found = bonuses(self.policy, memory, X[None])
        return None if found is None else found[0]

    def explain(self) -> Explanation:
        """Return what an AutoDOMD has found: its effective memory, weights, and a word for it."""
        with self._lock:
            return self._auto().explain(self._memory)[0]

    def plot_memory(self, ax: Any = None, **style: Any) -> Any:
        """Draw the effective memory of an AutoDOMD over its life, in rounds; return the axes."""
        import matplotlib.pyplot as plt

        with self._lock:
            rounds, (memory,) = self._auto().memory_over_time(self._memory)
        ax = plt.gca() if ax is None else ax
        ax.plot(rounds, memory, **style)
        ax.set(xlabel="round $t$", ylabel="effective memory in rounds", yscale="log")
        return ax

    def _auto(self) -> AutoDOMD:
        from driftbandit.policies.auto import AutoDOMD  # imported lazily: only AutoDOMD explains

        if not isinstance(self.policy, AutoDOMD):
            raise ValueError(
                f"{self.policy.name} does not choose its memory, so there is nothing to explain: "
                "use AutoDOMD(problem=...)"
            )
        return self.policy

    def forget(self, steps: float) -> None:
        """Age the memory by so many rounds without data, for example over a night."""
        steps = validate.nonnegative("steps", steps, "rounds that passed without data")
        with self._lock:
            memory = self.policy.forget(self._memory, steps)
            if self._row is None:
                self._memory = memory

    def _row_now(self) -> Floats:
        """A copy of the row in one piece: NumPy would let other threads run during a long copy."""
        with self._lock:
            return np.frombuffer(self.policy.rows(self._memory)[0].tobytes())

    def _copy(self) -> Any:
        """A copy of the memory, between two updates of other threads."""
        with self._lock:
            if isinstance(self.policy, RowPolicy):
                return self.policy.from_rows(self._row_now()[None])
            return type(self._memory)(*(a.copy() for a in self._memory))

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
    def memory(self) -> Any:
        """A copy of all it knows: a tuple of arrays, as the methods of its policy take it."""
        return self._copy()

    @property
    def rounds(self) -> int:
        """The number of updates so far."""
        return int(self._memory.t[0])

    @property
    def memory_bytes(self) -> int:
        """The size of everything that this bandit remembers."""
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
                "stream": self._stream.state,
                "noise": self._noise.tolist(),
            }
            arrays = self._memory._asdict()
            if isinstance(self.policy, RowPolicy):
                arrays = {"row": self._row_now()}
            files.write(path, "bandit", header, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, seed: int | None = None) -> Bandit:
        """Read what `save` wrote; the bandit resumes bit for bit.

        Workers that load the same file would draw the same arms: give each its own `seed`.
        """
        with files.opened(path, "bandit") as (header, archive):
            policy = Recipe.from_dict(header["policy"])
            if not isinstance(policy, Policy):
                raise ValueError(f"it holds a {type(policy).__name__}, no policy")
            memory = _saved(policy, archive)
            bandit = cls(policy, seed=0 if seed is None else seed)
            bandit._start(memory)
            bandit._noise = np.asarray(header["noise"], dtype=float).reshape(policy.noise_size)
            if seed is None:
                bandit._stream.state = header["stream"]
        return bandit

    def __repr__(self) -> str:
        return f"Bandit({self.policy!r}, rounds={self.rounds})"

    def __getstate__(self) -> dict[str, Any]:
        memory = self._copy()
        with self._lock:
            state = {"policy": self.policy, "stream": self._stream.state, "noise": self._noise}
            if self._slots is not None:
                return state | {"row": memory.rows[0]}
            return state | {"memory": tuple(memory)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["policy"])  # type: ignore[misc]
        if "row" in state:  # with names of items, which no field of a memory has
            self._start(self.policy.view(state["row"][None]))  # type: ignore[attr-defined]
        else:
            self._start(type(self._memory)(*state["memory"]))
        self._stream.state, self._noise = state["stream"], state["noise"]

    def _contexts(self, arms: ArrayLike) -> Floats:
        """arms as a clean (n_arms, dim) array."""
        X = self._array(arms, 2)
        self._complain(X)
        return self.placed(X)

    def _array(self, value: Any, ndim: int) -> Floats:
        """`value` as an array that kernels take: contiguous, float64."""
        if type(value) is list and ndim == 2:
            known = _packed(value, self.policy.problem.dim)
            if known is not None:
                return known
        if isinstance(value, ArmSet):
            return value._kept
        try:
            given = np.asarray(value)
            if type(value) is list and given.dtype is FLOAT and given.ndim == ndim:
                return given  # new, so it is as kernels want it
            real = given.dtype.kind in "biuf"
            X = np.require(given, np.float64, ["C", "A", "W"]) if real else given
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

    def _complain(self, X: Floats, ndim: int = 2) -> None:
        """Say what is wrong with these contexts, if anything is."""
        if X.ndim != ndim or X.shape[-1] != self.policy.problem.dim or not X.size:
            self._complain_shape(X, ndim)
        self.policy.problem.check_contexts(np.atleast_2d(X))

    def _number(self, reward: Any) -> float:
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


def _packed(rows: list[Any], dim: int) -> Floats | None:
    """Lists of `dim` numbers each as an array, in less time than NumPy takes to find out what they
    are; None where that is to be found out."""
    flat: list[Any] = []
    for row in rows:
        if type(row) is not list or len(row) != dim:
            return None
        flat += row
    X = np.empty((len(rows), dim))
    try:
        struct.pack_into(f"{len(flat)}d", X.data, 0, *flat)
    except struct.error:  # not only numbers
        return None
    return X


def _saved(policy: Policy, archive: Any) -> Any:
    """The memory of one learner in a file, if it can be one of this policy."""
    if isinstance(policy, RowPolicy):
        rows = archive.read("row", np.float64, (policy.row_size,))[None]
        memory = policy.view(rows)
    else:
        fresh = policy.like if archive.bytes >= policy.least_bytes else None
        if fresh is None:
            raise ValueError(f"{archive.bytes} bytes are too few for dim={policy.problem.dim}")
        memory = type(fresh)(
            *(
                archive.read(name, a.dtype, a.shape, policy.growing.get(name, ()))
                for name, a in zip(fresh._fields, fresh)
            )
        )
    if not policy.sane(memory):
        raise ValueError(f"no {policy.name} can have this memory")
    return memory
