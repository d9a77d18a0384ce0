"""Arms that are on offer again: most decisions of a loop have the arms of one before, and those
need not be read and encoded once more."""

from __future__ import annotations

from typing import Any

import msgspec

from driftbandit.features.encoders import Slots
from driftbandit.features.plan import EncodingPlan
from driftbandit.policies.base import Floats

MOST = 16  # lists of arms in memory
LONGEST = 1 << 16  # bytes of JSON of a list that is kept
ONLY_DICTS = {dict}

_json = msgspec.json.Encoder()


class Offers:
    """The slots of lists of arms that were encoded lately. Their JSON tells lists apart, since it
    has the type and every digit of a plain value."""

    def __init__(self) -> None:
        self._slots: dict[tuple[EncodingPlan, bytes], Slots] = {}

    @property
    def kept(self) -> int:
        """Return how many lists there are."""
        return len(self._slots)

    def rows(self, plan: EncodingPlan, context: Any, arms: list[Any]) -> Floats:
        """Return a row for every arm, (K, size), as `plan.encode` does."""
        left = plan.context.row(context)
        if left is None or {*map(type, arms)} != ONLY_DICTS:
            return plan.encode(context, arms)
        try:
            offer = plan, _json.encode(arms)
        except (TypeError, UnicodeEncodeError, OverflowError):  # features tell what is wrong
            return plan.encode(context, arms)
        right = self._slots.get(offer)
        if right is None:
            right = plan.arm.encode(plan.arms(arms))
            if len(offer[1]) <= LONGEST:
                self._keep(offer, right)
        return plan.rows(left, right)

    def _keep(self, offer: tuple[EncodingPlan, bytes], slots: Slots) -> None:
        if len(self._slots) >= MOST:
            self._slots.clear()
        self._slots[offer] = slots
