"""Checks of a family's rewards: what is possible, and that draws are what m, mu and g say."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from driftbandit.families import Family

Floats = NDArray[np.float64]

LUCK = (np.arange(20_000) + 0.5) / 20_000  # evenly spaced: draws have almost no noise


def check_support(family: Family, S: float) -> None:
    """R bounds the rewards, and means are possible."""
    low, high, R, mean = family.low, family.high, family.R, np.asarray(family.mu(grid(S)))
    assert low < high, said(family, "low", f"is {low:g}, not below high = {high:g}")
    assert max(abs(low), abs(high)) <= R, said(family, "R", f"is {R:g}: rewards reach further")
    assert ((low <= mean) & (mean <= high)).all(), said(
        family, "mu", f"leaves [{low:g}, {high:g}], where rewards lie, on [-{S:g}, {S:g}]"
    )
    assert family.g > 0, said(family, "g", f"is {family.g:g}, not above 0")


def check_draws(family: Family, S: float) -> None:
    """Possible rewards, one for each z and u, that rise with u: a quantile."""
    for z in np.linspace(-S, S, 5):
        draws = np.asarray(family.draw(np.full(LUCK.size, z), LUCK))
        assert draws.shape == LUCK.shape, said(family, "draw", f"gives shape {draws.shape}")
        possible = np.asarray(family.contains(draws))
        assert possible.all(), said(
            family, "draw", f"gives {draws[~possible][:1]}, but rewards are {family.support}"
        )
        assert (np.diff(draws) >= 0).all(), said(family, "draw", "does not rise with u")
        alone = float(family.draw(float(z), 0.3))
        assert alone == float(np.asarray(family.draw(np.array([z]), np.array([0.3])))[0]), said(
            family, "draw", "differs for one number and for an array"
        )


def check_moments(family: Family, S: float) -> None:
    """Draws have mean mu and variance g mu', or at most that for a quasi-likelihood."""
    for z in np.linspace(-S, S, 7):
        draws = np.asarray(family.draw(np.full(LUCK.size, z), LUCK))
        mean, spread = float(family.mu(z)), float(family.g * family.dmu(z))
        assert abs(draws.mean() - mean) <= 0.01 * np.sqrt(spread) + 2.0 / LUCK.size, said(
            family, "draw", f"has mean {draws.mean():.5g} at z = {z:.3g}, mu says {mean:.5g}"
        )
        slack = 0.05 * spread + 2.0 / LUCK.size
        assert draws.var() <= spread + slack, said(
            family, "g", f"is too small: {_spreads(z, draws, spread)}"
        )
        assert family.quasi or draws.var() >= spread - slack, said(
            family, "g", f"is too large: {_spreads(z, draws, spread)}; or set quasi = True"
        )


def check_tails(family: Family, S: float) -> None:
    """log E e^(s r) <= (m(z + g s) - m(z)) / g: all that the theorems use of the likelihood."""
    g = family.g
    for z in np.linspace(-S, S, 7) if "m" in methods(family) else ():
        draws = np.asarray(family.draw(np.full(LUCK.size, z), LUCK))
        for move in (-2.0 * S, -S, -0.5, -0.1, 0.1, 0.5, S, 2.0 * S):
            exponents = move / g * draws
            top = exponents.max()
            found = top + np.log(np.exp(exponents - top).mean())
            most = float(family.m(z + move) - family.m(z)) / g
            where = f"at z = {z:.3g}, s = {move / g:.3g}: {found:.4g} > {most:.4g}"
            assert found <= most + 0.02 * (1.0 + abs(most)), said(
                family, "m", f"does not bound log E e^(s r) {where}; raise g, or correct m"
            )


def _spreads(z: float, draws: Floats, spread: float) -> str:
    return f"at z = {z:.3g} draws have variance {draws.var():.5g}, g mu' is {spread:.5g}"


def grid(S: float) -> Floats:
    """Where functions are compared."""
    return np.linspace(-S, S, 201)


def methods(family: Family) -> tuple[str, ...]:
    """Those that are given; m is optional."""
    return ("m", "mu", "dmu", "d2mu")[int(type(family).m is Family.m) :]


def said(family: Family, name: str, what: str) -> str:
    """What is wrong with a method."""
    return f"{type(family).__name__}.{name} {what}"
