"""Who plays, from which packages, with which settings. Plain data: nothing of a peer is imported.

A grid's first setting is the default or the published one; the contest takes the best of the grid
on the tuning seeds, world by world.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

TUNE, JUDGE = (100, 101), (0, 1, 2, 3, 4)


@dataclass(frozen=True)
class Peer:
    """A package: what pip is asked for, and the Pythons (3.x) its release supports.

    Without requirements it plays in this project's own environment.
    """

    name: str
    requirements: tuple[str, ...] = ()
    minors: range = range(10, 15)

    @property
    def module(self) -> str:
        return self.name.replace("-", "_")


@dataclass(frozen=True)
class Contender:
    """A learner of a peer."""

    label: str
    peer: Peer
    learner: str
    sees: str  # what of the arms reaches it
    grid: tuple[dict[str, Any], ...]
    tune: tuple[int, ...] = TUNE
    judge: tuple[int, ...] = JUDGE
    timed_only: bool = False


OURS, NAIVE = Peer("ours"), Peer("naive")
VW = Peer("vowpalwabbit", ("vowpalwabbit==9.11.*", "numpy"))
VW_NEXT = Peer("vowpal-wabbit-next", ("vowpal-wabbit-next==0.7.*", "numpy"), range(7, 13))
BAYESIAN = Peer("bayesianbandits", ("bayesianbandits==1.5.*",))
RIVER = Peer("river", ("river==0.26.*",), range(11, 15))
MABWISER = Peer("mabwiser", ("mabwiser==2.7.*",), range(8, 15))
CONTEXTUAL = Peer("contextualbandits", ("contextualbandits==0.3.*", "cloudpickle"), range(8, 15))
COBA = Peer("coba", ("coba==8.*", "numpy", "scipy"), range(8, 15))
PARETO = Peer("paretobandit", ("paretobandit==0.1.*", "scipy"))  # of budgets alone
PEERS = (VW, VW_NEXT, BAYESIAN, RIVER, MABWISER, CONTEXTUAL, COBA)

# A constant step (--power_t 0) is what VW's users take against drift.
EPSILON = tuple(
    {"options": f"--epsilon {epsilon}{step}"}
    for epsilon in (0.05, 0.02)
    for step in ("", " --power_t 0 -l 0.5", " --power_t 0 -l 0.1", " --power_t 0 -l 0.02")
)
SQUARECB = tuple(
    {"options": f"--squarecb --gamma_scale {scale}{step}"}
    for scale in (10, 100, 1000)
    for step in ("", " --power_t 0 -l 0.1")
)
RATES = (0.99, 0.98, 0.995)
ALPHAS = tuple({"alpha": alpha} for alpha in (1.0, 0.5, 0.25, 0.1))
FEW = {"tune": (100,), "judge": (0, 1)}  # for the slow ones

CONTENDERS = (
    Contender("uniform choice", OURS, "Uniform", "nothing", ({},)),
    Contender("driftbandit DOMD, defaults", OURS, "DOMD", "features", ({},)),
    Contender(
        "driftbandit DOMD, tuned",
        OURS,
        "DOMD",
        "features",
        tuple({"half_life": h, "bonus": b} for b in (1.0, 0.5) for h in (200, 100, 50, 400)),
    ),
    Contender("driftbandit AutoDOMD", OURS, "AutoDOMD", "features", ({},)),
    Contender("NumPy DOMD, naive", NAIVE, "DOMD", "features", ({"half_life": 200},)),
    Contender("vowpalwabbit ε-greedy", VW, "adf", "features", EPSILON),
    Contender("vowpalwabbit SquareCB", VW, "adf", "features", SQUARECB),
    Contender(
        "vowpalwabbit ε-greedy, text twice",
        VW,
        "adf as in the tutorial",
        "features",
        EPSILON[:1],
        timed_only=True,
    ),
    Contender("vw-next ε-greedy", VW_NEXT, "adf", "features", EPSILON),
    Contender("vw-next SquareCB", VW_NEXT, "adf", "features", SQUARECB),
    Contender(
        "bayesianbandits UCB",
        BAYESIAN,
        "UCB",
        "features",
        tuple({"rate": rate, "quantile": q} for q in (0.84, 0.68) for rate in RATES),
        tune=(100,),
    ),
    Contender(
        "bayesianbandits Thompson",
        BAYESIAN,
        "Thompson",
        "features",
        tuple({"rate": rate} for rate in (*RATES, 0.97)),
    ),
    Contender(
        "river LinUCB",
        RIVER,
        "LinUCBDisjoint",
        "index",
        ({}, {"beta": 10.0}, {"smoothing": 0.99}, {"smoothing": 0.95}),
        **FEW,
    ),
    Contender(
        "mabwiser LinUCB",
        MABWISER,
        "LinUCB",
        "index, features",
        ALPHAS[::2],
        tune=(100,),
        judge=(0,),
    ),
    Contender(
        "contextualbandits LinUCB",
        CONTEXTUAL,
        "LinUCB",
        "index, features",
        ALPHAS,
        **FEW,
    ),
    Contender("coba LinUCB", COBA, "LinUCB", "features", ALPHAS, tune=(100,), judge=(0, 1, 2)),
)
