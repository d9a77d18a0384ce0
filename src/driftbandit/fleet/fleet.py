"""One learner per key: user, segment, market."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike

from driftbandit import validate
from driftbandit.core.layout import Floats, Ints
from driftbandit.fleet import archive
from driftbandit.fleet.batch import Key, Keys, floats_of, key_of, keys_of
from driftbandit.fleet.batch_errors import blame, wrong_arms, wrong_rows
from driftbandit.fleet.directory import distinct
from driftbandit.fleet.learner import FleetLearner
from driftbandit.fleet.residency import Members
from driftbandit.fleet.table import OWN, FleetTable
from driftbandit.fork_safety import NormalStream, forkable_lock
from driftbandit.policies import Policy
from driftbandit.policies.rows import RowPolicy
from driftbandit.prediction import Prediction, predictions

PLACE = 64  # bytes that a key takes in the index, at most
EMPTY = 2048  # bytes that a fleet without learners takes, at most


class Fleet:
    """A policy with many memories: `choose` and `update` take whole batches, a key per row.

    Keys are whole numbers of 64 bits, str or bytes; 1, "1" and b"1" are different. Arrays or
    lists of whole numbers are looked up by compiled code, names through a dict. Learners never
    see each other: each is, bit for bit, the `Bandit` that had met its rows alone, in the
    batches' order. A key is created by its first `update`; until then `choose` treats it as a
    learner that has seen nothing. `fleet[key]` is a `Bandit` on the same memory.

    | argument | |
    |---|---|
    | `policy` | any policy whose memory does not grow |
    | `dtype` | "float64", or "float32" for half the memory: for DOMD when it forgets fast enough |
    | `memory_budget` | bytes; above it the least recently used learners go to `store` |
    | `store` | file for them (SQLite); a file that is there already is continued |
    | `seed` | for policies that draw, such as Thompson sampling |

    In float32 arithmetic is still double, and memories are rounded so that H >= lambda I and
    ||theta|| <= S always hold. Checked: 10^6 rounds at gamma = 0.999, also of one arm alone; regret
    in the paper's worlds is that of float64. A policy for which rounding could add more than a
    tenth to lambda, such as one that never forgets, is refused.

    Every method checks its input first and leaves the fleet untouched if it raises; an update that
    fails because the disk is full says how many rows of its batch are learnt. One lock guards every
    method, so threads may share a fleet; they take turns, and a batch uses all cores. In float32
    `rounds` stops at 2^24.

    >>> from driftbandit import DOMD, Problem
    >>> fleet = Fleet(DOMD(problem=Problem(dim=2)))
    >>> arms = np.eye(2)
    >>> chosen = fleet.choose(["ann", "bob"], arms)
    >>> fleet.update(["ann", "bob", "ann"], arms[[*chosen, 0]], [1, 0, 1])
    >>> len(fleet), fleet["ann"].rounds
    (2, 2)
    """

    def __init__(
        self,
        policy: Policy,
        *,
        dtype: str = "float64",
        memory_budget: int | None = None,
        store: str | os.PathLike[str] | None = None,
        seed: int = 0,
    ) -> None:
        table = FleetTable(_fresh(policy, dtype))
        self.policy, self.dtype = policy, dtype
        self._stream = NormalStream(seed, policy.noise_size)
        self._lock = forkable_lock()
        self._members = Members(table, self._opened(table, memory_budget, store))

    def _opened(self, table: FleetTable, budget: Any, store: Any) -> Any:
        """The disk, if there is to be one."""
        if budget is None and store is None:
            return None
        if budget is None or not isinstance(store, (str, os.PathLike)):
            raise ValueError(
                "memory_budget and store belong together: how many bytes to hold, and the file "
                f"for learners beyond, got {budget!r} and {store!r}"
            )
        one = table.rows.nbytes + OWN + PLACE
        least = EMPTY + 2 * one
        budget = validate.count("memory_budget", budget, "bytes to hold", least=least)
        table.most = (budget - EMPTY) // one - 1
        from driftbandit.fleet.disk import Disk  # imported lazily: few fleets need SQLite

        def sane(rows: Any) -> bool:  # what costs no factorisation: numbers, and whole rounds
            return Policy.sane(self.policy, self.policy.from_rows(rows))

        recipe = {"policy": self.policy.to_dict(), "dtype": self.dtype}
        return Disk(store, recipe, table.rows[0], sane)

    def choose(self, keys: Any, arms: ArrayLike, *, k: int | None = None) -> Ints:
        """Return the index of the arm to play for each key, (B,), of arms (B, N, d), or (N, d) for
        all. With `k` the k best arms of each, best first, (B, k)."""
        batch = keys_of(keys)
        X = self._arms(len(batch), arms)
        out = np.empty((len(batch), 1 if k is None else _slots(k, X)), dtype=np.int64)
        if not isinstance(self.policy, RowPolicy):  # whose kernels look for themselves
            self._check_arms(batch, X)
        with self._lock:
            before = self._stream.state
            for part in self._members.parts(len(batch)):
                try:
                    which = self._members.find(batch[part])
                    own, noise = X[part] if len(X) > 1 else X, self._noise(len(which))
                    rows = self._members.table.rows
                    out[part] = self.policy.best_rows(rows, which, own, out.shape[1], noise)
                except (ValueError, OSError):
                    self._stream.state = before
                    self._check_arms(batch, X)
                    raise
        return out[:, 0] if k is None else out

    def predict(self, keys: Any, arms: ArrayLike, *, level: float | None = None) -> Prediction:
        """Return the mean reward of each arm for each key with an interval, each (B, N), as
        `Bandit.predict` gives it; a key without a learner predicts like a new one."""
        batch = keys_of(keys)
        X = self._arms(len(batch), arms)
        self._check_arms(batch, X)
        every, found = np.broadcast_to(X, (len(batch), *X.shape[1:])), []
        with self._lock:
            for part in self._members.parts(max(len(batch), 1)):
                rows = self._members.table.rows[self._members.find(batch[part])]
                memory = self.policy.from_rows(rows)
                found.append(predictions(self.policy, memory, every[part], level))
        return Prediction(*(np.concatenate(column) for column in zip(*found)))

    def _check_arms(self, batch: Any, X: Floats) -> None:
        bad = wrong_arms(self.policy.problem, X)
        if len(bad) and len(batch):
            raise blame(self.policy.problem, batch, X, bad)

    @overload
    def update(self, keys: Any, x: ArrayLike, rewards: ArrayLike) -> None: ...
    @overload
    def update(self, keys: Any, x: ArrayLike, rewards: ArrayLike, *, bad: str) -> list[int]: ...
    def update(
        self, keys: Any, x: ArrayLike, rewards: ArrayLike, *, bad: str | None = None
    ) -> list[int] | None:
        """Learn that contexts x (B, d) were played for these keys and gave these rewards (B,),
        now or long ago; a key that comes twice learns in order.

        Wrong rows are named all together, and nothing is learnt. With `bad="skip"` the others are,
        and the places of the wrong ones are returned.
        """
        batch, d, problem = keys_of(keys), self.policy.problem.dim, self.policy.problem
        X = floats_of("x", x, (len(batch), d), "the row that was played for every key")
        r = floats_of("rewards", rewards, (len(batch),), "one for every key")
        if bad not in (None, "skip"):
            raise ValueError(f"bad must be 'skip', or left out, got {validate.show(bad)}")
        wrong = wrong_rows(problem, X, r)
        if len(wrong) and bad is None:
            raise blame(problem, batch, X, wrong, r)
        if len(wrong):
            left = np.delete(np.arange(len(batch)), wrong)
            arrays = isinstance(batch, np.ndarray)
            batch = batch[left] if arrays else [batch[b] for b in left.tolist()]  # type: ignore[assignment]
            X, r = X[left], r[left]
        self._learn(batch, X, r)
        return None if bad is None else wrong.tolist()

    def _learn(self, batch: Keys, X: Floats, r: Floats) -> None:
        done = 0
        with self._lock:
            for part in self._members.parts(len(batch)):
                try:
                    which = self._members.find_or_make(batch[part])
                except OSError as error:
                    raise self._short(error, done) from None
                noise = self._noise(len(which))
                try:
                    rows = self._members.table.rows
                    self.policy.update_rows(rows, which, X[part], r[part], noise)
                except ValueError as error:  # a family of the caller's
                    raise self._short(error, done) from error.__cause__
                done += len(which)

    def forget(self, steps: float, keys: Any = None) -> None:
        """Age the memories of these keys, or of all, by so many rounds without data; a key
        without a learner has nothing to forget."""
        steps = validate.nonnegative("steps", steps, "rounds that passed without data")
        with self._lock:
            batch = keys_of(list(self) if keys is None else keys)
            batch = distinct(batch, np.ones(len(batch), dtype=bool))
            for part in self._members.parts(len(batch)):
                which = self._members.find(batch[part])
                self._age(which[which > 0], steps)

    def _age(self, which: Ints, steps: float) -> None:
        table = self._members.table
        rows = self.policy.rows(self.policy.forget(self.policy.from_rows(table.rows[which]), steps))
        table.rows[which] = rows if self.dtype == "float64" else self.policy.narrow(rows)

    @staticmethod
    def _short(error: Exception, done: int) -> Exception:
        if not done:
            return error
        kind = OSError if isinstance(error, OSError) else ValueError
        return kind(f"{error}. The first {done} rows of the batch are learnt: pass the others")

    def _arms(self, count: int, arms: ArrayLike) -> Floats:
        meaning, shape = (
            "a set of arms for all keys or one for each",
            ("N", self.policy.problem.dim),
        )
        if np.ndim(arms) == 3:
            X = floats_of("arms", arms, (count, *shape), meaning)
        else:
            X = floats_of("arms", arms, shape, meaning)[None]
        if X.shape[1] == 0:
            raise ValueError(f"arms must have at least one row to choose from, got {X.shape}")
        return X

    def _noise(self, count: int) -> Floats | None:
        size = self.policy.noise_size
        return self._stream.many(count) if size else None

    def _place(self, key: Key) -> int:
        """The row of one learner."""
        place = int(self._members.find(keys_of([key]))[0])
        if not place:
            raise KeyError(key)
        return place

    def _write(self, key: Key, rows: Floats) -> None:
        place, table = self._place(key), self._members.table
        table.rows[place] = rows[0] if self.dtype == "float64" else self.policy.narrow(rows)[0]

    def __getitem__(self, key: Key) -> FleetLearner:
        key = key_of(key)
        if key not in self:
            raise KeyError(key)
        return FleetLearner(self, key)

    def __contains__(self, key: Any) -> bool:
        try:
            clean = key_of(key)
        except ValueError:  # not even a key
            return False
        with self._lock:
            return self._members.has(clean)

    def __delitem__(self, key: Key) -> None:
        with self._lock:
            self._members.remove(key_of(key))

    def __len__(self) -> int:
        with self._lock:
            return len(self._members)

    def __iter__(self) -> Iterator[Key]:
        """The keys as they are now, in no particular order."""
        with self._lock:
            return iter([key for keys, _ in self.pages() for key in keys])

    def pages(self) -> Iterator[tuple[list[Key], Any]]:
        """Give keys and rows of all learners, many at a time: those in memory, then those of the
        store, which stay there. The fleet must not be trained meanwhile."""
        yield from self._members.pages()

    @property
    def bytes_per_learner(self) -> int:
        """What one learner remembers."""
        return int(self._members.table.rows[0].nbytes)

    @property
    def memory_bytes(self) -> int:
        """Bytes of all arrays: memories, room to grow into, and the index of whole numbers. A name
        takes some hundred bytes more, as an object of Python."""
        with self._lock:
            return self._members.table.nbytes + self._members.directory.nbytes

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all learners, also those in the store, to one npz file (no pickle), atomically."""
        with self._lock:
            archive.save(self, path)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        memory_budget: int | None = None,
        store: str | os.PathLike[str] | None = None,
    ) -> Fleet:
        """Read what `save` wrote; the fleet resumes bit for bit. A store must be new or empty."""
        return archive.load(cls, path, memory_budget=memory_budget, store=store)

    def close(self) -> None:
        """Move every learner to the store, if there is one, and close it: opening the store again
        goes on from here. The fleet cannot be used afterwards."""
        with self._lock:
            self._members.close()

    def __repr__(self) -> str:
        single = "" if self.dtype == "float64" else f", dtype={self.dtype!r}"
        return f"Fleet({self.policy!r}{single}, learners={len(self)})"


def _slots(k: Any, X: Floats) -> int:
    k = validate.count("k", k, "arms to choose")
    if k > X.shape[1]:
        raise ValueError(f"k must be at most the number of arms, {X.shape[1]}, got {k}")
    return k


def _fresh(policy: Any, dtype: Any) -> Any:
    """The memory of one learner that has seen nothing, if a fleet can hold such memories."""
    if not isinstance(policy, Policy):
        raise ValueError(
            f"policy must be a policy such as DOMD(problem=...), got {validate.show(policy)}"
        )
    if policy.growing:
        raise ValueError(
            f"the memory of {policy.name} grows with time, a fleet's rows do not: use a policy of "
            "constant memory such as DOMD, or a Bandit per key"
        )
    if dtype not in ("float64", "float32"):
        raise ValueError(f"dtype must be 'float64' or 'float32', got {validate.show(dtype)}")
    rows = policy.rows(policy.init(1))
    return (rows if dtype == "float64" else policy.narrow(rows))[0]
