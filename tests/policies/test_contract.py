"""Every policy of the catalogue, optimistic and sampling, against every check."""

import dataclasses
import json
import pickle
from pathlib import Path

import numpy as np
import pytest

import driftbandit
from driftbandit import (
    DAL,
    MASTER,
    AutoDOMD,
    Bandit,
    LinUCB,
    Policy,
    Problem,
    Scores,
    simulate,
)
from driftbandit.checks import check_policy, policy_checks
from driftbandit.lab import read_study
from driftbandit.policies.catalogue import CATALOGUE

KNOWN = Problem(dim=3, radius=1.0, horizon=100, path_length=2.0, change_points=2)
SMALL = {"MASTER": {"first_order": 3}, "SWGLUCB": {"window": 6}, "RestartGLB": {"period": 7}}
SMALL["BOBDOMD"] = {"block": 6}
CASES = [e.policy.from_theory(KNOWN, **SMALL.get(e.policy.__name__, {})) for e in CATALOGUE]
SAMPLERS = [
    e.policy.from_theory(KNOWN, exploration="thompson")
    for e in CATALOGUE
    if "exploration" in e.policy.__dataclass_fields__
]


@pytest.mark.parametrize("check", policy_checks(), ids=lambda check: check.__name__)
@pytest.mark.parametrize("policy", CASES, ids=lambda policy: policy.name)
def test_contract(policy, check):
    check(policy)


@pytest.mark.parametrize("policy", SAMPLERS, ids=lambda policy: policy.name)
def test_contract_of_samplers(policy):
    check_policy(policy)


@pytest.mark.parametrize("dim", [1, 2])
@pytest.mark.parametrize("entry", CATALOGUE, ids=lambda entry: entry.policy.__name__)
def test_small_dimensions(entry, dim):
    known = {"horizon": 50, "path_length": 1.0, "change_points": 1, "context_norm": 2.0}
    problem = Problem(dim=dim, radius=1.0, **known)
    check_policy(entry.policy.from_theory(problem))


@pytest.mark.parametrize("policy", CASES, ids=lambda policy: policy.name)
def test_batches_of_the_wrong_shape_are_refused_and_change_nothing(policy):
    memory, noise = policy.init(4), np.zeros((4, policy.noise_size))
    before = [array.copy() for array in memory]
    good = np.zeros((4, 5, 3))
    if policy.name not in ("Uniform", "Oracle"):
        for arms in (good[:1], good[:, :, :2], good[0], good[:, :0]):
            with pytest.raises((ValueError, IndexError)):
                policy.choose(memory, arms, noise)
        for x, r in (
            (good[:, 0, :2], np.zeros(4)),
            (good[:, 0], np.zeros(3)),
            (good[:2, 0], np.zeros(2)),
        ):
            with pytest.raises((ValueError, IndexError)):
                policy.update(memory, x, r, noise)
    for array, old in zip(memory, before):
        np.testing.assert_array_equal(array, old)


ROWS = [CASES[0], AutoDOMD(problem=Problem(dim=3))]


@pytest.mark.parametrize("policy", ROWS, ids=lambda policy: policy.name)
def test_a_memory_put_together_by_hand_will_do(policy):
    """Strided, read-only or pickled: the same as the rows it came from, and never written to."""
    memory, arms = policy.init(4), np.random.default_rng(0).uniform(-0.5, 0.5, (4, 5, 3))
    for _ in range(3):
        memory = policy.update(memory, arms[:, 1], np.ones(4))
    strided = type(memory)(*(array[::2] for array in memory))
    frozen = pickle.loads(pickle.dumps(memory))
    for array in frozen:
        array.flags.writeable = False
    expected = policy.choose(memory, arms)
    np.testing.assert_array_equal(policy.choose(frozen, arms), expected)
    np.testing.assert_array_equal(policy.choose(strided, arms[::2]), expected[::2])
    before = [array.copy() for array in frozen]
    after = policy.update(frozen, arms[:, 2], np.zeros(4))
    for array, old in zip(frozen, before):
        np.testing.assert_array_equal(array, old)
    for one, other in zip(after, policy.update(memory, arms[:, 2], np.zeros(4))):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("policy", CASES, ids=lambda policy: policy.name)
def test_a_memory_of_another_size_is_refused(policy):
    """With rows missing, of another dimension or of another policy."""
    memory, arms = policy.init(3), np.zeros((3, 4, policy.problem.dim))
    x, noise = arms[:, 0], np.zeros((3, policy.noise_size))
    other = dataclasses.replace(policy.problem, dim=policy.problem.dim + 1)
    if isinstance(policy, (MASTER, DAL)):
        wrong = [type(policy).from_theory(other).init(3)]
    else:
        wrong = [dataclasses.replace(policy, problem=other).init(3)]
    if policy.name in ("Uniform", "Oracle"):
        return  # they look at nothing but the arms
    wrong += [memory._replace(**{memory._fields[-2]: getattr(memory, memory._fields[-2])[:2]})]
    for given in wrong:
        with pytest.raises(ValueError, match="memory"):
            policy.update(given, x, np.zeros(3), noise)


def test_the_catalogue_is_complete():
    public = {
        value
        for name in driftbandit.__all__
        if isinstance(value := getattr(driftbandit, name), type) and issubclass(value, Policy)
    }
    assert {entry.policy for entry in CATALOGUE} == public - {Policy}


@pytest.mark.parametrize("policy", CASES, ids=lambda policy: policy.name)
def test_constant_memory_is_where_the_catalogue_says_so(policy):
    """O(1) in the catalogue and a memory that does not grow are the same thing."""
    entry = next(e for e in CATALOGUE if e.policy is type(policy))
    bandit, arms = Bandit(policy), np.eye(3) * 0.5
    before = bandit.memory_bytes
    for t in range(40):
        bandit.choose(arms)
        bandit.update(arms[t % 3], t % 2)
    grows = bandit.memory_bytes > before
    windowed = policy.growing == {} or type(policy).__name__ in ("RestartGLB", "DynamicLinUCB")
    assert grows <= (entry.memory != "O(1)")
    assert grows or windowed


def comparison(horizon):
    """Environments and policies of the quick study."""
    study = read_study("quick")[0].model_copy(update={"horizon": horizon})
    return [(world, study.contenders(world)) for _, world, _ in study.worlds()]


def test_every_policy_is_played_in_the_quick_study():
    played = {type(policy) for _, policies in comparison(50) for _, policy, _ in policies}
    linear = {"LinUCB", "LBWeightUCB", "DLinUCB", "SWLinUCB"}
    later = {"DLinTS", "DRandLinUCB", "WSBLinUCB", "WSBLinTS", "WSBRandLinUCB", "DGLMTS", "SWGLMTS"}
    later |= {"IDS", "DAL", "RestartedWeightedOFUL", "RestartedSAVE", "DynamicLinUCB", "LARL"}
    assert {e.policy.__name__ for e in CATALOGUE} - {p.__name__ for p in played} == linear | later


GOLDEN = Path(__file__).parents[1] / "golden" / "rivals.json"


def trajectories():
    """Regret of every tuned policy in a short version of the comparison, two seeds."""
    return {
        f"{world.name} {label}": np.round(simulate(policy, world, (0, 1)).total, 9).tolist()
        for world, policies in comparison(80)
        for label, policy, _ in policies
    }


def test_trajectories_of_the_comparison_are_the_stored_ones():
    stored, found = json.loads(GOLDEN.read_text()), trajectories()
    assert stored.keys() == found.keys()
    for name, totals in stored.items():
        np.testing.assert_allclose(found[name], totals, rtol=1e-6, err_msg=name)


if __name__ == "__main__":
    GOLDEN.write_text(json.dumps(trajectories(), indent=1) + "\n")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Stubborn(LinUCB):
    def scores(self, memory, arms):
        mean, bonus, upper = super().scores(memory, arms)
        return Scores(mean, bonus, upper + 1.0)


def test_a_broken_promise_is_always_named():
    """Also where the check itself gives no message."""
    with pytest.raises(AssertionError, match="Stubborn breaks the promise 'choice is the largest"):
        check_policy(Stubborn(problem=Problem(dim=3, radius=1.0), regularization=1.0))


def broken(method, change):
    """A LinUCB one of whose methods does something else with what it would have returned."""

    def wrapped(self, *arguments):
        return change(getattr(LinUCB, method)(self, *arguments), *arguments)

    kind = type("Mistaken", (LinUCB,), {method: wrapped})
    kind = dataclasses.dataclass(frozen=True, kw_only=True)(kind)
    globals()["Mistaken"] = kind  # where pickle looks for it
    return kind(problem=Problem(dim=3, radius=1.0), regularization=1.0)


@pytest.mark.parametrize(
    ("method", "change", "said"),
    [
        ("init", lambda memory, n: memory._asdict(), "must be a NamedTuple"),
        ("choose", lambda arm, *_: arm[:1], r"shape \(1,\), not \(n,\)"),
        ("choose", lambda arm, *_: arm + 0.0, "float64, not whole numbers"),
        ("choose", lambda arm, *_: arm + 100, "arm that does not exist"),
        ("choose", lambda arm, *_: arm.nothing, "every learner': it raises AttributeError: 'numpy"),
        ("update", lambda memory, *_: None, "must return the memory"),
        ("update", lambda memory, m, x, *_: [memory, x.fill(0)][0], "changed its arguments"),
        ("update", lambda memory, *_: memory._replace(b=memory.b * np.nan), "theta is NaN after"),
        ("update", lambda memory, *_: memory._replace(t=memory.t + 1), "must count rounds in t"),
    ],
)  # fmt: skip
def test_a_mistake_is_said_in_words(method, change, said):
    with pytest.raises(AssertionError, match=said):
        check_policy(broken(method, change))


def test_a_class_is_no_policy():
    with pytest.raises(ValueError, match=r"not the class: make one, as LinUCB\(...\)"):
        check_policy(LinUCB)


def test_a_subclass_does_not_carry_the_name_of_the_paper():
    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Wider(LinUCB):
        pass

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Named(LinUCB):
        @property
        def name(self):
            return "LinUCB, mine"

    problem = Problem(dim=3, radius=1.0)
    names = [kind(problem=problem, regularization=1.0).name for kind in (LinUCB, Wider, Named)]
    assert names == ["LinUCB", "Wider", "LinUCB, mine"]
