"""What goes wrong, as answers: problem+json (RFC 9457) with the library's own words."""

from __future__ import annotations

import asyncio
import logging
from http import HTTPStatus

import msgspec

from driftbandit.loop.deciding.payloads import UsedIdError
from driftbandit.loop.promotion import UnknownError
from driftbandit.loop.reporting.health import as_json
from driftbandit.loop.runtime import ConflictError
from driftbandit.loop.storage.events import LedgerError
from driftbandit.loop.training.backfill import BusyError
from driftbandit.service.schema.candidate_messages import Lead
from driftbandit.service.schema.messages import Difference, Problem

log = logging.getLogger("driftbandit.service")
MEDIA = "application/problem+json"
RETRY = {429: "1", 503: "1"}  # seconds after which to ask again


class RefusedError(ValueError):
    """A request that is answered with a status of its own."""

    def __init__(self, status: int, detail: str, difference: list[Difference] | None = None):
        super().__init__(detail)
        self.status, self.difference = status, difference or []


def problem(error: Exception) -> Problem:
    """What a client is told; what is nobody's mistake is logged and not shown."""
    status, detail = _status(error), str(error)
    if status == 500:
        log.error("a request failed", exc_info=error)
        detail = "the service has a fault: its log says more"
    if isinstance(error, (TimeoutError, asyncio.TimeoutError)):
        detail = "the answer takes too long: ask again, with the same id"
    title = HTTPStatus(status).phrase
    leads = [Lead(**as_json(each)) for each in getattr(error, "leads", ())]
    return Problem(title, status, detail, getattr(error, "difference", []), leads)


def _status(error: Exception) -> int:
    kinds: tuple[tuple[type[Exception], int], ...] = (
        (LedgerError, 503),
        (UsedIdError, 409),
        (BusyError, 503),
        (ConflictError, 409),
        (UnknownError, 404),
        (msgspec.MsgspecError, 400),
        (ValueError, 422),
        (RecursionError, 400),
        (TimeoutError, 503),
        (asyncio.TimeoutError, 503),  # the same from Python 3.11 on
        (ImportError, 501),
    )
    if isinstance(error, RefusedError):
        return error.status
    return next((status for kind, status in kinds if isinstance(error, kind)), 500)


def headers(status: int) -> dict[str, str]:
    """What else an answer with this status says."""
    found = {"retry-after": RETRY[status]} if status in RETRY else {}
    return found | ({"www-authenticate": "Bearer"} if status == 401 else {})
