"""Poisoned feedback: an adversary replaces some of the rewards that a learner sees."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from driftbandit import validate
from driftbandit.families import Family
from driftbandit.recipe import Recipe

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Poison(Recipe):
    """A share of the rewards is mirrored in the range of the family: low + high - r.

    With `best_only`, only rewards of arms whose mean is the round's best are replaced, which harms
    most for the same number of attacks. Regret is that of the true means.

    >>> Poison(share=0.1)
    Poison(share=0.1, best_only=False)
    """

    share: float
    best_only: bool = False

    def __post_init__(self) -> None:
        self._set(share=validate.share("share", self.share, "rewards that are replaced"))
        if not isinstance(self.best_only, bool):
            raise ValueError(
                f"best_only must be true or false, got {validate.show(self.best_only)}"
            )

    def seen(self, family: Family, rewards: Floats, regret: Floats, luck: Floats) -> Floats:
        """Return what learners see of rewards (n,); `luck` (n,) in [0, 1) picks the attacks."""
        attacked = luck < self.share
        if self.best_only:
            attacked &= regret <= 0.0
        return np.where(attacked, family.low + family.high - rewards, rewards)
