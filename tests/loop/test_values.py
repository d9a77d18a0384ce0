"""What is logged is what was learnt: values of any type are one thing, live and from the log."""

import enum
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from driftbandit import DOMD, Category, Features, Flag, Loop, Number, Reward, Vector
from driftbandit.loop.storage.events import plain
from driftbandit.loop.training import replay

pytestmark = pytest.mark.usefixtures("no_wait_for_the_disk")


class Genre(str, enum.Enum):  # noqa: UP042  (its str() is not its value)
    ROCK = "rock"
    JAZZ = "jazz"


class Plain(enum.StrEnum):
    ROCK = "rock"


class Size(enum.IntEnum):
    SMALL = 1


class Name(str):
    __slots__ = ()

    def __str__(self):
        return "another text"


class Money(float):
    __slots__ = ()

    def __repr__(self):
        return "money"


class Odd:
    def __float__(self):
        return 3.0


FEATURES = Features(
    context={"age": Number(0, 10), "who": Category(size=8), "new": Flag()},
    arm={"genre": Category(size=8), "price": Number(0, 10), "topic": Vector(2)},
    interactions=[("who", "genre")],
)
OPTIONS = {
    "features": FEATURES,
    "reward": Reward(0, 1, wait="1min"),
    "policy": DOMD,
    "exploration": 0.3,
    "clock": "events",
    "training": "inline",
}
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.text(st.characters(), max_size=3),  # with lone surrogates
    st.sampled_from([*Genre, *Plain, *Size, Name("rock"), Money(2.5), Odd(), b"rock", 1j]),
    st.sampled_from([Decimal("2.5"), Decimal("NaN"), Fraction(1, 3), Decimal(10) ** 400]),
    st.sampled_from([np.float16, np.float32, np.float64, np.longdouble]).flatmap(
        lambda kind: st.sampled_from([0.0, 0.1, 2.5, math.nan, math.inf]).map(kind)
    ),
    st.sampled_from([np.int8(3), np.uint64(2**64 - 1), np.bool_(True), np.str_("rock")]),
    st.sampled_from([np.datetime64("2020-01-01"), np.complex128(1j), np.bytes_(b"x")]),
    st.sampled_from([np.array(3), np.array([1.0]), np.float64(7), 7, 7.0, "7", -0.0]),
)
VECTORS = st.one_of(
    SCALARS,
    st.lists(SCALARS, max_size=3),
    st.tuples(st.floats(0, 1), st.floats(0, 1)),
    st.sampled_from([np.array([0.1, 0.2]), np.array([0.1, 0.2], dtype=np.longdouble)]),
)
NAMES = st.sampled_from(
    [1, "1", 0, Genre.ROCK, "jazz", Size.SMALL, np.int64(1), np.str_("a"), Name("b"), True, 1.0]
)
ARM = st.fixed_dictionaries({}, optional={"genre": SCALARS, "price": SCALARS, "topic": VECTORS})
CONTEXT = st.fixed_dictionaries({}, optional={"age": SCALARS, "who": SCALARS, "new": SCALARS})
REQUEST = st.tuples(CONTEXT, st.dictionaries(NAMES, ARM, min_size=1, max_size=3))


def answer(call, *given, **options):
    """What a call returns, or why it is refused."""
    try:
        return call(*given, **options)
    except ValueError as error:
        return error


def check(loop):
    """Decisions agree with the log, and so does what was learnt from them."""
    loop.close_windows(1e6)
    assert all(each.agrees for each in loop.audits())
    ledger = loop.ledger
    again = replay.replay(ledger, loop.runtime.reread(), None)
    assert again.learner.digest == loop.digest


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[*HealthCheck])
@given(st.lists(REQUEST, min_size=1, max_size=8))
def test_values_of_any_type_are_refused_or_learnt_as_they_are_logged(requests):
    with Loop(":memory:", **OPTIONS) as loop:
        for k, (context, arms) in enumerate(requests):
            before = loop.runtime.windows.seq
            made = answer(loop.decide, context, arms, id=str(k), at=float(k))
            if isinstance(made, ValueError):
                assert "\n" not in str(made)
                assert loop.runtime.windows.seq == before  # nothing has changed
                continue
            assert loop.decide(context, arms, id=str(k), at=float(k)) == made
            loop.reward(str(k), k % 2)
        check(loop)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.one_of(SCALARS, VECTORS, ARM))
def test_plain_values_stay_as_they_are(value):
    once = answer(plain, value)
    assert isinstance(once, ValueError) or plain(once) == once


def test_an_enum_is_the_text_that_it_stands_for():
    arms = {genre: {"genre": genre, "price": 1} for genre in Genre}
    same = {genre.value: {"genre": genre.value, "price": 1} for genre in Genre}
    told = []
    for given_arms in (arms, same):
        with Loop(":memory:", **OPTIONS) as loop:
            for k in range(60):
                who = Genre.JAZZ if given_arms is arms else "jazz"
                made = loop.decide({"who": who}, given_arms, id=str(k), at=float(k))
                loop.reward(made.id, made.arm == "jazz")
            check(loop)
            told.append((loop.digest, [event.data for event in loop.ledger.read()]))
    assert told[0] == told[1]


@pytest.mark.parametrize("text", [Genre.ROCK, Plain.ROCK, Name("rock"), np.str_("rock")])
def test_ids_and_keys_are_the_text_that_they_stand_for(text, postgres):
    with Loop(postgres.url(), **OPTIONS) as loop:
        loop.decide({}, {"a": {}}, id=text, key=text, at=1.0)
        event = loop.ledger.find("rock")
        assert (event.id, event.key) == ("rock", "rock")
        assert loop.reward("rock", 1, at=1.0) == "counted"
        assert loop.erase(key="rock").events == 2


def test_arms_that_look_alike_in_a_log_are_refused():
    with Loop(":memory:", **OPTIONS) as loop:
        with pytest.raises(ValueError, match="every arm needs a name of its own, also as text"):
            loop.decide({}, {1: {"price": 1}, "1": {"price": 9}}, at=1.0)
        assert loop.decide({}, {1: {"price": 1}, "2": {"price": 9}}, at=1.0).arm in (1, "2")
