"""Signals wait while the main thread writes.

Python runs the handlers of signals in the main thread, between any two steps of a program. One that
raises, as that of Ctrl-C does, would leave reward windows that know more than the ledger. So while
the main thread writes, signals are noted, and their handlers run right after it.
"""

from __future__ import annotations

# Not `signal`, whose names of signals and handlers take 14 us each time.
import _signal  # type: ignore[import-not-found]
import signal
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

NAMES = ("SIGINT", "SIGTERM", "SIGBREAK", "SIGHUP", "SIGALRM", "SIGUSR1", "SIGUSR2", "SIGQUIT")
OFTEN = [int(getattr(signal, name)) for name in NAMES if hasattr(signal, name)]  # whose may raise


def in_main_thread() -> bool:
    """Return whether handlers of signals run in this thread."""
    return threading.current_thread() is threading.main_thread()


def without_signals(step: Callable[[], None]) -> None:
    """Do a step that no handler of a signal may cut in half."""
    if in_main_thread():
        for number in OFTEN:
            handler = _signal.getsignal(number)
            if callable(handler):
                step = partial(_held, step, number, handler)
    step()


def _held(step: Callable[[], None], number: int, handler: Callable[..., Any]) -> None:
    """Do a step, and run the handler of one signal after it, if the signal came."""
    came: list[tuple[Any, ...]] = []
    try:
        _signal.signal(number, lambda *said: came.append(said))
        step()
    finally:
        _signal.signal(number, handler)
        if came:
            handler(*came[0])
