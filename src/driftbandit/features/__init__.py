"""Raw values in, contexts out: a declaration of columns, compiled into a plan.

`declarations` says what a column is and `features` puts columns together; `encoders` turns one side
(context or arm) into slots and `plan` multiplies both sides into rows. `columns` reads frames and
odd mappings. Nothing here knows policies, loops or the lab.
"""

from driftbandit.features.declarations import Category, Feature, Flag, Item, Number, Vector
from driftbandit.features.features import Features

__all__ = ["Category", "Feature", "Features", "Flag", "Item", "Number", "Vector"]
