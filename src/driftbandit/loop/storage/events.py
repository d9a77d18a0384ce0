"""Events: the facts of a loop, in one gap-free order.

| kind | id | data |
|---|---|---|
| declare | | features, reward, policy and what else never changes |
| set | | rule, mode and holdout, as they are from here on |
| grow | | the features from here on |
| decide | decision | context, arms, probabilities, choice, and how far the learner was |
| reward | decision | value, whether it was clipped, `of`: the decision's seq if there was one |
| cancel | decision | `of` |
| metric | decision | name, value, `of` |
| shadow | | a candidate: name, features, policy, rule; `history`: it learnt the past first |
| retire | | the candidate's name; settings from here on |
| promote | | name, over whom, whether it was forced, the evidence; settings from here on |
| demote | | the evidence by which the guard let the default take over |
| advance | | nothing: `at` is the time up to which windows are closed |
| checkpoint | | what the learner was like; its numbers are stored beside the event |
| erase | | how many decisions were blanked |

The data of a slate begin with `k`, its positions, and have a choice and probabilities for each.
What is said of one of them has its `position`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, NamedTuple, NoReturn

import numpy as np

from driftbandit import validate

LIVE, DEFAULT = "live", "default"  # who acts, where candidates are compared with them
CHANGES = ("grow", "shadow", "retire", "promote", "demote")  # they change learners, as examples do
FOREVER = ("declare", "set", *CHANGES)  # kept when older events are dropped
SLATE = "k"
MARK = f'{{"{SLATE}":'  # the first letters of a slate's data
SILENT = (*FOREVER, "checkpoint", "erase")  # their `at` says nothing of the world's time

_compact = json.JSONEncoder(separators=(",", ":"), allow_nan=False, check_circular=False)


class LedgerError(ValueError):
    """The ledger cannot be read or written: the remedy is outside the program."""


class Event(NamedTuple):
    """One fact. Only `seq` orders; `at` (seconds since the epoch) is data."""

    seq: int
    kind: str
    at: float
    id: str | None = None
    key: str | None = None
    data: str = "{}"  # JSON

    @property
    def blank(self) -> Event:
        """What is left of it when it is erased."""
        return Event(self.seq, "erased", self.at)

    def read(self) -> dict[str, Any]:
        """The data."""
        try:
            found = json.loads(self.data)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise LedgerError(f"event {self.seq} is damaged: restore the ledger from a copy")
        return found


def decision_of(events: Mapping[int, Event], seq: int) -> Event:
    """The decision with this seq, among events that were read."""
    if seq not in events or events[seq].kind != "decide":
        raise LedgerError(f"decision {seq} is not in the ledger: restore it from a copy")
    return events[seq]


def slate_size(event: Event) -> int | None:
    """Positions of a decision that is a slate. That shows in the first letters, so that books need
    not read what was decided."""
    return int(event.read()[SLATE]) if event.data.startswith(MARK) else None


def write(data: Mapping[str, Any]) -> str:
    """JSON that reads back to the same numbers and text."""
    try:
        return _compact.encode(data)
    except (TypeError, ValueError):  # numbers of NumPy, NaN: rare, and slower to write
        return _compact.encode(plain(data))


def plain(value: Any) -> Any:
    """Raw values as JSON knows them; missing numbers are null."""
    if isinstance(value, Mapping):
        return {_name(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return _finite(value)
    return _odd(value)


def _name(key: Any) -> str:
    if not isinstance(key, str):
        raise ValueError(f"a column's name must be text, got {validate.show(key)}")
    return key


def _finite(value: float) -> float | None:
    if math.isinf(value):
        raise ValueError("a column's value must not be infinite: pass None where it is unknown")
    return None if math.isnan(value) else float(value)


def _odd(value: Any) -> Any:
    """pandas' missing values, and what counts as a number elsewhere (Decimal, Fraction)."""
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    clean = validate.real(value)
    if math.isnan(clean):
        _refuse(value)
    return _finite(clean)


def _refuse(value: Any) -> NoReturn:
    raise ValueError(
        f"values must be numbers, text, flags, lists or None, got {validate.show(value)}: convert "
        "it first, with str() for example"
    )
