"""The trainer brings examples to the learner, in order."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from itertools import groupby
from typing import Any, NamedTuple

from driftbandit.loop.candidates.candidate_set import CandidateSet
from driftbandit.loop.deciding.pairs import difference
from driftbandit.loop.deciding.payloads import Choice
from driftbandit.loop.deciding.slates import at_position, readable
from driftbandit.loop.errors import reading
from driftbandit.loop.learning.learner import Learner
from driftbandit.loop.state.definition import Version
from driftbandit.loop.state.reward_windows import Asked, Change, Example, Lost, Mark, Note
from driftbandit.loop.storage.events import Decide, Event
from driftbandit.loop.storage.ledger import Ledger
from driftbandit.loop.training.backfill import Backfill
from driftbandit.policies.base import Floats

CHUNK = 256  # changes at a time
RECENT = 50_000  # rows of open decisions in memory; others are encoded again

RowKey = tuple[int, int | None]  # seq of a decision, and the position in a slate
OF_DECISIONS = Example, Asked, Lost
NOTHING: tuple[int, Floats | None] = -1, None  # of no reign


class Lag(NamedTuple):
    """Examples that wait to be trained, and for how many seconds the oldest has."""

    examples: int
    seconds: float


class Trainer:
    """Trains changes in the calling thread. `store` is told of checkpoints; the events in `gone`
    are as if they were blank."""

    def __init__(
        self,
        learner: Learner,
        candidates: CandidateSet,
        ledger: Ledger,
        store: Callable[[Mark], None] | None = None,
        gone: frozenset[int] = frozenset(),
    ) -> None:
        self.learner, self.candidates, self.ledger = learner, candidates, ledger
        self._store, self.backfill = store, Backfill(ledger, candidates.definition, gone)
        self._recent: OrderedDict[RowKey, tuple[int, Floats]] = OrderedDict()
        self._caching = threading.RLock()  # a finalizer in the middle may make a decision, too

    def remember(self, event: Event, made: Choice) -> None:
        """Keep the rows of a decision that was just stored: its example may come soon."""
        reign, recent = made.version.reign, self._recent
        with self._caching:
            for j, choice in enumerate(made.answer.choices):
                if choice is not None:
                    row = event.seq, None if event.k is None else j
                    recent[row] = reign, made.X[j, choice].copy()
            while len(recent) > RECENT:
                recent.popitem(last=False)

    def forget(self) -> None:
        """Encode rows again from the log."""
        with self._caching:
            self._recent.clear()

    def train(self, changes: Sequence[Change], *, holds: bool = False) -> None:
        """Apply examples, other changes and checkpoints in order. If it `holds` the learner's lock
        while it learns examples, decisions wait."""
        for of_decisions, run in groupby(changes, lambda change: isinstance(change, OF_DECISIONS)):
            if of_decisions:
                with self.learner.lock if holds else nullcontext():
                    self._train(list(run))  # type: ignore[arg-type]
            else:
                for change in run:
                    self._change(change)  # type: ignore[arg-type]

    def _train(self, changes: list[Example | Note]) -> None:
        examples = [change for change in changes if isinstance(change, Example)]
        rows = self._rows(examples)
        if not self.candidates.active:
            if examples:
                self.learner.train(examples, rows)
            return
        events = self.ledger.events([each.decision for each in changes])
        row = iter(rows)
        for change in changes:
            event = self.ledger.decision(change.decision, events)
            with self.learner.lock:
                if isinstance(change, Example):
                    self.candidates.learn(change, event, self.learner)
                    self.learner.learn(change, next(row))
                else:
                    self.candidates.note(change, event, self.learner)
        with self.learner.lock:
            self.candidates.look()

    def _change(self, change: Event | Mark) -> None:
        if isinstance(change, Mark):
            if self._store:
                self._store(change)
            return
        if change.kind == "shadow":  # that may take long, so not under the lock
            one = self.backfill.candidate(change, self.learner)
        with self.learner.lock:
            if change.kind == "add_features":
                self.learner.grow(change)
            elif change.kind == "shadow":
                self.candidates.admit(one, change, self.learner)
            else:
                self.candidates.switch(change, self.learner)

    def _rows(self, examples: list[Example]) -> list[Floats | None]:
        """Return what each example is learnt from: the row of its arm, or the difference of the
        rows of two."""
        if not self.candidates.definition.now.declaration.learns_preferences:
            keys = [(each.decision, each.position) for each in examples]
            single = self._single_rows(keys)
            return [single[key] for key in keys]
        both = [_compared(each) for each in examples]
        rows = self._single_rows(list(dict.fromkeys(key for keys in both for key in keys)))
        pad = self.learner.version.features.pad  # the older decision may know fewer columns
        whole = {key: None if x is None else pad(x) for key, x in rows.items()}
        return [difference(whole[first], whole[second]) for first, second in both]

    def _single_rows(self, keys: list[RowKey]) -> dict[RowKey, Floats | None]:
        """Return the rows of arms at positions: from memory, or encoded again from the log."""
        reign = self.learner.version.reign
        with self._caching:
            recent = {key: self._recent.pop(key, NOTHING) for key in keys}
        rows = {key: x if then == reign else None for key, (then, x) in recent.items()}
        missing = [key for key, row in rows.items() if row is None]
        if missing:
            rows |= self._encoded(missing)
        return rows

    def _encoded(self, keys: list[RowKey]) -> dict[RowKey, Floats | None]:
        events = self.ledger.events(list({seq for seq, _ in keys}))
        by_version: dict[str, list[tuple[RowKey, Any, Any]]] = {}
        rows: dict[RowKey, Floats | None] = {}
        with reading(f"a decision from {keys[0][0]} to {keys[-1][0]}"):
            for key in keys:
                self._find(key, self.ledger.decision(key[0], events).read(), by_version)
            for name, parts in by_version.items():
                found, contexts, arms = zip(*parts)
                version = self.candidates.definition.now.versions[name]
                rows |= zip(found, version.features.encode_pairs(contexts, arms))
        return rows

    def _find(self, key: RowKey, data: Decide, found: dict[str, Any]) -> None:
        """Add context and arm of an example, if there was an arm that the learner can read."""
        choice = data.choices[key[1] or 0]
        if choice is None:
            return
        definition, version = self.candidates.definition.now, self.learner.version
        made = definition.versions[data.version]
        if made.reign == version.reign:
            version = made  # the learner pads what has grown since
        context, arms = data.context, [data.arms[choice]]
        if definition.shadows or definition.costs:
            context, arms = readable(version.features, context, arms)  # type: ignore[assignment]
        context, (arm,) = at_position(version.features, context, arms, key[1])  # type: ignore
        if made.reign == version.reign or _can_read(version, context, arm):
            found.setdefault(version.name, []).append((key, context, arm))


def _compared(example: Example) -> tuple[RowKey, RowKey]:
    """Return the rows that a preference compares: those of a pair, or those of two decisions."""
    if example.over is not None:
        return (example.decision, None), (example.over, None)
    return (example.decision, 0), (example.decision, 1)


def _can_read(version: Version, context: Any, arm: Any) -> bool:
    """Return whether a decision of another policy has what the features of today require; if not,
    nothing is learnt from it."""
    try:
        version.features.encode(context, [arm])
    except ValueError:
        return False
    return True
