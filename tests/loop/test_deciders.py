"""Many who write to one loop in PostgreSQL: one order of events, one learner, one answer."""

import threading
import time

import psycopg
import pytest

from driftbandit import DOMD, Category, Features, Flag, Loop, Number, Reward
from driftbandit.loop.errors import LedgerError
from driftbandit.loop.state.reward_windows import Example
from driftbandit.loop.storage.ledger import Ledger
from driftbandit.loop.training import replay
from driftbandit.loop.writing import writer
from naive_book import examples

FEATURES = Features(context={"age": Number(18, 90)}, arm={"topic": Category(["x", "y"])})
ARMS = {"a": {"topic": "x"}, "b": {"topic": "y"}}
NEW = {"features": FEATURES, "policy": DOMD, "exploration": 0.3}
SOON = Reward(0, 1, wait=0.05, missing=0)
SLOW = Reward(0, 1, wait=3600, missing=0)
AT_ONCE = Reward(0, 1)


@pytest.fixture
def url(postgres):
    return postgres.url()


def until(true, seconds=10.0):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


def in_step(*loops):
    """All have read the same log and know what the learner knows."""
    until(lambda: len({loop.runtime.windows.seq for loop in loops}) == 1)
    until(lambda: all(loop.lag.examples == 0 for loop in loops))
    until(lambda: len({loop.digest for loop in loops}) == 1)


def trainers(*loops):
    return [loop for loop in loops if loop.health().trains]


def lose(url, before):
    """Connections that began before a time end, as when their machine does."""
    others = "datname = current_database() AND pid <> pg_backend_pid()"
    end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    with psycopg.connect(url, autocommit=True) as base:
        ended = base.execute(f"{end} WHERE {others} AND backend_start < %s", (before,)).fetchall()
        assert len(ended) >= 2  # one writes, one reads


def moment(url):
    """The time of the database."""
    with psycopg.connect(url, autocommit=True) as base:
        return base.execute("SELECT clock_timestamp()").fetchone()[0]


def two_processes(url, **options):
    """Two loops that share nothing but the database, and a time between their beginnings."""
    one, between = Loop(url, **options), moment(url)
    return one, Loop(url), between


def check(url, wait, missing):
    """The learner follows from the log, however it was read; the log has no gap."""
    with Loop(url, training="inline") as loop:
        ledger, past = loop.ledger, loop.runtime.reread()
        events = list(ledger.read())
        assert [event.seq for event in events] == list(range(1, len(events) + 1))
        _, changes = replay.unfold(ledger, past, None)
        trained = [(c.decision, c.position, c.value) for c in changes if isinstance(c, Example)]
        assert trained == examples(events, wait, missing)
        assert replay.replay(ledger, past, None).learner.digest == loop.digest
        assert all(audit.logged == audit.computed for audit in loop.audits())
        return events


def test_what_one_says_another_knows(url):
    with Loop(url, reward=SLOW, **NEW) as one, Loop(url) as two:
        made = one.decide({"age": 30}, ARMS, id="d")
        assert two.decide({"age": 30}, ARMS, id="d") == made
        with pytest.raises(ValueError, match="another decision"):
            two.decide({"age": 31}, ARMS, id="d")
        assert two.reward("d", 1) == "counted"
        assert one.reward("d", 0) == "corrected"
        assert two.cancel("d") == "cancelled"
        assert one.reward("d", 1) == "late"
        assert two.reward("later", 1) == "held"
        one.decide({"age": 40}, ARMS, id="later")
        assert two.reward("later", 0) == "corrected"
        with pytest.raises(ValueError, match="not a slate"):
            two.reward("later", 0, position=1)
        in_step(one, two)
        assert one.counts == two.counts
        assert len(one.log()) == len(two.log()) == 2
        assert [loop.health().decisions for loop in (one, two)] == [2, 2]


def test_many_threads_of_two_deciders_make_one_log(url, monkeypatch):
    """Every thread wants ids that others want, too: the first wins, all get its answer."""
    monkeypatch.setattr(writer, "EVERY", 40)
    with Loop(url, reward=SOON, **NEW) as one, Loop(url) as two, Loop(url) as three:
        answers = {}

        def work(loop, k):
            for n in range(25):
                shared = loop.decide({"age": 20 + n}, ARMS, id=f"shared {n}")
                answers.setdefault(n, set()).add((shared.arm, shared.probability))
                own = loop.decide({"age": 20 + n}, ARMS, k=2 if n % 5 == 0 else None)
                loop.reward(own.id, (n + k) % 2, position=1 if n % 5 == 0 else None)
                loop.reward(f"shared {n + k}", n % 2)  # it may be there or not, open or closed
                if n % 7 == k:
                    loop.cancel(f"shared {n + k}")

        loops = (one, two, three)
        threads = [threading.Thread(target=work, args=(loops[k % 3], k)) for k in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert all(len(each) == 1 for each in answers.values())
        until(lambda: not one.runtime.windows.open)
        in_step(*loops)
        assert len(trainers(*loops)) == 1
        assert one.counts == two.counts == three.counts
        assert one.counts["decide"] + one.counts.get("decide cancelled", 0) == 25 + 150
    events = check(url, 0.05, 0)
    assert sum(event.kind == "checkpoint" for event in events) >= 2


@pytest.mark.parametrize("reward", [SOON, AT_ONCE])
def test_another_trains_when_one_is_lost(url, reward):
    one, two, between = two_processes(url, reward=reward, **NEW)
    assert trainers(one, two) == [one]
    for n in range(30):
        loop = (one, two)[n % 2]
        loop.reward(loop.decide({"age": 20 + n}, ARMS).id, n % 2)
    lose(url, between)
    begun = time.monotonic()
    for n in range(30):
        two.reward(two.decide({"age": 20 + n}, ARMS, id=f"n{n}").id, 1)
    assert time.monotonic() - begun < 5
    until(lambda: two.health().trains)
    with pytest.raises(LedgerError, match="open the loop again"):
        one.decide({"age": 30}, ARMS)
    one.close()
    with Loop(url) as again:
        assert not again.health().trains
        again.decide({"age": 20}, ARMS, id="n0")
        assert two.wait_until_trained(10)
        in_step(two, again)
        two.close()
        until(lambda: again.health().trains)
        again.reward(again.decide({"age": 30}, ARMS, id="last").id, 1)
        until(lambda: not again.runtime.windows.open)
        assert again.wait_until_trained(10)
    events = check(url, reward.wait, 0)
    assert sum(event.kind == "decide" for event in events) == 61


def test_examples_that_nobody_stored_are_trained_by_the_next(url, monkeypatch):
    """The one who trains dies before it leaves a snapshot of anything."""
    monkeypatch.setattr(Ledger, "publish", lambda *_: None)
    one, two, between = two_processes(url, reward=AT_ONCE, **NEW)
    for n in range(20):
        one.reward(one.decide({"age": 20 + n}, ARMS).id, n % 2)
    assert one.wait_until_trained(10)
    until(lambda: two.lag.examples == 20)
    assert two.digest != one.digest
    assert not two.wait_until_trained(0.0)
    lose(url, between)
    assert two.wait_until_trained(10)
    assert two.digest == one.digest
    assert two.lag.examples == 0
    for loop in (one, two):
        loop.close()
    check(url, 0.0, 0)


def test_settings_and_growth_travel(url):
    with Loop(url, reward=AT_ONCE, **NEW) as one, Loop(url) as two:
        two.configure(exploration=0.5)
        until(lambda: one.settings == two.settings)
        made = one.decide({"age": 30}, ARMS)
        assert min(made.probabilities.values()) == 0.25
        with pytest.raises(ValueError, match="trained by another"):
            two.add_features(context={"new": Flag()})
        with pytest.raises(ValueError, match="trained by another"):
            two.erase(key="x")
        one.add_features(context={"new": Flag()})
        until(lambda: two.features == one.features)
        grown = two.decide({"age": 30, "new": True}, ARMS)
        assert one.audit(grown.id).agrees
        two.reward(grown.id, 1)
        in_step(one, two)
        assert two.audit(grown.id).agrees
        assert two.audit(made.id).agrees
    check(url, 0.0, 0)


@pytest.mark.parametrize("relearn", [False, True])
def test_after_an_erasure_others_read_again(url, relearn):
    with Loop(url, reward=AT_ONCE, **NEW) as one:
        two = Loop(url)
        for n in range(20):
            loop = (one, two)[n % 2]
            loop.reward(loop.decide({"age": 20 + n}, ARMS, key=f"k{n % 4}", id=f"d{n}").id, n % 2)
        assert one.erase(key="k1", relearn=relearn).events == 10
        with pytest.raises(LedgerError, match="has erased a key"):
            two.decide({"age": 30}, ARMS)
        two.close()
        with Loop(url) as two:
            two.reward(two.decide({"age": 30}, ARMS, id="d1").id, 1)  # its id is free again
            in_step(one, two)
            assert two.counts == one.counts
            assert "k1" not in two.log()["key"].to_list()


def test_who_wants_to_be_alone_is(url):
    with Loop(url, reward=SLOW, training="inline", **NEW):
        with pytest.raises(LedgerError, match="open already"):
            Loop(url)
        Ledger(url, "loop", write=False).close()
    with Loop(url), pytest.raises(LedgerError, match="open already"):
        Loop(url, training="inline")


def test_two_may_declare_the_same_loop_at_once(url):
    found, wrong = [], []

    def work():
        try:
            found.append(Loop(url, reward=SLOW, seed=3, **NEW))
        except ValueError as error:
            wrong.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert len(trainers(*found)) == 1
    for loop in found:
        loop.close()
    assert [event.kind for event in check(url, 3600, 0)] == ["declare", "configure"]


def test_who_has_nothing_to_store_takes_no_turn(url, monkeypatch):
    """Others would wait for it, and the database would write."""
    turns, turn = [], Ledger.turn

    def counted(ledger, *given, **options):
        turns.append(given)
        return turn(ledger, *given, **options)

    with Loop(url, reward=SLOW, **NEW) as one, Loop(url) as two:
        in_step(one, two)
        monkeypatch.setattr(Ledger, "turn", counted)
        one.decide({"age": 30}, ARMS)
        until(lambda: two.counts.get("decide") == 1)  # it hears of it all the same
        time.sleep(2.5 * writer.LOOK)
        assert len(turns) == 1


def test_who_stops_in_its_turn_is_thrown_out(url, monkeypatch):
    """A process that is frozen with the lock would hold all others."""
    monkeypatch.setattr("driftbandit.loop.storage.postgres.TURN", "300ms")
    with Loop(url, reward=SLOW, **NEW) as one:
        two = Ledger(url, "loop", alone=False)
        frozen = two.turn(two.last())
        frozen.__enter__()
        begun = time.monotonic()
        one.decide({"age": 30}, ARMS)
        assert 0.1 < time.monotonic() - begun < 5
        with pytest.raises(LedgerError, match="open the loop again"):
            frozen.__exit__(None, None, None)
        two.close()
        assert one.counts["decide"] == 1


def test_an_older_database_is_brought_up_to_date(url):
    with Loop(url, reward=SLOW, training="inline", **NEW) as loop:
        loop.decide({"age": 30}, ARMS, id="d")
    with psycopg.connect(url, autocommit=True) as base:
        base.execute("DROP TABLE snapshot")
        base.execute("DROP TABLE checkpoint_piece, key_row")
        base.execute("ALTER TABLE loop DROP COLUMN unpurged")
        base.execute("DROP INDEX rare, cancelled")
        base.execute("ALTER TABLE event DROP COLUMN k, DROP COLUMN v, DROP COLUMN seal")
        base.execute("DELETE FROM driftbandit_migration WHERE step >= 3")
    with Loop(url) as one, Loop(url) as two:
        assert two.reward("d", 1) == "counted"
        assert one.counts["decide"] == 1


def test_votes_of_open_decisions_survive_a_change_of_the_trainer(url):
    """A shadow is asked in the process that trains; the next one goes on with these votes, and with
    what follows from the log."""
    one, two, between = two_processes(url, reward=SOON, **NEW)
    one.shadow("even", exploration=0.5)
    for n in range(40):
        loop = (one, two)[n % 2]
        loop.reward(loop.decide({"age": 20 + n}, ARMS, default="a").id, n % 2)
        if n == 25:
            until(lambda: two.runtime.candidates.candidates)
            lose(url, between)
            one = two
    until(lambda: two.health().trains and not two.runtime.windows.open)
    assert two.wait_until_trained(10)
    again = replay.replay(two.ledger, two.runtime.reread(), None)
    assert again.candidates.digest == two.runtime.candidates.digest
    assert two.compare().lead("even", "live").rows >= 38
    two.close()
    check(url, SOON.wait, SOON.missing)


def test_candidates_travel(url):
    wider = Features(
        context={"age": Number(18, 90), "hour": Number(0, 24)},
        arm={"topic": Category(["x", "y"])},
    )

    def play(*loops):
        for n in range(30):
            loop = loops[n % len(loops)]
            made = loop.decide({"age": 20 + n, "hour": n % 24}, ARMS, default="a")
            loop.reward(made.id, n % 2)

    one, two, between = two_processes(url, reward=AT_ONCE, **NEW)
    with one, two:
        with pytest.raises(ValueError, match="trained by another"):
            two.shadow("wide", features=wider)
        one.shadow("wide", features=wider)
        one.trial("wide", share=0.5)
        until(lambda: two.settings == one.settings and two.runtime.candidates.candidates)
        play(one, two)
        in_step(one, two)
        until(lambda: one.runtime.candidates.digest == two.runtime.candidates.digest)
        one.promote("wide", expected_live="live", force=True)
        until(lambda: two.settings == one.settings and two.features == wider)
        play(one, two)
        in_step(one, two)
        lose(url, between)
        until(lambda: two.health().trains)
        play(two)
        assert two.wait_until_trained(10)
        with pytest.raises(LedgerError):
            play(one)
    check(url, AT_ONCE.wait, AT_ONCE.missing)
