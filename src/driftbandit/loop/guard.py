"""The guard of a loop: when the live policy must stand aside, and what promotions must not harm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from driftbandit import validate
from driftbandit.loop.deciding.request import text
from driftbandit.recipe import Recipe
from driftbandit.reward import Reward

LEVEL = 0.95


@dataclass(frozen=True, kw_only=True)
class Guard(Recipe):
    """Watches the live policy against the default, and metrics of all candidates.

    Once the live policy is worse than the default with confidence `level`, the default is played,
    until somebody promotes again. `metrics` are secondary metrics by name, such as
    {"complaints": Reward(0, 1, goal="min", wait="30min", missing=0)}: nobody is promoted who is
    worse in one of them with confidence `level`. A metric counts when it is recorded before its
    decision is trained; `wait` is that of the loop's reward, or left out.
    """

    level: float = LEVEL
    metrics: Mapping[str, Reward] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, metric in self.metrics.items():
            text("a metric's name", name)
            if not isinstance(metric, Reward):
                raise ValueError(
                    f"metric {name!r} needs its range, such as Reward(0, 1, goal='min'), got "
                    f"{validate.show(metric)}"
                )
        self._set(level=confidence(self.level), metrics=MappingProxyType(dict(self.metrics)))

    def check_wait(self, reward: Reward) -> None:
        """Metrics are known when their decision is trained, no sooner and no later."""
        for name, metric in self.metrics.items():
            if metric.wait not in (0.0, reward.wait):
                raise ValueError(
                    f"metric {name!r} waits for {metric.wait:g} s and its decisions for "
                    f"{reward.wait:g} s: declare the same wait for both"
                )


def confidence(level: float) -> float:
    """A level below 1."""
    return validate.interval("level", level, "confidence, below 1", low=0.0, high=1.0 - 1e-9)
