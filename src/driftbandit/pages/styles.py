"""One look per policy, the same in every figure and on every page: a colour and a dash."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple
from zlib import crc32

# Okabe and Ito's colours, told apart by colour-blind readers; dashes tell repetitions apart.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
GREY = "#888888"
# Lengths of strokes and gaps, in widths of the line.
DASHES = ((), (4.0, 2.0), (1.0, 1.5), (4.0, 1.5, 1.0, 1.5), (8.0, 2.0))
# In this order, so that policies of one figure share no colour before they must.
NAMES = (
    *("AutoDOMD", "DOMD-GLB", "SCB-WeightUCB", "MASTER + GLM-UCB"),
    *("GLM-UCB", "RestartGLB", "GLB-OMD"),
    *("LB-WeightUCB", "DOMD-GLB (practical)", "SCB-PW-WeightUCB", "D-GLUCB"),
    *("BVD-GLM-UCB", "SW-GLUCB", "GLOC"),
    *("Greedy", "best fixed", "GLB-WeightUCB", "SC-D-GLUCB"),
    *("LinUCB", "SC-SW-GLUCB", "D-LinUCB"),
    "SW-LinUCB",
)
HEROES = ("AutoDOMD", "DOMD-GLB")  # emphasised where a study has them, the first of them
DARK = {"#000000": "#ffffff", "#0072B2": "#5b8def"}  # instead of colours too dark for a dark page
STROKE = 2.0  # pixels of a line, for the lengths of its dashes


class Look(NamedTuple):
    """How a policy is drawn."""

    colour: str
    dash: tuple[float, ...]

    def drawn(self) -> dict[str, str]:
        """Return what a page needs to draw a line: colours for light and dark, and the dash."""
        dash = " ".join(f"{STROKE * length:g}" for length in self.dash)
        return {"colour": self.colour, "dark": DARK.get(self.colour, self.colour), "dash": dash}


LOOKS = tuple(Look(colour, dash) for dash, colour in product(DASHES, COLOURS))
FIXED = dict(zip(NAMES, LOOKS)) | {
    "Uniform": Look(GREY, DASHES[2]),
    "Oracle": Look(GREY, DASHES[3]),
}


def looks(policies: Sequence[str]) -> dict[str, Look]:
    """Shipped names have a look of their own; other names prefer one by their letters, and take
    the next that is free."""
    found = {name: FIXED[name] for name in policies if name in FIXED}
    for name in policies:
        if name not in found:
            first = crc32(name.encode()) % len(LOOKS)
            choice = LOOKS[first:] + LOOKS[:first]
            free = [look for look in choice if look not in found.values()]
            found[name] = (free or choice)[0]
    return {name: found[name] for name in policies}


def hero_of(policies: Sequence[str], hero: str | None = None) -> str:
    """The policy to emphasise: the one asked for, or ours, or the first."""
    if hero is not None:
        return hero
    return next((name for name in HEROES if name in policies), policies[0])
