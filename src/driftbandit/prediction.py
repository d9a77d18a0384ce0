"""Predictions: mean rewards of arms, with intervals."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from driftbandit import validate
from driftbandit.policies.base import Floats, Policy


class Prediction(NamedTuple):
    """Mean reward of every arm and the interval around it."""

    mean: Floats
    lower: Floats
    upper: Floats


def predictions(policy: Policy, memory: Any, arms: Floats, level: Any) -> Prediction:
    """Of n learners, each (n, N), for arms (n, N, d); the interval is the policy's own, or a
    Gaussian one of this `level`."""
    width: Any = None if level is None else _quantile(level)
    if not hasattr(memory, "H"):
        raise ValueError(f"{policy.name} keeps no estimate to predict from: use DOMD")
    family, mean = policy.problem.family, (arms @ memory.theta[:, :, None])[..., 0]
    if width is not None:
        width = width * _deviation(policy, memory, arms)
    else:
        center, width, _ = policy.scores(memory, arms)
        if policy.on_reward_scale:
            return _allowed(policy, center, center - width, center + width)
    return _allowed(policy, family.mu(mean), family.mu(mean - width), family.mu(mean + width))


def bonuses(policy: Policy, memory: Any, arms: Floats) -> Floats | None:
    """Return what the policy adds to x'theta of every arm to explore, (n, N); None if it ranks on
    the scale of rewards or keeps no estimate."""
    if policy.on_reward_scale or not hasattr(memory, "H"):
        return None
    return policy.scores(memory, arms)[1]


def _quantile(level: Any) -> float:
    clean = validate.number("level", level, "coverage, below 1")
    if not 0.0 < clean < 1.0:
        raise ValueError(f"level must be between 0 and 1, such as 0.95, got {clean}")
    from statistics import NormalDist  # several milliseconds that few need

    return NormalDist().inv_cdf(0.5 + 0.5 * clean)


def _deviation(policy: Policy, memory: Any, arms: Floats) -> Floats:
    found = policy.deviation(memory, arms)
    if found is None:
        raise ValueError(f"{policy.name} has no deviation: drop level, or use DOMD")
    return found


def _allowed(policy: Policy, *prediction: Floats) -> Prediction:
    """No reward, so no mean reward, is outside the family's range."""
    link = policy.problem.family.link
    return Prediction(*np.clip(prediction, link.low, link.high))
