"""Slow references of the rivals that came later; the frame is that of `naive`."""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, log, sqrt

import numpy as np
from scipy.special import erfinv

from naive import Discounted, Likelihood, Naive, NaiveDLinUCB, NaiveLinUCB, Windowed, geometric


@dataclass(kw_only=True)
class Centred(NaiveLinUCB):
    """Ridge regression of r - zero, reported with zero added."""

    zero: float

    def update(self, x, r):
        super().update(x, r - self.zero)

    def mean(self, z):
        return z + self.zero


@dataclass(kw_only=True)
class NaiveCentredDLinUCB(Centred, NaiveDLinUCB):
    """D-LinUCB on centred rewards."""


def deviation(policy) -> float:
    """The largest deviation of a reward: sqrt(g mu'), no more than half the range."""
    return min(sqrt(policy.link.g * policy.k), policy.link.R / 2)


@dataclass(kw_only=True)
class NaiveDLinTS(NaiveDLinUCB):
    """D-LinTS: deviations a ||x|| of x'theta under N(thhat, a^2 V^-1 Vt V^-1)."""

    inflated: bool = False

    def coefficient(self) -> float:
        return sqrt(14) * super().coefficient() if self.inflated else deviation(self)


@dataclass(kw_only=True)
class NaiveWSB(Discounted, NaiveLinUCB):
    """WSB-LinUCB: the prior costs the largest ||lam theta||_{V^-1}, ||theta|| = S."""

    horizon: int

    def total(self) -> float:
        return geometric(self.gamma**2, self.t - 1)

    def prior(self) -> float:
        worst = np.linalg.norm(np.linalg.inv(self.design()), 2)
        return self.lam * self.S * sqrt(worst)

    def coefficient(self) -> float:
        noise = self.subgaussian(ratio=self.total() / self.lam, delta=self.delta / self.horizon)
        return self.prior() + noise


@dataclass(kw_only=True)
class NaiveWSBLinTS(NaiveWSB):
    """WSB-LinTS: the same with the deviations of the posterior."""

    inflated: bool = False

    def coefficient(self) -> float:
        return sqrt(14) * super().coefficient() if self.inflated else deviation(self)


@dataclass(kw_only=True)
class Laplace(Likelihood):
    """The posterior of weighted rewards under N(0, I / lam), approximated at its mode."""

    def __post_init__(self):
        super().__post_init__()
        self.ridge = self.lam * self.link.g

    def mean(self, z):
        return z

    def estimate(self):
        return self.mle()

    def covariance(self):
        return np.linalg.inv(self.score().slope(self.estimate()) / self.link.g)

    def coefficient(self) -> float:
        return 1.0


@dataclass(kw_only=True)
class NaiveDGLMTS(Discounted, Laplace):
    """D-GLM-TS."""


@dataclass(kw_only=True)
class NaiveSWGLMTS(Windowed, Laplace):
    """SW-GLM-TS."""


def information_ratio(pi, values) -> float:
    """(sum pi_a Delta_a)^2 / sum pi_a v_a from joint draws `values` (N, m), arm by arm."""
    best = [int(np.argmax(column)) for column in values.T]
    top = np.mean([max(column) for column in values.T])
    regret = information = 0.0
    for share, row in zip(pi, values):
        regret += share * (top - row.mean())
        for b in set(best):
            given = row[[k for k, arm in enumerate(best) if arm == b]]
            information += share * len(given) / len(row) * (given.mean() - row.mean()) ** 2
    return regret**2 / information


@dataclass(kw_only=True)
class NaiveDAL(Naive):
    """DAL over fresh copies of `base()`: all streams are kept, every split of one is tried."""

    horizon: int
    base: Callable[[], Naive]

    def __post_init__(self):
        super().__post_init__()
        self.episode = 0
        self.begin()

    def begin(self):
        """Start an episode."""
        self.episode += 1
        self.rounds, self.streams = 0, [[] for _ in range(self.dim)]
        self.inner = self.base()

    def axis(self):
        """The axis of a forced round, None in a free one."""
        share = min(0.5, sqrt(self.episode * self.dim * log(self.horizon) / self.horizon))
        place = self.rounds % ceil(self.dim / share)
        return place if place < self.dim else None

    def index(self, arms):
        return self.inner.index(arms)

    def choose(self, arms) -> int:
        if self.axis() is None:
            return self.inner.choose(arms)
        return int(np.argmax(arms[:, self.axis()]))

    def changed(self, stream) -> bool:
        """Whether some split of a stream, sigma = R/2, is too unlikely."""
        n, mean = len(stream), np.mean(stream)
        splits = [(stream[:s], stream[s:]) for s in range(1, n)]
        gains = [sum(len(p) * (np.mean(p) - mean) ** 2 for p in split) for split in splits]
        worst = max(gains, default=0.0) / (2 * (self.link.R / 2) ** 2)
        return worst >= log(4 * n**1.5 / self.delta)

    def update(self, x, r):
        super().update(x, r)
        axis = self.axis()
        self.rounds += 1
        if axis is None:
            self.inner.update(x, r)
            return
        self.streams[axis].append(r)
        if self.changed(self.streams[axis]):
            self.begin()


@dataclass(kw_only=True)
class NaiveRestartedOFUL(NaiveLinUCB):
    """Restarted WeightedOFUL+: weights 1 / sigma^2, in the epoch so far."""

    period: int
    deviation: float

    def numbers(self):
        """alpha and gamma^2."""
        return self.link.R / sqrt(self.period), self.link.R / sqrt(self.dim)

    def epoch(self):
        """Contexts, rewards and weights of this epoch, the weights one after the other."""
        start = (self.t - 1) // self.period * self.period
        V, weights = self.lam * np.eye(self.dim), []
        alpha, gamma2 = self.numbers()
        for x in self.history[start:]:
            norm = sqrt(x @ np.linalg.solve(V, x))
            weights.append(1 / max(self.deviation, alpha, sqrt(gamma2 * norm)) ** 2)
            V = V + weights[-1] * np.outer(x, x)
        return self.xs[start:], np.array(self.rs[start:]), np.array(weights)

    def design(self, *, power: int = 1):
        xs, _, ws = self.epoch()
        return self.lam * np.eye(self.dim) + (xs.T * ws) @ xs

    def estimate(self):
        xs, rs, ws = self.epoch()
        return np.linalg.solve(self.design(), xs.T @ (ws * rs))

    def coefficient(self) -> float:
        d, R, k = self.dim, self.link.R, (self.t - 1) % self.period + 1
        alpha, gamma2 = self.numbers()
        logs = log(32 * (max(0, log(gamma2 / alpha)) + 1) * k**2 / self.delta)
        noise = 12 * sqrt(d * log(1 + k / (alpha**2 * d * self.lam)) * logs)
        return noise + 30 * logs * R / gamma2 + sqrt(self.lam) * self.S


@dataclass(kw_only=True)
class NaiveRestartedSAVE(Naive):
    """Restarted SAVE+: every layer keeps its weighted rounds."""

    period: int

    def layers(self):
        """The rounds (w x, w r) of every layer of this epoch."""
        L = ceil(1.5 * np.log2(self.period))
        kept = {layer: [] for layer in range(1, L + 1)}
        start = (self.t - 1) // self.period * self.period
        for x, r in zip(self.history[start:], self.rs[start:]):
            for layer in kept:
                V = self.design(kept[layer], layer)
                norm = sqrt(x @ np.linalg.solve(V, x))
                if norm >= 2.0**-layer:
                    w = 2.0**-layer / norm
                    kept[layer].append((w * x, w * r))
                    break
        return kept

    def design(self, kept, layer):
        return 4.0**-layer * np.eye(self.dim) + sum(np.outer(y, y) for y, _ in kept)

    def index(self, arms):
        """Mean and bonus of the least optimistic layer."""
        found = [self.one(kept, layer, arms) for layer, kept in self.layers().items()]
        least = np.argmin([mean + bonus for mean, bonus in found], axis=0)
        return tuple(np.array([found[k][p][a] for a, k in enumerate(least)]) for p in (0, 1))

    def one(self, kept, layer, arms):
        V, R, w = self.design(kept, layer), self.link.R, self.period
        theta = np.linalg.solve(V, sum((z * y for y, z in kept), np.zeros(self.dim)))
        L = ceil(1.5 * np.log2(w))
        later, logs = log(4 * (w + 1) ** 2 * L / self.delta), log(4 * w**2 * L / self.delta)
        var = R**2 * len(kept)
        if 2**layer >= 64 * sqrt(later):
            var = sum((z - y @ theta) ** 2 for y, z in kept)
        noise = 8 * sqrt((8 * var + 6 * R**2 * later + 16 * 4.0**-layer) * logs)
        beta = 2.0**-layer * (noise + 6 * R * logs + self.S)
        norms = np.sqrt(np.einsum("ij,ji->i", arms, np.linalg.solve(V, arms.T)))
        return arms @ theta, self.scale * beta * norms


@dataclass(kw_only=True)
class NaiveDynamicLinUCB(Naive):
    """dLinUCB: every model keeps its own rounds and all of its failures."""

    recent: int
    doubt: float
    spare: float

    def __post_init__(self):
        super().__post_init__()
        self.models, self.created, self.most = [], 0, [0]
        self.hire()

    def hire(self):
        names = ["dim", "link", "S", "lam", "delta", "scale"]
        fresh = NaiveLinUCB(**{name: getattr(self, name) for name in names})
        self.models.append((fresh, []))
        self.created += 1
        self.most.append(len(self.models))

    def rate(self, failures) -> tuple[float, float]:
        """Rate of failures and its error, from the latest rounds."""
        latest = failures[-self.recent :]
        if not latest:
            return 0.0, 0.5
        return float(np.mean(latest)), sqrt(log(1 / self.doubt) / (2 * len(latest)))

    def decides(self) -> NaiveLinUCB:
        rates = [self.rate(failures) for _, failures in self.models]
        hopes = [rate - sqrt(log(self.recent)) * doubt for rate, doubt in rates]
        return self.models[int(np.argmin(hopes))][0]

    def index(self, arms):
        return self.decides().index(arms)

    def update(self, x, r):
        super().update(x, r)
        excuse = sqrt(self.link.g) * sqrt(2) * erfinv(1 - self.delta)
        kept, good = [], False
        for model, failures in self.models:
            mean, bonus = (part[0] for part in model.index(np.array([x])))
            failures.append(abs(r - mean) > bonus + excuse)
            if not failures[-1]:
                model.update(x, r)
            rate, doubt = self.rate(failures)
            fine = rate < doubt + self.spare
            good = good or fine
            if fine or rate < doubt + self.delta:
                kept.append((model, failures))
        self.models = kept
        if not good:
            self.hire()


@dataclass(kw_only=True)
class NaiveLARL(Naive):
    """LARL: the regression of all rounds on what came before each of them."""

    order: int

    def state(self, t: int):
        """What is known before round t = 1, 2, ...: the latest rewards and contexts, and 1."""
        parts = []
        for power in (1, 0):
            for j in range(1, self.order + 1):
                seen = t - 1 - j >= 0
                x = self.history[t - 1 - j] if seen else np.zeros(self.dim)
                parts.append(x * (self.rs[t - 1 - j] if seen else 0.0) ** power)
        return np.concatenate([*parts, [1.0]])

    def rows(self):
        pairs = enumerate(self.history, start=1)
        return np.array([np.kron(x, self.state(t)) for t, x in pairs])

    def index(self, arms):
        X, lifted = self.rows(), np.array([np.kron(x, self.state(self.t)) for x in arms])
        D = lifted.shape[1]
        V = self.lam * np.eye(D) + X.T @ X if len(X) else self.lam * np.eye(D)
        b = X.T @ np.array(self.rs) if len(X) else np.zeros(D)
        norms = np.sqrt(np.einsum("ij,ji->i", lifted, np.linalg.solve(V, lifted.T)))
        return lifted @ np.linalg.solve(V, b), self.scale * norms
