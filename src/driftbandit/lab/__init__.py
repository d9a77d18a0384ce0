"""The lab: comparisons that are one command, kept as files, shown as tables and figures."""

from driftbandit.lab.paper import Panel, contenders, panels, run_panels
from driftbandit.lab.report import draw, table, write_csv

__all__ = ["Panel", "contenders", "draw", "panels", "run_panels", "table", "write_csv"]
