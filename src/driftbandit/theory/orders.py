"""Regret orders of Table 1 for a given problem, clipped as Remark B.1 asks, and their figure.

A method that forgets at the rate u = 1 - gamma, 1/window or 1/period has a bound of the form

    explore d sqrt(T)  +  explore d T sqrt(u)  +  drift u^(-power),

for every u in [1/T, 1 - 1/T]. Tuning sets u where the last two balance, and Remark B.1 points out
that this u must be clipped to the interval. So every order has three cases, as Theorems 2 and 3
have, though the papers print the middle one only. Logarithms and S are left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from driftbandit.problem import Problem
from driftbandit.theory.bounds import order_drifting, order_piecewise
from driftbandit.theory.domd import (
    case,
    forgetting_drifting,
    forgetting_piecewise,
    path_length,
)
from driftbandit.theory.drawing import LABELS

WHY = "the regret order"
DRIFTS, JUMPS = "drifting", "piecewise"


class Order(NamedTuple):
    """The order of a method's regret, and which of the three cases it is."""

    value: float
    case: str  # calm, interior or restless; "-" for MASTER, which tunes nothing


class Bound(NamedTuple):
    """explore d sqrt(T) + explore d T sqrt(u) + drift u^(-power), and the tuned u, unclipped."""

    explore: float
    drift: float
    power: float
    forgetting: float


def clipped(problem: Problem, bound: Bound) -> Order:
    """The largest term of a bound at its tuned u, clipped to [1/T, 1].

    The upper end is 1 - 1/T in Remark B.1, which is the same order. Where the tuning balances the
    terms, the calm order is explore d sqrt(T), and the restless one is the drift.
    """
    T = problem.known("horizon", WHY)
    u = min(max(bound.forgetting, 1.0 / T), 1.0)
    explored = bound.explore * problem.dim * T * math.sqrt(u)
    return Order(max(explored, bound.drift * u**-bound.power), case(bound.forgetting, T))


def restart_glb(problem: Problem, reading: str = "claimed") -> Order:
    """(k/c) (d T u^{1/2} + P/u) at u = (P/(d T))^{2/3}: (k/c) d^{2/3} P^{1/3} T^{2/3}, as claimed.

    "corrected": (k/c) (d T u^{1/2} + d^{1/2} P u^{-3/2}) at u = d^{-1/4} sqrt((1 + P)/T), which is
    (k/c) d^{7/8} P^{1/4} T^{3/4}.
    """
    d, P, T, factor = *_drifting(problem), problem.k_mu / problem.c_mu
    if reading == "corrected":
        u = d**-0.25 * math.sqrt((1.0 + P) / T)
        return clipped(problem, Bound(factor, factor * math.sqrt(d) * P, 1.5, u))
    return clipped(problem, Bound(factor, factor * P, 1.0, (P / (d * T)) ** (2.0 / 3.0)))


def bvd_glm_ucb(problem: Problem, reading: str = "original") -> Order:
    """(k^2/c) (d T u^{1/2} + d^{1/2} P u^{-2}) at u = (P/(sqrt(d) T))^{2/5}:
    (k^2/c) d^{9/10} P^{1/5} T^{4/5}.

    "quoted", which its paper proves for orthogonal arms: (k^2/c) (d T u^{1/2} + P/u) at
    u = (P/(d T))^{2/3}, as Remark B.1 has it: (k^2/c) d^{2/3} P^{1/3} T^{2/3}.
    """
    d, P, T, factor = *_drifting(problem), problem.k_mu**2 / problem.c_mu
    if reading == "quoted":
        return clipped(problem, Bound(factor, factor * P, 1.0, (P / (d * T)) ** (2.0 / 3.0)))
    u = (P / (math.sqrt(d) * T)) ** 0.4
    return clipped(problem, Bound(factor, factor * math.sqrt(d) * P, 2.0, u))


def glb_weight_ucb(problem: Problem) -> Order:
    """(k/c) d T u^{1/2} + k^2 P u^{-3/2} at u = sqrt(k c P/(d T)):
    k^{5/4} c^{-3/4} d^{3/4} P^{1/4} T^{3/4}."""
    d, P, T, k, c = *_drifting(problem), problem.k_mu, problem.c_mu
    return clipped(problem, Bound(k / c, k**2 * P, 1.5, math.sqrt(k * c * P / (d * T))))


def scb_weight_ucb(problem: Problem) -> Order:
    """(k/sqrt(c)) (d T u^{1/2} + k P u^{-3/2}) at u = sqrt(k P/(d T)):
    k^{5/4} c^{-1/2} d^{3/4} P^{1/4} T^{3/4}."""
    d, P, T, k, c = *_drifting(problem), problem.k_mu, problem.c_mu
    factor = k / math.sqrt(c)
    return clipped(problem, Bound(factor, factor * k * P, 1.5, math.sqrt(k * P / (d * T))))


def domd_drifting(problem: Problem) -> Order:
    """Theorem 2: k^{9/8} c^{-1/2} d^{3/4} P^{1/4} T^{3/4}."""
    T = problem.known("horizon", WHY)
    return Order(order_drifting(problem), case(forgetting_drifting(problem), T))


def master_drifting(problem: Problem) -> Order:
    """(k/c) d (sqrt(T) + P^{1/3} T^{2/3}), the larger of the two: there is nothing to clip."""
    d, P, T = _drifting(problem)
    return Order(problem.k_mu / problem.c_mu * d * max(T**0.5, P ** (1 / 3) * T ** (2 / 3)), "-")


def d_glucb(problem: Problem) -> Order:
    """(k/c) d T u^{1/2} + Gamma/u at u = (Gamma/(d T))^{2/3}: (k/c) d^{2/3} Gamma^{1/3} T^{2/3}."""
    d, G, T = _piecewise(problem)
    factor = problem.k_mu / problem.c_mu
    return clipped(problem, Bound(factor, G, 1.0, (G / (d * T)) ** (2.0 / 3.0)))


def sc_d_glucb(problem: Problem) -> Order:
    """(k/sqrt(c)) d T u^{1/2} + Gamma/u at u = (sqrt(c) Gamma/(d T))^{2/3}:
    c^{-1/3} d^{2/3} Gamma^{1/3} T^{2/3}."""
    d, G, T = _piecewise(problem)
    root = math.sqrt(problem.c_mu)
    u = (root * G / (d * T)) ** (2.0 / 3.0)
    return clipped(problem, Bound(problem.k_mu / root, G, 1.0, u))


def scb_pw_weight_ucb(problem: Problem) -> Order:
    """d T u^{1/2} + Gamma/u at u = (Gamma/(d T))^{2/3}: d^{2/3} Gamma^{1/3} T^{2/3}, without c."""
    d, G, T = _piecewise(problem)
    return clipped(problem, Bound(1.0, G, 1.0, (G / (d * T)) ** (2.0 / 3.0)))


def domd_piecewise(problem: Problem) -> Order:
    """Theorem 3: k^{2/3} c^{-1/3} d^{2/3} Gamma^{1/3} T^{2/3}."""
    T = problem.known("horizon", WHY)
    return Order(order_piecewise(problem), case(forgetting_piecewise(problem), T))


def master_piecewise(problem: Problem) -> Order:
    """(k/c) d sqrt((1 + Gamma) T), counting the pieces."""
    d, G, T = _piecewise(problem)
    return Order(problem.k_mu / problem.c_mu * d * math.sqrt((1.0 + G) * T), "-")


TABLE_1: dict[str, dict[str, Callable[[Problem], Order]]] = {
    DRIFTS: {
        "RestartGLB": restart_glb,
        "BVD-GLM-UCB": bvd_glm_ucb,
        "MASTER + GLM-UCB": master_drifting,
        "GLB-WeightUCB": glb_weight_ucb,
        "SCB-WeightUCB": scb_weight_ucb,
        "DOMD-GLB": domd_drifting,
    },
    JUMPS: {
        "D-GLUCB": d_glucb,
        "MASTER + GLM-UCB": master_piecewise,
        "SC-D-GLUCB": sc_d_glucb,
        "SCB-PW-WeightUCB": scb_pw_weight_ucb,
        "DOMD-GLB": domd_piecewise,
    },
}


def table_1(problem: Problem) -> dict[str, dict[str, Order]]:
    """Table 1 in numbers: for drift where `path_length` is known, and for jumps where
    `change_points` is.

    >>> problem = Problem(dim=5, radius=1.0, horizon=5000, path_length=6.28)
    >>> order = table_1(problem)["drifting"]["DOMD-GLB"]
    >>> round(order.value), order.case
    (1492, 'interior')
    """
    known = {DRIFTS: problem.path_length, JUMPS: problem.change_points}
    if all(value is None for value in known.values()):
        raise ValueError(
            f"{WHY} needs path_length or change_points: pass Problem(..., path_length=...)"
        )
    return {
        setting: {name: order(problem) for name, order in methods.items()}
        for setting, methods in TABLE_1.items()
        if known[setting] is not None
    }


def plot_table_1(problem: Problem, horizons: Sequence[int], figure: Any = None) -> Any:
    """Orders against T, a panel for each setting, next to the T that no regret can exceed; what is
    known of the problem besides T stays as it is."""
    import matplotlib.pyplot as plt

    made = {T: table_1(replace(problem, horizon=T)) for T in horizons}
    settings = list(next(iter(made.values())))
    figure = figure or plt.figure(figsize=(3.5 * len(settings), 4.0), layout="constrained")
    panels = figure.subplots(1, len(settings), squeeze=False).ravel()
    for ax, setting in zip(panels, settings):
        for name in TABLE_1[setting]:
            values = [made[T][setting][name].value for T in horizons]
            bold = {"lw": 2.2} if name == "DOMD-GLB" else {"lw": 1.0}
            ax.loglog(horizons, values, label=name, **bold)
        ax.loglog(horizons, horizons, color="0.6", ls=":", label="T")
        ax.set_title(setting, fontsize=LABELS)
        ax.set_xlabel("T", fontsize=LABELS)
        ax.legend(fontsize=LABELS, frameon=False)
        ax.tick_params(labelsize=LABELS)
    panels[0].set_ylabel("order of the regret", fontsize=LABELS)
    return figure


def _drifting(problem: Problem) -> tuple[int, float, float]:
    return problem.dim, path_length(problem, WHY), problem.known("horizon", WHY)


def _piecewise(problem: Problem) -> tuple[int, float, float]:
    return problem.dim, problem.known("change_points", WHY), problem.known("horizon", WHY)
