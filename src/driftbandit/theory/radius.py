"""beta_t of an optimistic rule, as numbers that compiled code can carry."""

from __future__ import annotations

import math
from typing import NamedTuple


class Radius(NamedTuple):
    """A radius as numbers: beta_t^2 = constant + log_round log t + log_mass log(1 + mass n_t).

    n_t = 1 + gamma + ... + gamma^{t-2} is the discounted number of past rounds.
    """

    constant: float
    log_round: float
    log_mass: float
    mass: float
    gamma: float


def discounted_count(gamma: float, t: float) -> float:
    """n_t = (1 - gamma^{t-1}) / (1 - gamma), which tends to t - 1 as gamma tends to 1."""
    if gamma == 1.0:
        return t - 1.0
    rounds = (t - 1.0) * math.log(gamma)
    return (math.expm1(rounds) if rounds > -40.0 else -1.0) / (gamma - 1.0)


def beta(radius: Radius, t: float) -> float:
    """beta_t for the round t = 1, 2, ... that is about to be played."""
    if radius.log_round == 0.0 and radius.log_mass == 0.0:
        return math.sqrt(radius.constant)
    mass = radius.mass * discounted_count(radius.gamma, t)
    square = radius.constant + radius.log_round * math.log(t) + radius.log_mass * math.log1p(mass)
    return math.sqrt(square)
