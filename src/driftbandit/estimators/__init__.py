"""Estimators: what a logged policy's rewards say of another policy. Plain functions of sums.

`bets` and `sequences` hold at every moment, `values` at one; `ratios` doubts the log itself, and
`planning` asks before the first row. They know arrays, never logs, learners or loops.
"""
