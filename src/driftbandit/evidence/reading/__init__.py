"""Reading: logs in any format become chunks of clean rows.

`files`, `dsjson` and `ledger` read, `columns` finds the columns, `clean` says what is wrong with
a row, `write` writes.
May import features, loop and estimators; nothing here evaluates.
"""
