"""SQL on the file of a ledger, beside the loop that has it open: to damage it, or to look at it."""

import sqlite3
from contextlib import closing


def run_sql(path, statement, *values):
    """Run a statement in a transaction of its own; returns its rows."""
    with closing(sqlite3.connect(path, timeout=30.0)) as base, base:
        return base.execute(statement, values).fetchall()
