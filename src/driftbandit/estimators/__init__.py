"""Estimators: what a logged policy's rewards say of another policy. Plain functions of sums.

`increments` and `sequences` hold at every moment, `ope`, `shrinkage` and `overlap` for one look;
`propensity_check` doubts the log itself, and `planning` asks before the first row. They know
arrays, never logs, learners or loops.
"""
