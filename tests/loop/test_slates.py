"""Slates: several arms in order, a probability and a reward for each position."""

import json
import math

import numpy as np
import pytest

from driftbandit import (
    DOMD,
    AutoDOMD,
    Bandit,
    Category,
    Features,
    Floor,
    InverseGap,
    Loop,
    Number,
    Reward,
    Thompson,
)
from driftbandit.loop.state.reward_windows import Example
from driftbandit.loop.training import replay

CLICKS = Reward(0, 1, wait=100, missing=0)
ARMS = {name: {"price": 10 * k} for k, name in enumerate("abcdef")}
SIDES = {
    "context": Features(
        context={"age": Number(0, 100), "position": Category([0, 1, 2])},
        arm={"price": Number(0, 100)},
    ),
    "arm": Features(
        context={"age": Number(0, 100)},
        arm={"price": Number(0, 100), "position": Number(0, 9)},
    ),
    "none": Features(context={"age": Number(0, 100)}, arm={"price": Number(0, 100)}),
}


def opened(side="context", path=":memory:", **options):
    new = {"features": SIDES[side], "reward": CLICKS, "policy": DOMD, "clock": "events"}
    return Loop(path, **(new | {"training": "inline", "exploration": 0.3} | options))


def play(loop, n=40, seed=0, start=0.0, **options):
    """Slates of three and single decisions, some with rewards and cancels of positions."""
    rng, made = np.random.default_rng(seed), []
    for t in start + 10.0 * np.arange(n):
        k = 3 if rng.random() < 0.7 else None
        made.append(loop.decide({"age": int(rng.integers(100))}, ARMS, k=k, at=t, **options))
        if k:
            for position in np.flatnonzero(rng.random(3) < 0.4).tolist():
                loop.reward(made[-1].id, float(rng.random() < 0.6), position=position, at=t)
            if rng.random() < 0.3:
                loop.cancel(made[-1].id, position=int(rng.integers(3)), at=t)
        else:
            loop.reward(made[-1].id, 1, at=t)
    return made


def row(features, line):
    """The row of a line of the log, by hand."""
    context, arm = json.loads(line["context"]), dict(ARMS[line["arm"]])
    if line["position"] is not None:
        side = context if "position" in features.context else arm
        side |= {"position": line["position"]} if "position" in features.columns else {}
    return features.encode(context, [arm])[0]


def by_hand(loop):
    """A bandit that is trained what the log's frame says was trained, one after the other."""
    bandit = Bandit(DOMD(problem=loop.features.problem(CLICKS)))
    lines = {(line["seq"], line["position"]): line for line in loop.log().iter_rows(named=True)}
    _, changes = replay.unfold(loop.ledger, loop.runtime.reread(), None)
    for example in (change for change in changes if isinstance(change, Example)):
        line = lines[example.decision, example.position]
        assert line["status"] == "trained"
        bandit.update(row(loop.features, line), CLICKS.inside(line["reward"])[0])
    return bandit


@pytest.mark.parametrize("side", SIDES)
def test_every_position_is_trained_on_its_own(tmp_path, side):
    path = tmp_path / "slates.db"
    with opened(side, path) as loop:
        made = play(loop)
        loop.close_windows(1000.0)
        bandit = by_hand(loop)
        assert bandit.rounds == len(loop.log().filter(loop.log()["status"] == "trained")) > 50
        assert np.array_equal(bandit.theta, loop.runtime.learner.bandit.theta)
        assert all(audit.logged == audit.computed for audit in loop.audits())
        digest = loop.digest
    with Loop(path, training="inline") as loop:
        assert loop.digest == digest
        again = replay.replay(loop.ledger, loop.runtime.reread(), None)
        assert again.learner.digest == digest
        assert again.windows.counts == loop.counts
        slate = next(each for each in made if hasattr(each, "places"))
        found = loop.audit(slate.id).whys  # a bonus is of the moment when it is asked
        assert [why._replace(bonus=None) for why in found] == [
            why._replace(bonus=None) for why in slate.why
        ]


def test_in_the_background_it_learns_the_same(tmp_path):
    with opened(path=tmp_path / "slates.db", training="background") as loop:
        play(loop)
        loop.close_windows(1000.0)
        assert loop.wait_until_trained(10.0)
        assert np.array_equal(by_hand(loop).theta, loop.runtime.learner.bandit.theta)


@pytest.mark.parametrize("rule", [Floor(0.3), Thompson(0.1, draws=20), InverseGap(0.1)])
def test_probabilities_are_conditional_on_what_is_left(rule):
    with opened(exploration=rule, policy=AutoDOMD) as loop:
        for slate in (each for each in play(loop) if hasattr(each, "places")):
            assert len(set(slate.arms)) == 3
            assert slate.probability == math.prod(p.probability for p in slate.places) > 0.0
            for j, place in enumerate(slate.places):
                assert list(place.probabilities) == list(ARMS)
                assert math.fsum(place.probabilities.values()) == 1.0
                assert place.probability == place.probabilities[place.arm]
                before = slate.arms[:j]
                assert [place.probabilities[arm] for arm in before] == [0.0] * j
                least = min(place.probabilities[arm] for arm in ARMS if arm not in before)
                assert least >= 0.999 * rule.uniform / (6 - j)
        assert all(audit.agrees for audit in loop.audits())


def test_orders_come_as_often_as_their_probabilities_say():
    with opened(exploration=0.5) as loop:
        play(loop, 60)
        loop.close_windows(900.0)
        slates = [loop.decide({"age": 50}, ARMS, k=2, id=str(k), at=900.0) for k in range(3000)]
    found, expected = {}, {}
    for slate in slates:
        order = tuple(slate.arms)
        found[order] = found.get(order, 0) + 1
        expected[order] = slate.probability
    assert sum(expected.values()) > 0.9  # nearly all orders were seen
    for order, p in expected.items():
        assert abs(found[order] - 3000 * p) < 5.0 * math.sqrt(3000 * p) + 1.0


def test_why_is_about_the_arms_that_were_left():
    with opened() as loop:
        play(loop)
        slate = loop.decide({"age": 30}, ARMS, k=6, at=400.0)
        theta = loop.runtime.learner.bandit.theta
        for j, why in enumerate(slate.why):
            z = SIDES["context"].encode({"age": 30, "position": j if j < 3 else 99}, ARMS) @ theta
            score = dict(zip(ARMS, z))
            left = [name for name in ARMS if name not in slate.arms[: j + 1]]
            assert why.arm == slate.arms[j]
            assert why.runner_up == max(left, key=score.get, default=None)
            assert sum(why.terms.values()) == pytest.approx(why.lead)


def test_aside_the_default_slate_is_shown():
    with opened(mode="apprentice", exploration=0.4) as loop:
        default = ["d", "b", "f"]
        made = [
            loop.decide({}, ARMS, k=3, id=f"{t}", default=default, at=float(t)) for t in range(200)
        ]
        assert 40 < sum(slate.arms == default for slate in made) < 90  # 63 expected
        for slate in made:
            wanted = ["d", "b", "f"]
            for place in slate.places:
                first = next(name for name in wanted if place.probabilities[name] > 0.0)
                assert place.probabilities[first] > 0.6
                wanted = [name for name in wanted if name != place.arm]
        loop.configure(mode="active", holdout=0.5)
        made = [
            loop.decide({}, ARMS, k=2, key=str(t), default=("c", "a"), at=200.0) for t in range(40)
        ]
        aside = [slate for slate in made if slate.role == "holdout"]
        assert 5 < len(aside) < 35
        assert all(slate.arms == ["c", "a"] and slate.probability == 1.0 for slate in aside)
        empty = loop.decide({}, {}, k=2, default=["x", "y"], at=201.0)
        assert (empty.arms, empty.probability, empty.why) == (["x", "y"], 1.0, [None, None])
        loop.reward(empty.id, 1, position=1)
        loop.close_windows(1000.0)
        assert all(audit.agrees for audit in loop.audits())
        assert loop.log()["default"].to_list()[-2:] == ["x", "y"]


def test_words_on_positions():
    with opened() as loop:
        assert loop.reward("mine", 1, position=2, at=0.0) == "held"
        assert loop.cancel("mine", position=0, at=0.0) == "held"
        assert loop.reward("mine", 1, at=0.0) == "held"  # there will be no such position
        slate = loop.decide({}, ARMS, k=3, id="mine", at=1.0)
        assert loop.decide({}, ARMS, k=3, id="mine", at=1.0) == slate
        assert loop.reward("mine", 0.5, position=2) == "corrected"
        assert loop.reward("mine", 0.5, position=0) == "late"
        assert loop.reward("mine", 1, position=1) == "counted"
        loop.metric("mine", "revenue", 7, position=1)
        assert loop.cancel("mine", position=1) == "cancelled"
        assert loop.cancel("mine", position=1) == "late"
        log = loop.log()
        assert log["status"].to_list() == ["cancelled", "cancelled", "open"]
        assert [len(each) for each in log["metrics"]] == [0, 1, 0]
        assert log["reward"].to_list() == [None, None, 0.5]
        loop.close_windows(500.0)
        assert loop.log()["status"].to_list() == ["cancelled", "cancelled", "trained"]
        assert loop.counts["reward counted"] == 2
        whole = loop.decide({}, ARMS, k=2, at=500.0)
        assert loop.cancel(whole.id) == "cancelled"
        assert loop.log()["status"].to_list()[-2:] == ["cancelled", "cancelled"]


def test_without_a_window_positions_are_trained_one_by_one():
    with opened(reward=Reward(0, 1)) as loop:
        slate = loop.decide({}, ARMS, k=2, at=0.0)
        for rounds, position in ((1, 1), (2, 0)):
            assert loop.reward(slate.id, 1, position=position) == "counted"
            assert loop.runtime.learner.bandit.rounds == rounds
            assert loop.reward(slate.id, 0, position=position) == "late"
        assert not loop.runtime.windows.open


def test_what_is_wrong_is_refused():
    with opened() as loop:
        plain = loop.decide({}, ARMS, at=0.0)
        slate = loop.decide({}, ARMS, k=2, id="slate", at=0.0)
        before = loop.counts
        calls = [
            (lambda: loop.decide({}, ARMS, k=0), "k must"),
            (lambda: loop.decide({}, ARMS, k=7), "number of arms, 6"),
            (lambda: loop.decide({}, ARMS, k="2"), "k must"),
            (lambda: loop.decide({}, {}, k=2), "no arm"),
            (lambda: loop.decide({"position": 1}, ARMS, k=2), "leave it out"),
            (lambda: loop.decide({}, ARMS, k=2, default="a"), "list of 2 arms"),
            (lambda: loop.decide({}, ARMS, k=2, default=["a"]), "list of 2 arms"),
            (lambda: loop.decide({}, ARMS, k=2, default=["a", "a"]), "different"),
            (lambda: loop.decide({}, ARMS, k=2, default=["a", "z"]), "default must"),
            (lambda: loop.decide({}, ARMS, default=["a"]), "default must"),
            (lambda: loop.decide({}, ARMS, k=3, id="slate"), "another decision"),
            (lambda: loop.decide({}, ARMS, id="slate"), "another decision"),
            (lambda: loop.reward(slate.id, 1), "position="),
            (lambda: loop.reward(slate.id, 1, position=2), "from 0 to 1"),
            (lambda: loop.reward(slate.id, 1, position=-1), "position"),
            (lambda: loop.reward(slate.id, 1, position=True), "position"),
            (lambda: loop.metric(slate.id, "revenue", 1), "position="),
            (lambda: loop.reward(plain.id, 1, position=0), "not a slate"),
            (lambda: loop.cancel(plain.id, position=0), "not a slate"),
        ]
        for call, named in calls:
            with pytest.raises(ValueError, match=named):
                call()
        assert loop.counts == before
        loop.close_windows(200.0)  # the same of what is closed
        with pytest.raises(ValueError, match="position="):
            loop.reward(slate.id, 1)
        with pytest.raises(ValueError, match="not a slate"):
            loop.reward(plain.id, 1, position=0)
        assert loop.decide({"position": 2}, ARMS, at=200.0).role == "active"  # one's own, without k
