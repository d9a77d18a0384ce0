"""Calls that come in the middle of the loop's own work, in the same thread.

Python runs finalizers (`__del__`, callbacks of weak references) wherever it frees an object, and
handlers of signals between any two steps of the main thread. One that calls the loop while its
thread stores an event would wait for itself, and an event cannot be stored in the middle of
another. So such a call is refused, before it takes any lock.
"""

from __future__ import annotations

from threading import get_ident

from driftbandit.loop.errors import BusyError

REMEDY = (
    "a signal handler or a finalizer (__del__, a callback of a weak reference) calls the loop in "
    "the middle of the loop's own work, which it would wait for: let it put the call into a "
    "queue.SimpleQueue, and make it from the program or from another thread"
)


class Midst:
    """Marks the thread in a block as one in the middle of the loop's work. Blocks do not nest."""

    def __init__(self) -> None:
        self._threads = set[int]()  # adding and discarding are single steps: no lock is needed

    def check(self) -> None:
        """Raise if this thread is in such a block."""
        if get_ident() in self._threads:
            raise BusyError(REMEDY)

    def __enter__(self) -> None:
        self._threads.add(get_ident())

    def __exit__(self, *_: object) -> None:
        self._threads.discard(get_ident())
