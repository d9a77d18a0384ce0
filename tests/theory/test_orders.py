"""Regret orders of Table 1: exponents as the catalogue prints them, cases as Remark B.1 asks."""

import math
import re
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from driftbandit import Circle, Problem, theory
from driftbandit.policies.catalogue import CATALOGUE
from driftbandit.theory import orders
from odd import ODD, Odd, P, T, c, close, d, k

SETTINGS = [(setting, name) for setting, methods in orders.TABLE_1.items() for name in methods]
# Regrets as the catalogue prints them, one for each setting
PRINTED = {
    ("drifting", "RestartGLB"): "c^-1 d^2/3 P^1/3 T^2/3",
    ("drifting", "BVD-GLM-UCB"): "c^-1 d^9/10 P^1/5 T^4/5",
    ("drifting", "MASTER + GLM-UCB"): "c^-1 d P^1/3 T^2/3",
    ("drifting", "GLB-WeightUCB"): "c^-3/4 d^3/4 P^1/4 T^3/4",
    ("drifting", "SCB-WeightUCB"): "c^-1/2 d^3/4 P^1/4 T^3/4",
    ("drifting", "DOMD-GLB"): "c^-1/2 d^3/4 P^1/4 T^3/4",
    ("piecewise", "D-GLUCB"): "c^-1 d^2/3 Gamma^1/3 T^2/3",
    ("piecewise", "MASTER + GLM-UCB"): "c^-1 d sqrt(Gamma T)",
    ("piecewise", "SC-D-GLUCB"): "c^-1/3 d^2/3 Gamma^1/3 T^2/3",
    ("piecewise", "SCB-PW-WeightUCB"): "d^2/3 Gamma^1/3 T^2/3",
    ("piecewise", "DOMD-GLB"): "c^-1/3 d^2/3 Gamma^1/3 T^2/3",
}
WHOLE = {
    "AutoDOMD": "no theorem",
    "BOBDOMD": "c^-1/2 d^1/2 T^3/4, and on top DOMD's for drift or for jumps",
    "GLBOMD": "stationary: d sqrt(T / kappa*)",
    "GLOC": "stationary: c^-1 d sqrt(T)",
    "GLMUCB": "stationary: c^-1 d sqrt(T)",
    "SWGLUCB": "jumps: c^-1 d^2/3 Gamma^1/3 T^2/3",
    "SCSWGLUCB": "jumps: c^-1/3 d^2/3 Gamma^1/3 T^2/3",
    "LinUCB": "stationary: d sqrt(T), linear",
    "LBWeightUCB": "drift: d^3/4 P^1/4 T^3/4, linear",
    "DLinUCB": "drift: d^3/4 P^1/4 T^3/4, linear (corrected)",
    "SWLinUCB": "drift: d^7/8 P^1/4 T^3/4, linear (corrected)",
    "DLinTS": "drift: d^7/8 P^1/4 T^3/4 sqrt(log K), linear (corrected)",
    "DRandLinUCB": "drift: d^7/8 P^1/4 T^3/4, linear (corrected)",
    "WSBLinUCB": "drift: d^3/4 P^1/4 T^3/4, linear",
    "WSBLinTS": "drift: as its least-squares peers, linear",
    "WSBRandLinUCB": "drift: as its least-squares peers, linear",
    "DGLMTS": "no theorem with a discount",
    "SWGLMTS": "no theorem with a window",
    "IDS": "no theorem with a discount",
    "DAL": "jumps: d sqrt(Gamma T) over an optimal base",
    "RestartedWeightedOFUL": "drift: d^7/8 (P V)^1/4 T^1/2 + d^5/6 P^1/3 T^2/3, "
    "V total variance, linear",
    "RestartedSAVE": "drift: d^4/5 V^2/5 P^1/5 T^2/5 + d^2/3 P^1/3 T^2/3, V total variance, linear",
    "DynamicLinUCB": "jumps: Gamma sqrt(T / Gamma), if changes are far apart and large, linear",
    "LARL": "sublinear if the state has little noise",
    "Greedy": "T",
    "Uniform": "T",
    "Oracle": "0",
}
NAMES = {
    "DOMD": "DOMD-GLB",
    "RestartGLB": "RestartGLB",
    "MASTER": "MASTER + GLM-UCB",
    "BVDGLMUCB": "BVD-GLM-UCB",
    "GLBWeightUCB": "GLB-WeightUCB",
    "SCBWeightUCB": "SCB-WeightUCB",
    "DGLUCB": "D-GLUCB",
    "SCDGLUCB": "SC-D-GLUCB",
    "SCBPWWeightUCB": "SCB-PW-WeightUCB",
}


def test_the_catalogue_prints_exactly_these_regrets():
    words = {"drifting": "drift: ", "piecewise": "jumps: "}
    for entry in CATALOGUE:
        kind = entry.policy.__name__
        if kind in WHOLE:
            assert entry.regret == WHOLE[kind]
            continue
        parts = [words[s] + PRINTED[s, n] for s, n in SETTINGS if n == NAMES[kind]]
        assert entry.regret == "; ".join(parts) + (" (claimed)" if kind == "RestartGLB" else "")
    assert len(CATALOGUE) == len(WHOLE) + len(NAMES)


def exponents(printed):
    """c^-1 d^2/3 P^1/3 T^2/3 as numbers by letter."""
    found = {"c": 0.0, "d": 0.0, "P": 0.0, "Gamma": 0.0, "T": 0.0}
    for letter, power in re.findall(r"\b(c|d|P|Gamma|T)(?:\^(-?[\d/]+))?", printed):
        found[letter] = float(Fraction(power)) if power else 1.0
    if "sqrt(Gamma T)" in printed:
        found |= {"Gamma": 0.5, "T": 0.5}
    return found


def problem(c=0.01, d=20, P=40.0, Gamma=30, T=10**6, k=1.0):
    family = Odd(c=c, k=k)
    known = {"horizon": T, "path_length": P, "change_points": Gamma}
    return Problem(dim=d, family=family, radius=1.0, **known)


@pytest.mark.parametrize(("setting", "name"), SETTINGS)
def test_orders_have_the_exponents_that_are_printed(setting, name):
    """Log-log slopes, each letter doubled; k = 1, which Table 1 leaves out."""
    order = orders.TABLE_1[setting][name]
    base = {"c": 0.01, "d": 20, "P": 40.0, "Gamma": 30_000, "T": 10**8}
    here = order(problem(**base))
    assert here.case in ("interior", "-")
    for letter, power in exponents(PRINTED[setting, name]).items():
        there = order(problem(**(base | {letter: 2 * base[letter]})))
        slope = math.log2(there.value / here.value)
        assert slope == pytest.approx(power, abs=1e-4), letter


def terms(u, explore, drift, power):
    return explore * d * math.sqrt(T), explore * d * T * math.sqrt(u), drift * u**-power


G = 4
BY_HAND = {
    orders.restart_glb: ((P / (d * T)) ** (2 / 3), k / c, k / c * P, 1),
    orders.bvd_glm_ucb: ((P / (d**0.5 * T)) ** 0.4, k**2 / c, k**2 / c * d**0.5 * P, 2),
    orders.glb_weight_ucb: (math.sqrt(k * c * P / (d * T)), k / c, k**2 * P, 1.5),
    orders.scb_weight_ucb: (math.sqrt(k * P / (d * T)), k / c**0.5, k**2 / c**0.5 * P, 1.5),
    orders.d_glucb: ((G / (d * T)) ** (2 / 3), k / c, G, 1),
    orders.sc_d_glucb: ((c**0.5 * G / (d * T)) ** (2 / 3), k / c**0.5, G, 1),
    orders.scb_pw_weight_ucb: ((G / (d * T)) ** (2 / 3), 1, G, 1),
}


@pytest.mark.parametrize("order", BY_HAND, ids=lambda f: f.__name__)
def test_the_interior_order_is_the_largest_term_at_the_tuned_rate(order):
    u, *numbers = BY_HAND[order]
    found = order(ODD)
    assert found.case == "interior"
    assert found.value == close(max(terms(u, *numbers)))


def test_readings_of_two_rivals():
    u = d**-0.25 * math.sqrt((1 + P) / T)
    corrected = max(terms(u, k / c, k / c * math.sqrt(d) * P, 1.5))
    assert orders.restart_glb(ODD, "corrected").value == close(corrected)
    u = (P / (d * T)) ** (2 / 3)
    quoted = max(terms(u, k**2 / c, k**2 / c * P, 1))
    assert orders.bvd_glm_ucb(ODD, "quoted").value == close(quoted)


def test_master_has_the_larger_of_its_terms_and_no_case():
    factor = k / c * d
    drift = orders.master_drifting(ODD)
    assert drift == (close(factor * P ** (1 / 3) * T ** (2 / 3)), "-")
    still = replace(ODD, path_length=0.0, change_points=0)
    assert orders.master_drifting(still).value == close(factor * math.sqrt(T))
    assert orders.master_piecewise(ODD) == (close(factor * math.sqrt(5 * T)), "-")
    assert orders.master_piecewise(still).value == close(factor * math.sqrt(T))


EXPLORE = {order: numbers[1] for order, numbers in BY_HAND.items()}
DRIFT = {order: numbers[2:] for order, numbers in BY_HAND.items()}


@pytest.mark.parametrize("order", BY_HAND, ids=lambda f: f.__name__)
def test_a_world_that_stands_still_costs_its_exploration(order):
    found = order(replace(ODD, path_length=0.0, change_points=0))
    assert found == (close(EXPLORE[order] * d * math.sqrt(T)), "calm")


def test_one_change_in_a_short_world_costs_more_than_exploring_where_tuning_forgets_k():
    """SC-D-GLUCB's tuning has no k: its u is below 1/T = 1/100, and Gamma T is the larger term."""
    short = problem(c=0.2, d=5, Gamma=1, T=100, k=0.25)
    assert orders.sc_d_glucb(short) == (close(100.0), "calm")
    assert 0.25 / math.sqrt(0.2) * 5 * 10 < 100


@pytest.mark.parametrize("order", BY_HAND, ids=lambda f: f.__name__)
def test_beyond_the_last_rate_the_order_is_linear_or_that_of_the_drift(order):
    """P and Gamma a million times larger; the latter is not possible, but the formula says it."""
    found = order(replace(ODD, path_length=1e6 * 2.1, change_points=4 * 10**6))
    drift = 1e6 * DRIFT[order][0]
    assert found.case == "restless"
    assert found.value == close(max(drift, EXPLORE[order] * d * T))


@pytest.mark.parametrize("order", BY_HAND, ids=lambda f: f.__name__)
def test_orders_are_continuous_in_how_much_the_world_moves(order):
    """No jump between the cases, whether or not tuning balances the terms."""
    scales = np.geomspace(1e-7, 1e7, 3000)
    values = [
        order(replace(ODD, path_length=2.1 * x, change_points=int(max(1, 4 * x)))).value
        for x in scales
    ]
    if "glucb" in order.__name__ or "pw" in order.__name__:
        values = values[1600:]  # whole numbers of changes, close enough to each other
    ratios = np.array(values[1:]) / np.array(values[:-1])
    assert ratios.min() > 0.999
    assert ratios.max() < 1.1


def test_domds_theorems_are_the_same_scheme():
    """Theorems 2 and 3 are the clipped bound with their own factors."""
    factor = k / math.sqrt(c)
    for scale in (0.0, 1.0):
        world = replace(ODD, path_length=2.1 * scale, change_points=int(4 * scale))
        u2, u3 = theory.forgetting_drifting(world), theory.forgetting_piecewise(world)
        drift = orders.Bound(factor, factor * math.sqrt(k) * P * scale, 1.5, u2)
        jumps = orders.Bound(factor, 4.0 * scale, 1.0, u3)
        assert orders.domd_drifting(world).value == close(orders.clipped(world, drift).value)
        assert orders.domd_drifting(world).case == orders.clipped(world, drift).case
        assert orders.domd_piecewise(world).value == close(orders.clipped(world, jumps).value)
        assert orders.domd_piecewise(world).case == orders.clipped(world, jumps).case


def test_the_table_has_what_is_known():
    both = theory.table_1(ODD)
    assert [list(both[s]) for s in both] == [list(m) for m in orders.TABLE_1.values()]
    assert both["drifting"]["SCB-WeightUCB"] == orders.scb_weight_ucb(ODD)
    assert list(theory.table_1(replace(ODD, path_length=None))) == ["piecewise"]
    assert list(theory.table_1(replace(ODD, change_points=None))) == ["drifting"]
    with pytest.raises(ValueError, match="path_length or change_points"):
        theory.table_1(replace(ODD, path_length=None, change_points=None))
    with pytest.raises(ValueError, match="horizon"):
        theory.table_1(replace(ODD, horizon=None))


def test_the_figure_has_a_line_for_each_method():
    from matplotlib.figure import Figure

    horizons = [10, 100, 1000]
    figure = theory.plot_table_1(ODD, horizons, Figure())
    for ax, setting in zip(figure.axes, orders.TABLE_1):
        names = [*orders.TABLE_1[setting], "T"]
        assert [line.get_label() for line in ax.lines] == names
        assert list(ax.lines[-1].get_ydata()) == horizons
        first = [theory.table_1(replace(ODD, horizon=n))[setting][names[0]].value for n in horizons]
        assert list(ax.lines[0].get_ydata()) == first
        assert ax.get_title() == setting
    alone = theory.plot_table_1(Circle().problem, horizons, Figure())
    assert len(alone.axes) == 1
