"""Hostile use: contexts at the edge, tiny lambdas, odd memories, damaged files and stores, forks,
threads, and a cache that cannot be written."""

import copy
import io
import json
import os
import pickle
import re
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
import warnings
import zipfile
import zlib
from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pytest

import driftbandit
from driftbandit import (
    DOMD,
    GLBOMD,
    GLMUCB,
    ArmSet,
    AutoDOMD,
    Bandit,
    Bernoulli,
    DLinUCB,
    Fleet,
    Gaussian,
    LinUCB,
    Poisson,
    Problem,
    Uniform,
    files,
)
from driftbandit.core.layout import size, views

LIBRARY = os.path.dirname(os.path.dirname(driftbandit.__file__))
KNOWN = Problem(dim=3, radius=1.0, horizon=100, path_length=2.0, change_points=2)
POLICY = DOMD(problem=KNOWN)
THOMPSON = DOMD(problem=KNOWN, exploration="thompson")
can_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")


def unit(rng, *shape):
    x = rng.standard_normal(shape)
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def known(bandit):
    """Everything a bandit knows, as bytes."""
    return b"".join(array.tobytes() for array in bandit.memory)


def remembered(fleet):
    """Everything a fleet knows, as bytes by key."""
    pages = list(fleet.pages())
    return {key: row.tobytes() for keys, page in pages for key, row in zip(keys, page)}


def python(script, *arguments, **environment):
    """The outcome of a script in a process of its own; None in `environment` unsets."""
    wanted = os.environ | {"PYTHONPATH": LIBRARY} | environment
    wanted = {name: value for name, value in wanted.items() if value is not None}
    command = [sys.executable, "-c", script, *map(str, arguments)]
    done = subprocess.run(command, env=wanted, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"{done.returncode}: {done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done


# One function decides what a context is.


@cache
def doors(dim, norm):
    """Every way to show a context to the library: each takes x."""
    problem = Problem(dim=dim, context_norm=norm)
    domd, uniform = DOMD(problem=problem), Uniform(problem=problem)
    fleet, plain, auto = Fleet(domd), Fleet(uniform), AutoDOMD(problem=problem)
    found = {
        "a policy's choose": lambda x: domd.choose(domd.init(1), [[x]]),
        "a policy's best": lambda x: domd.best(domd.init(1), [[x]], 1),
        "DOMD's protocol update": lambda x: domd.update(domd.init(1), [x], [1.0]),
        "AutoDOMD's protocol update": lambda x: auto.update(auto.init(1), [x], [1.0]),
        "a catalogue": lambda x: Bandit(domd).choose(ArmSet([x])),
    }
    for name, one in {"fleet": fleet, "plain fleet": plain}.items():
        found[f"{name}'s choose"] = lambda x, one=one: one.choose([1, "a"], [x])
        found[f"{name}'s update"] = lambda x, one=one: one.update([1, "a"], [x, x], [1, 1])
    for policy in (domd, uniform, auto):
        one = Bandit(policy)
        found[f"{policy.name}'s choose"] = lambda x, one=one: one.choose([x])
        found[f"{policy.name}'s two best"] = lambda x, one=one: one.choose([x, x], k=2)
        found[f"{policy.name}'s update"] = lambda x, one=one: one.update(x, 1)
        found[f"{policy.name}'s late update"] = lambda x, one=one: one.update(x, 1, steps=2.0)
        found[f"{policy.name}'s scores"] = lambda x, one=one: one.scores([x])
    del found["Uniform's late update"]  # it has no way to age
    return found


def verdicts(dim, norm, x):
    """What every door says of a context: "taken", or that it is none."""
    said = {}
    for name, door in doors(dim, norm).items():
        try:
            found = door(x)
        except ValueError as error:
            about = re.search(r"context \d+ has norm", str(error))
            said[name] = "refused" if about else str(error)
        else:
            if isinstance(found, (int, np.ndarray)):
                assert np.min(found) >= 0, name
            said[name] = "taken"
    return said


def test_a_context_on_which_two_sums_of_squares_disagree_is_judged_by_one():
    x = [-0.9998823310518604, -0.015405325420056723]
    assert len(set(verdicts(2, 1.0, np.array(x)).values())) == 1
    assert len(set(verdicts(2, 1.0, x).values())) == 1


@pytest.mark.parametrize("norm", [1.0, 3.7])
@pytest.mark.parametrize("dim", [1, 2, 3, 17, 40])
def test_contexts_at_the_very_edge_are_taken_or_refused_by_every_door_alike(dim, norm):
    rng, seen = np.random.default_rng([dim, int(norm)]), set()
    for ulps in [*range(-4, 5), -40, 40, -(10**6), 10**6] * 2:
        x = unit(rng, dim) * norm * (1.0 + 1e-6) * (1.0 + ulps * 2.0**-53)
        for given in (x, x.tolist(), np.float32(x), np.repeat(x, 2)[::2]):
            said = verdicts(dim, norm, given)
            assert len(set(said.values())) == 1, f"{given!r}: {said}"
            seen |= set(said.values())
    assert seen == {"taken", "refused"}


# Never NaN.


def finite_for(bandit, rewards, rounds, seed=0, **steps):
    """Train hard: few directions, extreme rewards; all it knows stays finite."""
    rng, d = np.random.default_rng(seed), bandit.policy.problem.dim
    few, many = unit(rng, 2, d), unit(rng, rounds, d)
    X = np.where(rng.random((rounds, 1)) < 0.7, few[rng.integers(2, size=rounds)], many)
    X *= bandit.policy.problem.context_norm
    for x, r in zip(X, rng.choice(rewards, size=rounds)):
        bandit.update(x, r, **steps)
        assert bandit.choose(X[:3]) in range(3)
    assert all(np.isfinite(a).all() for a in bandit.memory)
    return X


def comes_back(bandit, X, path):
    """Saved and loaded it is the same."""
    bandit.save(path)
    twin = Bandit.load(path)
    assert known(twin) == known(bandit)
    assert twin.choose(X[:9]) == bandit.choose(X[:9])
    assert np.isfinite(bandit.predict(X[:9], level=0.9)).all()


FAINT = {
    "precise": (GLBOMD, {"family": Gaussian(variance=1e-4)}, {"regularization": 1e-12}, [-5, 5]),
    "bearable": (GLBOMD, {"family": Gaussian(variance=1e-4)}, {"regularization": 1e-5}, [-5, 5]),
    "for ever": (GLBOMD, {}, {"regularization": 1e-9}, [0, 1]),
    "fainter": (DOMD, {}, {"regularization": 3e-10, "half_life": 3.0}, [0, 1]),
    "faintest": (DOMD, {}, {"regularization": 1e-60}, [0, 1]),
    "large": (DOMD, {"dim": 40}, {"regularization": 1e-9}, [0, 1]),
    "large, for ever": (GLBOMD, {"dim": 40}, {"regularization": 1e-9}, [0, 1]),
    "long contexts": (DOMD, {"context_norm": 1e4}, {"regularization": 1e-9}, [0, 1]),
    "short contexts": (DOMD, {"context_norm": 1e-4}, {"regularization": 1e-9}, [0, 1]),
    "auto": (AutoDOMD, {}, {"regularizations": (1e-9, 1.0)}, [0, 1]),
    "auto, alone": (AutoDOMD, {}, {"regularizations": (1e-9,)}, [0, 1]),
    "auto, faintest": (AutoDOMD, {}, {"regularizations": (1e-30, 1.0)}, [0, 1]),
    "auto, large": (AutoDOMD, {"dim": 40}, {"regularizations": (1e-9, 1.0)}, [0, 1]),
    "huge": (DOMD, {"family": Gaussian(bound=1e6)}, {}, [-1e6, 0, 1e6]),
    "huge, auto": (AutoDOMD, {"family": Gaussian(bound=1e6)}, {}, [-1e6, 0, 1e6]),
    "counts": (DOMD, {"family": Poisson(10**6)}, {}, [0, 10**6]),
    "counts, auto": (AutoDOMD, {"family": Poisson(10**6)}, {}, [0, 10**6]),
    "counts, faint": (DOMD, {"family": Poisson(10**6)}, {"regularization": 1e-4}, [0, 10**6]),
    "tiny ball": (DOMD, {"radius": 1e-9}, {"regularization": 1e-9}, [0, 1]),
    "vast ball": (DOMD, {"radius": 1e9}, {"regularization": 1e-9}, [0, 1]),
}


@pytest.mark.parametrize("case", FAINT)
def test_lambdas_that_would_drown_are_refused_by_name_or_harmless(case, tmp_path):
    kind, world, options, rewards = FAINT[case]
    try:
        policy = kind(problem=Problem(**({"dim": 3} | world)), **options)
    except ValueError as error:
        assert "regularization" in str(error)  # noqa: PT017
        assert case in ("precise", "faintest", "auto, faintest")
        return
    rounds = 150 if case == "auto, large" else 1000
    bandit = Bandit(policy)
    comes_back(bandit, finite_for(bandit, rewards, rounds), tmp_path / "bandit.npz")


@pytest.mark.parametrize("kind", [DOMD, GLBOMD, AutoDOMD])
@pytest.mark.parametrize("steps", [1e9, 0.0, 1e100, 1e-300])
def test_no_time_and_endless_time_between_updates_leave_everything_finite(kind, steps, tmp_path):
    bandit = Bandit(kind(problem=Problem(dim=3)))
    for age in (steps, 1.0):
        X = finite_for(bandit, [0, 1], 200, steps=age)
        comes_back(bandit, X, tmp_path / "bandit.npz")
    for age in (1e12, 0.0, 1e100, 1e-300):
        bandit.forget(age)
        comes_back(bandit, X, tmp_path / "bandit.npz")
    finite_for(bandit, [0, 1], 50)
    if kind is AutoDOMD:
        assert np.isfinite(bandit.explain()[:2]).all()


@pytest.mark.parametrize("one_arm", [True, False], ids=["one arm", "some arms"])
@pytest.mark.parametrize(
    ("family", "rewards"),
    [
        (Bernoulli(), (0, 1)),
        (Gaussian(0.01, 2.0), (-2, 2)),
        (Poisson(1000), (0, 1000, 0, 1)),
        (Poisson(10**6), (0, 10**6, 0, 1)),
    ],
    ids=repr,
)
def test_what_an_autodomd_saves_can_always_be_loaded(family, rewards, one_arm, tmp_path):
    """Also after jumps, when learners go on from the leader's state, and after lucky extremes."""
    policy = AutoDOMD(problem=Problem(dim=2, family=family))
    bandit, rng = Bandit(policy), np.random.default_rng(17)
    for t in range(600):
        lucky = rng.random() < 0.95
        r = rng.choice(rewards) if len(rewards) > 2 else rewards[lucky == (t // 100 % 2)]
        bandit.update([1.0, 0.0] if one_arm else unit(rng, 2), r)
        assert policy.sane(bandit.memory), t
    bandit.save(tmp_path / "bandit.npz")
    assert Bandit.load(tmp_path / "bandit.npz").rounds == 600


# Aliasing.

LINEAR = Problem(dim=3, family=Gaussian(), radius=1.0, horizon=100, path_length=2.0)


@pytest.mark.parametrize("dim", [3, 40])
@pytest.mark.parametrize("kind", [DOMD, AutoDOMD])
def test_a_bandit_may_be_trained_with_a_view_of_its_own_memory(kind, dim):
    rng = np.random.default_rng(dim)
    mine, twin = (Bandit(kind(problem=Problem(dim=dim, radius=1.0))) for _ in range(2))
    for x in unit(rng, 20, dim):
        for bandit in (mine, twin):
            bandit.update(x, 1)
        mine.update(mine.theta, 0)
        twin.update(twin.theta.copy(), 0)
    assert known(mine) == known(twin)
    np.testing.assert_array_equal(mine.theta, twin.theta)


@pytest.mark.parametrize("policy", [POLICY, AutoDOMD(problem=KNOWN), LinUCB.from_theory(LINEAR)])
def test_a_fleet_may_be_trained_with_a_view_of_its_own_memory(policy):
    rng, mine, twin = np.random.default_rng(1), Fleet(policy), Fleet(policy)
    for x in unit(rng, 20, 3):
        for fleet in (mine, twin):
            fleet.update([1, "a"], [x, -x], [1, 0])
        mine["a"].update(mine["a"].theta, 1)
        twin["a"].update(twin["a"].theta.copy(), 1)
        mine.update([1, "a", 1], [mine["a"].theta, mine[1].theta, mine[1].theta], [1, 0, 0])
        twin.update([1, "a", 1], [twin[k].theta.copy() for k in ("a", 1, 1)], [1, 0, 0])
        mine.update([1], mine[1].theta[None], [1])
        twin.update([1], twin[1].theta[None].copy(), [1])
    assert remembered(mine) == remembered(twin)


# The policy protocol.


def test_the_memory_of_another_policy_is_refused_even_if_it_has_the_same_size():
    auto = AutoDOMD(problem=Problem(dim=2), discounts=[1], regularizations=[1], paces=[])
    other = DOMD(problem=Problem(dim=12))
    assert size(auto.fields) == size(other.fields)
    with pytest.raises(ValueError, match="memory"):
        other.choose(auto.init(1), np.zeros((1, 2, 14)))
    with pytest.raises(ValueError, match="memory"):
        other.update(auto.init(1), np.zeros((1, 14)), [1.0])
    with pytest.raises(ValueError, match="memory"):
        other.forget(auto.init(1), 2.0)


def wider(policy):
    return replace(policy, problem=replace(policy.problem, dim=4))


def changed(memory, **arrays):
    return memory._replace(**arrays)


ODD = {
    "of another dimension": lambda policy, memory: wider(policy).init(2),
    "nothing": lambda policy, memory: None,
    "a tuple": lambda policy, memory: tuple(memory),
    "of Uniform": lambda policy, memory: Uniform(problem=KNOWN).init(2),
    "a row of theta missing": lambda policy, memory: changed(memory, theta=memory.theta[:1]),
    "a row of t missing": lambda policy, memory: changed(memory, t=memory.t[:1]),
    "theta flat": lambda policy, memory: changed(memory, theta=memory.theta.ravel()),
    "H of NaN shape": lambda policy, memory: changed(memory, H=np.full((2, 3, 0), np.nan)),
    "a number for H": lambda policy, memory: changed(memory, H=np.nan),
    "no theta": lambda policy, memory: changed(memory, theta=None),
    "text": lambda policy, memory: changed(memory, H=np.full((2, 3, 3), "x")),
}


@pytest.mark.parametrize("policy", [POLICY, AutoDOMD(problem=KNOWN), LinUCB.from_theory(LINEAR)])
@pytest.mark.parametrize("odd", ODD)
def test_a_memory_that_is_none_of_the_policy_is_refused(policy, odd):
    arms, x, r = np.full((2, 4, 3), 0.1), np.full((2, 3), 0.1), np.ones(2)
    memory = ODD[odd](policy, policy.init(2))
    with pytest.raises(ValueError):
        policy.choose(memory, arms)
    with pytest.raises(ValueError):
        policy.update(memory, x, r)


@pytest.mark.parametrize("policy", [POLICY, AutoDOMD(problem=KNOWN)])
def test_memories_that_are_right_but_dressed_otherwise_give_the_same(policy):
    rng = np.random.default_rng(4)
    arms, x, r = unit(rng, 2, 4, 3), unit(rng, 2, 3), np.ones(2)
    memory = policy.init(2)
    for _ in range(5):
        memory = policy.update(memory, x[::-1], r)

    def frozen(memory):
        for array in memory:
            array.flags.writeable = False
        return memory

    def frozen_rows(memory):
        memory.rows.flags.writeable = False
        return memory

    def kind(memory):
        return type(memory)(*(a.copy() for a in memory))

    dressed = {
        "itself": policy.from_rows(policy.rows(memory)),
        "put together": kind(memory),
        "pickled": pickle.loads(pickle.dumps(memory)),
        "deep copy": copy.deepcopy(memory),
        "read-only": frozen(policy.from_rows(policy.rows(memory))),
        "read-only, put together": frozen(kind(memory)),
        "read-only rows": frozen_rows(policy.from_rows(policy.rows(memory))),
        "Fortran": type(memory)(*map(np.asfortranarray, memory)),
        "other byte order": type(memory)(*(a.astype(">f8") for a in memory)),
        "lists": type(memory)(*(a.tolist() for a in memory)),
    }
    choice = policy.choose(memory, arms)
    after = [a.tobytes() for a in policy.update(kind(memory), x, r)]
    for name, one in dressed.items():
        assert policy.choose(one, arms).tolist() == choice.tolist(), name
        try:
            found = policy.update(one, x, r)
        except ValueError as error:
            assert "read-only" in str(error)  # noqa: PT017
        else:
            assert [a.tobytes() for a in found] == after, name


def test_batches_and_noise_in_odd_dress_are_taken_or_refused():
    memory, rng = THOMPSON.init(2), np.random.default_rng(5)
    arms, noise = unit(rng, 2, 6, 3), rng.integers(-2, 3, size=(2, 3)).astype(float)
    expected = THOMPSON.choose(memory, arms, noise)
    frozen = noise.copy()
    frozen.flags.writeable = False
    odd = np.float32(noise), noise.astype(int), noise.tolist(), frozen, np.asfortranarray(noise)
    for one in (*odd, noise.astype(">f8"), np.repeat(noise, 2, axis=1)[:, ::2]):
        assert THOMPSON.choose(memory, arms, one).tolist() == expected.tolist()
    frozen_arms = arms.copy()
    frozen_arms.flags.writeable = False
    for same in (arms.tolist(), frozen_arms, np.asfortranarray(arms), arms.astype(">f8")):
        assert THOMPSON.choose(memory, same, noise).tolist() == expected.tolist()
    for bad in (None, noise[:1], noise[:, :2], noise.ravel(), "x", np.full((2, 3), "x"), 0.0):
        with pytest.raises(ValueError):
            THOMPSON.choose(memory, arms, bad)
    for few in (0, 7, -1, 2.5):
        with pytest.raises(ValueError):
            THOMPSON.best(memory, arms, few, noise)


@pytest.mark.parametrize("policy", [POLICY, AutoDOMD(problem=KNOWN)])
def test_a_protocol_update_that_cannot_be_learnt_is_no_silent_nothing(policy):
    good = np.full((2, 3), 0.1)
    for x, r in (
        (good * [[1], [99]], [1, 1]),
        (good * [[1], [np.nan]], [1, 1]),
        (good, [1, 0.5]),
        (good, [1, np.nan]),
    ):
        memory = policy.init(2)
        before = [a.tobytes() for a in memory]
        with pytest.raises(ValueError, match=r"context 1|reward"):
            policy.update(memory, x, r)
        assert [a.tobytes() for a in memory] == before


@pytest.mark.parametrize("steps", [np.ones(1), np.array(1.0), np.ones(2), "1", None, [1.0], 1j])
@pytest.mark.parametrize("policy", [POLICY, Uniform(problem=KNOWN)])
def test_a_time_that_is_no_number_is_refused_by_name_or_counts_as_one(policy, steps):
    bandit = Bandit(policy)
    try:
        bandit.update([0.1, 0.1, 0.1], 1, steps=steps)
    except ValueError as error:
        assert "steps" in str(error)  # noqa: PT017
        assert bandit.rounds == 0
    else:
        assert np.asarray(steps).size == 1
        assert bandit.rounds == 1


# Predictions stay inside the family.


@pytest.mark.parametrize("kind", [AutoDOMD, DOMD, GLBOMD])
@pytest.mark.parametrize(
    ("family", "reward", "low", "high"),
    [(Poisson(50), 30, 0, 50), (Bernoulli(), 1, 0, 1), (Gaussian(1.0, 2.0), 2, -2, 2)],
)
def test_predictions_stay_inside_the_family(kind, family, reward, low, high):
    bandit, arms = Bandit(kind(problem=Problem(dim=3, family=family))), np.eye(3)
    arms = np.vstack([arms, -arms, np.zeros(3)])
    for _ in range(4):
        for level in (None, 0.5, 0.95, 1.0 - 1e-12):
            mean, lower, upper = bandit.predict(arms, level=level)
            assert (low <= lower).all()
            assert (lower <= mean).all()
            assert (mean <= upper).all()
            assert (upper <= high).all()
        bandit.update(arms[0], reward)


# A bandit that refuses has changed nothing.

BAD_CALLS = [
    lambda b: b.choose([[9.0, 9.0, 9.0]]),
    lambda b: b.choose([[np.nan, 0.0, 0.0]]),
    lambda b: b.choose([[0.1, 0.1]]),
    lambda b: b.choose(np.zeros((0, 3))),
    lambda b: b.choose("x"),
    lambda b: b.choose(np.full((2, 3), 0.1), k=3),
    lambda b: b.choose(np.full((2, 3), 0.1), k=0),
    lambda b: b.choose(np.array([[0.1, 0.1, 0.1], [0.1, 0.1, np.inf]]), k=2),
    lambda b: b.update([9.0, 9.0, 9.0], 1),
    lambda b: b.update([0.1, 0.1, 0.1], 0.5),
    lambda b: b.update([0.1, 0.1, 0.1], "1"),
    lambda b: b.update([0.1, 0.1, 0.1], 10**400),
    lambda b: b.update([0.1, 0.1, 0.1], 1, steps=-1.0),
    lambda b: b.update([0.1, 0.1, 0.1], np.nan, steps=3.0),
    lambda b: b.forget(-1.0),
    lambda b: b.predict([[9.0, 9.0, 9.0]]),
    lambda b: b.scores([[9.0, 9.0, 9.0]]),
]


@pytest.mark.parametrize(
    "policy",
    [THOMPSON, AutoDOMD(problem=KNOWN, exploration="thompson"), Uniform(problem=KNOWN)],
    ids=lambda policy: policy.name,
)
@pytest.mark.parametrize("of_fleet", [False, True], ids=["alone", "in a fleet"])
def test_a_bandit_that_refuses_has_changed_nothing_not_even_its_luck(policy, of_fleet):
    def fresh():
        if not of_fleet:
            return Bandit(policy, seed=3)
        fleet = Fleet(policy, seed=3)
        fleet.update(["a"], np.zeros((1, 3)), [1])
        return fleet["a"]

    mine, twin, arms = fresh(), fresh(), unit(np.random.default_rng(6), 8, 3)
    for t in range(300):  # more than one block of random numbers
        with pytest.raises(ValueError):
            BAD_CALLS[t % len(BAD_CALLS)](mine)
        k = 1 + t % 3
        chosen = [b.choose(arms, k=k).tolist() for b in (mine, twin)]
        assert chosen[0] == chosen[1], t
        for bandit in (mine, twin):
            bandit.update(arms[chosen[0][0]], t % 2)
    assert pickle.dumps(mine) == pickle.dumps(twin)


@pytest.mark.parametrize("policy", [THOMPSON, Uniform(problem=KNOWN)], ids=["thompson", "plain"])
def test_a_fleet_that_refuses_has_changed_nothing_not_even_its_luck(policy, tmp_path):
    mine, twin = Fleet(policy, seed=3), Fleet(policy, seed=3)
    rng, keys = np.random.default_rng(7), ["a", 1, "b"]
    for t in range(20):
        arms, x = unit(rng, 3, 6, 3), unit(rng, 3, 3)
        bad = arms.copy()
        bad[2, 5] *= 9.0
        with pytest.raises(ValueError, match="norm"):
            mine.choose(keys, bad)
        with pytest.raises(ValueError, match="norm"):
            mine.update(keys, 9 * x, [1, 1, 1])
        with pytest.raises(ValueError, match="reward"):
            mine.update(keys, x, [1, 1, 0.5])
        chosen = [fleet.choose(keys, arms).tolist() for fleet in (mine, twin)]
        assert chosen[0] == chosen[1], t
        for fleet in (mine, twin):
            fleet.update(keys, x, [1, 0, 1])
        one = [fleet["a"].choose(arms[0]) for fleet in (mine, twin)]
        assert one[0] == one[1], t
    assert remembered(mine) == remembered(twin)


def test_a_fleet_that_has_drawn_for_one_and_for_many_goes_on_with_its_luck(tmp_path):
    fleet, arms = Fleet(THOMPSON, seed=3), unit(np.random.default_rng(8), 30, 3)
    fleet.update(["a"], np.zeros((1, 3)), [1])
    for order in ("one", "many", "one", "many"):
        if order == "one":
            fleet["a"].choose(arms)
        else:
            fleet.choose(["a", "b"], arms)
        fleet.save(tmp_path / "fleet.npz")
        twin, lone = Fleet.load(tmp_path / "fleet.npz"), copy.deepcopy(fleet["a"])
        ahead = [twin["a"].choose(arms) for _ in range(20)]
        assert ahead == [lone.choose(arms) for _ in range(20)], order
        twin, before = Fleet.load(tmp_path / "fleet.npz"), pickle.dumps(fleet["a"])
        both = [f.choose(["a"] * 20, arms).tolist() for f in (twin, copy_of(fleet, tmp_path))]
        assert both[0] == both[1]
        assert pickle.dumps(fleet["a"]) == before
    then = fleet.choose(["a"] * 20, arms).tolist()
    assert then == Fleet.load(tmp_path / "fleet.npz").choose(["a"] * 20, arms).tolist()


def copy_of(fleet, folder):
    fleet.save(folder / "copy.npz")
    return Fleet.load(folder / "copy.npz")


# Files.


def parts(path):
    with np.load(path) as archive:
        columns = dict(archive)
    return json.loads(str(columns.pop("header"))), columns


def npz(header, columns, save=np.savez):
    file = io.BytesIO()
    text = header if isinstance(header, str) else json.dumps(header)
    save(file, **({"header": np.array(text)} | columns))
    return file.getvalue()


SAVED = {
    "DOMD": DOMD(problem=KNOWN),
    "AutoDOMD": AutoDOMD(problem=KNOWN),
    "Thompson": THOMPSON,
    "LinUCB": LinUCB.from_theory(KNOWN),
    "GLMUCB": GLMUCB.from_theory(KNOWN),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A whole file of a bandit of each kind."""
    folder = tmp_path_factory.mktemp("files")
    for name, policy in SAVED.items():
        bandit = Bandit(policy)
        for x in unit(np.random.default_rng(9), 5, 3):
            bandit.choose([x])
            bandit.update(x, 1)
        bandit.save(folder / name)
    return folder


def refused_or_sound(path, content):
    """A file is refused with a plain ValueError, or holds a bandit that works."""
    path.write_bytes(content)
    try:
        bandit = Bandit.load(path)
    except ValueError as error:
        assert type(error) is ValueError  # noqa: PT017
        return False
    arms = np.eye(3)
    assert bandit.choose(arms) in range(3)
    for _ in range(40):
        bandit.update(arms[0], 1)
    assert all(np.isfinite(a).all() for a in bandit.memory)
    if isinstance(bandit.policy, AutoDOMD):
        bandit.explain()
    return True


@pytest.mark.parametrize("name", SAVED)
@pytest.mark.parametrize("t", [1e300, np.inf, -np.inf, -5, 0.5, np.nan, 2.0**53 + 2])
def test_a_file_with_an_absurd_number_of_rounds_is_refused(folder, name, t):
    header, columns = parts(folder / name)
    if "row" in columns:
        columns["row"][0] = t
    elif t != -5:
        columns["t"] = np.array([t])
    else:
        columns["t"] = np.array([-5])
    assert not refused_or_sound(folder / "bad", npz(header, columns))


ABSURD = [0.0, -1.0, 1e300, -1e300, 5e-324, np.nan, np.inf]


@pytest.mark.parametrize("field", list(AutoDOMD(problem=KNOWN).fields))
def test_a_file_of_autodomd_with_one_absurd_field_is_refused_or_sound(folder, field):
    header, columns = parts(folder / "AutoDOMD")
    for value in ABSURD:
        row = columns["row"].copy()
        views(row[None], SAVED["AutoDOMD"].fields)[field][:] = value
        refused_or_sound(folder / "bad", npz(header, {"row": row}))


def leaves(tree, path=()):
    """Paths to everything in a header."""
    if path:
        yield path
    for key in tree if isinstance(tree, dict) else range(len(tree)) if type(tree) is list else ():
        yield from leaves(tree[key], (*path, key))


def put(tree, path, value):
    tree = copy.deepcopy(tree)
    at = tree
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return tree


@pytest.mark.parametrize("name", ["Thompson", "AutoDOMD", "LinUCB"])
def test_headers_with_absurd_entries_are_refused_or_harmless(folder, name):
    header, columns = parts(folder / name)
    values = [10**400, -(10**400), 2**53, -1, 1e308, np.nan, np.inf, None, "x", [], {}, [[]], True]
    for path, value in product(list(leaves(header)), values):
        refused_or_sound(folder / "bad", npz(put(header, path, value), columns))
    digits = json.dumps(header).replace(f'"version": {files.VERSION}', '"version": ' + "2" * 5000)
    assert not refused_or_sound(folder / "bad", npz(digits, columns))


@pytest.mark.parametrize("name", SAVED)
def test_compressed_truncated_and_overpromising_files_are_refused(folder, name):
    header, columns = parts(folder / name)
    whole = npz(header, columns)
    assert refused_or_sound(folder / "bad", whole)
    assert not refused_or_sound(folder / "bad", npz(header, columns, np.savez_compressed))
    for cut in np.linspace(0, len(whole) - 1, 25).astype(int):
        assert not refused_or_sound(folder / "bad", whole[:cut])
    for member in ("header", *columns):
        assert not refused_or_sound(folder / "bad", overpromising(header, columns, member))
    assert refused_or_sound(folder / "bad", overpromising(header, columns, "extra"))


def overpromising(header, columns, member):
    """A file one member of which claims to have 1.5 GB, in the archive and in itself."""
    file, text = io.BytesIO(), np.array(json.dumps(header))
    with zipfile.ZipFile(file, "w") as archive:
        for name, array in {"header": text, "extra": np.zeros(3), **columns}.items():
            inner = io.BytesIO()
            np.save(inner, array)
            content = inner.getvalue()
            if name == member:
                inner, claim = io.BytesIO(), {"descr": "<f8", "fortran_order": False}
                np.lib.format.write_array_header_1_0(inner, claim | {"shape": (187_500_000,)})
                content = inner.getvalue() + content[-24:]
            archive.writestr(f"{name}.npy", content)
            if name == member:
                archive.filelist[-1].file_size = archive.filelist[-1].compress_size = 1_500_000_000
    return file.getvalue()


LOADS = """
import resource, sys
from driftbandit import Bandit, Fleet
for path in sys.argv[1:]:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        (Fleet if "fleet" in path else Bandit).load(path)
    except ValueError as error:
        assert type(error) is ValueError
    else:
        print(path, "was loaded")
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if most > 300 * 1024 and before <= 300 * 1024:
        print(path, "took", most // 1024, "MB")
"""


def test_small_files_that_promise_large_bandits_take_no_memory(folder):
    """dim = 6000 where three fit, a grid of 25 million learners, an array of 1.5 GB."""
    fleet = Fleet(POLICY)
    fleet.update([1, 2], np.full((2, 3), 0.1), [1, 1])
    fleet.save(folder / "fleet")
    for name in (*SAVED, "fleet"):
        header, columns = parts(folder / name)
        header["policy"]["problem"]["dim"] = 6000
        (folder / f"{name}.6000").write_bytes(npz(header, columns))
        padded = columns | {"padding": np.zeros(100_000)}
        (folder / f"{name}.padded").write_bytes(npz(header, padded))
    header, columns = parts(folder / "AutoDOMD")
    grid = np.linspace(0.5, 1.0, 5000).tolist()
    header["policy"] |= {"discounts": grid, "regularizations": grid}
    (folder / "grid").write_bytes(npz(header, columns))
    header, columns = parts(folder / "DOMD")
    (folder / "row").write_bytes(overpromising(header, columns, "row"))
    names = [f"{name}.{kind}" for name in (*SAVED, "fleet") for kind in ("6000", "padded")]
    done = python(LOADS, *(folder / name for name in (*names, "grid", "row")))
    assert done.stdout == ""


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_learner_of_any_fleet_saves_a_file_that_loads(dtype, tmp_path):
    fleet = Fleet(POLICY, dtype=dtype)
    for x in unit(np.random.default_rng(10), 50, 3):
        fleet.update(["a"], [x], [1])
    fleet["a"].save(tmp_path / "a.npz")
    twin = Bandit.load(tmp_path / "a.npz")
    assert twin.rounds == 50
    np.testing.assert_array_equal(twin.curvature, fleet["a"].curvature)
    pickle.loads(pickle.dumps(fleet["a"])).update([0.1, 0.1, 0.1], 1)


# The store.


def small(folder, learners=4, policy=POLICY):
    """Options of a fleet that holds so many learners in memory."""
    one = Fleet(policy).bytes_per_learner + 17 + 64
    return {"memory_budget": 2048 + (learners + 1) * one, "store": folder / "fleet.db"}


def batches(count=10, rows=40, keys=12, seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        yield rng.integers(keys, size=rows), unit(rng, rows, 3), rng.integers(2, size=rows)


def edit(path, statement, *values):
    with sqlite3.connect(path) as base:
        base.execute(statement, values)
    base.close()


def every_call(fleet, keys):
    """Everything that a fleet can be asked, which has to bring learners back."""
    x = np.full((len(keys), 3), 0.1)
    yield lambda: fleet.choose(keys, np.eye(3))
    yield lambda: fleet.update(keys, x, np.ones(len(keys)))
    yield lambda: list(fleet)
    yield lambda: [fleet[key].theta for key in keys]
    yield lambda: [fleet[key].update(x[0], 1) for key in keys]


DAMAGE = {
    "too short": ("row = ?", b"short"),
    "empty": ("row = ?", b""),
    "other numbers": ("row = ?", np.ones(15).tobytes()),
    "another checksum": ("checksum = ?", 7),
    "no checksum": ("checksum = ?", "seven"),
    "text": ("row = ?", "x" * 120),
    "a number": ("row = ?", 5),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_learner_that_was_edited_in_the_store_is_damaged_and_says_so(damage, tmp_path):
    fleet = Fleet(POLICY, **small(tmp_path))
    fleet.update(range(12), np.full((12, 3), 0.1), np.ones(12))
    fleet.close()
    what, value = DAMAGE[damage]
    edit(tmp_path / "fleet.db", f"UPDATE learners SET {what} WHERE key = 3", value)
    fleet = Fleet(POLICY, **small(tmp_path))
    for call in every_call(fleet, [3]):
        with pytest.raises(OSError, match=r"fleet\.db.*damaged"):
            call()
    with pytest.raises(OSError, match="damaged"):
        fleet.save(tmp_path / "fleet.npz")
    assert not (tmp_path / "fleet.npz").exists()
    fleet.update([4], [[0.1, 0.1, 0.1]], [1])
    assert fleet[4].rounds == 2
    del fleet[4]
    fleet.close()


FORGED = """
import sys
import numpy as np
from driftbandit import AutoDOMD, DOMD, Fleet, Problem
for kind, store in zip((DOMD, AutoDOMD), sys.argv[1:]):
    policy = kind(problem=Problem(dim=3, radius=1.0, horizon=100, path_length=2.0, change_points=2))
    fleet = Fleet(policy, memory_budget=10**6, store=store)
    for key in range(8):
        try:
            fleet.update([key] * 40, np.full((40, 3), 0.1), np.ones(40))
        except OSError as error:
            assert "damaged" in str(error)
        else:
            assert all(np.isfinite(a).all() for a in fleet[key].memory), (kind, key)
            print(kind.__name__, key, "was taken")
"""


def test_a_forged_learner_with_the_right_checksum_is_refused_and_never_a_signal(tmp_path):
    stores = []
    for kind in (DOMD, AutoDOMD):
        policy = kind(problem=KNOWN)
        stores.append(tmp_path / f"{kind.__name__}.db")
        fleet = Fleet(policy, memory_budget=10**6, store=stores[-1])
        fleet.update(range(8), np.full((8, 3), 0.1), np.ones(8))
        fleet.close()
        row = policy.rows(policy.init(1))[0]
        odd = [row.copy() for _ in range(8)]
        odd[0][:] = np.nan
        for one, t in zip(odd[1:], (-1e9, -5.0, 1e300, np.inf, 0.5, np.nan, -1e6)):
            one[0] = t
        for key, blob in enumerate(one.tobytes() for one in odd):
            what = "UPDATE learners SET row = ?, checksum = ? WHERE key = ?"
            edit(stores[-1], what, blob, zlib.crc32(blob), key)
    assert python(FORGED, *stores).stdout == ""


def test_keys_that_nobody_wrote_are_no_raw_error(tmp_path):
    fleet = Fleet(POLICY, **small(tmp_path))
    fleet.update(range(6), np.full((6, 3), 0.1), np.ones(6))
    fleet.close()
    row = POLICY.rows(POLICY.init(1))[0].tobytes()
    for key in (2.5, "x", b"\xff"):
        values = key, row, zlib.crc32(row)
        edit(tmp_path / "fleet.db", "INSERT INTO learners VALUES (?, ?, ?)", *values)
    edit(tmp_path / "fleet.db", "UPDATE learners SET key = CAST(x'ff61' AS TEXT) WHERE key = 'x'")
    fleet = Fleet(POLICY, **small(tmp_path))
    for call in (lambda: list(fleet), lambda: fleet.save(tmp_path / "fleet.npz")):
        with pytest.raises((OSError, ValueError)):
            call()
    fleet.update([0], [[0.1, 0.1, 0.1]], [1])
    assert fleet[0].rounds == 2
    fleet.close()


@pytest.fixture
def bases(monkeypatch):
    """The connections to databases that are opened in a test: a fleet locks its file for others."""
    opened, connect = [], sqlite3.connect

    def watched(*args, **options):
        opened.append(connect(*args, **options))
        return opened[-1]

    monkeypatch.setattr(sqlite3, "connect", watched)
    return opened


BROKEN = {
    "read-only": lambda base, path: base.execute("PRAGMA query_only = 1"),
    "deleted": lambda base, path: path.unlink(),
    "empty": lambda base, path: os.truncate(path, 0),
    "half": lambda base, path: os.truncate(path, path.stat().st_size // 2),
    "overwritten": lambda base, path: path.write_bytes(b"x" * path.stat().st_size),
    "another file": lambda base, path: (path.unlink(), path.write_text("x")),
    "no tables": lambda base, path: base.execute("DROP TABLE learners"),
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_store_that_breaks_under_a_fleet_is_no_raw_error(how, tmp_path, bases):
    fleet = Fleet(POLICY, **small(tmp_path))
    for batch in batches(3):
        fleet.update(*batch)
    bases[-1].execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    bases[-1].execute("PRAGMA cache_size = 0")
    BROKEN[how](bases[-1], tmp_path / "fleet.db")
    calls = [*every_call(fleet, range(12)), lambda: fleet.save(tmp_path / "x.npz")]
    calls += [lambda: fleet.__delitem__(3), lambda: len(fleet), lambda: 3 in fleet, fleet.close]
    for call in calls:
        try:
            call()
        except (OSError, ValueError, KeyError) as error:
            assert not isinstance(error, sqlite3.Error)  # noqa: PT017


@pytest.mark.parametrize("policy", [POLICY, THOMPSON, AutoDOMD(problem=KNOWN)])
def test_an_update_that_a_full_disk_stops_says_where_to_go_on(policy, tmp_path, bases):
    fleet, free = Fleet(policy, **small(tmp_path, policy=policy)), Fleet(policy)
    base, failures, partly = bases[-1], 0, 0
    for keys, x, r in batches(12, keys=200):
        pages = base.execute("PRAGMA page_count").fetchone()[0]
        base.execute(f"PRAGMA max_page_count = {pages}").fetchall()
        left, before = slice(0, None), remembered(fleet)
        while True:
            try:
                fleet.update(keys[left], x[left], r[left])
                break
            except OSError as error:
                failures += 1
                found = re.search(r"first (\d+) rows of the batch are learnt", str(error))
                assert "full" in str(error)  # noqa: PT017
                assert found or remembered(fleet) == before
                partly += bool(found)
                left = slice(left.start + int(found[1]) if found else left.start, None)
                pages += 1
                base.execute(f"PRAGMA max_page_count = {pages}").fetchall()
                before = remembered(fleet)
        free.update(keys, x, r)
        assert remembered(fleet) == remembered(free)
    assert failures > 3
    assert partly
    arms = unit(np.random.default_rng(11), 9, 3)
    found = [f.choose(np.arange(30), arms).tolist() for f in (fleet, free)]
    assert found[0] == found[1]
    fleet.close()


def test_a_fleet_that_cannot_be_closed_for_want_of_disk_can_be_closed_later(tmp_path, bases):
    limits = small(tmp_path, learners=300)
    fleet, free = Fleet(POLICY, **limits), Fleet(POLICY)
    for f in (fleet, free):
        f.update(range(300), np.full((300, 3), 0.1), np.ones(300))
    base = bases[-1]
    pages = base.execute("PRAGMA page_count").fetchone()[0]
    base.execute(f"PRAGMA max_page_count = {pages}").fetchall()
    with pytest.raises(OSError, match="full"):
        fleet.close()
    assert remembered(fleet) == remembered(free)
    base.execute("PRAGMA max_page_count = 100000").fetchall()
    fleet.close()
    fleet = Fleet(POLICY, **limits)
    assert remembered(fleet) == remembered(free)
    fleet.close()


def test_a_choice_that_the_store_stops_draws_no_luck(tmp_path, bases):
    fleet, free = Fleet(THOMPSON, seed=3, **small(tmp_path)), Fleet(THOMPSON, seed=3)
    arms, keys = unit(np.random.default_rng(12), 9, 3), np.arange(12)
    for f in (fleet, free):
        f.update(keys, np.full((12, 3), 0.1), np.ones(12))
    base = bases[-1]
    base.execute("UPDATE learners SET checksum = checksum + 1 WHERE key = 7")
    base.commit()
    with pytest.raises(OSError, match="damaged"):
        fleet.choose(keys, arms)
    base.execute("UPDATE learners SET checksum = checksum - 1 WHERE key = 7")
    base.commit()
    found = [f.choose(keys, arms).tolist() for f in (fleet, free)]
    assert found[0] == found[1]
    fleet.close()


@pytest.mark.parametrize("learners", [0, 12])
def test_a_closed_fleet_says_that_it_is_closed(learners, tmp_path):
    fleet = Fleet(POLICY, **small(tmp_path))
    fleet.update(range(learners), np.full((learners, 3), 0.1), np.ones(learners))
    fleet.close()
    calls = [lambda: fleet.update([3], [[0.1, 0.1, 0.1]], [1]), lambda: fleet[3].rounds]
    calls += [lambda: fleet.save(tmp_path / "x.npz"), lambda: list(fleet), lambda: 3 in fleet]
    calls += [lambda: fleet.__delitem__(3), lambda: fleet.choose([3], np.eye(3))]
    for call in calls:
        with pytest.raises(ValueError, match="closed"):
            call()
    try:
        fleet.close()
    except ValueError as error:
        assert "closed" in str(error)  # noqa: PT017


def test_a_fleet_that_fails_to_load_leaves_no_learners_in_the_store(tmp_path, monkeypatch):
    monkeypatch.setattr("driftbandit.fleet.residency.PAGE", 5)
    fleet = Fleet(POLICY)
    fleet.update(range(23), np.full((23, 3), 0.1), np.ones(23))
    fleet.save(tmp_path / "good.npz")
    header, columns = parts(tmp_path / "good.npz")
    bad = {"keys.4": columns["keys.1"]}, {"rows.4": columns["rows.4"] * np.nan}, {"pages": 9}
    bad += {"kinds.4": columns["kinds.4"] + 7}, {"ends.4": columns["ends.4"] * 2}
    for change in bad:
        made = {name: np.array(value) for name, value in (columns | change).items()}
        (tmp_path / "bad.npz").write_bytes(npz(header, made))
        with pytest.raises(ValueError):
            Fleet.load(tmp_path / "bad.npz", **small(tmp_path))
        if (tmp_path / "fleet.db").exists():
            with sqlite3.connect(tmp_path / "fleet.db") as base:
                assert base.execute("SELECT COUNT(*) FROM learners").fetchone() == (0,)
            base.close()
    twin = Fleet.load(tmp_path / "good.npz", **small(tmp_path))
    assert remembered(twin) == remembered(fleet)
    twin.close()


# Forks.


def forked(work):
    """Run `work` in a forked child; what it returns, through a pipe. Fails after 20 seconds."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if not child:
        try:
            os.write(writer, json.dumps(work()).encode())
        finally:
            os._exit(0)
    os.close(writer)
    limit, done = time.monotonic() + 20.0, 0
    while not done and time.monotonic() < limit:
        done, status = os.waitpid(child, os.WNOHANG)
        time.sleep(0.002)
    if not done:
        os.kill(child, 9)
        os.waitpid(child, 0)
    with os.fdopen(reader, "rb") as pipe:
        answer = pipe.read()
    assert done, "the child hangs"
    assert status == 0
    return json.loads(answer)


@can_fork
@pytest.mark.parametrize("stored", [False, True], ids=["in memory", "with a store"])
def test_a_child_forked_in_the_middle_of_an_update_works(stored, tmp_path, monkeypatch):
    monkeypatch.setattr("driftbandit.core.threads.CORES", 2)
    monkeypatch.setattr("driftbandit.core.threads.LEAST", 16)
    fleet, lone = Fleet(POLICY, **(small(tmp_path, 50) if stored else {})), Bandit(THOMPSON)
    other, stop = Fleet(AutoDOMD(problem=KNOWN)), threading.Event()
    batch, arms = next(batches(1, rows=200, keys=100)), np.eye(3)
    fleet.update(*batch)
    other.update(*batch)

    def train():
        while not stop.is_set():
            for busy in (fleet, other):
                busy.update(*batch)
            lone.update(batch[1][0], 1)

    def work():
        if stored:
            with pytest.raises(OSError, match="fork"):
                fleet.update(np.arange(1000, 1200), np.zeros((200, 3)), np.ones(200))
        for mine in [other] if stored else [fleet, other]:
            before = sum(mine[key].rounds for key in mine)
            mine.update(*batch)
            assert sum(mine[key].rounds for key in mine) == before + 200
            mine.choose(batch[0], arms)
        lone.update(arms[0], 1)
        return lone.choose(arms)

    thread = threading.Thread(target=train)
    thread.start()
    try:
        for _ in range(20):
            assert forked(work) in range(3)
    finally:
        stop.set()
        thread.join()
    if stored:
        fleet.close()


@can_fork
@pytest.mark.parametrize("policy", [THOMPSON, Uniform(problem=KNOWN)], ids=["thompson", "plain"])
def test_forked_children_draw_otherwise_than_each_other_and_their_parent(policy):
    bandit, fleet = Bandit(policy, seed=1), Fleet(policy, seed=1)
    arms = unit(np.random.default_rng(13), 20, 3)
    bandit.choose(arms)  # some of a block is drawn already

    def one():
        return [bandit.choose(arms) for _ in range(40)]

    def many():
        return fleet.choose([1] * 40, arms).tolist()

    for draw in (one, many):
        found = [forked(draw), forked(draw), forked(lambda draw=draw: forked(draw)), draw()]
        assert len(set(map(tuple, found))) == 4
    twin = Bandit(policy, seed=1)
    twin.choose(arms)
    assert [twin.choose(arms) for _ in range(40)] == found_again(policy, arms)


def found_again(policy, arms):
    """What a bandit of seed 1 draws after its first decision, forks or not."""
    bandit = Bandit(policy, seed=1)
    bandit.choose(arms)
    assert forked(lambda: bandit.choose(arms)) in range(20)
    return [bandit.choose(arms) for _ in range(40)]


def test_a_seed_given_to_load_changes_what_is_drawn_and_nothing_else(tmp_path):
    bandit, arms = Bandit(THOMPSON, seed=5), unit(np.random.default_rng(14), 20, 3)
    for used in (0, 1, 255, 256, 257):
        for _ in range(used):
            bandit.update(arms[bandit.choose(arms)], 1)
        bandit.save(tmp_path / "bandit.npz")
        seeds = [{}, {}, {"seed": 1}, {"seed": 2}, {"seed": 1}]
        loaded = [Bandit.load(tmp_path / "bandit.npz", **seed) for seed in seeds]
        drawn = [[b.choose(arms) for _ in range(40)] for b in (copy.deepcopy(bandit), *loaded)]
        assert drawn[0] == drawn[1] == drawn[2]
        assert drawn[3] == drawn[5]
        assert len(set(map(tuple, drawn))) == 3
        for one in loaded:
            assert known(one) == known(bandit)
    for bad in (-1, 1.5, "1", True):
        with pytest.raises(ValueError, match="seed"):
            Bandit.load(tmp_path / "bandit.npz", seed=bad)


FORKERS = """
import os, sys, threading, time, warnings
import numpy as np
from driftbandit import DOMD, Bandit, Fleet, Problem
warnings.simplefilter("ignore")
policy, stop, free = DOMD(problem=Problem(dim=3)), threading.Event(), threading.Event()
fleet, x = Fleet(policy), np.full((300, 3), 0.1)
fleet.update(range(300), x, np.ones(300))

def train():
    while not stop.is_set():
        fleet.update(range(300), x, np.ones(300))

def make():
    while not stop.is_set():
        kept = [Bandit(policy) for _ in range(20)]

def fork():
    for _ in range(8):
        child = os.fork()
        if not child:
            fleet.choose([1], x)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0

threads = [threading.Thread(target=work, daemon=True) for work in (train, make, fork, fork, fork)]
for thread in threads:
    thread.start()
limit = time.monotonic() + 25.0
for thread in threads[2:]:
    thread.join(max(0.0, limit - time.monotonic()))
hang = any(thread.is_alive() for thread in threads[2:])
stop.set()
threading.Thread(target=lambda: (fleet.choose([1], x), free.set()), daemon=True).start()
print("hangs" if hang else "done", free.wait(5.0), flush=True)
os._exit(0)
"""


@can_fork
def test_threads_may_fork_at_the_same_time_while_others_train_and_make_bandits():
    done = python(FORKERS)
    assert done.stdout.split() == ["done", "True"], done.stdout + done.stderr
    assert done.stderr == ""


# Threads.


def at_once(*works):
    """Run these at the same time; raises what any of them raised."""
    errors = []

    def run(work):
        try:
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    if errors:
        raise errors[0]


@pytest.mark.parametrize(
    "policy",
    [AutoDOMD(problem=KNOWN), THOMPSON, DLinUCB.from_theory(KNOWN), Uniform(problem=KNOWN)],
    ids=lambda policy: policy.name,
)
@pytest.mark.parametrize("where", ["alone", "in a fleet", "with a store"])
def test_threads_share_a_bandit_while_another_saves_it(policy, where, tmp_path):
    if where == "alone":
        bandit, fleet = Bandit(policy), None
    else:
        options = small(tmp_path, 3, policy) if where == "with a store" else {}
        fleet = Fleet(policy, **options)
        fleet.update(["a"], np.zeros((1, 3)), [1])
        bandit = fleet["a"]
    first, X, saved = bandit.rounds, unit(np.random.default_rng(15), 100, 3), []
    done = []

    def train(name):
        for t, x in enumerate(X):
            bandit.update(x, t % 2)
            assert bandit.choose(X[:5]) in range(5)
            if fleet is not None and t % 5 == 0:  # rows move while others write to them
                fleet.update([f"{name}{t}"], x[None], [1])
        done.append(name)

    def save():
        while True:
            over = len(done) == 4
            path = tmp_path / f"{len(saved)}.npz"
            bandit.save(path)
            saved.append(path)
            assert np.isfinite(bandit.scores(X[:5])).all()
            if fleet is not None:
                fleet.save(tmp_path / "fleet.npz")
                assert len(Fleet.load(tmp_path / "fleet.npz")) <= 1 + 80
            if over:
                return

    at_once(*(lambda name=name: train(name) for name in "abcd"), save)
    assert bandit.rounds == first + 400
    rounds = [Bandit.load(path).rounds for path in saved]
    assert rounds == sorted(rounds)
    assert rounds[-1] == first + 400
    if fleet is not None:
        assert len(fleet) == 81
        fleet.close()


# Without compiled code, and without a place to keep it.

PLAYED = """
import json
import numpy as np
from driftbandit import DOMD, AutoDOMD, Bandit, Fleet, Problem

def played():
    rng, out = np.random.default_rng(16), []
    problem = Problem(dim=3, radius=1.0)
    arms = rng.standard_normal((60, 7, 3))
    arms /= np.linalg.norm(arms, axis=-1, keepdims=True)
    policies = [DOMD(problem=problem), AutoDOMD(problem=problem)]
    policies += [kind(problem=problem, exploration="thompson") for kind in (DOMD, AutoDOMD)]
    for policy in policies:
        bandit, fleet = Bandit(policy), Fleet(policy)
        for t, X in enumerate(arms):
            best = bandit.choose(X, k=3).tolist()
            out += [*best, bandit.choose(X.tolist())]
            bandit.update(X[best[0]], t % 2, steps=1.0 + t % 3)
            chosen = fleet.choose(["a", t % 4], X)
            fleet.update(["a", t % 4], X[chosen], [t % 2, 1])
            out += chosen.tolist()
        bandit.forget(5.0)
        out += [bandit.choose(X), bandit.rounds, fleet["a"].choose(X, k=3).tolist()]
        for bad in ([[9.0] * 3], [[[0.1] * 3]], [0.1] * 3, np.zeros((2, 4)), "x", [[np.nan] * 3]):
            try:
                out.append(str(bandit.choose(bad)))
            except ValueError as error:
                out.append("ValueError")
        before = [a.copy() for a in bandit.memory]
        for x, r in (([9.0] * 3, 1), ([[0.1] * 3], 1), (np.full((1, 3), 0.1), 1), ([0.1] * 3, "1"),
                     (np.full((3, 1), 0.1), 1), ([0.1] * 3, 0.5), ([0.1] * 3, np.ones(1)),
                     ([0.1] * 3, None), ([0.1] * 3, [1])):
            try:
                out.append(str(bandit.update(x, r)))
            except ValueError as error:
                out.append("ValueError")
        assert all(map(np.array_equal, before, bandit.memory)), "refused, and yet it has aged"
    return out
"""


def test_without_compiled_code_choices_and_refusals_are_the_same():
    names = {}
    exec(PLAYED, names)
    done = python(f"{PLAYED}\nprint(json.dumps(played()))", NUMBA_DISABLE_JIT="1")
    assert json.loads(done.stdout) == names["played"]()
    assert done.stderr == ""


WORKS = """
import json, warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    from driftbandit import DOMD, Bandit, Problem
    bandit = Bandit(DOMD(problem=Problem(dim=3)))
    bandit.update([0.1, 0.2, 0.3], 1)
    Bandit(DOMD(problem=Problem(dim=2))).choose([[0.1, 0.2]])
    assert bandit.choose([[0.1, 0.2, 0.3], [-0.1, 0.2, 0.3]]) in (0, 1)
print(json.dumps([[w.category.__name__, str(w.message)] for w in caught]))
"""


def test_where_no_cache_can_be_written_a_bandit_works_and_warns_once(tmp_path):
    """No folder for caches, none at home, and none beside the package."""
    package = tmp_path / "driftbandit"
    shutil.copytree(f"{LIBRARY}/driftbandit", package, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in (package, *(path for path in package.rglob("*") if path.is_dir())):
        (folder / "__pycache__").write_text("no folder")
    (tmp_path / "file").write_text("no folder")
    places = {"NUMBA_CACHE_DIR": f"{tmp_path}/file/x", "HOME": "/dev/null/x"}
    nowhere = {"PYTHONPATH": str(tmp_path), "XDG_CACHE_HOME": None, "LOCALAPPDATA": None}
    found = json.loads(python(WORKS, **places, **nowhere).stdout)
    assert [kind for kind, _ in found] == ["RuntimeWarning"], found
    assert "NUMBA_CACHE_DIR" in found[0][1]


RACE = """
import threading, warnings
warnings.simplefilter("error")
from driftbandit import DOMD, Bandit, Problem
policy, errors = DOMD(problem=Problem(dim=3)), []

def run():
    try:
        Bandit(policy).update([0.1, 0.2, 0.3], 1)
    except BaseException as error:
        errors.append(f"{type(error).__name__}: {error}")

threads = [threading.Thread(target=run) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(*errors, sep="\\n")
"""


def test_threads_that_compile_at_once_and_then_a_cache_full_of_garbage(tmp_path):
    cache = {"NUMBA_CACHE_DIR": str(tmp_path)}
    assert python(RACE, **cache).stdout.strip() == ""
    stored = sorted(path for path in tmp_path.rglob("*") if path.suffix in (".nbi", ".nbc"))
    assert stored
    for number, path in enumerate(stored):
        path.write_bytes([b"", b"garbage" * 20, path.read_bytes()[:100]][number % 3])
    found = json.loads(python(WORKS, **cache).stdout)
    assert len(found) <= 1, found
    for kind, text in found:
        assert kind == "RuntimeWarning"
        assert "NUMBA_CACHE_DIR" in text
