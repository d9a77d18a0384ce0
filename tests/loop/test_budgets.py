"""Budgets: the best reward under a mean cost, with a price that follows from the log."""

import gzip
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from benchmarks import budget as routing
from tests import naive_budget

from driftbandit import (
    DOMD,
    Budget,
    Category,
    Features,
    InverseGap,
    Loop,
    Reward,
    Thompson,
    Vector,
)
from driftbandit.loop.promotion import refusal
from driftbandit.loop.state.accounts import Account
from driftbandit.loop.storage.events import Spend

FEATURES = Features(context={"p": Vector(2)}, arm={"model": Category(["s", "m", "l"])})
ARMS = {
    "small": {"model": "s", "cost": 0.1},
    "middle": {"model": "m", "cost": 1.0},
    "large": {"model": "l", "cost": 10.0},
}
QUALITY = {"small": 0.5, "middle": 0.7, "large": 0.9}
NEW = {
    "features": FEATURES,
    "reward": Reward(0, 1),
    "policy": DOMD,
    "arms": ARMS,
    "exploration": 0.05,
}
BUDGET = Budget("cost", mean=2.0)


def opened(path=":memory:", training="inline", **options):
    return Loop(path, **{"budget": BUDGET, **NEW, **options}, training=training)


def play(loop, rounds, seed=1, late=0, bill=lambda arm, rng: ARMS[arm]["cost"], **options):
    """Bills come `late` decisions after their own; returns costs in the order of decisions."""
    rng, waiting, costs = np.random.default_rng(seed), [], []
    for k in range(rounds):
        made = loop.decide({"p": rng.standard_normal(2).tolist()}, id=f"{seed}-{k}", **options)
        costs.append(bill(made.arm, rng))
        waiting.append((made.id, costs[-1]))
        if len(waiting) > late:
            id, cost = waiting.pop(0)
            loop.metric(id, "cost", cost)
        loop.reward(made.id, float(rng.random() < QUALITY[made.arm]))
    return np.array(costs)


@pytest.mark.parametrize("exploration", [0.0, 0.05, Thompson(0.02), InverseGap(0.02)])
def test_the_mean_is_kept_and_used(exploration):
    with opened(exploration=exploration) as loop:
        costs = play(loop, 600)
        assert costs[200:].mean() == pytest.approx(2.0, rel=0.15)
        found = loop.health().budget["cost"]
        assert found.spent == pytest.approx(costs.sum())
        assert found.bound == 2.0
        assert found.cheapest == pytest.approx(0.1)


def test_a_tighter_budget_earns_less_and_costs_less():
    spent, share = [], []
    for mean in (0.5, 2.0, 6.0, 20.0):
        with opened(budget=Budget("cost", mean=mean)) as loop:
            costs = play(loop, 500)
            spent.append(costs[200:].mean())
            share.append((costs[200:] == 10.0).mean())
    assert spent[:3] == pytest.approx([0.5, 2.0, 6.0], rel=0.2)
    assert share == sorted(share)
    assert share[3] > 0.9  # a budget that pays for the best arm changes nothing


def test_prices_and_costs_against_the_reference():
    def noisy(arm, rng):
        return ARMS[arm]["cost"] * rng.lognormal(0.3, 0.5)

    with opened(training="background") as loop:
        play(loop, 250, late=7, bill=noisy)
        for k in range(0, 240, 11):  # corrected later
            loop.metric(f"1-{k}", "cost", 0.3 + k / 100)
        play(loop, 30, seed=2, bill=noisy)
        events = naive_budget.history(loop)
        decided = [e for e in loop.ledger.read() if e.kind == "decide"]
        for event in decided[::9]:
            data = event.read()
            spend = data.spend["cost"]
            before = naive_budget.price_after(events, data.priced)
            assert spend.price == pytest.approx(before or 2.0 / 10.0, rel=1e-12)
            for name, arm, cost in zip(data.names, data.arms, spend.costs):
                ratio = naive_budget.ratio_after(events, data.priced, name)
                assert cost == pytest.approx(arm["cost"] * ratio, rel=1e-9)
        assert all(each.agrees for each in loop.audits())


def test_an_audit_notices_a_wrong_price():
    with opened() as loop:
        play(loop, 50)
        found = next(each for each in loop.audits() if each.id == "1-30")
        prices = list(found.logged_prices)
        assert found.computed_prices == prices  # to the last bit
        prices[0] *= 1.0001
        assert not found._replace(logged_prices=prices).agrees


@pytest.mark.parametrize("training", ["inline", "background"])
def test_a_restart_and_a_replay_give_the_same_bits(tmp_path, training):
    with opened(tmp_path / "a.db", training) as one:
        play(one, 150, late=20)
        one.wait_until_trained()
        state, digest = one.runtime.windows.accounts.state(), one.digest
    with Loop(tmp_path / "a.db", training=training) as again:
        assert again.runtime.windows.accounts.state() == state
        assert again.digest == digest
        made = again.decide({"p": [0.1, 0.2]})
        assert again.audit(made.id).agrees
        assert all(each.agrees for each in again.audits())
    # the whole log from its first event, without any checkpoint
    with Loop(tmp_path / "a.db", training="inline") as again:
        windows = again.runtime.definition.now.windows()
        for event in again.ledger.read(light=True):
            windows.apply(event)
        assert windows.accounts.state() == again.runtime.windows.accounts.state()


def test_a_log_of_the_first_rule_means_what_it_meant(tmp_path):
    """Its prices had no payback, and its exploration bonus counted in full."""
    path = tmp_path / "a.db"
    stored = Path(__file__).parents[1] / "fixtures" / "budget-rule-1.db.gz"
    path.write_bytes(gzip.decompress(stored.read_bytes()))
    with Loop(path, training="inline") as loop:
        account = loop.runtime.windows.accounts.by_name["cost"]
        assert account.log_price == pytest.approx(-4.082464604582759, rel=1e-12)
        events = naive_budget.history(loop)
        before = naive_budget.price_after(events, events[-1][0], payback=None)
        assert account.price == pytest.approx(before, rel=1e-12)
        assert all(each.agrees for each in loop.audits())
        for k in range(30):
            loop.reward(loop.decide({"x": k / 30}).id, 1.0)
        assert account.rule == 2
        audits = list(loop.audits())
        assert len(audits) == 90
        assert all(each.agrees for each in audits)


def test_what_was_overspent_is_paid_back():
    """A price that has to rise leaves nothing overspent: bills double at once."""
    with opened(exploration=0.0) as loop:
        play(loop, 600)
        account = loop.runtime.windows.accounts.by_name["cost"]
        before = account.owed
        costs = play(loop, 1200, seed=2, bill=lambda arm, rng: 2.0 * ARMS[arm]["cost"])
        assert costs.sum() - 2.0 * 1200 <= account.owed - before + 1e-6  # savings are forgotten
        assert abs(account.owed) <= 40.0  # two of the dearest calls
        assert 1.8 <= costs.mean() <= 2.02


def test_savings_are_not_kept_for_ever():
    with opened(budget=Budget("cost", mean=50.0)) as loop:  # which pays for everything
        play(loop, 100)
        assert loop.health().budget["cost"].owed == -100.0  # two of the dearest calls, or bounds


def test_why_says_what_a_cost_is_worth():
    with opened(exploration=0.0) as loop:
        play(loop, 200)
        made = loop.decide({"p": [0.0, 0.0]})
        why, spend = made.why, loop.ledger.find(made.id).read().spend["cost"]
        names = list(ARMS)
        costs = spend.costs[names.index(why.runner_up)] - spend.costs[names.index(why.arm)]
        assert why.costs == {"cost": pytest.approx(spend.price / spend.bound * costs)}
        assert loop.audit(made.id).why == why


def test_retention_and_erasure_keep_the_price(tmp_path):
    options = {"clock": "events", "reward": Reward(0, 1, wait=5), "retention": 50}
    with opened(tmp_path / "a.db", **options) as loop:
        for k in range(120):
            made = loop.decide({"p": [0.0, 1.0]}, id=f"d{k}", key="ann" if k % 3 else "bob", at=k)
            loop.metric(made.id, "cost", 3.0, at=k)
            loop.reward(made.id, 1.0, at=k)
        loop.close_windows(at=130)
        loop.erase(key="ann")
        state = loop.runtime.windows.accounts.state()
        assert state["by_name"]["cost"]["spent"] == pytest.approx(360.0)
    with Loop(tmp_path / "a.db", training="inline") as loop:
        assert loop.runtime.windows.accounts.state() == state


def test_bills_correct_what_was_expected_once():
    with opened() as loop:
        first = loop.decide({"p": [0, 0]}, ["small"])
        spent = lambda: loop.health().budget["cost"].spent  # noqa: E731
        assert spent() == pytest.approx(0.1)
        loop.metric(first.id, "cost", 0.5)
        assert spent() == pytest.approx(0.5)
        loop.metric(first.id, "cost", 0.4)  # the last one counts
        assert spent() == pytest.approx(0.4)
        loop.metric(first.id, "other", 9.0)
        second = loop.decide({"p": [0, 0]}, ["large"])
        loop.reward(second.id, 1.0)  # closed: the bill still counts
        loop.metric(second.id, "cost", 8.0)
        assert spent() == pytest.approx(8.4)
        third = loop.decide({"p": [0, 0]}, ["large"])
        assert spent() > 15.0
        loop.cancel(third.id)
        assert spent() == pytest.approx(8.4)
        fourth = loop.decide({"p": [0, 0]}, ["small"])
        loop.metric(fourth.id, "cost", 0.2)
        loop.cancel(fourth.id)  # it was billed
        assert spent() == pytest.approx(8.6)
        loop.metric("nobody", "cost", 5.0)
        assert spent() == pytest.approx(8.6)


def test_a_bill_that_comes_after_a_thousand_decisions_counts(tmp_path):
    with opened(tmp_path / "a.db", policy=DOMD) as loop:
        first = loop.decide({"p": [0, 0]}, ["large"])
        calls = [("decide", {"context": {"p": [0, 0]}, "arms": ["small"]})] * 1100
        loop.submit_many(calls)
        before = loop.health().budget["cost"].spent
        loop.metric(first.id, "cost", 4.0)
        assert loop.health().budget["cost"].spent == pytest.approx(before - 6.0)


def test_late_bills_do_not_make_the_price_swing():
    with opened() as loop:
        costs = play(loop, 800, late=100)
        assert costs[200:].mean() == pytest.approx(2.0, rel=0.12)


def test_exploration_spends_a_small_part():
    with opened(exploration=0.3, budget=Budget("cost", mean=0.3)) as loop:
        play(loop, 50)
        for row in loop.log().to_dicts():
            p = dict(zip(row["names"], row["probabilities"]))
            assert math.fsum(p.values()) == 1.0
            least = {name: min(0.1, 0.03 * 0.3 / (3 * arm["cost"])) for name, arm in ARMS.items()}
            for name in ARMS:
                assert p[name] >= least[name] * (1 - 1e-9) or p[name] == pytest.approx(least[name])
            explored = sum(min(p[name], least[name]) * ARMS[name]["cost"] for name in ARMS)
            assert explored <= 0.03 * 0.3 * (1 + 1e-9)


def test_two_budgets():
    arms = {
        name: {**arm, "latency": 5.0 if name == "middle" else 1.0} for name, arm in ARMS.items()
    }
    both = [Budget("cost", mean=4.0), Budget("latency", mean=1.5)]
    with opened(arms=arms, budget=both) as loop:
        costs = play(loop, 500)
        middle = (costs[200:] == 1.0).mean()
        assert costs[200:].mean() == pytest.approx(4.0, rel=0.2)
        assert 1.0 + 4.0 * middle <= 1.6
        assert set(loop.health().budget) == {"cost", "latency"}
        assert all(each.agrees for each in loop.audits())


def test_a_total_stops_at_the_default():
    budget = Budget("cost", per="1h", total=50, on_empty="default")
    options = {"clock": "events", "budget": budget}
    arms = {**ARMS, "free": {"model": "s", "cost": 0.0}}
    with opened(arms=arms, **options) as loop:
        spent, roles = {0: 0.0, 1: 0.0}, []
        for k in range(400):
            hour, at = divmod(k, 200)
            at = hour * 3600 + at * 18.0
            named = ["middle", "large"]
            made = loop.decide({"p": [0, 0]}, [*named, "free"], default="free", id=f"{k}", at=at)
            roles.append(made.role)
            cost = arms[made.arm]["cost"]
            spent[hour] += cost
            loop.metric(made.id, "cost", cost, at=at)
            loop.reward(made.id, 1.0 if made.arm != "free" else 0.0, at=at)
        assert max(spent.values()) <= 50.0
        assert min(spent.values()) > 40.0
        assert all(each.agrees for each in loop.audits())
    with opened(**options) as loop:
        for k in range(60):
            made = loop.decide({"p": [0, 0]}, ["large", "middle"], default="middle", at=k)
        assert made.role == "spent"
        assert made.probability == 1.0
        assert loop.health().budget["cost"].concern
        (said,) = (each for each in loop.health().concerns if "used up" in each)
        over = -loop.health().budget["cost"].left  # the default costs something, too
        assert over >= 1.0
        assert f"{over:.3g} more is spent" in said
        assert loop.decide({"p": [0, 0]}, default="small", at=3700).role == "active"
        with pytest.raises(ValueError, match="with on_empty='default' of budget 'cost' every"):
            loop.decide({"p": [0, 0]}, at=3800)


def test_a_total_is_spread_over_its_period():
    budget = Budget("cost", per=1000, total=1000)
    with opened(budget=budget, clock="events") as loop:
        halves, rng = [0.0, 0.0], np.random.default_rng(4)
        for k in range(1000):  # two decisions per second, in the second of two periods
            at = 1000 + k
            made = loop.decide({"p": rng.standard_normal(2).tolist()}, at=at)
            loop.metric(made.id, "cost", ARMS[made.arm]["cost"], at=at)
            loop.reward(made.id, float(rng.random() < QUALITY[made.arm]), at=at)
            halves[k // 500] += ARMS[made.arm]["cost"]
        assert sum(halves) == pytest.approx(1000, rel=0.1)
        assert halves[0] == pytest.approx(500, rel=0.3)


def test_health_says_when_a_budget_cannot_be_kept():
    with opened(budget=Budget("cost", mean=0.05)) as loop:
        play(loop, 30)
        assert any("even the cheapest arm costs 0.1" in each for each in loop.health().concerns)


def test_candidates_answer_at_the_same_price():
    with opened() as loop:
        loop.shadow("bold", exploration=Thompson(0.05))
        loop.trial("bold", 0.3)
        costs = play(loop, 200)
        assert costs[100:].mean() == pytest.approx(2.0, rel=0.4)
        assert all(each.agrees for each in loop.audits())


def test_a_candidate_that_would_overspend_is_not_promoted(tmp_path):
    with opened(tmp_path / "a.db", exploration=0.3, budget=Budget("cost", mean=4.0)) as loop:
        loop.shadow("careless", exploration=InverseGap(0.0, strength=0.0))
        play(loop, 60)
        found = loop.compare()
        uniform = np.mean([arm["cost"] for arm in ARMS.values()]) / 4.0
        assert found.spend["cost"]["careless"].value == pytest.approx(uniform, rel=1e-6)
        loop.configure(budget=Budget("cost", mean=1.0))
        play(loop, 200, seed=2)
        found = loop.compare()
        assert found.spend["cost"]["careless"].keeps is False
        live = found.spend["cost"]["live"]
        assert live.low < live.value < live.high
        assert "would spend" in repr(found)
        better = [each._replace(better=1, recent=1) for each in found.leads]
        wins = replace(found, leads=tuple(better), losses=())
        assert "it must keep the budget" in refusal(wins, "careless", "live")
        spend = found.spend
    with Loop(tmp_path / "a.db", training="inline") as loop:
        assert loop.compare().spend == spend


def test_a_promoted_candidate_keeps_the_budget():
    """Even one that would have overspent at the live policy's price: the price follows it."""
    with opened(exploration=0.2) as loop:
        loop.shadow("careless", exploration=InverseGap(0.0, strength=3.0))
        play(loop, 250)
        spend = loop.compare().spend["cost"]
        assert spend["careless"].keeps is False
        assert spend["live"].value < spend["careless"].value
        with pytest.raises(ValueError, match="careless"):
            loop.promote("careless")
        loop.promote("careless", force=True)
        play(loop, 300, seed=2)
        costs = play(loop, 500, seed=3)
        assert costs.mean() <= 2.0 * 1.05
        assert all(each.agrees for each in loop.audits())


@pytest.mark.parametrize("seed", range(6))
def test_what_can_be_overspent_is_bounded(seed):
    """docs/budgets.md has the proof. Rewards do what they can: at every price the dearest arm is
    played that a reward of the whole range pays for, or any cheaper one, in long stretches."""
    rng, bound = np.random.default_rng(seed), 1.0
    costs = [0.2 * bound, *(bound * rng.uniform(1.0, 40.0, 3))]
    account, cheapest, dearest = Account(bills={}), min(costs), max(costs)
    unit, least = bound**0.75 * dearest**0.25, 0.003 * bound / dearest
    limit = 300.0 * bound + unit / 0.07 * math.log(bound / (bound - cheapest) / least) + dearest
    most, greedy = 0.0, False
    for t in range(8000):
        price = account.price or bound / dearest
        paid = [c for c in costs if c <= cheapest + bound / price]
        if rng.random() < 0.003:
            greedy = not greedy
        cost = max(paid) if greedy else min(costs)
        account.decide(float(t), Spend(price, bound, costs, rule=2), cost)
        most = max(most, account.owed)
    assert 0.0 < most <= limit


def test_two_services_share_a_price(postgres):
    """Both decide and bill; prices follow from one log, whoever wrote it."""
    url = postgres.url()
    with (
        opened(url, "background") as one,
        Loop(url) as other,
    ):
        rng, costs = np.random.default_rng(8), []
        for k in range(160):
            loop = (one, other)[k % 2]
            made = loop.decide({"p": rng.standard_normal(2).tolist()}, id=f"d{k}")
            costs.append(ARMS[made.arm]["cost"] * rng.lognormal(0.0, 0.2))
            (other, one)[k % 3 % 2].metric(made.id, "cost", costs[-1])
            loop.reward(made.id, float(rng.random() < QUALITY[made.arm]))
        one.wait_until_trained()
    with Loop(url, training="inline") as again:
        assert again.health().budget["cost"].spent == pytest.approx(sum(costs))
        events = naive_budget.history(again)
        audits = list(again.audits())
        assert len(audits) == 160
        assert all(each.agrees for each in audits)
        assert all(each.logged_prices == each.computed_prices for each in audits)  # same bits
        last = next(e for e in again.ledger.read() if e.id == "d159" and e.kind == "decide").read()
        assert last.spend["cost"].price == pytest.approx(
            naive_budget.price_after(events, last.priced), rel=1e-12
        )


def test_keys_share_the_budget():
    with opened(key="user") as loop:
        rng, costs = np.random.default_rng(5), []
        for k in range(600):
            made = loop.decide({"p": rng.standard_normal(2).tolist()}, key=f"u{k % 5}")
            costs.append(ARMS[made.arm]["cost"])
            loop.reward(made.id, float(rng.random() < QUALITY[made.arm]))
        assert np.mean(costs[200:]) == pytest.approx(2.0, rel=0.15)


def test_cost_may_also_be_a_feature_and_change_by_decision():
    from driftbandit import Number

    features = Features(context={"p": Vector(2)}, arm={"cost": Number(0, 20)})
    arms = {name: {"cost": arm["cost"]} for name, arm in ARMS.items()}
    with Loop(
        ":memory:",
        features=features,
        reward=Reward(0, 1),
        budget=BUDGET,
        policy=DOMD,
        training="inline",
    ) as loop:
        made = loop.decide({"p": [0, 0]}, {**arms, "small": {"cost": 0.3}})
        loop.reward(made.id, 1.0)
        assert loop.audit(made.id).logged_prices[2] == 0.3


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda: Budget("cost"), "needs a mean"),
        (lambda: Budget("cost", mean=1, total=3), "needs a mean"),
        (lambda: Budget("cost", total=3), "needs a mean"),
        (lambda: Budget("cost", mean=0), "mean must be"),
        (lambda: Budget("cost", mean=1, on_empty="default"), "cannot be used up"),
        (lambda: Budget("cost", per="1d", total=3, on_empty="stop"), "on_empty must be one of"),
        (lambda: opened(budget=3), "budget must be"),
        (lambda: opened(budget=[BUDGET, BUDGET]), "metric of its own"),
        (lambda: opened(budget=Budget("price", mean=1)), "'cost', which is not"),
    ],
)
def test_wrong_budgets(wrong, said):
    with pytest.raises(ValueError, match=said):
        wrong()


@pytest.mark.parametrize("cost", [None, -1.0, "3", True])
def test_every_arm_states_its_cost(cost):
    with opened() as loop:
        before = loop.counts
        with pytest.raises(ValueError, match="arm 'small' states no 'cost'"):
            loop.decide({"p": [0, 0]}, {"small": {"cost": cost}, "large": {}})
        with pytest.raises(ValueError, match="leave k out"):
            loop.decide({"p": [0, 0]}, k=2)
        with pytest.raises(ValueError, match="the whole cost of its decision, from 0 on"):
            loop.metric("any", "cost", -1.0)
        assert loop.counts == before


def test_a_new_arm_states_its_cost_as_the_others_do():
    """Otherwise every decision that leaves its arms out would be refused from then on."""
    with opened() as loop:
        before, new = loop.head, {"model": next(iter(ARMS.values()))["model"]}
        with pytest.raises(ValueError, match="states no 'cost', which the budget needs"):
            loop.add_arm("new", new)
        assert loop.head == before
        loop.add_arm("new", {**new, "cost": 0.1})
        assert "new" in loop.decide({"p": [0, 0]}).probabilities


def test_a_budget_can_begin_change_and_end(tmp_path):
    options = {**NEW, "arms": {name: {"model": arm["model"]} for name, arm in ARMS.items()}}
    with Loop(tmp_path / "a.db", **options, training="inline") as loop:
        loop.reward(loop.decide({"p": [0, 0]}).id, 1.0)
        loop.configure(budget=BUDGET)
        for name, arm in ARMS.items():
            loop.add_arm(name, arm)
        play(loop, 20)
        loop.configure(budget=Budget("cost", mean=1.0))
        play(loop, 20, seed=2)
        loop.configure(budget=False)
        play(loop, 20, seed=3)
        assert loop.health().budget == {}
        digest = loop.digest
        assert all(each.agrees for each in loop.audits())
    with Loop(tmp_path / "a.db", training="inline") as loop:
        assert loop.digest == digest


def test_a_rule_without_a_penalty_is_refused():
    from dataclasses import dataclass

    from driftbandit.loop.exploration import Rule

    @dataclass(frozen=True)
    class OldRule(Rule):
        def weights(self, bandit, X, words):
            return np.full(len(X), 1.0 / len(X))

    with pytest.raises(ValueError, match="OldRule knows no budget"):
        opened(exploration=OldRule())


def test_the_benchmark_decides_as_a_loop_does():
    n, rng = 40, np.random.default_rng(7)
    arms = [{"model": model} for model in routing.MODELS]
    prompts = rng.standard_normal((n, 25))
    contexts = [{"prompt": prompt.tolist()} for prompt in prompts]
    X = np.stack(routing.FEATURES.encode_each(contexts, [arms] * n))
    world = routing.Stream(
        X,
        prompts,
        rng.random((n, 3)),
        routing.LISTED * rng.lognormal(0.2, 0.5, (n, 3)),
        np.tile(routing.LISTED, (n, 1)),
        np.ones((n, 3), dtype=bool),
    )
    run = routing.play(world, ceiling=0.001)
    named = {
        model: {"model": model, "cost": float(cost)}
        for model, cost in zip(routing.MODELS, routing.LISTED)
    }
    with Loop(
        ":memory:",
        features=routing.FEATURES,
        reward=routing.REWARD,
        exploration=0.0,
        arms=named,
        budget=Budget("cost", mean=0.001),
        training="inline",
    ) as loop:
        for t, context in enumerate(contexts):
            made = loop.decide(context)
            k = routing.MODELS.index(made.arm)
            assert k == run.arm[t]
            loop.metric(made.id, "cost", world.cost[t, k])
            loop.reward(made.id, world.quality[t, k])
