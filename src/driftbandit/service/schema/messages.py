"""What goes over the wire, in both directions. The OpenAPI document is made from these."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from msgspec import Struct

from driftbandit.service.schema.candidate_messages import Lead

At = float | datetime | None  # seconds since the epoch, or a time with its zone
Duration = float | str | None  # seconds, or text such as "30min"


class Declared(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """What a loop is. A new one needs features and reward; what is left out stays as it is."""

    features: dict[str, Any] | None = None
    reward: dict[str, Any] | None = None
    policy: str | dict[str, Any] | None = None
    exploration: float | dict[str, Any] | None = None
    mode: str | None = None
    holdout: float | None = None
    guard: dict[str, Any] | bool | None = None
    half_life: Duration = None
    retention: Duration = None
    key: str | None = None
    seed: int | None = None
    clock: str | None = None


class Changes(Struct, forbid_unknown_fields=True):
    """How decisions are made from now on."""

    exploration: float | dict[str, Any] | None = None
    mode: str | None = None
    holdout: float | None = None
    guard: dict[str, Any] | bool | None = None


class Ask(Struct, forbid_unknown_fields=True):
    """A decision to make, or with `k` a slate, whose default is a list. With an id of one's own the
    call can be repeated."""

    context: dict[str, Any]
    arms: dict[str, dict[str, Any]] | list[dict[str, Any]]
    id: str | None = None
    key: str | None = None
    default: str | int | list[str | int] | None = None
    at: At = None
    k: int | None = None


class Batch(Struct, forbid_unknown_fields=True):
    """Many decisions; each is made or refused on its own."""

    decisions: list[Ask]


class Record(Struct, forbid_unknown_fields=True):
    """A decision that was made elsewhere: its default was played, with probability 1."""

    context: dict[str, Any]
    arms: dict[str, dict[str, Any]] | list[dict[str, Any]]
    id: str
    default: str | int | list[str | int]
    key: str | None = None
    at: At = None
    k: int | None = None


class Records(Struct, forbid_unknown_fields=True):
    """Many of them; each is recorded or refused on its own."""

    decisions: list[Record]


class Rewarded(Struct, forbid_unknown_fields=True):
    """What a decision gave, or a position of a slate, from 0."""

    value: float
    at: At = None
    position: int | None = None


class Place(Struct):
    """A position of a slate: probabilities are given the arms before it."""

    arm: str | int
    probability: float
    probabilities: dict[str, float]


class Made(Struct, omit_defaults=True):
    """A decision. A slate has `places` in order, and no arm of its own."""

    id: str
    arm: str | int | None
    probability: float
    probabilities: dict[str, float]
    role: str
    places: list[Place] = []


class Difference(Struct):
    """A field that was declared otherwise."""

    field: str
    declared: Any
    given: Any


class Problem(Struct, omit_defaults=True):
    """What went wrong, as RFC 9457 has it; `detail` names the remedy."""

    title: str
    status: int
    detail: str
    difference: list[Difference] = []
    leads: list[Lead] = []  # what is known, where a promotion is refused


class MadeOrNot(Struct, omit_defaults=True):
    """A decision of a batch, or why there is none."""

    made: Made | None = None
    problem: Problem | None = None


class MadeBatch(Struct):
    """In the order in which decisions were asked for."""

    decisions: list[MadeOrNot]


class Outcome(Struct):
    """What became of a reward or a cancel: counted, corrected, cancelled, late, held, unknown."""

    outcome: str


class RecordedOrNot(Struct, omit_defaults=True):
    """recorded, or cancelled where the loop had chosen otherwise under this id; or why not."""

    outcome: str | None = None
    problem: Problem | None = None


class Recorded(Struct):
    """In the order in which decisions were sent."""

    decisions: list[RecordedOrNot]


class Loops(Struct):
    """Names of the loops that are declared."""

    loops: list[str]


class LoopInfo(Struct):
    """A loop as it is declared, and how it decides now."""

    name: str
    declaration: dict[str, Any]
    settings: dict[str, Any]
    version: str  # of the features


class Status(Struct):
    """Whether the service is up."""

    status: str
