"""Training: examples reach the learner, at once, in a thread, or from the log after a restart.

`trainer` trains, `trainer_thread` does it in the background, `snapshots` carries the learner to
other processes, `replay` rebuilds it from the log, `backfill` trains a new candidate on the past.
May import candidates and what is below them.
"""
