"""Locks and random numbers that survive a fork.

A child of a fork inherits locks as they were: one that another thread held is held forever. It
inherits random generators as they were, so parent and child would draw the same numbers.
"""

from __future__ import annotations

import os
from threading import RLock
from typing import Any
from weakref import WeakSet

import numpy as np

from driftbandit import validate

process = os.getpid()  # this one, in a child, too; the call itself takes 2 us

_locks: WeakSet[Any] = WeakSet()
_streams: WeakSet[NormalStream] = WeakSet()
_held: list[Any] = []
_forking = RLock()  # one fork at a time, and no new lock in the middle of one

BLOCK = 256  # decisions whose numbers are drawn at once


def forkable_lock() -> Any:
    """A lock that the forking thread takes before the fork: no child sees half an update."""
    lock = RLock()
    with _forking:
        _locks.add(lock)
    return lock


class NormalStream:
    """Standard normal numbers, `size` at a time, from a seed; a forked child goes on with its own.

    They are drawn in blocks. `peek` shows the coming ones, and only `step` goes on: a call that is
    refused after it has looked has changed nothing.
    """

    def __init__(self, seed: int, size: int) -> None:
        clean = validate.count("seed", seed, "of the random generator", least=0)
        self._rng, self._size = np.random.default_rng(clean), size
        self._begin()  # `_start` is what the block was drawn from
        _streams.add(self)

    @property
    def state(self) -> dict[str, Any]:
        return {"start": self._start, "used": self._used}

    @state.setter
    def state(self, state: dict[str, Any]) -> None:
        used = validate.count("used", state["used"], "numbers drawn", least=0)
        self._rng.bit_generator.state = state["start"]
        self._start, self._used = state["start"], min(used, BLOCK)
        self._block = self._rng.standard_normal((BLOCK if used else 0, self._size))

    def peek(self) -> Any:
        """The coming numbers, (size,)."""
        if self._used == len(self._block):
            self._start, self._used = dict(self._rng.bit_generator.state), 0
            self._block = self._rng.standard_normal((BLOCK, self._size))
        return self._block[self._used]

    def step(self) -> None:
        """Those that were shown are used."""
        self._used += 1

    def many(self, count: int) -> Any:
        """The next (count, size) numbers."""
        noise = self._rng.standard_normal((count, self._size))
        self._begin()
        return noise

    def branch(self) -> None:
        """Go on elsewhere: what comes depends on what was and on this process."""
        self._rng = np.random.default_rng([os.getpid(), *self._rng.integers(2**63, size=2)])
        self._begin()

    def _begin(self) -> None:
        """No block is drawn: the next comes from where the generator is."""
        self._start, self._used = dict(self._rng.bit_generator.state), 0
        self._block = np.empty((0, self._size))


def _before() -> None:
    _forking.acquire()
    _held.extend(_locks)
    for lock in _held:
        lock.acquire()


def _after() -> None:
    while _held:
        _held.pop().release()
    _forking.release()


def _in_child() -> None:
    global process
    process = os.getpid()
    _after()
    for stream in _streams:
        stream.branch()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_in_child)
