"""How much keys differ from the population, learnt from a summary of constant size.

If theta of a key is that of the population plus a deviation of variance tau^2 in every direction,
then the errors e and e' of the population's predictions for two examples of one key have

    E[e e'] = tau^2 mu'(z) mu'(z') x'x'      (to first order),

and errors for different keys have nothing in common. So tau^2 is estimated by sums over pairs of
examples that follow each other for one key, weighted by x'x' (empirical Bayes by moments). A table
holds the latest example of some keys. A key stays in its place until it has not been seen for long,
so that even among millions of keys there are pairs.
"""

from __future__ import annotations

import base64

import numpy as np

from driftbandit.features.encoders import stable
from driftbandit.policies.base import Floats

PLACES = 128  # keys whose latest example is held
PATIENCE = 20_000  # examples after which a key that has not come again makes way
FIRST = 0.02  # both sums at first: keys differ with variance 1 until they have been seen
FADE = 1.0 - 1e-4  # of the sums with each pair: differences may change, too

KEY, WHEN, ERROR, SLOPE, ROW = range(5)  # columns of the table


class KeySpread:
    """The variance of theta between keys."""

    def __init__(self, dim: int) -> None:
        self._sums = np.array([FIRST, FIRST])
        self._table = np.zeros((PLACES, ROW + dim))

    @property
    def variance(self) -> float:
        """tau^2."""
        return max(float(self._sums[0]), 0.0) / float(self._sums[1])

    def take(self, key: str, x: Floats, error: float, slope: float, now: int) -> None:
        """Take an example into account: the population's error, mu' there, and the count of all
        examples so far."""
        number, place = _number(key)
        held = self._table[place]
        if held[KEY] == number:
            alike = float(held[ROW:] @ x)
            self._sums *= FADE
            self._sums += [error * held[ERROR] * alike, slope * held[SLOPE] * alike**2]
        elif held[KEY] and now - held[WHEN] < PATIENCE:
            return
        held[:ROW] = number, now, error, slope
        held[ROW:] = x

    def drop(self, key: str) -> None:
        """Forget the latest example of a key; what it added to the two sums stays."""
        number, place = _number(key)
        if self._table[place, KEY] == number:
            self._table[place] = 0.0

    def grow(self, dim: int) -> None:
        """Rows become longer; held ones are 0 there."""
        more = ROW + dim - self._table.shape[1]
        self._table = np.pad(self._table, [(0, 0), (0, more)])

    def to_bytes(self) -> bytes:
        """Return all of it, for a checkpoint."""
        return np.concatenate([self._sums, self._table.ravel()]).astype("<f8").tobytes()

    @staticmethod
    def from_bytes(state: bytes) -> KeySpread:
        numbers = np.frombuffer(state, dtype="<f8").astype(np.float64)
        found = KeySpread((numbers.size - 2) // PLACES - ROW)
        found._sums, found._table = numbers[:2].copy(), numbers[2:].reshape(PLACES, -1).copy()
        return found

    def to_text(self) -> str:
        """Return the same as text, for what is stored whole."""
        return base64.b64encode(self.to_bytes()).decode()

    @staticmethod
    def from_text(text: str) -> KeySpread:
        return KeySpread.from_bytes(base64.b64decode(text))


def _number(key: str) -> tuple[float, int]:
    """Return a number that stands for a key, exact as a float and not 0, and its place."""
    number = (stable(key) >> 12) + 1
    return float(number), number % PLACES
