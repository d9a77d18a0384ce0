"""Trials: candidates take a share of decisions, and what is logged is the mixture of all.

    p = (1 - s_1 - ... - s_n) p_live + s_1 p_1 + ... + s_n p_n

The arm is drawn from p with the decision's own random number. So nobody can tell who chose it, and
every candidate, in the trial or not, is evaluated from the same probabilities.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from driftbandit.bandit import Bandit
from driftbandit.loop.exploration import Rule, completed
from driftbandit.policies.base import Floats


class Vote(NamedTuple):
    """Probabilities that somebody gives all arms, and seconds by which its memory was aged."""

    p: Floats  # (K,)
    aged: float


Votes = Mapping[str, Vote]  # by candidate


def probe(rule: Rule, bandit: Bandit) -> None:
    """Raise if a rule cannot tell the probabilities of this bandit's arms."""
    rule.probabilities(bandit, np.zeros((1, bandit.policy.problem.dim)), ("probe",))


def mixed(acting: Floats, shares: Mapping[str, float], votes: Votes) -> Floats:
    """The mixture; `acting` is what is played otherwise. Who cannot vote has no share."""
    p = (1.0 - math.fsum(shares[name] for name in votes)) * acting
    for name, vote in votes.items():
        p = p + shares[name] * vote.p
    return completed(p, int(np.argmax(p)))
