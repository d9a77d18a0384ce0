"""The learner of a loop: a row of numbers that is a function of the log."""

from __future__ import annotations

import hashlib
import math
import platform
import threading
import time
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from driftbandit import files
from driftbandit.bandit import Bandit
from driftbandit.loop import time_discount
from driftbandit.loop.config import Declaration
from driftbandit.loop.deciding.types import View
from driftbandit.loop.errors import LedgerError
from driftbandit.loop.learning.key_cache import StoredRows
from driftbandit.loop.state.definition import Version
from driftbandit.loop.state.reward_windows import Example
from driftbandit.loop.storage.events import Event
from driftbandit.loop.storage.key_rows import RowBatch
from driftbandit.policies.base import Floats
from driftbandit.policies.growth import grown_rows
from driftbandit.policies.rows import RowPolicy
from driftbandit.recipe import Recipe

CHANGED, IN_TABLE = "changed", "in table"  # what is packed of rows of keys
FRESH = 1.0  # seconds for which an aged view serves


class Packing:
    """How rows of keys are packed, if not whole: those that the ledger's table does not have are
    packed (`CHANGED`, for a snapshot), or handed over as `batches` (`IN_TABLE`, a checkpoint)."""

    def __init__(self, rows: str) -> None:
        self.rows, self.batches = rows, list[RowBatch]()


class Learner:
    """One row, trained example by example. Hold `lock` while a view is used, and for `learn`."""

    def __init__(self, declaration: Declaration, version: Version) -> None:
        self.reward = declaration.reward
        self.lock = threading.RLock()
        self.seq, self.examples, self.last = 0, 0, -math.inf  # last: `at` of what was trained last
        self._put(version, self._fresh(declaration, version))

    def policy_of(self, version: Version) -> RowPolicy:
        """Return the policy of `row` under a version."""
        return version.policy

    def _fresh(self, declaration: Declaration, version: Version) -> Floats:
        """Return the row before its first example: nothing, or the prior."""
        policy = self.policy_of(version)
        if declaration.prior is None:
            return policy.fresh.copy()
        return declaration.prior.row(policy, version.features, declaration.reward)

    def _put(self, version: Version, row: Floats) -> None:
        self.version, self.row, self.timed = version, row, version.timed
        self.policy, self.policy_name = self.policy_of(version), version.policy.name
        self.bandit = Bandit.from_row(self.policy, row)
        self.theta = self.bandit.theta
        self._aged: tuple[float, float, View] | None = None
        self._ahead: Floats | None = None  # a copy of the row, which `train` writes to

    def learn(self, example: Example, x: Floats | None) -> None:
        """Learn one example; x is the row of the chosen arm, None if no arm was chosen."""
        if x is not None:
            r, steps = self.reward.inside(example.value)[0], self._steps(example.at, self.last)
            self.bandit.update(self._whole(x), r, steps=steps)
            self.last, self._ahead = example.at, None
        self._has_learnt(example)

    def _has_learnt(self, example: Example) -> None:
        self.seq, self.examples = example.event, self.examples + 1

    def train(self, examples: Sequence[Example], rows: Sequence[Floats | None]) -> None:
        """Learn examples in order. Decisions go on meanwhile: the kernel runs without the GIL and
        writes to a copy of the row, and the lock is held only while that becomes the row."""
        played = [(each, self._whole(x)) for each, x in zip(examples, rows) if x is not None]
        problem, X = self.policy.problem, np.array([x for _, x in played])
        if problem.items is not None or not played or problem.first_bad(X) >= 0:
            with self.lock:  # items take their slots one by one; a bad row is an error
                for each in zip(examples, rows):
                    self.learn(*each)
            return
        row = self._ahead = self.row.copy() if self._ahead is None else self._ahead
        r = np.array([self.reward.inside(each.value)[0] for each, _ in played])
        begins = [self.last, *(each.at for each, _ in played)]
        steps = np.array([self._steps(each.at, last) for (each, _), last in zip(played, begins)])
        which = np.zeros(len(X), dtype=np.int64)
        self.policy.engine.learn_rows(self.policy.recipe, row[None], which, X, r, steps)
        with self.lock:
            self.row.data[:] = row.data  # keeps the GIL: no thread sees half of it
            self.last = begins[-1]
            self.seq, self.examples = examples[-1].event, self.examples + len(examples)

    def _steps(self, at: float, last: float) -> float:
        """Steps by which a memory ages that was trained at `last`."""
        return time_discount.steps(elapsed(at, last)) if self.timed else 1.0

    def _whole(self, x: Floats) -> Floats:
        """Return a row as long as the features are now: sums over more numbers are rounded
        otherwise, so all computations with a row need one length."""
        return self.version.features.pad(x) if x.size < self.version.policy.problem.dim else x

    def grow(self, event: Event) -> None:
        """More coordinates, which nothing is known of."""
        features = Recipe.from_dict(event.read().features)
        larger = self.version.grown(features, self.reward)
        with self.lock:
            self._grow(larger)
            self.count(event)

    def become(self, other: Learner, event: Event) -> None:
        """All that another one has learnt, and its version; `event` promoted it."""
        about, state = other.state()
        about |= {"seq": self.seq, "examples": self.examples}
        self.load(about, state, other.version.promoted(event.seq))

    def count(self, event: Event) -> None:
        """A change that is no example counts like one: what was decided before it was decided by
        another learner."""
        self.seq, self.examples = event.seq, self.examples + 1

    def _grow(self, larger: Version) -> None:
        row = grown_rows(self.policy, self.policy_of(larger), self.row[None])[0]
        self._put(larger, np.ascontiguousarray(row))

    def view(self, at: float, key: str | None) -> View:
        """The learner as it is at this time for this key, which only matters where each has its
        own; in time it ages, and an aged view serves for a second."""
        if not self.timed:
            return View(self.bandit, self.policy_name, self.seq, self.examples, 0.0)
        if self._aged:
            made, then, view = self._aged
            if 0.0 <= at - then < FRESH and time.monotonic() - made < FRESH:
                return view
        view = self.exact(at, key)
        self._aged = time.monotonic(), at, view
        return view

    def exact(self, at: float, key: str | None) -> View:
        """The same with all examples so far, which a view that serves for a second may not have."""
        return self.seen(self.aged(at, key), key)

    def aged(self, at: float, key: str | None) -> float:
        """Seconds by which the memory for a key ages until then."""
        return elapsed(at, self.last) if self.timed else 0.0

    def seen(self, aged: float, key: str | None) -> View:
        """The learner for a key, or a copy that has aged by so many seconds."""
        bandit = self._older(self.row, aged) if self.timed else self.bandit
        return View(bandit, self.policy_name, self.seq, self.examples, aged)

    def _older(self, row: Floats, seconds: float) -> Bandit:
        bandit = Bandit.from_row(self.policy, row.copy())
        if seconds > 0.0:
            bandit.forget(time_discount.steps(seconds))
        return bandit

    def drop(self, key: str) -> None:
        """What was learnt of one key alone goes; here nothing is."""

    @property
    def home(self) -> int | None:
        """Its name in the ledger's table of keys; here there are no keys."""
        return None

    def move(self, home: int) -> None:
        """Have this name in the table of keys, before the first checkpoint."""

    def state(self, packing: Packing | None = None) -> tuple[dict[str, Any], bytes]:
        """A checkpoint: what it is, and its numbers."""
        with self.lock:
            state = self.row.astype("<f8").tobytes()
            about = {
                "seq": self.seq,
                "examples": self.examples,
                "last": self.last if self.last > -math.inf else None,
                "version": self.version.name,
                "format": files.VERSION,
                "digest": digest(state),
                "fingerprint": fingerprint(),
            }
        return about, state

    def load(
        self,
        about: dict[str, Any],
        state: bytes,
        version: Version,
        stored: StoredRows | None = None,
    ) -> None:
        """Go on from a checkpoint; `stored` is where rows of keys are read that it has not."""
        whole = (
            digest(state) == about["digest"] and len(state) == 8 * self.policy_of(version).row_size
        )
        if not whole or about["format"] != files.VERSION:
            raise LedgerError("the checkpoint is damaged, or of another version of driftbandit")
        row = np.frombuffer(state, dtype="<f8").astype(np.float64)
        with self.lock:
            self._put(version, row)
            self.seq, self.examples = about["seq"], about["examples"]
            self.last = -math.inf if about["last"] is None else about["last"]

    @property
    def digest(self) -> str:
        """A fingerprint of all it has learnt: equal only if every bit is."""
        with self.lock:
            return digest(self.row.astype("<f8").tobytes())


def elapsed(at: float, last: float) -> float:
    """Seconds since something was trained; 0 if nothing was."""
    return max(0.0, at - last) if last > -math.inf else 0.0


def digest(state: bytes) -> str:
    return hashlib.blake2b(state, digest_size=16).hexdigest()


@cache
def fingerprint() -> str:
    """Name the place where the same log gives the same bits; elsewhere learners agree to 1e-9."""
    import llvmlite.binding
    import numba

    from driftbandit import __version__

    cpu = f"{platform.machine()} {llvmlite.binding.get_host_cpu_name()}"
    return f"driftbandit {__version__}, numpy {np.__version__}, numba {numba.__version__}, {cpu}"
