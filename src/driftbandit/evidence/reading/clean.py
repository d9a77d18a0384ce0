"""From raw columns to clean rows; a row that is not clean is left out, with a reason."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import numpy as np

from driftbandit.durations import LAST
from driftbandit.evidence.reading.chunk import BAD, SKIP, Batch, Budgets, Chunk, Floats
from driftbandit.evidence.reading.menus import MenuError, Menus
from driftbandit.evidence.reading.parse import moments, numbers, text
from driftbandit.features.values import missing

NO_BUDGETS: Budgets = {}
SLACK = 1e-3  # probabilities are often written in single precision, or with few digits


class Cleaner:
    """Cleans batches of one log; `menus` knows what arms there are."""

    def __init__(self, menus: Menus, least: float) -> None:
        self.menus, self.least = menus, least
        self.timed: bool | None = None  # whether the log has times: the first batch says it
        self.rows = 0

    def clean(self, batch: Batch) -> tuple[Chunk, list[str | None], list[str | None]]:
        """Clean rows, and for every row of the batch why it is bad, or why it is skipped."""
        n = len(next(iter(batch.values())))
        skip: list[str | None] = batch.get(SKIP) or [None] * n
        bad: list[str | None] = list(batch.get(BAD) or [None] * n)
        if self.timed is None:
            self.timed = any(at is not None for at in batch.get("time", ()))
        rows = _Rows(batch, n, bad, skip)
        rows.each("reward", numbers, np.isfinite, "no reward")
        if self.timed:
            rows.each("time", moments, lambda at: np.abs(at) < LAST, "no time that can be read")
        rows.contexts()
        rows.offers(self.menus)
        rows.chances(self.least)
        rows.budgets()
        self.rows += n
        return rows.chunk(self.rows - n), bad, skip


class _Rows:
    """The rows of one batch while they are cleaned."""

    def __init__(self, batch: Batch, n: int, bad: list[Any], skip: list[Any]) -> None:
        self.batch, self.n, self.bad, self.skip = batch, n, bad, skip
        self.found: dict[str, Any] = {"time": np.full(n, np.nan)}

    def column(self, name: str) -> list[Any]:
        return self.batch.get(name) or [None] * self.n

    @property
    def left(self) -> list[int]:
        """Rows nothing speaks against so far."""
        return [k for k in range(self.n) if self.bad[k] is None and self.skip[k] is None]

    def each(self, name: str, read: Callable[[Any], Floats], good: Any, reason: str) -> None:
        """A column of numbers."""
        values = read(self.column(name))
        self.found[name] = values
        self._refuse(good(values), reason)

    def _refuse(self, good: Any, reason: str) -> None:
        for k in np.flatnonzero(~good):
            if self.bad[k] is None and self.skip[k] is None:
                self.bad[k] = reason

    def contexts(self) -> None:
        column = self.column("context")
        out: list[Mapping[str, Any]] = [{}] * self.n
        for k in self.left:
            try:
                out[k] = context_of(column[k])
            except (ValueError, RecursionError):
                self.bad[k] = "a context that is no mapping"
        self.found["context"] = out

    def offers(self, menus: Menus) -> None:
        """Return what was offered, and which of it was played."""
        offered, named, played = (self.column(name) for name in ("arms", "names", "action"))
        self.found["menus"], self.found["action"] = [None] * self.n, np.zeros(self.n, np.int64)
        for k in self.left:
            try:
                menu = menus.menu(offered[k], named[k])
                self.found["action"][k] = menus.place(menu, played[k])
                self.found["menus"][k] = menu
            except MenuError as error:
                self.bad[k] = str(error)

    def chances(self, least: float) -> None:
        """Probabilities: of all arms where they are known, and of the played one."""
        p, every = numbers(self.column("probability")), self.column("probabilities")
        self.found["h"] = [None] * self.n
        for k in self.left:
            size = len(self.found["menus"][k])
            if every[k] is None:
                self.found["h"][k] = np.full(size, np.nan)
                continue
            h, reason = all_chances(every[k], size)
            own = h[self.found["action"][k]] if reason is None else 0.0
            if reason is None and not (math.isnan(p[k]) or abs(p[k] - own) <= SLACK * own):
                reason = "a probability that differs from that of all arms"
            self.bad[k], self.found["h"][k], p[k] = reason, h, own
        self.found["p"] = p
        self._refuse((p > 0.0) & (p <= 1.0), "no probability above 0 and up to 1")
        self._refuse(~(p < least), f"a probability below least, {least:g}")

    def budgets(self) -> None:
        """What budgets of a loop had to do with rows: mappings, or JSON of them."""
        column, out = self.column("spend"), [NO_BUDGETS] * self.n
        for k in self.left if self.batch.get("spend") else ():
            try:
                out[k] = budgets_of(column[k], len(self.found["menus"][k]))
            except (ValueError, RecursionError):
                self.bad[k] = "a spend that does not fit its arms"
        self.found["spend"] = out

    def chunk(self, before: int) -> Chunk:
        """The rows that are left; so many came before this batch."""
        left, found = self.left, self.found
        h = [found["h"][k] for k in left]
        return Chunk(
            menus=[found["menus"][k] for k in left],
            context=[found["context"][k] for k in left],
            action=found["action"][left],
            p=found["p"][left],
            h=np.concatenate(h) if h else np.empty(0),
            reward=found["reward"][left],
            at=found["time"][left],
            key=self._texts("key", left),
            id=self._texts("id", left),
            default=self._texts("default", left),
            role=self._texts("role", left),
            spend=[found["spend"][k] for k in left],
            number=np.array(left, dtype=np.int64) + before + 1,
        )

    def _texts(self, name: str, left: list[int]) -> list[str | None]:
        column = self.batch.get(name)
        return [text(column[k]) for k in left] if column else [None] * len(left)


def all_chances(value: Any, size: int) -> tuple[Floats, str | None]:
    """Probabilities of all arms, and what is wrong with them."""
    try:
        h = np.asarray(json.loads(value) if isinstance(value, str) else value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return np.empty(0), "probabilities that are no list of numbers"
    if h.shape != (size,):
        return h, "another number of probabilities than of arms"
    total = h.sum()
    if not abs(total - 1.0) <= SLACK or h.min() < 0.0:  # NaN fails
        return h, "probabilities that do not add up to 1"
    exact = abs(total - 1.0) <= 1e-12
    return (h if exact else h / total), None


def budgets_of(value: Any, arms: int) -> Budgets:
    """Budgets of a row by name; each has a cost for every arm."""
    if missing(value) or value == "":  # as CSV files say it
        return NO_BUDGETS
    if isinstance(value, str):
        found = msgspec.json.decode(value, type=Budgets)
    else:
        found = msgspec.convert(value, Budgets)
    if not all(len(each.costs) == arms for each in found.values()):
        raise ValueError("another number of costs than of arms")
    return found


def context_of(value: Any) -> Mapping[str, Any]:
    """A mapping, or JSON of one; nothing is an empty one."""
    if isinstance(value, str):
        value = json.loads(value)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ValueError("a context must be a mapping")
    return value
