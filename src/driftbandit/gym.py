"""Gymnasium: our environments as gymnasium's, and a bandit that plays gymnasium's contextual ones.

Needs the extra `gym`. An episode is the horizon of an environment; a round is one step.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from driftbandit import validate
from driftbandit.bandit import Bandit
from driftbandit.environments.environment import Block, Environment
from driftbandit.families import Bernoulli, Family
from driftbandit.policies.auto import AutoDOMD
from driftbandit.policies.base import Floats
from driftbandit.policies.rows import RowPolicy
from driftbandit.problem import Problem

try:
    import gymnasium
    from gymnasium import spaces
except ImportError:
    raise ImportError("driftbandit.gym needs gymnasium: pip install 'driftbandit[gym]'") from None

BLOCK = 256  # rounds that are laid out at once


class BanditEnv(gymnasium.Env[Any, Any]):
    """An environment of this package: an observation has a row for every arm (N, d), an action is
    the number of an arm, and `info["regret"]` says how much better the best arm was on average.

    The seed of `reset` is that of `simulate`, so both play the same rounds.

    >>> from driftbandit import Circle
    >>> env = BanditEnv(Circle(horizon=3))
    >>> observation, info = env.reset(seed=1)
    >>> observation.shape
    (30, 5)
    """

    def __init__(self, environment: Environment) -> None:
        if environment.delay is not None:
            raise ValueError("a step gives its reward at once: leave delay out")
        self.environment = environment
        shape = environment.n_arms, environment.problem.dim
        self.observation_space = spaces.Box(-np.inf, np.inf, shape, np.float64)
        self.action_space = spaces.Discrete(environment.n_arms)
        self._rounds: Iterator[tuple[Block, int]] = iter(())
        self._now: tuple[Block, int] | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Floats, dict[str, Any]]:
        """Begin an episode; without a seed, one is drawn."""
        super().reset(seed=seed)
        chosen = int(self.np_random.integers(2**31)) if seed is None else seed
        blocks = self.environment.blocks([chosen], BLOCK)
        self._rounds = ((block, t) for block in blocks for t in range(len(block)))
        self._now = next(self._rounds)
        return self._observation(), {}

    def step(self, action: Any) -> tuple[Floats, float, bool, bool, dict[str, Any]]:
        """Choose an arm; the episode ends with the horizon."""
        if self._now is None:
            raise ValueError("the episode is over: call reset()")
        block, t = self._now
        reward, regret = block.play(t, np.array([int(action)]))
        last, self._now = self._observation(), next(self._rounds, None)
        seen = last if self._now is None else self._observation()
        return seen, float(reward[0]), self._now is None, False, {"regret": float(regret[0])}

    def _observation(self) -> Floats:
        assert self._now is not None
        block, t = self._now
        return np.array(block.arms[t, 0], dtype=np.float64)


class GymPlayer:
    """A bandit that plays an environment of gymnasium with discrete actions.

    If an observation has a row for every action, these are the arms. If it is a vector with bounds,
    every action has its own coefficients for it, and an intercept. `family` says what rewards are:
    Bernoulli for those between 0 and 1.
    """

    def __init__(
        self,
        env: Any,
        policy: type[RowPolicy] | RowPolicy = AutoDOMD,
        family: Family | None = None,
    ) -> None:
        seen, actions = env.observation_space, env.action_space
        if not (isinstance(actions, spaces.Discrete) and isinstance(seen, spaces.Box)):
            raise ValueError(
                "a bandit plays environments with a Discrete action space and a Box of "
                f"observations, got {validate.show(actions)} and {validate.show(seen)}"
            )
        self.env, self.n_arms = env, int(actions.n)
        self._first, self._rows = int(actions.start), seen.shape[:1] == (self.n_arms,)
        self._rows = self._rows and len(seen.shape) == 2
        if not self._rows and not (len(seen.shape) == 1 and seen.is_bounded()):
            raise ValueError(
                "an observation must be a vector with bounds, or a row for every action: use "
                "gymnasium.wrappers.RescaleObservation or FlattenObservation"
            )
        dim = seen.shape[-1] if self._rows else self.n_arms * (1 + seen.shape[0])
        if isinstance(policy, type):
            policy = policy(problem=Problem(dim=dim, family=family or Bernoulli()))
        self.bandit = Bandit(policy)

    def arms(self, observation: Any) -> Floats:
        """Return the row of every action, (n_arms, dim)."""
        if self._rows:
            return np.asarray(observation, dtype=np.float64)
        low, high = (np.asarray(x, dtype=np.float64) for x in self._ends)
        x = np.append(1.0, (2.0 * np.asarray(observation) - low - high) / (high - low))
        return np.kron(np.eye(self.n_arms), x / np.sqrt(len(x)))

    @property
    def _ends(self) -> tuple[Any, Any]:
        return self.env.observation_space.low, self.env.observation_space.high

    def play(self, rounds: int, *, seed: int | None = None) -> Floats:
        """Play so many rounds, over episodes, and return their rewards."""
        rewards = np.zeros(rounds)
        observation, _ = self.env.reset(seed=seed)
        for k in range(rounds):
            X = self.arms(observation)
            arm = int(self.bandit.choose(X))
            observation, rewards[k], ended, cut, _ = self.env.step(self._first + arm)
            self.bandit.update(X[arm], rewards[k])
            if (ended or cut) and k + 1 < rounds:
                observation, _ = self.env.reset()
        return rewards
