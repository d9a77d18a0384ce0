"""Raw values in, contexts out: a declaration of columns, compiled into a plan.

`declarations` says what a column is, `features` puts them together, `plan` lays out the terms;
`columns` reads dicts and frames, `reals`, `parts` and `side` encode them. Nothing here
knows policies, loops or the lab.
"""

from driftbandit.features.declarations import Category, Feature, Flag, Number, Vector
from driftbandit.features.features import Features

__all__ = ["Category", "Feature", "Features", "Flag", "Number", "Vector"]
