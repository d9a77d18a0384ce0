"""What an adapter offers: the whole protocol between the contest and a peer."""

from __future__ import annotations

from typing import NamedTuple, Protocol


class Task(NamedTuple):
    """What a learner may know beforehand."""

    dim: int
    count: int  # arms in a round
    radius: float | None  # bound of the true parameter's norm, if somebody knows it
    norm: float  # bound of the arms' norm
    seed: int  # for the learner's own luck
    rounds: int  # to come


class Learner(Protocol):
    """Adapter modules hold `LEARNERS`: name -> function of a Task and a setting's keywords."""

    def choose(self, arms) -> int:
        """Index of the arm to play, of arms (N, d)."""

    def update(self, arms, arm: int, reward: float) -> None:
        """Learn that this arm of these gave this reward, 0 or 1."""

    def size(self) -> int:
        """Bytes of the learner as its package saves it."""
