"""Learning: the row of numbers behind a loop, and one for each key where a loop has keys.

`learner` trains one example at a time and gives views to decide with; `keyed` adds a row per key.
May import deciding, state and storage; threads belong to training.
"""
