"""Real streams: the outcome of every arm is on record, the truth behind it is not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from driftbandit import datasets, validate
from driftbandit.environments.environment import Block, Environment, Floats, Ints
from driftbandit.environments.random_streams import ROUNDS, tape
from driftbandit.families import Bernoulli
from driftbandit.problem import Problem


@dataclass(frozen=True, eq=False)
class RecordedBlock(Block):
    """Rewards are on record; regret is against the best outcome of the round."""

    outcomes: Floats  # (rounds, n, N)

    def play(self, t: int, choice: Ints) -> tuple[Floats, Floats]:
        reward = self.outcomes[t][np.arange(len(choice)), choice]
        return reward, self.outcomes[t].max(axis=1) - reward


@dataclass(frozen=True, kw_only=True)
class Stream(Environment):
    """A stream of `driftbandit.datasets`, in order of time or, as the stationary control, shuffled.

    Replicates of one stream would be the same run: each seed leaves out a random share `drop` of
    the rounds, so a window of T / (1 - drop) rounds from `start` on gives T rounds to play. A seed
    leaves out the same rounds in both orders, whoever plays. `start` defaults to the first round
    of the dataset's recipe; `checksum` refuses data whose `Rounds.outcomes` in the window do not
    begin with it. Data are read when the stream is played.
    """

    data: str = "elec2"
    order: Literal["time", "shuffled"] = "time"
    start: int | None = None
    drop: float = 0.1
    checksum: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.order not in ("time", "shuffled"):
            raise ValueError(f'order must be "time" or "shuffled", got {validate.show(self.order)}')
        drop = validate.nonnegative("drop", self.drop, "share of rounds that a seed leaves out")
        if drop >= 1.0:
            raise ValueError(f"drop must be below 1, or no round is left, got {drop}")
        if self.start is not None:
            self._set(start=validate.count("start", self.start, "the first round", least=0))
        self._set(drop=drop)
        datasets.shape(self.data)

    @property
    def rounds(self) -> datasets.Rounds:
        """The data from `start` on."""
        rounds = datasets.load(self.data, start=self.start)
        if len(rounds) < self.window:
            raise ValueError(
                f"{self.data} has {len(rounds)} rounds from {rounds.start} on, but horizon="
                f"{self.horizon} and drop={self.drop:g} need {self.window}: lower one of them"
            )
        if self.checksum and not rounds.outcomes(self.window).startswith(self.checksum):
            raise ValueError(
                f"the outcomes of {self.data} have checksum {rounds.outcomes(self.window)[:8]}, "
                f"but {self.checksum} is asked for, and results of different data do not mix: use "
                "the file that docs/streams.md names"
            )
        return rounds

    @property
    def window(self) -> int:
        """How many rounds of the data the T rounds are taken from."""
        return int(np.ceil(round(self.horizon / (1.0 - self.drop), 6)))

    @property
    def name(self) -> str:
        return f"{self.data}, {self.order}"

    @property
    def n_arms(self) -> int:
        return datasets.shape(self.data)[0]

    @property
    def problem(self) -> Problem:
        return Problem(dim=datasets.shape(self.data)[1], family=Bernoulli())

    def played(self, seed: int) -> Ints:
        """The rounds of the window that a seed plays, in its order."""
        kept = tape(seed, ROUNDS).permutation(self.window)[: self.horizon]
        return np.sort(kept) if self.order == "time" else kept

    def blocks(self, seeds: Sequence[int], size: int) -> Iterator[RecordedBlock]:
        rounds, played = self.rounds, np.stack([self.played(seed) for seed in seeds], axis=1)
        for first in range(0, self.horizon, size):
            rows = played[first : first + size]
            theta = np.full((*rows.shape, rounds.arms.shape[2]), np.nan)
            yield RecordedBlock(rounds.arms[rows], theta, rounds.rewards[rows])
