"""The engine: a learner is one row of float64, and a few compiled functions read and write it.

`layout` says what a row holds, `domd` is Algorithm 1, `auto` the mixture of many learners. Nothing
here checks more than it must: contexts and rewards, which it is handed unseen.
"""
