"""A loop's catalogue of arms, and the shares that its arms keep."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from driftbandit import DOMD, Category, Features, Loop, Number, Reward, Thompson
from driftbandit.loop.deciding.shares import within_shares
from driftbandit.loop.errors import ConflictError, UnknownArmError, UsedIdError

FEATURES = Features(
    context={"age": Number(0, 100)},
    arm={"type": Category(["x", "y", "z"]), "price": Number(0, 9)},
)
ARMS = {"a": {"type": "x", "price": 1}, "b": {"type": "y", "price": 2}, "c": {"type": "z"}}
NEW = {"features": FEATURES, "reward": Reward(0, 1), "policy": DOMD, "exploration": 0.3}
AGE = {"age": 30}


def opened(path=":memory:", training="inline", **options):
    return Loop(path, **{**NEW, "arms": ARMS, **options}, training=training)


def play(loop, rounds=30, seed=3):
    rng = np.random.default_rng(seed)
    for k in range(rounds):
        made = loop.decide({"age": float(rng.uniform(0, 100))}, id=f"d{k}")
        loop.reward(made.id, float(rng.random() < 0.5))


def test_left_out_named_or_with_other_columns():
    with opened() as loop:
        assert list(loop.decide(AGE).probabilities) == ["a", "b", "c"]
        assert list(loop.decide(AGE, ["c", "a"]).probabilities) == ["c", "a"]
        loop.decide(AGE, {"a": {"price": 5}, "b": {}})
        latest = loop.log().to_dicts()[-1]
        assert latest["arms"] == '[{"type": "x", "price": 5}, {"type": "y", "price": 2}]'
        assert loop.arms["a"].columns == ARMS["a"]  # it held for that decision alone


def test_a_catalogue_is_the_same_as_passing_the_arms():
    with opened() as own, Loop(":memory:", **NEW, training="inline") as given_loop:
        for k in range(20):
            one = own.decide({"age": k}, id=f"d{k}")
            other = given_loop.decide({"age": k}, ARMS, id=f"d{k}")
            assert (one.arm, one.probabilities) == (other.arm, other.probabilities)
            own.reward(one.id, k % 2)
            given_loop.reward(other.id, k % 2)
        assert own.digest == given_loop.digest


def test_add_pause_resume_retire():
    with opened() as loop:
        loop.add_arm("d", {"type": "z", "price": 3})
        assert list(loop.decide(AGE).probabilities) == ["a", "b", "c", "d"]
        loop.pause_arm("b")
        assert list(loop.decide(AGE).probabilities) == ["a", "c", "d"]
        assert list(loop.decide(AGE, ["a", "b"]).probabilities) == ["a"]
        loop.resume_arm("b")
        loop.retire_arm("c")
        assert list(loop.decide(AGE).probabilities) == ["a", "b", "d"]
        before = loop.counts["arm"]
        loop.add_arm("d", {"type": "z", "price": 3})  # as it is
        loop.resume_arm("b")
        assert loop.counts["arm"] == before == 4
        loop.add_arm("d", {"type": "z", "price": 4})
        assert loop.arms["d"].columns["price"] == 4


@pytest.mark.parametrize("training", ["inline", "background"])
def test_catalogue_and_audits_survive_a_restart(tmp_path, training):
    with opened(tmp_path / "a.db", training) as loop:
        play(loop)
        loop.add_arm("d", {"type": "z", "price": 3})
        loop.pause_arm("a")
        made = loop.decide(AGE, id="twice")
        loop.retire_arm("b")
        digest, arms = (loop.wait_until_trained(), loop.digest)[1], dict(loop.arms)
    with Loop(tmp_path / "a.db", training=training) as loop:
        assert (loop.digest, dict(loop.arms)) == (digest, arms)
        again = loop.decide(AGE, id="twice")  # the catalogue was another one
        assert (again.arm, again.probabilities) == (made.arm, made.probabilities)
        assert all(each.agrees for each in loop.audits())
    opened(tmp_path / "a.db").close()  # as it was declared first
    with pytest.raises(ValueError, match=r"use loop\.add_arm"):
        opened(tmp_path / "a.db", arms={"a": {"type": "y"}})


def test_an_id_still_stands_for_one_question():
    with opened() as loop:
        loop.decide(AGE, ["a", "b"], id="one")
        loop.decide(AGE, ["b", "a"], id="one")
        for other in (["a"], {"a": {"price": 7}, "b": {}}):
            with pytest.raises(UsedIdError):
                loop.decide(AGE, other, id="one")
        with pytest.raises(UsedIdError):
            loop.decide({"age": 31}, ["a", "b"], id="one")


def test_a_default_that_is_paused_is_not_played():
    with opened(mode="apprentice") as loop:
        assert loop.decide(AGE, default="a").role == "apprentice"
        loop.pause_arm("a")
        with pytest.raises(ValueError, match="every decision needs a default"):
            loop.decide(AGE, default="a")
        loop.configure(mode="active")
        assert "a" not in loop.decide(AGE, default="a").probabilities
        assert loop.record_fallback(AGE, id="f", default="a") == "recorded"  # it was played
        for name in "bc":
            loop.retire_arm(name)
        with pytest.raises(ValueError, match="no arm is on offer: resume or add one"):
            loop.decide(AGE, default="a")


@pytest.mark.parametrize(
    ("act", "said", "kind"),
    [
        (lambda loop: loop.decide(AGE, ["zz"]), "no arm 'zz'", ValueError),
        (lambda loop: loop.decide(AGE, [{"price": 3}]), "leave arms out", ValueError),
        (lambda loop: loop.add_arm("e", {"cost": 3}), "'cost', which is not", ValueError),
        (lambda loop: loop.add_arm("e", {"price": "dear"}), "price", ValueError),
        (lambda loop: loop.add_arm("", {}), "an arm's name", ValueError),
        (lambda loop: loop.pause_arm("e"), "no arm 'e'", UnknownArmError),
        (lambda loop: loop.retire_arm(3), "no arm 3", UnknownArmError),
        (lambda loop: loop.configure(shares={"a": 0.5}), "its least and its", ValueError),
        (lambda loop: loop.configure(shares={"a": (0.5, 2)}), "its least", ValueError),
        (
            lambda loop: loop.configure(shares={"a": (0.6, 1), "b": (0.6, 1)}),
            "add up to at most 1",
            ValueError,
        ),
    ],
)
def test_what_is_wrong_changes_nothing(act, said, kind):
    with opened() as loop:
        before = loop.counts
        with pytest.raises(kind, match=said):
            act(loop)
        assert loop.counts == before


def test_a_loop_whose_decisions_bring_their_arms_has_no_catalogue():
    with Loop(":memory:", **NEW, training="inline") as loop:
        with pytest.raises(ConflictError, match="declare another loop with arms="):
            loop.add_arm("a", {})
        with pytest.raises(ValueError, match="pass arms="):
            loop.decide(AGE)


def test_wrong_arms_declare_nothing(tmp_path):
    for arms in ({"a": {"colour": 1}}, {"a": 3}, "ab", {3: {}}):
        with pytest.raises(ValueError, match="arm"):
            opened(tmp_path / "a.db", arms=arms)
    opened(tmp_path / "a.db").close()


# ---- shares


@pytest.mark.parametrize("exploration", [0.0, 0.2, Thompson(0.05)])
def test_shares_are_exact_in_the_log(exploration):
    bounds = {"a": (0.1, 0.25), "b": (0.0, 0.5)}
    with opened(exploration=exploration, shares=bounds) as loop:
        play(loop, 200)
        loop.shadow("bold", exploration=Thompson(0.1))
        loop.trial("bold", 0.2)
        play(loop, 0)
        for k in range(30):
            loop.reward(loop.decide({"age": k}).id, 0.5)
        for row in loop.log().to_dicts():
            p = dict(zip(row["names"], row["probabilities"]))
            assert math.fsum(p.values()) == 1.0
            for name, (least, most) in bounds.items():
                assert least <= p[name] <= most
        assert all(each.agrees for each in loop.audits())


def test_shares_of_an_arm_that_is_not_there_are_told(caplog):
    with opened(shares={"a": (0, 0.5)}) as loop:
        assert "shares" not in caplog.text
        loop.configure(shares={"aa": (0, 0.5)})
        assert "shares name 'aa', which the catalogue does not have" in caplog.text
        loop.add_arm("aa", {"type": "x"})
        assert loop.decide(AGE).probabilities["aa"] <= 0.5


def test_one_arm_alone_is_played_whatever_its_share():
    with opened(shares={"a": (0.0, 0.1)}) as loop:
        assert loop.decide(AGE, ["a"]).probability == 1.0


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.integers(2, 6), st.integers(0, 10_000))
def test_within_shares_against_a_linear_program(n, seed):
    """A policy that plays its best arm gets the best mean that the bounds allow."""
    rng = np.random.default_rng(seed)
    bounds = np.sort(rng.random((2, n)), axis=0)
    bounds[0] /= n
    scores = rng.random(n)
    p = np.eye(n)[np.argmax(scores)]
    q = within_shares(p.copy(), bounds, scores)
    assert math.fsum(q) == 1.0
    if bounds[1].sum() <= 1.0:
        assert np.allclose(q, bounds[1] / bounds[1].sum())
        return
    assert (bounds[0] <= q).all()
    assert (q <= bounds[1]).all()
    if (p <= bounds[1]).all():
        return  # mass is taken in proportion, since it may be another rule's
    best = linprog(-scores, A_eq=np.ones((1, n)), b_eq=[1.0], bounds=bounds.T)
    assert q @ scores == pytest.approx(-best.fun, abs=1e-9)
