"""Evidence: logs of decisions, learners from them, and what other policies would have earned.

`log` is the door, `files`, `dsjson` and `ledgers` read, `clean` says what is wrong with a row,
`evaluate` passes over a log once. Evidence knows loops, estimators and the lab's look.
"""
