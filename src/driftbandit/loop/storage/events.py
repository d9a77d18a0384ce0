"""Events: the facts of a loop, in one gap-free order.

| kind | id | payload |
|---|---|---|
| declare | | features, reward, policy and what else never changes |
| configure | | exploration, mode, holdout and guard, as they are from here on |
| add_features | | the features from here on |
| decide | decision | request, probabilities, choices, and how far the learner was |
| reward | decision | value, whether it was clipped, `of`: the decision's seq if there was one |
| cancel | decision | `of` |
| metric | decision | name, value, `of` |
| shadow | | a candidate: name, features, policy, exploration; `history`: it learnt the past first |
| retire | | the candidate's name; settings from here on |
| promote | | name, over which policy, whether it was forced, the evidence; settings from here on |
| demote | | the evidence by which the guard let the default take over |
| arm | | an arm of the catalogue: added with its columns, paused, resumed or retired |
| recount | | nothing: what an earlier version had compared is discarded |
| advance | | nothing: `at` is the time up to which windows are closed |
| leap | | nothing: `at` is a reading of the clock that is too far off to be believed at once |
| repair | | `by`: "loop" or "user"; `at` is the time from here on |
| checkpoint | | what the learner was like; its numbers are stored beside the event |
| erase | | how many events were blanked, and which |
| chain | | nothing: here the chain of a ledger of version 0.2 begins |
| anchor | | what was before is gone: the first event that is kept, the link that it goes on from |

A payload is JSON with a version `v`. Version 1 is that of driftbandit 0.2: its words are read as
today's (`_upgraded`), and what is stored is never rewritten.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NoReturn

import msgspec
import numpy as np
from msgspec import Struct

from driftbandit import validate
from driftbandit.loop.errors import LedgerError

LIVE, DEFAULT = "live", "default"  # policies that candidates are compared with
VERSION = 2  # of payloads that are written
FORMER = {"set": "configure", "grow": "add_features"}  # kinds of version 1
CHANGES = ("add_features", "shadow", "retire", "promote", "demote", "recount")  # of learners, too
LASTING = ("declare", "configure", "arm", *CHANGES)  # kept when older events are dropped
UNCOUNTED = ("checkpoint", "chain", "anchor")  # they say nothing of decisions and rewards
SILENT = (*LASTING, *UNCOUNTED, "erase")  # their `at` says nothing of the time of decisions


class Spend(Struct, array_like=True):
    """What a budget had to do with a decision: the price that it was made at, the bound on the mean
    cost, and what every arm was expected to cost. For a total: what was `left` of it if arms that
    cost more are not played, the length of a period in seconds, and the time of the question. The
    number of the `rule` says how the price goes on from there (`state.accounts`)."""

    price: float
    bound: float
    costs: list[float]
    left: float | None = None
    per: float | None = None
    at: float | None = None
    rule: int = 1

    def told(self, bill: float | None) -> dict[str, Any]:
        """Return it for a log, with the bill, if it came."""
        found = {"price": self.price, "bound": self.bound, "costs": self.costs}
        return {**found, "left": self.left, "rule": self.rule, "bill": bill}


class Bill(Struct, array_like=True):
    """The arm that a bill is for, the cost that the caller stated, what was counted before, and
    whether that was a bill, too, which this one takes the place of."""

    arm: str | int
    stated: float
    counted: float
    billed: bool = False


SPENT = '{"spend":'  # how the payload of a decision with a budget begins: light readers need it


class Decide(Struct, omit_defaults=True):
    """A decision: what was asked and answered, and all it takes to answer again. `choices`, `p`
    and `means` have an entry for each position, one where the decision is not a slate. `spend` has
    the budgets by name, `priced` the seq of the event that their prices follow from."""

    context: dict[str, Any]
    names: list[str | int]
    arms: list[dict[str, Any]]
    choices: list[int | None]  # None: there was no arm, so the default is returned
    p: list[list[float]]
    means: list[float | None]
    role: str
    version: str  # of the features and the policy
    settings: int  # seq of the event that set them
    learner: tuple[int, int, float]  # seq and examples that it knew, seconds by which it was aged
    default: str | int | list[str | int] | None = None
    k: int | None = None
    trial: dict[str, tuple[float, list[float]]] = {}
    spend: dict[str, Spend] = {}
    priced: int = 0

    def is_whole(self) -> bool:
        """Return whether the parts fit together."""
        n, names = len(self.choices), len(self.names)
        defaults = self.default if isinstance(self.default, list) else [self.default]
        return (
            n == len(self.p) == len(self.means) == (self.k or 1)
            and names == len(self.arms)
            and all(each is None or 0 <= each < names for each in self.choices)
            and all(len(each) == names for each in self.p)
            and (isinstance(self.default, list) is (self.k is not None) or self.default is None)
            and (names == 0 or all(each is None or each in self.names for each in defaults))
        )


class RewardGiven(Struct, omit_defaults=True):
    """What a decision gave. `of` is the decision's seq, None if it is not there yet. `late`: it is
    from after the decision's window, which no advance has closed yet. Of a pair, in a loop that
    learns from preferences, `value` is 1 if the first arm was preferred and 0 if the second was.
    Of two decisions, it is 1 for the one that was preferred `over` the other one with seq `lost`.
    """

    value: float
    clipped: bool
    of: int | None = None
    position: int | None = None
    late: bool = False
    over: str | None = None
    lost: int | None = None


class Cancel(Struct, omit_defaults=True):
    """The decision, or a position of it, was never shown; `unspent` by budget is given back."""

    of: int | None = None
    position: int | None = None
    unspent: dict[str, float] = {}


class Metric(Struct, omit_defaults=True):
    """Another number about a decision."""

    name: str
    value: float
    of: int | None = None
    position: int | None = None
    bill: Bill | None = None  # if it is the cost of a budget


ClockState = tuple[float | None, float | None, float, float | None]  # `state.clock.LoopClock`


class Checkpoint(Struct):
    """Where in the log the learner was (`state.reward_windows.Mark`), and what it was like."""

    mark: tuple[int, int, float | None, ClockState, dict[str, int]]
    learner: dict[str, Any]
    panel: dict[str, Any] | None = None  # candidates and comparisons
    size: int | None = None  # bytes of the live learner; the candidates' follow
    accounts: dict[str, Any] | None = None  # of budgets
    whole: str | None = None  # digest of all these bytes


class Retire(Struct):
    name: str
    settings: dict[str, Any]


class Promote(Struct):
    name: str
    over: str
    forced: bool
    evidence: dict[str, Any]
    settings: dict[str, Any]


class Erase(Struct):
    events: int
    relearn: bool
    seqs: list[int] = []  # which they were; version 0.2 did not say


class Anchor(Struct):
    """Where the kept part of a chain begins; `kept` is a digest of lasting events before it."""

    start: int
    link: str | None
    kept: str


class Repair(Struct):
    """Who has set the clock: the "loop" by itself, or a "user"."""

    by: str


class AddFeatures(Struct):
    features: dict[str, Any]


class ArmChange(Struct, omit_defaults=True):
    """What became of an arm of the catalogue: "add", "pause", "resume" or "retire"."""

    name: str
    change: str
    columns: dict[str, Any] | None = None


PAYLOADS: dict[str, Any] = {
    "decide": Decide,
    "reward": RewardGiven,
    "cancel": Cancel,
    "metric": Metric,
    "checkpoint": Checkpoint,
    "retire": Retire,
    "promote": Promote,
    "erase": Erase,
    "repair": Repair,
    "anchor": Anchor,
    "add_features": AddFeatures,
    "arm": ArmChange,
}  # others are mappings: recipes, evidence, nothing

# What reading raises if the text, or a payload of version 1, is not what was stored.
DAMAGE = (
    msgspec.MsgspecError,
    UnicodeError,
    RecursionError,
    TypeError,
    AttributeError,
    LookupError,
)
_decoders = {kind: msgspec.json.Decoder(type_) for kind, type_ in PAYLOADS.items()}
_mapping = msgspec.json.Decoder(dict[str, Any])
_encoder = msgspec.json.Encoder()


class Event(Struct):
    """One fact. Only `seq` orders; `at` (seconds since the epoch) is data. `k` is the size of a
    slate, `v` the version of the payload."""

    seq: int
    kind: str
    at: float
    id: str | None = None
    key: str | None = None
    data: str = "{}"  # JSON
    k: int | None = None
    v: int = VERSION

    @property
    def blank(self) -> Event:
        """What is left of it when it is erased."""
        return Event(self.seq, "erased", self.at)

    def read(self) -> Any:
        """Return the payload: the type that `PAYLOADS` has for this kind, or a mapping."""
        try:
            if self.v < VERSION:
                raw = _upgraded(self.kind, _mapping.decode(self.data))
                said = msgspec.convert(raw, PAYLOADS.get(self.kind, dict[str, Any]))
            else:
                said = _decoders.get(self.kind, _mapping).decode(self.data)
            if self.kind != "decide" or said.is_whole():
                return said
        except DAMAGE:
            pass
        raise LedgerError(f"event {self.seq} is damaged: restore the ledger from a copy")


def event(
    seq: int, kind: str, at: float, id: str | None, key: str | None, data: str, k: Any, v: int
) -> Event:
    """Return an event as a store has it, with today's word for its kind."""
    return Event(seq, FORMER.get(kind, kind), at, id, key, data, k, v)


def _upgraded(kind: str, data: dict[str, Any]) -> dict[str, Any]:
    """Return a payload of version 1 in the words of version 2."""
    if kind == "decide":
        alone = "k" not in data
        for new, old in (("choices", "choice"), ("p", "p"), ("means", "mean")):
            data[new] = [data[old]] if alone else data[old]
        if data["role"] == LIVE:
            data["role"] = "active"
    if kind == "checkpoint":
        for each in (data["learner"], *(data.get("panel") or {}).get("candidates", ())):
            each["examples"] = each.pop("lessons")
        data["mark"][3] = [data["mark"][3], None, 0.0, None]  # only the time was known
        counts = data["mark"][4]
        data["mark"][4] = {FORMER.get(name, name): n for name, n in counts.items()}
    return data


def encode_spend(spend: Mapping[str, Spend]) -> str:
    """Return the JSON of budgets, whose numbers are finite: null stands for nothing there."""
    return _encoder.encode(spend).decode()


def encode(payload: Any) -> str:
    """Return JSON that reads back to the same numbers and text; infinite numbers raise."""
    try:
        text = _encoder.encode(payload)
        if b"null" in text:  # which is what msgspec makes of infinity, too
            text = _encoder.encode(plain(msgspec.to_builtins(payload)))
    except UnicodeEncodeError:
        raise ValueError("text must be valid Unicode, without lone surrogates") from None
    except OverflowError:
        raise ValueError("whole numbers must have at most 64 bits: pass them as text") from None
    return text.decode()


DEPTH = 32  # lists and mappings inside each other: all who read a payload can follow that far
PLAIN = {str, int, float, bool, type(None)}
SLICE = 1000  # values that are looked at in one step


def plain_columns(columns: Any) -> Any:
    """Return raw columns by name as JSON knows them. Columns that are plain already are returned as
    they are, and so is what is no mapping: the features refuse it."""
    if type(columns) is dict and PLAIN.issuperset(map(type, columns.values())):
        return columns
    return plain(columns, DEPTH) if isinstance(columns, Mapping) else columns


def plain(value: Any, depth: int = DEPTH + 8) -> Any:
    """Return raw values as JSON knows them; missing numbers are None. `depth` is how deep they may
    be nested: by default, as columns inside a payload may be."""
    if depth == 0:
        raise ValueError(f"columns must be nested less than {DEPTH} deep: pass flat ones")
    if isinstance(value, Mapping):
        return {_name(k): plain(v, depth - 1) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        is_plain = depth > 1 and _is_plain(value)  # as most are, and they may be long
        return list(value) if is_plain else [plain(v, depth - 1) for v in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist(), depth)
    if isinstance(value, np.floating):  # the item of a long double is a long double again
        return _finite(float(value))
    if isinstance(value, np.generic):
        return plain(value.item())
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, (int, str)):  # of a subclass such as an Enum, what it stands for
        return int(value) if isinstance(value, int) else str.__str__(value)
    if isinstance(value, float):
        return _finite(value)
    return _odd(value)


def _is_plain(values: list[Any] | tuple[Any, ...]) -> bool:
    """Return whether values are as JSON knows them, without looking into each in Python. A slice is
    one step, in which no other thread computes, so a list of a megabyte has many."""
    kinds = set[type]()
    for k in range(0, len(values), SLICE):
        part = values[k : k + SLICE]
        kinds.update(map(type, part))
        if float in kinds and not (kinds == {float} and all(map(math.isfinite, part))):
            return False
    return float in kinds or kinds <= PLAIN


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
