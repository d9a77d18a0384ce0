"""Retention: events older than a loop keeps are let go, once a checkpoint stands for them."""

from __future__ import annotations

from collections.abc import Sequence

from driftbandit.loop.state.reward_windows import RewardWindows
from driftbandit.loop.storage.events import Event
from driftbandit.loop.storage.ledger import Ledger


def let_go(ledger: Ledger, windows: RewardWindows, now: float) -> bool:
    """Let replays start from the newest checkpoint that is older than `retention`; return whether
    there are events to delete."""
    if windows.retention is None:
        return False
    then = now - windows.retention
    begun = [each.seq for each in ledger.lasting() if each.kind == "shadow"]
    old = [e for e in ledger.checkpoints() if e.at <= then and not _amid(e, begun)]
    if not old or old[-1].seq <= ledger.base:
        return False
    ledger.rest_on(old[-1].seq, start=old[-1].read().mark[1])
    return True


def _amid(checkpoint: Event, begun: Sequence[int]) -> bool:
    """Return whether a candidate came while a checkpoint was under way: its beginning would go."""
    mark = checkpoint.read().mark[0]
    return any(mark < seq < checkpoint.seq for seq in begun)
