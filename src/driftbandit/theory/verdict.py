"""What `theory.check` returns: inequalities with two sides, as a table and as a figure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from driftbandit.html_table import table
from driftbandit.theory.domd import Floats

ROUNDING = 1e-8  # of the sizes that were added up


@dataclass(frozen=True, eq=False)
class Inequality:
    """left <= right, (n, T) each: one line of a proof, for every seed and round."""

    place: str  # in the paper
    label: str  # of paper.tex
    claim: str
    left: Floats
    right: Floats
    sure: bool  # or with probability 1 - delta

    @property
    def slack(self) -> Floats:
        """right - left, (n, T)."""
        return self.right - self.left

    @property
    def holds(self) -> bool:
        """In every round of every seed, up to rounding."""
        return bool((self.slack >= -ROUNDING * (1.0 + np.abs(self.right))).all())

    @property
    def tightest(self) -> tuple[float, float]:
        """Both sides where the slack is the smallest part of the larger side."""
        size = np.maximum(np.abs(self.left), np.abs(self.right))
        says = size > 1e-9 * size.max()  # 0 <= 0 does not
        share = np.divide(self.slack, size, out=np.full(size.shape, np.inf), where=says)
        worst = np.unravel_index(np.argmin(share), size.shape)
        return float(self.left[worst]), float(self.right[worst])


@dataclass(frozen=True, eq=False)
class Proof:
    """Every inequality of the proofs on one run; `print` shows a table, `plot` a figure."""

    policy: str
    world: str
    seeds: tuple[int, ...]
    inequalities: tuple[Inequality, ...]

    @property
    def holds(self) -> bool:
        """Whether all of them do, also those that may fail with probability delta."""
        return all(inequality.holds for inequality in self.inequalities)

    def __iter__(self) -> Iterator[Inequality]:
        return iter(self.inequalities)

    def __getitem__(self, place: str) -> Inequality:
        """By its place in the paper, as "Lemma A.1", or by its label."""
        for inequality in self.inequalities:
            if place in (inequality.place, inequality.label):
                return inequality
        known = ", ".join(inequality.place for inequality in self.inequalities)
        raise ValueError(f"no inequality {place!r} was checked: choose one of {known}")

    def rows(self) -> list[dict[str, Any]]:
        """One line for each: means over seeds in the last round, and where it is tightest."""
        return [
            {
                "place": one.place,
                "label": one.label,
                "claim": one.claim,
                "sure": one.sure,
                "left": float(one.left[:, -1].mean()),
                "right": float(one.right[:, -1].mean()),
                "tightest_left": one.tightest[0],
                "tightest_right": one.tightest[1],
                "holds": one.holds,
            }
            for one in self.inequalities
        ]

    def __repr__(self) -> str:
        failed = [one.place for one in self.inequalities if not one.holds]
        said = f"not true: {', '.join(failed)}" if failed else "all hold"
        count = len(self.inequalities)
        return f"<Proof of {self.policy} in {self.world}: {count} inequalities, {said}>"

    def _repr_html_(self) -> str:
        head = ("place", "claim", "left, at T", "right", "left, tightest", "right", "holds")
        names = ("place", "claim", "left", "right", "tightest_left", "tightest_right", "holds")
        rows = ([row[name] for name in names] for row in self.rows())
        return table(f"{self.policy} in {self.world}, seeds: {len(self.seeds)}", head, rows)

    def __str__(self) -> str:
        head = ("", "", "at T:", "left", "<= right", "tightest:", "left", "<= right", "")
        lines = [head]
        for one, row in zip(self.inequalities, self.rows()):
            end = (f"{row['left']:.4g}", f"{row['right']:.4g}")
            worst = (f"{row['tightest_left']:.4g}", f"{row['tightest_right']:.4g}")
            verdict = ("holds" if one.holds else "FAILS") + ("" if one.sure else " (w.p. 1-delta)")
            lines.append((one.place, one.claim, "", *end, "", *worst, verdict))
        widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
        shown = ("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)
        title = f"{self.policy} in {self.world}, seeds: {len(self.seeds)}"
        return "\n".join([title, *shown])

    def plot(self, figure: Any = None, *, seed: int = 0) -> Any:
        """Both sides over t, a panel each; `seed` is the place among the run's seeds."""
        from driftbandit.theory.drawing import draw_proof

        return draw_proof(self, figure, seed)
