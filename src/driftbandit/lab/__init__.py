"""The lab: studies as files (`study`), run anywhere and kept as Parquet (`run`), shown (`report`).

May import everything but the service, evidence and loops. A report imports `run` and `study`, a run
imports `study`, and a study neither.
"""

from driftbandit.lab.report.regret_slopes import fit_orders
from driftbandit.lab.report.report import names_of, write_report
from driftbandit.lab.report.summary import final_regrets, finals
from driftbandit.lab.run.execute import Engine, execute
from driftbandit.lab.run.store import RunStore, load_results
from driftbandit.lab.study.study_file import (
    Study,
    changed,
    parse_study,
    read_study,
    shipped,
    study_text,
)

__all__ = [
    "Engine",
    "RunStore",
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
    "study_text",
    "write_report",
]
