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
    """m(z) = z^2 / 2, dispersion = variance (I.1)."""
    return Link(lambda z: z**2 / 2, lambda z: z, np.ones_like, np.zeros_like, bound, variance)


def poisson(bound: float) -> Link:
    """m(z) = e^z (I.1)."""
    return Link(np.exp, np.exp, np.exp, np.exp, bound, 1.0)


def unit_dispersion(link: Link) -> Link:
    """The link of the rewards r / g, whose variance is again its slope (III.0)."""
    m, mu, dmu, d2mu = [lambda z, f=f: f(z) / link.g for f in link[:4]]
    return Link(m, mu, dmu, d2mu, link.R / link.g, 1.0)


# Likelihood and projections


class Score(NamedTuple):
    """The weighted score g_t(theta) = sum w_s mu(x_s'theta) x_s + ridge theta (III.0)."""

    xs: np.ndarray
    ws: np.ndarray
    ridge: float
    link: Link

    def map(self, theta):
        """g_t(theta)."""
        return self.xs.T @ (self.ws * self.link.mu(self.xs @ theta)) + self.ridge * theta

    def slope(self, theta):
        """H_t(theta), the Jacobian of g_t."""
        curvature = self.ws * self.link.dmu(self.xs @ theta)
        return (self.xs.T * curvature) @ self.xs + self.ridge * np.eye(len(theta))


def weighted_mle(*, xs, rs, ws, ridge: float, link: Link) -> np.ndarray:
    """argmin of sum w_s (m(x_s'th) - r_s x_s'th) + ridge ||th||^2 / 2 (III.0.1)."""
    xs, rs, ws = np.array(xs), np.array(rs), np.array(ws)
    score = Score(xs, ws, ridge, link)

    def loss(theta):
        return ws @ (link.m(xs @ theta) - rs * (xs @ theta)) + ridge * theta @ theta / 2

    def grad(theta):
        return score.map(theta) - xs.T @ (ws * rs)

    theta = np.zeros(xs.shape[1])
    if grad(theta).any():
        theta = minimize(loss, theta, jac=grad, hess=score.slope, method="trust-exact").x
    while np.linalg.norm(grad(theta)) > 1e-11:
        newton = theta - np.linalg.solve(score.slope(theta), grad(theta))
        if np.linalg.norm(grad(newton)) >= np.linalg.norm(grad(theta)):
            break
        theta = newton
    return theta


def ball_projection(A, z, S: float) -> np.ndarray:
    """argmin over ||v|| <= S of (v - z)' A (v - z), by the secular equation (II.0.3)."""
    if np.linalg.norm(z) <= S:
        return z
    w, Q = np.linalg.eigh(A)
    b = w * (Q.T @ z)

    def excess(nu):
        return np.linalg.norm(b / (w + nu)) - S

    nu = brentq(excess, 0, np.linalg.norm(b) / S, xtol=1e-15, rtol=1e-15)
    return Q @ (b / (w + nu))


def minimise_on_balls(*, fun, grad, radii, starts) -> np.ndarray:
    """Least value over a product of balls: SLSQP from every start, then the KKT equations."""
    n, size = len(radii), np.repeat(radii, len(starts[0]) // len(radii))
    unit = max(fun(starts[0]), 1e-12)

    def value(y):
        return fun(size * y) / unit

    def slope(y):
        return size * grad(size * y) / unit

    def slack(y):
        return 1 - (y.reshape(n, -1) ** 2).sum(axis=1)

    def kkt(v):
        y, nu = v[:-n], v[-n:]
        return np.append(slope(y) + np.repeat(nu, len(y) // n) * y, slack(y))

    runs = []
    for start in starts:
        run = minimize(
            value,
            start / size,
            jac=slope,
            method="SLSQP",
            bounds=[(-1, 1)] * len(start),
            constraints={"type": "ineq", "fun": slack},
            options={"ftol": 1e-14, "maxiter": 500},
        )
        runs.append(run.x)
    best = min(runs, key=value)
    if slack(best).max() < 1e-5:
        nu = -(slope(best) * best).reshape(n, -1).sum(axis=1)
        exact = root(kkt, np.append(best, nu), tol=1e-14).x[:-n]
        if np.linalg.norm(exact - best) < 1e-3:
            best = exact
    return size * best


def sphere_starts(theta, S: float) -> list:
    """The radial point of theta and four fixed random points of the sphere."""
    random = np.random.default_rng(0).standard_normal((4, len(theta)))
    return [S * v / np.linalg.norm(v) for v in [theta, *random]]


def filippi_projection(*, theta, score: Score, Q, S: float) -> np.ndarray:
    """argmin over the ball of ||g_t(v) - g_t(theta)||_{Q^-1}; theta itself if inside (III.0.2)."""
    if np.linalg.norm(theta) <= S:
        return theta
    Qinv = np.linalg.inv(Q)

    def gap(v):
        return score.map(v) - score.map(theta)

    return minimise_on_balls(
        fun=lambda v: gap(v) @ Qinv @ gap(v) / 2,
        grad=lambda v: score.slope(v) @ Qinv @ gap(v),
        radii=[S],
        starts=sphere_starts(theta, S),
    )


def variable_metric_projection(*, theta, score: Score, S: float) -> np.ndarray:
    """argmin over the ball of ||g_t(v) - g_t(theta)||_{H_t(v)^-1}; theta if inside (III.0.3)."""
    if np.linalg.norm(theta) <= S:
        return theta
    xs, ws = score.xs, score.ws

    def gap(v):
        return score.map(v) - score.map(theta)

    def fun(v):
        return gap(v) @ np.linalg.solve(score.slope(v), gap(v)) / 2

    def grad(v):
        q = np.linalg.solve(score.slope(v), gap(v))
        return gap(v) - xs.T @ (ws * score.link.d2mu(xs @ v) * (xs @ q) ** 2) / 2

    return minimise_on_balls(fun=fun, grad=grad, radii=[S], starts=sphere_starts(theta, S))


# The common frame


def geometric(q: float, n: int) -> float:
    """1 + q + ... + q^(n-1), which is n when q = 1."""
    return sum(q**i for i in range(n))


@dataclass(kw_only=True)
class Naive:
    """History and index; the unscaled coefficient multiplies sqrt(x' covariance x)."""

    dim: int
    link: Link
    S: float
    lam: float
    delta: float
    scale: float = 1.0

    def __post_init__(self):
        slopes = self.link.dmu(np.array([-self.S, 0.0, self.S]))
        self.c, self.k = float(min(slopes)), float(max(slopes))
        self.history, self.rs = [], []

    @property
    def t(self) -> int:
        """The coming round."""
        return len(self.rs) + 1

    @property
    def xs(self) -> np.ndarray:
        """Features of rounds 1..t-1, shape (t-1, d)."""
        return np.array(self.history).reshape(-1, self.dim)

    def subgaussian(self, *, ratio: float, delta: float | None = None) -> float:
        """R/2 sqrt(2 log(1/delta) + d log(1 + ratio/d)), ratio = squared weights over reg."""
        delta = delta or self.delta
        return self.link.R / 2 * sqrt(2 * log(1 / delta) + self.dim * log(1 + ratio / self.dim))

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
        return int(np.argmax(np.add(*self.index(arms))))

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

    def curvature(self, *, age: int = 0):
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


@dataclass(kw_only=True)
class NaiveBOB(Naive):
    """Bandit over bandits (docs/bob.md): a fresh DOMD in every block, EXP3 over its discount."""

    eta: float
    block: int
    horizon: int
    low: float = 0.0  # smallest reward
    luck: Callable[[int], float]  # a uniform number for the block i = 0, 1, ...

    def __post_init__(self):
        super().__post_init__()
        self.discounts = [1 - 2.0**-j for j in range(1, self.block + 1) if 2**j <= self.block]
        blocks, K = -(-self.horizon // self.block), len(self.discounts)
        self.rate = sqrt(2 * log(K) / (blocks * K))
        self.drawn = []  # place in the grid and its probability, by block

    def chances(self, blocks: int):
        """EXP3's probabilities after so many blocks, from all of their rewards."""
        losses = np.zeros(len(self.discounts))
        for i, (arm, chance) in enumerate(self.drawn[:blocks]):
            rewards = np.array(self.rs[i * self.block : (i + 1) * self.block])
            losses[arm] += (1 - np.mean((rewards - self.low) / self.width_of_rewards)) / chance
        weights = np.exp(-self.rate * (losses - losses.min()))
        return weights / weights.sum()

    def draw(self):
        chances = self.chances(len(self.drawn))
        total, u = 0.0, self.luck(len(self.drawn))
        for arm, chance in enumerate(chances):
            total += chance
            if u < total or arm == len(chances) - 1:
                self.drawn.append((arm, chance))
                return

    def inner(self) -> NaiveDOMD:
        """The DOMD of this block, taught all of its rounds again."""
        done = len(self.rs) // self.block * self.block
        if len(self.drawn) * self.block <= done:
            self.draw()
        names = ["dim", "S", "lam", "delta", "scale", "eta"]
        numbers = {name: getattr(self, name) for name in names}
        gamma = self.discounts[self.drawn[-1][0]]
        inner = NaiveDOMD(link=self.link, gamma=gamma, **numbers)
        for x, r in zip(self.history[done:], self.rs[done:]):
            inner.update(x, r)
        return inner

    @property
    def width_of_rewards(self) -> float:
        return self.link.R - self.low

    def index(self, arms):
        return self.inner().index(arms)


# Kinds of weights, of ridge and of noise


@dataclass(kw_only=True)
class Weighted(Naive):
    """Weighted data with ridge = lam c and reg = lam (III.0)."""

    def __post_init__(self):
        super().__post_init__()
        self.ridge, self.reg = self.lam * self.c, self.lam

    def weights(self):
        """One weight per past round."""
        return np.ones(self.t - 1)

    def design(self, *, power: int = 1):
        """reg I + sum w_s^power x_s x_s': V_t, or V tilde at power 2."""
        return self.reg * np.eye(self.dim) + (self.xs.T * self.weights() ** power) @ self.xs

    def covariance(self):
        return np.linalg.inv(self.design())


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
    """w_s = 1 in the current epoch of `period` rounds."""

    period: int

    def clock(self) -> int:
        return (self.t - 1) % self.period

    def weights(self):
        return np.array([float(s >= self.t - self.clock()) for s in range(1, self.t)])


@dataclass(kw_only=True)
class Likelihood(Weighted):
    """Penalised weighted MLE, projected in the design metric when outside the ball."""

    def score(self) -> Score:
        return Score(self.xs, self.weights(), self.ridge, self.link)

    def mean(self, z):
        return self.link.mu(z)

    def mle(self):
        """The unconstrained estimate."""
        return weighted_mle(rs=self.rs, **self.score()._asdict())

    def estimate(self):
        return filippi_projection(theta=self.mle(), score=self.score(), Q=self.design(), S=self.S)


@dataclass(kw_only=True)
class Russac(Likelihood):
    """The convention ridge = lam and reg = lam / c (III.0)."""

    def __post_init__(self):
        super().__post_init__()
        self.ridge, self.reg = self.lam, self.lam / self.c


@dataclass(kw_only=True)
class SelfConcordant(Likelihood):
    """Variance-based methods work on r / g and return the index in units of r (III.0)."""

    def __post_init__(self):
        self.g, self.link = self.link.g, unit_dispersion(self.link)
        super().__post_init__()

    def bernstein(self, *, total: float, delta: float) -> float:
        """Radius of noise bounded by R with variance mu', squared weights adding to total."""
        R, d, ridge = self.link.R, self.dim, self.ridge
        volume = d * log(1 + self.k * total / (d * ridge))
        return (ridge / (2 * R) + R * (2 * log(1 / delta) + 2 * d * log(2) + volume)) / sqrt(ridge)

    def mean(self, z):
        return self.g * self.link.mu(z)

    def update(self, x, r):
        super().update(x, r / self.g)


# Restarts


@dataclass(kw_only=True)
class NaiveGLMUCB(Likelihood):
    """Regularised GLM-UCB (II.2.2); with a horizon, the radius of MASTER's base (II.2.3)."""

    horizon: int | None = None

    def clock(self) -> int:
        """Rounds that the estimate has seen."""
        return self.t - 1

    def coefficient(self) -> float:
        if self.horizon is not None:
            noise = sqrt(self.dim * log(self.c * self.horizon / (self.lam * self.delta)))
            return 8 * self.k / self.c * (noise + self.c * sqrt(self.lam) * self.S)
        noise = self.subgaussian(ratio=self.clock() / self.lam)
        return self.k / self.c * (self.c * sqrt(self.lam) * self.S + noise)


@dataclass(kw_only=True)
class NaiveRestartGLB(Restarted, NaiveGLMUCB):
    """RestartGLB (II.3.2); the original does not project."""

    project: bool = False

    def estimate(self):
        return super().estimate() if self.project else self.mle()


class Instance(NamedTuple):
    """A base algorithm that lives on block offsets start..end-1, end = start + 2^order (II.4.2)."""

    order: int
    start: int
    end: int
    alg: Naive


@dataclass(kw_only=True)
class NaiveMASTER(Naive):
    """MASTER (II.4) over fresh copies of `base()`, GLM-UCB with its own paper's radius unless
    given; gains are r / R."""

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
                self.instances.append(Instance(m, tau, tau + 2**m, self.fresh()))

    def fresh(self) -> Naive:
        """A base without data."""
        if self.base is not None:
            return self.base()
        names = ["dim", "link", "S", "lam", "delta", "scale", "horizon"]
        return NaiveGLMUCB(**{name: getattr(self, name) for name in names})

    def active(self) -> Naive:
        """The live instance of smallest order."""
        return min(self.instances, key=lambda i: i.order).alg

    def estimate(self):
        return self.active().estimate()

    def coefficient(self) -> float:
        return self.active().coefficient()

    def index(self, arms):
        return self.active().index(arms)

    def choose(self, arms) -> int:
        total = np.add(*self.index(arms))
        self.value = float(np.clip(max(total) / self.link.R, 0, 1))
        return int(np.argmax(total))

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
        """Test 1 on every instance that ends now, test 2 on the whole block (II.4.3)."""
        now, lowest = len(self.gains), min(self.values)
        for i in self.instances:
            high = lowest + 9 * self.rhohat(2**i.order)
            if i.end == now and np.mean(self.gains[i.start :]) >= high:
                return True
        return np.mean(self.values) - np.mean(self.gains) >= 3 * self.rhohat(now)

    def update(self, x, r):
        self.active().update(x, r)
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


# Online Newton


@dataclass(kw_only=True)
class NaiveGLOC(Weighted):
    """GLOC with the online Newton step (II.5), kappa = c; the centre regresses on z_s."""

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
        B, V = 2 * self.c * self.S**2 * self.lam, self.lam * np.eye(self.dim)
        for x, z, r in zip(self.history, self.predictions(), self.rs):
            V = V + np.outer(x, x)
            B += (self.link.mu(z) - r) ** 2 * (x @ np.linalg.solve(V, x)) / (2 * self.c)
        return B

    def coefficient(self) -> float:
        c, B, sigma, z = self.c, self.regret(), self.link.R / 2, self.predictions()
        inner = 1 + 2 / c * B + 4 * sigma**4 / (c**4 * self.delta**2)
        noise = 8 * sigma**2 / c**2 * log(2 / self.delta * sqrt(inner))
        fit = z @ z - self.estimate() @ (self.xs.T @ z)
        return sqrt(max(0.0, 1 + 4 / c * B + noise + self.lam * self.S**2 - fit))

    def update(self, x, r):
        super().update(x, r)
        x, theta, V = self.history[-1], self.thetas[-1], self.design()
        free = theta - (self.link.mu(x @ theta) - r) / self.c * np.linalg.solve(V, x)
        self.thetas.append(ball_projection(V, free, self.S))


# Discounted and windowed likelihood


@dataclass(kw_only=True)
class NaiveDGLUCB(Discounted, Russac):
    """D-GLUCB (III.1a), projected in the metric of V tilde."""

    def estimate(self):
        Vt = self.design(power=2)
        return filippi_projection(theta=self.mle(), score=self.score(), Q=Vt, S=self.S)

    def coefficient(self) -> float:
        c, k, lam, S = self.c, self.k, self.lam, self.S
        noise = self.subgaussian(ratio=geometric(self.gamma**2, self.t) / self.reg)
        return 2 * k / c * (noise + sqrt(c * lam) * S + 2 * S * k * sqrt(c / lam))


@dataclass(kw_only=True)
class NaiveSWGLUCB(Windowed, Russac):
    """SW-GLUCB (III.1b)."""

    horizon: int

    def coefficient(self) -> float:
        ratio = min(self.t, self.window) / self.reg
        noise = self.subgaussian(ratio=ratio, delta=self.delta / self.horizon)
        return 2 * self.k / self.c * (noise + sqrt(self.c * self.lam) * self.S)


@dataclass(kw_only=True)
class Unprojected(SelfConcordant, Russac):
    """SC-GLUCB (III.2): the plain MLE; Remark 1 inside the ball unless `remark` is off."""

    horizon: int
    remark: bool = True

    def estimate(self):
        return self.mle()

    def rho(self) -> float:
        return self.bernstein(total=self.total(), delta=self.delta / self.horizon)

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
class NaiveSCDGLUCB(Discounted, Unprojected):
    """SC-D-GLUCB (III.2), where gamma^D = 1/T."""

    def total(self) -> float:
        return (1 - self.horizon**-2.0) / (1 - self.gamma**2)

    def sbar(self) -> float:
        bias = (2 * self.S * self.k + self.link.R) / (self.lam * (1 - self.gamma))
        return self.S + bias / self.horizon


@dataclass(kw_only=True)
class NaiveSCSWGLUCB(Windowed, Unprojected):
    """SC-SW-GLUCB (III.2)."""

    def total(self) -> float:
        return min(self.t, self.window)

    def sbar(self) -> float:
        return self.S


@dataclass(kw_only=True)
class NaiveBVDGLMUCB(Discounted, Likelihood):
    """BVD-GLM-UCB (III.3), with the generalised projection in its cases a, b and c."""

    def beta(self) -> float:
        noise = self.subgaussian(ratio=geometric(self.gamma**2, self.t) / self.lam)
        return sqrt(self.lam) * self.c * self.S + noise

    def coefficient(self) -> float:
        return 2 * self.k / self.c * self.beta()

    def estimate(self):
        theta, score, Vt = self.mle(), self.score(), self.design(power=2)
        near = filippi_projection(theta=theta, score=score, Q=Vt, S=self.S)
        gap = score.map(near) - score.map(theta)
        if gap @ np.linalg.solve(Vt, gap) <= self.beta() ** 2:
            self.case = "a" if near is theta else "b"
            return near
        self.case = "c"
        return self.joint(theta)

    def joint(self, theta):
        """Case c: min ||g(v) + beta Vt^(1/2) e - g(theta)||_{V^-2}, ||v|| <= S, ||e|| <= 1."""
        score, d, Vinv = self.score(), self.dim, np.linalg.inv(self.design())
        w, Q = np.linalg.eigh(self.design(power=2))
        shift = self.beta() * (Q * np.sqrt(w)) @ Q.T

        def residual(p):
            return Vinv @ (score.map(p[:d]) + shift @ p[d:] - score.map(theta))

        def grad(p):
            back = Vinv @ residual(p)
            return np.append(score.slope(p[:d]) @ back, shift @ back)

        return minimise_on_balls(
            fun=lambda p: residual(p) @ residual(p) / 2,
            grad=grad,
            radii=[self.S, 1.0],
            starts=[np.append(v, np.zeros(d)) for v in sphere_starts(theta, self.S)],
        )[:d]


# Weighted likelihood with one design matrix


@dataclass(kw_only=True)
class NaiveGLBWeightUCB(Discounted, Likelihood):
    """GLB-WeightUCB (III.4b)."""

    def coefficient(self) -> float:
        noise = self.subgaussian(ratio=geometric(self.gamma**2, self.t - 1) / self.lam)
        return 2 * self.k / self.c * (sqrt(self.lam) * self.c * self.S + noise)


@dataclass(kw_only=True)
class NaiveSCBWeightUCB(Discounted, SelfConcordant):
    """SCB-WeightUCB (III.4c), projected in the variable metric."""

    def estimate(self):
        return variable_metric_projection(theta=self.mle(), score=self.score(), S=self.S)

    def total(self) -> float:
        return geometric(self.gamma**2, self.t - 1)

    def beta(self) -> float:
        """Eq. 16."""
        noise = self.bernstein(total=self.total(), delta=self.delta)
        return noise + sqrt(self.ridge) * self.S

    def coefficient(self) -> float:
        return self.g * 2 * sqrt(1 + 2 * self.S) * self.k / sqrt(self.c) * self.beta()


@dataclass(kw_only=True)
class NaiveSCBPWWeightUCB(NaiveSCBWeightUCB):
    """SCB-PW-WeightUCB (III.4d): variant A in the design norm, variant B in the local norm."""

    horizon: int
    variant: str = "A"

    def total(self) -> float:
        return (1 - self.horizon**-2.0) / (1 - self.gamma**2)

    def beta(self) -> float:
        """rho: Eq. 16 at D, where gamma^D = 1/T, plus the bias of rounds older than D."""
        bias = (2 * self.S * self.k + self.link.R) / sqrt(self.ridge)
        return super().beta() + bias / (self.horizon * (1 - self.gamma))

    def mean(self, z):
        return super().mean(z) if self.variant == "A" else z

    def covariance(self):
        if self.variant == "A":
            return super().covariance()
        return np.linalg.inv(self.score().slope(self.estimate()))

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
        return np.linalg.solve(self.design(), self.xs.T @ (self.weights() * self.rs))

    def coefficient(self) -> float:
        return sqrt(self.lam) * self.S + self.subgaussian(ratio=self.total() / self.lam)


@dataclass(kw_only=True)
class NaiveDLinUCB(Discounted, NaiveLinUCB):
    """D-LinUCB (III.5a, corrected in I.5: t - 1 weights), with the sandwich V^-1 Vt V^-1."""

    def total(self) -> float:
        return geometric(self.gamma**2, self.t - 1)

    def covariance(self):
        Vinv = np.linalg.inv(self.design())
        return Vinv @ self.design(power=2) @ Vinv


@dataclass(kw_only=True)
class NaiveSWLinUCB(Windowed, NaiveLinUCB):
    """SW-LinUCB (III.5b)."""

    def coefficient(self) -> float:
        noise = sqrt(self.dim * log((1 + self.window / self.lam) / self.delta))
        return sqrt(self.lam) * self.S + self.link.R / 2 * noise


@dataclass(kw_only=True)
class NaiveLBWeightUCB(Discounted, NaiveLinUCB):
    """LB-WeightUCB (III.4a)."""

    def total(self) -> float:
        return geometric(self.gamma**2, self.t - 1)


@dataclass(kw_only=True)
class NaiveRestartLinUCB(Restarted, NaiveLinUCB):
    """RestartUCB (II.3.1)."""

    def total(self) -> float:
        return self.clock()


def check_dispersion(policy, learn):
    """Teach a fresh row, and check every g against sums of squared errors and slopes."""
    rng, row, family = np.random.default_rng(5), policy.fresh.copy(), policy.problem.family
    errors = slopes = 1.0
    for _ in range(60):
        now = policy.from_rows(row[None])
        x, r = 0.7 * rng.uniform(-1, 1, 2), rng.uniform(0.2, 0.4)
        z = x @ now.theta[0]
        errors += (r - family.mu(z)) ** 2
        slopes += family.dmu(z)
        learn(policy.recipe, row, x, r, 1.0, None)
        now = policy.from_rows(row[None])
        assert abs(now.g[0] - errors / slopes) < 1e-12
        assert abs(now.basis[0] - slopes) < 1e-9
    assert 0.01 < now.g[0] < 0.3
