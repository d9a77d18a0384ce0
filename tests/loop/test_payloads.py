"""Payloads of events: each type reads back as it was written, of old versions, too; what cannot be
stored exactly is refused before anything is stored."""

import json
import math
import random
import struct
from dataclasses import dataclass

import msgspec
import pytest

from driftbandit import DOMD, Category, Features, Loop, Number, Reward
from driftbandit.loop.errors import LedgerError
from driftbandit.loop.storage import events
from driftbandit.loop.storage.events import PAYLOADS, VERSION, Event, encode, event

COUNTS = {"decide": 3, "configure": 2, "add_features": 1}
EXAMPLES = {
    "decide": events.Decide(
        context={"age": 31, "country": "null", "vip": None},
        names=["a", 7],
        arms=[{"price": 9.5}, {}],
        choices=[1],
        p=[[0.1, 0.9]],
        means=[0.25],
        role="active",
        version="v1",
        settings=2,
        learner=(5, 3, 0.5),
        default="a",
        trial={"live": (0.0, [0.5, 0.5])},
    ),
    "reward": events.RewardGiven(1.0, False, 3, 1),
    "cancel": events.Cancel(3),
    "metric": events.Metric("revenue", 2.5),
    "checkpoint": events.Checkpoint(
        (9, 4, None, (12.5, None, 0.0, None), COUNTS),
        {"examples": 3},
        {"candidates": [{"examples": 2}]},
        80,
    ),
    "retire": events.Retire("wide", {"type": "Settings"}),
    "promote": events.Promote("wide", "live", True, {"low": 0.1}, {"type": "Settings"}),
    "repair": events.Repair("loop"),
    "erase": events.Erase(4, True, [3, 5, 6, 9]),
    "anchor": events.Anchor(7, "9f" * 32, "2c" * 32),
    "add_features": events.AddFeatures({"type": "Features"}),
    "arm": events.ArmChange("large", "add", {"price": 9.5, "type": "x"}),
}
VERSIONS = (1, VERSION)


def as_json(kind, v):
    """What a version of the library has stored for the example of a kind."""
    data = json.loads(encode(EXAMPLES[kind]))
    if v == 1 and kind == "decide":
        data["choice"], data["p"], data["mean"] = data.pop("choices")[0], data["p"][0], 0.25
        del data["means"]
        data["role"] = "live"
    if v == 1 and kind == "checkpoint":
        for each in (data["learner"], *data["panel"]["candidates"]):
            each["lessons"] = each.pop("examples")
        data["mark"][3:] = [12.5, {"decide": 3, "set": 2, "grow": 1}]
    return data


def stored(kind, data, v=VERSION):
    return Event(3, kind, 0.0, "x", None, data, None, v)


def test_there_is_an_example_of_every_type():
    assert EXAMPLES.keys() == PAYLOADS.keys()


@pytest.mark.parametrize("v", VERSIONS)
@pytest.mark.parametrize("kind", EXAMPLES)
def test_a_payload_of_any_version_reads_as_one_of_today(kind, v):
    again = stored(kind, json.dumps(as_json(kind, v)), v).read()
    assert type(again) is PAYLOADS[kind]
    assert again == EXAMPLES[kind]
    assert stored(kind, encode(again)).read() == again


def test_a_slate_of_version_1_reads_as_one_of_today():
    old = as_json("decide", 1) | {"k": 2, "default": None, "choice": [1, 0]}
    old |= {"p": [[0.1, 0.9], [1.0, 0.0]]}
    again = stored("decide", json.dumps(old | {"mean": [0.25, None]}), 1).read()
    assert (again.k, again.choices, again.means) == (2, [1, 0], [0.25, None])
    assert again.p == [[0.1, 0.9], [1.0, 0.0]]


def test_kinds_have_the_words_of_today():
    row = ("x", None, "{}", None, 1)
    assert [event(1, kind, 0.0, *row).kind for kind in ("set", "grow", "decide")] == [
        "configure",
        "add_features",
        "decide",
    ]


def test_kinds_without_a_type_are_mappings():
    for kind in ("declare", "configure", "shadow", "demote", "advance", "erased"):
        for v in VERSIONS:
            assert stored(kind, '{"a":[1,null]}', v).read() == {"a": [1, None]}
            with pytest.raises(LedgerError, match="event 3 is damaged"):
                stored(kind, "[1]", v).read()


def damages(kind, v):
    """What may become of a payload: cut, of another shape, a field lost or of another type."""
    fields = as_json(kind, v)
    whole = json.dumps(fields)
    yield from ("", "[1]", "null", "7", whole[:-1], whole + "}", "\ud800", '{"a":' * 100_000)
    optional = [f.name for f in msgspec.structs.fields(PAYLOADS[kind]) if not f.required]
    for name in fields.keys() - set(optional):
        yield json.dumps({k: value for k, value in fields.items() if k != name})
        other = 7 if isinstance(fields[name], (dict, list)) else {"": []}
        yield json.dumps(fields | {name: other})


@pytest.mark.parametrize("v", VERSIONS)
@pytest.mark.parametrize("kind", EXAMPLES)
def test_damage_is_an_error_that_names_the_event(kind, v):
    for data in damages(kind, v):
        with pytest.raises(LedgerError, match="event 3 is damaged: restore"):
            stored(kind, data, v).read()


def test_a_mark_of_version_1_that_is_too_short_is_damage():
    for mark in ([], [9, 4], None, "text!"):
        data = json.dumps(as_json("checkpoint", 1) | {"mark": mark})
        with pytest.raises(LedgerError, match="event 3 is damaged"):
            stored("checkpoint", data, 1).read()


def test_numbers_read_back_to_the_last_bit():
    rng = random.Random(0)
    numbers = [struct.unpack("<d", rng.randbytes(8))[0] for _ in range(5000)]
    numbers = [x for x in numbers if math.isfinite(x)] + [0.0, -0.0, 5e-324, 1e308, 0.1, 1e22]
    text = encode({"x": numbers})
    for again in (stored("configure", text).read()["x"], json.loads(text)["x"]):
        assert [struct.pack("<d", x) for x in again] == [struct.pack("<d", x) for x in numbers]


def test_missing_numbers_are_none_and_infinite_ones_are_refused():
    nan, inf = math.nan, math.inf
    text = encode({"a": nan, "b": [1.5, nan], "c": "null", "d": {"e": None}})
    assert stored("configure", text).read() == {
        "a": None,
        "b": [1.5, None],
        "c": "null",
        "d": {"e": None},
    }
    again = stored("metric", encode(events.Metric("m", 1e308)))
    assert again.read().value == 1e308
    for bad in ({"a": inf}, {"a": [nan, -inf]}, events.Metric("m", inf), {"a": {"b": -inf}}):
        with pytest.raises(ValueError, match="must not be infinite"):
            encode(bad)


# through a loop

FEATURES = Features(
    context={"age": Number(0, 100), "page": Category(size=8)},
    arm={"price": Number(0, 9), "topic": Category(size=8)},
)
ARMS = {"a": {"price": 1}, "b": {"price": 2}}


@pytest.fixture
def loop():
    options = {"features": FEATURES, "reward": Reward(0, 1), "policy": DOMD, "clock": "events"}
    with Loop(":memory:", training="inline", exploration=0.3, **options) as made:
        made.decide({}, ARMS, id="first", at=0.0)
        yield made


def latest(loop):
    return list(loop.ledger.read())[-1]


def test_missing_values_of_a_decision_are_null_in_the_ledger(loop):
    loop.decide({"age": math.nan}, {"a": {"price": math.nan}, "b": {}}, at=1.0)
    assert '"age":null' in latest(loop).data
    assert (latest(loop).read().context, latest(loop).read().arms) == (
        {"age": None},
        [{"price": None}, {}],
    )
    assert loop.audit(latest(loop).id).agrees


@dataclass
class Call:
    """A call with something that no JSON can hold, and what the error says."""

    kind: str
    options: dict
    says: str


LONE = "a\ud800"
REFUSED = {
    "infinite context": Call("decide", {"context": {"age": math.inf}}, "age"),
    "infinite column": Call("decide", {"arms": {"a": {"price": -math.inf}}}, "price"),
    "context": Call("decide", {"context": {"page": LONE}}, "valid Unicode"),
    "column": Call("decide", {"arms": {"a": {"topic": LONE}}}, "valid Unicode"),
    "name of a column": Call("decide", {"context": {LONE: 1}}, "not declared"),
    "name of an arm": Call("decide", {"arms": {LONE: {}}}, "valid Unicode"),
    "default": Call("decide", {"arms": {}, "default": LONE}, "valid Unicode"),
    "id": Call("decide", {"id": LONE}, "id must be printable"),
    "key": Call("decide", {"key": LONE}, "key must be printable"),
    "reward of": Call("reward", {"id": LONE, "value": 1}, "id must be printable"),
    "metric": Call("metric", {"id": "first", "name": LONE, "value": 1}, "name must be printable"),
    "metric's value": Call("metric", {"id": "first", "name": "m", "value": math.inf}, "value"),
    "candidate": Call("shadow", {"name": LONE, "exploration": 0.5}, "printable"),
    "too many digits": Call("decide", {"context": {"page": 10**5000}}, "page"),
    "a name of too many digits": Call("decide", {"arms": {10**5000: {}}}, "digits"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_stored_is_refused_and_nothing_is_stored(loop, what):
    call = REFUSED[what]
    options = call.options
    if call.kind == "decide":
        options = {"context": {}, "arms": ARMS, "at": 1.0} | options
    before = loop.ledger.last(), loop.counts, loop.digest
    with pytest.raises(ValueError, match=call.says):
        getattr(loop, call.kind)(**options)
    assert (loop.ledger.last(), loop.counts, loop.digest) == before
    loop.reward("first", 1)  # it goes on


@pytest.mark.parametrize("number", [2**53 + 1, 2**64 - 1, 2**64, -(2**63) - 1, 2**70])
def test_whole_numbers_of_any_size_are_stored_exactly(loop, number):
    made = loop.decide({"page": number}, {number: {"topic": number}}, id="n", at=1.0)
    data = latest(loop).read()
    assert (data.context, data.names, data.arms) == (
        {"page": number},
        [number],
        [{"topic": number}],
    )
    assert loop.decide({"page": number}, {number: {"topic": number}}, id="n") == made
    assert loop.audit("n").agrees
