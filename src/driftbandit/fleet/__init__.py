"""Fleets: one learner per key, their memories in a few shared arrays."""

from driftbandit.fleet.fleet import Fleet

__all__ = ["Fleet"]
