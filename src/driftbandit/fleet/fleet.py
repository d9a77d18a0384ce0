"""One learner per key: user, segment, market."""

from __future__ import annotations

import os
from collections.abc import Iterator
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from driftbandit import validate
from driftbandit.bandit import SLACK, Bandit
from driftbandit.fleet import archive
from driftbandit.fleet.batch import Key, Keys, first_bad, floats_of, key_of, keys_of
from driftbandit.fleet.index import Index, distinct
from driftbandit.fleet.learner import Learner
from driftbandit.fleet.rows import OWN, Rows
from driftbandit.policies import Policy
from driftbandit.policies.policy import Floats, Ints

PLACE = 64  # bytes that a key takes in the index, at most
LEAST = 2048  # what an empty fleet takes


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

    Every method checks its input first and leaves the fleet untouched if it raises. One lock
    guards every method, so threads may share a fleet; they take turns, and a batch uses all cores.

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
        self.policy, self.dtype = policy, dtype
        fresh = _fresh(policy, dtype)
        self._rng = np.random.default_rng(validate.count("seed", seed, "for its own luck", least=0))
        self._limit = policy.problem.context_norm * SLACK
        self._lock, self._index, self._tick = RLock(), Index(), 1
        self._rows = Rows(fresh, 2**62)
        self._store: Any = None
        if memory_budget is not None or store is not None:
            self._limit_memory(memory_budget, store)

    def _limit_memory(self, budget: Any, store: Any) -> None:
        if budget is None or not isinstance(store, (str, os.PathLike)):
            raise ValueError(
                "memory_budget and store belong together: how many bytes to hold, and the file "
                f"for learners beyond, got {budget!r} and {store!r}"
            )
        one = self.bytes_per_learner + OWN + PLACE
        least = LEAST + 2 * one
        budget = validate.count("memory_budget", budget, "bytes to hold", least=least)
        self._rows.most = (budget - LEAST) // one - 1
        from driftbandit.fleet.store import Store  # SQLite only where it is wanted

        recipe = {"policy": self.policy.to_dict(), "dtype": self.dtype}
        self._store = Store(store, recipe, self._rows.record)

    def choose(self, keys: Any, arms: ArrayLike) -> Ints:
        """Index of the arm to play for every key, (B,), of arms (B, N, d), or (N, d) for all."""
        batch = keys_of(keys)
        X = self._arms(len(batch), arms)
        out = np.empty(len(batch), dtype=np.int64)
        with self._lock:
            for part in self._parts(len(batch)):
                rows, _ = self._find(batch[part])
                own = X[part] if len(X) > 1 else X
                out[part] = self.policy.choose_rows(
                    self._rows.memory, rows, own, self._limit, self._noise(len(rows))
                )
        if len(out) and out.min() < 0:
            bad = int(np.argmin(out))
            self._complain(batch[bad], lambda bandit: bandit.choose(X[bad if len(X) > 1 else 0]))
        return out

    def update(self, keys: Any, x: ArrayLike, rewards: ArrayLike) -> None:
        """Learn that contexts x (B, d) were played for these keys and gave these rewards (B,),
        now or long ago; a key that comes twice learns in order."""
        batch, d = keys_of(keys), self.policy.problem.dim
        X = floats_of("x", x, (len(batch), d), "the row that was played for every key")
        r = floats_of("rewards", rewards, (len(batch),), "one for every key")
        bad = first_bad(self.policy.problem.family.link, self._limit, X, r)
        if bad >= 0:
            self._complain(batch[bad], lambda bandit: bandit.update(X[bad], r[bad]))
        with self._lock:
            for part in self._parts(len(batch)):
                rows = self._found_or_made(batch[part])
                noise = self._noise(len(rows))
                self.policy.update_rows(self._rows.memory, rows, X[part], r[part], noise)

    def _arms(self, count: int, arms: ArrayLike) -> Floats:
        meaning, shape = "a set of arms for all keys or one for each", ("N", self.policy.problem.dim)
        if np.ndim(arms) == 3:
            X = floats_of("arms", arms, (count, *shape), meaning)
        else:
            X = floats_of("arms", arms, shape, meaning)[None]
        if X.shape[1] == 0:
            raise ValueError(f"arms must have at least one row to choose from, got {X.shape}")
        return X

    def _complain(self, key: Any, call: Any) -> None:
        """Let a lone bandit say what is wrong with a row."""
        try:
            call(Bandit(self.policy))
        except ValueError as error:
            key = key.item() if isinstance(key, np.integer) else key
            raise ValueError(f"key {validate.show(key)}: {error}") from None

    def _noise(self, count: int) -> Floats | None:
        size = self.policy.noise_size
        return self._rng.standard_normal((count, size)) if size else None

    def _parts(self, count: int) -> Iterator[slice]:
        """A batch in pieces whose learners fit into memory together."""
        size = min(self._rows.most, max(count, 1))
        return (slice(start, start + size) for start in range(0, count, size))

    def _find(self, keys: Keys) -> tuple[Ints, int]:
        """Row of every key, 0 where there is no learner; brings back what the store has."""
        rows, unknown = self._index.find(keys)
        if self._store is None:
            return rows, unknown
        self._tick += 1
        self._rows.used[rows] = self._tick
        if unknown and self._store.count:
            wanted = distinct(keys, np.flatnonzero(rows == 0))
            names = wanted.tolist() if isinstance(wanted, np.ndarray) else wanted
            places, records = self._store.read(names)
            back = self._make(keys_of([names[place] for place in places]))
            self._rows.fill(back, records)
            self._rows.copied[back] = True
            rows, unknown = self._index.find(keys)
        return rows, unknown

    def _found_or_made(self, keys: Keys) -> Ints:
        rows, unknown = self._find(keys)
        if unknown:
            self._make(distinct(keys, np.flatnonzero(rows == 0)))
            rows, _ = self._index.find(keys)
        return rows

    def _make(self, keys: Keys) -> Ints:
        """Rows for distinct new keys, after making room for them."""
        short = len(self._index) + len(keys) - self._rows.most
        if short > 0:
            self._evict(max(short, self._rows.most // 8))
        rows = self._rows.take(len(keys))
        self._rows.used[rows] = self._tick
        self._index.add(keys, rows)
        return rows

    def _evict(self, count: int) -> None:
        """Move the least recently used learners to the store, on disk before they go here."""
        keys, live = self._index.items()
        places = self._rows.oldest(live, count, self._tick)
        gone, rows = [keys[place] for place in places.tolist()], live[places]
        self._store.write(gone, self._rows.records(rows), int(self._rows.copied[rows].sum()))
        self._index.remove(gone)
        self._rows.release(rows)

    def _read(self, key: Key) -> Any:
        """A copy of the memory of one learner."""
        with self._lock:
            rows, unknown = self._find(keys_of([key]))
            if unknown:
                raise KeyError(key)
            return self._rows.part(rows)

    def _write(self, key: Key, memory: Any) -> None:
        with self._lock:
            self.policy.put(self._rows.memory, self._found_or_made(keys_of([key])), memory)

    def __getitem__(self, key: Key) -> Learner:
        key = key_of(key)
        self._read(key)
        return Learner(self, key)

    def __contains__(self, key: Any) -> bool:
        try:
            self._read(key_of(key))
        except (KeyError, ValueError):
            return False
        return True

    def __delitem__(self, key: Key) -> None:
        key = key_of(key)
        with self._lock:
            rows, unknown = self._index.find(keys_of([key]))
            stored = self._store is not None and self._store.delete(key)
            if not unknown:
                self._index.remove([key])
                self._rows.release(rows)
            elif not stored:
                raise KeyError(key)

    def __len__(self) -> int:
        with self._lock:
            if self._store is None:
                return len(self._index)
            _, live = self._index.items()
            return len(live) + self._store.count - int(self._rows.copied[live].sum())

    def __iter__(self) -> Iterator[Key]:
        """The keys as they are now, in no particular order."""
        with self._lock:
            return iter([key for keys, _ in archive.pages(self) for key in keys])

    @property
    def bytes_per_learner(self) -> int:
        """What one learner remembers."""
        return int(self._rows.record.itemsize)

    @property
    def memory_bytes(self) -> int:
        """Bytes of all arrays: memories, room to grow into, and the index of whole numbers. A name
        takes some hundred bytes more, as an object of Python."""
        with self._lock:
            return self._rows.nbytes + self._index.nbytes

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all learners, those in the store too, to one npz file without pickle, atomically."""
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
        """The fleet that `save` wrote; it goes on bit for bit. A store must be new or empty."""
        return archive.load(cls, path, memory_budget=memory_budget, store=store)

    def close(self) -> None:
        """Move every learner to the store, if there is one, and close it: opening the store again
        goes on from here. The fleet cannot be used afterwards."""
        with self._lock:
            if self._store is not None:
                self._tick += 1
                self._evict(len(self._index))
                self._store.close()

    def __repr__(self) -> str:
        single = "" if self.dtype == "float64" else f", dtype={self.dtype!r}"
        return f"Fleet({self.policy!r}{single}, learners={len(self)})"


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
    return policy.init(1) if dtype == "float64" else policy.narrow(policy.init(1))
