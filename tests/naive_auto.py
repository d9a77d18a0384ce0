"""AutoDOMD, slow and obvious: the reference implementation that the kernels are compared with."""

import math

import numpy as np


class MixtureReference:
    """The same mixture from its formulas: lists of learners, no shared scratch, no logarithms
    kept between rounds but one."""

    def __init__(self, policy):
        problem, d = policy.problem, policy.problem.dim
        lams = policy.regularizations
        long = [(g, lams[len(lams) // 2]) for g in policy.discounts if 1e3 < memory(g) < math.inf]
        short = [g for g in policy.discounts if not 1e3 < memory(g) < math.inf]
        pairs = [(g, lam) for lam in lams for g in short]
        pairs, n = pairs + long, len(pairs)
        taught = [(1.0, lams[len(lams) // 2])] * len(policy.paces)
        self.paces = [0.9] * len(pairs) + list(policy.paces)
        self.taught = [False] * len(pairs) + [True] * len(taught)
        prior = np.array([(1.001 - g) ** -0.3 for g, _ in pairs])
        if long:  # they share the weight of the learner that they begin as copies of
            alike = [*range(n, len(pairs))]
            alike += [k for k, pair in enumerate(pairs) if pair == (1.0, long[0][1])]
            prior[alike] = 0.001**-0.3 / len(alike)
        prior *= (1 - 0.003 * len(taught)) / prior.sum()
        self.prior = np.hstack(
            [np.outer([0.999, 0.001], prior), np.outer([0.0, 0.003], np.ones(len(taught)))]
        )
        pairs += taught
        self.gamma = np.array([g for g, _ in pairs])
        self.lam = np.array([lam for _, lam in pairs]) * problem.context_norm**2
        self.lam[self.gamma < 1] *= 0.9
        self.S = [problem.radius or 10 * min(max(memory(g) / 100, 1), 10) for g in self.gamma]
        self.thetas = [np.zeros(d) for _ in pairs]
        self.Hs = [lam * np.eye(d) for lam in self.lam]
        self.tracks, self.policy = self.prior, policy
        self.gains = np.array([[[1.0, 4.0] for _ in pairs] for _ in range(2)])
        self.floor = 8 * problem.family.dmu(0.0) / problem.family.g
        self.levels = np.array([[0.0, self.floor] for _ in pairs])
        self.rounds, self.renewals, self.t = np.zeros(len(pairs)), 0, 0
        self.kept, self.drift = np.ones(len(pairs)), 0.0  # kept since lambda was last refilled
        self.usual = 0.0  # slow average of the logarithm of the effective memory

    @property
    def weights(self):
        return self.tracks.sum(axis=0)

    def moments(self):
        big = self.weights >= 1e-3
        theta = sum(w * th for w, th in zip(self.weights, self.thetas))
        V = sum(
            w * (np.linalg.inv(H) + np.outer(th - theta, th - theta))
            for w, th, H in zip(
                self.weights[big], np.array(self.thetas)[big], np.array(self.Hs)[big]
            )
        )
        return theta, V

    def choose(self, arms):
        theta, V = self.moments()
        width = math.sqrt(self.policy.bonus**2 + 1.4 * math.log(1 + math.exp(self.usual) / 1e4))
        spread = np.sqrt(np.einsum("ad,de,ae->a", arms, V, arms))
        return int(np.argmax(arms @ theta + width * spread))

    def update(self, x, r):
        family = self.policy.problem.family
        logs = np.log(np.maximum(self.tracks, 1e-300))
        for k, theta in enumerate(self.thetas):
            for track in range(2):
                level = self.levels[k, 0] * track
                gain, curvature = self.gains[track, k]
                z = level + gain * (x @ theta)
                logs[track, k] += (r * z - family.m(z)) / family.g
                slope, gap = family.dmu(z) / family.g, (r - family.mu(z)) / family.g
                curvature = 0.998 * curvature + 0.008 + slope * (x @ theta) ** 2
                gain += ((x @ theta) * gap + 0.008 * (1 - gain)) / curvature
                self.gains[track, k] = max(0.0, gain), curvature
            pull = (1 - self.paces[k]) * self.floor
            firm = self.paces[k] * self.levels[k, 1] + pull + slope
            self.levels[k] = level + (gap - pull * level) / firm, firm
            A, self.kept[k] = self.gamma[k] * self.Hs[k], self.gamma[k] * self.kept[k]
            if self.kept[k] <= 0.9 or self.t % 256 == k:
                A, self.kept[k] = A + (1 - self.kept[k]) * self.lam[k] * np.eye(len(x)), 1.0
            level = self.levels[k, 0] if self.taught[k] else 0.0
            slope, gap = family.dmu(level + x @ theta), family.mu(level + x @ theta) - r
            Atil = A + slope / family.g * np.outer(x, x)
            new, S = theta - np.linalg.solve(Atil, gap / family.g * x), self.S[k]
            self.thetas[k] = new if np.linalg.norm(new) <= S else onto_ball(Atil, new, S)
            slope = family.dmu(level + x @ self.thetas[k])
            self.Hs[k] = A + slope / family.g * np.outer(x, x)
        self.suspect(logs)
        self.rounds, self.t = self.gamma * self.rounds + 1, self.t + 1
        self.renew(logs)
        tracks, share = np.exp(logs - logs.max()), min(self.policy.share, 1 / self.t)
        self.tracks = (1 - share) * tracks / tracks.sum() + share * self.prior
        self.usual += (math.log(self.weights @ self.rounds) - self.usual) / min(self.t, 500)

    def suspect(self, logs):
        """How much better those who forget predicted: the ratio of two mixtures' likelihoods."""
        short = np.array([3 * memory(g) < self.t for g in self.gamma])
        if short.any():
            after, before = np.exp(logs).sum(axis=0), self.weights
            forgetful = after[short].sum() / before[short].sum()
            rest = after[~short].sum() / before[~short].sum()
            self.drift += math.log(forgetful / rest) - self.drift / (self.t + 300)

    def renew(self, logs):
        best = logs.max(axis=0)
        lead = int(np.argmax(best))
        for k in np.flatnonzero((best < best[lead] - 8.0) & (self.gamma > self.gamma[lead])):
            extra = max(0.0, self.lam[k] - self.lam[lead])
            self.Hs[k] = self.Hs[lead] + extra * np.eye(len(self.thetas[k]))
            refilled = self.Hs[k] + (1 - self.kept[lead]) * self.lam[lead] * np.eye(len(self.Hs[k]))
            self.Hs[k] = refilled
            known = refilled - self.lam[k] * np.eye(len(refilled))  # what data say, without lambda
            new = np.linalg.solve(refilled, known @ self.thetas[lead])
            reverts = self.policy.reverts and not self.taught[k]
            self.thetas[k] = new if reverts else self.thetas[lead].copy()
            self.gains[:, k], self.rounds[k] = self.gains[:, lead], self.rounds[lead]
            self.kept[k] = 1.0
            if self.taught[k]:
                self.levels[k, 0], logs[:, k] = 0.0, (-np.inf, best[lead] - 5.0)
            else:
                self.levels[k], logs[:, k] = self.levels[lead], logs[:, lead] - 5.0
            self.renewals += 1


def memory(gamma):
    """Rounds that a discount keeps in mind."""
    return math.inf if gamma == 1 else 1 / (1 - gamma)


def onto_ball(A, zeta, S):
    """argmin ||v - zeta||_A over ||v|| <= S by bisection on the multiplier."""
    low, high = 0.0, 1e8
    for _ in range(200):
        nu = (low + high) / 2
        v = np.linalg.solve(A + nu * np.eye(len(A)), A @ zeta)
        low, high = (nu, high) if np.linalg.norm(v) > S else (low, nu)
    return v


def grid_of(policy):
    """Discount, regularization and ball of every learner of a policy's recipe, whose end they are
    with the prior's two rows, paces and what is taught."""
    learners = policy.prior.shape[1]
    return policy.recipe[-7 * learners :].reshape(7, learners)[:3]
