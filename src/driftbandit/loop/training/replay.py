"""Learners from the log: after a restart, for an audit, or from the very beginning."""

from __future__ import annotations

import logging
import math
import sys
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

from driftbandit.loop.candidates.candidate_set import CandidateSet
from driftbandit.loop.config import Declaration
from driftbandit.loop.errors import WRONG, LedgerError, ReplacedError, reading
from driftbandit.loop.learning.key_cache import StoredRows
from driftbandit.loop.learning.keyed import learner_for
from driftbandit.loop.learning.learner import IN_TABLE, Learner, Packing, digest, fingerprint
from driftbandit.loop.state.clock import LoopClock
from driftbandit.loop.state.definition import CurrentDefinition, Definition
from driftbandit.loop.state.reward_windows import Change, Example, Mark, Note, RewardWindows, counts
from driftbandit.loop.storage.events import Checkpoint, Event, encode
from driftbandit.loop.storage.key_rows import Numbers
from driftbandit.loop.storage.ledger import Ledger
from driftbandit.loop.training.trainer import CHUNK, Trainer

log = logging.getLogger("driftbandit.loop")

BYTES = 8_000_000  # of rows of keys in a checkpoint, about


class State(NamedTuple):
    """Windows, learner and candidates after all events."""

    windows: RewardWindows
    learner: Learner
    candidates: CandidateSet


def unfold(
    ledger: Ledger,
    definition: Definition,
    start: Event | None,
    gone: frozenset[int] = frozenset(),
) -> tuple[State, Iterator[Change]]:
    """Return windows and learner at a checkpoint, or at the beginning, and all that the log does to
    the learner from there on, as if the events in `gone` were blank. The windows go on while the
    changes are read."""
    declaration = definition.declaration
    learner = learner_for(declaration, next(iter(definition.versions.values())))
    candidates = CandidateSet(CurrentDefinition(definition))
    mark = None
    if start is not None:
        with reading(f"checkpoint {start.seq}"):
            mark = marked(start)
            _load(ledger, start, learner, candidates)
    windows = definition.windows(mark.since if mark else 1)
    return State(windows, learner, candidates), _changes(ledger, windows, mark, gone)


def _changes(
    ledger: Ledger, windows: RewardWindows, mark: Mark | None, gone: frozenset[int]
) -> Iterator[Change]:
    for _, changes in applied(ledger, windows, mark, gone):
        yield from changes


def applied(
    ledger: Ledger, windows: RewardWindows, mark: Mark | None, gone: frozenset[int] = frozenset()
) -> Iterator[tuple[int, list[Example | Note | Event]]]:
    """Yield the seq of every event after a mark and what it does to the learner, once the windows
    have applied it."""
    if mark and mark.since > mark.seq:
        windows.restore(mark)
    for event in ledger.read(mark.since if mark else 1, light=True):
        try:  # a context manager for each of a million events would take long
            changes = windows.apply(event.blank if event.seq in gone else event).changes
        except WRONG as error:
            raise LedgerError(f"event {event.seq} cannot be read: restore a copy") from error
        if mark is None or event.seq > mark.seq:
            yield event.seq, changes
        elif event.seq == mark.seq:  # the learner knows what was before: only what is open matters
            windows.restore(mark)


def replay(
    ledger: Ledger,
    definition: Definition,
    start: Event | None,
    stop: int | None = None,
    gone: frozenset[int] = frozenset(),
) -> State:
    """Train from a checkpoint on, or from the beginning, until `stop` examples were trained."""
    state, changes = unfold(ledger, definition, start, gone)
    trainer = Trainer(state.learner, state.candidates, ledger, gone=gone)
    left = changes if stop is None else first(changes, stop - state.learner.examples)
    while chunk := list(islice(left, CHUNK)):
        trainer.train(chunk)
    return state


def first(changes: Iterator[Change], n: int) -> Iterator[Change]:
    """Yield changes until n of them have counted in the position of the learner."""
    while n > 0 and (change := next(changes, None)) is not None:
        n -= counts(change)
        yield change


def latest(ledger: Ledger, definition: Definition, stop: int | None = None) -> State:
    """Replay from the newest checkpoint that is whole and not beyond `stop`."""
    for start in reversed(ledger.checkpoints()):
        with reading(f"checkpoint {start.seq}"):
            about, mark = start.read().learner, start.read().mark
            beyond = stop is not None and about["examples"] > stop
        if beyond:
            continue
        if mark[0] < ledger.base != start.seq:
            continue  # it was under way when the base was stored, and knows what is gone
        try:
            state = replay(ledger, definition, start, stop)
        except ReplacedError:
            return latest(ledger, definition, stop)
        except LedgerError as error:
            if start.seq == ledger.base:
                raise
            log.warning("checkpoint %d is left out: %s", start.seq, error)
            continue
        if about["fingerprint"] != fingerprint():
            log.info("the learner was trained elsewhere (%s)", about["fingerprint"])
        return state
    if ledger.base:
        raise LedgerError("what was before the oldest checkpoint is gone: it cannot be replayed")
    return replay(ledger, definition, None, stop)


def known_examples(ledger: Ledger) -> int:
    """Return how many examples the newest checkpoint knows."""
    found = ledger.checkpoints()[-1:]
    return int(found[0].read().learner["examples"]) if found else 0


def most_examples(declaration: Declaration, learner: Learner) -> int:
    """Return after how many examples a checkpoint is due. One of a loop with keys writes the rows
    that have changed, which wait in memory until then."""
    if declaration.key is None:
        return sys.maxsize
    return max(1, BYTES // (8 * learner.version.policy.row_size))


def origin(ledger: Ledger) -> Event | None:
    """The checkpoint that replays start from, if there is one."""
    return ledger.events([ledger.base])[ledger.base] if ledger.base else None


def checkpoint(learner: Learner, candidates: CandidateSet, mark: Mark) -> tuple[str, Numbers]:
    """Return the payload of a checkpoint, and the learners' numbers."""
    packing = Packing(IN_TABLE)
    data, state = packed(learner, candidates, packing)
    clock = [_stored(part) for part in mark.clock]
    parts = [mark.seq, mark.since, _stored(mark.w), clock, mark.counts]
    said = {"mark": parts, **data, "accounts": mark.accounts, "whole": digest(state)}
    return encode(said), Numbers(state, packing.batches)


def _stored(time: float | None) -> float | None:
    """Return a time as JSON knows it: there is no number for "never"."""
    return None if time == -math.inf else time


def packed(
    learner: Learner, candidates: CandidateSet, packing: Packing
) -> tuple[dict[str, Any], bytes]:
    """Return all that was learnt: what it is, and its numbers."""
    with learner.lock:
        (about, state), (beside, more) = learner.state(packing), candidates.state(packing)
    return {"learner": about, "panel": beside, "size": len(state)}, state + more


def load(
    ledger: Ledger,
    learner: Learner,
    candidates: CandidateSet,
    data: dict[str, Any],
    state: bytes,
    seq: int = 0,
) -> None:
    """Go on with what was packed, for the checkpoint `seq` or for a snapshot."""
    size = data.get("size")  # older checkpoints are the learner alone
    size = len(state) if size is None else size
    known = candidates.definition.now.versions
    stored = StoredRows(ledger.rows, seq, known)
    with learner.lock:
        learner.load(data["learner"], state[:size], known[data["learner"]["version"]], stored)
        if data.get("panel"):
            candidates.load(data["panel"], state[size:], stored)


def _load(ledger: Ledger, start: Event, learner: Learner, candidates: CandidateSet) -> None:
    found: Checkpoint = start.read()
    data = {"learner": found.learner, "panel": found.panel, "size": found.size}
    load(ledger, learner, candidates, data, ledger.state(start.seq), start.seq)


def marked(start: Event) -> Mark:
    """Return where the log goes on after a checkpoint."""
    found: Checkpoint = start.read()
    seq, since, w, (time, leap, leapt, landed), counted = found.mark
    never = -math.inf
    clock = LoopClock(
        never if time is None else time, leap, leapt, never if landed is None else landed
    )
    return Mark(seq, since, never if w is None else w, clock, counted, found.accounts)
