"""Real data as arrays: where they come from, their licence and checksum. None are shipped.

`load("elec2")` gives a stream with the outcome of every arm, `open_bandit()` a log that knows only
the outcome of what was shown. Files come from a folder of yours (`DRIFTBANDIT_DATA`), from an
installed package, or by download into a cache. Nothing here knows policies or environments.
"""

from driftbandit.datasets.logs import LoggedRounds, open_bandit
from driftbandit.datasets.rounds import Rounds
from driftbandit.datasets.streams import load, names, shape

__all__ = ["LoggedRounds", "Rounds", "load", "names", "open_bandit", "shape"]
