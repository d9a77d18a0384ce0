"""Requests and answers as types. Those about a value of the library are derived from its fields."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from datetime import datetime
from typing import Any, get_type_hints

from msgspec import Raw, Struct, defstruct, field

from driftbandit.loop.candidates.comparison import Comparison, Lead, Loss, Standing
from driftbandit.loop.candidates.lost_rewards import ArmLoss
from driftbandit.loop.deciding.types import Name
from driftbandit.loop.state.definition import Shadow

At = float | datetime | None  # seconds since the epoch, or a time with its zone
# columns by name or in a list; or names of arms of the catalogue; or nothing: all of these
Arms = dict[str, dict[str, Any]] | list[dict[str, Any] | str] | None
Number = float | None  # JSON has neither infinity nor NaN: they are null


def derived(name: str, kind: Any, doc: str, **types: Any) -> Any:
    """Return a message with the fields of a dataclass or NamedTuple, and `types` that replace
    theirs or stand after them."""
    hints = get_type_hints(kind)
    own = kind._fields if hasattr(kind, "_fields") else [f.name for f in dataclasses.fields(kind)]
    found = {each: Number if hints[each] is float else hints[each] for each in own} | types
    made = defstruct(name, list(found.items()), module=__name__)
    made.__doc__ = doc
    return made


def filled(kind: Any, value: Any, **more: Any) -> Any:
    """Return a message of this kind with what a value has under the names of its fields."""
    names = [name for name in kind.__struct_fields__ if name not in more]
    return kind(**{name: getattr(value, name) for name in names}, **more)


# ---- decisions and rewards


class DecisionRequest(Struct, forbid_unknown_fields=True):
    """A decision to make, or with `k` a slate, whose default is a list. If you give it an id, you
    can repeat the call."""

    context: dict[str, Any]
    arms: Arms = None
    id: str | None = None
    key: str | None = None
    default: Name | list[Name] | None = None
    at: At = None
    k: int | None = None


class FallbackRecord(Struct, forbid_unknown_fields=True):
    """A decision that the client made: its default was played, with probability 1."""

    context: dict[str, Any]
    id: str
    default: Name | list[Name]
    arms: Arms = None
    key: str | None = None
    at: At = None
    k: int | None = None


class DecisionBatch(Struct, forbid_unknown_fields=True):
    """Many decisions; each is made or refused on its own."""

    decisions: list[DecisionRequest]


class FallbackBatch(Struct, forbid_unknown_fields=True):
    """Many decisions that a client made; each is recorded or refused on its own."""

    decisions: list[FallbackRecord]


class Parts(Struct, forbid_unknown_fields=True):
    """A batch whose decisions are not read yet: they are read some at a time."""

    decisions: list[Raw]


class RewardRequest(Struct, forbid_unknown_fields=True):
    """What a decision gave, or a position of a slate, from 0."""

    value: float
    at: At = None
    position: int | None = None


class PreferenceRequest(Struct, forbid_unknown_fields=True):
    """Which of two arms was better. Of a pair, that at `position` 0 or 1; or the one of this
    decision rather than that of the decision `over`, which played one arm, too."""

    position: int | None = None
    over: str | None = None
    at: At = None


class MetricRequest(Struct, forbid_unknown_fields=True):
    """Another number about a decision, or about a position of a slate."""

    value: float
    at: At = None
    position: int | None = None


class ServedPosition(Struct):
    """A position of a slate: probabilities are given the arms before it."""

    arm: Name
    probability: float
    probabilities: dict[str, float]


class DecisionResponse(Struct, omit_defaults=True):
    """A decision. A slate has `places` in order, and no arm of its own."""

    id: str
    arm: Name | None
    probability: float
    probabilities: dict[str, float]
    role: str
    places: Sequence[ServedPosition] = ()


class OutcomeResponse(Struct):
    """What became of a reward, a preference or a cancel: counted, corrected, cancelled, late, held,
    unknown; a metric is recorded or unknown."""

    outcome: str


# ---- problems


class FieldDifference(Struct):
    """A field that was declared otherwise."""

    field: str
    declared: Any
    given: Any


LeadInfo = derived(
    "LeadInfo",
    Lead,
    "The first policy's mean minus the second's, with bounds that hold at every moment. `better` "
    "is 1 for the first, -1 for the second, 0 if the log does not tell yet; `more` is about how "
    "many rows that takes, null if rows like those before never will. Each bound holds with "
    "confidence `level`; `recent` is -1 if the latest rows speak against the first; `worst` is by "
    "how much the first may be worse, at most.",
)


class ProblemDetails(Struct, omit_defaults=True):
    """What went wrong, as RFC 9457 has it; `detail` names the remedy."""

    title: str
    status: int
    detail: str
    difference: Sequence[FieldDifference] = ()
    leads: Sequence[LeadInfo] = ()  # type: ignore[valid-type]  # of a refused promotion


class BatchEntry(Struct, omit_defaults=True):
    """A decision of a batch, or why there is none."""

    decision: DecisionResponse | None = None
    problem: ProblemDetails | None = None


class BatchResponse(Struct):
    """In the order in which decisions were asked for."""

    decisions: list[BatchEntry]


class RecordEntry(Struct, omit_defaults=True):
    """recorded; cancelled if the loop had chosen another arm under this id; or the problem."""

    outcome: str | None = None
    problem: ProblemDetails | None = None


class RecordsResponse(Struct):
    """In the order in which decisions were sent."""

    decisions: list[RecordEntry]


# ---- flags, as OpenFeature names them


class FlagRequest(Struct):
    """What to evaluate a flag for: `targetingKey` (whose decision it is), `defaultVariant` (the
    arm to play if the loop does not choose), and columns of the context by name."""

    context: dict[str, Any] = {}


class FlagEvaluation(Struct):
    """A decision as a flag's value: the arm. `metadata` has its id, for the reward, its propensity,
    its role, and as `ignored` the attributes that are no columns of the loop."""

    key: str
    value: Name
    variant: Name
    reason: str
    metadata: dict[str, str | float]


class FlagFailure(Struct):
    """Why there is no value, by the codes of OpenFeature."""

    key: str
    error_code: str = field(name="errorCode")
    error_details: str = field(name="errorDetails")


class ListedFlag(Struct, omit_defaults=True):
    """A flag with the fields of its evaluation, or with those of its failure."""

    key: str
    value: Name | None = None
    variant: Name | None = None
    reason: str | None = None
    metadata: dict[str, str | float] = {}
    error_code: str | None = field(default=None, name="errorCode")
    error_details: str | None = field(default=None, name="errorDetails")


class FlagList(Struct):
    """All flags, each with its value or with the reason why it has none."""

    flags: list[ListedFlag]


class FlagListFailure(Struct):
    """Why no flag was evaluated, by the codes of OpenFeature."""

    error_code: str = field(name="errorCode")
    error_details: str = field(name="errorDetails")


# ---- loops


class LoopList(Struct):
    """Names of the loops that are declared."""

    loops: list[str]


class LoopInfo(Struct):
    """A loop as it is declared, and how it decides now."""

    name: str
    declaration: dict[str, Any]
    settings: dict[str, Any]
    version: str  # of the features


class ServiceStatus(Struct):
    """Whether the service is up."""

    status: str


# ---- arms of the catalogue


class ArmDeclaration(Struct, forbid_unknown_fields=True):
    """An arm: its columns by name."""

    columns: dict[str, Any] = {}


class ArmState(Struct, forbid_unknown_fields=True):
    """Whether an arm is taken off offer."""

    paused: bool


class ArmInfo(Struct):
    """An arm of the catalogue."""

    name: str
    columns: dict[str, Any]
    paused: bool


class ArmList(Struct):
    """The arms of the catalogue, in the order in which they were added."""

    arms: list[ArmInfo]


# ---- candidates


class ErasureRequest(Struct, forbid_unknown_fields=True):
    """Whose data shall be erased. With `relearn` the learner is trained again without them."""

    key: str
    relearn: bool = False


class ErasureResponse(Struct):
    """What is gone: `events` of which `decisions` were about the key."""

    events: int
    decisions: int
    relearned: bool


class RepairRequest(Struct, forbid_unknown_fields=True):
    """The time that it is, where events are the clock of a loop; else nothing."""

    at: At = None


class RepairResponse(Struct):
    """The time of the loop from now on."""

    at: float


class TrialRequest(Struct, forbid_unknown_fields=True):
    """The share of decisions that a candidate has from now on; 0 ends its trial. `effect` is the
    gain that is planned for, as a part of the live policy's reward."""

    share: float
    effect: float | None = None


class PromotionRequest(Struct, forbid_unknown_fields=True):
    """The policy that shall act: a candidate, or "live" again after a demotion. `expected_live` is
    the policy that acts now, live or default, as a check; `force` needs no proof. `not_worse` names
    metrics of the guard, and by how much the policy may be worse in each, in its unit."""

    candidate: str
    expected_live: str | None = None
    force: bool = False
    not_worse: dict[str, float] | None = None


CandidateInfo = derived(
    "CandidateInfo",
    Shadow,
    "A candidate as it was declared, and its share of decisions: 0 for a shadow. If it has no "
    "exploration, it explores as the loop does.",
    features=dict[str, Any],
    policy=dict[str, Any],
    half_life=float | str | None,
    exploration=dict[str, Any] | None,
    share=float,
)


class CandidateList(Struct):
    """The policy that acts ("live", the name of a promoted candidate, or "default"), and the
    candidates."""

    acts: str
    candidates: list[CandidateInfo]  # type: ignore[valid-type]


StandingInfo = derived(
    "StandingInfo", Standing, "A mean reward with its confidence sequence, and the rows behind it."
)
LossInfo = derived(
    "LossInfo",
    Loss,
    "Decisions without an example (`why`: cancelled, missing or late) come from the first policy "
    "`often`: more or less often than from the second.",
)
ArmLossInfo = derived(
    "ArmLossInfo",
    ArmLoss,
    "Decisions without an example (`why`: cancelled, missing or late) are those of an arm `often`: "
    "more or less often than its probabilities say.",
)
ComparisonResponse = derived(
    "ComparisonResponse",
    Comparison,
    "How candidates compare with the live policy and the default, in numbers and in words; in "
    '`acting`, `values` and `leads` a promoted candidate is "live".',
    values=dict[str, StandingInfo],  # type: ignore[valid-type]
    leads=list[LeadInfo],  # type: ignore[valid-type]
    losses=list[LossInfo],  # type: ignore[valid-type]
    arm_losses=list[ArmLossInfo],  # type: ignore[valid-type]
    words=list[str],
)


# ---- reports


class HealthResponse(Struct):
    """How a loop is doing."""

    name: str
    mode: str
    policy: str
    counts: dict[str, int]
    waiting: int  # examples that are not trained yet
    behind: float  # seconds that the oldest of them has waited
    report: dict[str, Any]  # of the latest events, as `Loop.health` has it


class HistoryPoint(Struct):
    """What a loop was like when a view was made."""

    at: float
    memory: float | None  # rewards that the estimate rests on
    exploration_share: float
    missing: float
    behind: float  # seconds
    state: str | None  # how AutoDOMD sees its world


class RecentDecision(Struct, omit_defaults=True):
    """A decision, or a position of a slate, with what spoke most for it and against the
    runner-up."""

    id: str
    at: float
    role: str
    position: int | None
    arm: Name
    probability: float
    runner_up: Name | None = None
    lead: float | None = None
    terms: dict[str, float] = {}
    bonus: float | None = None  # how much larger its exploration bonus is than the runner-up's
    costs: dict[str, float] = {}  # by budget: what a lower cost adds to the lead


class Overview(Struct):
    """What the dashboard shows: health, in which `changed` is what changed `since` then, its
    history while a dashboard was open, the changes that were detected and the latest decisions of
    that time."""

    health: HealthResponse
    since: float | None
    detected: list[float]  # when AutoDOMD's state became "just changed"
    happened: list[float]  # when the environment truly changed, which only a demo knows
    history: list[HistoryPoint]
    latest: list[RecentDecision]


class ExplanationResponse(Struct):
    """Why an arm was chosen: its lead over the runner-up, by named columns, and by budget what a
    lower cost adds to it, as a part of the reward's range."""

    id: str
    logged: list[float]  # probabilities
    computed: list[float]  # the same from the log
    agrees: bool
    arm: Name | None
    runner_up: Name | None
    lead: float | None
    terms: dict[str, float]
    costs: dict[str, float]
    bonus: float | None = None


class EvaluationResponse(Struct):
    """What live, default and uniform choices are worth on the log, as `evaluate` has it. Positions
    of slates are left out."""

    name: str
    rows: int
    slates: int
    report: dict[str, Any]
