"""A learner for each key beside the population's, and still a function of the log.

All examples train the population, and those of a key also its own learner, which is created at
the first of them. A decision for a key is made with both (`key_rules`): how much the population
says follows from how much keys have differed so far (`key_spread`), or is as many rewards as the
declaration says. `key_cache` holds the learners that are in use; the others are rows of the
ledger's table.
"""

from __future__ import annotations

import hashlib
import math
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np

from driftbandit.bandit import Bandit
from driftbandit.loop import time_discount
from driftbandit.loop.config import Declaration
from driftbandit.loop.deciding.types import View
from driftbandit.loop.errors import LedgerError
from driftbandit.loop.learning.key_cache import UNKNOWN, KeyCache, KeyLearner, StoredRows
from driftbandit.loop.learning.key_rules import Population, rule_of
from driftbandit.loop.learning.key_spread import KeySpread
from driftbandit.loop.learning.learner import IN_TABLE, Learner, Packing, digest, elapsed
from driftbandit.loop.state.definition import Version
from driftbandit.loop.state.reward_windows import Example
from driftbandit.loop.storage.events import Event
from driftbandit.loop.storage.key_rows import SUM
from driftbandit.policies.base import Floats
from driftbandit.policies.domd import DOMD
from driftbandit.policies.rows import RowPolicy


def learner_for(declaration: Declaration, version: Version, home: int = 0) -> Learner:
    """The learner of a loop that has learnt nothing. `home` is its name in the table of keys."""
    if declaration.key is None:
        return Learner(declaration, version)
    return Keyed(declaration, version, home)


class Keyed(Learner):
    """The population in `row`, and a row for each key that was trained."""

    def __init__(self, declaration: Declaration, version: Version, home: int = 0) -> None:
        self._keys = KeyCache(home, version)
        self.rule = rule_of(declaration.population)
        dim = version.policy.problem.dim
        self.spread = KeySpread(dim) if self.rule.learns_spread else None
        super().__init__(declaration, version)

    def policy_of(self, version: Version) -> RowPolicy:
        return self.rule.population_policy(version, self.reward)

    @property
    def own_policy(self) -> DOMD:
        """That of a key."""
        policy = self.version.policy
        assert isinstance(policy, DOMD)
        return policy

    def train(self, examples: Sequence[Example], rows: Sequence[Floats | None]) -> None:
        with self.lock:
            for each in zip(examples, rows):
                self.learn(*each)

    def learn(self, example: Example, x: Floats | None) -> None:
        x = None if x is None else self._whole(x)
        if x is not None and example.key is not None:
            self._train_own(example.key, example, x)
            if self.spread is not None:
                self._compare(self.spread, example.key, example, x)
        super().learn(example, x)

    def _compare(self, spread: KeySpread, key: str, example: Example, x: Floats) -> None:
        """Note by how much the population was wrong about a key."""
        family = self.own_policy.problem.family
        z = float(x @ self.theta)
        error = self.reward.inside(example.value)[0] - float(family.mu(z))
        spread.take(key, x, error, float(family.dmu(z)), self.examples)

    def _train_own(self, key: str, example: Example, x: Floats) -> None:
        own = self._keys.get(key)
        if own is None:
            own = self._begun(key)
            self._keys.put(key, own)
        r, steps = self.reward.inside(example.value)[0], self._steps(example.at, own.last)
        self.rule.learn(own.bandit, own.row, x, r, steps)
        own.last = example.at
        self._keys.change(key)

    def _begun(self, key: str) -> KeyLearner:
        return KeyLearner(self.own_policy, self.newborn(), self.last)

    def newborn(self) -> Floats:
        """Return the row with which a key begins now."""
        return self.rule.newborn(self.own_policy, self._population())

    def _population(self, steps: float = 0.0) -> Population:
        variance = self.spread.variance if self.spread else None
        return Population(self.policy, self.row, variance, steps)

    @property
    def bandits(self) -> dict[str, Bandit]:
        """What decides for each key, all of them: those on the disk are read."""
        with self.lock:
            return {key: self._decider(own, 0.0) for key, own in self._keys.learners()}

    def read_all(self) -> None:
        """Bring all learners to memory, before the ledger is closed."""
        with self.lock:
            self._keys.read_all()

    def view(self, at: float, key: str | None) -> View:
        return self.exact(at, key)

    def aged(self, at: float, key: str | None) -> float:
        own = self._keys.get(str(key))
        return super().aged(at, key) if own is None or not self.timed else elapsed(at, own.last)

    def seen(self, aged: float, key: str | None) -> View:
        return self._view(self._decider(self._keys.get(str(key)), aged), aged)

    def _decider(self, own: KeyLearner | None, aged: float) -> Bandit:
        """Return what decides for a key whose memory ages by so many seconds before."""
        row, since = (None, aged) if own is None else (own.row, own.last + aged - self.last)
        population = self._population(time_discount.steps(since) if aged > 0.0 else 0.0)
        found = self.rule.decider(self.own_policy, row, time_discount.steps(aged), population)
        return Bandit.from_row(self.own_policy, found)

    def _view(self, bandit: Bandit, aged: float) -> View:
        return View(bandit, self.policy_name, self.seq, self.examples, aged)

    def drop(self, key: str) -> None:
        with self.lock:
            self._keys.drop(key)
            if self.spread is not None:
                self.spread.drop(key)

    @property
    def home(self) -> int | None:
        return self._keys.home

    def move(self, home: int) -> None:
        self._keys.home = home

    def _grow(self, larger: Version) -> None:
        super()._grow(larger)
        if self.spread is not None:
            self.spread.grow(self.policy.problem.dim)
        self._keys.grow(larger)

    def become(self, other: Learner, event: Event) -> None:
        """The rows of the other one's keys stay where they are; it gets those of this one."""
        assert isinstance(other, Keyed)
        with self.lock:
            about, state = Learner.state(other)
            about |= {"seq": self.seq, "examples": self.examples}
            super().load(about, state, other.version.promoted(event.seq))
            if self.spread is not None and other.spread is not None:
                self.spread = KeySpread.from_bytes(other.spread.to_bytes())
            self._keys, other._keys = other._keys, self._keys
            self._keys.promote(self.version)

    def state(self, packing: Packing | None = None) -> tuple[dict[str, Any], bytes]:
        with self.lock:
            about, state = super().state()
            if packing is not None and packing.rows == IN_TABLE:
                batch = self._keys.batch()
                packing.batches.append(batch)
                return self._beside(about, state, None, batch.sum, [])
            since = self._keys.since_stored() if packing is not None else None
            if since is not None:
                at, total, keys = since
                return self._beside(about, state, at, total, keys)
            learners = [*self._keys.learners()]
            about |= {"spread": self.spread.to_text()} if self.spread is not None else {}
            return _with_keys(about, state, learners)

    def _beside(
        self, about: dict[str, Any], state: bytes, at: int | None, total: bytes, keys: list[str]
    ) -> tuple[dict[str, Any], bytes]:
        """A checkpoint whose rows are in the table at an event, but for those of some keys."""
        rows = {"learner": self._keys.home, "at": at, "sum": digest(total)}
        spread = self.spread.to_bytes() if self.spread is not None else b""
        learners = [(key, own) for key in keys if (own := self._keys.get(key)) is not None]
        about |= {"rows": rows, "beside": len(spread)}
        return _with_keys(about, state + spread + total, learners)

    def load(
        self,
        about: dict[str, Any],
        state: bytes,
        version: Version,
        stored: StoredRows | None = None,
    ) -> None:
        with self.lock:
            size, rows = 8 * self.policy_of(version).row_size, about.get("rows")
            own_size = 8 * version.policy.row_size
            super().load(about, state[:size], version)
            end = size if rows is None else size + about["beside"] + SUM
            beside, more = state[size:end], state[end:]
            if digest(more) != about["own"] or len(more) != own_size * len(about["keys"]):
                raise LedgerError("the checkpoint is damaged: its learners are not whole")
            own = self._restored(about, more)
            if rows is None:
                self._keys.promote(version)
                self._keys.restore(own)
                if self.spread is not None:
                    self.spread = KeySpread.from_text(about["spread"])
                return
            spread, total = beside[:-SUM], beside[-SUM:]
            if stored is None or digest(total) != rows["sum"]:
                raise LedgerError("the checkpoint is damaged: its learners are not whole")
            if rows["at"] is not None:
                stored = stored._replace(at=rows["at"])
            for each in own.values():
                each.stored = UNKNOWN
            self._keys.resume(rows["learner"], stored, total, version, own)
            if self.spread is not None:
                self.spread = KeySpread.from_bytes(spread)

    def _restored(self, about: dict[str, Any], more: bytes) -> OrderedDict[str, KeyLearner]:
        keys, policy = about["keys"], self.own_policy
        rows = np.frombuffer(more, dtype="<f8").astype(np.float64)
        lasts = (-math.inf if last is None else last for last in about["lasts"])
        each = zip(keys, rows.reshape(len(keys), policy.row_size), lasts)
        return OrderedDict((key, KeyLearner(policy, row.copy(), last)) for key, row, last in each)

    @property
    def digest(self) -> str:
        with self.lock:
            whole = hashlib.blake2b(digest_size=16)
            between = b"["
            for key in self._keys.all_keys():
                whole.update(between + repr(key).encode())
                between = b", "
            whole.update(b"[]" if between == b"[" else b"]")
            for _, own in self._keys.learners():
                whole.update(own.row.astype("<f8").tobytes())
            whole.update(super().digest.encode())
            if self.spread is not None:
                whole.update(self.spread.to_text().encode())
            return whole.hexdigest()


def _with_keys(
    about: dict[str, Any], state: bytes, learners: list[tuple[str, KeyLearner]]
) -> tuple[dict[str, Any], bytes]:
    more = b"".join(own.row.astype("<f8").tobytes() for _, own in learners)
    lasts = [None if own.last == -math.inf else own.last for _, own in learners]
    keys = [key for key, _ in learners]
    about = about | {"keys": keys, "lasts": lasts, "own": digest(more), "head": len(state)}
    return about, state + more
