"""Log: decisions that were made, with their probabilities and rewards, from wherever they are."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from driftbandit import validate
from driftbandit.evidence.reading import files, ledger
from driftbandit.evidence.reading.chunk import ASIDE, Chunk, Floats
from driftbandit.evidence.reading.clean import Cleaner
from driftbandit.evidence.reading.columns import Columns, Source
from driftbandit.evidence.reading.encode import check_columns, encoded, proposed
from driftbandit.evidence.reading.menus import Menus
from driftbandit.evidence.reading.row_counts import RowCounts
from driftbandit.features import Features
from driftbandit.problem import Problem
from driftbandit.reward import Preference, Reward


class Examples(NamedTuple):
    """Clean rows, their contexts (m, d), and their rewards (n,) as learners take them."""

    chunk: Chunk
    X: Floats
    r: Floats


class Log:
    """A log of decisions, read in batches as often as it is needed; see `Log.read`.

    `counts` says what became of the rows in the latest pass: how many were used, which were bad and
    why, which were skipped.
    """

    def __init__(
        self,
        source: Source,
        *,
        features: Features | None = None,
        reward: Reward | None = None,
        arms: Any = None,
        limit: float = 0.01,
        least: float = 0.0,
    ) -> None:
        self.source, self.limit = source, limit
        self.least = validate.nonnegative("least", least, "smallest probability of an arm")
        for name, kind, given in (("features", Features, features), ("reward", Reward, reward)):
            if given is not None and not isinstance(given, kind):
                raise ValueError(f"{name} must be {kind.__name__}(...), got {validate.show(given)}")
        if isinstance(reward, Preference) and reward != source.about.get("reward"):
            raise ValueError(
                "a Preference says which arm is better and not what one earns, so nothing can be "
                "evaluated by it: pass reward=Reward(0, 1)"
            )
        self._features, self._reward = features, reward
        self._own = features == source.about.get("features")  # which the log was written with
        self.menus = Menus(arms)
        self.counts = RowCounts(limit)

    @classmethod
    def read(
        cls,
        source: Any,
        columns: Columns | None = None,
        *,
        features: Features | None = None,
        reward: Reward | None = None,
        arms: Any = None,
        name: str = "loop",
        limit: float = 0.01,
        least: float = 0.0,
    ) -> Log:
        """Return a log from a file (Parquet, CSV, JSON lines, Vowpal Wabbit's dsjson, an Arrow stream), a
        frame, or the ledger of a loop with this `name`.

        | option | |
        |---|---|
        | `columns` | what columns are called there: context, arms, names, action, probability, probabilities, reward, time, key, id. `{"context": ["age", "country"]}` puts columns together |
        | `features`, `reward` | what values mean; proposed from the first rows if None |
        | `arms` | what could be played in every row, if no column says so |
        | `limit` | share of bad rows beyond which a log is refused |
        | `least` | smallest probability that any arm had, where only that of the played one is logged |
        """  # noqa: E501
        is_ledger = ledger.is_ledger(source)
        if is_ledger and columns:
            raise ValueError("a ledger's columns are known: leave columns out")
        limit = validate.nonnegative("limit", limit, "share of bad rows")
        opened = ledger.LedgerSource(source, name) if is_ledger else files.opened(source, columns)
        return cls(
            opened,
            features=features or opened.about.get("features"),
            reward=reward or opened.about.get("reward"),
            arms=arms,
            limit=limit,
            least=least,
        )

    def chunks(self) -> Iterator[Chunk]:
        """Clean rows, a batch at a time."""
        self.counts = counts = RowCounts(self.limit)
        cleaner = Cleaner(self.menus, self.least)
        for batch in self.source.batches():
            chunk, bad, skip = cleaner.clean(batch)
            counts.add(bad, skip)
            counts.aside.update(role for role in chunk.role if role in ASIDE)
            if len(chunk):
                yield chunk
        counts.check()

    def examples(self) -> Iterator[Examples]:
        """Clean rows that the features and the reward can take."""
        if not self._own:
            check_columns(self.features, self.sample)
        for chunk in self.chunks():
            try:
                yield self._encoded(chunk)
            except ValueError:
                good = [k for k in range(len(chunk)) if self._fits(chunk.take([k]))]
                self.counts.check()
                if good:
                    yield self._encoded(chunk.take(good))

    def _encoded(self, chunk: Chunk) -> Examples:
        pairs = [self.reward.inside(value) for value in chunk.reward.tolist()]
        X = encoded(self.features, chunk)
        self.counts.clipped += sum(clipped for _, clipped in pairs)
        return Examples(chunk, X, np.array([r for r, _ in pairs]))

    def _fits(self, row: Chunk) -> bool:
        """Return whether one row can be taken; counted as bad if not."""
        try:
            self.reward.inside(float(row.reward[0]))
            encoded(self.features, row)
        except ValueError as error:
            self.counts.refuse(str(error), int(row.number[0]))
            return False
        return True

    @cached_property
    def sample(self) -> Chunk:
        """The first rows."""
        first = self.source.peek()
        if first is None:
            raise ValueError("the log is empty: there is nothing to learn from")
        chunk, bad, skip = Cleaner(self.menus, self.least).clean(first)
        if not len(chunk):
            counts = RowCounts(1.0)
            counts.add(bad, skip)
            found = [*counts.reasons(), *(f"{n:,} x {why}" for why, n in counts.skipped.items())]
            raise ValueError(f"no row of the first {counts.rows:,} can be used: {'; '.join(found)}")
        return chunk

    @property
    def features(self) -> Features:
        """What was declared, or a proposal from the first rows."""
        if self._features is None:
            self._features = proposed(self.sample)
        return self._features

    @property
    def reward(self) -> Reward:
        """What was declared, or Reward(0, 1) if the first rewards fit."""
        if self._reward is None:
            low, high = self.sample.reward.min(), self.sample.reward.max()
            if low < 0.0 or high > 1.0:
                raise ValueError(
                    f"rewards go from {low:g} to {high:g} in the first rows: pass "
                    "reward=Reward(low, high), the range of all of them"
                )
            self._reward = Reward(0, 1)
        return self._reward

    @property
    def problem(self) -> Problem:
        """What learners of this log are made for."""
        return self.features.problem(self.reward)

    def replay(
        self,
        policy: Any = None,
        *,
        half_life: Any = None,
        scheduler: str | None = None,
        workers: int | None = None,
    ) -> Any:
        """Train a learner on all of the log, in its order, and return it: see `evidence.replay`. A
        keyed loop's ledger may be replayed by a Dask cluster: the address of its `scheduler`, or
        "local" for one here with so many `workers`."""
        from driftbandit.evidence import replay

        return replay.replayed(self, policy, half_life, scheduler, workers)

    def rejection(self, policy: Any, *, rule: Any = None, seed: int = 0) -> Any:
        """Return an honest learning curve of a policy: see `evidence.replay`."""
        from driftbandit.evidence import replay

        return replay.rejection(self, policy, rule, seed)

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Write all clean rows to Parquet, or to dsjson (.dsjson, .json, .jsonl), whole or not at
        all."""
        from driftbandit.evidence.reading import write

        return write.written(self, path)
