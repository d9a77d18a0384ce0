"""Fleets: one learner per key, their memories in a few shared arrays, the rest in a file.

May import bandits, policies and what these need. `Fleet` is the only public name.
"""

from driftbandit.fleet.fleet import Fleet

__all__ = ["Fleet"]
