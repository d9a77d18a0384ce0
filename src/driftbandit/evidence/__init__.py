"""Evidence: logs of decisions, learners from them, and what other policies would have earned.

`log` opens a log, `reading` reads rows and says what is wrong with one, `evaluate` passes over a
log once, `report` shows what it found. May import loops, estimators, the lab and `pages`.
"""
