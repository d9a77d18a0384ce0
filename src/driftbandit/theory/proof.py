"""The proofs at work: every inequality of the paper's proofs, evaluated on a run.

`check(run)` plays a run of DOMD-GLB again and returns both sides of each inequality for every seed
and round. Those marked sure hold for every run; the others fail with probability delta in all.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from driftbandit.problem import Problem
from driftbandit.theory import auxiliary
from driftbandit.theory.domd import Floats, drift_kernel
from driftbandit.theory.losses import bregman, discounted, drifted, loss, mix_loss
from driftbandit.theory.piecewise import D_gamma, best_D, good_rounds, worst_round
from driftbandit.theory.radius import beta
from driftbandit.theory.replay import Trace, replay
from driftbandit.theory.sharp import divergence_factor, mix_factor, radius_of, sharp_alpha
from driftbandit.theory.verdict import Inequality, Proof


class Setting(NamedTuple):
    """The numbers of a run that its proofs use, (T,) or (n, T) where they depend on the round."""

    problem: Problem
    eta: float
    lam: float
    gamma: float
    alpha: float  # 3 eta / 2, or that of the sharper theorem
    factor: float  # of log det in Lemma A.7: 2 alpha, or alpha C
    beta: Floats
    logs: Floats  # log(pi^2 t^2 / (3 delta)): a failure of delta_t / 2
    mass: Floats  # d log(1 + k n_t / (lam d g))
    V: Floats
    moves: Floats  # ||theta*_{t+1} - theta*_t||, the last one 0

    @property
    def price(self) -> float:
        """k iota / sqrt(lam)."""
        k, g = self.problem.k_mu, self.problem.family.g
        return k * math.sqrt(2.0 * self.eta * k / g / self.lam)

    @property
    def sharp_factor(self) -> float:
        """alpha C(M^2 alpha / lam), for any lam (docs/theory.md)."""
        M = self.problem.family.self_concordance
        return self.alpha * divergence_factor(M**2 * self.alpha / self.lam)


def check(run: Any) -> Proof:
    """Both sides of every inequality of the proofs of Theorems 1 and 2, and of Theorem 3 where
    the number of changes is known, on a run of `DOMD.from_theory`. With `sharp=True` the lemmas
    have the sharper theorem's alpha and factor.

    Other lambda and eta are checked as they are: outside the theorems' conditions sides may cross.

    >>> from driftbandit import DOMD, Circle, simulate, theory
    >>> world = Circle(horizon=60, dim=2)
    >>> run = simulate(DOMD.from_theory(world.problem), world, seeds=range(2))
    >>> theory.check(run).holds
    True
    """
    policy = run.policy
    if getattr(policy, "delta", None) is None or not hasattr(policy, "step"):
        raise ValueError(
            "the proofs are about DOMD-GLB with the theorem's radius: simulate "
            "DOMD.from_theory(problem), or DOMD(..., delta=..., scale=...)"
        )
    if not policy.discount < 1.0:
        raise ValueError("the proofs need a discount below 1: simulate DOMD.from_theory(problem)")
    family = policy.problem.family
    if family.learns_g or family.quasi:
        raise ValueError(
            f"{type(family).__name__} is a quasi-likelihood whose dispersion g is learnt, and the "
            "proofs need the likelihood of the rewards with a g that is known: simulate Bernoulli, "
            "Binomial, Poisson or Gaussian rewards"
        )
    paths = [policy.problem.context_norm * run.environment.path(seed) for seed in run.seeds]
    setting = _setting(policy, paths)
    trace = replay(run, setting.beta)
    parts = [*_confidence(setting, trace), *_auxiliary(setting, trace)]
    parts += _regret(setting, trace, run.regret)
    if policy.problem.change_points is not None:
        parts += _piecewise(setting, paths, run.regret)
    return Proof(policy.name, run.environment.name, tuple(run.seeds), tuple(parts))


def _setting(policy: Any, paths: list[Floats]) -> Setting:
    problem, gamma, t = policy.problem, policy.discount, np.arange(1.0, len(paths[0]) + 1.0)
    numbers = {"eta": policy.step, "lam": policy.regularization, "gamma": gamma}
    radius = radius_of(problem, delta=policy.delta, sharp=policy.sharp, **numbers)
    alpha, factor = 1.5 * policy.step, 3.0 * policy.step
    if policy.sharp:
        alpha = sharp_alpha(problem, policy.regularization, step=policy.step)
        factor = mix_factor(problem, policy.regularization, step=policy.step)
    moves = [np.linalg.norm(np.diff(path, axis=0, append=path[-1:]), axis=1) for path in paths]
    counts = (1.0 - gamma ** (t - 1.0)) / (1.0 - gamma)
    return Setting(
        problem,
        **numbers,
        alpha=alpha,
        factor=factor,
        beta=np.array([beta(radius, s) for s in t]),
        logs=np.log(math.pi**2 * t**2 / (3.0 * policy.delta)),
        mass=problem.dim * np.log1p(radius.mass * counts),
        V=np.stack([drift_kernel(path, gamma) for path in paths]),
        moves=np.stack(moves),
    )


def _confidence(s: Setting, trace: Trace) -> list[Inequality]:
    """The lemmas of Appendix A, and Theorem 1."""
    family, k, g = s.problem.family, s.problem.k_mu, s.problem.family.g
    alpha, start, kept = s.alpha, 4.0 * s.lam * s.problem.S**2, s.eta / s.alpha
    new, star = loss(family, trace.r, trace.at_new), loss(family, trace.r, trace.at_star)
    mix = mix_loss(family, trace.r, trace.at, alpha * trace.A_square)
    divergence = bregman(family, trace.at_new, alpha * trace.new_square)
    moved = discounted(trace.move, s.gamma)
    at_t, squares = drifted(family, trace, s.gamma)
    inverse_regret = at_t - discounted(new, s.gamma)
    drift_loss = at_t - discounted(star, s.gamma)
    one_step = trace.A_error + 2.0 * s.eta * (star - new) - kept * trace.move
    all_steps = start + 2.0 * s.eta * inverse_regret - kept * moved
    gap, noise = discounted(mix - new, s.gamma), family.range**2 / (4.0 * g * k) * s.logs
    error, iota = np.sqrt(trace.H_error), math.sqrt(2.0 * s.eta * k / g)
    gap_bound = (s.factor + 0.5) * s.mass + moved / (2.0 * alpha)
    luck = discounted(star - mix, s.gamma)
    return [
        _sure("Lemma A.1", "lemma:onestep", "one step", trace.new_error, one_step),
        _sure("eq. (A.1)", "eq:onestep", "error, inverse regret", trace.H_error, all_steps),
        _sure("Lemma A.7", "lemma:local-gb", "divergence", divergence, s.factor * trace.log_gain),
        _sure(
            *("Lemma A.7, sharp", "lemma:local-gb", "divergence, without d"),
            *(divergence, s.sharp_factor * trace.log_gain),
        ),
        _sure("eq. (A.18)", "eq:lemma:weighted-mix-gap_L_t", "log det", trace.growth, s.mass),
        _sure("Lemma A.3", "lemma:weighted-mix-gap", "mix loss gap", gap, gap_bound),
        _sure("Lemma A.9", "lemma:kernel", "drift of x'theta*", squares, s.V**2),
        _likely("Lemma A.2", "lemma:weighted-exp", "mix loss", luck, s.logs),
        _likely("Lemma A.4", "lemma:drift-loss", "drift loss", drift_loss, k / g * s.V**2 + noise),
        _likely("Theorem 1", "thm:DOMD_confidence", "error", error, s.beta + iota * s.V),
    ]


def _auxiliary(s: Setting, trace: Trace) -> list[Inequality]:
    """Lemmas A.5, A.6 and A.8, the second half of A.9, Remark A.1, and the repair of A.4.

    Lemma A.6 is left out where lambda does not meet its condition.
    """
    family, alpha = s.problem.family, s.alpha
    control = auxiliary.self_concordance_control(family, trace.at_new, trace.at_star - trace.at_new)
    mix = mix_loss(family, trace.r, trace.at, alpha * trace.A_square)
    mean = loss(family, trace.r, trace.at_new)
    mean = mean + bregman(family, trace.at_new, alpha * trace.new_square)
    mean = mean + auxiliary.divergence_of_normals(family, trace, alpha)
    luck = discounted(loss(family, trace.r, trace.at_star) - mix, s.gamma)
    seen, moved = auxiliary.wandered(trace, s.gamma)
    lines = [
        _sure("Lemma A.5, lower", "eq:self-concor-control-lower", "slopes", *control[:2]),
        _sure("Lemma A.5, upper", "eq:self-concor-control-upper", "slopes", *control[1:]),
        _sure("Lemma A.8", "lemma:mixlog", "mix loss, another law", mix, mean),
        _sure("Lemma A.9, squares", "lemma:kernel", "drift of x'theta*", seen, s.V**2),
        _sure("Lemma A.4, repair", "lemma:drift-loss", "drift of theta*", moved, s.V**2),
        _sure(
            *("Remark A.1", "remark:why_fixed", "log mean of exp, next round"),
            *(s.gamma * luck, np.maximum(luck, 0.0)),
        ),
    ]
    c = 0.5 * family.self_concordance**2
    if auxiliary.gauss_exp_applies(s.lam, alpha, s.problem.dim, c):
        moment = auxiliary.gauss_exp(trace.spectrum, alpha, c)
        lines.append(_sure("Lemma A.6", "lemma:gauss-exp", "mean of exp", moment, 4.0 / 3.0))
    return lines


def _regret(s: Setting, trace: Trace, regret: Floats) -> list[Inequality]:
    """The lemmas of Appendix B, and the last display of Theorem 2's proof."""
    k, P = s.problem.k_mu, np.cumsum(s.moves, axis=1) - s.moves
    seen = s.beta * trace.width + s.price / k * s.V
    once = 2.0 * k * s.beta * np.sqrt(trace.H_square) + 2.0 * s.price * s.V
    drift = 2.0 * P / (1.0 - s.gamma) ** 1.5
    tighter = 0.5 * (1.0 + math.sqrt(s.gamma)) * drift
    bound = 2.0 * k * s.problem.S + _exploration(s) + 2.0 * s.price * drift
    squares, V, total = (np.cumsum(a, axis=1) for a in (trace.H_square, s.V, regret))
    return [
        _likely("Lemma B.1", "lemma:DOMD_prediction", "prediction", trace.miss, seen),
        _likely("Theorem 2", "thm:regret", "regret of a round", regret, once),
        _sure("Lemma B.2", "lemma:elliptical_discount", "potential", squares, _potential(s)),
        _sure("Lemma B.3", "lemma:kernel_sum", "sum of V_t", V, drift),
        _sure("Lemma B.3, first half", "lemma:kernel_sum", "sum of V_t", V, tighter),
        _likely("eq. (B.2)", "eq:regret_upper", "regret", total, bound),
    ]


def _piecewise(s: Setting, paths: list[Floats], regret: Floats) -> list[Inequality]:
    """The lemmas of Appendix C, and the decomposition in Theorem 3's proof, with the best D."""
    D, S, r = best_D(s.problem, s.gamma, lam=s.lam), s.problem.S, worst_round(s.problem)
    good = np.stack([good_rounds(path, D) for path in paths])
    moved = s.moves > 0.0
    changes: Any = np.cumsum(moved, axis=1) - moved
    bad, V = np.cumsum(~good, axis=1), np.cumsum(np.where(good, s.V, 0.0), axis=1)
    P, total = np.cumsum(s.moves, axis=1) - s.moves, np.cumsum(regret, axis=1)

    def late(D: int) -> Any:
        return s.gamma ** (D / 2.0) / (1.0 - s.gamma) ** 1.5

    def bound(r: float, D: int) -> Any:
        rest = 2.0 * s.price * 4.0 * S * changes * late(D)
        return r * (changes * D + 1.0) + _exploration(s) + rest

    label, R = "eq:piecewise_regret_decomposition", s.problem.family.range
    paper, best = (
        D_gamma(s.problem, s.gamma, lam=s.lam),
        best_D(s.problem, s.gamma, lam=s.lam, worst=R),
    )
    sums = "lemma:pw_kernel_sum", "sum of V_t, good rounds", V
    return [
        _sure("Lemma C.1", "lemma:pw_bad_rounds", f"bad rounds, D = {D}", bad, changes * D),
        _sure("Lemma C.2", *sums, 4.0 * S * changes * late(D)),
        _sure("Lemma C.2, first half", *sums, 2.0 * P * late(D)),
        _likely("eq. (C.1)", label, "regret", total, bound(r, D)),
        _likely("eq. (C.1), R", label, "regret, a bad round costs R", total, bound(R, best)),
        _likely("eq. (C.2)", label + "2", f"regret, D = {paper}", total, bound(R, paper)),
    ]


def _potential(s: Setting) -> Floats:
    """Lemma B.2's bound for every horizon t, (T,)."""
    family, d, t = s.problem.family, s.problem.dim, np.arange(1.0, len(s.beta) + 1.0)
    mass = s.problem.k_mu / (s.lam * d * family.g * (1.0 - s.gamma))
    return 2.0 * family.g / s.problem.c_mu * d * (np.log1p(mass) - t * math.log(s.gamma))


def _exploration(s: Setting) -> Floats:
    """2 k beta_t sqrt(t potential_t), (T,)."""
    t = np.arange(1.0, len(s.beta) + 1.0)
    return 2.0 * s.problem.k_mu * s.beta * np.sqrt(t * _potential(s))


def _sure(place: str, label: str, claim: str, left: Any, right: Any) -> Inequality:
    left, right = np.broadcast_arrays(np.asarray(left, float), np.asarray(right, float))
    return Inequality(place, label, claim, left, right, True)


def _likely(*sides: Any) -> Inequality:
    return replace(_sure(*sides), sure=False)
