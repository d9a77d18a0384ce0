"""The evidence behind promotions and the guard: against slow references, and in short simulations.

`make bench-promotion` plays the long ones.
"""

import importlib
import math
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import topics
from driftbandit import Features, Floor, Guard, InverseGap, Loop, Number, Reward
from driftbandit.estimators import leads
from driftbandit.estimators.increments import LoggedArms
from driftbandit.loop.candidates.comparison import Errors, lead
from driftbandit.loop.candidates.totals import Outcome, Row, Totals, TrialPlan
from driftbandit.loop.state.spending import Spending, Turn, part
from driftbandit.loop.storage.events import Event, encode
from driftbandit.loop.training import replay
from topics import ARMS, TOPIC

pytestmark = pytest.mark.usefixtures("no_wait_for_the_disk")

FEATURES = Features(context={"age": Number(18, 90)}, arm={"topic": TOPIC})
EVEN = {"exploration": InverseGap(0.1, strength=0.0)}  # all arms alike
opened = partial(topics.opened, features=FEATURES)


def log_rows(n, rng, better=0.0, arms=4):
    """Rows of a log: probabilities, choices, rewards, two policies, a model and paces."""
    for _ in range(n):
        h, first, second = rng.dirichlet(np.ones(arms), size=3)
        q, k = rng.uniform(0.1, 0.9, arms), rng.choice(arms, p=h)
        R = float(rng.random() < np.clip(0.3 + better * (first[k] - second[k]), 0.0, 1.0))
        yield h, int(k), R, first, second, q, rng.uniform(0.01, 0.25)


def laid(rows):
    h, k, R, first, second, q, paces = zip(*rows)
    start = np.arange(len(rows)) * len(h[0])
    arms = LoggedArms(start, start + np.array(k), np.concatenate(h))
    pi = np.concatenate(first), np.concatenate(second)
    return arms, pi, np.concatenate(q), np.array(R), np.array(paces)


def by_hand(rows, gains, weights):
    """The formulas of `leads`, number by number: log capitals, alarms and the bound at the end."""
    T = len(gains)
    phis, costs, alarms = np.zeros((2, T)), np.zeros((2, T)), np.zeros((2, T))
    total = 0.0
    for h, k, R, first, second, q, pace in rows:
        both = [min(a, b) for a, b in zip(first, second)]
        for s, (win, lose) in enumerate([(first, second), (second, first)]):
            u = [(win[a] - both[a]) / h[a] for a in range(len(h))]
            v = [(lose[a] - both[a]) / h[a] for a in range(len(h))]
            payoff = u[k] * R + v[k] * (1.0 - R) + sum(both)
            g = [u[a] * q[a] + v[a] * (1.0 - q[a]) for a in range(len(h))]
            error = g[k] - sum(h[a] * g[a] for a in range(len(h)))
            for t, gain in enumerate(gains):
                stake = gain * pace
                depth = min(max(g), max(0.5 / stake - 2.0, 1.0))
                phi = payoff - (min(1.0, depth / max(g)) if max(g) else 1.0) * error
                assert phi >= -depth - 1e-12
                b, m = 2.0 + depth, (phis[s, t] + pace) / (total + pace)
                x = stake * b
                cost = (-math.log(1.0 - x) - x) * ((phi - min(max(m, 0.0), 2.0)) / b) ** 2
                alarms[s, t] = (1.0 + alarms[s, t]) * math.exp(stake * (phi - 1.0) - cost)
                phis[s, t] += pace * phi
                costs[s, t] += cost
        total += pace
    growth = gains * (phis - total) - costs
    capital = np.log((weights * np.exp(growth)).sum(axis=1))
    return capital, (weights * alarms).sum(axis=1), phis, costs, total


def test_evidence_is_what_the_formulas_say_however_rows_are_cut():
    rows = list(log_rows(150, np.random.default_rng(0), better=0.4))
    for effect in (None, 0.3):
        own = leads.stakes(effect)
        capital, alarm, phis, costs, total = by_hand(rows, *own)
        states = []
        for cut in (1, 7, 150):
            found = leads.Evidence(own)
            for k in range(0, len(rows), cut):
                found.add(*laid(rows[k : k + cut]))
            states.append(found.state())
        assert states[0] == states[1] == states[2]
        assert leads.Evidence.loaded(states[0]).state() == states[0]
        for which in (leads.BETTER, leads.WORSE):
            assert found.log_capital(which) == pytest.approx(capital[which], abs=1e-9)
            assert found.alarm(which) == pytest.approx(alarm[which], rel=1e-9)
            mean = 1.0 + found.lower(which, 0.05)
            grown = own.gains * (phis[which] - total * mean) - costs[which]
            assert math.log((own.weights * np.exp(grown)).sum()) == pytest.approx(
                math.log(20.0), abs=1e-6
            )


@pytest.mark.parametrize("model", [0.05, 0.9])
def test_no_bet_is_expected_to_win_if_policies_are_equal(model):
    """All kinds of a row with their probabilities: the mean of what a bet makes of 1 is at most 1,
    whatever the forecast is, and exactly as large as the theory allows the payoff to be."""
    h, v = np.array([0.1, 0.85, 0.05]), np.array([0.3, 0.3, 0.7])
    rows = [(h, k, float(R)) for k in range(3) for R in (0, 1)]
    chances = np.array([h[k] * (v[k] if R else 1.0 - v[k]) for _, k, R in rows])
    start = np.arange(0, 18, 3)
    arms = LoggedArms(start, start + np.array([k for _, k, _ in rows]), np.tile(h, 6))
    pi = np.tile([1.0, 0.0, 0.0], 6), np.tile([0.0, 1.0, 0.0], 6)
    R = np.array([each for *_, each in rows])
    stake = np.tile(0.25 * leads.stakes(1.0).gains, (6, 1))
    for payoff in leads.sides(arms, pi, np.full(18, model), R):
        made = leads.bets(payoff, stake)
        assert chances @ made.phi == pytest.approx(np.ones(9), abs=1e-12)
        assert (stake * made.unit < 1.0).all()
        for forecast in (0.0, 0.7, 1.0, 2.0):
            cost = leads.penalty(stake, made.unit, made.phi - forecast)
            assert (chances @ np.exp(stake * (made.phi - 1.0) - cost) <= 1.0 + 1e-12).all()


def test_the_benchmark_adds_up_what_evidence_does(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[2])
    gate = importlib.import_module("benchmarks.promotion")
    world, rng = gate.World(1, 0.1, (0.5, 0.3, 0.3), 0.4, 0.2), np.random.default_rng(3)
    many, one = gate.Runs(1, leads.stakes(0.1)), leads.Evidence(leads.stakes(0.1))
    arms, pi, q, R = gate.kinds(world.h, world.model)
    for _ in range(60):
        before = many.phi.copy()
        many.add(world, rng)
        added = (many.phi - before)[0] / world.pace
        made = [leads.bets(each, world.pace * many.stakes.gains[None]) for each in world.payoffs()]
        kind = next(
            k for k in range(gate.KINDS) if np.allclose([m.phi[k] for m in made], added, atol=1e-9)
        )
        cut = slice(3 * kind, 3 * kind + 3)
        row = LoggedArms(np.array([0]), arms.chosen[kind : kind + 1] - 3 * kind, arms.h[cut])
        one.add(row, (pi[0][cut], pi[1][cut]), q[cut], R[kind : kind + 1], np.array([world.pace]))
    assert many.cost[0] == pytest.approx(one.cost, rel=1e-9)
    assert many.recent[0] == pytest.approx(one.recent, rel=1e-9)
    assert many.log_capital(0)[0] == pytest.approx(one.log_capital(0), abs=1e-9)


def test_the_gate_seldom_opens_by_chance_and_a_shadow_costs_nothing(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[2])
    gate = importlib.import_module("benchmarks.promotion")
    rng = np.random.default_rng(5)
    equal = gate.blocks(60_000, 60, 0.5, (0.3, 0.3, 0.3))
    wrong = np.isfinite(gate.opened(equal, gate.Runs(400, leads.stakes(0.1)), 0.05, rng))
    assert wrong.mean() <= 0.05
    better = gate.blocks(40_000, 100, 0.5, (0.33, 0.3, 0.3))
    alone = np.median(gate.opened(better, gate.Runs(200, leads.stakes(0.1)), 0.05, rng))
    thin = gate.blocks(20_000, 10, 0.005, (0.33, 0.3, 0.3))
    runs = gate.Runs(200, leads.stakes(0.1))
    ramp = np.median(gate.opened(thin + better, runs, 0.05, rng)) - 20_000
    assert ramp <= 1.1 * alone


def test_the_guard_is_as_quick_after_a_long_good_time(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[2])
    gate = importlib.import_module("benchmarks.promotion")

    def rows(good):
        runs, found = gate.Runs(100, leads.stakes()), np.full(100, math.inf)
        worlds = [gate.GuardWorld(500, 0.1, (0.3, 0.36, 0.3))] * (good // 500)
        worlds += [gate.GuardWorld(500, 0.1, (0.3, 0.15, 0.3))] * 40
        for now in gate.played(worlds, runs, np.random.default_rng(good)):
            found[(now.alarm(leads.BETTER) >= 1e5) & np.isinf(found)] = now.rows - good
        return np.median(found)

    assert 0.0 < rows(60_000) <= 1.3 * rows(0) < 10_000.0


def said(kind, **data):
    return Event(0, kind, 0.0, data=encode(data))


def test_each_comparison_ever_begun_has_an_error_of_its_own():
    """By a list: number j may err with 5 %/(j (j + 1)), and a promotion makes room for one more."""
    now = Spending()
    for j in range(1, 21):
        now = now.after(said("shadow", name=f"c{j}"))
        error = now.turns[f"c{j}"].error(0.95)
        assert error == pytest.approx(0.05 / (j * (j + 1)))
        settings = {"type": "Settings"}
        now = now.after(said("retire", name=f"c{j}", settings=settings))
        assert now.turns == {}
    assert math.fsum(0.05 / (j * (j + 1)) for j in range(1, 10_000)) < 0.05
    now = now.after(said("shadow", name="a")).after(said("shadow", name="b"))
    proved = {"over": "live", "evidence": {}, "settings": settings}
    now = now.after(said("promote", name="a", forced=False, **proved))
    assert now.turns == {"b": Turn(23, 1)}  # it is compared with another policy now
    now = now.after(said("promote", name="b", forced=True, **proved))
    assert now.after(said("shadow", name="c")).turns["c"] == Turn(24, 1)
    demoted = now.after(said("demote"))
    assert demoted.turns["live"] == Turn(24, 1)
    assert math.fsum(part(k) for k in range(60)) == pytest.approx(1.0)


def test_retiring_candidates_opens_no_gate(tmp_path):
    with opened(tmp_path / "a.db", **EVEN) as loop:
        for k in range(4):
            loop.shadow(f"c{k}", exploration=Floor(0.1))
        for t in range(40):
            made = loop.decide({"age": 30}, ARMS, at=10.0 * t)
            loop.reward(made.id, float(made.arm == "y"), at=10.0 * t)
        before = loop.compare().lead("c3", "live")
        for k in range(3):
            loop.retire(f"c{k}")
        after = loop.compare().lead("c3", "live")
        assert before == after
        assert before.level == pytest.approx(1.0 - 0.05 * 0.2 / 20)


def chosen_by_sharp(loop, t, **options):
    return loop.decide({"age": 30}, ARMS, at=10.0 * t, **options)


def test_a_trial_begins_a_new_comparison_and_another_share_does_not(tmp_path):
    with opened(tmp_path / "a.db", **EVEN) as loop:
        loop.shadow("sharp", exploration=Floor(0.1))
        rows, t = [], 0
        for step in (
            {},
            {"share": 0.1},
            {"share": 0.4},
            {"share": 0.4, "effect": 0.2},
            {"share": 0},
        ):
            if step:
                loop.trial("sharp", **step)
            for _ in range(30):
                made = chosen_by_sharp(loop, t)
                loop.reward(made.id, float(made.arm == "y"), at=10.0 * t)
                t += 1
            loop.close_windows(10.0 * t + 60.0)
            t += 20
            rows.append(loop.compare().lead("sharp", "live").rows)
        assert rows == [30, 30, 60, 30, 60]
        assert loop.settings.plans == {"sharp": (2, 0.2)}
        again = replay.replay(loop.ledger, loop.runtime.reread(), None)
        assert again.candidates.digest == loop.runtime.candidates.digest
        for wrong in (0.0, -0.1, "much"):
            with pytest.raises(ValueError, match="effect must"):
                loop.trial("sharp", effect=wrong)


def test_a_candidate_that_was_better_and_is_worse_now_is_refused():
    """The mean is still above 0, but the latest rows are not."""
    totals, h = Totals(), np.array([0.5, 0.5])
    pi, q = (np.array([1.0, 0.0]), np.array([0.0, 1.0])), np.full(2, 0.5)
    rng = np.random.default_rng(0)

    def rows(n, p):
        for _ in range(n):
            k = int(rng.random() < 0.5)
            R = float(rng.random() < p[k])
            pairs = {("new", "live"): pi}
            yield Row(h, k, {"": Outcome(R, q)}, {}, pairs, {("new", "live"): 0.25})

    totals.add(list(rows(1500, (0.7, 0.4))))
    good = lead(totals, ("new", "live", ""), Reward(0, 1), Errors(0.01, 0.05))
    assert (good.better, good.recent) == (1, 0)
    totals.add(list(rows(400, (0.4, 0.7))))
    now = lead(totals, ("new", "live", ""), Reward(0, 1), Errors(0.01, 0.05))
    assert (now.better, now.recent) == (1, -1)


def test_holdout_rows_tell_the_guard_about_the_default(tmp_path):
    """Decisions without a key are drawn one by one; a key is drawn for all its decisions."""
    options = {"holdout": 0.4, "guard": Guard(run_length=1000)}
    with opened(tmp_path / "a.db", exploration=0.05, **options) as loop:
        for t in range(200):
            made = loop.decide({"age": 30}, ARMS, at=10.0 * t, default="z")
            loop.reward(made.id, float(made.role == "holdout"), at=10.0 * t)
            if loop.counts.get("demote"):
                break
        assert loop.counts["demote"] == 1
        for t in range(200, 260):  # only one side of the draw is left: it compares nothing
            made = loop.decide({"age": 30}, ARMS, at=10.0 * t, default="z")
            loop.reward(made.id, float(made.role == "holdout"), at=10.0 * t)
        roles = [e.read().role for e in loop.ledger.read() if e.kind == "decide"][-60:]
        loop.close_windows(10_000.0)
        assert loop.compare().lead("live", "default").rows <= roles.count("apprentice") + 6
        again = replay.replay(loop.ledger, loop.runtime.reread(), None)
        assert again.candidates.digest == loop.runtime.candidates.digest
        found = next(e for e in loop.ledger.read() if e.kind == "demote").read()
        assert found["rows"] >= 50
    with opened(tmp_path / "b.db", exploration=0.05, **options) as loop:
        for t in range(40):
            made = loop.decide({"age": 30}, ARMS, at=10.0 * t, default="z", key=f"u{t}")
            loop.reward(made.id, 1.0, at=10.0 * t)
        held = sum(e.kind == "decide" and e.read().role == "holdout" for e in loop.ledger.read())
        loop.close_windows(1000.0)
        assert loop.compare().skipped["holdout"] == held > 5


@pytest.mark.parametrize("how", ["missing", "cancelled", "late"])
def test_rewards_that_are_lost_for_one_policy_block_its_promotion(tmp_path, how):
    """Unhappy rewards of one arm do not come, so it looks better than it is."""
    waits = Reward(0, 1, wait=50, missing=0 if how == "late" else None)
    with opened(tmp_path / "a.db", reward=waits, **EVEN) as loop:
        loop.shadow("sharp", exploration=Floor(0.1), history=False)
        loop.trial("sharp", share=0.5)
        rng = np.random.default_rng(0)
        for t in range(400):
            made, at = chosen_by_sharp(loop, 10 * t), 100.0 * t
            happy = rng.random() < (0.3 if made.arm == "x" else 0.05)
            lost = made.arm == "x" and rng.random() < 0.9
            if happy or not lost:
                loop.reward(made.id, float(happy), at=at)
            elif how == "cancelled":
                loop.cancel(made.id, at=at)
            elif how == "late":
                loop.close_windows(at + 60.0)
                loop.reward(made.id, 1.0, at=at + 60.0)
        losses = loop.compare().losses
        assert [(loss.first, loss.second, loss.why) for loss in losses] == [("sharp", "live", how)]
        assert (losses[0].often, losses[0].arm, losses[0].lost) == ("more", "x", losses[0].rows)
        assert 0.3 * losses[0].rows < losses[0].expected < 0.8 * losses[0].rows
        assert losses[0].words() in repr(loop.compare())
        arms = [(each.arm, each.often) for each in loop.compare().arm_losses if each.why == how]
        assert ("x", "more") in arms
        again = replay.replay(loop.ledger, loop.runtime.reread(), None)
        assert again.candidates.digest == loop.runtime.candidates.digest


def test_rewards_that_are_lost_for_one_arm_block_promotions_where_policies_lose_alike(tmp_path):
    """Both play each arm equally often on the whole, so only the arms tell."""
    with opened(tmp_path / "a.db", reward=Reward(0, 1, wait=50), **EVEN) as loop:
        loop.shadow("same", exploration=EVEN["exploration"], history=False)
        loop.trial("same", share=0.5)
        rng = np.random.default_rng(0)
        for t in range(250):
            made, at = loop.decide({"age": 30}, ARMS, at=100.0 * t), 100.0 * t
            happy = rng.random() < 0.3
            if happy or made.arm != "x":
                loop.reward(made.id, float(happy), at=at)
        found = loop.compare()
        assert found.losses == ()
        assert [(each.why, each.arm, each.often) for each in found.arm_losses][:1] == [
            ("missing", "x", "more")
        ]
        assert found.arm_losses[0].words() in repr(found)


def test_a_candidate_must_not_be_worse_by_a_margin(tmp_path):
    costs = Reward(0, 10, goal="min", wait=50, missing=0)
    visits = Reward(0, 1, wait=50, missing=0)
    watched = Guard(metrics={"cost": costs, "visits": visits})
    with opened(tmp_path / "a.db", guard=watched, **EVEN) as loop:
        loop.shadow("sharp", exploration=Floor(0.1))
        loop.trial("sharp", share=0.5)
        for t in range(500):
            made = chosen_by_sharp(loop, t, default="z")
            loop.reward(made.id, float(made.arm == "y"), at=10.0 * t)
            loop.metric(made.id, "cost", 5.0 if t % 3 else 4.0, at=10.0 * t)
            loop.metric(made.id, "visits", t % 2, at=10.0 * t)
        wrong = {
            "no metric 'costs'": {"costs": 1.0},
            "must be a mapping": ["cost"],
            "margin of 'cost'": {"cost": 0.0},
        }
        for words, margins in wrong.items():
            with pytest.raises(ValueError, match=words):
                loop.promote("sharp", not_worse=margins)
        worst = loop.compare().lead("sharp", "live", "cost").worst
        assert 0.0 < worst < 5.0
        with pytest.raises(ValueError, match=r"at most .* worse in 'cost': it may be worse by"):
            loop.promote("sharp", not_worse={"cost": 0.5 * worst})
        fewer = loop.compare().lead("sharp", "live", "visits").worst
        margins = {"cost": 1.01 * worst, "visits": 1.01 * fewer}
        for tight in margins:  # all of them at once: one that fails is enough
            with pytest.raises(ValueError, match=f"worse in '{tight}': it may be worse by"):
                loop.promote("sharp", not_worse={**margins, tight: 0.5 * margins[tight]})
        loop.promote("sharp", not_worse=margins)
        event = next(e for e in loop.ledger.read() if e.kind == "promote").read()
        assert event.evidence["not_worse"] == pytest.approx(margins)


def test_plans_of_candidates_survive_a_restart(tmp_path):
    with opened(tmp_path / "a.db", **EVEN) as loop:
        loop.shadow("sharp", exploration=Floor(0.1))
        loop.trial("sharp", share=0.3, effect=0.15)
        for t in range(20):
            made = chosen_by_sharp(loop, t)
            loop.reward(made.id, float(made.arm == "y"), at=10.0 * t)
        before = loop.compare().to_dict()
    with Loop(tmp_path / "a.db", training="inline") as loop:
        assert loop.compare().to_dict() == before
        assert loop.settings.plans == {"sharp": (1, 0.15)}
        assert TrialPlan(*loop.settings.plans["sharp"]).effect == 0.15
