"""Learners that get more coordinates: `Features.grow` made the row of an arm longer.

The old coordinates are the first of the new ones and keep their scale. A grown learner is the
learner whose new columns had always been 0, to rounding. One thing cannot be known afterwards: an
AutoDOMD whose long memories were renewed from a leader with a larger lambda would hold that lambda
for the new columns too; here every learner has its own.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from driftbandit.core.auto import TOO_LITTLE
from driftbandit.core.layout import FLOOR, AutoMemory
from driftbandit.policies.auto import AutoDOMD
from driftbandit.policies.base import Floats
from driftbandit.policies.domd import DOMD
from driftbandit.policies.rows import RowPolicy
from driftbandit.problem import Problem


def grown_policy(policy: RowPolicy, problem: Problem) -> Any:
    """The policy for a `problem` with more and longer contexts.

    The grid stays, and so do lambda L^2 and the ball, although L is larger: what is known keeps
    its meaning.
    """
    old = policy.problem
    if not isinstance(policy, (DOMD, AutoDOMD)):
        raise ValueError(f"{policy.name} cannot grow: use DOMD or AutoDOMD")
    if problem.dim <= old.dim or problem.context_norm < old.context_norm:
        raise ValueError(
            f"a learner can only grow: from dim={old.dim} and context_norm={old.context_norm:g}, "
            f"not to {problem.dim} and {problem.context_norm:g}"
        )
    if problem.family != old.family:
        raise ValueError(f"rewards stay {old.family!r} when features grow, got {problem.family!r}")
    larger = replace(old, dim=problem.dim, context_norm=problem.context_norm)
    longer = problem.context_norm / old.context_norm
    if isinstance(policy, DOMD):
        larger = replace(larger, radius=old.ball)
        return replace(policy, problem=larger, regularization=policy.regularization / longer**2)
    assert policy.regularizations is not None
    lams = tuple(lam / longer**2 for lam in policy.regularizations)
    return replace(policy, problem=larger, regularizations=lams, reach=policy.reach * longer)


def grown_rows(policy: RowPolicy, larger: RowPolicy, rows: Floats) -> Floats:
    """Rows (n, size) of `policy` as rows of `larger`, which `grown_policy` made of it."""
    rows = np.array(rows, dtype=np.float64, ndmin=2)
    if type(larger) is not type(policy) or rows.shape[1] != policy.row_size:
        raise ValueError(
            f"rows of {policy.name} have {policy.row_size} numbers and become rows of the same "
            f"policy, got shape {rows.shape} and {larger.name}"
        )
    old, new = policy.view(rows), larger.init(len(rows))  # new coordinates: 0, and lambda
    for before, after in zip(old, new):
        after[tuple(slice(n) for n in before.shape)] = before
    if isinstance(policy, AutoDOMD):
        _pool_new(new, policy.problem.dim, policy.pool == "mixture")
    else:
        new.floor[:] = np.minimum(old.floor, larger.fresh[FLOOR])
    return larger.rows(new)


def _pool_new(memory: AutoMemory, d: int, mixture: bool) -> None:
    """The pooled H and its floor, where new coordinates are known to none of the learners."""
    weights = memory.weights.sum(axis=1)
    if not mixture:
        weights = np.eye(weights.shape[1])[np.argmax(weights, axis=1)]
    weights = np.where(weights >= TOO_LITTLE, weights, 0.0)
    variance = (weights / memory.kept * memory.Ps[:, :, -1, -1]).sum(axis=1)
    places = np.arange(d, memory.H.shape[1])
    memory.H[:, places, places] = (1.0 / variance)[:, None]
    memory.floor[:] = 1.0 / np.maximum(1.0 / memory.floor, variance)
