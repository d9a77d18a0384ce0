"""The ledger of a loop as a log: a row for every example, in the order they were trained."""

from __future__ import annotations

import os
from array import array
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from itertools import islice, repeat
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from driftbandit.evidence.reading.chunk import BAD, NAMES, SKIP, Batch, Floats, Ints
from driftbandit.evidence.reading.columns import PAIR, ROWS, SLATE, UNTAUGHT, Source
from driftbandit.loop.learning.keyed import Keyed
from driftbandit.loop.learning.learner import Learner
from driftbandit.loop.state.definition import Definition, Version, define
from driftbandit.loop.state.reward_windows import Example, RewardWindows
from driftbandit.loop.storage.events import Event
from driftbandit.loop.storage.ledger import Ledger
from driftbandit.loop.storage.store import is_url
from driftbandit.loop.training.replay import origin, replay, unfold
from driftbandit.policies.rows import RowPolicy

if TYPE_CHECKING:
    from driftbandit.lab.run.plugin_files import PluginFiles

Bills = Mapping[str, tuple[Ints, Floats]]  # by budget: seqs of decisions, in order, and values
ENDINGS = (".db", ".sqlite", ".sqlite3")


class Where(NamedTuple):
    """A loop in a ledger, and the policy that is trained its examples: its own if None."""

    path: str
    name: str
    policy: RowPolicy | type[RowPolicy] | None = None
    half_life: Any = None
    plugins: PluginFiles | None = None  # what must be imported before

    @contextmanager
    def opened(self) -> Iterator[tuple[Ledger, Definition]]:
        if self.plugins is not None:
            self.plugins.load()
        if not is_url(self.path) and not os.path.isfile(self.path):
            raise ValueError(f"{self.path!r} is not a file: check the path of the ledger")
        with closing(Ledger(self.path, self.name, write=False)) as ledger:
            known = define(ledger.lasting())
            if known is None:
                raise ValueError(f"loop {self.name!r} of {ledger.path!r} was never declared")
            yield ledger, known if self.policy is None else self._instead(ledger, known)

    def _instead(self, ledger: Ledger, known: Definition) -> Definition:
        """Return what the loop would be with the other policy."""
        if ledger.base:
            raise ValueError(
                "the beginning of this ledger is gone (retention or erase): another policy cannot "
                "be trained all of it; replay a file written with log.write"
            )
        if any(version.reign for version in known.versions.values()):
            raise ValueError(
                "the live policy of this ledger was replaced: another policy cannot be trained all "
                "of it; replay a file written with log.write"
            )
        changed = replace(known.declaration, policy=self.policy, half_life=self.half_life)
        version = Version(changed.features, changed.timed_policy, changed.half_life)
        first = replace(known, declaration=changed, versions={version.name: version}, seq=1)
        for event in ledger.lasting():
            if event.kind == "add_features":
                first = first.after(event)
        return replace(known, declaration=changed, versions=first.versions)


def is_ledger(source: Any) -> bool:
    return isinstance(source, (str, os.PathLike)) and (
        is_url(source) or str(source).endswith(ENDINGS)
    )


class LedgerSource(Source):
    """The examples of a loop; others may go on writing to its ledger."""

    def __init__(self, path: str | os.PathLike[str], name: str) -> None:
        self.where = Where(os.fspath(path), name)
        with self.where.opened() as (_, known):
            features = [*known.versions.values()][-1].features
        super().__init__(self._rows, {"features": features, "reward": known.declaration.reward})

    def _rows(self) -> Iterator[Batch]:
        with self.where.opened() as (ledger, known):
            start, bills = origin(ledger), _bills(ledger, known.costs)
            state, changes = unfold(ledger, known, start)
            examples = (change for change in changes if isinstance(change, Example))
            while part := list(islice(examples, ROWS)):
                events = ledger.events([example.decision for example in part])
                rows = [_row(events.get(example.decision), example, bills) for example in part]
                yield _batch(rows)
            rest = _untrained(state.windows, start)
            while words := list(islice(rest, ROWS)):
                yield _batch([{SKIP: word} for word in words])

    def replay(
        self,
        policy: RowPolicy | type[RowPolicy] | None,
        half_life: Any,
        scheduler: str | None,
        workers: int | None,
    ) -> Learner:
        """The loop's learner, or that of another policy, trained exactly as the loop trains."""
        where = self.where._replace(policy=policy, half_life=half_life)
        if scheduler is not None:
            from driftbandit.evidence.cluster import spread

            return spread(where, scheduler, workers)
        with where.opened() as (ledger, known):
            learner = replay(ledger, known, origin(ledger)).learner
            if isinstance(learner, Keyed):
                learner.read_all()
            return learner


def _batch(rows: list[dict[str, Any]]) -> Batch:
    return {name: [row.get(name) for row in rows] for name in (*NAMES, SKIP, BAD)}


def _untrained(windows: RewardWindows, start: Event | None) -> Iterator[str]:
    """Why decisions trained nothing, once for each: who evaluates the others must know of them."""
    before: dict[str, int] = start.read().mark[4] if start else {}
    yield from repeat(UNTAUGHT["open"], sum(len(each.values) for each in windows.open.values()))
    for word, count in (("cancelled", "cancel cancelled"), ("missing", "missing")):
        if word != "missing" or windows.missing is None or windows.wait == 0.0:
            yield from repeat(UNTAUGHT[word], windows.counts[count] - before.get(count, 0))


def _bills(ledger: Ledger, budgets: Collection[str]) -> Bills:
    """Return the bills of all decisions; the last one of each counts. They may come long after
    their decision was trained, so they are collected before, in 16 bytes each or so."""
    found: dict[str, tuple[array[int], array[float]]] = {
        name: (array("q"), array("d")) for name in budgets
    }
    for event in ledger.read(ledger.start, light=True) if found else ():
        if event.kind == "metric" and (said := event.read()).name in found and said.of:
            seqs, values = found[said.name]
            seqs.append(said.of)
            values.append(said.value)
    return {name: _last(np.array(seqs), np.array(values)) for name, (seqs, values) in found.items()}


def _last(seqs: Ints, values: Floats) -> tuple[Ints, Floats]:
    """Return the last value of each seq, in order."""
    order = np.argsort(seqs, kind="stable")
    seqs, values = seqs[order], values[order]
    last = np.append(seqs[1:] != seqs[:-1], True) if len(seqs) else np.zeros(0, dtype=bool)
    return seqs[last], values[last]


def _bill(seq: int, seqs: Ints, values: Floats) -> float | None:
    place = int(np.searchsorted(seqs, seq))
    return float(values[place]) if place < len(seqs) and seqs[place] == seq else None


def _row(event: Any, example: Example, bills: Bills) -> dict[str, Any]:
    """A example and the decision it is about."""
    if event is None or event.kind != "decide":
        return {BAD: "a decision that is not in the ledger"}
    data = event.read()
    if example.over is not None:
        return {SKIP: PAIR}
    if data.k is not None:
        return {SKIP: PAIR if example.position is None else SLATE}
    choice = data.choices[0]
    if choice is None:
        return {SKIP: "there was no arm"}
    return {
        "context": data.context,
        "arms": data.arms,
        "names": data.names,
        "action": data.names[choice],
        "probabilities": data.p[0],
        "reward": example.value,
        "time": example.at,
        "key": event.key,
        "id": event.id,
        "default": data.default,
        "role": data.role,
        "spend": {
            name: each.told(_bill(event.seq, *bills[name])) for name, each in data.spend.items()
        },
    }
