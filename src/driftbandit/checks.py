"""The contract of policies and environments as checks, for ours and for yours.

>>> from driftbandit import DOMD, Problem
>>> from driftbandit.checks import check_policy
>>> check_policy(DOMD(problem=Problem(dim=3)))
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from driftbandit.bandit import Bandit
from driftbandit.environments import Environment, Simulated
from driftbandit.policies import Policy
from driftbandit.recipe import Recipe
from driftbandit.simulation import simulate

ROUNDS, N_ARMS = 25, 7


def check_policy(policy: Policy) -> None:
    """Raise AssertionError if the policy breaks the contract of `Policy`."""
    for check in policy_checks():
        check(policy)


def check_environment(environment: Environment) -> None:
    """Raise AssertionError if the environment breaks the contract of `Environment`."""
    for check in environment_checks():
        check(environment)


def policy_checks() -> tuple[Callable[[Policy], None], ...]:
    """Every check of a policy, to run one by one."""
    return (
        check_recipe,
        check_choose_leaves_memory_and_inputs_untouched,
        check_choice_is_the_largest_score,
        check_same_input_same_result,
        check_alone_equals_in_batch,
        check_memory_is_arrays_with_a_leading_axis,
        check_one_arm,
        check_arms_may_come_and_go,
        check_saved_bandit_continues_bit_for_bit,
    )


def environment_checks() -> tuple[Callable[[Environment], None], ...]:
    """Every check of an environment, to run one by one."""
    return (
        check_recipe,
        check_path_stays_in_the_ball_and_the_budget,
        check_blocks_do_not_depend_on_their_size,
        check_seeds_do_not_depend_on_company,
        check_arms_are_contexts,
        check_rewards_are_in_the_range_of_the_family,
        check_regret_is_never_negative,
    )


def check_recipe(recipe: Any) -> None:
    """Printable, hashable, equal to its copy, and the same after JSON and pickle."""
    assert repr(recipe)
    twin = Recipe.from_dict(json.loads(json.dumps(recipe.to_dict())))
    assert twin == recipe, f"from_dict(to_dict()) gives {twin!r}, not {recipe!r}"
    assert hash(twin) == hash(recipe)
    assert pickle.loads(pickle.dumps(recipe)) == recipe


def check_choose_leaves_memory_and_inputs_untouched(policy: Policy) -> None:
    stream = _Stream(policy, n=3)
    memory = stream.play(policy.init(3))
    arms, noise = stream.arms[0], stream.noise[0]
    before = [a.copy() for a in (*memory, arms, noise)]
    policy.choose(memory, arms, noise)
    policy.scores(memory, arms)
    _same((*memory, arms, noise), before, "choose or scores changed its arguments")


def check_choice_is_the_largest_score(policy: Policy) -> None:
    """Unless luck decides, the choice maximises `upper` = mean + bonus."""
    stream = _Stream(policy, n=3)
    memory = stream.play(policy.init(3))
    mean, bonus, upper = policy.scores(memory, stream.arms[0])
    assert mean.shape == bonus.shape == upper.shape == (3, N_ARMS)
    assert np.allclose(mean + bonus, upper)
    if not policy.noise_size:
        choice = policy.choose(memory, stream.arms[0], stream.noise[0])
        assert np.allclose(upper[np.arange(3), choice], upper.max(axis=1), rtol=1e-12)


def check_same_input_same_result(policy: Policy) -> None:
    stream = _Stream(policy, n=2)
    first, second = stream.play(policy.init(2)), stream.play(policy.init(2))
    _same(first, second, "two learners that saw the same differ")


def check_alone_equals_in_batch(policy: Policy) -> None:
    stream = _Stream(policy, n=4)
    batch = stream.play(policy.init(4))
    for i in range(4):
        alone = stream.only(i).play(policy.init(1))
        row = [array[i : i + 1] for array in batch]
        for part in zip(batch._fields, alone, row):
            found, expected = _common(policy, *part)
            _same([found], [expected], f"row {i} alone differs")


def check_memory_is_arrays_with_a_leading_axis(policy: Policy) -> None:
    memory: Any = policy.init(5)
    assert hasattr(memory, "_fields"), "the memory must be a NamedTuple"
    assert "t" in memory._fields, "the memory must count rounds in an array t (n,)"
    for name, array in zip(memory._fields, memory):
        assert isinstance(array, np.ndarray), f"{name} is no array"
        assert array.shape[0] == 5, f"{name} has no leading axis of learners"
        assert array.dtype != object, f"{name} holds objects"


def check_one_arm(policy: Policy) -> None:
    stream = _Stream(policy, n=2, n_arms=1)
    assert (policy.choose(policy.init(2), stream.arms[0], stream.noise[0]) == 0).all()


def check_arms_may_come_and_go(policy: Policy) -> None:
    bandit = Bandit(policy)
    for t, count in enumerate((5, 1, 12, 3)):
        arms = _Stream(policy, n=1, n_arms=count).arms[t, 0]
        assert 0 <= bandit.choose(arms) < count
        bandit.update(arms[0], float(policy.problem.family.draw(0.0, 0.4)))
    assert bandit.rounds == 4


def check_saved_bandit_continues_bit_for_bit(policy: Policy) -> None:
    stream = _Stream(policy, n=1)
    bandit = Bandit(policy, seed=3)
    half = ROUNDS // 2
    _teach(bandit, stream, range(half))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "saved bandit.npz"
        bandit.save(path)
        loaded, pickled = Bandit.load(path), pickle.loads(pickle.dumps(bandit))
    expected = _teach(bandit, stream, range(half, ROUNDS))
    for copy in (loaded, pickled):
        assert _teach(copy, stream, range(half, ROUNDS)) == expected, (
            "a resumed bandit chose otherwise"
        )
        _same(copy._memory, bandit._memory, "a resumed bandit remembers otherwise")


def check_path_stays_in_the_ball_and_the_budget(environment: Environment) -> None:
    if not isinstance(environment, Simulated):
        return  # nobody knows the path of a real stream
    for seed in (0, 5):
        path = environment.path(seed)
        P, G = environment.measure(seed)
        assert path.shape == (environment.horizon, environment.dim)
        assert (np.linalg.norm(path, axis=1) <= environment.radius * (1 + 1e-12)).all()
        assert environment.path_length * (1 + 1e-9) + 1e-12 >= P, "P_T is above the promised budget"
        assert environment.change_points is None or environment.change_points >= G


def _laid_out(environment: Environment, seeds: tuple[int, ...], size: int) -> list[Any]:
    """Arms, true parameters, and what every arm gives and lacks, of all rounds."""
    parts = []
    for block in environment.blocks(seeds, size):
        choices = [np.full(len(seeds), arm) for arm in range(environment.n_arms)]
        played = [[block.play(t, choice) for choice in choices] for t in range(len(block))]
        parts.append((block.arms, block.theta, np.array(played)))
    return [np.concatenate(part) for part in zip(*parts)]


def check_blocks_do_not_depend_on_their_size(environment: Environment) -> None:
    whole = _laid_out(environment, (1, 4), environment.horizon)
    pieces = _laid_out(environment, (1, 4), 7)
    _same(pieces, whole, "blocks of 7 rounds differ from one block")


def check_seeds_do_not_depend_on_company(environment: Environment) -> None:
    arms, theta, played = _laid_out(environment, (2, 9), environment.horizon)
    alone = _laid_out(environment, (9,), environment.horizon)
    both = [arms[:, 1:], theta[:, 1:], played[..., 1:]]
    _same(both, alone, "seed 9 with company differs from seed 9 alone")


def check_arms_are_contexts(environment: Environment) -> None:
    block = next(iter(environment.blocks((0,), 5)))
    limit = environment.problem.context_norm * (1 + 1e-9)
    assert block.arms.shape[2:] == (environment.n_arms, environment.problem.dim)
    assert (np.linalg.norm(block.arms, axis=-1) <= limit).all()


def check_rewards_are_in_the_range_of_the_family(environment: Environment) -> None:
    rewards = simulate(_uniform(environment), environment, (0, 1)).rewards
    assert (np.abs(rewards) <= environment.problem.family.R).all()


def check_regret_is_never_negative(environment: Environment) -> None:
    assert (simulate(_uniform(environment), environment, (0, 1)).regret >= 0).all()
    if isinstance(environment, Simulated):
        from driftbandit.policies import Oracle

        oracle = simulate(Oracle(problem=environment.problem), environment, (0, 1))
        assert np.abs(oracle.regret).max() <= 1e-12 * environment.family.R


def _uniform(environment: Environment) -> Policy:
    from driftbandit.policies import Uniform

    return Uniform(problem=environment.problem)


class _Stream:
    """Contexts, luck and noise for n learners, the same whoever plays."""

    def __init__(self, policy: Policy, n: int, n_arms: int = N_ARMS) -> None:
        rng = np.random.default_rng(7)
        self.policy, d = policy, policy.problem.dim
        arms = rng.standard_normal((ROUNDS, n, n_arms, d))
        norms = np.linalg.norm(arms, axis=-1, keepdims=True)
        self.arms = arms / norms * policy.problem.context_norm * rng.random((ROUNDS, n, n_arms, 1))
        self.luck = rng.random((ROUNDS, n))
        self.noise = rng.standard_normal((ROUNDS, n, policy.noise_size))

    def only(self, i: int) -> _Stream:
        part = object.__new__(_Stream)
        part.policy, row = self.policy, slice(i, i + 1)
        part.arms, part.luck, part.noise = self.arms[:, row], self.luck[:, row], self.noise[:, row]
        return part

    def play(self, memory: Any) -> Any:
        rows = np.arange(self.luck.shape[1])
        for arms, luck, noise in zip(self.arms, self.luck, self.noise):
            x = arms[rows, self.policy.choose(memory, arms, noise)]
            reward = self.policy.problem.family.draw(0.3 * x[:, 0], luck)
            memory = self.policy.update(memory, x, reward, noise)
        return memory


def _teach(bandit: Bandit, stream: _Stream, rounds: range) -> list[int]:
    choices = []
    for t in rounds:
        arm = bandit.choose(stream.arms[t, 0])
        reward = bandit.policy.problem.family.draw(0.2, stream.luck[t, 0])
        bandit.update(stream.arms[t, 0, arm], float(reward))
        choices.append(arm)
    return choices


def _common(policy: Policy, name: str, a: Any, b: Any) -> tuple[Any, Any]:
    """Both arrays; where they may grow, what both have room for: company can add to the room."""
    if name not in policy.growing:
        return a, b
    corner = tuple(slice(min(m, n)) for m, n in zip(a.shape, b.shape))
    return a[corner], b[corner]


def _same(found: Any, expected: Any, message: str) -> None:
    for a, b in zip(found, expected):
        assert np.array_equal(a, b), message
