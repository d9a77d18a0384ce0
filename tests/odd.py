"""A problem in which no letter of the paper is 1 and no two are equal."""

from dataclasses import dataclass, replace

import pytest

from driftbandit import Problem
from driftbandit.families import LOGIT, Family


@dataclass(frozen=True)
class Odd(Family):
    """Numbers in place of a distribution."""

    R: float = 1.7
    g: float = 0.6
    k: float = 0.31
    c: float = 0.07
    M: float = 1.3
    span: float = 2.9

    code = LOGIT

    @property
    def range(self):
        return self.span

    @property
    def self_concordance(self):
        return self.M

    def k_mu(self, S):
        return self.k

    def c_mu(self, S):
        return self.c


R, g, k, c, M, span = 1.7, 0.6, 0.31, 0.07, 1.3, 2.9
d, S, T, P, G, delta = 3, 1.2, 700, 3.15, 4, 0.03
ODD = Problem(
    dim=3,
    family=Odd(),
    radius=0.8,
    context_norm=1.5,
    horizon=700,
    path_length=2.1,
    change_points=4,
)
close = pytest.approx


def odd(**numbers):
    return replace(ODD, family=Odd(**numbers))
