"""Sources of raw rows: batches of columns under our names, whatever they are called there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from driftbandit import validate
from driftbandit.evidence.reading.chunk import BAD, NAMES, SKIP, Batch
from driftbandit.features.values import missing
from driftbandit.validate import nearest

ROWS = 4096  # in a batch
# What `Loop.export` calls its columns.
EXPORTED = {"action": "arm", "time": "at"}
FATE = ("arm", "names", "status", "position")  # by which an export is told, and rows are skipped
UNTAUGHT = {"open": "open", "cancelled": "cancelled", "missing": "no reward came"}
SLATE = "a slate: only decisions for one arm can be evaluated"
PAIR = "a pair: a preference says which arm is better, and not what one earns"

Columns = Mapping[str, str | Sequence[str]]


class Source:
    """Batches of raw columns, as often as they are asked for, and what the file says of itself."""

    def __init__(
        self, batches: Callable[[], Iterator[Batch]], about: Mapping[str, Any] | None = None
    ) -> None:
        self._batches, self.about = batches, dict(about or {})

    def batches(self) -> Iterator[Batch]:
        return self._batches()

    def peek(self) -> Batch | None:
        """The first batch."""
        return next(self.batches(), None)


class Once(Source):
    """A stream that can be read only once."""

    def __init__(self, batches: Iterator[Batch]) -> None:
        super().__init__(lambda: iter(()))
        self._rest: Iterator[Batch] | None = batches

    def batches(self) -> Iterator[Batch]:
        if self._rest is None:
            raise ValueError("this stream was read already, and can be read once: read a file")
        rest, self._rest = self._rest, None
        return rest

    def peek(self) -> Batch | None:
        rest = self.batches()
        first = next(rest, None)
        self._rest = rest if first is None else chain([first], rest)
        return first


def mapped(
    raw: Iterator[Mapping[str, list[Any]]],
    given: Columns | None,
    found: Sequence[str],
    text: bool = False,
) -> Iterator[Batch]:
    """Raw columns under our names; in a file of `text`, numbers of a context are told by looks."""
    wanted = mapping(given, found)
    for batch in raw:
        out: Batch = {name: _column(batch, wanted[name], text) for name in wanted}
        if exported(found):
            out[SKIP] = [_skipped(*each) for each in zip(batch["status"], batch["position"])]
        if BAD in batch:
            out[BAD] = batch[BAD]
        yield out


def exported(found: Sequence[str]) -> bool:
    """Return whether columns are those of `Loop.export`."""
    return set(FATE) <= set(found)


def _skipped(status: Any, position: Any) -> str | None:
    """Why a row of an export trains nothing here."""
    return UNTAUGHT.get(status) or (None if missing(position) else SLATE)


def mapping(given: Columns | None, found: Sequence[str]) -> dict[str, str | Sequence[str]]:
    """Return the columns to read, by our names: those given, or those of the same name."""
    for name in given or ():
        if name not in NAMES:
            raise ValueError(f"a log has no column {name!r}: {nearest(name, NAMES)}")
    known = set(found)
    same = {name: name for name in NAMES if name in known}
    if exported(found):
        same |= {name: theirs for name, theirs in EXPORTED.items() if theirs in known}
    wanted = same | dict(given or {})
    for name, theirs in wanted.items():
        for each in [theirs] if isinstance(theirs, str) else theirs:
            if each not in known:
                raise ValueError(
                    f"there is no column {validate.show(each)} for {name}: "
                    f"{nearest(str(each), sorted(map(str, known)))}"
                )
    for name in ("action", "reward"):
        if name not in wanted:
            raise ValueError(
                f"no column is called {name!r}: pass columns={{{name!r}: ...}}, one of "
                f"{', '.join(map(str, found))}"
            )
    if not {"probability", "probabilities"} & set(wanted):
        raise ValueError(
            "no column is called 'probability', without which nothing can be evaluated: pass "
            "columns={'probability': ...}, the probability with which the action was chosen"
        )
    return wanted


def _column(batch: Mapping[str, list[Any]], theirs: str | Sequence[str], text: bool) -> list[Any]:
    if isinstance(theirs, str):
        return list(batch[theirs])
    columns = (map(_told, batch[name]) if text else batch[name] for name in theirs)
    return [dict(zip(theirs, row)) for row in zip(*columns)]


def _told(cell: str | None) -> Any:
    """Return what a cell of a CSV file holds."""
    try:
        return None if cell is None else float(cell)
    except ValueError:
        return {"true": True, "false": False}.get(cell.lower(), cell)  # type: ignore[union-attr]
