"""Radii and tunings of the rivals, as published; t counts the round about to be played.

Where papers disagree about letters: `ridge` multiplies theta in the score equation and `reg`
multiplies I in the design matrix, reg = ridge / c_mu. The sub-Gaussian constant is half the range
of the rewards. Contexts have norm at most 1 here (S = radius * context_norm).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftbandit.problem import Problem
from driftbandit.theory.domd import clip_discount, path_length
from driftbandit.validate import show

Floats = NDArray[np.float64]

# Whose tuning: the rival's own theorem, or what the DOMD paper quotes for it (its Remark B.1).
READINGS = ("original", "quoted")
# Whose radius GLM-UCB has: RestartGLB's, or that of MASTER's base.
RADIUS_READINGS = ("restart", "master")


def check_reading(reading: str, readings: tuple[str, ...]) -> None:
    """Raise ValueError unless it is one of these."""
    if reading not in readings:
        raise ValueError(f"reading must be one of {readings}, got {show(reading)}")


# Pieces that several radii share


def geometric(gamma: float, n: Any) -> Any:
    """1 + gamma + ... + gamma^(n-1), which is n at gamma = 1."""
    n = np.asarray(n, dtype=float)
    return n if gamma == 1.0 else np.expm1(n * math.log(gamma)) / (gamma - 1.0)


def sub_gaussian(problem: Problem) -> float:
    """Half the range of the rewards (Hoeffding): R / 2 for rewards in [0, R]."""
    return problem.family.range / 2.0


def noise_radius(problem: Problem, *, delta: float, mass: Any, sigma: float | None = None) -> Any:
    """sigma sqrt(2 log(1/delta) + d log(1 + mass / d)): self-normalised noise; sigma is
    `sub_gaussian` unless given, here and below."""
    logs = 2.0 * math.log(1.0 / delta) + problem.dim * np.log1p(mass / problem.dim)
    return (sub_gaussian(problem) if sigma is None else sigma) * np.sqrt(logs)


def bernstein_radius(
    problem: Problem, *, ridge: float, log_term: float, mass: Any, g: float
) -> Any:
    """sqrt(ridge)/(2m) + (2m/sqrt(ridge)) (log + d log 2) + (d m/sqrt(ridge)) log(1 + mass/d): the
    self-normalised tail for noise whose variance is the slope; m = range / g."""
    root, m, d = math.sqrt(ridge), problem.family.range / g, problem.dim
    steady = root / (2.0 * m) + (2.0 * m / root) * (log_term + d * math.log(2.0))
    return steady + (d * m / root) * np.log1p(mass / d)


def curvatures(problem: Problem, *, per_dispersion: bool = False) -> tuple[float, float, float]:
    """k_mu, c_mu and 1, or all per unit of dispersion where a radius needs variance = slope."""
    g = problem.family.g if per_dispersion else 1.0
    return problem.k_mu / g, problem.c_mu / g, g


# GLM-UCB and RestartGLB (Filippi et al. 2010, Zhao et al. 2020), base of MASTER (Wei, Luo 2021)


def glm_ucb(
    problem: Problem, t: Any, *, lam: float, delta: float, sigma: float | None = None
) -> Any:
    """(k/c) (c sqrt(lam) S + sigma sqrt(2 log(1/delta) + d log(1 + (t-1)/(lam d))))."""
    k, c, _ = curvatures(problem)
    mass = (np.asarray(t) - 1.0) / lam
    noise = noise_radius(problem, delta=delta, mass=mass, sigma=sigma)
    return (k / c) * (c * math.sqrt(lam) * problem.S + noise)


def master_beta(problem: Problem, *, lam: float, delta: float, horizon: float) -> float:
    """(4k/c) (sqrt(d log(c T/(lam delta))) + c sqrt(lam) S) (Wei and Luo, Algorithm 9); the bonus
    of MASTER's base is twice that, in every round."""
    k, c, _ = curvatures(problem)
    logs = max(0.0, math.log(c * horizon / (lam * delta)))
    return (4.0 * k / c) * (math.sqrt(problem.dim * logs) + c * math.sqrt(lam) * problem.S)


def restart_period(problem: Problem) -> int:
    """(k d T/(c Gamma))^{2/3} where the number of changes is known, else (d T / P_T)^{2/3}; T if
    nothing ever changes (Zhao et al. 2020, as the paper's table has it)."""
    why = "the restart period"
    T = problem.known("horizon", why)
    if problem.change_points is not None:
        drift = problem.change_points * problem.c_mu / problem.k_mu
    else:
        drift = path_length(problem, why)
    return int(max(1.0, min(T, _ratio(problem.dim * T, drift) ** (2.0 / 3.0))))


def corrected_restart_period(problem: Problem) -> int:
    """d^{1/4} sqrt(T / (1 + P_T)), which repairs the flaw in the original analysis."""
    T, P = problem.known("horizon", "the restart period"), path_length(problem, "the period")
    return int(max(1, min(T, math.floor(problem.dim**0.25 * math.sqrt(T / (1.0 + P))))))


# The discounted and windowed maximum-likelihood family


def d_glucb(
    problem: Problem, t: Any, *, lam: float, gamma: float, delta: float, sigma: float | None = None
) -> Any:
    """(2k/c) (c_t + sqrt(c lam) S + 2 S k sqrt(c/lam)) (Russac et al. 2020)."""
    k, c, _ = curvatures(problem)
    c_t = noise_radius(problem, delta=delta, mass=c * geometric(gamma**2, t) / lam, sigma=sigma)
    bias = math.sqrt(c * lam) * problem.S + 2.0 * problem.S * k * math.sqrt(c / lam)
    return (2.0 * k / c) * (c_t + bias)


def sw_glucb(
    problem: Problem,
    t: Any,
    *,
    lam: float,
    window: int,
    delta: float,
    horizon: float,
    sigma: float | None = None,
) -> Any:
    """(2k/c) (c_t + sqrt(c lam) S) with log(T/delta) and min(t, window) rounds in c_t."""
    k, c, _ = curvatures(problem)
    mass = c * np.minimum(t, window) / lam
    c_t = noise_radius(problem, delta=delta / horizon, mass=mass, sigma=sigma)
    return (2.0 * k / c) * (c_t + math.sqrt(c * lam) * problem.S)


def sc_rho(problem: Problem, *, lam: float, mass: Any, delta: float, horizon: float) -> Any:
    """rho of SC-D-GLUCB and SC-SW-GLUCB (Russac et al. 2021)."""
    k, _, g = curvatures(problem, per_dispersion=True)
    logs = math.log(horizon / delta)
    return bernstein_radius(problem, ridge=lam, log_term=logs, mass=k * mass / lam, g=g)


def sc_outside(problem: Problem, rho: Any, *, lam: float, S: float) -> Any:
    """k sqrt(lam) (1 + S + sqrt((1 + S)/lam) rho + rho^2/lam)^{3/2} / sqrt(c) (their eq. 4)."""
    k, c, g = curvatures(problem, per_dispersion=True)
    inner = 1.0 + S + math.sqrt((1.0 + S) / lam) * rho + rho**2 / lam
    return g * k * math.sqrt(lam) * inner**1.5 / math.sqrt(c)


def sc_inside(problem: Problem, rho: Any, *, lam: float) -> Any:
    """k sqrt(1 + 2S) (sqrt(lam) S + rho) / sqrt(c), for an estimate in the ball (Remark 1)."""
    k, c, g = curvatures(problem, per_dispersion=True)
    radius = math.sqrt(lam) * problem.S + rho
    return g * k * math.sqrt(1.0 + 2.0 * problem.S) * radius / math.sqrt(c)


def sc_d_widened(problem: Problem, *, lam: float, gamma: float, horizon: float) -> float:
    """S + (2 S k + m)/(T lam (1 - gamma)): the ball as old data see it."""
    k, _, g = curvatures(problem, per_dispersion=True)
    stale = 2.0 * problem.S * k + problem.family.range / g
    return problem.S + stale / (horizon * lam * max(1.0 - gamma, 1.0 / horizon))


def bvd_beta(
    problem: Problem, t: Any, *, lam: float, gamma: float, delta: float, sigma: float | None = None
) -> Any:
    """sqrt(lam) c S + sigma sqrt(2 log(1/delta) + d log(1 + n/(lam d))), n = sum of gamma^{2s} over
    s < t (Faury et al. 2021; also GLB-WeightUCB one round earlier)."""
    _, c, _ = curvatures(problem)
    mass = geometric(gamma**2, t) / lam
    noise = noise_radius(problem, delta=delta, mass=mass, sigma=sigma)
    return math.sqrt(lam) * c * problem.S + noise


def bvd_glm_ucb(problem: Problem, t: Any, **numbers: Any) -> Any:
    """2 (k/c) beta_t, with the numbers of `bvd_beta`."""
    k, c, _ = curvatures(problem)
    return 2.0 * (k / c) * bvd_beta(problem, t, **numbers)


def glb_weight_ucb(problem: Problem, t: Any, **numbers: Any) -> Any:
    """2 (k/c) beta_{t-1} (Wang et al. 2023)."""
    return bvd_glm_ucb(problem, np.asarray(t) - 1.0, **numbers)


def scb_beta(problem: Problem, mass: Any, *, lam: float, delta: float) -> Any:
    """Bernstein radius with ridge lam c, plus sqrt(lam c) S (Wang et al. 2023, eq. 16)."""
    k, c, g = curvatures(problem, per_dispersion=True)
    ridge, logs = lam * c, math.log(1.0 / delta)
    tail = bernstein_radius(problem, ridge=ridge, log_term=logs, mass=k * mass / ridge, g=g)
    return tail + math.sqrt(ridge) * problem.S


def scb_factor(problem: Problem) -> float:
    """2 sqrt(1 + 2S) k / sqrt(c) (Wang et al. 2023, eq. 17)."""
    k, c, g = curvatures(problem, per_dispersion=True)
    return g * 2.0 * math.sqrt(1.0 + 2.0 * problem.S) * k / math.sqrt(c)


def scb_weight_ucb(problem: Problem, t: Any, *, lam: float, gamma: float, delta: float) -> Any:
    """2 sqrt(1 + 2S) (k/sqrt(c)) beta_{t-1} (eq. 17)."""
    mass = geometric(gamma**2, np.asarray(t) - 1.0)
    return scb_factor(problem) * scb_beta(problem, mass, lam=lam, delta=delta)


def scb_pw_rho(
    problem: Problem, *, lam: float, gamma: float, delta: float, horizon: float
) -> float:
    """The radius of SCB-PW-WeightUCB: data older than gamma^D = 1/T enter as a bias."""
    k, c, g = curvatures(problem, per_dispersion=True)
    forgotten = max(1.0 - gamma, 1.0 / horizon)
    mass = (1.0 - horizon**-2.0) / max(1.0 - gamma**2, 1.0 / horizon)
    stale = (2.0 * problem.S * k + problem.family.range / g) / math.sqrt(lam * c)
    return float(scb_beta(problem, mass, lam=lam, delta=delta)) + stale / (horizon * forgotten)


# Their tunings


def _ratio(numerator: float, denominator: float) -> float:
    """numerator / denominator, infinite where nothing ever changes."""
    return numerator / denominator if denominator > 0 else math.inf


def discount_from(problem: Problem, share: float, power: float) -> float:
    """gamma = 1 - clip(share^power)."""
    return clip_discount(share**power, problem.known("horizon", "the tuned discount"))


def _drift_share(problem: Problem, factor: float) -> float:
    why = "the tuned discount"
    return factor * path_length(problem, why) / (problem.dim * problem.known("horizon", why))


def _change_share(problem: Problem, factor: float) -> float:
    why = "the tuned discount"
    changes = problem.known("change_points", why)
    return factor * changes / (problem.dim * problem.known("horizon", why))


def bvd_discount(problem: Problem, reading: str = "original") -> float:
    """1 - gamma = (P_T / (sqrt(d) T))^{2/5}, for any arms; quoted: (P_T / (d T))^{2/3}, which its
    paper proves for orthogonal arms only."""
    check_reading(reading, READINGS)
    if reading == "quoted":
        return discount_from(problem, _drift_share(problem, 1.0), 2.0 / 3.0)
    return discount_from(problem, _drift_share(problem, math.sqrt(problem.dim)), 0.4)


def glb_weight_discount(problem: Problem) -> float:
    """1 - gamma = sqrt(k c P_T / (d T))."""
    return discount_from(problem, _drift_share(problem, problem.k_mu * problem.c_mu), 0.5)


def scb_weight_discount(problem: Problem) -> float:
    """1 - gamma = sqrt(k P_T / (d T))."""
    return discount_from(problem, _drift_share(problem, problem.k_mu), 0.5)


def linear_discount(problem: Problem) -> float:
    """1 - gamma = sqrt(P_T / (d T)) (LB-WeightUCB, and the corrected D-LinUCB)."""
    return discount_from(problem, _drift_share(problem, 1.0), 0.5)


def d_glucb_discount(problem: Problem) -> float:
    """1 - gamma = (Gamma_T / (d T))^{2/3} (also SCB-PW-WeightUCB)."""
    return discount_from(problem, _change_share(problem, 1.0), 2.0 / 3.0)


def sc_d_glucb_discount(problem: Problem, reading: str = "original") -> float:
    """1 - gamma = (sqrt(c) Gamma_T / (d T))^{2/3}; quoted: without sqrt(c)."""
    check_reading(reading, READINGS)
    factor = 1.0 if reading == "quoted" else math.sqrt(problem.c_mu)
    return discount_from(problem, _change_share(problem, factor), 2.0 / 3.0)


def window_from(share: float, horizon: float) -> int:
    """ceil(share^{-2/3}), within [1, T]; T if nothing ever changes."""
    return int(min(horizon, max(1.0, math.ceil(min(horizon, _ratio(1.0, share) ** (2.0 / 3.0))))))


def sw_glucb_window(problem: Problem) -> int:
    """ceil((d T / Gamma_T)^{2/3})."""
    return window_from(_change_share(problem, 1.0), problem.known("horizon", "the window"))


def sc_sw_glucb_window(problem: Problem) -> int:
    """ceil((d T / (sqrt(c) Gamma_T))^{2/3})."""
    share = _change_share(problem, math.sqrt(problem.c_mu))
    return window_from(share, problem.known("horizon", "the window"))


def linear_window(problem: Problem) -> int:
    """ceil((d T / P_T)^{2/3}) (SW-LinUCB)."""
    return window_from(_drift_share(problem, 1.0), problem.known("horizon", "the window"))


# Discounted and windowed GLM Thompson sampling (after Kveton et al. 2020; the tunings are ours)


def glm_ts_prior(problem: Problem) -> float:
    """lambda = d / S^2: under the prior N(0, I / lambda), ||theta||^2 is S^2 in the mean."""
    return problem.dim / problem.S**2


def glm_ts_discount(problem: Problem) -> float:
    """gamma of the optimistic peer: D-GLUCB's where the number of changes is known, else
    SCB-WeightUCB's."""
    jumps = problem.change_points is not None
    return d_glucb_discount(problem) if jumps else scb_weight_discount(problem)


def glm_ts_window(problem: Problem) -> int:
    """The window of the optimistic peer: SW-GLUCB's where the number of changes is known, else
    SW-LinUCB's."""
    jumps = problem.change_points is not None
    return sw_glucb_window(problem) if jumps else linear_window(problem)


# Linear rewards


def lin_ucb(problem: Problem, n: Any, *, lam: float, gamma: float, delta: float) -> Any:
    """sqrt(lam) S + sigma sqrt(2 log(1/delta) + d log(1 + m/(lam d))), m = geometric(gamma^2, n),
    after n = t - 1 rounds (LinUCB; D-LinUCB as its author's code has it; LB-WeightUCB)."""
    noise = noise_radius(problem, delta=delta, mass=geometric(gamma**2, n) / lam)
    return math.sqrt(lam) * problem.S + noise


def sw_lin_ucb(problem: Problem, *, lam: float, window: int, delta: float) -> float:
    """sqrt(lam) S + sigma sqrt(d log((1 + window/lam) / delta)) (Cheung et al. 2019)."""
    logs = problem.dim * math.log((1.0 + window / lam) / delta)
    return math.sqrt(lam) * problem.S + sub_gaussian(problem) * math.sqrt(logs)


def lin_ts_inflation() -> float:
    """sqrt(14): the deviation of D-LinTS's draws over the radius of D-LinUCB, in its theorem
    (Kim and Tewari 2020, a^2 = 14 c_1^2; our reading)."""
    return math.sqrt(14.0)


def random_lin_lam(problem: Problem) -> float:
    """lambda = 1, whatever the problem: D-LinTS and D-RandLinUCB in the experiments of their paper
    (Kim and Tewari 2020, section 5)."""
    return 1.0


def rand_lin_ucb_deviation(problem: Problem) -> float:
    """2/5, whatever the problem: the deviation of D-RandLinUCB's half-normal factor in the
    experiments of its paper (Kim and Tewari 2020, section 5)."""
    return 0.4


def wsb_prior(problem: Problem, least: Any, *, lam: float) -> Any:
    """lam S / sqrt(least), a bound on ||lam theta||_{V^-1} where V has no eigenvalue below `least`:
    what a prior N(0, I / lam) costs, sqrt(lam) S before any data (Werge et al. 2026, our reading of
    its dynamic prior penalty)."""
    return lam * problem.S / np.sqrt(least)


# Restarted WeightedOFUL+ and SAVE+ (Wang, Xie, Chen, Lui, Zhou 2025; our reading of both)


def reward_deviation(problem: Problem) -> float:
    """A bound on the deviation of a reward: sqrt(g k), or half the range where that is less."""
    return min(math.sqrt(problem.family.g * problem.k_mu), sub_gaussian(problem))


def oful_floor(problem: Problem, period: int) -> float:
    """alpha = R / sqrt(w), R the range of rewards: the least deviation that a weight can have."""
    return problem.family.range / math.sqrt(period)


def oful_caution(problem: Problem) -> float:
    """gamma = sqrt(R) / d^{1/4}: how much less an uncertain round counts (Zhou and Gu 2022)."""
    return math.sqrt(problem.family.range) / problem.dim**0.25


def weighted_oful(problem: Problem, k: Any, *, lam: float, delta: float, period: int) -> Any:
    """12 sqrt(d log(1 + k/(alpha^2 d lam)) l) + 30 l R / gamma^2 + sqrt(lam) S, with l = log(32
    (log(gamma^2/alpha) + 1) k^2 / delta), in the k-th round after a restart (Zhou and Gu 2022,
    eq. 4.3)."""
    d, R = problem.dim, problem.family.range
    alpha, gamma2 = oful_floor(problem, period), oful_caution(problem) ** 2
    layers = max(0.0, math.log(gamma2 / alpha)) + 1.0
    logs = np.log(32.0 * layers * np.asarray(k) ** 2 / delta)
    volume = d * np.log1p(np.asarray(k) / (alpha**2 * d * lam))
    return 12.0 * np.sqrt(volume * logs) + 30.0 * logs * R / gamma2 + math.sqrt(lam) * problem.S


def oful_period(problem: Problem) -> int:
    """w = max(d^{1/4} sqrt(V/P_T), d^{1/6} (T/P_T)^{1/3}), V = T times the largest variance: what
    balances the regret d^{7/8} (P_T V)^{1/4} T^{1/2} + d^{5/6} P_T^{1/3} T^{2/3} of its paper."""
    T, P = problem.known("horizon", "the period"), path_length(problem, "the period")
    d, V = problem.dim, T * reward_deviation(problem) ** 2
    calm, short = d**0.25 * math.sqrt(_ratio(V, P)), d ** (1 / 6) * _ratio(T, P) ** (1 / 3)
    return int(max(1.0, min(T, max(calm, short))))


def save_period(problem: Problem) -> int:
    """w = max(d^{2/5} (V T)^{1/5} / P_T^{2/5}, (d T/P_T)^{1/3}), V = T times the largest variance:
    what balances the regret d^{4/5} V^{2/5} P_T^{1/5} T^{2/5} + d^{2/3} P_T^{1/3} T^{2/3}."""
    T, P = problem.known("horizon", "the period"), path_length(problem, "the period")
    d, V = problem.dim, T * reward_deviation(problem) ** 2
    calm = (d**2 * _ratio(V * T, P**2)) ** 0.2
    return int(max(1.0, min(T, max(calm, (d * _ratio(T, P)) ** (1 / 3)))))


def save_layers(period: int) -> int:
    """L = ceil(log2(w^{3/2})): no layer is finer than the error that w rounds can see."""
    return max(1, math.ceil(1.5 * math.log2(period)))


def save_radius(
    problem: Problem, layer: Any, count: Any, errors: Any, *, delta: float, period: int
) -> Any:
    """2^-l (8 sqrt((8 Var_l + 6 R^2 log(4 (w+1)^2 L/delta) + 2^{4-2l}) log(4 w^2 L/delta)) + 6 R
    log(4 w^2 L/delta) + S); Var_l is the sum of weighted squared errors of layer l if 2^l >=
    64 sqrt(log(4 (w+1)^2 L/delta)), else R^2 times its rounds (Zhao et al. 2023, SAVE)."""
    R, L = problem.family.range, save_layers(period)
    later = math.log(4.0 * (period + 1.0) ** 2 * L / delta)
    logs, size = math.log(4.0 * period**2 * L / delta), 2.0 ** -np.asarray(layer, dtype=float)
    var = np.where(1.0 / size >= 64.0 * math.sqrt(later), errors, R**2 * count)
    noise = 8.0 * np.sqrt((8.0 * var + 6.0 * R**2 * later + 16.0 * size**2) * logs)
    return size * (noise + 6.0 * R * logs + problem.S)


# GLOC (Jun et al. 2017)


def gloc_width(problem: Problem, B: Any, spread: Any, *, lam: float, delta: float) -> Any:
    """sqrt(beta), beta = 1 + 4B/c + (8 sigma^2/c^2) log((2/delta) sqrt(1 + 2B/c + 4 sigma^4 /
    (c^4 delta^2))) + lam S^2 - spread, with spread = sum z^2 - thhat'q."""
    c, sigma = problem.c_mu, sub_gaussian(problem)
    inner = 1.0 + 2.0 * B / c + 4.0 * sigma**4 / (c**4 * delta**2)
    logs = (8.0 * sigma**2 / c**2) * np.log((2.0 / delta) * np.sqrt(inner))
    square = 1.0 + 4.0 * B / c + logs + lam * problem.S**2 - spread
    return np.sqrt(np.maximum(square, 0.0))


# MASTER (Wei and Luo 2021)


def master_threshold(problem: Problem, *, lam: float, delta: float, horizon: float) -> float:
    """rhohat(1) = 6 (log2 T + 1) log(T/delta) rho(1), rho(l) = beta sqrt(d log(T/delta) / l); an
    interval of length l has rhohat(1) / sqrt(l)."""
    logs = math.log(horizon / delta)
    beta = master_beta(problem, lam=lam, delta=delta, horizon=horizon)
    return 6.0 * (math.log2(horizon) + 1.0) * logs * beta * math.sqrt(problem.dim * logs)
