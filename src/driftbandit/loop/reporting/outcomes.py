"""What became of decisions: the log, decision by decision."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any, NamedTuple

from driftbandit.loop.deciding.payloads import positions
from driftbandit.loop.state.definition import Definition
from driftbandit.loop.state.reward_windows import Example, OpenDecision, Position, RewardWindows
from driftbandit.loop.storage.events import Decide, Event, RewardGiven
from driftbandit.loop.storage.ledger import Ledger
from driftbandit.loop.training.trainer import RowKey


class Outcomes(NamedTuple):
    """Decisions in order of seq, a row for each position of a slate.

    `reward` is the last word so far, or `missing` once that was trained; `status` is open, trained,
    missing (nothing came), or cancelled. `mean` is the reward that the learner expected, without a
    unit. The reward of a decision that people compared with others is the part that it won.
    `counts` are those of windows that know nothing older.
    """

    rows: list[dict[str, Any]]
    counts: Counter[str]
    kinds: Counter[str]  # of events


def outcomes(ledger: Ledger, definition: Definition, since: int) -> Outcomes:
    """Return all decisions from the event `since` on."""
    windows = definition.windows()
    found: dict[RowKey, dict[str, Any]] = {}
    kinds: Counter[str] = Counter()
    compared: dict[int, list[float]] = defaultdict(list)  # decisions, 1 for each that they beat
    for event in ledger.read(since):
        kinds[event.kind] += 1
        if event.kind == "decide":
            new = {(event.seq, row["position"]): row for row in _rows(event)}
            found |= new
        before = windows.open.get(str(event.id))
        about = [(before.seq, place) for place in before.places] if before else []
        word, changes = windows.apply(event)
        if event.kind == "decide":
            _cancelled(new, windows.open.get(str(event.id)))
        elif event.kind in ("reward", "cancel", "metric"):
            _note(found, event, about, word)
        for change in changes:
            if isinstance(change, Example) and change.over is not None:
                compared[change.decision].append(change.value)
                compared[change.over].append(1.0 - change.value)
            elif isinstance(change, Example):
                _mark(found, change.decision, change.position, "trained", change.value)
    _still_open(found, windows, compared)
    _compared(found, compared)
    return Outcomes(list(found.values()), windows.counts, kinds)


def _rows(event: Event) -> list[dict[str, Any]]:
    data: Decide = event.read()
    names = [str(name) for name in data.names]
    return [
        {
            "seq": event.seq,
            "id": event.id,
            "position": each.position,
            "at": event.at,
            "key": event.key,
            "role": data.role,
            "arm": str(each.default) if each.choice is None else names[each.choice],
            "probability": 1.0 if each.choice is None else each.p[each.choice],
            "names": names,
            "probabilities": each.p,
            "default": None if each.default is None else str(each.default),
            "context": data.context,
            "arms": data.arms,
            "mean": each.mean,
            "version": data.version,
            "learner": data.learner[0],
            "status": "missing",
            "reward": None,
            "late": 0,
            "metrics": [],
            "spend": {name: spend.told(None) for name, spend in data.spend.items()},
        }
        for each in positions(data)
    ]


def _cancelled(new: dict[RowKey, dict[str, Any]], left: OpenDecision | None) -> None:
    """Return what was cancelled before it was decided."""
    for (_, place), row in new.items():
        if left is None or place not in left.places:
            row["status"] = "cancelled"


def _note(
    found: dict[RowKey, dict[str, Any]], event: Event, about: list[RowKey], word: str
) -> None:
    """Return what an event says of an earlier decision, whose positions `about` were open."""
    said = event.read()
    place = said.position
    if event.kind == "cancel" and word == "cancelled":
        for row in about:
            if place is None or row[1] == place:
                found[row]["status"] = "cancelled"
        return
    seq = about[0][0] if about else said.of or 0
    row = seq, place
    if row in found and event.kind == "metric":
        found[row]["metrics"].append({"name": said.name, "value": said.value})
        if said.name in found[row]["spend"]:
            found[row]["spend"][said.name]["bill"] = said.value
    elif word == "late" and event.kind == "reward" and _knows_rival(found, said):
        for each in _said_of(found, seq, place):
            each["late"] += 1


def _knows_rival(found: dict[RowKey, dict[str, Any]], said: RewardGiven) -> bool:
    """Return whether windows that began late can tell if a comparison was late: they cannot if the
    other decision is older than they are."""
    return said.over is None or (said.lost, None) in found


def _still_open(
    found: dict[RowKey, dict[str, Any]], windows: RewardWindows, compared: dict[int, list[float]]
) -> None:
    for decision in windows.open.values():
        if windows.wait and decision.rivals:  # not trained yet
            compared[decision.seq] += [rival.won for rival in decision.rivals.values()]
        for place, value in (decision.values or {None: None}).items():
            _mark(found, decision.seq, place, "open", value)


def _compared(found: dict[RowKey, dict[str, Any]], compared: dict[int, list[float]]) -> None:
    """Say which part of its comparisons a decision won. One that is open stays open."""
    for seq, won in compared.items():
        row = found.get((seq, None))
        if row is not None:
            status = "trained" if row["status"] == "missing" else row["status"]
            row |= {"status": status, "reward": sum(won) / len(won)}


def _mark(
    found: dict[RowKey, dict[str, Any]], seq: int, place: Position, status: str, value: float | None
) -> None:
    """Say what became of a decision. A pair has one value: 1 if its first arm was preferred, which
    is 0 for the second."""
    for row in _said_of(found, seq, place):
        other = place is None and row["position"] == 1
        row |= {"status": status, "reward": 1.0 - value if other and value is not None else value}


def _said_of(
    found: dict[RowKey, dict[str, Any]], seq: int, place: Position
) -> list[dict[str, Any]]:
    """Return the rows that a reward is about: one, or both of a pair."""
    keys = [(seq, place)] if place is not None else [(seq, None), (seq, 0), (seq, 1)]
    return [found[key] for key in keys if key in found]
