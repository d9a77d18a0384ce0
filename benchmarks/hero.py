"""README's chart: `python -m benchmarks.hero` plays a shop whose visitors change their tastes.

Three players meet the same visitors: AutoDOMD, the same family of learner without forgetting
(GLB-OMD), and the shop's fixed default. The chart shows clicks per visitor over time.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks import charts
from benchmarks.tables import RESULTS, write
from driftbandit import GLBOMD, AutoDOMD, Category, Features, Flag, Policy, Problem

VISITORS, CHANGE, SHOPS, SEED, WINDOW, STEP = 6000, 3000, 40, 20_000, 300, 50
KINDS = ["outdoor", "books", "home", "music"]
DEFAULT = KINDS.index("home")
LIKED, HOME, OTHERS = 0.6, 0.25, 0.08  # chances of a click, as in the demo
# What visitors on a phone and others like best, before and after the change.
TASTES = (("music", "books"), ("books", "outdoor"))
OURS, FIXED, SHOP = "AutoDOMD", "a bandit that never forgets", "the shop's default"
FIGURE = Path(RESULTS) / "tastes.svg"
STYLE = (
    "text{fill:#444}.grid{stroke:#ddd}.ours{stroke:#0072b2}.ours-text{fill:#0072b2;"
    "font-weight:600}.fixed{stroke:#c4570a}.fixed-text{fill:#b04d08}.shop{stroke:#888;"
    "stroke-dasharray:4 4}.note{stroke:#888;stroke-dasharray:2 3}path{fill:none}"
    "@media (prefers-color-scheme:dark){text{fill:#ccc}.grid{stroke:#3a3f45}.ours{stroke:"
    "#56b4e9}.ours-text{fill:#56b4e9}.fixed{stroke:#f0a35e}.fixed-text{fill:#f0a35e}}"
)


def chances() -> np.ndarray:
    """Chance of a click by tastes, phone and offer, (2, 2, 4)."""
    found = np.full((2, 2, len(KINDS)), OTHERS)
    found[:, :, DEFAULT] = HOME
    for era, pair in enumerate(TASTES):
        for phone, kind in enumerate(reversed(pair)):
            found[era, phone, KINDS.index(kind)] = LIKED
    return found


def contexts() -> np.ndarray:
    """Every offer as the policies see it, for visitors with and without a phone, (2, 4, d)."""
    features = Features(context={"phone": Flag()}, arm={"kind": Category(KINDS)})
    offers = [{"kind": kind} for kind in KINDS]
    return np.stack([features.encode({"phone": phone}, offers) for phone in (False, True)])


def clicks(policy: Policy | None, arms: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """Share of the shops in which each visitor clicks, (VISITORS,); without a policy a shop shows
    its default."""
    rng = np.random.default_rng(SEED)
    phones, lucks = rng.integers(2, size=(VISITORS, SHOPS)), rng.random((VISITORS, SHOPS))
    memory, rows = policy.init(SHOPS) if policy else None, np.arange(SHOPS)
    found = np.empty((VISITORS, SHOPS))
    for t, (phone, luck) in enumerate(zip(phones, lucks)):
        menu = np.ascontiguousarray(arms[phone])
        choice = policy.choose(memory, menu) if policy else np.full(SHOPS, DEFAULT)
        found[t] = luck < rates[int(t >= CHANGE), phone, choice]
        if policy:
            memory = policy.update(memory, menu[rows, choice], found[t])
    return found.mean(axis=1)


def curves() -> dict[str, np.ndarray]:
    """Clicks per visitor in the last WINDOW visits, mean over shops."""
    arms, rates = contexts(), chances()
    problem = Problem(dim=arms.shape[-1])
    players = {OURS: AutoDOMD(problem=problem), FIXED: GLBOMD(problem=problem), SHOP: None}
    ends = np.arange(STEP, VISITORS + 1, STEP)
    starts = np.maximum(ends - WINDOW, 0)
    starts = np.where((ends > CHANGE) & (starts < CHANGE), CHANGE, starts)
    found = {}
    for name, policy in players.items():
        sums = np.concatenate([[0.0], np.cumsum(clicks(policy, arms, rates))])
        found[name] = (sums[ends] - sums[starts]) / (ends - starts)
    return {"visitors": ends.astype(float), **found}


def drawn(data: dict[str, np.ndarray]) -> str:
    """The chart, drawn for light and dark pages alike."""
    width, height, left, right, top, bottom = charts.WIDTH, 250, 48, 186, 34, 36
    most = 0.7

    def x(visitors: float) -> float:
        return left + visitors / VISITORS * (width - left - right)

    def y(share: float) -> float:
        return top + (1 - share / most) * (height - top - bottom)

    parts = []
    for share in (0.0, 0.2, 0.4, 0.6):
        parts += [
            f'<line class="grid" x1="{left}" x2="{width - right}" y1="{y(share):.1f}" '
            f'y2="{y(share):.1f}"/>',
            f'<text x="{left - 8}" y="{y(share) + 4:.1f}" text-anchor="end">{share:.0%}</text>',
        ]
    parts += [
        f'<text x="{left}" y="16">clicks per visitor</text>',
        f'<line class="note" x1="{x(CHANGE):.1f}" x2="{x(CHANGE):.1f}" y1="{top - 6}" '
        f'y2="{height - bottom}"/>',
        f'<text x="{x(CHANGE) + 6:.1f}" y="{top + 4}">tastes change here</text>',
    ]
    for visitors in range(0, VISITORS + 1, 2000):
        label = f"{visitors:,}" + (" visitors" if visitors == VISITORS else "")
        parts.append(
            f'<text x="{x(visitors):.1f}" y="{height - 12}" text-anchor="middle">{label}</text>'
        )
    for name, style, thick in ((SHOP, "shop", 2), (FIXED, "fixed", 2), (OURS, "ours", 3.5)):
        points = (f"{x(v):.1f} {y(s):.1f}" for v, s in zip(data["visitors"], data[name]))
        parts.append(f'<path class="{style}" stroke-width="{thick}" d="M{" L".join(points)}"/>')
    for name, style in ((OURS, "ours-text"), (FIXED, "fixed-text"), (SHOP, "shop-text")):
        where = y(float(data[name][-1])) + 4
        parts.append(f'<text class="{style}" x="{width - right + 8}" y="{where:.1f}">{name}</text>')
    return charts.svg("Clicks per visitor before and after tastes change", height, 13, STYLE, parts)


def main() -> None:
    data = curves()
    lines = [dict(zip(data, map(float, row))) for row in zip(*data.values())]
    write("tastes", lines)
    FIGURE.write_text(drawn(data), encoding="utf-8")
    for name in (OURS, FIXED, SHOP):
        before, after = data[name][CHANGE // STEP - 1], data[name][-1]
        print(f"{name}: {before:.1%} of visitors click before the change, {after:.1%} at the end")


if __name__ == "__main__":
    main()
