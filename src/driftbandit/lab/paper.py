"""The paper's comparison (section 5): two settings, several radii, every policy that applies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from driftbandit.environments import Circle, Environment, SignFlip
from driftbandit.policies import (
    BVDGLMUCB,
    DGLUCB,
    DOMD,
    GLBOMD,
    GLMUCB,
    GLOC,
    MASTER,
    SCDGLUCB,
    SCSWGLUCB,
    SWGLUCB,
    GLBWeightUCB,
    Greedy,
    Oracle,
    Policy,
    RestartGLB,
    SCBPWWeightUCB,
    SCBWeightUCB,
    Uniform,
)
from driftbandit.simulate import Run, simulate

SCALE, DELTA = 0.2, 0.01  # the paper scales all radii by 1/5; its delta is not stated, ours is


@dataclass(frozen=True)
class Panel:
    """One environment of the figure and the policies played in it."""

    title: str
    environment: Environment
    policies: tuple[Policy, ...]


STATIONARY = (GLBOMD, GLMUCB, GLOC)
DRIFTING = (RestartGLB, MASTER, BVDGLMUCB, GLBWeightUCB, SCBWeightUCB)
PIECEWISE = (MASTER, DGLUCB, SWGLUCB, SCDGLUCB, SCSWGLUCB, SCBPWWeightUCB)


def contenders(environment: Environment) -> tuple[Policy, ...]:
    """Every policy, tuned by its theory for this environment; DOMD also as the practical preset."""
    problem = environment.problem
    suited = DRIFTING if problem.change_points is None else PIECEWISE
    tuned = [
        kind.from_theory(problem, scale=SCALE, delta=DELTA) for kind in (DOMD, *STATIONARY, *suited)
    ]
    yardsticks = Uniform(problem=problem), Oracle(problem=problem)
    return (DOMD(problem=problem), *tuned, Greedy.from_theory(problem), *yardsticks)


def panels(*, horizon: int, radii: Sequence[float]) -> list[Panel]:
    """Drift and sign flip for each radius S; d = 5 and N = 30 as in the paper."""
    found = []
    for S in radii:
        for setting, kind in (("drifting", Circle), ("piecewise-stationary", SignFlip)):
            environment = kind(horizon=horizon, radius=S)
            title = f"{setting}, S = {S:g}"
            found.append(Panel(title, environment, contenders(environment)))
    return found


def label(policy: Policy) -> str:
    """The name in tables and figures, which says where the tuning comes from."""
    if type(policy) is DOMD and policy.bonus is not None:
        return f"{policy.name} (practical)"
    return policy.name


def run_panels(
    plan: Iterable[Panel],
    seeds: Sequence[int],
    folder: Path,
    progress: Callable[[str, int], Callable[[int], None]],
) -> list[tuple[Panel, list[Run]]]:
    """Play every panel, keep each run as one file in `folder`.

    `progress(label, rounds)` gives the function to call as rounds pass.
    """
    folder.mkdir(parents=True, exist_ok=True)
    results = []
    for number, panel in enumerate(plan, start=1):
        runs = []
        for policy in panel.policies:
            advance = progress(f"{panel.title}: {label(policy)}", panel.environment.horizon)
            run = simulate(policy, panel.environment, seeds, progress=advance)
            run.save(folder / f"panel{number}-{label(policy)}.npz")
            runs.append(run)
        results.append((panel, runs))
    return results
