"""Candidates that know the past: what they would be had they been there from the beginning."""

import logging
import threading
import time
from functools import partial

import numpy as np
import pytest

import topics
from driftbandit import (
    DOMD,
    AutoDOMD,
    Bandit,
    Category,
    Features,
    Flag,
    Guard,
    Loop,
    Number,
    Reward,
)
from driftbandit.loop.errors import BusyError
from driftbandit.loop.state.reward_windows import Example
from driftbandit.loop.storage.ledger import Ledger
from driftbandit.loop.training import backfill, replay
from driftbandit.loop.writing import retention
from driftbandit.loop.writing.pending import Pending
from raw_sql import run_sql
from topics import ARMS, CLICKS, TOPIC

pytestmark = pytest.mark.usefixtures("no_wait_for_the_disk")

FEATURES = Features(context={"age": Number(18, 90), "vip": Flag()}, arm={"topic": TOPIC})
OTHER = Features(context={"vip": Flag()}, arm={"topic": TOPIC})
PLACES = Features(
    context={"vip": Flag(), "position": Category([0, 1])}, arm={"topic": Category(["x", "y", "z"])}
)
STRICT = Features(context={"vip": Flag(required=True)}, arm={"topic": TOPIC})
opened = partial(topics.opened, features=FEATURES)


def play(loop, start, n, **options):
    """What happens depends on the number alone; some decisions do not say who is vip."""
    for k in range(start, start + n):
        rng = np.random.default_rng(k)
        context = {"age": int(rng.integers(18, 90))} | ({"vip": k % 2 == 0} if k % 7 else {})
        given = {"default": "z", "key": f"p{k % 4}"} | options
        made = loop.decide(context, ARMS, id=f"d{k}", at=10.0 * k, **given)
        arm = made.arm if hasattr(made, "arm") else made.arms[0]
        position = {} if hasattr(made, "arm") else {"position": 0}
        if rng.random() < 0.8:
            click = float(rng.random() < (0.8 if arm == "xy"[k % 2] else 0.1))
            loop.reward(made.id, click, at=10.0 * k, **position)
        if rng.random() < 0.1:
            loop.cancel(made.id, at=10.0 * k)


def one(loop, name="new"):
    return loop.runtime.candidates.candidates[name]


def learnt(loop, name="new"):
    """All of a candidate but the numbers of events, of which one comes earlier here than there."""
    about, state = one(loop, name).state()
    return {k: v for k, v in about.items() if k not in ("seq", "shadow")}, state


def both(loop):
    return loop.digest, loop.runtime.candidates.digest


def check(loop):
    """Live and replayed are the same bits, and so are all probabilities; what the candidate began
    with may be in the ledger or is learnt once more."""
    audits = list(loop.audits())
    assert all(audit.logged == audit.computed for audit in audits)
    again = replay.replay(loop.ledger, loop.runtime.reread(), replay.origin(loop.ledger))
    assert (again.learner.digest, again.candidates.digest) == both(loop)
    return audits


def forget_beginnings(loop):
    own = "SELECT seq FROM event WHERE kind = 'shadow'"
    run_sql(loop.ledger.path, f"DELETE FROM checkpoint WHERE seq IN ({own})")


def by_hand(loop, without=None, end=None):
    """A DOMD over OTHER, trained one after the other what the log says was trained."""
    bandit, events = Bandit(DOMD(problem=OTHER.problem(CLICKS))), {}
    for event in loop.ledger.read():
        events[event.seq] = event
    for change in replay.unfold(loop.ledger, loop.runtime.reread(), None)[1]:
        if isinstance(change, Example) and change.key != without and change.event < (end or 10**9):
            data = events[change.decision].read()
            vip = {"vip": data.context.get("vip")}
            x = OTHER.encode(vip, [data.arms[data.choices[0]]])[0]
            bandit.update(x, change.value)
    return bandit


KINDS = {
    "DOMD": ({}, {"features": OTHER}, {}, {}),
    "AutoDOMD": ({}, {"policy": AutoDOMD}, {}, {}),
    "in time": ({}, {"features": OTHER, "policy": DOMD}, {"half_life": "10min"}, {}),
    "in time, by itself": ({}, {"policy": AutoDOMD}, {"half_life": "auto"}, {}),
    "beside a timed one": ({"half_life": "1h"}, {"features": OTHER}, {}, {}),
    "for each key": ({"key": "user_id"}, {"features": OTHER}, {}, {}),
    "for each key in time": ({"key": "u", "half_life": "1h"}, {"features": OTHER}, {}, {}),
    "slates": ({}, {"features": PLACES}, {}, {"k": 2, "default": ["z", "x"]}),
    "at once": ({"reward": Reward(0, 1)}, {"features": OTHER}, {}, {}),
    "a column that is not always there": ({}, {"features": STRICT}, {}, {}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_what_it_would_be_from_the_beginning(tmp_path, kind):
    options, given, more, asked = KINDS[kind]
    with opened(tmp_path / "early.db", **options) as loop:
        loop.shadow("new", **given, **more)
        play(loop, 0, 50, **asked)
        before = learnt(loop)
        play(loop, 50, 20, **asked)
        after = learnt(loop)
    loop = opened(tmp_path / "late.db", **options)
    play(loop, 0, 50, **asked)
    loop.shadow("cold", **given, **more, history=False)
    loop.shadow("new", **given, **more)
    assert loop.candidates["new"].history
    assert learnt(loop) == before
    assert learnt(loop)[1] != learnt(loop, "cold")[1]
    assert not loop.compare().leads  # it is compared from here on
    play(loop, 50, 20, **asked)
    assert learnt(loop) == after
    found = both(loop)
    check(loop)
    loop.ledger.close()  # as kill -9 does
    with Loop(tmp_path / "late.db", training="inline") as loop:
        assert both(loop) == found
        forget_beginnings(loop)
        check(loop)


def life(path):
    """Candidates before and after a promotion, a trial, a restart, and growth."""
    with opened(path, guard=Guard()) as loop:
        play(loop, 0, 30)
        loop.shadow("new", features=OTHER)
        loop.trial("new", share=0.3)
        play(loop, 30, 20)
        loop.promote("new", expected_live="live", force=True)
        play(loop, 50, 20)
        loop.shadow("again", features=FEATURES)
        assert np.array_equal(by_hand(loop).theta, loop.runtime.learner.bandit.theta)
        loop.trial("again", share=0.4)
        play(loop, 70, 20)
    with Loop(path, training="inline") as loop:
        loop.add_features(context={"age": Number(18, 90)})
        play(loop, 90, 20)
        check(loop)
        return both(loop), loop.compare().to_dict()


def test_promotions_restarts_and_postgres(tmp_path, postgres):
    found = life(tmp_path / "a.db")
    assert life(postgres.url()) == found
    with Loop(tmp_path / "a.db", training="inline") as loop:
        forget_beginnings(loop)
        run_sql(loop.ledger.path, "DELETE FROM checkpoint")
    with Loop(tmp_path / "a.db", training="inline") as loop:
        assert both(loop) == found[0]


def test_keep_may_drop_what_a_candidate_has_learnt_from(tmp_path, monkeypatch):
    """The base moves from before its history to the middle of it, and beyond the candidate."""
    monkeypatch.setattr("driftbandit.loop.writing.writer.EVERY", 10)
    with opened(tmp_path / "a.db", retention=300) as loop:
        play(loop, 0, 60)
        first = loop.ledger.base
        assert first > 0
        start = loop.ledger.start
        loop.shadow("new", features=OTHER)
        born = one(loop).seq
        kept = sum(e.kind == "decide" for e in loop.ledger.read(start))
        assert 20 < learnt(loop)[0]["examples"] < kept < 60
        loop.trial("new", share=0.5)
        bases = {first}
        for k in range(60, 160):
            play(loop, k, 1)
            if loop.ledger.base not in bases:
                bases.add(loop.ledger.base)
                check(loop)
        assert [base for base in bases if first < base < born]
        assert max(bases) > born
        with loop.ledger.pinned():  # nothing goes that somebody reads
            play(loop, 160, 40)
        assert loop.ledger.base == max(bases)
        play(loop, 200, 20)
        assert loop.ledger.base > max(bases)
        digest = both(loop)
    with Loop(tmp_path / "a.db", training="inline") as loop:
        assert both(loop) == digest


def test_what_a_candidate_began_with_is_kept_until_the_base_knows_it(tmp_path, monkeypatch):
    """A checkpoint that was under way when the candidate came does not have it: no base."""
    monkeypatch.setattr("driftbandit.loop.writing.writer.EVERY", 10)
    with opened(tmp_path / "a.db", retention=300) as loop:
        play(loop, 0, 50)
        mark = loop.runtime.windows.mark()
        text, state = replay.checkpoint(loop.runtime.learner, loop.runtime.candidates, mark)
        loop.shadow("new", features=OTHER)
        loop.trial("new", share=0.5)
        late = loop.runtime.writer.submit(Pending("checkpoint", data=text, state=state)).event.seq
        seen = {loop.ledger.base}
        for k in range(50, 110):
            play(loop, k, 1)
            retention.let_go(loop.ledger, loop.runtime.windows, loop.runtime.writer.clock)
            if loop.ledger.base not in seen:
                seen.add(loop.ledger.base)
                check(loop)
        assert late not in seen
        assert max(seen) > late


def test_who_is_erased_is_not_in_the_past_that_is_learnt(tmp_path):
    with opened(tmp_path / "a.db") as loop:
        play(loop, 0, 40)
        loop.shadow("new", features=OTHER)
        play(loop, 40, 20)
        with_all, without = by_hand(loop), by_hand(loop, without="p1")
        assert np.array_equal(one(loop).learner.bandit.theta, with_all.theta)
        loop.erase(key="p1", relearn=True)
        assert np.array_equal(one(loop).learner.bandit.theta, without.theta)
        assert not np.array_equal(without.theta, with_all.theta)
        assert run_sql(loop.ledger.path, "SELECT count(*) FROM checkpoint") == [(1,)]
        loop.shadow("later", features=OTHER)  # all others are in the log
        assert np.array_equal(one(loop, "later").learner.bandit.theta, without.theta)
        play(loop, 60, 20)
        check(loop)
        forget_beginnings(loop)
        check(loop)


class Slow:
    """Stops a candidate that has read the past, before its first example, until it may go on."""

    def __init__(self, monkeypatch):
        self.here, self.go, asked_for = threading.Event(), threading.Event(), backfill.asked_for

        def slowly(event, data):
            self.here.set()
            assert self.go.wait(20)
            return asked_for(event, data)

        monkeypatch.setattr(backfill, "asked_for", slowly)


def test_decisions_and_training_go_on_meanwhile(tmp_path, monkeypatch):
    live = {"training": "background", "clock": "wall", "reward": Reward(0, 1)}

    def on(loop, start, n):
        for k in range(start, start + n):
            loop.decide({"vip": k % 2}, ARMS, id=f"d{k}", key=f"p{k % 4}")
            loop.reward(f"d{k}", k % 3 == 0)
        assert loop.wait_until_trained(10)

    with opened(tmp_path / "a.db", **live) as loop:
        on(loop, 0, 40)
        slow, wrong = Slow(monkeypatch), []

        def declare():
            try:
                loop.shadow("new", features=OTHER)
            except Exception as error:
                wrong.append(error)

        thread = threading.Thread(target=declare)
        thread.start()
        assert slow.here.wait(20)
        before = loop.runtime.learner.examples
        on(loop, 40, 20)
        assert loop.runtime.learner.examples == before + 20
        with pytest.raises(BusyError, match="ask again"):
            loop.shadow("other", policy=AutoDOMD)
        loop.shadow("cold", policy=AutoDOMD, history=False)
        without = by_hand(loop, without="p1")
        loop.erase(key="p1")  # it begins anew
        slow.go.set()
        thread.join()
        assert wrong == []
        assert np.array_equal(one(loop).learner.bandit.theta, without.theta)
        on(loop, 60, 20)
        check(loop)
        forget_beginnings(loop)
        check(loop)


def test_killed_in_the_middle(tmp_path, monkeypatch, caplog):
    """Before its event is stored there is no candidate; after that the next start trains it."""

    def killed(*_):
        raise KeyboardInterrupt

    loop = opened(tmp_path / "a.db")
    play(loop, 0, 30)
    with monkeypatch.context() as patch:
        patch.setattr(backfill, "asked_for", killed)
        with pytest.raises(KeyboardInterrupt):
            loop.shadow("new", features=OTHER)
    assert "shadow" not in loop.counts
    caplog.set_level(logging.INFO, "driftbandit.loop")
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "keep", lambda *_: None)
        loop.shadow("new", features=OTHER)
    told = [r.getMessage() for r in caplog.records if "learn" in r.getMessage()]
    examples = learnt(loop)[0]["examples"]
    assert len(told) == 2
    assert "from event 1 on" in told[0]
    assert f"has learnt {examples} examples in " in told[1]
    found = both(loop)
    loop.ledger.close()
    with Loop(tmp_path / "a.db", training="inline") as loop:
        assert both(loop) == found
        assert loop.ledger.state(one(loop).seq)
        caplog.clear()
    loop = Loop(tmp_path / "a.db", training="inline")
    assert not [r for r in caplog.records if "has learnt" in r.getMessage()]
    assert both(loop) == found
    run_sql(loop.ledger.path, "UPDATE checkpoint SET state = x'7b7d'")
    loop.ledger.close()
    with Loop(tmp_path / "a.db", training="inline") as loop:
        assert both(loop) == found  # damaged, and trained again


def test_older_logs_say_nothing_and_mean_no_history(tmp_path):
    found = []
    for knows in (False, True):
        path = tmp_path / f"{knows}.db"
        loop = opened(path)
        play(loop, 0, 20)
        loop.shadow("new", features=OTHER, history=knows)
        play(loop, 20, 20)
        found.append(both(loop))
        old = "UPDATE event SET data = json_remove(data, '$.history') WHERE kind = 'shadow'"
        run_sql(path, old)
        loop.ledger.close()
        with Loop(path, training="inline") as loop:
            assert both(loop) == found[0]
            assert not loop.candidates["new"].history
    assert found[0] != found[1]


def test_others_who_decide_hear_of_it_and_may_take_over(postgres):
    url = postgres.url()
    options = {"features": FEATURES, "reward": Reward(0, 1), "policy": DOMD, "exploration": 0.3}

    def on(*loops, start):
        for k in range(start, start + 20):
            loop = loops[k % len(loops)]
            loop.decide({"vip": k % 2}, ARMS, id=f"d{k}")
            loop.reward(f"d{k}", k % 3 == 0)

    def until(done):
        end = time.monotonic() + 20
        while not done():
            assert time.monotonic() < end
            time.sleep(0.01)

    with Loop(url, **options) as one_, Loop(url) as two:
        on(one_, two, start=0)
        one_.shadow("new", features=OTHER)
        until(lambda: "new" in two.runtime.candidates.candidates)
        on(one_, two, start=20)
        until(lambda: one(one_).learner.examples == one(two).learner.examples == 40)
        assert one_.wait_until_trained(10)
        until(lambda: both(one_) == both(two))
        one_.close()
        until(lambda: two.health().trains)
        two.shadow("newer", policy=AutoDOMD)
        on(two, start=40)
        assert two.wait_until_trained(10)
        assert one(two, "newer").learner.examples == one(two).learner.examples == 60
        check(two)
