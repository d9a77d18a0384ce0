"""What people read, over the wire: health, the dashboard, reasons and evaluations."""

from __future__ import annotations

from typing import Any

from msgspec import Struct


class Health(Struct):
    """How a loop is doing."""

    name: str
    mode: str
    policy: str
    counts: dict[str, int]
    waiting: int  # examples that are not trained yet
    behind: float  # seconds that the oldest of them has waited
    report: dict[str, Any]  # of the latest events, as `Loop.health` has it


class Point(Struct):
    """What a loop was like when somebody looked."""

    at: float
    memory: float | None  # rewards that the estimate rests on
    exploration: float
    missing: float
    behind: float  # seconds


class Shown(Struct, omit_defaults=True):
    """A decision, or a position of a slate, with what spoke most for it and against the
    runner-up."""

    id: str
    at: float
    role: str
    position: int | None
    arm: str | int
    probability: float
    runner_up: str | int | None = None
    lead: float | None = None
    terms: dict[str, float] = {}


class Overview(Struct):
    """What the dashboard shows: health, in which `changed` is what changed `since` then, what it
    was while somebody watched, and the latest decisions of that time."""

    health: Health
    since: float | None
    history: list[Point]
    latest: list[Shown]


class Why(Struct):
    """Why an arm was chosen: its lead over the runner-up, by named columns."""

    id: str
    logged: list[float]  # probabilities
    computed: list[float]  # the same from the log
    agrees: bool
    arm: str | int | None
    runner_up: str | int | None
    lead: float | None
    terms: dict[str, float]


class Evaluated(Struct):
    """What live, default and uniform choices are worth on the log, as `evaluate` has it. Positions
    of slates are left out."""

    name: str
    rows: int
    slates: int
    report: dict[str, Any]
