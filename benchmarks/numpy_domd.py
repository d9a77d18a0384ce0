"""DOMD-GLB as one would first write it in NumPy: the yardstick of the speed figures.

Algorithm 1 line by line for Bernoulli rewards, constant cost a round like the package's and the
same numbers; no compilation, no input checks, no lock.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq


def mu(z):
    return 1 / (1 + np.exp(-z))


def dmu(z):
    return mu(z) * (1 - mu(z))


class NumpyDOMD:
    """Arguments in the paper's letters; R = g = 1 and k = 1/4 for Bernoulli rewards."""

    def __init__(self, dim, *, S, gamma, lam, eta, delta, scale):
        self.d, self.S, self.gamma, self.lam, self.eta = dim, S, gamma, lam, eta
        self.delta, self.scale = delta, scale
        self.theta, self.H, self.t = np.zeros(dim), lam * np.eye(dim), 1

    def beta(self):
        d, t, k, eta, gamma = self.d, self.t, 0.25, self.eta, self.gamma
        mass = k * (1 - gamma ** (t - 1)) / (self.lam * d * (1 - gamma))
        return np.sqrt(
            4 * self.lam * self.S**2
            + 2 * eta * (1 + 1 / k) * np.log(np.pi**2 * t**2 / (3 * self.delta))
            + 2 * eta * (3 * eta + 0.5) * d * np.log(1 + mass)
        )

    def choose(self, arms):
        H_inv = np.linalg.inv(self.H)
        norms = np.sqrt(((arms @ H_inv) * arms).sum(axis=1))
        return int(np.argmax(arms @ self.theta + self.scale * self.beta() * norms))

    def update(self, x, r):
        A = self.gamma * self.H + (1 - self.gamma) * self.lam * np.eye(self.d)
        z = x @ self.theta
        Atil = A + self.eta * dmu(z) * np.outer(x, x)
        zeta = self.theta - self.eta * np.linalg.solve(Atil, (mu(z) - r) * x)
        self.theta = self.project(Atil, zeta)
        self.H = A + dmu(x @ self.theta) * np.outer(x, x)
        self.t += 1

    def project(self, A, zeta):
        if np.linalg.norm(zeta) <= self.S:
            return zeta
        w, Q = np.linalg.eigh(A)
        b = w * (Q.T @ zeta)
        nu = brentq(lambda nu: np.linalg.norm(b / (w + nu)) - self.S, 0, np.linalg.norm(b) / self.S)
        return Q @ (b / (w + nu))
