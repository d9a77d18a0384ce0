"""The lab: studies as files, run anywhere, resumed at will, kept as Parquet, shown as reports."""

from driftbandit.lab.execute import Engine, execute
from driftbandit.lab.orders import fit_orders
from driftbandit.lab.report import names_of, write_report
from driftbandit.lab.spec import Study, changed, parse_study, read_study, shipped
from driftbandit.lab.store import Store, load_results
from driftbandit.lab.summary import final_regrets, finals

__all__ = [
    "Engine",
    "Store",
    "Study",
    "changed",
    "execute",
    "final_regrets",
    "finals",
    "fit_orders",
    "load_results",
    "names_of",
    "parse_study",
    "read_study",
    "shipped",
    "write_report",
]
