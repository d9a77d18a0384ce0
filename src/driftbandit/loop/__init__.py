"""Loops: raw events in, decisions with known probabilities out, all of it in an append-only ledger.

`ledger` stores events, `book` says what they mean, `clerk` puts them in order, `learner` learns
from them, `rules` choose, and `loop` is the door. A loop knows bandits and features, never the lab.
"""
