"""Ids of decisions."""

from __future__ import annotations

import os
import time


def new_id() -> str:
    """Return an id of its own. It begins with the time, so that neighbours are stored together."""
    return f"{time.time_ns() // 1_000_000:012x}{os.urandom(10).hex()}"
