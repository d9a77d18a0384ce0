"""Reporting: outcomes, health, audits, what has drifted, and the log as a frame.

Everything here reads the ledger or a copy of the state, and changes nothing.
May import everything in loop but `loop.py` itself.
"""
