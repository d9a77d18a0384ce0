"""Errors of the service, and every error as an answer: problem+json (RFC 9457)."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from http import HTTPStatus

import msgspec

from driftbandit.loop.errors import (
    BusyError,
    ConflictError,
    UnknownArmError,
    UnknownCandidateError,
    UsedIdError,
)
from driftbandit.loop.errors import LedgerError as LedgerError
from driftbandit.service.schema.messages import FieldDifference, LeadInfo, ProblemDetails, filled

log = logging.getLogger("driftbandit.service")
MEDIA = "application/problem+json"
# Paths, addresses of databases, and what PostgreSQL says of its server.
PLACES = re.compile(r"""'[^']*[/\\][^']*'|"[^"]*[/\\][^"]*"|at "[^"]*"[^:;]*""")
RETRY = {429: "1", 503: "1"}  # seconds after which to ask again


class RefusedError(ValueError):
    """A request that is answered with a status of its own."""

    def __init__(self, status: int, detail: str, difference: Sequence[FieldDifference] = ()):
        super().__init__(detail)
        self.status, self.difference = status, difference


STATUS: tuple[tuple[type[Exception], int], ...] = (  # the first that fits
    (LedgerError, 503),
    (UsedIdError, 409),
    (BusyError, 503),
    (ConflictError, 409),
    (UnknownCandidateError, 404),
    (UnknownArmError, 404),
    (msgspec.MsgspecError, 400),
    (ValueError, 422),
    (RecursionError, 400),
    (TimeoutError, 503),
    (ImportError, 501),
)


def problem(error: Exception) -> ProblemDetails:
    """Return what the client is told; a fault of the service is logged and not shown."""
    status, detail = status_of(error), str(error)
    if status == 500:
        log.error("a request failed", exc_info=error)
        detail = "the service has a fault: its log says more"
    if isinstance(error, TimeoutError):
        detail = "the answer takes too long: ask again, with the same id"
    leads = tuple(filled(LeadInfo, each) for each in getattr(error, "leads", ()))
    difference = getattr(error, "difference", ())
    return ProblemDetails(HTTPStatus(status).phrase, status, detail, difference, leads)


def without_path(detail: str, path: str) -> str:
    """Return what went wrong, without where the ledger is: that is for the log."""
    return PLACES.sub("(path)", detail.replace(repr(path), "(path)"))


def status_of(error: Exception) -> int:
    if isinstance(error, RefusedError):
        return error.status
    return next((status for kind, status in STATUS if isinstance(error, kind)), 500)


def headers(status: int) -> dict[str, str]:
    """Return what else an answer with this status says."""
    found = {"retry-after": RETRY[status]} if status in RETRY else {}
    return found | ({"www-authenticate": "Bearer"} if status == 401 else {})
