"""Loop: decisions with known probabilities, late rewards, a learner that follows from the log."""

import json
import math
import os
import pickle
import threading
from datetime import UTC, datetime

import numpy as np
import polars as pl
import pytest

from driftbandit import (
    DOMD,
    AutoDOMD,
    Bandit,
    Category,
    Features,
    Flag,
    LinUCB,
    Loop,
    Number,
    Recipe,
    Reward,
    Vector,
)
from driftbandit.loop.errors import LedgerError
from driftbandit.loop.exploration import Floor, InverseGap, Thompson
from driftbandit.loop.state.reward_windows import Example
from driftbandit.loop.storage import events
from driftbandit.loop.training import replay
from driftbandit.loop.writing import pending, writer
from driftbandit.policies.growth import grown_policy
from raw_sql import run_sql

pytestmark = pytest.mark.usefixtures("no_wait_for_the_disk")

FEATURES = Features(
    context={"age": Number(18, 90), "country": Category(["NL", "DE"])},
    arm={"price": Number(0, 100), "taste": Vector(2)},
)
ARMS = {"a": {"price": 9, "taste": [1.0, 2.0]}, "b": {"price": 50, "taste": [0.0, -1.0]}, "c": {}}
CLICKS = Reward(0, 1, wait=100, missing=0)


def opened(folder, **options):
    """A loop whose time is that of its events, trained by its caller."""
    new = {"features": FEATURES, "reward": CLICKS, "policy": DOMD, "clock": "events"}
    given = new | {"training": "inline", "exploration": 0.3} | options
    return Loop(folder / "shop.db", **given)


def again(folder, **options):
    return Loop(folder / "shop.db", **({"training": "inline"} | options))


def play(loop, n=60, seed=0, start=0.0, **options):
    """Decisions 10 seconds apart; some rewards come, some late, some are corrected or cancelled."""
    rng, made = np.random.default_rng(seed), []
    for t in start + 10.0 * np.arange(n):
        context = {"age": int(rng.integers(10, 100)), "country": str(rng.choice(["NL", "FR"]))}
        decision = loop.decide(context, ARMS, at=t, **options)
        made.append(decision)
        old = made[rng.integers(max(0, len(made) - 12), len(made))]
        if rng.random() < 0.7:
            loop.reward(old.id, float(rng.random() < 0.5), at=t)
        if rng.random() < 0.1:
            loop.cancel(old.id, at=t)
    return made


def replayed(loop):
    """The learner from the very beginning of the log, or from where the log begins."""
    return replay.replay(loop.ledger, loop.runtime.reread(), replay.origin(loop.ledger))


def check(loop):
    """Live and replayed are the same bits, and all probabilities can be computed again."""
    twin = replayed(loop)
    assert twin.learner.digest == loop.digest
    assert twin.windows.counts == loop.counts
    assert (twin.windows.open, twin.windows.early) == (
        loop.runtime.windows.open,
        loop.runtime.windows.early,
    )
    audits = list(loop.audits())
    assert all(audit.logged == audit.computed for audit in audits)
    return audits


def trained(loop):
    """Rows and rewards that the log's frame says were trained, in the order of events."""
    _, changes = replay.unfold(loop.ledger, loop.runtime.reread(), None)
    order = [change.decision for change in changes if isinstance(change, Example)]
    rows = {row["seq"]: row for row in loop.log().iter_rows(named=True)}
    for seq in (seq for seq in order if rows[seq]["status"] == "trained"):
        x = FEATURES.encode(json.loads(rows[seq]["context"]), [ARMS[rows[seq]["arm"]]])[0]
        yield x, CLICKS.inside(rows[seq]["reward"])[0]


def by_hand(loop):
    """A bandit that is trained the same, one after the other."""
    bandit = Bandit(DOMD(problem=FEATURES.problem(CLICKS)))
    for x, r in trained(loop):
        bandit.update(x, r)
    return bandit


def lasting(why):
    """What an explanation says of the decision; its bonus is of the moment when it is asked."""
    return why._replace(bonus=None)


def test_learner_is_a_function_of_the_log(tmp_path):
    with opened(tmp_path) as loop:
        made = play(loop)
        assert len(check(loop)) == 60
        assert loop.lag == (0, 0.0)
        assert np.array_equal(by_hand(loop).theta, loop.runtime.learner.bandit.theta)
        digest, counts = loop.digest, loop.counts
    with again(tmp_path) as loop:
        assert loop.digest == digest
        assert loop.counts == counts
        play(loop, start=600.0, seed=1)
        check(loop)
        assert loop.audit(made[30].id).agrees
        assert lasting(loop.audit(made[30].id).why) == lasting(made[30].why)


@pytest.mark.parametrize(
    ("policy", "rule", "half_life"),
    [
        (AutoDOMD, Floor(0.1), None),
        (AutoDOMD, Thompson(0.1, draws=20), "auto"),
        (DOMD, InverseGap(0.1), "10min"),
        (DOMD, Floor(0.0), "1d"),
    ],
)
def test_every_rule_and_memory(tmp_path, policy, rule, half_life):
    options = {"policy": policy, "exploration": rule, "half_life": half_life}
    with opened(tmp_path, **options) as loop:
        play(loop, 40)
        check(loop)
    with again(tmp_path) as loop:
        assert loop.settings.exploration == rule
        made = play(loop, 10, start=5000.0)
        check(loop)
        aged = loop.ledger.find(made[0].id).read().learner[2]
        assert aged > 4000.0 if half_life else aged == 0.0


def test_no_wait(tmp_path):
    with opened(tmp_path, reward=Reward(0, 1)) as loop:
        play(loop)
        check(loop)
        first, second = (loop.decide({}, ARMS, at=700.0) for _ in range(2))
        rounds = loop.runtime.learner.bandit.rounds
        assert loop.reward(second.id, 1, at=0.0) == "counted"
        assert loop.runtime.learner.bandit.rounds == rounds + 1
        assert loop.reward(second.id, 0) == "late"
        assert loop.reward("nobody", 0) == "unknown"
        loop.close_windows(6e5)
        assert loop.reward(first.id, True) == "counted"
        third = loop.decide({}, ARMS, at=6e5)
        loop.close_windows(6e5 + 8 * 86400.0)  # open for a week at most
        assert loop.reward(third.id, 1) == "late"


def test_rewards_that_are_late_held_or_wrong(tmp_path):
    with opened(tmp_path) as loop:
        assert loop.reward("mine", 1, at=0.0) == "held"
        decision = loop.decide({}, ARMS, id="mine", at=1.0)
        assert loop.reward(decision.id, 0.5) == "corrected"
        assert loop.reward(decision.id, math.inf) == "corrected"
        assert loop.reward(decision.id, 7) == "corrected"  # clipped
        loop.close_windows(101.0)
        row = loop.log().row(0, named=True)
        assert (row["status"], row["reward"], row["late"]) == ("trained", 7.0, 0)
        assert loop.reward(decision.id, 0) == "late"
        assert loop.cancel(decision.id) == "late"
        assert loop.log().row(0, named=True)["late"] == 1
        assert loop.counts["clipped"] == 2
        for bad in ("1", None, math.nan, [1], 1j):
            with pytest.raises(ValueError, match=r"reward|value|number"):
                loop.reward(decision.id, bad)
        with pytest.raises(ValueError, match=r"already|too long ago"):
            loop.decide({}, ARMS, at=1.0)
        loop.decide({}, ARMS, at=1.1)
        check(loop)


def test_a_retry_gives_the_same_answer(tmp_path):
    rare = {"age": np.float32(31), "country": None}
    with opened(tmp_path) as loop:
        made = loop.decide(rare, ARMS, id="mine", key="ann", default="b", at=0.0)
        play(loop, start=10.0)
        same = loop.decide(rare, ARMS, id="mine", key="ann", default="b", at=0.0)
        assert same == made
        assert lasting(same.why) == lasting(made.why)
        assert loop.counts["decide"] == 61
        for other in ({"age": 32}, rare | {"country": "NL"}):
            with pytest.raises(ValueError, match="another decision"):
                loop.decide(other, ARMS, id="mine", key="ann", default="b", at=0.0)
        with pytest.raises(ValueError, match="another decision"):
            loop.decide(rare, ARMS, id="mine", key="bob", default="b", at=0.0)
    with again(tmp_path) as loop:
        assert loop.decide(rare, ARMS, id="mine", key="ann", default="b") == made


def test_names_of_arms(tmp_path):
    with opened(tmp_path) as loop:
        listed = loop.decide({}, list(ARMS.values()), id="x", at=0.0)
        assert listed.arm in (0, 1, 2)
        assert set(listed.probabilities) == {0, 1, 2}
        mixed = {7: {"price": 1}, "8": {"price": 2}}
        made = loop.decide({}, mixed, id="y", at=0.0)
        assert loop.decide({}, mixed, id="y", at=0.0) == made
        assert set(made.probabilities) == {7, "8"}
        check(loop)


def test_default_modes_and_holdout(tmp_path, caplog):
    with opened(tmp_path, exploration=0.3, mode="apprentice") as loop:
        made = [loop.decide({}, ARMS, default="b", at=float(k)) for k in range(40)]
        assert {d.role for d in made} == {"apprentice"}
        assert all(d.probabilities["b"] == pytest.approx(0.8) for d in made)
        assert 20 < sum(d.arm == "b" for d in made) < 40
        assert not caplog.records
        loop.configure(exploration=0.0)
        assert "without exploration" in caplog.text
        made = loop.decide({}, ARMS, default="b", at=40.0)
        assert (made.arm, made.probability) == ("b", 1.0)
        with pytest.raises(ValueError, match="needs a default"):
            loop.decide({}, ARMS)
        empty = loop.decide({"age": 3}, {}, default="whatever", at=50.0)
        assert (empty.arm, empty.probability, empty.role, empty.why) == (
            "whatever",
            1.0,
            "empty",
            None,
        )
        loop.reward(empty.id, 1)
        loop.close_windows(1000.0)
        loop.configure(mode="active", holdout=0.25, exploration=0.0)
        share = [
            loop.decide({}, ARMS, key=f"user {k % 100}", default="c", at=1000.0).role
            for k in range(200)
        ]
        assert share[:100] == share[100:]  # a key stays where it is
        assert 10 < share[:100].count("holdout") < 40
        check(loop)
    with again(tmp_path) as loop:
        assert (loop.settings.mode, loop.settings.holdout) == ("active", 0.25)


def test_why_adds_up(tmp_path):
    with opened(tmp_path) as loop:
        play(loop)
        decision = loop.decide({"age": 30}, ARMS, at=600.0)
        why = decision.why
        theta = loop.runtime.learner.bandit.theta
        z = dict(zip(ARMS, FEATURES.encode({"age": 30}, ARMS) @ theta))
        assert why.arm == decision.arm
        assert why.lead == pytest.approx(z[why.arm] - z[why.runner_up])
        assert sum(why.terms.values()) == pytest.approx(why.lead)
        assert max(z[name] for name in z if name != why.arm) == z[why.runner_up]
        sizes = [abs(v) for v in why.terms.values()]
        assert sizes == sorted(sizes, reverse=True)
        alone = loop.decide({}, [{"price": 3}], at=600.0).why
        assert (alone.arm, alone.runner_up) == (0, None)


def test_growth_takes_open_decisions_along(tmp_path):
    with opened(tmp_path, policy=AutoDOMD) as loop:
        made = play(loop)
        loop.add_features(context={"vip": Flag()})
        assert "vip" in loop.features.context
        assert loop.reward(made[-1].id, 1) == "counted"
        loop.decide({"vip": True}, ARMS, at=600.0)
        loop.add_features(arm={"new": Flag()})
        loop.decide({"vip": True}, {"z": {"new": True}, **ARMS}, at=650.0)
        loop.close_windows(2000.0)
        check(loop)
        digest = loop.digest
        with pytest.raises(ValueError, match="declared already"):
            loop.add_features(context={"vip": Flag()})
    with again(tmp_path) as loop:
        assert loop.digest == digest
        assert {"vip", "new"} <= set(loop.features.columns)
        loop.decide({"vip": False}, ARMS, at=2000.0)
        check(loop)


def test_growth_is_a_learner_whose_new_columns_were_zero(tmp_path):
    with opened(tmp_path, reward=Reward(0, 1)) as loop:
        play(loop)
        policy = loop.runtime.learner.version.policy
        loop.add_features(context={"vip": Flag()})
        twin = Bandit(grown_policy(policy, loop.features.problem(loop.declaration.reward)))
        for x, r in trained(loop):
            twin.update(loop.features.pad(x), r)
        assert twin.rounds > 20
        assert np.allclose(twin.theta, loop.runtime.learner.bandit.theta, atol=1e-12)
        assert np.allclose(twin.curvature, loop.runtime.learner.bandit.curvature, atol=1e-9)


def test_erasure(tmp_path):
    with opened(tmp_path) as loop:
        for k in range(6):
            play(loop, 10, seed=k, start=100.0 * k, key=f"user {k % 3}")
        digest, before = loop.digest, loop.log()
        assert loop.erase(key="user 1").events > 20
        assert loop.digest == digest
        log = loop.log()
        assert log.filter(pl.col("key") == "user 1").is_empty()
        rest = before.filter(pl.col("key") != "user 1")
        assert log.select("id", "status", "reward").equals(rest.select("id", "status", "reward"))
        theirs = before.filter(pl.col("key") == "user 1")["id"][0]
        with pytest.raises(ValueError, match="no decision"):
            loop.audit(theirs)
        with pytest.raises(ValueError, match="older than"):
            loop.audit(before["id"][0])
        play(loop, 10, start=700.0)
        assert len(check(loop)) >= 10
        digest = loop.digest
    with again(tmp_path) as loop:
        assert loop.digest == digest
        assert loop.erase(key="nobody").events == 0


def test_relearning_forgets_what_a_key_trained(tmp_path):
    digests = []
    for erased in (True, False):
        folder = tmp_path / str(erased)
        folder.mkdir()
        # sampled by id alone, while probabilities depend on the learner
        with opened(folder, exploration=InverseGap(0.1, strength=1e-6)) as loop:
            for k in range(30):
                for who in ("ann", "bob") if erased else ("ann",):
                    made = loop.decide({"age": 20 + k}, ARMS, id=f"{who} {k}", key=who, at=k * 10.0)
                    loop.reward(made.id, k % 2)
            loop.close_windows(1000.0)
            if erased:
                kept = loop.digest
                loop.decide({}, ARMS, at=1000.0)  # by a learner that is gone
                loop.erase(key="bob", relearn=True)
                assert loop.decide({}, ARMS, at=1000.0).id in [a.id for a in loop.audits()]
                assert loop.digest != kept
            digests.append(loop.digest)
            check(loop)
    assert digests[0] == digests[1]


def test_a_checkpoint_that_was_under_way_does_not_bring_back_what_was_erased(tmp_path):
    with opened(tmp_path) as loop:
        play(loop, key="ann")
        runtime = loop.runtime
        mark = runtime.windows.mark()
        data, state = replay.checkpoint(runtime.learner, runtime.candidates, mark)
        loop.erase(key="ann", relearn=True)
        loop.runtime.writer.submit(pending.Pending("checkpoint", data=data, state=state))
        digest = loop.digest
    with again(tmp_path) as loop:
        assert loop.digest == digest
        check(loop)


def test_a_ledger_in_memory():
    given = {"features": FEATURES, "reward": CLICKS, "clock": "events", "training": "inline"}
    with Loop(":memory:", **given) as loop, Loop(":memory:", **given) as other:
        play(loop)
        check(loop)
        assert other.counts["declare"] == 1
        assert not other.counts.get("decide")
    assert not os.path.exists(":memory:")


def test_keep_drops_what_is_old(tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "EVERY", 10)
    with opened(tmp_path, retention=300, seed=5) as loop:
        play(loop, 200)
        digest, log = loop.digest, loop.log()
        assert 30 < len(log) < 150
        assert log["at"].min() > 1200.0
        check(loop)
    with again(tmp_path) as loop:
        assert loop.digest == digest
        play(loop, 20, start=2000.0)
        check(loop)
    with pytest.raises(ValueError, match="longer than wait"):
        opened(tmp_path, name="other", retention=100)


def test_checkpoints_are_a_cache(tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "EVERY", 7)
    with opened(tmp_path) as loop:
        play(loop, 100)
        digest, points = loop.digest, loop.ledger.checkpoints()
        assert len(points) > 5
        assert all(loop.audit(id).agrees for id in loop.log()["id"][::9])
        path = loop.ledger.path
        run_sql(path, "UPDATE checkpoint SET state = x'00' WHERE seq = ?", points[-1].seq)
        run_sql(path, "UPDATE checkpoint SET state = zeroblob(length(state)) WHERE seq > 0")
    with again(tmp_path) as loop:
        assert loop.digest == digest


def test_the_clock_may_go_back(tmp_path, monkeypatch):
    now = [1e9]
    monkeypatch.setattr("time.time", lambda: now[0])
    with opened(tmp_path, clock="wall") as loop:
        first = loop.decide({}, ARMS)
        now[0] += 100.0
        loop.wait_until_trained()
        assert loop.reward(first.id, 1) == "late"
        now[0] -= 5000.0
        second = loop.decide({}, ARMS)  # is as late as the latest
        assert loop.log()["at"].to_list() == [1e9, 1e9 + 100.0]
        loop.reward(second.id, 1)
        with pytest.raises(ValueError, match="ahead of the clock"):
            loop.decide({}, ARMS, at=1e9 + 500.0)
        with pytest.raises(ValueError, match="wall clock"):
            loop.close_windows(3.0)
        now[0] = 1e9 + 201.0
        when = datetime.fromtimestamp(1e9 + 150.0, UTC)
        loop.decide({}, ARMS, at=when)
        assert loop.log()["status"].to_list() == ["trained", "trained", "open"]
        check(loop)


def test_background_training_and_many_threads(tmp_path):
    options = {
        "clock": "wall",
        "training": "background",
        "reward": Reward(0, 1, wait=0.05, missing=0),
    }
    with opened(tmp_path, **options, seed=3) as loop:
        errors = []

        def work(k):
            try:
                for j in range(25):
                    made = loop.decide({"age": 20 + j}, ARMS, id=f"{k % 4} {j}", key=str(k % 4))
                    loop.reward(made.id, j % 2)
            except Exception as error:  # pragma: no cover
                errors.append(error)

        threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
        for thread in threads:
            thread.start()
        loop.add_features(context={"vip": Flag()})
        for thread in threads:
            thread.join()
        assert not errors
        assert loop.counts["decide"] == 100  # each was asked twice
        assert loop.erase(key="3", relearn=True).events > 25
        while loop.runtime.windows.open:
            loop.wait_until_trained(5.0)
        assert loop.wait_until_trained(5.0)
        check(loop)
    with again(tmp_path) as loop:
        check(loop)


def test_metrics_log_and_export(tmp_path):
    with opened(tmp_path) as loop:
        made = play(loop, 20)
        loop.metric(made[0].id, "revenue", 12.5)
        loop.metric("nobody", "revenue", 1)
        log = loop.log()
        assert log["metrics"][0].to_list() == [{"name": "revenue", "value": 12.5}]
        assert log["id"].to_list() == [d.id for d in made]
        assert log["arm"].to_list() == [d.arm for d in made]
        assert log["probability"].to_list() == [d.probability for d in made]
        path = loop.export(tmp_path / "log.parquet")
        assert pl.read_parquet(path).equals(log)
        assert os.listdir(tmp_path).count("log.parquet") == 1
        with pytest.raises(ValueError, match="metric"):
            loop.metric(made[0].id, "revenue", "much")
        check(loop)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:This process.*fork:DeprecationWarning")
def test_no_use_after_a_fork(tmp_path):
    with opened(tmp_path, training="background") as loop:
        made = loop.decide({}, ARMS, at=0.0)
        read, write = os.pipe()
        if os.fork() == 0:
            for call in (
                lambda: loop.decide({}, ARMS, at=0.0),
                lambda: loop.reward(made.id, 1),
                loop.wait_until_trained,
                loop.log,
                lambda: loop.erase(key="a"),
            ):
                try:
                    call()
                    os.write(write, b"went ")
                except LedgerError as error:
                    os.write(write, b"refused " if "fork" in str(error) else b"? ")
            loop.close()
            os._exit(0)
        os.wait()
        assert os.read(read, 200).split() == [b"refused"] * 5
        assert loop.reward(made.id, 1) == "counted"
        check(loop)


def test_closed_twice_and_used_after(tmp_path):
    loop = opened(tmp_path)
    loop.close()
    loop.close()
    for call in (
        lambda: loop.decide({}, ARMS),
        lambda: loop.reward("x", 1),
        loop.log,
        loop.wait_until_trained,
    ):
        with pytest.raises(LedgerError, match="closed"):
            call()
    with pytest.raises(ValueError, match="copied"):
        pickle.dumps(loop)


def test_a_loop_that_cannot_store_stops(tmp_path, monkeypatch):
    loop = opened(tmp_path)
    made = loop.decide({}, ARMS, at=0.0)
    monkeypatch.setattr(
        loop.ledger, "append", lambda *_: (_ for _ in ()).throw(LedgerError("full"))
    )
    for _ in range(2):
        with pytest.raises(LedgerError, match="full"):
            loop.reward(made.id, 1)
    loop.close()
    with again(tmp_path) as loop:
        assert loop.counts["decide"] == 1
        assert loop.reward(made.id, 1) == "counted"


def test_a_loop_that_cannot_train_stops(tmp_path, monkeypatch):
    loop = opened(tmp_path, training="background", reward=Reward(0, 1))
    made = loop.decide({}, ARMS, at=0.0)

    def broken(*_):
        raise RuntimeError("out of memory")

    monkeypatch.setattr(loop.runtime.learner, "train", broken)
    assert loop.reward(made.id, 1) == "counted"
    with pytest.raises(LedgerError, match="training has stopped: out of memory"):
        loop.wait_until_trained(10.0)
    with pytest.raises(LedgerError, match="training has stopped: out of memory"):
        loop.decide({}, ARMS, at=1.0)
    loop.close()
    with again(tmp_path) as loop:
        assert loop.runtime.learner.bandit.rounds == 1
        check(loop)


def test_work_that_fails_does_not_take_back_what_was_stored_beside_it(tmp_path):
    loop = opened(tmp_path)
    made = loop.decide({}, ARMS, at=0.0)

    def fails():
        raise LedgerError("no room")

    work = pending.Pending("", work=fails)
    said = pending.Pending("reward", 0.0, made.id, payload=events.RewardGiven(1.0, False))
    loop.runtime.writer.submit_all([work, said])
    assert "no room" in str(work.error)
    assert (said.word, said.error) == ("counted", None)
    with pytest.raises(LedgerError, match="no room"):
        loop.reward(made.id, 0)
    loop.close()
    with again(tmp_path) as loop:
        assert loop.counts["reward counted"] == 1


def test_an_interrupted_loop_stops_and_goes_on_when_opened_again(tmp_path, monkeypatch):
    loop = opened(tmp_path)
    made = loop.decide({}, ARMS, at=0.0)

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(loop.ledger, "append", interrupted)
    with pytest.raises(KeyboardInterrupt):
        loop.reward(made.id, 1)
    with pytest.raises(LedgerError, match="stopped"):
        loop.reward(made.id, 1)
    loop.close()
    with again(tmp_path) as loop:
        assert loop.counts.get("reward counted") is None
        assert loop.reward(made.id, 1) == "counted"
        check(loop)


def test_declared_once(tmp_path):
    with opened(tmp_path, retention="1d", seed=4):
        pass
    with again(tmp_path) as loop:
        loop.add_features(context={"vip": Flag()})
        grown = loop.features
    asked = ({"features": FEATURES}, {"features": grown}, {"policy": DOMD}, {"retention": 86400})
    for same in (*asked, {"reward": CLICKS}):
        again(tmp_path, **same).close()
    for other in (
        {"features": FEATURES.grow(context={"x": Flag()})},
        {"policy": AutoDOMD},
        {"seed": 5},
        {"reward": Reward(0, 2, wait=100, missing=0)},
        {"clock": "wall"},
        {"retention": "2d"},
    ):
        with pytest.raises(ValueError, match="declared with another"):
            again(tmp_path, **other)
    with again(tmp_path, exploration=0.1) as loop:
        assert Recipe.from_dict(loop.declaration.to_dict()) == loop.declaration
        assert loop.counts["configure"] == 2
    with pytest.raises(ValueError, match="pass features="):
        Loop(tmp_path / "shop.db", name="new")
    with pytest.raises(ValueError, match="does not exist"):
        Loop(tmp_path / "shpo.db")
    assert not (tmp_path / "shpo.db").exists()


BAD = [
    ({"name": "a b"}, "name"),
    ({"name": 3}, "name"),
    ({"features": 3}, "features"),
    ({"reward": Floor()}, "reward"),
    ({"policy": LinUCB}, "DOMD or AutoDOMD"),
    ({"policy": "DOMD"}, "DOMD or AutoDOMD"),
    ({"policy": DOMD(problem=Features(arm={"x": Flag()}).problem())}, "made for"),
    ({"exploration": 2.0}, "exploration must be a share from 0 to 1, such as 0.05, got 2"),
    ({"exploration": "a"}, "share"),
    ({"exploration": True}, "exploration"),
    ({"mode": "off"}, "mode"),
    ({"holdout": 1.0}, "holdout"),
    ({"half_life": "soon"}, "half_life"),
    ({"retention": "long"}, "retention"),
    ({"seed": -1}, "seed"),
    ({"clock": "sundial"}, "clock"),
    ({"training": "never"}, "training"),
]


@pytest.mark.parametrize(("options", "named"), BAD, ids=[str(k) for k in range(len(BAD))])
def test_bad_options(tmp_path, options, named):
    with pytest.raises(ValueError, match=named):
        opened(tmp_path, **options)
    opened(tmp_path, name="after").close()  # nothing stays locked


def test_bad_calls_change_nothing(tmp_path):
    with opened(tmp_path) as loop:
        made = loop.decide({}, ARMS, at=0.0)
        before = loop.counts
        calls = [
            (lambda: loop.decide(3, ARMS), "context"),
            (lambda: loop.decide({"agee": 3}, ARMS), "did you mean 'age'"),
            (lambda: loop.decide({"age": "old"}, ARMS), "age"),
            (lambda: loop.decide({"age": math.inf}, ARMS), "age"),
            (lambda: loop.decide({}, "ab"), "arms"),
            (lambda: loop.decide({}, {}), "no arm"),
            (lambda: loop.decide({}, []), "no arm"),
            (lambda: loop.decide({}, {None: {}}), "name"),
            (lambda: loop.decide({}, {True: {}}), "name"),
            (lambda: loop.decide({}, {"a": 3}), "mapping"),
            (lambda: loop.decide({}, {"a": {"cost": 3}}), "cost"),
            (lambda: loop.decide({}, ARMS, default="z"), "default"),
            (lambda: loop.decide({}, ARMS, default=1.5), "default"),
            (lambda: loop.decide({}, ARMS, id=3), "id"),
            (lambda: loop.decide({}, ARMS, id=""), "id"),
            (lambda: loop.decide({}, ARMS, id="\ud800"), "id"),
            (lambda: loop.decide({}, ARMS, key=7), "key"),
            (lambda: loop.decide({}, ARMS, at="noon"), "at"),
            (lambda: loop.decide({}, ARMS, at=math.nan), "at"),
            (lambda: loop.decide({}, ARMS, at=datetime(2020, 1, 1)), "time zone"),
            (lambda: loop.reward(3, 1), "id"),
            (lambda: loop.reward(made.id, 1, at="noon"), "at"),
            (lambda: loop.cancel(None), "id"),
            (lambda: loop.metric(made.id, 3, 1), "name"),
            (lambda: loop.erase(key=3), "key"),
            (lambda: loop.erase(key="a", relearn=1), "relearn"),
            (lambda: loop.wait_until_trained("soon"), "timeout"),
            (lambda: loop.close_windows("soon"), "at"),
            (lambda: Loop(3), "path"),
            (lambda: loop.audit("nobody"), "nobody"),
            (lambda: loop.add_features(), "grow"),
            (lambda: loop.configure(mode="x"), "mode"),
        ]
        for call, named in calls:
            with pytest.raises(ValueError, match=named):
                call()
        assert loop.counts == before
        check(loop)


def test_with_the_clock_of_events_somebody_says_when(tmp_path):
    with opened(tmp_path) as loop:
        with pytest.raises(ValueError, match="pass at="):
            loop.decide({}, ARMS)
        loop.decide({}, ARMS, at=5.0)
        loop.decide({}, ARMS)
        assert loop.log()["at"].to_list() == [5.0, 5.0]


def test_checkpoints_come_also_where_every_process_is_killed(tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "EVERY", 50)
    for k in range(4):
        loop = opened(tmp_path)
        play(loop, 40, seed=k, start=10_000.0 * k)
        loop.runtime.writer.close()  # as good as killed: nothing is stored on the way out
        loop.ledger.close()
    with again(tmp_path) as loop:
        assert len(loop.ledger.checkpoints()) >= 2
        check(loop)
