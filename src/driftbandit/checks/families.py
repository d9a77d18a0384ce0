"""The contract of `Family` as checks.

S is how far |x'theta| reaches in what is planned: constants and draws are checked up to there, and
that nothing overflows far beyond.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftbandit.bandit import Bandit
from driftbandit.checks.recipes import check_recipe
from driftbandit.families import Family
from driftbandit.policies.auto import AutoDOMD
from driftbandit.policies.domd import DOMD
from driftbandit.problem import Problem

Floats = NDArray[np.float64]

FAR = np.array([-800.0, -40.0, 40.0, 800.0])
FINAL = "link", "range", "support", "contains"
LUCK = (np.arange(20_000) + 0.5) / 20_000  # evenly spaced: draws have almost no noise


def check_family(family: Family, S: float = 3.0) -> None:
    """Raise AssertionError that names the method if the family breaks the contract of `Family`."""
    for check in family_checks():
        with np.errstate(all="ignore"):
            check(family, S)


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
        assert owner.__module__ == Family.__module__, _said(
            family, name, "is not to be overridden: kernels go by low, high and whole"
        )


def check_methods_take_any_float(family: Family, S: float) -> None:
    """One number or an array of any shape, and never NaN or infinity."""
    grid = np.stack([_grid(S)[:4], FAR])
    for name in _methods(family):
        found: Any = np.asarray(getattr(family, name)(grid))
        assert found.shape == grid.shape, _said(
            family, name, f"gives shape {found.shape} for {grid.shape}"
        )
        assert not np.may_share_memory(found, grid), _said(family, name, "returns its argument")
        for z, value in zip(grid.flat, found.flat):
            assert np.isfinite(value), _said(family, name, f"gives {value} at z = {z:g}")
            alone = float(getattr(family, name)(float(z)))
            assert np.isclose(alone, value, rtol=1e-12), _said(
                family, name, f"gives {alone} for {z:g} alone and {value} in an array"
            )
    for name, values in zip(("mu", "dmu"), family.mu_dmu(grid)):
        expected = getattr(family, name)(grid)
        assert np.allclose(values, expected, rtol=1e-12), _said(
            family, "mu_dmu", f"gives another {name} than {name} does"
        )


def check_derivatives(family: Family, S: float) -> None:
    """Each is the slope of the one before, by central differences."""
    z, h = _grid(S), 1e-5
    names = _methods(family)
    for before, name in pairwise(names):
        f, found = getattr(family, before), np.asarray(getattr(family, name)(z))
        slope = (np.asarray(f(z + h)) - f(z - h)) / (2.0 * h)
        off = np.abs(found - slope) - 1e-5 * np.abs(slope) - 1e-7 * np.abs(f(z)).max()
        worst = int(np.argmax(off))
        assert off[worst] <= 1e-8, _said(
            family,
            name,
            f"is not the derivative of {before}: at z = {z[worst]:.3g} it gives {found[worst]:.6g}"
            f", differences give {slope[worst]:.6g}",
        )


def check_mean_rises(family: Family, S: float) -> None:
    z = _grid(S)
    assert (np.diff(family.mu(z)) > 0).all(), _said(
        family, "mu", f"does not rise on [-{S:g}, {S:g}]"
    )
    assert (np.asarray(family.dmu(z)) > 0).all(), _said(family, "dmu", "is not above 0")
    assert (np.asarray(family.dmu(FAR)) >= 0).all(), _said(family, "dmu", "is below 0 far out")


def check_slope_bounds(family: Family, S: float) -> None:
    """c_mu(S) <= mu' <= k_mu(S) on [-S, S]."""
    for reach in (0.1 * S, 0.4 * S, S):
        slopes = np.asarray(family.dmu(_grid(reach)))
        k, c = family.k_mu(reach), family.c_mu(reach)
        assert k >= slopes.max() * (1.0 - 1e-9), _said(
            family, "k_mu", f"({reach:g}) = {k:.6g}, but dmu reaches {slopes.max():.6g}"
        )
        assert 0.0 < c <= slopes.min() * (1.0 + 1e-9), _said(
            family, "c_mu", f"({reach:g}) = {c:.6g}, but dmu goes down to {slopes.min():.6g}"
        )


def check_self_concordance(family: Family, S: float) -> None:
    """|mu''| <= M mu' on [-S, S]."""
    z, M = _grid(S), family.self_concordance
    slope, bend = np.asarray(family.dmu(z)), np.abs(family.d2mu(z))
    ratio = (bend - 1e-8 * slope.max()) / slope
    assert (ratio <= M * (1.0 + 1e-6)).all(), _said(
        family, "self_concordance", f"is {M:g}, but |mu''|/mu' reaches {ratio.max():.4g}"
    )


def check_support(family: Family, S: float) -> None:
    """R bounds the rewards, and means are possible."""
    low, high, R, mean = family.low, family.high, family.R, np.asarray(family.mu(_grid(S)))
    assert low < high, _said(family, "low", f"is {low:g}, not below high = {high:g}")
    assert max(abs(low), abs(high)) <= R, _said(family, "R", f"is {R:g}: rewards reach further")
    assert ((low <= mean) & (mean <= high)).all(), _said(
        family, "mu", f"leaves [{low:g}, {high:g}], where rewards lie, on [-{S:g}, {S:g}]"
    )
    assert family.g > 0, _said(family, "g", f"is {family.g:g}, not above 0")


def check_draws(family: Family, S: float) -> None:
    """Possible rewards, one for each z and u, that rise with u: a quantile."""
    for z in np.linspace(-S, S, 5):
        draws = np.asarray(family.draw(np.full(LUCK.size, z), LUCK))
        assert draws.shape == LUCK.shape, _said(family, "draw", f"gives shape {draws.shape}")
        possible = np.asarray(family.contains(draws))
        assert possible.all(), _said(
            family, "draw", f"gives {draws[~possible][:1]}, but rewards are {family.support}"
        )
        assert (np.diff(draws) >= 0).all(), _said(family, "draw", "does not rise with u")
        alone = float(family.draw(float(z), 0.3))
        assert alone == float(np.asarray(family.draw(np.array([z]), np.array([0.3])))[0]), _said(
            family, "draw", "differs for one number and for an array"
        )


def check_moments(family: Family, S: float) -> None:
    """Draws have mean mu and variance g mu', or at most that for a quasi-likelihood."""
    for z in np.linspace(-S, S, 7):
        draws = np.asarray(family.draw(np.full(LUCK.size, z), LUCK))
        mean, spread = float(family.mu(z)), float(family.g * family.dmu(z))
        assert abs(draws.mean() - mean) <= 0.01 * np.sqrt(spread) + 2.0 / LUCK.size, _said(
            family, "draw", f"has mean {draws.mean():.5g} at z = {z:.3g}, mu says {mean:.5g}"
        )
        slack = 0.05 * spread + 2.0 / LUCK.size
        assert draws.var() <= spread + slack, _said(
            family, "g", f"is too small: {_spreads(z, draws, spread)}"
        )
        assert family.quasi or draws.var() >= spread - slack, _said(
            family, "g", f"is too large: {_spreads(z, draws, spread)}; or set quasi = True"
        )


def check_tails(family: Family, S: float) -> None:
    """log E e^(s r) <= (m(z + g s) - m(z)) / g: all that the theorems use of the likelihood."""
    g = family.g
    for z in np.linspace(-S, S, 7) if "m" in _methods(family) else ():
        draws = np.asarray(family.draw(np.full(LUCK.size, z), LUCK))
        for move in (-2.0 * S, -S, -0.5, -0.1, 0.1, 0.5, S, 2.0 * S):
            exponents = move / g * draws
            top = exponents.max()
            found = top + np.log(np.exp(exponents - top).mean())
            most = float(family.m(z + move) - family.m(z)) / g
            where = f"at z = {z:.3g}, s = {move / g:.3g}: {found:.4g} > {most:.4g}"
            assert found <= most + 0.02 * (1.0 + abs(most)), _said(
                family, "m", f"does not bound log E e^(s r) {where}; raise g, or correct m"
            )


def check_compiled(family: Family, S: float) -> None:
    """What kernels call gives the same numbers."""
    names, given = ("m", "mu", "dmu"), family.compiled()
    for name, function in zip(names, given or ()):
        for z in [*_grid(S), *FAR]:
            found, expected = float(function(float(z))), float(getattr(family, name)(float(z)))
            assert np.isclose(found, expected, rtol=1e-9, atol=1e-14), _said(
                family, "compiled", f"gives {name}({z:.4g}) = {found}, the method {expected}"
            )


def check_learners(family: Family, S: float) -> None:
    """DOMD, and AutoDOMD where there is m, learn from its draws."""
    rng, problem = np.random.default_rng(0), Problem(dim=3, family=family, radius=S)
    for kind in (DOMD, AutoDOMD)[: 1 + ("m" in _methods(family))]:
        bandit: Any = Bandit(kind(problem=problem))
        for u in rng.random(30):
            x = rng.standard_normal(3)
            x /= np.linalg.norm(x)
            bandit.update(x, float(family.draw(S * x[0], u)))
        assert np.isfinite(bandit.theta).all()
        assert bandit.theta @ bandit.theta <= S * S


def _grid(S: float) -> Floats:
    return np.linspace(-S, S, 201)


def _methods(family: Family) -> tuple[str, ...]:
    """Those that are given; m is optional."""
    return ("m", "mu", "dmu", "d2mu")[int(type(family).m is Family.m) :]


def _spreads(z: float, draws: Floats, spread: float) -> str:
    return f"at z = {z:.3g} draws have variance {draws.var():.5g}, g mu' is {spread:.5g}"


def _said(family: Family, name: str, what: str) -> str:
    return f"{type(family).__name__}.{name} {what}"
