"""Slow twins of every policy: each round is recomputed from the full history.

Rounds are 1-based; before round t the data are s = 1..t-1. `ridge` multiplies theta in the score
equation, `reg` multiplies the identity in the design matrix, and always ridge = c * reg.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import log, sqrt
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq, minimize, root
from scipy.special import expit

# Families


class Link(NamedTuple):
    """Log-partition m, its three derivatives, reward bound R and dispersion g (I.1)."""

    m: Callable
    mu: Callable
    dmu: Callable
    d2mu: Callable
    R: float
    g: float


def bernoulli() -> Link:
    """m(z) = log(1 + e^z) (I.1)."""
    return binomial(1)


def binomial(n: int) -> Link:
    """m(z) = n log(1 + e^z), counts 0..n (I.1)."""
    return Link(
        m=lambda z: n * np.logaddexp(0, z),
        mu=lambda z: n * expit(z),
        dmu=lambda z: n * expit(z) * expit(-z),
        d2mu=lambda z: n * expit(z) * expit(-z) * (expit(-z) - expit(z)),
        R=n,
        g=1.0,
    )


def gaussian(variance: float, bound: float) -> Link:
    """m(z) = z^2 / 2 with dispersion equal to the variance (I.1)."""
    return Link(lambda z: z**2 / 2, lambda z: z, np.ones_like, np.zeros_like, bound, variance)


def poisson(bound: float) -> Link:
    """m(z) = e^z (I.1)."""
    return Link(np.exp, np.exp, np.exp, np.exp, bound, 1.0)


def unit_dispersion(link: Link) -> Link:
    """The link of the rewards r / g, whose variance is again its slope (III.0)."""
    m, mu, dmu, d2mu, R, g = link
    return Link(
        m=lambda z: m(z) / g,
        mu=lambda z: mu(z) / g,
        dmu=lambda z: dmu(z) / g,
        d2mu=lambda z: d2mu(z) / g,
        R=R / g,
        g=1.0,
    )


# Projections and likelihood


def ball_projection(A, z, S: float) -> np.ndarray:
    """argmin over ||v|| <= S of (v - z)' A (v - z), by the secular equation (II.0.3)."""
    if np.linalg.norm(z) <= S:
        return np.array(z, dtype=float)
    w, Q = np.linalg.eigh(A)
    b = w * (Q.T @ z)
    rho = brentq(
        lambda rho: np.linalg.norm(b / (w + rho)) - S,
        0.0,
        np.linalg.norm(b) / S,
        xtol=1e-15,
        rtol=1e-15,
    )
    return Q @ (b / (w + rho))


def minimise_on_balls(*, fun, grad, radii, starts) -> np.ndarray:
    """Least value over a product of balls: SLSQP from every start, then the KKT equations."""
    radii = np.array(radii, dtype=float)
    unit = max(fun(starts[0]), 1e-12)

    def rows(z):
        return z.reshape(len(radii), -1)

    def slack(z):
        return radii**2 - (rows(z) ** 2).sum(axis=1)

    def slack_jac(z):
        jac = np.zeros((len(radii),) + rows(z).shape)
        for i, row in enumerate(rows(z)):
            jac[i, i] = -2 * row
        return jac.reshape(len(radii), -1)

    def inside(z):
        norms = np.linalg.norm(rows(z), axis=1)
        return (rows(z) * np.minimum(1, radii / np.maximum(norms, 1e-300))[:, None]).ravel()

    def kkt(v):
        z, nu = v[: -len(radii)], v[-len(radii) :]
        return np.append(grad(z) / unit + (nu[:, None] * rows(z)).ravel(), slack(z))

    ball = {"type": "ineq", "fun": slack, "jac": slack_jac}
    points = []
    for start in starts:
        run = minimize(
            lambda z: fun(z) / unit,
            start,
            jac=lambda z: grad(z) / unit,
            method="SLSQP",
            constraints=ball,
            options={"ftol": 1e-15, "maxiter": 500},
        )
        points.append(inside(run.x))
    best = min(points, key=fun)
    if np.any(slack(best) > 1e-5 * radii**2):
        return best
    nu = -(rows(grad(best)) * rows(best)).sum(axis=1) / radii**2 / unit
    exact = root(kkt, np.append(best, nu), tol=1e-14).x[: -len(radii)]
    near = np.linalg.norm(exact - best) < 1e-3 * radii.max()
    return exact if near and abs(slack(exact)).max() < 1e-10 else best


def sphere_starts(theta, S: float) -> list:
    """The radial point of theta, the origin and six fixed random points of the sphere."""
    random = np.random.default_rng(0).standard_normal((6, len(theta)))
    directions = [theta / np.linalg.norm(theta), 0 * theta]
    return [S * v for v in directions + [v / np.linalg.norm(v) for v in random]]


def score_map(*, theta, xs, ws, ridge: float, link: Link) -> np.ndarray:
    """g_t(theta) = sum w_s mu(x_s'theta) x_s + ridge theta (III.0)."""
    return xs.T @ (ws * link.mu(xs @ theta)) + ridge * theta


def score_slope(*, theta, xs, ws, ridge: float, link: Link) -> np.ndarray:
    """H_t(theta), the Jacobian of g_t (III.0)."""
    return (xs.T * (ws * link.dmu(xs @ theta))) @ xs + ridge * np.eye(len(theta))


def weighted_mle(*, xs, rs, ws, ridge: float, link: Link) -> np.ndarray:
    """argmin of sum w_s (m(x_s'th) - r_s x_s'th) + ridge ||th||^2 / 2 (III.0.1)."""
    xs, rs, ws = np.array(xs), np.array(rs), np.array(ws)
    data = {"xs": xs, "ws": ws, "ridge": ridge, "link": link}

    def loss(theta):
        z = xs @ theta
        return ws @ (link.m(z) - rs * z) + ridge * theta @ theta / 2

    def grad(theta):
        return score_map(theta=theta, **data) - xs.T @ (ws * rs)

    def hess(theta):
        return score_slope(theta=theta, **data)

    theta = np.zeros(xs.shape[1])
    if np.linalg.norm(grad(theta)) > 1e-11:
        theta = minimize(loss, theta, jac=grad, hess=hess, method="trust-exact").x
    for _ in range(50):
        if np.linalg.norm(grad(theta)) < 1e-11:
            break
        better = theta - np.linalg.solve(hess(theta), grad(theta))
        if np.linalg.norm(grad(better)) >= np.linalg.norm(grad(theta)):
            break
        theta = better
    return theta


def filippi_projection(*, theta, xs, ws, ridge: float, link: Link, Q, S: float) -> np.ndarray:
    """argmin over the ball of ||g_t(v) - g_t(theta)||_{Q^-1}; theta itself if inside (III.0.2)."""
    if np.linalg.norm(theta) <= S:
        return theta
    data = {"xs": xs, "ws": ws, "ridge": ridge, "link": link}
    Qinv = np.linalg.inv(Q)
    target = score_map(theta=theta, **data)

    def fun(v):
        u = score_map(theta=v, **data) - target
        return u @ Qinv @ u / 2

    def grad(v):
        return score_slope(theta=v, **data) @ Qinv @ (score_map(theta=v, **data) - target)

    return minimise_on_balls(fun=fun, grad=grad, radii=[S], starts=sphere_starts(theta, S))


def variable_metric_projection(*, theta, xs, ws, ridge: float, link: Link, S: float) -> np.ndarray:
    """argmin over the ball of ||g_t(v) - g_t(theta)||_{H_t(v)^-1}; theta if inside (III.0.3)."""
    if np.linalg.norm(theta) <= S:
        return theta
    data = {"xs": xs, "ws": ws, "ridge": ridge, "link": link}
    target = score_map(theta=theta, **data)

    def fun(v):
        u = score_map(theta=v, **data) - target
        return u @ np.linalg.solve(score_slope(theta=v, **data), u) / 2

    def grad(v):
        u = score_map(theta=v, **data) - target
        q = np.linalg.solve(score_slope(theta=v, **data), u)
        return u - xs.T @ (ws * link.d2mu(xs @ v) * (xs @ q) ** 2) / 2

    return minimise_on_balls(fun=fun, grad=grad, radii=[S], starts=sphere_starts(theta, S))


# Radii shared by several algorithms


def geometric(q: float, n: int) -> float:
    """1 + q + ... + q^(n-1), which is n when q = 1."""
    return sum(q**i for i in range(n))


def subgaussian(*, sigma: float, delta: float, dim: int, ratio: float) -> float:
    """sigma sqrt(2 log(1/delta) + d log(1 + ratio/d)), ratio = weight sum over regulariser."""
    return sigma * sqrt(2 * log(1 / delta) + dim * log(1 + ratio / dim))


def bernstein(*, m: float, delta: float, dim: int, ridge: float, slope_sum: float) -> float:
    """Self-normalised radius of noise bounded by m with variance equal to the slope (III.2)."""
    root_ridge = sqrt(ridge)
    return (
        root_ridge / (2 * m)
        + 2 * m / root_ridge * (log(1 / delta) + dim * log(2))
        + dim * m / root_ridge * log(1 + slope_sum / (dim * ridge))
    )


# The common frame


@dataclass(kw_only=True)
class Naive:
    """History and index; the coefficient is unscaled and multiplies sqrt(x' covariance x)."""

    dim: int
    link: Link
    S: float
    lam: float
    delta: float
    scale: float = 1.0

    def __post_init__(self):
        self.history, self.rs = [], []

    @property
    def t(self) -> int:
        """The coming round."""
        return len(self.rs) + 1

    @property
    def xs(self) -> np.ndarray:
        """Features of rounds 1..t-1, shape (t-1, d)."""
        return np.array(self.history, dtype=float).reshape(-1, self.dim)

    @property
    def c(self) -> float:
        """Least slope on [-S, S]; every family has it at an end."""
        return float(min(self.link.dmu(np.array([-self.S, self.S]))))

    @property
    def k(self) -> float:
        """Largest slope on [-S, S]; every family has it at an end or at zero."""
        return float(max(self.link.dmu(np.array([-self.S, 0.0, self.S]))))

    @property
    def sigma(self) -> float:
        """Sub-Gaussian constant of rewards in [0, R] (I.4)."""
        return self.link.R / 2

    def mean(self, z):
        """Linear scale: the predictor itself."""
        return z

    def width(self) -> float:
        """What multiplies the norm of an arm."""
        return self.scale * self.coefficient()

    def index(self, arms):
        """Mean and bonus of every arm."""
        norms = np.sqrt(np.einsum("ij,jk,ik->i", arms, self.covariance(), arms))
        return self.mean(arms @ self.estimate()), self.width() * norms

    def choose(self, arms) -> int:
        """Lowest index among the maximisers of mean + bonus."""
        mean, bonus = self.index(arms)
        return int(np.argmax(mean + bonus))

    def update(self, x, r):
        """Append one round to the history."""
        self.history.append(np.array(x, dtype=float))
        self.rs.append(float(r))


# Mirror descent


@dataclass(kw_only=True)
class NaiveDOMD(Naive):
    """DOMD-GLB (I.2): every step minimises the surrogate loss plus the proximal term."""

    gamma: float
    eta: float
    bonus: float | None = None

    def __post_init__(self):
        super().__post_init__()
        self.thetas = [np.zeros(self.dim)]

    def curvature(self, age: int = 0):
        """lam I + sum gamma^(t-1-s+age) mu'(x_s'theta_{s+1})/g x_s x_s': H_t, or A_t at age 1."""
        H = self.lam * np.eye(self.dim)
        for s, x in enumerate(self.history, start=1):
            slope = self.link.dmu(x @ self.thetas[s]) / self.link.g
            H = H + self.gamma ** (self.t - 1 - s + age) * slope * np.outer(x, x)
        return H

    def estimate(self):
        return self.thetas[-1]

    def covariance(self):
        return np.linalg.inv(self.curvature())

    def width(self) -> float:
        return super().width() if self.bonus is None else self.bonus

    def coefficient(self) -> float:
        R, g, eta, k, d = self.link.R, self.link.g, self.eta, self.k, self.dim
        total = geometric(self.gamma, self.t - 1)
        noise = 2 * eta * (1 + R**2 / (g * k)) * log(np.pi**2 * self.t**2 / (3 * self.delta))
        volume = 2 * eta * (3 * eta + 0.5) * d * log(1 + k * total / (self.lam * d * g))
        return sqrt(4 * self.lam * self.S**2 + noise + volume)

    def update(self, x, r):
        x, theta, g = np.array(x, dtype=float), self.estimate(), self.link.g
        grad = (self.link.mu(x @ theta) - r) / g * x
        hess = self.link.dmu(x @ theta) / g * np.outer(x, x) + self.curvature(age=1) / self.eta
        free = theta - np.linalg.solve(hess, grad)
        self.thetas.append(ball_projection(hess, free, self.S))
        super().update(x, r)


@dataclass(kw_only=True)
class NaiveGLBOMD(NaiveDOMD):
    """GLB-OMD (II.1): the same step without discount, with its own radius."""

    gamma: float = 1.0

    def coefficient(self) -> float:
        eta, d = self.eta, self.dim
        volume = log(1 + self.k * (self.t - 1) / (self.lam * d * self.link.g))
        noise = 2 * eta * log(1 / self.delta)
        return sqrt(4 * self.lam * self.S**2 + noise + d * (6 * eta**2 + eta) * volume)


# Likelihood methods


@dataclass(kw_only=True)
class Weighted(Naive):
    """Weighted data, with ridge = lam c and reg = lam (III.0)."""

    def weights(self):
        """One weight per past round."""
        return np.ones(self.t - 1)

    @property
    def ridge(self) -> float:
        return self.lam * self.c

    @property
    def reg(self) -> float:
        return self.lam

    def design(self, power: int = 1):
        """reg I + sum w_s^power x_s x_s': V_t, or V tilde at power 2."""
        return self.reg * np.eye(self.dim) + (self.xs.T * self.weights() ** power) @ self.xs

    def covariance(self):
        return np.linalg.inv(self.design())


@dataclass(kw_only=True)
class Likelihood(Weighted):
    """Penalised weighted MLE, projected in the design metric when outside the ball."""

    @property
    def score(self) -> dict:
        """What defines g_t."""
        return {"xs": self.xs, "ws": self.weights(), "ridge": self.ridge, "link": self.link}

    def mean(self, z):
        return self.link.mu(z)

    def mle(self):
        """The unconstrained estimate."""
        return weighted_mle(rs=self.rs, **self.score)

    def estimate(self):
        return filippi_projection(theta=self.mle(), Q=self.design(), S=self.S, **self.score)


@dataclass(kw_only=True)
class Russac(Likelihood):
    """The convention ridge = lam and reg = lam / c (III.0)."""

    @property
    def ridge(self) -> float:
        return self.lam

    @property
    def reg(self) -> float:
        return self.lam / self.c


@dataclass(kw_only=True)
class SelfConcordant(Likelihood):
    """Variance-based methods work on r / g and give the bonus back in units of r (III.0)."""

    def __post_init__(self):
        super().__post_init__()
        self.g, self.link = self.link.g, unit_dispersion(self.link)

    def mean(self, z):
        return self.g * self.link.mu(z)

    def update(self, x, r):
        super().update(x, r / self.g)


@dataclass(kw_only=True)
class Discounted(Weighted):
    """w_s = gamma^(t-1-s)."""

    gamma: float

    def weights(self):
        return np.array([self.gamma ** (self.t - 1 - s) for s in range(1, self.t)])


@dataclass(kw_only=True)
class Windowed(Weighted):
    """w_s = 1 for the last `window` rounds."""

    window: int

    def weights(self):
        return np.array([float(s >= self.t - self.window) for s in range(1, self.t)])


@dataclass(kw_only=True)
class Restarted(Weighted):
    """w_s = 1 in the current epoch of `period` rounds, whose clock is t - t0."""

    period: int

    @property
    def clock(self) -> int:
        return (self.t - 1) % self.period

    def weights(self):
        return np.array([float(s >= self.t - self.clock) for s in range(1, self.t)])


@dataclass(kw_only=True)
class NaiveGLMUCB(Likelihood):
    """Regularised GLM-UCB (II.2.2)."""

    @property
    def clock(self) -> int:
        """Rounds that the estimate has seen."""
        return self.t - 1

    def coefficient(self) -> float:
        noise = subgaussian(
            sigma=self.sigma, delta=self.delta, dim=self.dim, ratio=self.clock / self.lam
        )
        return self.k / self.c * (self.c * sqrt(self.lam) * self.S + noise)


@dataclass(kw_only=True)
class NaiveRestartGLB(Restarted, NaiveGLMUCB):
    """RestartGLB (II.3.2); the original does not project."""

    project: bool = False

    def estimate(self):
        return super().estimate() if self.project else self.mle()


@dataclass(kw_only=True)
class Instance:
    """A base algorithm that lives on block offsets start .. start + 2^order - 1 (II.4.2)."""

    order: int
    start: int
    alg: Naive

    @property
    def end(self) -> int:
        return self.start + 2**self.order


@dataclass(kw_only=True)
class NaiveMASTER(Naive):
    """MASTER (II.4) over fresh copies of `base()`, GLM-UCB unless given; rewards in units of R."""

    horizon: int
    coins: Callable[[int, int], float]
    n0: int = 12
    base: Callable[[], Naive] | None = None

    def __post_init__(self):
        super().__post_init__()
        self.restarts = self.blocks = 0
        self.begin(self.n0)

    def begin(self, n: int):
        """Forget everything and open a block of 2^n rounds."""
        self.n, self.instances, self.gains, self.values = n, [], [], []
        self.blocks += 1
        self.schedule()

    def schedule(self):
        """Drop the dead instances and flip the coins of the coming block offset (II.4.2)."""
        tau = len(self.gains)
        self.instances = [i for i in self.instances if i.end > tau]
        for m in range(self.n, -1, -1):
            if tau % 2**m == 0 and self.coins(tau, m) < 2 ** (-(self.n - m) / 2):
                self.instances.append(Instance(order=m, start=tau, alg=self.fresh()))

    def fresh(self) -> Naive:
        """A base without data."""
        if self.base is not None:
            return self.base()
        return NaiveGLMUCB(
            dim=self.dim, link=self.link, S=self.S, lam=self.lam, delta=self.delta, scale=self.scale
        )

    @property
    def active(self) -> Naive:
        """The live instance of smallest order."""
        return min(self.instances, key=lambda i: i.order).alg

    def estimate(self):
        return self.active.estimate()

    def coefficient(self) -> float:
        return self.active.coefficient()

    def index(self, arms):
        return self.active.index(arms)

    def choose(self, arms) -> int:
        mean, bonus = self.index(arms)
        self.value = float(np.clip(max(mean + bonus) / self.link.R, 0, 1))
        return int(np.argmax(mean + bonus))

    def beta(self) -> float:
        """The constant of the base's published radius (II.2.3)."""
        noise = sqrt(self.dim * log(self.c * self.horizon / (self.lam * self.delta)))
        return 4 * self.k / self.c * (noise + self.c * sqrt(self.lam) * self.S)

    def rho(self, n: int) -> float:
        """Average regret of the base after n rounds (II.4.1)."""
        return self.beta() * sqrt(self.dim * log(self.horizon / self.delta) / n)

    def rhohat(self, n: int) -> float:
        """6 (log2 T + 1) log(T/delta) rho(n) (II.4.3)."""
        return 6 * (np.log2(self.horizon) + 1) * log(self.horizon / self.delta) * self.rho(n)

    def failed(self) -> bool:
        """Test 1 on the instances that end now, test 2 on the whole block (II.4.3)."""
        now = len(self.gains)
        lowest = min(self.values)
        for i in self.instances:
            if i.end == now:
                if np.mean(self.gains[i.start :]) >= lowest + 9 * self.rhohat(2**i.order):
                    return True
        return np.mean(self.values) - np.mean(self.gains) >= 3 * self.rhohat(now)

    def update(self, x, r):
        self.active.update(x, r)
        super().update(x, r)
        self.gains.append(r / self.link.R)
        self.values.append(self.value)
        if self.failed():
            self.restarts += 1
            self.begin(self.n0)
        elif len(self.gains) == 2**self.n:
            self.begin(self.n + 1)
        else:
            self.schedule()


@dataclass(kw_only=True)
class NaiveGLOC(Weighted):
    """GLOC with the online Newton step (II.5); kappa = c, the centre is ridge regression on z."""

    def __post_init__(self):
        super().__post_init__()
        self.thetas = [np.zeros(self.dim)]

    def predictions(self):
        """z_s = x_s'theta_s, each with the iterate before its update."""
        return np.array([x @ theta for x, theta in zip(self.history, self.thetas)])

    def estimate(self):
        return np.linalg.solve(self.design(), self.xs.T @ self.predictions())

    def regret(self) -> float:
        """B = 2 kappa S^2 lam + sum (mu(z_s) - r_s)^2 ||x_s||^2_{V_s^-1} / (2 kappa)."""
        B = 2 * self.c * self.S**2 * self.lam
        V = self.lam * np.eye(self.dim)
        for x, z, r in zip(self.history, self.predictions(), self.rs):
            V = V + np.outer(x, x)
            B += (self.link.mu(z) - r) ** 2 * (x @ np.linalg.solve(V, x)) / (2 * self.c)
        return B

    def coefficient(self) -> float:
        c, B, sigma, z = self.c, self.regret(), self.sigma, self.predictions()
        inner = 1 + 2 / c * B + 4 * sigma**4 / (c**4 * self.delta**2)
        noise = 8 * sigma**2 / c**2 * log(2 / self.delta * sqrt(inner))
        fit = z @ z - self.estimate() @ (self.xs.T @ z)
        return sqrt(max(0.0, 1 + 4 / c * B + noise + self.lam * self.S**2 - fit))

    def update(self, x, r):
        theta = self.thetas[-1]
        super().update(x, r)
        x, V = self.history[-1], self.design()
        free = theta - (self.link.mu(x @ theta) - r) / self.c * np.linalg.solve(V, x)
        self.thetas.append(ball_projection(V, free, self.S))


@dataclass(kw_only=True)
class NaiveDGLUCB(Discounted, Russac):
    """D-GLUCB (III.1a), projected in the metric of V tilde."""

    def estimate(self):
        return filippi_projection(theta=self.mle(), Q=self.design(2), S=self.S, **self.score)

    def coefficient(self) -> float:
        c, k, lam, S = self.c, self.k, self.lam, self.S
        ratio = geometric(self.gamma**2, self.t) / self.reg
        noise = subgaussian(sigma=self.sigma, delta=self.delta, dim=self.dim, ratio=ratio)
        return 2 * k / c * (noise + sqrt(c * lam) * S + 2 * S * k * sqrt(c / lam))


@dataclass(kw_only=True)
class NaiveSWGLUCB(Windowed, Russac):
    """SW-GLUCB (III.1b)."""

    horizon: int

    def coefficient(self) -> float:
        ratio = min(self.t, self.window) / self.reg
        delta = self.delta / self.horizon
        noise = subgaussian(sigma=self.sigma, delta=delta, dim=self.dim, ratio=ratio)
        return 2 * self.k / self.c * (noise + sqrt(self.c * self.lam) * self.S)


@dataclass(kw_only=True)
class NaiveSCDGLUCB(Discounted, SelfConcordant, Russac):
    """SC-D-GLUCB (III.2): no projection; Remark 1 inside the ball unless `remark` is off."""

    horizon: int
    remark: bool = True

    def estimate(self):
        return self.mle()

    def total(self) -> float:
        """Sum of squared weights in the radius."""
        return (1 - self.horizon**-2.0) / (1 - self.gamma**2)

    def rho(self) -> float:
        return bernstein(
            m=self.link.R,
            delta=self.delta / self.horizon,
            dim=self.dim,
            ridge=self.lam,
            slope_sum=self.k * self.total(),
        )

    def sbar(self) -> float:
        """S plus the bias of forgotten rounds."""
        bias = (2 * self.S * self.k + self.link.R) / (self.lam * (1 - self.gamma))
        return self.S + bias / self.horizon

    def beta(self) -> float:
        """Eq. 4, for any estimate."""
        rho, size, lam = self.rho(), 1 + self.sbar(), self.lam
        return self.k * sqrt(lam) * (size + sqrt(size / lam) * rho + rho**2 / lam) ** 1.5

    def beta_inside(self) -> float:
        """Remark 1, for an estimate in the ball."""
        return self.k * sqrt(1 + 2 * self.S) * (sqrt(self.lam) * self.S + self.rho())

    def coefficient(self) -> float:
        inside = self.remark and np.linalg.norm(self.estimate()) <= self.S
        return self.g * (self.beta_inside() if inside else self.beta()) / sqrt(self.c)


@dataclass(kw_only=True)
class NaiveSCSWGLUCB(Windowed, NaiveSCDGLUCB):
    """SC-SW-GLUCB (III.2): window weights, no bias term."""

    gamma: None = None

    def total(self) -> float:
        return min(self.t, self.window)

    def sbar(self) -> float:
        return self.S


@dataclass(kw_only=True)
class NaiveBVDGLMUCB(Discounted, Likelihood):
    """BVD-GLM-UCB (III.3), with the generalised projection in its three cases."""

    def beta(self) -> float:
        ratio = geometric(self.gamma**2, self.t) / self.lam
        noise = subgaussian(sigma=self.sigma, delta=self.delta, dim=self.dim, ratio=ratio)
        return sqrt(self.lam) * self.c * self.S + noise

    def coefficient(self) -> float:
        return 2 * self.k / self.c * self.beta()

    def estimate(self):
        theta, Vt = self.mle(), self.design(2)
        near = filippi_projection(theta=theta, Q=Vt, S=self.S, **self.score)
        u = score_map(theta=near, **self.score) - score_map(theta=theta, **self.score)
        if u @ np.linalg.solve(Vt, u) <= self.beta() ** 2:
            self.case = "a" if near is theta else "b"
            return near
        self.case = "c"
        return self.joint(theta)

    def joint(self, theta):
        """Case c: min ||g(v) + beta Vt^(1/2) e - g(theta)||_{V^-2}, ||v|| <= S, ||e|| <= 1."""
        w, Q = np.linalg.eigh(self.design(2))
        shift = self.beta() * (Q * np.sqrt(w)) @ Q.T
        Vinv = np.linalg.inv(self.design())
        score, d = self.score, self.dim
        target = score_map(theta=theta, **score)

        def residual(p):
            return Vinv @ (score_map(theta=p[:d], **score) + shift @ p[d:] - target)

        def fun(p):
            return residual(p) @ residual(p) / 2

        def grad(p):
            back = Vinv @ residual(p)
            return np.append(score_slope(theta=p[:d], **score) @ back, shift @ back)

        starts = [np.append(v, np.zeros(d)) for v in sphere_starts(theta, self.S)]
        return minimise_on_balls(fun=fun, grad=grad, radii=[self.S, 1], starts=starts)[:d]


@dataclass(kw_only=True)
class NaiveGLBWeightUCB(Discounted, Likelihood):
    """GLB-WeightUCB (III.4b)."""

    def coefficient(self) -> float:
        ratio = geometric(self.gamma**2, self.t - 1) / self.lam
        noise = subgaussian(sigma=self.sigma, delta=self.delta, dim=self.dim, ratio=ratio)
        return 2 * self.k / self.c * (sqrt(self.lam) * self.c * self.S + noise)


@dataclass(kw_only=True)
class NaiveSCBWeightUCB(Discounted, SelfConcordant):
    """SCB-WeightUCB (III.4c), projected in the variable metric."""

    def estimate(self):
        return variable_metric_projection(theta=self.mle(), S=self.S, **self.score)

    def total(self) -> float:
        """Sum of squared weights in the radius."""
        return geometric(self.gamma**2, self.t - 1)

    def beta(self) -> float:
        """Eq. 16."""
        noise = bernstein(
            m=self.link.R,
            delta=self.delta,
            dim=self.dim,
            ridge=self.ridge,
            slope_sum=self.k * self.total(),
        )
        return noise + sqrt(self.ridge) * self.S

    def coefficient(self) -> float:
        return self.g * 2 * sqrt(1 + 2 * self.S) * self.k / sqrt(self.c) * self.beta()


@dataclass(kw_only=True)
class NaiveSCBPWWeightUCB(NaiveSCBWeightUCB):
    """SCB-PW-WeightUCB (III.4d): variant A in the design norm, variant B in the local norm."""

    horizon: int
    variant: str = "A"

    def total(self) -> float:
        """With gamma^D = 1/T."""
        return (1 - self.horizon**-2.0) / (1 - self.gamma**2)

    def beta(self) -> float:
        """rho: Eq. 16 at D plus the bias of rounds older than D."""
        bias = (2 * self.S * self.k + self.link.R) / sqrt(self.ridge)
        return super().beta() + bias / (self.horizon * (1 - self.gamma))

    def mean(self, z):
        return super().mean(z) if self.variant == "A" else z

    def covariance(self):
        if self.variant == "A":
            return super().covariance()
        return np.linalg.inv(score_slope(theta=self.estimate(), **self.score))

    def coefficient(self) -> float:
        if self.variant == "A":
            return super().coefficient()
        return 2 * (1 + 2 * self.S) * self.beta()


# Identity link


@dataclass(kw_only=True)
class NaiveLinUCB(Weighted):
    """LinUCB: one endless epoch of II.3.1; of the link only R is used."""

    def total(self) -> float:
        """Sum of squared weights in the radius."""
        return self.t - 1

    def estimate(self):
        return np.linalg.solve(self.design(), self.xs.T @ (self.weights() * np.array(self.rs)))

    def coefficient(self) -> float:
        ratio = self.total() / self.lam
        noise = subgaussian(sigma=self.sigma, delta=self.delta, dim=self.dim, ratio=ratio)
        return sqrt(self.lam) * self.S + noise


@dataclass(kw_only=True)
class NaiveDLinUCB(Discounted, NaiveLinUCB):
    """D-LinUCB (III.5a), with the sandwich norm V^-1 Vt V^-1."""

    def total(self) -> float:
        return geometric(self.gamma**2, self.t)

    def covariance(self):
        Vinv = np.linalg.inv(self.design())
        return Vinv @ self.design(2) @ Vinv


@dataclass(kw_only=True)
class NaiveSWLinUCB(Windowed, NaiveLinUCB):
    """SW-LinUCB (III.5b)."""

    def coefficient(self) -> float:
        noise = self.sigma * sqrt(self.dim * log((1 + self.window / self.lam) / self.delta))
        return sqrt(self.lam) * self.S + noise


@dataclass(kw_only=True)
class NaiveLBWeightUCB(Discounted, NaiveLinUCB):
    """LB-WeightUCB (III.4a)."""

    def total(self) -> float:
        return geometric(self.gamma**2, self.t - 1)


@dataclass(kw_only=True)
class NaiveRestartLinUCB(Restarted, NaiveLinUCB):
    """RestartUCB (II.3.1)."""

    def total(self) -> float:
        return self.clock
