"""Clocks that lie: a wrong reading stops nothing, and an honest silence is followed."""

import math
import random
import time

import pytest

from driftbandit import DOMD, Features, Loop, Number, Reward
from driftbandit.loop.state.clock import BACK, BOUND, CONFIRM, LoopClock
from driftbandit.loop.state.reward_windows import UNREWARDED, RewardWindows
from driftbandit.loop.storage.events import Event
from driftbandit.loop.storage.ledger import Ledger
from driftbandit.loop.training import replay
from driftbandit.loop.writing import retention, writer

FEATURES = Features(context={"x": Number(0, 1)}, arm={"p": Number(0, 1)})
ARMS = {"a": {"p": 0}, "b": {"p": 1}}
START, DAY, YEAR = 1.7e9, 86400.0, 365 * 86400.0
SLOW = Reward(0, 1, wait="1min", missing=0)


@pytest.fixture(autouse=True)
def _quick(no_wait_for_the_disk):
    """No wait for the disk."""


@pytest.fixture
def now(monkeypatch):
    """The machine's clock."""
    reading = [START]
    monkeypatch.setattr("driftbandit.loop.runtime.time.time", lambda: reading[0])
    return reading


def opened(path, **options):
    given = {"features": FEATURES, "reward": SLOW, "policy": DOMD, "exploration": 0.2}
    return Loop(path, training="inline", **given | options)


def play(loop, now, n, step=1.0, reward=True):
    for _ in range(n):
        now[0] += step
        made = loop.decide({"x": 0.5}, ARMS)
        if reward:
            loop.reward(made.id, 1)


def check(loop):
    """What the loop has learnt is what its log says, whichever checkpoint one starts from."""
    past, live = loop.runtime.reread(), loop.runtime
    for state in (replay.latest(loop.ledger, past), replay.replay(loop.ledger, past, None)):
        assert state.learner.digest == loop.digest
        assert state.windows.open == live.windows.open
        assert (state.windows.w, state.windows.clock) == (live.windows.w, live.windows.clock)
    assert all(audit.agrees for audit in loop.audits())


def trained(loop, now):
    """How many examples there are once all windows are closed."""
    now[0] += 61.0
    loop.wait_until_trained()
    return loop.runtime.learner.bandit.rounds


def test_two_seconds_in_2038(tmp_path, now):
    """Nothing is closed by them, what was decided in them is learnt, and all goes on at once."""
    with opened(tmp_path / "a.db") as loop:
        play(loop, now, 10)
        was, now[0] = now[0], 2.15e9
        play(loop, now, 2)
        loop.wait_until_trained()
        assert loop.runtime.learner.bandit.rounds == 0
        assert "2038" in " ".join(loop.health().concerns)
        check(loop)
        now[0] = was + 3.0
        play(loop, now, 10)
        assert trained(loop, now) == 22
        assert not any("clock" in words for words in loop.health().concerns)
        assert loop.counts["leap"] == loop.counts["repair"] == 1
        check(loop)


def test_a_silence_of_a_month(tmp_path, now):
    """Decisions are made at once; windows close once the new time has lasted ten minutes."""
    with opened(tmp_path / "a.db") as loop:
        play(loop, now, 10)
        now[0] += 30 * DAY
        play(loop, now, 5, step=60.0)
        assert loop.runtime.learner.bandit.rounds == 0
        play(loop, now, 8, step=60.0)
        assert trained(loop, now) == 23
        assert loop.counts["leap"] == 1
        assert "repair" not in loop.counts
        assert loop.log()["reward"].to_list() == [1.0] * 23
        check(loop)


def test_a_month_in_which_the_loop_was_closed(tmp_path, now):
    with opened(tmp_path / "a.db") as loop:
        play(loop, now, 10)
    now[0] += 30 * DAY
    for _ in range(13):  # and is closed again and again
        with opened(tmp_path / "a.db") as loop:
            play(loop, now, 1, step=60.0)
            check(loop)
    with opened(tmp_path / "a.db") as loop:
        assert trained(loop, now) == 23


@pytest.mark.parametrize("asleep", [3600.0, 0.99 * DAY])
def test_a_machine_that_was_asleep(tmp_path, now, asleep):
    with opened(tmp_path / "a.db") as loop:
        play(loop, now, 10)
        now[0] += asleep
        play(loop, now, 10)
        assert loop.runtime.learner.bandit.rounds == 10
        assert trained(loop, now) == 20
        assert "leap" not in loop.counts


@pytest.mark.parametrize("wrong", [0.9 * DAY, 3 * DAY, 10 * YEAR])
def test_a_clock_that_is_wrong_for_days_and_then_right(tmp_path, now, wrong):
    with opened(tmp_path / "a.db", half_life="7d") as loop:
        play(loop, now, 10)
        now[0] += wrong
        play(loop, now, 100, step=3600.0)
        assert loop.runtime.learner.bandit.rounds > 90
        now[0] -= wrong
        play(loop, now, 5)
        if wrong > DAY:
            assert any("behind" in words for words in loop.health().concerns)
        play(loop, now, 30, step=60.0)
        assert loop.runtime.windows.clock.time == pytest.approx(now[0], abs=61.0)
        assert trained(loop, now) == 145
        made = loop.decide({"x": 0.5}, ARMS, at=now[0])
        assert loop.audit(made.id).agrees
        check(loop)


def test_a_small_step_back(tmp_path, now):
    """Time stands still, and decisions are not refused."""
    with opened(tmp_path / "a.db") as loop:
        play(loop, now, 100)
        now[0] -= BACK / 2
        play(loop, now, 10, step=BACK / 10)
        assert trained(loop, now) == 110
        assert not {"leap", "repair"} & loop.counts.keys()


def test_one_wrong_reading_deletes_nothing(tmp_path, now, monkeypatch):
    monkeypatch.setattr(writer, "EVERY", 20)
    with opened(tmp_path / "a.db", retention="90d") as loop:
        play(loop, now, 50)
        was, now[0] = now[0], 2.15e9
        play(loop, now, 30, step=30.0)  # longer than it takes to be believed
        loop.wait_until_trained()
        assert any("retention" in words for words in loop.health().concerns)
        now[0] += 100 * DAY
        play(loop, now, 50, step=60.0)  # even for long, if it leapt over years
        now[0] = was
        play(loop, now, 100, step=30.0)
        assert loop.ledger.start == 1
        assert len(loop.log()) == 230
        assert trained(loop, now) == 230


def test_a_long_leap_deletes_once_the_user_says_that_it_is_right(tmp_path, now, monkeypatch):
    monkeypatch.setattr(writer, "EVERY", 20)
    monkeypatch.setattr(retention, "LOOK", 0.0)
    with opened(tmp_path / "a.db", retention="90d") as loop:
        play(loop, now, 50)
        now[0] += 2 * YEAR
        play(loop, now, 60, step=3600.0)
        assert loop.ledger.start == 1
        assert loop.repair() == now[0]
        play(loop, now, 5)
        assert loop.log()["at"].min() > START + YEAR
        assert "clock" not in " ".join(loop.health().concerns)


def test_decisions_of_a_process_with_a_wrong_clock(tmp_path, now):
    """Its clock is years ahead of the process that trains: the log says so, and dates them anew."""
    windows = RewardWindows(60.0, 0.0)
    for seq, (kind, at) in enumerate(
        [("decide", START), ("decide", START + YEAR), ("decide", START + 5)], 1
    ):
        windows.apply(Event(seq, kind, at, str(seq), v=2))
    assert windows.clock.time == START + 5
    assert windows.situation.farthest == START + YEAR
    windows.apply(Event(4, "repair", START + 6, data='{"by":"loop"}'))
    examples = windows.apply(Event(5, "advance", START + 70)).changes
    assert [(each.decision, each.at) for each in examples] == [
        (1, START),
        (3, START + 5),
        (2, START + 6),
    ]


def test_two_processes_with_different_clocks(postgres, monkeypatch):
    """One that does not train is a year ahead: its decisions are trained like the others."""
    url, real = postgres.url(), time.time
    options = {"features": FEATURES, "reward": Reward(0, 1, wait=0.3, missing=0), "policy": DOMD}
    with Loop(url, **options) as right:
        monkeypatch.setattr("driftbandit.loop.runtime.time.time", lambda: real() + YEAR)
        with Loop(url) as wrong:
            for _ in range(5):
                for loop in (right, wrong):
                    loop.reward(loop.decide({"x": 0.5}, ARMS).id, 1)
            assert wrong.log()["at"].max() > real() + YEAR - 60
            end = time.monotonic() + 20
            while right.runtime.learner.examples < 10 and time.monotonic() < end:
                right.wait_until_trained()
                time.sleep(0.05)
            assert right.runtime.learner.bandit.rounds == 10
            assert abs(right.runtime.windows.clock.time - real()) < 60
        assert not right.runtime.windows.open
        assert all(audit.agrees for audit in right.audits())


# events are the clock


def events(path, **options):
    return opened(path, clock="events", **{"reward": Reward(0, 1, wait="1h", missing=0)} | options)


@pytest.mark.parametrize("wait", ["1h", 0])
def test_one_wrong_time(tmp_path, wait):
    """A reward that is far ahead is refused; a decision is the next one's business."""
    reward = Reward(0, 1, wait=wait, missing=None if wait == 0 else 0)
    with events(tmp_path / "a.db", reward=reward) as loop:
        loop.decide({"x": 1}, ARMS, id="1", at=START)
        for act in (loop.reward, lambda id, n, at: loop.cancel(id, at=at)):
            with pytest.raises(ValueError, match="ahead of the clock"):
                act("typo", 1, at=10 * START)
        with pytest.raises(ValueError, match="ahead of the clock"):
            loop.metric("1", "m", 1, at=10 * START)
        with pytest.raises(ValueError, match="divide milliseconds by 1000"):
            loop.reward("1", 1, at=1000 * START)
        loop.decide({"x": 1}, ARMS, id="typo", at=10 * START)
        for k in range(1, 200):
            loop.decide({"x": 1}, ARMS, id=f"d{k}", at=START + 60 * k)
        loop.close_windows(START + 20_000)
        if wait:
            assert not loop.runtime.windows.open
            assert loop.runtime.learner.examples == 201
        check(loop)
    with events(tmp_path / "a.db", reward=reward) as loop:
        loop.decide({"x": 1}, ARMS, at=START + 20_000)
        check(loop)


def test_events_with_long_gaps_go_on(tmp_path):
    """As in a past that is filled in: a decision every other day, and then an hour's."""
    with events(tmp_path / "a.db") as loop:
        for k in range(20):
            at = START + 2 * DAY * k
            made = loop.decide({"x": 1}, ARMS, at=at)
            loop.reward(made.id, 1, at=at + 60)
        assert loop.runtime.learner.examples >= 17
        for k in range(20):
            loop.decide({"x": 1}, ARMS, at=at + 60 * k)
        loop.close_windows(at + DAY)
        assert loop.runtime.learner.examples == 40
        assert "repair" not in loop.counts
        check(loop)


def test_all_of_them_in_the_wrong_unit(tmp_path):
    with events(tmp_path / "a.db") as loop:
        for k in range(50):
            loop.decide({"x": 1}, ARMS, at=START + 60 * k)
        for k in range(50, 100):
            loop.decide({"x": 1}, ARMS, at=10 * (START + 60 * k))
        with pytest.raises(ValueError, match="driftbandit repair"):
            loop.decide({"x": 1}, ARMS, at=START + 7000)
        with pytest.raises(ValueError, match="pass at="):
            loop.repair()
        loop.repair(START + 7000)
        for k in range(50):
            loop.decide({"x": 1}, ARMS, at=START + 7000 + 60 * k)
        loop.close_windows(START + 20_000)
        assert loop.runtime.learner.examples == 150
        check(loop)


def test_rewards_never_move_the_clock(tmp_path):
    with events(tmp_path / "a.db") as loop:
        loop.decide({"x": 1}, ARMS, id="1", at=START)
        for _ in range(50):
            loop.reward("unknown", 1, at=START + DAY)
        assert loop.runtime.windows.clock.time == START
        loop.decide({"x": 1}, ARMS, at=START + 60)


def test_rewards_are_not_held_beyond_the_wait(tmp_path, now):
    with opened(tmp_path / "a.db") as loop:
        for at in (253402300000.0, START + 301.0):
            answers = loop.submit_many([("reward", {"id": "x", "value": 1, "at": at})] * 3)
            assert all("ahead of the clock" in str(each) for each in answers)
        assert loop.reward("y", 1, at=START + 299.0) == "held"
        now[0] += 400.0
        loop.wait_until_trained()
        assert not loop.runtime.windows.early


def test_no_sequence_of_readings_stops_a_loop(tmp_path, now):
    """Any jumps; then the clock is right again, and everything is trained within half an hour."""
    for seed in range(5):
        rng = random.Random(seed)
        now[0] = START
        with opened(tmp_path / f"{seed}.db", retention="30d") as loop:
            made = 0
            for _ in range(rng.randrange(2, 8)):
                jump = rng.choice([-1, 1]) * 10 ** rng.uniform(0, 9)
                now[0] = max(1e6, now[0] + jump) if rng.random() < 0.5 else START + jump
                n = rng.randrange(1, 20)
                play(loop, now, n, step=10 ** rng.uniform(-1, 2.5))
                made += n
            if loop.ledger.start == 1:
                check(loop)
            now[0] = START + 5 * DAY
            play(loop, now, 40, step=60.0)
            trained(loop, now)
            assert not loop.runtime.windows.open
            assert loop.runtime.windows.clock.time == pytest.approx(now[0], abs=61.0)
            digest = loop.digest
        with Loop(tmp_path / f"{seed}.db", training="inline") as loop:
            assert loop.digest == digest


def test_the_rule_in_numbers():
    clock = LoopClock(START)
    assert clock.at_least(START + BOUND).time == START + BOUND
    assert clock.is_ahead(START + BOUND + 1)
    assert not LoopClock().is_ahead(1e12)  # before the first event all is possible
    leap = clock.leaping(START + YEAR)
    assert not leap.confirms(START + YEAR + CONFIRM - 1)
    assert leap.confirms(START + YEAR + CONFIRM)
    landed = leap.advanced(START + YEAR + CONFIRM)
    assert landed.leapt == YEAR + CONFIRM
    assert not landed.may_delete
    assert landed.at_least(landed.time + DAY / 2).may_delete
    far = clock.advanced(START + 2 * YEAR)
    assert not far.at_least(far.time + DAY).may_delete


# retention


def oldest(path):
    ledger = Ledger(path, "loop", write=False)
    try:
        return min(e.at for e in ledger.read(ledger.start) if e.kind == "decide")
    finally:
        ledger.close()


@pytest.mark.parametrize("store", ["file", "postgres"])
@pytest.mark.parametrize("how", ["rewarded", "unrewarded", "no wait", "closed every day"])
def test_what_is_declared_is_kept_to_within_a_day(tmp_path, request, now, store, how):
    path = tmp_path / "a.db" if store == "file" else request.getfixturevalue("postgres").url()
    reward = Reward(0, 1, wait=0 if how == "no wait" else "1h")
    options = {"reward": reward, "retention": "10d"}
    loop = opened(path, **options)
    for day in range(25):
        if how == "closed every day" and day:
            loop.close()
            loop = opened(path, **options)
        play(loop, now, 6, step=14400.0, reward=how == "rewarded" or day % 2)
    loop.close()
    with opened(path, **options) as loop:
        play(loop, now, 3)
        loop.wait_until_trained()
        digest = loop.digest
    assert 9.8 <= (now[0] - oldest(path)) / DAY <= 11.0  # a decision every four hours
    with Loop(path, training="inline") as loop:
        assert loop.digest == digest
        audits = list(loop.audits())
        assert len(audits) > 10
        assert all(audit.agrees for audit in audits)


def test_an_idle_loop_forgets_too(tmp_path, now, monkeypatch):
    """In the background: with no call at all, the last decisions go when their time is over."""
    monkeypatch.setattr(retention, "LOOK", 0.1)
    with opened(tmp_path / "a.db", retention="2h") as loop:
        play(loop, now, 30)
    loop = Loop(tmp_path / "a.db")
    end = time.monotonic() + 20
    while loop.ledger.decision_after(0.0) <= loop.ledger.last() and time.monotonic() < end:
        now[0] += 600.0
        time.sleep(0.15)
    loop.close()
    with Loop(tmp_path / "a.db", training="inline") as loop:
        assert len(loop.log()) == 0


def test_decisions_without_a_wait_are_closed_after_a_week():
    windows = RewardWindows(0.0, None)
    for k in range(1000):
        windows.apply(Event(windows.seq + 1, "decide", START + 3600 * k, str(k)))
        if windows.due <= START + 3600 * k:
            windows.apply(Event(windows.seq + 1, "advance", START + 3600 * k))
    assert len(windows.open) == pytest.approx(UNREWARDED / 3600, abs=2)
    assert windows.since > 700
    old = RewardWindows(0.0, None)  # as version 0.2 meant it
    for k in range(1000):
        old.apply(Event(old.seq + 1, "decide", START + 3600 * k, str(k), v=1))
        old.apply(Event(old.seq + 1, "advance", START + 3600 * k, v=1))
    assert len(old.open) == 1000
    assert math.isfinite(old.due)


def test_rewarded_decisions_leave_nothing_behind():
    """One that waits for its week does not keep in memory what came after it."""
    windows = RewardWindows(0.0, None)
    windows.apply(Event(1, "decide", START, "first"))
    for k in range(2000):
        windows.apply(Event(windows.seq + 1, "decide", START + k, str(k)))
        of = windows.seq
        data = f'{{"value":1.0,"clipped":false,"of":{of}}}'
        windows.apply(Event(windows.seq + 1, "reward", START + k, str(k), data=data))
    assert len(windows.open) == 1
    assert windows.situation.due > START
