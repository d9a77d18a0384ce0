"""What the pages say in numbers, docs/reproduced.md above all, computed from the stored results.

`<!-- say: name -->...<!-- end -->` in a sentence is filled from `SAYS`, as tables are from
`benchmarks.readme.TABLES`; a test holds the documents to it.
"""

from __future__ import annotations

from benchmarks import bob, budget, deciders, explain, one_discount, pitch, sharp, theorems
from benchmarks.worlds import Regrets, mean, missed, regrets

HERO = "DOMD-GLB"
# What the paper compares, and what this library adds to the comparison.
PAPER = (
    *(HERO, "GLB-OMD", "RestartGLB", "MASTER + GLM-UCB", "BVD-GLM-UCB", "SCB-WeightUCB"),
    *("D-GLUCB", "SC-D-GLUCB", "SCB-PW-WeightUCB"),
)
OURS = ("AutoDOMD", "DOMD-GLB (practical)", sharp.RULE)
ONLINE = (HERO, "GLB-OMD", *OURS)  # constant cost: everyone else fits stored data
QUARTERS = ("first", "second", "third", "fourth")
READINGS = {
    "BVD-GLM-UCB, quoted discount": "(P_T/(dT))^(2/3), the paper's quote: in the figure",
    "BVD-GLM-UCB, original discount": "(P_T/(sqrt(d) T))^(2/5), its own theorem for any arms",
    "SC-D-GLUCB, quoted discount": "(Gamma_T/(dT))^(2/3), the paper's quote: in the figure",
    "SC-D-GLUCB, original discount": "(sqrt(c) Gamma_T/(dT))^(2/3), its own theorem",
    "MASTER, its own radius": "2 beta of Wei and Luo: in the figure",
    "MASTER, RestartGLB's radius": "(k/c) beta_t of Zhao et al. with one epoch",
}


# Two readings of all unstated choices at once; what a reading does not change is as in the figure.
WHOLE_READINGS = {
    "A": "RestartGLB's corrected period, BVD-GLM-UCB's own discount, designs without a refill",
    "B": "the same period and discount; lambda = 1 and sigma = 1 for all that fit a likelihood",
}
AS_IN_THE_FIGURE = {"MASTER": "MASTER, its own radius", "GLB-OMD": "GLB-OMD, theory"}


def standing(line: dict[str, str]) -> str:
    """Against DOMD-GLB on the same seeds: ahead or behind where the 95 % interval says so."""
    if float(line["high"]) < 0:
        return "ahead"
    return "behind" if float(line["low"]) > 0 else "level"


def ahead(lines: dict[str, dict[str, str]], names: tuple[str, ...]) -> list[str]:
    """Those with less regret than DOMD-GLB, the best first."""
    found = [x for x in names if x in lines and x != HERO and standing(lines[x]) == "ahead"]
    return sorted(found, key=lambda name: mean(lines, name))


def listed(lines: dict[str, dict[str, str]], names: list[str]) -> str:
    return ", ".join(f"{name} {mean(lines, name):.0f}" for name in names) or "none"


def lowest() -> str:
    """In how many panels nobody whom the paper compares there is ahead."""
    panels = regrets("paper-figure").values()
    won = sum(not ahead(lines, PAPER) for lines in panels)
    return f"In {won} of the {len(panels)} panels"


def who_is_ahead(names: tuple[str, ...] | None) -> str:
    """Panel by panel; None for the policies that the paper does not compare."""
    parts = []
    for panel, lines in regrets("paper-figure").items():
        others = tuple(x for x in lines if x not in (*PAPER, *OURS, "Greedy", "Oracle"))
        found = ahead(lines, names or others)
        if found or names:
            parts.append(f"{panel} ({mean(lines, HERO):.0f}): {listed(lines, found)}")
    return "; ".join(parts)


def readings_table() -> list[list[str]]:
    """Each reading's regret, and where it puts the rival next to DOMD-GLB."""
    worlds = regrets("unstated-choices")
    rows = [["rival and reading", "formula", *worlds]]
    for name, formula in READINGS.items():
        found = (lines.get(name) for lines in worlds.values())
        cells = [f"{float(x['mean']):.0f}, {standing(x)}" if x else "" for x in found]
        if not any(cells):
            raise FileNotFoundError(f"unstated-choices.csv of an earlier study, without {name}")
        rows.append([name, formula, *cells])
    return rows


def under_reading(letter: str) -> Regrets:
    """The lines of DOMD-GLB and of each rival of the paper under a reading, panel by panel."""
    panels: Regrets = {}
    for panel, lines in regrets("unstated-choices").items():
        start = f"reading {letter}, "
        changed = {x.removeprefix(start): lines[x] for x in lines if x.startswith(start)}
        if not changed:
            raise FileNotFoundError(f"unstated-choices.csv of an earlier study, without {start}")
        same = {x: lines[name] for x, name in AS_IN_THE_FIGURE.items()}
        panels[panel] = {HERO: lines[HERO]} | same | changed
    return panels


def whole_readings_table() -> list[list[str]]:
    """Regrets under both readings, and where each puts the rival next to DOMD-GLB."""
    rows = [["reading", "policy", *regrets("unstated-choices")]]
    for letter in WHOLE_READINGS:
        panels = under_reading(letter)
        for name in dict.fromkeys(x for lines in panels.values() for x in lines):
            found = (lines.get(name) for lines in panels.values())
            cells = [f"{float(x['mean']):.0f}" if x else "" for x in found]
            rows.append([letter, name, *cells])
    return rows


def lowest_under(letter: str) -> str:
    """In how many panels DOMD-GLB has the lowest mean under a reading."""
    panels = under_reading(letter).values()
    won = sum(min(lines, key=lambda x: mean(lines, x)) == HERO for lines in panels)
    return f"{won} of the {len(panels)} panels"


def spread_table() -> list[list[str]]:
    """Largest over smallest regret as one number takes the values of the study."""
    worlds = regrets("sensitivity")
    rows = [["number changed", "values besides the theorem's", *worlds]]
    for knob in ("gamma", "lambda", "eta", "scale", "delta"):
        names = [x for x in next(iter(worlds.values())) if x.startswith(f"{knob} = ")]
        values = ", ".join(name.removeprefix(f"{knob} = ") for name in names)
        ratios = []
        for lines in worlds.values():
            found = [mean(lines, name) for name in (*names, HERO)]
            ratios.append(f"{max(found) / min(found):.2f}")
        rows.append([knob, values, *ratios])
    return rows


def quarters(policy: str) -> str:
    """Shares of its regret in the four quarters of the horizon, panel by panel."""
    parts = []
    for panel, lines in regrets("paper-quarters").items():
        shares = (f"{100 * float(lines[policy][quarter]):.0f}" for quarter in QUARTERS)
        parts.append(f"{', '.join(shares)} % ({panel})")
    return "; ".join(parts)


def sensitivity(panel: str, *names: str) -> str:
    lines = regrets("sensitivity")[panel]
    return " → ".join(f"{mean(lines, name):.0f}" for name in names)


def growth(policy: str) -> str:
    """Cost of a round early and late in 100,000."""
    (lines,) = regrets("scaling-in-time").values()
    return f"{float(lines[policy]['early_us']):.1f} → {float(lines[policy]['late_us']):.1f} µs"


def covers_least() -> str:
    """Where the full radius covers least, and how often."""
    shares = {panel: float(x[HERO]["coverage"]) for panel, x in regrets("coverage").items()}
    panel = min(shares, key=lambda name: shares[name])
    return f"{100 * shares[panel]:.2f} % of the recorded rounds ({panel})"


def widths() -> str:
    """The full radius over the mean distance of the truth in its own norm."""
    found = [1 / float(lines[HERO]["ratio"]) for lines in regrets("coverage").values()]
    return f"{min(found):.1f} to {max(found):.1f}"


def runtimes() -> str:
    """Time of a round alone on a core, all panels: ours, and the rivals that fit stored data."""
    worlds = regrets("runtime")
    ours = [float(lines[HERO]["mean_us"]) for lines in worlds.values()]
    rest = [
        float(line["mean_us"])
        for lines in worlds.values()
        for name, line in lines.items()
        if name not in ONLINE
    ]
    return (
        f"{min(ours):.1f} to {max(ours):.1f} µs a round against {min(rest):.0f} to "
        f"{max(rest):.0f} µs of the rivals that fit stored data"
    )


def variants() -> str:
    """SCB-PW-WeightUCB with and without c_mu in its bonus."""
    worlds: Regrets = regrets("unstated-choices")
    parts = []
    for panel, lines in worlds.items():
        names = [f"SCB-PW-WeightUCB, variant {v}" for v in "AB"]
        if names[0] in lines:
            a, b = (mean(lines, name) for name in names)
            parts.append(f"{a:.0f} and {b:.0f} ({panel})")
    return ", ".join(parts)


def unknown_drift() -> str:
    """AutoDOMD's regret over the least of the policies that know as little, by environment."""
    parts = []
    for world, lines in regrets("unknown-drift").items():
        others = {name: mean(lines, name) for name in lines if name != "AutoDOMD"}
        if len(others) == len(lines) or not others:
            continue
        best = min(others, key=lambda name: others[name])
        parts.append(f"{mean(lines, 'AutoDOMD') / others[best]:.2f} in *{world}* ({best})")
    return f"AutoDOMD's mean regret over that of the best other: {', '.join(parts)}."


SAYS = {
    **pitch.SAYS,
    "unknowndrift": unknown_drift,
    **theorems.SAYS,
    **sharp.SAYS,
    **one_discount.SAYS,
    **deciders.SAYS,
    "bob": bob.price,
    "routing": budget.ahead,
    "steadier": budget.steadier,
    "overspent": lambda: budget.most("overspend"),
    "overspentworst": lambda: budget.most("most overspend"),
    "windows": lambda: budget.most("worst"),
    "windowsworst": lambda: budget.most("worst of all"),
    "budgetcost": budget.stored_cost,
    "bobahead": bob.ahead,
    "bobbound": bob.bound,
    "explain": explain.summary,
    "missed": missed,
    "lowest": lowest,
    "lowesta": lambda: lowest_under("A"),
    "lowestb": lambda: lowest_under("B"),
    "ahead": lambda: who_is_ahead(PAPER),
    "others": lambda: who_is_ahead(None),
    "flat": lambda: growth(HERO),
    "grows": lambda: growth("SC-D-GLUCB"),
    "runtimes": runtimes,
    "variants": variants,
    "quarters": lambda: quarters("MASTER + GLM-UCB"),
    "covers": covers_least,
    "widths": widths,
    "drift1": lambda: sensitivity("drifting, S = 1", "scale = 0", "scale = 1"),
    "drift3": lambda: sensitivity("drifting, S = 3", "scale = 0", "scale = 1"),
    "flip1": lambda: sensitivity("piecewise-stationary, S = 1", "scale = 0", "scale = 1"),
    "flip3": lambda: sensitivity("piecewise-stationary, S = 3", "scale = 0", "scale = 1"),
}
