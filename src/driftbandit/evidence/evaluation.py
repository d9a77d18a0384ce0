"""An evaluation: its numbers, in words, as data and as a report."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from driftbandit.estimators.accumulators import Band
from driftbandit.estimators.formatting import as_json
from driftbandit.evidence.numbers import Numbers
from driftbandit.evidence.reading.chunk import Floats
from driftbandit.evidence.report import sentences
from driftbandit.evidence.report.page import page
from driftbandit.evidence.report.tables import markdown
from driftbandit.html_table import table


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(Numbers):
    """The value of every candidate on a log. `verdict` says it in words, `write` as a report."""

    @cached_property
    def notes(self) -> list[str]:
        """What to know, and what to doubt."""
        return sentences.notes(self)

    @cached_property
    def verdicts(self) -> list[str]:
        """A sentence for each difference, or for each value if there is one candidate."""
        return sentences.verdicts(self)

    @property
    def verdict(self) -> str:
        return " ".join(self.verdicts)

    def to_dict(self) -> dict[str, Any]:
        """All numbers as JSON-ready types; None stands for what there is not."""
        windows = self.found.windows
        data: dict[str, Any] = as_json(
            {
                "verdicts": self.verdicts,
                "notes": self.notes,
                "level": self.level,
                "clip": self.clip,
                "model": self.found.model,
                "log": self.log.counts.to_dict(),
                "values": self.values,
                "differences": self.differences,
                "ratios": self.found.check,
                "windows": {
                    "unit": "seconds" if windows.timed else "rows",
                    "width": windows.width,
                    "starts": self.starts,
                    "rows": self.counts,
                    "values": {name: _curves(self.curve, name) for name in self.values},
                    "differences": [
                        {"first": gap.first, "second": gap.second}
                        | _curves(self.gap_curve, gap.first, gap.second)
                        for gap in self.differences
                    ],
                },
            }
        )
        return data

    def markdown(self) -> str:
        return markdown(self)

    def html(self) -> str:
        """One page that opens without a network."""
        return page(self)

    def write(self, folder: str | os.PathLike[str]) -> dict[str, Path]:
        """evaluation.json, evaluation.md and evaluation.html."""
        out = Path(folder)
        out.mkdir(parents=True, exist_ok=True)
        texts = {
            "json": json.dumps(self.to_dict(), indent=1, allow_nan=False) + "\n",
            "md": self.markdown(),
            "html": self.html(),
        }
        paths = {kind: out / f"evaluation.{kind}" for kind in texts}
        for kind, path in paths.items():
            path.write_text(texts[kind], encoding="utf-8")
        return paths

    def _repr_html_(self) -> str:
        """Return the values of all candidates as a table, with verdicts below it."""
        kind = next(iter(next(iter(self.values.values())).estimates))
        rows = [
            (name, worth.estimates[kind].value, *worth.sequence, worth.effective)
            for name, worth in self.values.items()
        ]
        header = ("candidate", f"value ({kind})", "low", "high", "effective rows")
        return table(f"Evaluation, {self.rows:,} rows", header, rows, self.verdicts)

    def __repr__(self) -> str:
        names = ", ".join(self.found.values)
        return f"Evaluation({names}; {self.rows:,} rows): {self.verdict}"


def _curves(of: Callable[..., tuple[Floats, Band]], *names: str) -> dict[str, Any]:
    """In each window, and of all rows up to its end."""
    out: dict[str, Any] = {}
    for kind, running in (("window", False), ("running", True)):
        middle, band = of(*names, running=running)
        out[kind] = {"dr": middle, "low": band.low, "high": band.high}
    return out
