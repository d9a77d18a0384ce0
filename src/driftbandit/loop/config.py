"""What a loop is: declared once, and the settings that may change."""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, cast

from driftbandit import validate
from driftbandit.durations import seconds
from driftbandit.features import Features
from driftbandit.loop import time_discount as clocks
from driftbandit.loop.deciding.request import text
from driftbandit.loop.exploration import Floor, Rule
from driftbandit.loop.guard import Guard
from driftbandit.policies.auto import AutoDOMD
from driftbandit.policies.domd import DOMD
from driftbandit.policies.rows import RowPolicy
from driftbandit.recipe import Recipe
from driftbandit.reward import Reward

CLOCKS = ("wall", "events")
MODES = ("active", "apprentice")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True, kw_only=True)
class Declaration(Recipe):
    """What never changes in the life of a loop, except that its features may grow."""

    features: Features
    reward: Reward
    policy: Any = None  # a class, or a recipe for the features' problem
    half_life: Any = None
    retention: Any = None
    seed: int = 0
    clock: str = "wall"
    key: str | None = None  # what each learner belongs to, if there is one for each
    former: ClassVar[Mapping[str, str]] = {"keep": "retention"}

    def __post_init__(self) -> None:
        if not isinstance(self.features, Features):
            raise ValueError(f"features must be Features(...), got {validate.show(self.features)}")
        if not isinstance(self.reward, Reward):
            raise ValueError(f"reward must be Reward(...), got {validate.show(self.reward)}")
        if self.clock not in CLOCKS:
            raise ValueError(f"clock must be one of {CLOCKS}, got {validate.show(self.clock)}")
        if self.key is not None:
            text("key", self.key)
        self._set(
            policy=self._policy(),
            seed=validate.count("seed", self.seed, "of the loop's random choices", least=0),
            retention=None if self.retention is None else seconds(self.retention, "retention"),
        )
        if self.half_life not in (None, "auto"):
            self._set(half_life=seconds(self.half_life, "half_life"))
        self.trained  # noqa: B018  (checks `half_life`)
        if self.retention is not None and self.retention <= self.reward.wait:
            raise ValueError(
                f"retention must be longer than wait, {self.reward.wait:g} s, got "
                f"{self.retention:g} s"
            )

    def _policy(self) -> RowPolicy:
        """The policy for rows of the features."""
        problem, policy = self.features.problem(self.reward), self.policy
        if policy is None:
            policy = AutoDOMD if self.key is None else DOMD
        if isinstance(policy, type) and issubclass(policy, RowPolicy):
            policy = policy(problem=problem)
        if not isinstance(policy, RowPolicy):
            raise ValueError(
                "policy must be DOMD or AutoDOMD, or one of them made for features.problem(reward),"
                f" got {validate.show(policy)}"
            )
        if (policy.problem.dim, policy.problem.family) != (problem.dim, problem.family):
            raise ValueError(
                f"the policy was made for {policy.problem}: make it with "
                "problem=features.problem(reward)"
            )
        if self.key is not None and not isinstance(policy, DOMD):
            raise ValueError(
                "a learner for each key must be DOMD, which is small: leave policy out"
            )
        return policy

    @cached_property
    def trained(self) -> RowPolicy:
        """The policy with its memory in time, where that is asked for."""
        if self.half_life is None:
            return self.policy
        return cast(RowPolicy, clocks.timed(self.policy, self.half_life))


@dataclass(frozen=True, kw_only=True)
class Settings(Recipe):
    """How decisions are made: each change is an event."""

    exploration: Rule = field(default_factory=Floor)
    mode: str = "active"
    holdout: float = 0.0
    guard: Guard | None = None
    trials: Mapping[str, float] = field(default_factory=dict)  # shares of decisions by candidate
    former: ClassVar[Mapping[str, str]] = {"rule": "exploration"}

    def __post_init__(self) -> None:
        self._set(exploration=exploration_rule(self.exploration))
        if self.mode == "live":  # as version 0.2 stored it
            self._set(mode="active")
        if self.mode not in MODES:
            raise ValueError(f"mode must be one of {MODES}, got {validate.show(self.mode)}")
        holdout = validate.nonnegative("holdout", self.holdout, "share of keys")
        if holdout >= 1.0:
            raise ValueError(f"holdout must be below 1, such as 0.05, got {holdout:g}")
        if self.guard is not None and not isinstance(self.guard, Guard):
            raise ValueError(f"guard must be Guard(...) or False, got {validate.show(self.guard)}")
        self._set(holdout=holdout, trials=self._shares())

    @property
    def may_stand_aside(self) -> bool:
        """Whether a decision may need its default."""
        return self.mode == "apprentice" or self.holdout > 0.0 or self.guard is not None

    def _shares(self) -> dict[str, float]:
        meaning = "part of all decisions"
        shares = {k: validate.nonnegative("share", v, meaning) for k, v in self.trials.items()}
        total = math.fsum(shares.values())
        if total >= 1.0:
            raise ValueError(f"the shares of all trials must add up to less than 1, got {total:g}")
        return {name: share for name, share in shares.items() if share > 0.0}


def exploration_rule(given: Any) -> Rule:
    """Return the rule that an option says: a rule, or the share of a `Floor`."""
    if isinstance(given, Rule) and type(given) is not Rule:
        return given
    if isinstance(given, (Rule, bool)) or not isinstance(given, numbers.Real):
        raise ValueError(
            "exploration must be a share such as 0.05, or a rule such as Thompson(0.05), got "
            f"{validate.show(given)}"
        )
    return Floor(float(given))


def check_name(name: Any) -> str:
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise ValueError(
            "a loop's name is up to 64 letters, digits, '.', '_' and '-', and begins with a letter "
            f"or digit, got {validate.show(name)}"
        )
    return name
