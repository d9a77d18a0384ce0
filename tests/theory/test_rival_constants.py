"""Radii and tunings of the rivals at generic constants, each written again with plain letters."""

import math
from dataclasses import replace

import numpy as np
import pytest

from driftbandit.theory import rivals
from odd import ODD, P, S, T, c, close, d, delta, g, k, odd, span

s = span / 2  # sub-Gaussian
lam, gamma, t = 2.3, 0.9, 7


def log(x):
    return math.log(x)


def sqrt(x):
    return math.sqrt(x)


def sums(q, n):
    return sum(q**i for i in range(n))


def noise(mass, delta=delta):
    return s * sqrt(2 * log(1 / delta) + d * log(1 + mass / d))


def tail(ridge, logs, mass):
    """Self-normalised, for noise whose variance is the slope: everything per unit of g."""
    m = span / g
    steady = sqrt(ridge) / (2 * m) + 2 * m / sqrt(ridge) * (logs + d * log(2))
    return steady + d * m / sqrt(ridge) * log(1 + mass / d)


def test_pieces():
    assert rivals.geometric(gamma, 4) == close(sums(gamma, 4))
    assert rivals.geometric(1.0, 4) == 4
    np.testing.assert_allclose(rivals.geometric(0.5, np.arange(3)), [0, 1, 1.5])
    assert rivals.sub_gaussian(ODD) == close(s)
    assert rivals.curvatures(ODD) == close((k, c, 1.0))
    assert rivals.curvatures(ODD, per_dispersion=True) == close((k / g, c / g, g))
    assert rivals.noise_radius(ODD, delta=delta, mass=5.0) == close(noise(5.0))


def test_glm_ucb_and_master():
    radius = k / c * (c * sqrt(lam) * S + noise((t - 1) / lam))
    assert rivals.glm_ucb(ODD, t, lam=lam, delta=delta) == close(radius)
    logs = log(c * 900 / (lam * delta))
    base = 4 * k / c * (sqrt(d * logs) + c * sqrt(lam) * S)
    assert rivals.master_beta(ODD, lam=lam, delta=delta, horizon=900) == close(base)
    calm = 4 * k / c * c * sqrt(lam) * S
    assert rivals.master_beta(ODD, lam=lam, delta=delta, horizon=0.1) == close(calm)
    tests = 6 * (math.log2(900) + 1) * log(900 / delta) * base * sqrt(d * log(900 / delta))
    assert rivals.master_threshold(ODD, lam=lam, delta=delta, horizon=900) == close(tests)


def test_restarts():
    piecewise = (k * d * T / (c * 4)) ** (2 / 3)
    assert rivals.restart_period(ODD) == int(piecewise)
    drifting = replace(ODD, change_points=None)
    assert rivals.restart_period(drifting) == int((d * T / P) ** (2 / 3))
    assert rivals.restart_period(replace(ODD, change_points=0)) == T
    assert rivals.restart_period(replace(drifting, path_length=1e6)) == 1
    assert rivals.corrected_restart_period(ODD) == math.floor(d**0.25 * sqrt(T / (1 + P)))
    assert rivals.corrected_restart_period(replace(ODD, path_length=1e9)) == 1
    assert rivals.corrected_restart_period(replace(ODD, horizon=2, path_length=0.0)) == 1
    still = replace(ODD, dim=10**6, path_length=0.0)
    assert rivals.corrected_restart_period(still) == T


def test_discounted_and_windowed_likelihood():
    c_t = noise(c * sums(gamma**2, t) / lam)
    d_glucb = 2 * k / c * (c_t + sqrt(c * lam) * S + 2 * S * k * sqrt(c / lam))
    assert rivals.d_glucb(ODD, t, lam=lam, gamma=gamma, delta=delta) == close(d_glucb)
    for window, rounds in ((5, 5), (50, t)):
        c_t = noise(c * rounds / lam, delta / 900)
        sw = 2 * k / c * (c_t + sqrt(c * lam) * S)
        found = rivals.sw_glucb(ODD, t, lam=lam, window=window, delta=delta, horizon=900)
        assert found == close(sw)
    rho = tail(lam, log(900 / delta), k / g * 4.0 / lam)
    assert rivals.sc_rho(ODD, lam=lam, mass=4.0, delta=delta, horizon=900) == close(rho)
    inner = 1 + 0.7 + sqrt(1.7 / lam) * 1.9 + 1.9**2 / lam
    outside = g * (k / g) * sqrt(lam) * inner**1.5 / sqrt(c / g)
    assert rivals.sc_outside(ODD, 1.9, lam=lam, S=0.7) == close(outside)
    inside = g * (k / g) * sqrt(1 + 2 * S) * (sqrt(lam) * S + 1.9) / sqrt(c / g)
    assert rivals.sc_inside(ODD, 1.9, lam=lam) == close(inside)
    stale = 2 * S * k / g + span / g
    for discount, forgotten in ((gamma, 1 - gamma), (1.0, 1 / 900)):
        wide = rivals.sc_d_widened(ODD, lam=lam, gamma=discount, horizon=900)
        assert wide == close(S + stale / (900 * lam * forgotten))


def test_bvd_and_weights():
    beta = sqrt(lam) * c * S + noise(sums(gamma**2, t) / lam)
    numbers = {"lam": lam, "gamma": gamma, "delta": delta}
    assert rivals.bvd_beta(ODD, t, **numbers) == close(beta)
    assert rivals.bvd_glm_ucb(ODD, t, **numbers) == close(2 * k / c * beta)
    assert rivals.glb_weight_ucb(ODD, t + 1, **numbers) == close(2 * k / c * beta)


def scb(mass):
    ridge = lam * c / g
    return tail(ridge, log(1 / delta), k / g * mass / ridge) + sqrt(ridge) * S


def test_self_concordant_weights():
    assert rivals.scb_beta(ODD, 4.0, lam=lam, delta=delta) == close(scb(4.0))
    factor = g * 2 * sqrt(1 + 2 * S) * (k / g) / sqrt(c / g)
    assert rivals.scb_factor(ODD) == close(factor)
    found = rivals.scb_weight_ucb(ODD, t, lam=lam, gamma=gamma, delta=delta)
    assert found == close(factor * scb(sums(gamma**2, t - 1)))
    for horizon in (3, 900):
        for discount in (gamma, 1.0):
            one, two = (max(1 - q, 1 / horizon) for q in (discount, discount**2))
            stale = (2 * S * k / g + span / g) / sqrt(lam * c / g)
            rho = scb((1 - horizon**-2) / two) + stale / (horizon * one)
            found = rivals.scb_pw_rho(ODD, lam=lam, gamma=discount, delta=delta, horizon=horizon)
            assert found == close(rho)


def test_linear():
    radius = sqrt(lam) * S + noise(sums(gamma**2, t) / lam)
    assert rivals.lin_ucb(ODD, t, lam=lam, gamma=gamma, delta=delta) == close(radius)
    window = sqrt(lam) * S + s * sqrt(d * log((1 + 20 / lam) / delta))
    assert rivals.sw_lin_ucb(ODD, lam=lam, window=20, delta=delta) == close(window)


@pytest.mark.parametrize("spread", [0.4, 1e9])
@pytest.mark.parametrize(("c", "s", "delta"), [(c, s, delta), (2.0, 0.4, 0.8)])
def test_gloc(spread, c, s, delta):
    B = 1.7
    inner = 1 + 2 * B / c + 4 * s**4 / (c**4 * delta**2)
    beta = 1 + 4 * B / c + 8 * s**2 / c**2 * log(2 / delta * sqrt(inner)) + lam * S**2 - spread
    found = rivals.gloc_width(odd(c=c, span=2 * s), B, spread, lam=lam, delta=delta)
    assert found == close(sqrt(max(0.0, beta)), rel=1e-12)


def test_discounts():
    assert rivals.discount_from(ODD, 0.3, 0.5) == close(1 - sqrt(0.3))
    drift, change = P / (d * T), 4 / (d * T)
    for found, forgetting in (
        (rivals.bvd_discount(ODD), (P / (sqrt(d) * T)) ** 0.4),
        (rivals.bvd_discount(ODD, "quoted"), drift ** (2 / 3)),
        (rivals.glb_weight_discount(ODD), sqrt(k * c * drift)),
        (rivals.scb_weight_discount(ODD), sqrt(k * drift)),
        (rivals.linear_discount(ODD), sqrt(drift)),
        (rivals.d_glucb_discount(ODD), change ** (2 / 3)),
        (rivals.sc_d_glucb_discount(ODD), (sqrt(c) * change) ** (2 / 3)),
        (rivals.sc_d_glucb_discount(ODD, "quoted"), change ** (2 / 3)),
    ):
        assert found == close(1 - forgetting)
    for tuned in (rivals.bvd_discount, rivals.sc_d_glucb_discount):
        with pytest.raises(ValueError, match="reading must be one of"):
            tuned(ODD, "guessed")


def test_windows():
    drift, change = P / (d * T), 4 / (d * T)
    assert rivals.sw_glucb_window(ODD) == math.ceil(change ** (-2 / 3))
    assert rivals.sc_sw_glucb_window(odd(c=0.4)) == math.ceil((sqrt(0.4) * change) ** (-2 / 3))
    assert rivals.linear_window(ODD) == math.ceil(drift ** (-2 / 3))
    assert rivals.window_from(0.0, 700) == rivals.window_from(1e-9, 700) == 700
    assert rivals.window_from(1e9, 700) == 1
