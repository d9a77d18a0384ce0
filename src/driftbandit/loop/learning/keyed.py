"""A learner for each key, born from the population's and still a function of the log.

All examples train the population. A key's own learner is born at its first example: it begins with
the population's estimate of that moment, and departs from it as evidence comes. How much it trusts
that estimate follows from how much keys have differed so far (`key_spread`), or is as many rewards
of its own as the declaration says.
"""

from __future__ import annotations

import hashlib
import math
from typing import Any

import numpy as np

from driftbandit.bandit import Bandit
from driftbandit.loop.config import AUTO, Declaration
from driftbandit.loop.deciding.types import View
from driftbandit.loop.errors import LedgerError
from driftbandit.loop.learning.key_spread import KeySpread
from driftbandit.loop.learning.learner import Learner, digest, elapsed
from driftbandit.loop.state.definition import Version
from driftbandit.loop.state.reward_windows import Example
from driftbandit.policies.base import Floats
from driftbandit.policies.domd import DOMD
from driftbandit.policies.growth import grown_rows

TRUST = 30.0  # rewards of which `basis` tells at most
WIDE = 6.0  # variance of a newcomer's prior over that between keys: who is wrong must find out


def learner_for(declaration: Declaration, version: Version) -> Learner:
    """The learner of a loop that has learnt nothing."""
    return (Learner if declaration.key is None else Keyed)(declaration, version)


class KeyLearner:
    """The learner of one key."""

    def __init__(self, policy: DOMD, row: Floats, last: float) -> None:
        self.row, self.last, self.bandit = row, last, Bandit.from_row(policy, row)


class Keyed(Learner):
    """The population in `row`, and a row for each key that was trained."""

    def __init__(self, declaration: Declaration, version: Version) -> None:
        self._own: dict[str, KeyLearner] = {}
        self.weight = declaration.population
        self.spread = KeySpread(version.policy.problem.dim) if self.weight == AUTO else None
        super().__init__(declaration, version)

    @property
    def policy(self) -> DOMD:
        policy = self.version.policy
        assert isinstance(policy, DOMD)
        return policy

    def train(self, example: Example, x: Floats | None) -> None:
        with self.lock:
            x = None if x is None else self._whole(x)
            if x is not None and example.key is not None:
                self._train_own(example.key, example, x)
                if self.spread is not None:
                    self._compare(self.spread, example.key, example, x)
            super().train(example, x)

    def _compare(self, spread: KeySpread, key: str, example: Example, x: Floats) -> None:
        """Note by how much the population was wrong about a key."""
        family = self.policy.problem.family
        z = float(x @ self.theta)
        error = self.reward.inside(example.value)[0] - float(family.mu(z))
        spread.take(key, x, error, float(family.dmu(z)), self.examples)

    def _train_own(self, key: str, example: Example, x: Floats) -> None:
        own = self._own.get(key)
        if own is None:
            own = self._own[key] = self._begun(key)
        self._learn(own.bandit, x, example, own.last)
        own.last = example.at

    def _begun(self, key: str) -> KeyLearner:
        return KeyLearner(self.policy, self.newborn(), self.last)

    def newborn(self) -> Floats:
        """Return the row with which a key begins now."""
        if self.spread is None:
            return born(self.policy, self.row, float(self.weight))
        return born_near(self.policy, self.row, WIDE * self.spread.variance)

    @property
    def bandits(self) -> dict[str, Bandit]:
        """Learners by key."""
        with self.lock:
            return {key: own.bandit for key, own in self._own.items()}

    def view(self, at: float, key: str | None) -> View:
        return self.exact(at, key)

    def aged(self, at: float, key: str | None) -> float:
        own = self._own.get(str(key))
        return super().aged(at, key) if own is None or not self.timed else elapsed(at, own.last)

    def seen(self, aged: float, key: str | None) -> View:
        own = self._own.get(str(key))
        if own is not None and not self.timed:
            return self._view(own.bandit, 0.0)
        row = self.newborn() if own is None else own.row
        return self._view(self._older(row, aged), aged)

    def _view(self, bandit: Bandit, aged: float) -> View:
        return View(bandit, self.policy_name, self.seq, self.examples, aged, bandit.theta)

    def drop(self, key: str) -> None:
        with self.lock:
            self._own.pop(key, None)
            if self.spread is not None:
                self.spread.drop(key)

    def _grow(self, larger: Version) -> None:
        before, (keys, rows) = self.policy, self._rows()
        super()._grow(larger)
        if self.spread is not None:
            self.spread.grow(self.policy.problem.dim)
        if keys:
            self._restore(keys, grown_rows(before, self.policy, rows), self._lasts())

    def _rows(self) -> tuple[list[str], Floats]:
        keys = sorted(self._own)
        return keys, np.array([self._own[key].row for key in keys])

    def _lasts(self) -> list[float]:
        return [self._own[key].last for key in sorted(self._own)]

    def _restore(self, keys: list[str], rows: Floats, lasts: list[float]) -> None:
        own = (KeyLearner(self.policy, row.copy(), last) for row, last in zip(rows, lasts))
        self._own = dict(zip(keys, own))

    def state(self) -> tuple[dict[str, Any], bytes]:
        with self.lock:
            about, state = super().state()
            keys, rows = self._rows()
            more = rows.astype("<f8").tobytes()
            lasts = [None if last == -math.inf else last for last in self._lasts()]
            about |= {"keys": keys, "lasts": lasts, "own": digest(more)}
            if self.spread is not None:
                about["spread"] = self.spread.to_text()
            return about, state + more

    def load(self, about: dict[str, Any], state: bytes, version: Version) -> None:
        with self.lock:
            size = 8 * version.policy.row_size
            super().load(about, state[:size], version)
            keys, more = about["keys"], state[size:]
            if digest(more) != about["own"] or len(more) != size * len(keys):
                raise LedgerError("the checkpoint is damaged: its learners are not whole")
            rows = np.frombuffer(more, dtype="<f8").astype(np.float64)
            lasts = [-math.inf if last is None else last for last in about["lasts"]]
            self._restore(keys, rows.reshape(len(keys), version.policy.row_size), lasts)
            if self.spread is not None:
                self.spread = KeySpread.from_text(about["spread"])

    @property
    def digest(self) -> str:
        with self.lock:
            keys, rows = self._rows()
            whole = repr(keys).encode() + rows.astype("<f8").tobytes() + super().digest.encode()
            if self.spread is not None:
                whole += self.spread.to_text().encode()
            return hashlib.blake2b(whole, digest_size=16).hexdigest()


def born(policy: DOMD, population: Floats, weight: float) -> Floats:
    """The row of a key that begins like the population: its theta, and its curvature above lambda
    times s, so that it weighs no more than `weight` rewards."""
    old, new, rounds = _beginning(policy, population)
    s, lam = min(1.0, weight / rounds), float(new.floor[0])
    new.basis[:] = np.maximum(new.basis, s * old.basis)
    new.H[:] += s * (old.H - lam * np.eye(policy.problem.dim))
    return np.array(policy.rows(new)[0])


def born_near(policy: DOMD, population: Floats, variance: float) -> Floats:
    """The row of a key whose theta differs from the population's by this variance in every
    direction: with P the population's curvature above lambda, lambda I + (P^-1 + variance I)^-1."""
    old, new, rounds = _beginning(policy, population)
    eye, lam = np.eye(policy.problem.dim), float(new.floor[0])
    P = old.H[0] - lam * eye
    both = np.linalg.solve(eye + variance * P, P)
    new.basis[:] = np.maximum(new.basis, min(1.0, TRUST / rounds) * old.basis)
    new.H[:] += 0.5 * (both + both.T) + 1e-12 * np.trace(P) * eye  # rounding stays above lambda
    return np.array(policy.rows(new)[0])


def _beginning(policy: DOMD, population: Floats) -> tuple[Any, Any, float]:
    """The population, a new memory with its theta, and the rounds that the population rests on."""
    old, new = policy.view(population[None]), policy.init(1)
    t, gamma = float(old.t[0]), float(policy.discount or 1.0)
    rounds = t if gamma == 1.0 else (1.0 - gamma**t) / (1.0 - gamma)
    new.theta[:], new.g[:] = old.theta, old.g
    return old, new, max(rounds, 1.0)
