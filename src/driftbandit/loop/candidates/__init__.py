"""Candidates: policies that learn beside the live one, and the evidence of which is better.

`scoring` asks every policy about a logged decision, `totals` adds up, `comparison` states bounds.
May import learning, deciding, state and storage.
"""
