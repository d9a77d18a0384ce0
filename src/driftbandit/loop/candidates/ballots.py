"""Ballots: votes about decisions that are open, until their reward is known.

They are part of what a checkpoint holds: a policy that has learnt more since can not say again
what it would have done.
"""

from __future__ import annotations

from collections.abc import Collection

import msgspec
import numpy as np

from driftbandit.loop.candidates.scoring import Ballot

_Stored = dict[int, dict[str, bytes]]
_decoder = msgspec.msgpack.Decoder(_Stored)


class Ballots:
    """Votes by the seq of their decision. `passed` is the event up to which all is noted: a process
    that takes over may be told again of what a snapshot already has."""

    def __init__(self) -> None:
        self.passed = 0
        self._open: dict[int, Ballot] = {}

    def __len__(self) -> int:
        return len(self._open)

    def passes(self, event: int) -> bool:
        """Note an event; return False if it was noted before."""
        new = event > self.passed
        self.passed = max(self.passed, event)
        return new

    def put(self, decision: int, votes: Ballot) -> None:
        self._open[decision] = votes

    def take(self, decision: int, names: Collection[str]) -> Ballot | None:
        """Return the votes of these policies, which are needed no more; None if there are none."""
        votes = self._open.pop(decision, None)
        if votes is None:
            return None
        return {name: p for name, p in votes.items() if name in names}

    def drop(self, decisions: Collection[int]) -> None:
        """Forget decisions that are gone."""
        for decision in decisions:
            self._open.pop(decision, None)

    def clear(self) -> None:
        """Forget all votes: another policy acts."""
        self._open.clear()

    def state(self) -> bytes:
        """Return all of it, for a checkpoint."""
        votes = {
            decision: {name: p.astype("<f8").tobytes() for name, p in ballot.items()}
            for decision, ballot in self._open.items()
        }
        return msgspec.msgpack.encode(votes)

    def load(self, passed: int, state: bytes) -> None:
        """Go on from a checkpoint."""
        self.passed = passed
        self._open = {
            decision: {name: np.frombuffer(p, "<f8").astype(float) for name, p in ballot.items()}
            for decision, ballot in _decoder.decode(state).items()
        }
