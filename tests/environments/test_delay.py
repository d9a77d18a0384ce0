"""Late rewards: against a player with a diary, and what they do to learning."""

import numpy as np
import pytest

import tiny
from driftbandit import (
    DOMD,
    GLMUCB,
    MASTER,
    AutoDOMD,
    Bernoulli,
    Circle,
    Delay,
    FixedArms,
    Gaussian,
    Oracle,
    Poison,
    Stationary,
    Stream,
    Uniform,
    simulate,
)
from driftbandit.checks import check_environment
from driftbandit.environments.delay import Mail


def slow(policy, world, seed):
    """Choices of a player who writes every reward into a diary, and looks it up each evening."""
    (block,) = world.blocks((seed,), world.horizon)
    noises = np.random.default_rng([seed, 3]).standard_normal((world.horizon, policy.noise_size))
    lucks = np.random.default_rng([seed, 6]).random(world.horizon)
    memory, choices, diary = policy.init(1), [], []
    for t in range(world.horizon):
        choice = policy.choose(memory, block.arms[t], noises[[t]])
        reward, _ = block.play(t, choice)
        mean = world.delay.mean if reward[0] or world.delay.zero is None else world.delay.zero
        wait = int(np.floor(np.log(1 - lucks[t]) / np.log(mean / (1 + mean)))) if mean else 0
        diary.append((t + wait, t, block.arms[t][[0], choice], reward, noises[[t]]))
        choices.append(int(choice[0]))
        for due, _, x, r, noise in sorted(diary, key=lambda entry: entry[1]):
            if due == t:
                memory = policy.update(memory, x, r, noise)
    return choices


@pytest.mark.parametrize("kind", [DOMD, AutoDOMD, GLMUCB, Uniform])
@pytest.mark.parametrize("delay", [Delay(mean=4), Delay(mean=1, zero=9), Delay(mean=6, zero=0)])
def test_learning_happens_at_arrival(kind, delay):
    world = Circle(horizon=60, delay=delay)
    policy = kind.from_theory(world.problem) if kind is GLMUCB else kind(problem=world.problem)
    run = simulate(policy, world, (2, 7))
    for row, seed in zip(run.choices, (2, 7)):
        assert row.tolist() == slow(policy, world, seed)


@pytest.mark.parametrize("kind", [DOMD, MASTER, Uniform])
@pytest.mark.parametrize("delay", [Delay(), Delay(mean=0, zero=0), Delay(fixed=True)])
def test_no_delay_is_no_delay_to_the_last_bit(kind, delay):
    world = Circle(horizon=50)
    policy = kind.from_theory(world.problem)
    prompt = simulate(policy, world, (0, 3))
    late = simulate(policy, Circle(horizon=50, delay=delay), (0, 3))
    for name in ("regret", "choices", "rewards"):
        np.testing.assert_array_equal(getattr(late, name), getattr(prompt, name))


def test_what_arrives_after_the_horizon_is_never_learnt():
    world = Stationary(horizon=30, delay=Delay(mean=30, fixed=True), arms=FixedArms(5))
    policy, seen = DOMD(problem=world.problem), []
    simulate(policy, world, (0,), watch=lambda t, memory, theta: seen.append(int(memory.t[0])))
    assert seen == [0] * 30
    world = Stationary(horizon=30, delay=Delay(mean=12, fixed=True), arms=FixedArms(5))
    seen.clear()
    simulate(policy, world, (0,), watch=lambda t, memory, theta: seen.append(int(memory.t[0])))
    assert seen == [0] * 13 + list(range(1, 18))


def test_rewards_of_one_evening_are_learnt_in_the_order_of_decisions():
    mail = Mail()
    assert mail.exchange(0, 2, "a") == []
    assert mail.exchange(1, 1, "b") == []
    assert mail.exchange(2, 0, "c") == ["a", "b", "c"]


def test_delays_have_their_mean_and_depend_on_the_value_where_told():
    luck = (np.arange(20_000) + 0.5) / 20_000
    delay = Delay(mean=3, zero=40)
    assert np.mean([delay.wait(1.0, u) for u in luck]) == pytest.approx(3, rel=0.01)
    assert np.mean([delay.wait(0.0, u) for u in luck]) == pytest.approx(40, rel=0.01)
    assert min(delay.wait(0.0, u) for u in luck) == 0
    assert Delay(mean=3).wait(0.0, 0.7) == Delay(mean=3).wait(1.0, 0.7)


@pytest.mark.parametrize("options", [{"mean": -1}, {"zero": "no"}, {"fixed": 1}])
def test_wrong_delays(options):
    with pytest.raises(ValueError, match="must be"):
        Delay(**options)


def test_wrong_use():
    with pytest.raises(ValueError, match=r"delay must be one such as Delay\(mean=5\)"):
        Circle(delay=5)
    world = Circle(horizon=5, delay=Delay(mean=1))
    with pytest.raises(ValueError, match="play each seed alone"):
        simulate(DOMD(problem=world.problem), world, (0, 1), watch=print)


def test_progress_counts_every_round_of_every_seed():
    world, done = Circle(horizon=20, delay=Delay(mean=1)), []
    simulate(Uniform(problem=world.problem), world, range(3), progress=done.append)
    assert sum(done) == 60


def test_a_stream_may_be_late_too(tmp_path, monkeypatch):
    tiny.write(tmp_path)
    monkeypatch.setenv("DRIFTBANDIT_DATA", str(tmp_path))
    world = Stream(data="weather", start=500, horizon=90, delay=Delay(mean=5))
    policy = DOMD(problem=world.problem)
    assert simulate(policy, world, (4,)).choices[0].tolist() == slow(policy, world, 4)


def test_clicks_before_non_clicks_mislead_more_than_late_rewards():
    """The same wait for all costs little; successes first look like success."""
    regret = {}
    for name, delay in (("late", Delay(mean=60)), ("biased", Delay(mean=1, zero=60))):
        world = Stationary(horizon=1000, radius=3.0, delay=delay, arms=FixedArms(20))
        regret[name] = simulate(AutoDOMD(problem=world.problem), world, range(6)).total.mean()
    assert regret["biased"] > 3 * regret["late"]


@pytest.mark.parametrize("kind", [DOMD, AutoDOMD, GLMUCB])
def test_a_lost_reward_is_never_learnt(kind):
    """Against a player that looks at the tape of delays itself."""
    world = Stationary(horizon=60, delay=Delay(lost=0.2, lost_zero=0.6))
    policy = kind.from_theory(world.problem) if kind is GLMUCB else kind(problem=world.problem)
    run = simulate(policy, world, (4,))
    (block,) = world.blocks((4,), 60)
    noises = np.random.default_rng([4, 3]).standard_normal((60, policy.noise_size))
    lucks, memory, lost = np.random.default_rng([4, 6]).random(60), policy.init(1), 0
    for t in range(60):
        choice = policy.choose(memory, block.arms[t], noises[[t]])
        assert choice[0] == run.choices[0, t]
        reward, _ = block.play(t, choice)
        if lucks[t] >= (0.2 if reward[0] else 0.6):
            memory = policy.update(memory, block.arms[t][[0], choice], reward, noises[[t]])
        else:
            lost += 1
    assert 10 < lost < 40


def test_recipes_of_before_keep_their_text():
    assert Delay(mean=5).to_dict() == {"type": "Delay", "mean": 5.0, "zero": None, "fixed": False}
    assert "poison" not in Circle().to_dict()


@pytest.mark.parametrize("family", [Bernoulli(), Gaussian(variance=0.25, bound=6.0)])
def test_poison_mirrors_a_share_of_the_rewards_and_no_regret(family):
    clean = Circle(horizon=2000, family=family)
    dirty = Circle(horizon=2000, family=family, poison=Poison(share=0.25))
    policy = Uniform(problem=clean.problem)
    one, two = (simulate(policy, world, (1, 2)) for world in (clean, dirty))
    np.testing.assert_array_equal(one.regret, two.regret)
    changed = one.rewards != two.rewards
    mirrored = (family.low + family.high - one.rewards)[changed]
    np.testing.assert_array_equal(two.rewards[changed], mirrored)
    assert abs(changed.mean() - 0.25) < 0.02


def test_poison_may_spare_all_but_the_best_arm():
    world = Circle(horizon=300, poison=Poison(share=1.0, best_only=True))
    oracle = simulate(Oracle(problem=world.problem), world, (0,))
    clean = simulate(Oracle(problem=world.problem), Circle(horizon=300), (0,))
    np.testing.assert_array_equal(oracle.rewards, 1.0 - clean.rewards)
    check_environment(Circle(horizon=40, poison=Poison(share=0.3)))
    check_environment(Circle(horizon=40, delay=Delay(lost=0.3)))


@pytest.mark.parametrize(
    "wrong",
    [lambda: Delay(lost=1.5), lambda: Delay(lost_zero=-1), lambda: Poison(share=2.0)],
)
def test_shares_are_shares(wrong):
    with pytest.raises(ValueError, match="must lie in"):
        wrong()
