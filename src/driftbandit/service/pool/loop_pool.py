"""The loops of a ledger, open while the service runs."""

from __future__ import annotations

import logging
import threading
import time
from contextlib import suppress

from driftbandit.loop.config import check_name
from driftbandit.loop.loop import Loop
from driftbandit.loop.storage.events import LedgerError
from driftbandit.loop.storage.ledger import names
from driftbandit.loop.storage.store import is_url
from driftbandit.service.http.errors import RefusedError
from driftbandit.service.schema.declarations import changes, check_new, difference, options
from driftbandit.service.schema.messages import Changes, Declared

log = logging.getLogger("driftbandit.service")
PATIENCE = 1.0  # seconds between two attempts to open a loop that has stopped


class Loops:
    """One `Loop` for each name. What has stopped, because the disk was full for example, is opened
    again when somebody asks for it."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._known = set(names(path))
        self._open: dict[str, Loop] = {}
        self._failed: dict[str, tuple[float, str]] = {}  # when, and what was wrong
        self._turn = threading.Lock()
        self._closed = False

    def look(self) -> None:
        """Open all that are not, or have stopped; that replays what came after their checkpoints.
        Other services may have made new ones."""
        self._meet()
        for name, loop in self.opened.items():
            self.suspect(name, loop)
        for name in sorted(self._known):
            with suppress(RefusedError):
                self.get(name)

    def _meet(self) -> None:
        """Loops that other services have made."""
        with suppress(LedgerError):
            self._known |= set(names(self.path))

    @property
    def names(self) -> list[str]:
        return sorted(self._known)

    @property
    def opened(self) -> dict[str, Loop]:
        return dict(self._open)

    @property
    def ready(self) -> bool:
        return not self._closed and self._known == self._open.keys()

    def get(self, name: str) -> Loop:
        """The loop of this name."""
        found = self._open.get(name)
        if found is not None:
            return found
        if name not in self._known and is_url(self.path):
            self._meet()
        if name not in self._known:
            raise RefusedError(404, f"no loop {name!r}: declare it with PUT /v1/loops/NAME")
        with self._turn:
            return self._open.get(name) or self._again(name)

    def _again(self, name: str) -> Loop:
        """Open a loop that is in the file."""
        if self._closed:
            raise RefusedError(503, "the service is stopping: ask again")
        when, wrong = self._failed.get(name, (0.0, ""))
        if time.monotonic() - when < PATIENCE:
            raise RefusedError(503, wrong)
        try:
            self._open[name] = Loop(self.path, name=name)
        except ValueError as error:
            if str(error) != wrong:
                log.warning("loop %s does not open: %s", name, error)
            self._failed[name] = time.monotonic(), str(error)
            raise RefusedError(503, str(error)) from None
        return self._open[name]

    def declare(self, name: str, declared: Declared) -> bool:
        """Make a loop, or check that it is what was declared; says whether it is new."""
        given = options(declared)
        check_name(name)
        if is_url(self.path):
            self._meet()
        with self._turn:
            if name not in self._known:
                check_new(given)
                self._open[name] = Loop(self.path, name=name, **given)
                self._known.add(name)
                return True
        if apart := difference(self.get(name), declared):
            raise RefusedError(
                409,
                f"loop {name!r} was declared differently: leave out what differs, PATCH "
                "exploration, mode or holdout, or use another name for a new loop",
                apart,
            )
        return False

    def change(self, name: str, changed: Changes) -> Loop:
        """Other settings from now on; one change after the other, for each starts from the last."""
        loop, given = self.get(name), changes(changed)
        with self._turn:
            loop.configure(**given)
        return loop

    def suspect(self, name: str, loop: Loop) -> None:
        """Close a loop that has stopped, so that it can be opened again."""
        try:
            loop.check()
        except LedgerError as error:
            with self._turn:
                if self._open.get(name) is loop:
                    del self._open[name]
                    self._failed[name] = time.monotonic(), str(error)
                    with suppress(ValueError):
                        loop.close()

    def close(self) -> None:
        """Store and train all that was acknowledged, and stop."""
        with self._turn:
            self._closed = True
            for name, loop in self._open.items():
                try:
                    loop.close()
                except ValueError as error:
                    log.error("loop %s did not close well: %s", name, error)
            self._open.clear()
