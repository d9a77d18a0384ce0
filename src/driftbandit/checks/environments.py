"""The contract of `Environment` as checks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from driftbandit.checks.recipes import check_recipe, same
from driftbandit.environments import Environment
from driftbandit.simulation import simulate


def check_environment(environment: Environment) -> None:
    """Raise AssertionError if the environment breaks the contract of `Environment`."""
    for check in environment_checks():
        check(environment)


def environment_checks() -> tuple[Callable[[Environment], None], ...]:
    """Every check of an environment, to run one by one."""
    return (
        check_recipe,
        check_path_stays_in_the_ball_and_the_budget,
        check_blocks_do_not_depend_on_their_size,
        check_seeds_do_not_depend_on_company,
        check_arms_are_contexts,
        check_regret_is_never_negative,
    )


def check_path_stays_in_the_ball_and_the_budget(environment: Environment) -> None:
    for seed in (0, 5):
        path = environment.path(seed)
        P, G = environment.measure(seed)
        assert path.shape == (environment.horizon, environment.dim)
        assert (np.linalg.norm(path, axis=1) <= environment.radius * (1 + 1e-12)).all()
        assert environment.path_length * (1 + 1e-9) + 1e-12 >= P, "P_T is above the promised budget"
        assert environment.change_points is None or environment.change_points >= G


def check_blocks_do_not_depend_on_their_size(environment: Environment) -> None:
    whole = [np.concatenate(c) for c in zip(*environment.blocks((1, 4), environment.horizon))]
    pieces = [np.concatenate(c) for c in zip(*environment.blocks((1, 4), 7))]
    same(pieces, whole, "blocks of 7 rounds differ from one block")


def check_seeds_do_not_depend_on_company(environment: Environment) -> None:
    both, alone = next(environment.blocks((2, 9), 5)), next(environment.blocks((9,), 5))
    same([c[:, 1:] for c in both], list(alone), "seed 9 with company differs from seed 9 alone")


def check_arms_are_contexts(environment: Environment) -> None:
    block = next(environment.blocks((0,), 5))
    limit = environment.problem.context_norm * (1 + 1e-9)
    assert (np.linalg.norm(block.arms, axis=-1) <= limit).all()
    assert ((block.luck >= 0) & (block.luck < 1)).all()


def check_regret_is_never_negative(environment: Environment) -> None:
    from driftbandit.policies import Oracle, Uniform

    assert (simulate(Uniform(problem=environment.problem), environment, (0, 1)).regret >= 0).all()
    oracle = simulate(Oracle(problem=environment.problem), environment, (0, 1))
    assert np.abs(oracle.regret).max() <= 1e-12 * environment.family.R
