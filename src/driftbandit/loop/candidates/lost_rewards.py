"""Lost rewards: decisions that give no example, counted by the arm that was played.

If losing a reward does not depend on the arm, the arm of a lost decision follows its logged
probabilities h. Then for every tilt t the product over lost decisions of

    exp(t [arm a was played]) / (1 + h(a) (e^t - 1))

has mean 1, and a mean over tilts exceeds 1/alpha with probability alpha at most, at any moment
(Ville). The j-th arm has alpha = FAIR/(j (j + 1)), so that all arms together have FAIR.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from driftbandit.estimators.increments import Floats

FAIR = 0.01  # error of each check that rewards are lost alike
KNOWN_ARMS = 100  # whose lost decisions are counted
TILTS = np.array([-1.5, -0.4, 0.4, 1.5])  # of the log-odds of an arm: less or more often
_GROWTH = np.expm1(TILTS)


class LostArm(NamedTuple):
    """How many decisions of an arm gave no example, how many of them its probabilities expect, and
    the log of the product for each tilt."""

    lost: int = 0
    expected: float = 0.0
    tilted: tuple[float, ...] = (0.0,) * len(TILTS)

    def after(self, h: float, played: bool) -> LostArm:
        tilted = self.tilted + played * TILTS - np.log1p(h * _GROWTH)
        return LostArm(self.lost + played, self.expected + h, tuple(tilted.tolist()))

    @property
    def evidence(self) -> float:
        """The log of the mean over tilts."""
        return float(np.logaddexp.reduce(self.tilted)) - math.log(len(TILTS))


class ArmLoss(NamedTuple):
    """Decisions that give no example (`why`: cancelled, missing, late) are those of an arm `often`:
    "more" or "less" often than its probabilities say. It has `lost` of them, and `expected`."""

    why: str
    arm: str
    often: str
    lost: int
    expected: float

    def words(self) -> str:
        """Return what this means for a comparison."""
        return (
            f"rewards of arm {self.arm!r} are {self.why} {self.often} often than those of other "
            f"arms, so policies cannot be compared fairly: it has {self.lost:,} of them, where "
            f"about {self.expected:,.0f} were to be expected"
        )


class LostRewards:
    """Counts by reason and arm, in the order in which arms were first lost."""

    def __init__(self) -> None:
        self._known: dict[str, dict[str, LostArm]] = {}

    def add(self, why: str, arms: list[str], h: Floats, chosen: int) -> None:
        """Count a decision for its arm, and what each arm was to have of it."""
        known = self._known.setdefault(why, {})
        for k, (arm, p) in enumerate(zip(arms, h.tolist())):
            if arm in known or len(known) < KNOWN_ARMS:
                known[arm] = known.get(arm, LostArm()).after(p, k == chosen)

    def most(self, why: str) -> tuple[str, LostArm]:
        """Return the arm that lost most decisions more than its probabilities say."""
        return max(self._known[why].items(), key=lambda each: each[1].lost - each[1].expected)

    def unequal(self) -> list[ArmLoss]:
        """Return the arms whose rewards are lost more or less often than those of others."""
        return [
            ArmLoss(why, arm, _often(each), each.lost, each.expected)
            for why, arms in sorted(self._known.items())
            for j, (arm, each) in enumerate(arms.items(), start=1)
            if each.evidence >= math.log(j * (j + 1) / FAIR)
        ]

    def copy(self) -> LostRewards:
        """Return all as it is now."""
        other = LostRewards()
        other._known = {why: dict(arms) for why, arms in self._known.items()}
        return other

    def state(self) -> dict[str, list[list[Any]]]:
        """Return all of it as JSON knows it, arms in their order."""
        return {
            why: [[arm, *each] for arm, each in arms.items()] for why, arms in self._known.items()
        }

    @classmethod
    def loaded(cls, state: dict[str, Any]) -> LostRewards:
        """Return what `state` has stored. Before arms were tested, it held (lost, expected) by arm:
        their test begins now."""
        made = cls()
        for why, arms in state.items():
            rows = arms if isinstance(arms, list) else [[arm, *each] for arm, each in arms.items()]
            made._known[why] = {arm: LostArm(n, p, *map(tuple, t)) for arm, n, p, *t in rows}
        return made


def _often(each: LostArm) -> str:
    return "more" if each.lost > each.expected else "less"
