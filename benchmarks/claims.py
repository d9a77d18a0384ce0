"""What the pages say in numbers, docs/reproduced.md above all, computed from the stored results.

`<!-- say: name -->...<!-- end -->` in a sentence is filled from `SAYS`, as tables are from
`benchmarks.readme.TABLES`; a test holds the documents to it.
"""

from __future__ import annotations

from benchmarks import bob, explain, pitch, sharp, theorems
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
    return ", ".join(f"{name} {mean(lines, name):.0f}" for name in names) or "nobody"


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


SAYS = {
    **pitch.SAYS,
    **theorems.SAYS,
    **sharp.SAYS,
    "bob": bob.price,
    "bobahead": bob.ahead,
    "bobbound": bob.bound,
    "explain": explain.summary,
    "missed": missed,
    "lowest": lowest,
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
