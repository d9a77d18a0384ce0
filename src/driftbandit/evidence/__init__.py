"""Evidence: logs of decisions, learners from them, and what other policies would have earned.

`log` opens a log, `reading` reads rows and says what is wrong with one, `evaluate` passes over a
log once, `numbers` has what it found and `report` shows it. May import loops, estimators, the lab
and `pages`.
"""
