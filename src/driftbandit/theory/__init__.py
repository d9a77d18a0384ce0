"""Every constant of the theorems: the paper's in `domd`, its rivals' in `rivals`."""

from driftbandit.theory import rivals
from driftbandit.theory.domd import (
    alpha,
    clip_discount,
    discount,
    domd_radius,
    drift_kernel,
    elliptical_potential,
    eta,
    forgetting,
    forgetting_drifting,
    forgetting_piecewise,
    glb_omd_lam,
    glb_omd_radius,
    iota,
    lam,
    path_length,
    regime,
    regret_bound_drifting,
    regret_bound_piecewise,
)
from driftbandit.theory.radius import Radius, beta, discounted_count

__all__ = [
    "Radius",
    "alpha",
    "beta",
    "clip_discount",
    "discount",
    "discounted_count",
    "domd_radius",
    "drift_kernel",
    "elliptical_potential",
    "eta",
    "forgetting",
    "forgetting_drifting",
    "forgetting_piecewise",
    "glb_omd_lam",
    "glb_omd_radius",
    "iota",
    "lam",
    "path_length",
    "regime",
    "regret_bound_drifting",
    "regret_bound_piecewise",
    "rivals",
]
