"""The contract of `Environment` as checks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from driftbandit.checks.recipes import check_recipe, run_checks, same
from driftbandit.environments import Environment, Simulated
from driftbandit.policies import Policy
from driftbandit.simulation import simulate


def check_environment(environment: Environment) -> None:
    """Raise AssertionError if the environment breaks the contract of `Environment`."""
    run_checks(environment_checks(), environment)


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


def check_path_stays_in_the_ball_and_the_budget(environment: Environment) -> None:
    if not isinstance(environment, Simulated):
        return  # nobody knows the path of a real stream
    for seed in (0, 5):
        path = environment.path(seed)
        P, G = environment.measure(seed)
        shape = environment.horizon, environment.dim
        assert path.shape == shape, f"the path has the shape {path.shape}, not (T, d) = {shape}"
        S = environment.problem.known("radius", "the ball of the path")
        far = np.linalg.norm(path, axis=1).max()
        assert far <= S * (1 + 1e-12), (
            f"theta leaves the ball: its norm is {far:.6g}, and S = {S:g}"
        )
        assert environment.path_length * (1 + 1e-9) + 1e-12 >= P, "P_T is above the promised budget"
        most = environment.change_points
        assert most is None or most >= G, f"theta changes {G} times, and change_points is {most}"


def _laid_out(environment: Environment, seeds: tuple[int, ...], size: int) -> list[Any]:
    """Arms, true parameters, and what every arm gives and lacks, of all rounds."""
    parts = []
    for block in environment.blocks(seeds, size):
        choices = [np.full(len(seeds), arm) for arm in range(environment.n_arms)]
        played = [[block.play(t, choice) for choice in choices] for t in range(len(block))]
        parts.append((block.arms, np.nan_to_num(block.theta), np.array(played)))
    return [np.concatenate(part) for part in zip(*parts)]


def check_blocks_do_not_depend_on_their_size(environment: Environment) -> None:
    whole = _laid_out(environment, (1, 4), environment.horizon)
    pieces = _laid_out(environment, (1, 4), 7)
    same(pieces, whole, "blocks of 7 rounds differ from one block")


def check_seeds_do_not_depend_on_company(environment: Environment) -> None:
    arms, theta, played = _laid_out(environment, (2, 9), environment.horizon)
    alone = _laid_out(environment, (9,), environment.horizon)
    both = [arms[:, 1:], theta[:, 1:], played[..., 1:]]
    same(both, alone, "seed 9 with company differs from seed 9 alone")


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
