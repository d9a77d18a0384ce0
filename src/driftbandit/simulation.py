"""Playing a policy in an environment, and what came of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from time import perf_counter_ns
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftbandit import files, measures, validate
from driftbandit.environments import Environment, Simulated
from driftbandit.environments.delay import Mail
from driftbandit.environments.random_streams import POLICY, tape
from driftbandit.html_table import table
from driftbandit.policies import Policy
from driftbandit.progress import rounds_bar
from driftbandit.recipe import Recipe
from driftbandit.validate import show

Floats = NDArray[np.float64]
BLOCK_BYTES = 8_000_000  # arms drawn at once: large enough to amortise, small enough for cache


@dataclass(frozen=True, eq=False)
class Run:
    """What happened: every array is (n, T), one row per seed, times are per round and seed."""

    policy: Policy
    environment: Environment
    seeds: tuple[int, ...]
    regret: Floats  # dynamic pseudo-regret of each round
    choices: NDArray[np.int32]
    rewards: Floats
    choose_ns: Floats  # (T,) nanoseconds to decide
    update_ns: Floats  # (T,) nanoseconds to learn

    @property
    def cumulative(self) -> Floats:
        """Cumulative dynamic regret, (n, T)."""
        return np.cumsum(self.regret, axis=1)

    @property
    def total(self) -> Floats:
        """Regret of each seed at the horizon, (n,)."""
        return np.asarray(self.regret.sum(axis=1))

    def mean(self) -> Floats:
        """Mean cumulative regret over seeds, (T,)."""
        return np.asarray(self.cumulative.mean(axis=0))

    def std(self) -> Floats:
        """Standard deviation of the cumulative regret over seeds, (T,); 0 for a single seed."""
        return np.asarray(self.cumulative.std(axis=0, ddof=int(len(self.seeds) > 1)))

    @property
    def best_arm_rate(self) -> Floats:
        """Share of rounds in which each seed played a best arm, (n,)."""
        return measures.best_arm_rate(self.regret)

    def worst_window(self, length: int = 100) -> Floats:
        """Largest mean regret of `length` consecutive rounds of each seed, (n,)."""
        return measures.worst_window(self.regret, length)

    def recovery(self, change: int, *, share: float = 0.95, length: int = 100) -> Floats:
        """Rounds after the first `change` until each seed's reward is back, (n,): until the mean of
        `length` rounds is `share` of that of the `length` rounds before; infinite if it never is.
        """
        low = self.environment.problem.family.low
        return measures.recovery_time(self.rewards, change, share=share, length=length, low=low)

    @property
    def microseconds(self) -> float:
        """Median cost of a round (choose and update) per seed; the first rounds compile."""
        return float(np.median(self.choose_ns + self.update_ns)) / 1000.0

    def _repr_html_(self) -> str:
        """Return regret and time as a table."""
        title = f"{self.policy.name} on {self.environment.name}"
        header = ("seeds", "rounds", "mean regret", "std of regret", "microseconds per round")
        row = (len(self.seeds), self.environment.horizon, float(self.mean()[-1]))
        return table(title, header, [(*row, float(self.std()[-1]), float(self.microseconds))])

    def __repr__(self) -> str:
        total = self.total
        spread = total.std(ddof=1) if len(total) > 1 else 0.0
        return (
            f"Run({self.policy.name} on {self.environment.name}, {len(self.seeds)} seeds, "
            f"T={self.environment.horizon}: regret {total.mean():.1f} ± {spread:.1f}, "
            f"{self.microseconds:.1f} us a round)"
        )

    def to_pandas(self) -> Any:
        """One row per seed and round: policy, seed, round, choice, reward, regret, cumulative."""
        import pandas as pd

        n, T = self.regret.shape
        return pd.DataFrame(
            {
                "policy": pd.Categorical([self.policy.name]).repeat(n * T),
                "seed": np.repeat(self.seeds, T),
                "round": np.tile(np.arange(1, T + 1), n),
                "choice": self.choices.ravel(),
                "reward": self.rewards.ravel(),
                "regret": self.regret.ravel(),
                "cumulative": self.cumulative.ravel(),
                "choose_ns": np.tile(self.choose_ns, n),
                "update_ns": np.tile(self.update_ns, n),
            }
        )

    def plot(self, ax: Any = None, **style: Any) -> Any:
        """Mean cumulative regret with a band of one standard deviation; returns the axes."""
        import matplotlib.pyplot as plt

        ax = plt.gca() if ax is None else ax
        t, mean, std = np.arange(1, self.environment.horizon + 1), self.mean(), self.std()
        (line,) = ax.plot(t, mean, **({"label": self.policy.name} | style))
        ax.fill_between(t, mean - std, mean + std, color=line.get_color(), alpha=0.1, lw=0)
        ax.set(xlabel="round $t$", ylabel="cumulative dynamic regret")
        return ax

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to one npz file, atomically."""
        header = {
            "policy": self.policy.to_dict(),
            "environment": self.environment.to_dict(),
            "seeds": list(self.seeds),
        }
        names = ("regret", "choices", "rewards", "choose_ns", "update_ns")
        files.write(path, "run", header, {name: getattr(self, name) for name in names})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Run:
        """Read what `save` wrote."""
        names = ("regret", "choices", "rewards", "choose_ns", "update_ns")
        header, arrays = files.read(path, "run", names)
        try:
            run = cls(
                policy=Recipe.from_dict(header["policy"]),
                environment=Recipe.from_dict(header["environment"]),
                seeds=_seeds(header["seeds"]),
                **arrays,
            )
            run._check()
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ValueError(f"{path} is damaged or foreign: {error}; restore a copy") from None
        return run

    def _check(self) -> None:
        """Raise ValueError if the parts do not belong together."""
        if not isinstance(self.policy, Policy) or not isinstance(self.environment, Environment):
            raise ValueError("its policy or environment is none")
        if self.policy.problem.dim != self.environment.problem.dim:
            raise ValueError("its policy and environment differ in dimension")
        n, T = len(self.seeds), self.environment.horizon
        shapes = {"regret": (n, T), "choices": (n, T), "rewards": (n, T)}
        for name in ("regret", "choices", "rewards", "choose_ns", "update_ns"):
            array, shape = getattr(self, name), shapes.get(name, (T,))
            kind = "i" if name == "choices" else "f"
            if array.dtype.kind != kind or array.shape != shape or not np.isfinite(array).all():
                raise ValueError(f"its array {name!r} is {array.dtype} {array.shape}")


def simulate(
    policy: Policy,
    environment: Environment,
    seeds: Iterable[int] = range(20),
    *,
    progress: bool | Callable[[int], None] = False,
    watch: Callable[[int, Any, Floats], None] | None = None,
) -> Run:
    """Play `policy` in `environment` once per seed; all seeds side by side, if rewards are prompt.

    The result of a seed does not depend on which other seeds run with it. `progress=True` shows
    a bar on a terminal; a function is called with the number of rounds just finished. `watch` is
    called before each decision with the round t = 1, 2, ..., the memory and the true parameters
    (n, d); it must not change them. Its time is not measured.

    >>> from driftbandit import DOMD, Circle, simulate
    >>> world = Circle(horizon=100)
    >>> simulate(DOMD(problem=world.problem), world, seeds=range(3)).regret.shape
    (3, 100)
    """
    if not isinstance(policy, Policy):
        raise ValueError(f"policy must be a policy such as DOMD(problem=...), got {show(policy)}")
    if not isinstance(environment, Environment):
        raise ValueError(f"environment must be one such as Circle(), got {show(environment)}")
    seeds = _seeds(seeds)
    _check_pair(policy, environment)
    groups = environment.together(seeds)
    if watch is not None and len(groups) > 1:
        raise ValueError("where rewards are late, watch sees one seed: play each seed alone")
    with rounds_bar(policy.name, environment.horizon * len(groups), progress) as advance:
        return _joined([_play(policy, environment, group, advance, watch) for group in groups])


def _check_pair(policy: Policy, environment: Environment) -> None:
    """Raise ValueError if this policy cannot play in this environment."""
    ours, theirs = policy.problem, environment.problem
    if ours.dim != theirs.dim:
        raise ValueError(
            f"the policy works in dimension {ours.dim}, the environment in {theirs.dim}: build "
            "the policy with problem=environment.problem"
        )
    if ours.family != theirs.family:
        raise ValueError(
            f"the policy expects {ours.family!r} rewards, the environment gives "
            f"{theirs.family!r}: build the policy with problem=environment.problem"
        )
    if policy.clairvoyant and not isinstance(environment, Simulated):
        raise ValueError(
            f"{policy.name} must be told the true parameters, which nobody knows for "
            f"{environment.name}: play it in simulated worlds only"
        )


def _seeds(seeds: Any) -> tuple[int, ...]:
    try:
        found = None if isinstance(seeds, (str, bytes)) else tuple(seeds)
    except TypeError:
        found = None
    if not found:
        raise ValueError(
            f"seeds must be at least one whole number, as range(20), got {show(seeds)}"
        )
    clean = tuple(validate.count("seed", seed, "of the tapes", least=0) for seed in found)
    if len(set(clean)) < len(clean):
        raise ValueError("the same seed twice is the same run twice: pass different seeds")
    return clean


def _play(
    policy: Policy,
    environment: Environment,
    seeds: Sequence[int],
    advance: Callable[[int], None],
    watch: Callable[[int, Any, Floats], None] | None,
) -> Run:
    n, T = len(seeds), environment.horizon
    regret, rewards = np.empty((n, T)), np.empty((n, T))
    choices, times = np.empty((n, T), dtype=np.int32), np.empty((2, T))
    memory, rows = policy.init(n), np.arange(n)
    tapes = [tape(seed, POLICY) for seed in seeds]
    waits, mail = _waits(environment, seeds), Mail[tuple[Floats, Floats, Floats]]()
    t = 0
    for block in environment.blocks(seeds, _rounds_at_once(environment, n)):
        noises = _noise(tapes, len(block), policy.noise_size)
        for k, (arms, theta, noise) in enumerate(zip(block.arms, block.theta, noises)):
            if policy.clairvoyant:
                policy.reveal(memory, theta)  # type: ignore[attr-defined]
            if watch is not None:
                watch(t + 1, memory, theta)
            tic = perf_counter_ns()
            choice = policy.choose(memory, arms, noise)
            toc = perf_counter_ns()
            x, (reward, regret[:, t]) = arms[rows, choice], block.play(k, choice)
            arrived = mail.exchange(t, waits(t, reward), (x, reward, noise))
            tac = perf_counter_ns()
            for news in arrived:
                memory = policy.update(memory, *news)
            times[:, t] = toc - tic, perf_counter_ns() - tac
            choices[:, t], rewards[:, t] = choice, reward
            t += 1
        advance(len(block))
    times /= n
    return Run(policy, environment, tuple(seeds), regret, choices, rewards, times[0], times[1])


def _waits(environment: Environment, seeds: Sequence[int]) -> Callable[[int, Floats], int]:
    """How many rounds the reward of round t waits; of a group, if it waits not at all."""
    delay = environment.delay
    if delay is None:
        return lambda t, reward: 0
    (seed,) = seeds
    lucks = delay.lucks(seed, environment.horizon)
    return lambda t, reward: delay.wait(float(reward[0]), lucks[t])


def _joined(runs: list[Run]) -> Run:
    """One run of the seeds of several; times are means over seeds."""
    if len(runs) == 1:
        return runs[0]
    arrays = {
        name: np.concatenate([getattr(run, name) for run in runs])
        for name in ("regret", "choices", "rewards")
    }
    times = {
        name: np.mean([getattr(run, name) for run in runs], axis=0)
        for name in ("choose_ns", "update_ns")
    }
    seeds = tuple(seed for run in runs for seed in run.seeds)
    return Run(runs[0].policy, runs[0].environment, seeds, **arrays, **times)


def _rounds_at_once(environment: Environment, n: int) -> int:
    row = 8 * environment.n_arms * environment.problem.dim * n
    return max(1, min(environment.horizon, BLOCK_BYTES // row))


def _noise(tapes: list[np.random.Generator], rounds: int, size: int) -> Floats:
    """Standard normals (rounds, n, size), each seed's from its own tape."""
    return np.stack([rng.standard_normal((rounds, size)) for rng in tapes], axis=1)
