"""The contract of `Family` as checks.

S is how far |x'theta| reaches in what is planned: constants and draws are checked up to there, and
that nothing overflows far beyond.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from driftbandit.bandit import Bandit
from driftbandit.checks.recipes import check_recipe, run_checks
from driftbandit.checks.rewards import (
    check_draws,
    check_moments,
    check_support,
    check_tails,
    grid,
    methods,
    said,
)
from driftbandit.families import Family
from driftbandit.policies.auto import AutoDOMD
from driftbandit.policies.domd import DOMD
from driftbandit.problem import Problem

FAR = np.array([-800.0, -40.0, 40.0, 800.0])
FINAL = "link", "range", "support", "contains"


def check_family(family: Family, S: float = 3.0) -> None:
    """Raise AssertionError that names the method if the family breaks the contract of `Family`."""
    with np.errstate(all="ignore"):
        run_checks(family_checks(), family, S)


def family_checks() -> tuple[Callable[[Family, float], None], ...]:
    """Every check of a family, to run one by one."""
    return (
        check_family_recipe,
        check_methods_take_any_float,
        check_derivatives,
        check_mean_rises,
        check_slope_bounds,
        check_self_concordance,
        check_support,
        check_draws,
        check_moments,
        check_tails,
        check_compiled,
        check_learners,
    )


def check_family_recipe(family: Family, S: float) -> None:
    """Printable, hashable, the same after JSON and pickle, and decided by what kernels see."""
    check_recipe(family)
    for name in FINAL:
        owner = next(kind for kind in type(family).__mro__ if name in vars(kind))
        assert owner.__module__ == Family.__module__, said(
            family, name, "is not to be overridden: kernels go by low, high and whole"
        )


def check_methods_take_any_float(family: Family, S: float) -> None:
    """One number or an array of any shape, and never NaN or infinity."""
    points = np.stack([grid(S)[:4], FAR])
    for name in methods(family):
        found: Any = np.asarray(getattr(family, name)(points))
        assert found.shape == points.shape, said(
            family, name, f"gives shape {found.shape} for {points.shape}"
        )
        assert not np.may_share_memory(found, points), said(family, name, "returns its argument")
        for z, value in zip(points.flat, found.flat):
            assert np.isfinite(value), said(family, name, f"gives {value} at z = {z:g}")
            alone = float(getattr(family, name)(float(z)))
            assert np.isclose(alone, value, rtol=1e-12), said(
                family, name, f"gives {alone} for {z:g} alone and {value} in an array"
            )
    for name, values in zip(("mu", "dmu"), family.mu_dmu(points)):
        expected = getattr(family, name)(points)
        assert np.allclose(values, expected, rtol=1e-12), said(
            family, "mu_dmu", f"gives another {name} than {name} does"
        )


def check_derivatives(family: Family, S: float) -> None:
    """Each is the slope of the one before, by central differences."""
    z, h = grid(S), 1e-5
    names = methods(family)
    for before, name in pairwise(names):
        f, found = getattr(family, before), np.asarray(getattr(family, name)(z))
        slope = (np.asarray(f(z + h)) - f(z - h)) / (2.0 * h)
        off = np.abs(found - slope) - 1e-5 * np.abs(slope) - 1e-7 * np.abs(f(z)).max()
        worst = int(np.argmax(off))
        assert off[worst] <= 1e-8, said(
            family,
            name,
            f"is not the derivative of {before}: at z = {z[worst]:.3g} it gives {found[worst]:.6g}"
            f", differences give {slope[worst]:.6g}",
        )


def check_mean_rises(family: Family, S: float) -> None:
    z = grid(S)
    assert (np.diff(family.mu(z)) > 0).all(), said(
        family, "mu", f"does not rise on [-{S:g}, {S:g}]"
    )
    assert (np.asarray(family.dmu(z)) > 0).all(), said(family, "dmu", "is not above 0")
    assert (np.asarray(family.dmu(FAR)) >= 0).all(), said(family, "dmu", "is below 0 far out")


def check_slope_bounds(family: Family, S: float) -> None:
    """c_mu(S) <= mu' <= k_mu(S) on [-S, S]."""
    for reach in (0.1 * S, 0.4 * S, S):
        slopes = np.asarray(family.dmu(grid(reach)))
        k, c = family.k_mu(reach), family.c_mu(reach)
        assert k >= slopes.max() * (1.0 - 1e-9), said(
            family, "k_mu", f"({reach:g}) = {k:.6g}, but dmu reaches {slopes.max():.6g}"
        )
        assert 0.0 < c <= slopes.min() * (1.0 + 1e-9), said(
            family, "c_mu", f"({reach:g}) = {c:.6g}, but dmu goes down to {slopes.min():.6g}"
        )


def check_self_concordance(family: Family, S: float) -> None:
    """|mu''| <= M mu' on [-S, S]."""
    z, M = grid(S), family.self_concordance
    slope, bend = np.asarray(family.dmu(z)), np.abs(family.d2mu(z))
    ratio = (bend - 1e-8 * slope.max()) / slope
    assert (ratio <= M * (1.0 + 1e-6)).all(), said(
        family, "self_concordance", f"is {M:g}, but |mu''|/mu' reaches {ratio.max():.4g}"
    )


def check_compiled(family: Family, S: float) -> None:
    """What kernels call gives the same numbers."""
    names, given = ("m", "mu", "dmu"), family.compiled()
    for name, function in zip(names, given or ()):
        for z in [*grid(S), *FAR]:
            found, expected = float(function(float(z))), float(getattr(family, name)(float(z)))
            assert np.isclose(found, expected, rtol=1e-9, atol=1e-14), said(
                family, "compiled", f"gives {name}({z:.4g}) = {found}, the method {expected}"
            )


def check_learners(family: Family, S: float) -> None:
    """DOMD, and AutoDOMD where there is m, learn from its draws."""
    rng, problem = np.random.default_rng(0), Problem(dim=3, family=family, radius=S)
    for kind in (DOMD, AutoDOMD)[: 1 + ("m" in methods(family))]:
        bandit: Any = Bandit(kind(problem=problem))
        for u in rng.random(30):
            x = rng.standard_normal(3)
            x /= np.linalg.norm(x)
            bandit.update(x, float(family.draw(S * x[0], u)))
        assert np.isfinite(bandit.theta).all()
        assert bandit.theta @ bandit.theta <= S * S
