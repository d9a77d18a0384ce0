"""Every policy of the catalogue, optimistic and sampling, against every check."""

import json
from pathlib import Path

import numpy as np
import pytest

import driftbandit
from driftbandit import Bandit, Policy, Problem, simulate
from driftbandit.checks import check_policy, policy_checks
from driftbandit.lab import read_study
from driftbandit.policies.catalogue import CATALOGUE

KNOWN = Problem(dim=3, radius=1.0, horizon=100, path_length=2.0, change_points=2)
SMALL = {"MASTER": {"first_order": 3}, "SWGLUCB": {"window": 6}, "RestartGLB": {"period": 7}}
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


def test_a_strided_memory_is_refused():
    policy = CASES[0]
    memory = policy.init(4)
    strided = type(memory)(*(array[::2] for array in memory))
    with pytest.raises(ValueError, match="contiguous"):
        policy.choose(strided, np.zeros((2, 5, 3)))


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
    windowed = policy.growing == {} or type(policy).__name__ == "RestartGLB"
    assert grows <= (entry.memory != "O(1)")
    assert grows or windowed


def comparison(horizon):
    """Environments and policies of the quick study."""
    study = read_study("quick")[0].model_copy(update={"horizon": horizon})
    return [(world, study.contenders(world)) for _, world, _ in study.worlds()]


def test_every_policy_is_played_in_the_quick_study():
    played = {type(policy) for _, policies in comparison(50) for _, policy, _ in policies}
    linear = {"LinUCB", "LBWeightUCB", "DLinUCB", "SWLinUCB"}
    assert {e.policy.__name__ for e in CATALOGUE} - {p.__name__ for p in played} == linear


GOLDEN = Path(__file__).parent / "golden" / "rivals.json"


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
