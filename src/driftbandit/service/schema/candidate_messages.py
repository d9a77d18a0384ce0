"""What goes over the wire about candidates, in both directions."""

from __future__ import annotations

from typing import Any

from msgspec import Struct


class Proposed(Struct, forbid_unknown_fields=True):
    """What a candidate has of its own; the rest is as the live policy has it. `half_life` belongs
    to a policy. It first learns what the log has, unless `history` is false."""

    features: dict[str, Any] | None = None
    policy: str | dict[str, Any] | None = None
    exploration: float | dict[str, Any] | None = None
    half_life: float | str | None = None
    history: bool | None = None


class Trial(Struct, forbid_unknown_fields=True):
    """The share of decisions that a candidate has from now on; 0 ends its trial."""

    share: float


class Promotion(Struct, forbid_unknown_fields=True):
    """Who shall act: a candidate, or "live" again after a demotion. `expected_live` is who acts
    now, live or default, as a check; `force` needs no proof."""

    candidate: str
    expected_live: str | None = None
    force: bool = False


class Candidate(Struct):
    """A candidate as it was declared, and its share of decisions: 0 in the shadow. Without
    exploration it explores as the loop does."""

    name: str
    features: dict[str, Any]
    policy: dict[str, Any]
    half_life: float | str | None
    exploration: dict[str, Any] | None
    history: bool
    share: float


class Candidates(Struct):
    """Who acts, "live", the name of a promoted candidate or "default", and who would like to."""

    acts: str
    candidates: list[Candidate]


class Standing(Struct):
    """A mean reward with its confidence sequence, and the rows that it rests on."""

    value: float | None
    low: float | None
    high: float | None
    rows: int


class Lead(Struct):
    """The first one's mean minus the second's, with bounds that hold at every moment. `better` is 1
    for the first, -1 for the second, 0 if one cannot say; `more` are about the rows that takes,
    null if rows like those before never will."""

    first: str
    second: str
    metric: str | None
    value: float | None
    low: float | None
    high: float | None
    rows: int
    better: int
    more: float | None


class Compared(Struct):
    """How candidates stand against the live policy and the default, in numbers and in words; in
    `acting`, `values` and `leads` a promoted candidate is "live"."""

    acting: str
    level: float
    values: dict[str, Standing]
    leads: list[Lead]
    trials: dict[str, float]
    skipped: dict[str, int]
    unread: dict[str, int]
    words: list[str]
