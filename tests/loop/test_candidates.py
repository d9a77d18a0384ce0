"""Shadows, trials, comparison, promotion and guard: all of it a function of the log."""

import json
from functools import partial

import numpy as np
import pytest
from scipy import stats

import topics
from driftbandit import (
    DOMD,
    AutoDOMD,
    Bandit,
    Features,
    Flag,
    Floor,
    Guard,
    InverseGap,
    Loop,
    Number,
    Reward,
    Thompson,
)
from driftbandit.loop.state.reward_windows import Asked, Example, RewardWindows
from driftbandit.loop.storage.events import Event
from driftbandit.loop.training import replay
from topics import ARMS, CLICKS, TOPIC

pytestmark = pytest.mark.usefixtures("no_wait_for_the_disk")

FEATURES = Features(context={"age": Number(18, 90)}, arm={"topic": TOPIC})
WIDER = Features(context={"age": Number(18, 90), "vip": Flag()}, arm={"topic": TOPIC})
RANDOM = {"exploration": InverseGap(0.1, strength=0.0)}  # all arms alike
COSTS = Guard(metrics={"cost": Reward(0, 1, goal="min", wait=50, missing=0)})
opened = partial(topics.opened, features=FEATURES)


def play(loop, start, n, vip=True, likes=0.9, **options):
    """Those who are vip like x, others y, nobody z. What happens depends on the number alone."""
    for k in range(start, start + n):
        rng = np.random.default_rng(k)
        context = {"age": int(rng.integers(18, 90))}
        wants = "x" if rng.random() < 0.5 else "y"
        if vip:
            context["vip"] = wants == "x"
        given = {"default": "z", "key": f"p{k % 4}"} | options
        made = loop.decide(context, ARMS, id=f"d{k}", at=10.0 * k, **given)
        arm = made.arm if hasattr(made, "arm") else made.arms[0]
        position = {} if hasattr(made, "arm") else {"position": 0}
        click = float(rng.random() < (likes if arm == wants else 0.1))
        loop.reward(made.id, click, at=10.0 * k, **position)
        if rng.random() < 0.5:
            loop.metric(made.id, "cost", float(arm == "y"), at=10.0 * k, **position)


def both(loop):
    return loop.digest, loop.runtime.candidates.digest


def check(loop):
    """Live and replayed are the same bits, and all probabilities can be computed again."""
    again = replay.replay(loop.ledger, loop.runtime.reread(), replay.origin(loop.ledger))
    assert (again.learner.digest, again.candidates.digest) == both(loop)
    audits = list(loop.audits())
    assert all(audit.logged == audit.computed for audit in audits)
    return audits


def decisions(loop):
    return [e for e in loop.ledger.read() if e.kind == "decide"]


def killed(loop):
    """What kill -9 leaves: no last checkpoint."""
    loop.ledger.close()


def life(path, **options):
    """Candidates of every kind, a trial, a promotion, one who retires; killed and reopened."""
    loop = opened(path, guard=COSTS, **options)
    play(loop, 0, 20, vip=False)
    loop.shadow("wide", features=WIDER)
    loop.shadow("bold", exploration=Thompson(0.1, draws=20))
    play(loop, 20, 20)
    loop.trial("wide", share=0.3)
    play(loop, 40, 20)
    loop.trial("bold", share=0.2)
    killed(loop)
    with Loop(path, training="inline") as loop:
        play(loop, 60, 20)
    with Loop(path, training="inline") as loop:
        loop.retire("bold")
        play(loop, 80, 20)
        loop.promote("wide", expected_live="live", force=True)
        loop.shadow("old", features=FEATURES)
        play(loop, 100, 20)
        loop.trial("old")
        play(loop, 120, 30)
        found = both(loop), loop.counts, loop.compare().to_dict()
        assert loop.features == WIDER
        assert len(check(loop)) == 150
    return found


KINDS = {
    "one": {},
    "for each key": {"key": "user_id"},
    "in time": {"half_life": "1h"},
    "held out": {"holdout": 0.3},
    "at once": {"reward": Reward(0, 1)},
    "counts": {"reward": Reward(0, 3, wait=50, missing=0, counts=True, goal="min")},
}


@pytest.mark.parametrize("kind", KINDS)
def test_all_of_it_is_a_function_of_the_log(tmp_path, kind):
    if kind == "at once":
        options = KINDS[kind] | {"guard": False}
        with opened(tmp_path / "a.db", **options) as loop:
            loop.shadow("wide", features=WIDER)
            loop.trial("wide", share=0.5)
            play(loop, 0, 40)
            assert loop.compare().lead("wide", "live").rows == 40
            check(loop)
        return
    found = life(tmp_path / "a.db", **KINDS[kind])
    with Loop(tmp_path / "a.db", training="inline") as loop:
        assert both(loop) == found[0]
        loop.erase(key="p1", relearn=True)
        play(loop, 150, 20)
        check(loop)


def test_postgres_gives_the_same_bits(tmp_path, postgres):
    assert life(postgres.url()) == life(tmp_path / "a.db")


def test_a_checkpoint_in_the_middle_holds_candidates(tmp_path, monkeypatch):
    monkeypatch.setattr("driftbandit.loop.writing.writer.EVERY", 25)
    (digest, _), _, compared = life(tmp_path / "a.db")
    monkeypatch.setattr("driftbandit.loop.writing.writer.EVERY", 10_000)
    (other, _), _, again = life(tmp_path / "b.db")
    assert (digest, compared) == (other, again)
    with Loop(tmp_path / "a.db", training="inline") as loop:
        assert len(loop.ledger.checkpoints()) > 5
        for event in decisions(loop)[::9]:
            audit = loop.audit(event.id)
            assert audit.logged == audit.computed


@pytest.mark.parametrize("half_life", [None, "1h"])  # a view that has aged serves for a second
def test_in_the_background_it_is_the_same(tmp_path, half_life):
    live = {"training": "background", "clock": "wall", "reward": Reward(0, 1)}
    live |= {"half_life": half_life}
    with opened(tmp_path / "a.db", guard=Guard(), **live) as loop:
        loop.shadow("wide", features=WIDER, policy=AutoDOMD, half_life="auto")
        loop.trial("wide", share=0.3)
        for k in range(60):
            loop.decide({"age": 30, "vip": k % 2}, ARMS, id=f"d{k}", default="z")
            loop.reward(f"d{k}", k % 3 == 0)
            if k == 40:
                loop.promote("wide", force=True)
        loop.wait_until_trained()
        assert loop.counts["promote"] == 1
        assert loop.features == WIDER
        check(loop)


def by_hand(loop, upto, history=False):
    """Live and candidate, trained one after the other what the log says was trained, up to a count
    of changes that a decision names."""
    live, wide = (Bandit(DOMD(problem=each.problem(CLICKS))) for each in (FEATURES, WIDER))
    events, born = {e.seq: e for e in loop.ledger.read()}, False
    changes = list(replay.first(replay.unfold(loop.ledger, loop.runtime.reread(), None)[1], upto))
    for change in changes:
        if not isinstance(change, Example):
            born |= isinstance(change, Event)
            continue
        data = events[change.decision].read()
        arm, age = data.arms[data.choices[0]], {"age": data.context["age"]}
        live.update(FEATURES.encode(age, [arm])[0], change.value)
        if born or history:
            wide.update(WIDER.encode(data.context, [arm])[0], change.value)
    return live, wide


def floored(bandit, X, exploration=0.3):
    p = np.full(len(X), exploration / len(X))
    p[bandit.choose(X)] += 1.0 - exploration
    return p


@pytest.mark.parametrize("history", [False, True])
def test_what_is_logged_is_the_mixture(tmp_path, history):
    with opened(tmp_path / "a.db") as loop:
        play(loop, 0, 10, vip=False)
        loop.shadow("wide", features=WIDER, history=history)
        loop.trial("wide", share=0.25)
        play(loop, 10, 30)
        seen = 0
        for event in decisions(loop)[10::3]:
            data = event.read()
            live, wide = by_hand(loop, data.learner[1], history)
            arms, age = data.arms, {"age": data.context["age"]}
            p = 0.75 * floored(live, FEATURES.encode(age, arms))
            p += 0.25 * floored(wide, WIDER.encode(data.context, arms))
            assert np.allclose(data.p, [p], atol=1e-12)
            seen += len(set(np.round(p, 9))) == 3
        assert seen > 3  # they did not always agree


def test_trial_draws_follow_the_mixture():
    """Nothing is trained, so all decisions have the same probabilities."""
    with opened(":memory:", reward=Reward(0, 1, wait="1d")) as loop:
        loop.shadow("even", exploration=Floor(1.0))
        loop.trial("even", share=0.6)
        made = [loop.decide({"age": 30}, ARMS, id=f"{k}", at=1.0).arm for k in range(400)]
        p = np.array(decisions(loop)[0].read().p[0])
        counts = [made.count(arm) for arm in ARMS]
        assert sorted(np.round(p, 12)) == [0.24, 0.24, 0.52]
        assert stats.chisquare(counts, 400 * p).pvalue > 0.001


def test_a_twin_of_the_live_policy_is_neither_better_nor_worse(tmp_path):
    with opened(tmp_path / "a.db") as loop:
        play(loop, 0, 20, vip=False)
        loop.shadow("twin", exploration=Floor(0.3))
        play(loop, 20, 30, vip=False)
        loop.trial("twin", share=0.5)
        play(loop, 50, 30, vip=False)
        found = loop.compare().lead("twin", "live")
        assert (found.value, found.better, found.more) == (0.0, 0, float("inf"))
        assert loop.runtime.candidates.candidates["twin"].learner.digest == loop.digest


def test_a_promoted_candidate_decides_by_its_own_rule(tmp_path):
    with opened(tmp_path / "a.db") as loop:
        loop.shadow("bold", exploration=Thompson(0.1, draws=20))
        loop.trial("bold", share=0.5)
        play(loop, 0, 10, vip=False)
        loop.promote("bold", force=True)
        assert loop.settings.exploration == Thompson(0.1, draws=20)
        play(loop, 10, 10, vip=False)
    with Loop(tmp_path / "a.db", training="inline") as loop:
        assert (loop.settings.exploration, loop.settings.trials) == (Thompson(0.1, draws=20), {})
        play(loop, 20, 10, vip=False)
        check(loop)


def test_promotion_needs_a_proof_and_says_what_is_missing(tmp_path):
    with opened(tmp_path / "a.db") as loop:
        loop.shadow("wide", features=WIDER)
        with pytest.raises(ValueError, match="not compared"):
            loop.promote("wide", expected_live="live")
        loop.trial("wide", share=0.4)
        play(loop, 0, 60)
        with pytest.raises(ValueError, match=r"after 5\d rows; about [\d,]+ more rows") as refused:
            loop.promote("wide", expected_live="live")
        assert "\n" not in str(refused.value)
        assert loop.counts.get("promote", 0) == 0
        play(loop, 60, 400)
        assert loop.compare().lead("wide", "live").low > 0.0
        loop.promote("wide", expected_live="live")
        event = next(e for e in loop.ledger.read() if e.kind == "promote").read()
        assert (event.name, event.over, event.forced) == ("wide", "live", False)
        assert loop.settings.trials == {}
        assert loop.compare().leads == ()  # all begins anew
        play(loop, 460, 30)
        check(loop)


def test_nobody_is_promoted_who_is_worse_in_a_guarded_metric(tmp_path):
    """Both choose among all arms, but the candidate has learnt to cost more."""
    with opened(tmp_path / "a.db", guard=COSTS, **RANDOM) as loop:
        loop.shadow("sharp", exploration=Floor(0.1))
        loop.trial("sharp", share=0.5)
        for k in range(500):
            made = loop.decide({"age": 30}, ARMS, id=f"d{k}", at=10.0 * k, default="z")
            loop.reward(made.id, float(made.arm == "y"), at=10.0 * k)
            if made.arm == "y":
                loop.metric(made.id, "cost", 1.0, at=10.0 * k)
        found = loop.compare()
        assert found.lead("sharp", "live").better == 1
        cost = found.lead("sharp", "live", "cost")
        assert cost.better == -1
        assert 0.0 < cost.low < cost.value < cost.high  # in its own unit: more is worse
        with pytest.raises(ValueError, match="worse than live in 'cost'"):
            loop.promote("sharp")


def test_the_guard_lets_the_default_take_over_until_somebody_promotes(tmp_path):
    """The live policy chooses at random, the default is best."""

    def on(loop, start, n):
        for k in range(start, start + n):
            made = loop.decide({"age": 30}, ARMS, id=f"d{k}", at=10.0 * k, default="z")
            loop.reward(made.id, float(made.arm == "z"), at=10.0 * k)
            if k % 60 == 0:
                loop.compare()  # who looks too often takes nothing from the guard
        return made

    loop = opened(tmp_path / "a.db", guard=Guard(run_length=1000), **RANDOM)
    on(loop, 0, 90)
    assert loop.compare().acting == "live"
    assert on(loop, 90, 230).role == "apprentice"
    assert loop.counts["demote"] == 1
    event = next(e for e in loop.ledger.read() if e.kind == "demote").read()
    assert event["value"] < 0.0
    assert event["run_length"] == 1000.0
    with pytest.raises(ValueError, match="'default' acts now"):
        loop.promote("live", expected_live="live")
    with pytest.raises(ValueError, match=r"worse|not compared|not shown"):
        loop.promote("live", expected_live="default")
    killed(loop)
    with Loop(tmp_path / "a.db", training="inline", mode="active") as loop:
        assert on(loop, 320, 20).role == "apprentice"  # no option undoes it
        loop.promote("live", expected_live="default", force=True)
        assert on(loop, 340, 5).role == "active"
        assert on(loop, 345, 260).role == "apprentice"
        assert loop.counts["demote"] == 2
        check(loop)
        loop.configure(guard=False)
        assert loop.settings.guard is None


def test_an_apprentice_is_promoted_over_the_default(tmp_path):
    with opened(tmp_path / "a.db", mode="apprentice", exploration=0.6) as loop:
        loop.shadow("wide", features=WIDER)
        play(loop, 0, 400)
        with pytest.raises(ValueError, match="'default' acts now"):
            loop.promote("wide", expected_live="live")
        loop.promote("wide", expected_live="default")
        assert loop.settings.mode == "active"
        play(loop, 400, 20)
        check(loop)


def late_readers(loop, n, period, rng):
    """The arm that is liked changes every `period` decisions, and rewards are known as late."""
    for t in range(n):
        made = loop.decide({"age": 30}, ARMS, id=f"r{t}", at=10.0 * t)
        wanted = "xy"[(t // period) % 2]
        loop.reward(made.id, rng.random() < (0.6 if made.arm == wanted else 0.3), at=10.0 * t)


def test_a_candidate_is_asked_with_what_it_knew_at_the_decision(tmp_path):
    """A short memory that has heard the rewards of the minutes after a decision would look better
    than it is."""
    fast = DOMD(problem=FEATURES.problem(CLICKS), discount=0.9)
    waits = Reward(0, 1, wait=400, missing=0)
    with opened(tmp_path / "a.db", reward=waits) as loop:
        loop.shadow("fast", policy=fast)
        late_readers(loop, 500, 40, np.random.default_rng(0))
        found = loop.compare().lead("fast", "live")
        live, quick, total, then = Bandit(DOMD(problem=fast.problem)), Bandit(fast), [], {}
        events, spread, weights, late = {e.seq: e for e in decisions(loop)}, 0.0, [], []
        for change in replay.unfold(loop.ledger, loop.runtime.reread(), None)[1]:
            if isinstance(change, Event):
                continue
            data = events[change.decision].read()
            X = FEATURES.encode(data.context, data.arms)
            if isinstance(change, Asked):
                then[change.decision] = floored(quick, X) - floored(live, X)
                continue
            gap, q = then.pop(change.decision), live.policy.problem.family.mu(X @ live.theta)
            k, h = data.choices[0], np.array(data.p[0])
            weights.append(min(0.25, (20 + len(total)) / (20 * (1.0 + 1.0 / 0.1) + spread)))
            spread += min(gap**2 @ (1.0 / h), 2.0 / 0.1)
            total.append(gap @ q + gap[k] / h[k] * (change.value - q[k]))
            gap = floored(quick, X) - floored(live, X)  # as if they were asked only now
            late.append(gap @ q + gap[k] / h[k] * (change.value - q[k]))
            for one in (live, quick):
                one.update(X[k], change.value)
        assert found.rows == len(total) > 400
        assert found.value == pytest.approx(np.average(total, weights=weights), abs=1e-12)
        assert found.value < np.average(late, weights=weights)
        check(loop)


def test_votes_of_decisions_that_give_no_example_are_let_go(tmp_path):
    """Cancelled, missing, erased: none of them stays in checkpoints for ever."""
    silent = Reward(0, 1, wait=50)
    with opened(tmp_path / "a.db", reward=silent) as loop:
        loop.shadow("even", exploration=Floor(0.5))
        for k in range(9):
            made = loop.decide({"age": 30}, ARMS, at=1.0 * k, key=f"p{k % 3}")
            if k % 3 == 0:
                loop.cancel(made.id, at=1.0 * k)
            elif k == 1:
                loop.reward(made.id, 1.0, at=1.0 * k)
        assert loop.runtime.candidates.waiting == 6
        loop.erase(key="p1")
        assert loop.runtime.candidates.waiting == 3
        loop.close_windows(1000.0)
        assert loop.runtime.candidates.waiting == 0


def test_columns_of_candidates_are_taken_and_others_refused(tmp_path):
    required = Features(context={"vip": Flag(required=True)}, arm={"topic": TOPIC})
    with opened(tmp_path / "a.db") as loop:
        with pytest.raises(ValueError, match="vip"):
            play(loop, 0, 1)
        loop.shadow("wide", features=required)
        loop.trial("wide", share=0.5)
        play(loop, 0, 10, vip=False)  # it cannot read them, and nothing else happens
        assert not decisions(loop)[-1].read().trial
        loop.close_windows(10_000.0)
        assert loop.compare().unread == {"wide": 10}
        play(loop, 1000, 20)
        assert decisions(loop)[-1].read().trial
        with pytest.raises(ValueError, match="'vipp', which is not declared"):
            loop.decide({"vipp": True}, ARMS, at=12_000.0)
        why = loop.decide({"age": 30, "vip": True}, ARMS, id="w", at=12_000.0).why
        assert "vip" not in why.terms
        loop.promote("wide", force=True)
        assert "vip" in loop.decide({"age": 30, "vip": True}, ARMS, at=12_000.0).why.terms
        with pytest.raises(ValueError, match="vip"):
            loop.decide({"age": 30}, ARMS, at=12_000.0)
        loop.close_windows(20_000.0)
        check(loop)


def test_decisions_from_before_a_promotion_train_what_the_new_features_read(tmp_path):
    with opened(tmp_path / "a.db", guard=Guard()) as loop:
        loop.shadow("wide", features=WIDER)
        play(loop, 0, 30)
        loop.promote("wide", force=True)  # six decisions are open
        play(loop, 30, 30)
        assert loop.compare().skipped == {"older policy": 6}
        check(loop)


def test_slates_train_candidates_and_are_not_compared(tmp_path):
    with opened(tmp_path / "a.db") as loop:
        loop.shadow("wide", features=WIDER)
        loop.trial("wide", share=0.5)
        play(loop, 0, 20, k=2, default=["z", "x"])
        assert loop.compare().leads == ()
        assert loop.compare().skipped["slate"] > 20
        wide = loop.runtime.candidates.candidates["wide"].learner
        assert wide.bandit.rounds == loop.runtime.learner.bandit.rounds
        check(loop)


def test_the_live_policy_may_grow_beside_candidates(tmp_path):
    with opened(tmp_path / "a.db") as loop:
        loop.shadow("other", policy=AutoDOMD)
        loop.trial("other", share=0.5)
        play(loop, 0, 15, vip=False)
        loop.add_features(context={"vip": Flag()})
        play(loop, 15, 15)
        check(loop)


NAMES = ["type", "'; DROP TABLE event; --", "<script>alert(1)</script>", "Ünï © 1", "a" * 200]


def test_hostile_names_are_names(tmp_path):
    with opened(tmp_path / "a.db") as loop:
        for name in NAMES:
            loop.shadow(name, exploration=Floor(0.5))
            loop.trial(name, share=0.1)
        play(loop, 0, 10, vip=False)
        found = loop.compare()
        assert set(found.values) == {"live", "default", *NAMES}
        assert json.loads(json.dumps(found.to_dict()))["trials"] == dict.fromkeys(NAMES, 0.1)
        assert NAMES[1] in repr(found)
        check(loop)
    with Loop(tmp_path / "a.db", training="inline") as loop:
        assert set(loop.settings.trials) == set(NAMES)
        for name in NAMES:
            loop.retire(name)
        assert loop.settings.trials == {}


def test_mistakes_are_refused_with_a_remedy(tmp_path):
    with opened(tmp_path / "a.db") as loop:
        loop.shadow("new", policy=AutoDOMD)
        before = loop.counts
        wrong = {
            "is taken": lambda: loop.shadow("new", policy=DOMD),
            "'live' is taken": lambda: loop.shadow("live", policy=DOMD),
            "printable text": lambda: loop.shadow("a\nb", policy=DOMD),
            "printable": lambda: loop.shadow(7, policy=DOMD),
            "of its own": lambda: loop.shadow("b"),
            "policy must be DOMD": lambda: loop.shadow("b", policy="DOMD"),
            "exploration='ucb'": lambda: loop.shadow(
                "b", policy=DOMD(problem=FEATURES.problem(CLICKS), exploration="thompson")
            ),
            "exploration must be": lambda: loop.shadow("b", exploration="Floor"),
            "pass policy=, too": lambda: loop.shadow("b", features=WIDER, half_life="1h"),
            "history must be": lambda: loop.shadow("b", features=WIDER, history="yes"),
            "did you mean 'new'": lambda: loop.trial("newer"),
            "less than 1": lambda: loop.trial("new", share=1.0),
            "share must be": lambda: loop.trial("new", share=-0.1),
            "no candidate": lambda: loop.retire("live"),
            "no candidate 7": lambda: loop.trial(7),
            "no candidate None": lambda: loop.promote(None),
            "no candidate .'a'.": lambda: loop.retire(["a"]),
            "force must be": lambda: loop.promote("new", force="yes"),
            "'live' acts": lambda: loop.promote("live"),
            "'live' acts now": lambda: loop.promote("new", expected_live="default"),
            "guard must be": lambda: loop.configure(guard="yes"),
            "same wait for both": lambda: loop.configure(
                guard=Guard(metrics={"cost": Reward(0, 1, wait=7)})
            ),
            "needs its range": lambda: Guard(metrics={"cost": 1.0}),
            "level must lie": lambda: Guard(level=1.0),
        }
        for words, call in wrong.items():
            with pytest.raises(ValueError, match=words):
                call()
        assert loop.counts == before
        with (
            pytest.raises(ValueError, match="exploration='ucb'"),
            opened(
                tmp_path / "b.db",
                policy=DOMD(problem=FEATURES.problem(CLICKS), exploration="thompson"),
                mode="apprentice",
            ) as other,
        ):
            other.configure(guard=Guard())
        loop.retire("new")
        with pytest.raises(ValueError, match="is taken"):
            loop.shadow("new", policy=DOMD)
        with pytest.raises(ValueError, match="none at all"):
            loop.trial("new")
        loop.configure(guard=Guard())
        with pytest.raises(ValueError, match="with a guard"):
            loop.decide({"age": 30}, ARMS, at=1.0)


def test_an_example_takes_along_the_metrics_that_came_before_it():
    windows = RewardWindows(wait=10.0, missing=0.0)
    said = [("decide", 0.0, "{}")]
    said += [("metric", 1.0, json.dumps({"name": n, "value": v})) for n, v in (("a", 1), ("b", 2))]
    said += [("metric", 2.0, json.dumps({"name": "a", "value": 3})), ("advance", 10.0, "{}")]
    said += [("metric", 11.0, json.dumps({"name": "b", "value": 4}))]
    for seq, (kind, at, data) in enumerate(said, start=1):
        changes = windows.apply(Event(seq, kind, at, "d", None, data)).changes
        if kind == "advance":
            assert changes[0].metrics == (("a", 3.0), ("b", 2.0))
