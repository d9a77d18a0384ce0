"""What the pages say in numbers about the theorems: their formulas put to work, nothing stored."""

from __future__ import annotations

import math

from benchmarks.tables import stored
from driftbandit import MASTER, Circle, Problem, SignFlip, theory

DELTA = 0.01


def paper(S: float, horizon: int = 5000) -> Problem:
    """The paper's drifting world: d = 5, one turn of the circle."""
    return Circle(radius=S, horizon=horizon).problem


def bounds_table() -> list[list[str]]:
    """Eq. (B.2) at the paper's gamma, at the rebalanced one, and where it is least."""
    rows = [["", "the paper's gamma", "rebalanced", "least"]]
    for S in (1.0, 3.0):
        problem = paper(S)
        found = [
            theory.regret_bound_drifting(problem, gamma=gamma, delta=DELTA)
            for gamma in (
                theory.discount(problem),
                1.0 - theory.forgetting_rebalanced(problem),
                theory.least_discount(problem, delta=DELTA),
            )
        ]
        shares = ["", *(f" ({bound / found[0]:.2f})" for bound in found[1:])]
        rows.append([f"S = {S:.0f}", *(f"{b:,.0f}{share}" for b, share in zip(found, shares))])
    return rows


def orders_table() -> list[list[str]]:
    """Table 1 in numbers for the paper's four panels, and the case of each order."""
    worlds = [Circle(radius=S) for S in (1.0, 3.0)] + [SignFlip(radius=S) for S in (1.0, 3.0)]
    settings = ("drifting", "drifting", "piecewise", "piecewise")
    made = [theory.table_1(w.problem)[setting] for w, setting in zip(worlds, settings)]
    head = [f"{setting}, S = {w.radius:.0f}" for w, setting in zip(worlds, settings)]
    rows = [["method", *head]]
    for name in dict.fromkeys(name for panel in made for name in panel):
        found = (panel.get(name) for panel in made)
        rows.append([name, *(f"{o.value:,.0f} ({o.case})" if o else "" for o in found)])
    return rows


def bad_round() -> str:
    """Eq. (C.1) of the paper's flip at S = 1 with our cost of a bad round and with R; eq. (C.2)."""
    problem = SignFlip(radius=1.0).problem
    D = theory.D_gamma(problem, theory.discount(problem))
    ours, R, paper = (
        theory.regret_bound_piecewise(problem, delta=DELTA, **numbers)
        for numbers in ({}, {"worst": 1.0}, {"worst": 1.0, "D": D})
    )
    return (
        f"Eq. (C.1) of the sign flip at S = 1 is {ours:,.0f} with it, and {R:,.0f} with the "
        f"paper's R; eq. (C.2), with D_gamma = {D:,}, is {paper:,.0f}"
    )


def radius_parts() -> str:
    """Shares of beta_T^2 in the run that docs/results/proof.svg shows."""
    T, problem = 2000, SignFlip(horizon=2000).problem
    eta, lam, gamma = theory.eta(problem), theory.lam(problem), theory.discount(problem)
    radius = theory.domd_radius(problem, gamma=gamma, lam=lam, eta=eta, delta=DELTA)
    square, price = theory.beta(radius, T) ** 2, 4.0 * lam * problem.S**2
    noise = radius.constant - price + radius.log_round * math.log(T)
    shares = (f"{100.0 * part / square:.0f} %" for part in (noise, price, square - price - noise))
    return "The confidence term is {}. 4 lambda S^2 is {}. What was learnt is {}".format(*shares)


def potential() -> str:
    """How far Lemma B.2 is from its bound in the last round."""
    lines = [line for line in stored("proof") if line["place"] == "Lemma B.2"]
    found = [float(line["right"]) / float(line["left"]) for line in lines]
    return f"{min(found):.0f} to {max(found):.0f}"


def base_radii() -> str:
    """The radius of MASTER's paper over RestartGLB's, in round 5000 of the paper's worlds."""
    found = []
    for S in (1.0, 3.0):
        wide, narrow = (
            MASTER.from_theory(paper(S), reading=reading).base.coefficient(5000.0)
            for reading in ("master", "restart")
        )
        found.append(wide / narrow)
    return f"{min(found):.1f} to {max(found):.1f} times"


def alarm() -> str:
    """What MASTER's second test asks for at the end of the paper's drifting world."""
    policy = MASTER.from_theory(paper(1.0))
    known = {"lam": policy.base.regularization, "delta": policy.delta, "horizon": 5000}
    gap = 3.0 * theory.rivals.master_threshold(policy.problem, **known) / math.sqrt(5000)
    return f"a mean gap of {gap:,.0f}"


SAYS = {
    "badround": bad_round,
    "parts": radius_parts,
    "potential": potential,
    "baseradii": base_radii,
    "alarm": alarm,
    "lambda1": lambda: f"{theory.lam(paper(1.0)):.0f}",
}
