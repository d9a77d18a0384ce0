"""What became of the rows of a log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

LOOK = 2000  # rows after which a log with too many bad ones is given up


class RowCounts:
    """Rows, and those left out: bad ones by reason with the first example, and skipped ones."""

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self.rows, self.clipped = 0, 0
        self.bad: Counter[str] = Counter()
        self.skipped: Counter[str] = Counter()
        self.aside: Counter[str] = Counter()  # used to train, by role; no estimate has them
        self.first: dict[str, int] = {}  # row of the first example, counted from 1

    def add(self, bad: Sequence[str | None], skip: Sequence[str | None]) -> None:
        """The rows of a batch."""
        for k, (why_bad, why_skipped) in enumerate(zip(bad, skip), start=self.rows + 1):
            if why_bad is not None:
                self.refuse(why_bad, k)
            elif why_skipped is not None:
                self.skipped[why_skipped] += 1
        self.rows += len(bad)
        if self.rows >= LOOK:
            self.check()

    def refuse(self, reason: str, row: int) -> None:
        self.bad[reason] += 1
        self.first.setdefault(reason, row)

    @property
    def used(self) -> int:
        return self.rows - self.bad.total() - self.skipped.total()

    def check(self) -> None:
        """Refuse a log with too many bad rows."""
        bad = self.bad.total()
        if bad > self.limit * self.rows:
            raise ValueError(
                f"{bad:,} of the first {self.rows:,} rows are bad, more than limit={self.limit:g} "
                f"allows: {'; '.join(self.reasons())}. Correct the log, or raise limit"
            )

    def reasons(self) -> list[str]:
        """Each reason with how often and where first."""
        return [
            f"{n:,} x {why} (first row {self.first[why]:,})" for why, n in self.bad.most_common()
        ]

    def sentences(self) -> list[str]:
        """Return what was left out, in words."""
        out = [f"Bad rows were left out: {'; '.join(self.reasons())}."] if self.bad else []
        if self.skipped:
            what = "; ".join(f"{n:,} x {why}" for why, n in self.skipped.most_common())
            out.append(f"Skipped: {what}.")
        if self.aside:
            what = "; ".join(f"{n:,} x {role}" for role, n in self.aside.most_common())
            out.append(
                f"The default was played without asking the policy: {what}. These rows train, but "
                "no estimate has them."
            )
        return out

    def to_dict(self) -> dict[str, object]:
        return {
            "rows": self.rows,
            "used": self.used,
            "bad": dict(self.bad),
            "first_bad": dict(self.first),
            "skipped": dict(self.skipped),
            "aside": dict(self.aside),
            "clipped": self.clipped,
        }
