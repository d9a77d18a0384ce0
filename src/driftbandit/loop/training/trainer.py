"""The trainer brings examples to the learner, at once or in a thread of its own."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from driftbandit.loop.candidates.candidate_set import Panel
from driftbandit.loop.deciding.slates import own, placed
from driftbandit.loop.learning.learner import Learner
from driftbandit.loop.state.reward_windows import Example
from driftbandit.loop.state.versions import Version
from driftbandit.loop.storage.events import Event, decision_of
from driftbandit.loop.storage.ledger import Ledger
from driftbandit.loop.training.backfill import Newcomers
from driftbandit.loop.writing.pending import Change, Mark
from driftbandit.policies.base import Floats

CHUNK = 256  # changes at a time
RECENT = 50_000  # rows of open decisions in memory; others are encoded again


Row = tuple[int, int | None]  # seq of a decision, and the position in a slate
NOTHING: tuple[int, Floats | None] = -1, None  # of no reign


class Lag(NamedTuple):
    """Examples that wait to be trained, and for how many seconds the oldest has."""

    examples: int
    seconds: float


class Trainer:
    """Trains what it is handed before it returns; `store` is told of checkpoints, and the events
    in `gone` are as if they were blank."""

    def __init__(
        self,
        learner: Learner,
        panel: Panel,
        ledger: Ledger,
        versions: dict[str, Version],
        store: Callable[[Mark], None] | None = None,
        gone: frozenset[int] = frozenset(),
    ) -> None:
        self.learner, self.panel, self.ledger = learner, panel, ledger
        self.versions, self._store = versions, store
        self.newcomers = Newcomers(ledger, panel.past, gone)
        self._recent: OrderedDict[Row, tuple[int, Floats]] = OrderedDict()
        self._turn = threading.Lock()

    def hand(self, changes: list[Change]) -> None:
        """Take changes that are stored."""
        self.train(changes)

    def wait_until_trained(self, timeout: float | None = None) -> bool:
        """Wait until all that was handed in is trained; False on a timeout."""
        return True

    @property
    def lag(self) -> Lag:
        return Lag(0, 0.0)

    def check(self) -> None:
        """Raise if training has stopped."""

    def close(self) -> None:
        """Train what waits, and stop."""

    def remember(self, row: Row, x: Floats, version: Version) -> None:
        """Keep the row of a decision that was just made: its example may come soon."""
        with self._turn:
            self._recent[row] = version.reign, x
            if len(self._recent) > RECENT:
                self._recent.popitem(last=False)

    def forget(self) -> None:
        """Rows are encoded again from the log."""
        with self._turn:
            self._recent.clear()

    def train(self, changes: Sequence[Change]) -> None:
        """Examples, other changes and checkpoints in order."""
        for are_examples, run in groupby(changes, lambda change: isinstance(change, Example)):
            if are_examples:
                self._train(list(run))  # type: ignore[arg-type]
            else:
                for change in run:
                    self._change(change)  # type: ignore[arg-type]

    def _train(self, examples: list[Example]) -> None:
        rows, watched = self._rows(examples), self.panel.active
        events = self.ledger.events([each.decision for each in examples]) if watched else {}
        for example in examples:
            with self.learner.lock:
                if watched:
                    self.panel.watch(example, decision_of(events, example.decision), self.learner)
                self.learner.train(example, rows[example.decision, example.position])
        if watched:
            with self.learner.lock:
                self.panel.look()

    def _change(self, change: Event | Mark) -> None:
        if isinstance(change, Mark):
            if self._store:
                self._store(change)
            return
        if change.kind == "shadow":  # that may take long: nobody waits for the lock meanwhile
            one = self.newcomers.made(change, self.learner)
        with self.learner.lock:
            if change.kind == "grow":
                self.learner.grow(change)
            elif change.kind == "shadow":
                self.panel.admit(one, change, self.learner)
            else:
                self.panel.switch(change, self.learner)
        self.versions[self.learner.version.name] = self.learner.version

    def _rows(self, examples: list[Example]) -> dict[Row, Floats | None]:
        """The row of each decision's arm: from memory, or encoded again from the log."""
        reign = self.learner.version.reign
        with self._turn:
            keys = [(each.decision, each.position) for each in examples]
            recent = {key: self._recent.pop(key, NOTHING) for key in keys}
        rows = {key: x if then == reign else None for key, (then, x) in recent.items()}
        missing = [key for key, row in rows.items() if row is None]
        events = self.ledger.events(list({seq for seq, _ in missing})) if missing else {}
        by_version: dict[str, list[tuple[Row, Any, Any]]] = {}
        for key in missing:
            self._find(key, decision_of(events, key[0]).read(), by_version)
        for version, parts in by_version.items():
            found, contexts, arms = zip(*parts)
            X = self.versions[version].features.encode_pairs(contexts, arms)
            rows |= zip(found, X)
        return rows

    def _find(self, key: Row, data: dict[str, Any], found: dict[str, Any]) -> None:
        """Context and arm of a example, if there was an arm that the learner can read."""
        choice = data["choice"] if key[1] is None else data["choice"][key[1]]
        if choice is None:
            return
        made, version = self.versions[data["version"]], self.learner.version
        if made.reign == version.reign:
            version = made  # the learner pads what has grown since
        context, arms = data["context"], [data["arms"][choice]]
        if self.panel.past.shadows:
            context, arms = own(version.features, context, arms)
        context, (arm,) = placed(version.features, context, arms, key[1])
        if made.reign == version.reign or _can_read(version, context, arm):
            found.setdefault(version.name, []).append((key, context, arm))


def _can_read(version: Version, context: Any, arm: Any) -> bool:
    """Whether a decision of another one's has what the features of today require; if not, it
    trains nothing."""
    try:
        version.features.encode(context, [arm])
    except ValueError:
        return False
    return True
