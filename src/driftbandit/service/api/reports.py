"""What reads much of a log: health, reasons and the log itself."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import IO, Any

from driftbandit.durations import moment
from driftbandit.loop.storage.events import LedgerError
from driftbandit.service.api.loops import Call, Reply
from driftbandit.service.dashboard import live
from driftbandit.service.http.errors import RefusedError
from driftbandit.service.schema import views as v

CHUNK = 1 << 16  # bytes of a file at once
FORMATS = {"jsonl": "application/jsonl", "parquet": "application/vnd.apache.parquet"}


def health(call: Call) -> Reply:
    """Counts of all of its life, and a report of the latest events; `since` asks what changed."""
    return Reply(200, live.health(call.path["name"], call.loop, _moment(call.query, "since")))


def why(call: Call) -> Reply:
    """From the log alone: the learner is trained up to where it was, and decides again."""
    try:
        found = call.loop.audit(call.path["id"])
    except (LedgerError, RefusedError):
        raise
    except ValueError as error:
        raise RefusedError(404, str(error)) from None
    reasons: tuple[Any, ...] = found.why or (None, None, None, {})
    return Reply(200, v.Why(found.id, found.logged, found.computed, found.agrees, *reasons))


def log(call: Call) -> Reply:
    """Decisions from `since` to before `until`, in seconds since the epoch."""
    kind = call.query.get("format", "jsonl")
    if kind not in FORMATS:
        raise RefusedError(422, f"format must be one of {', '.join(FORMATS)}, got {kind!r}")
    frame = rows(call)
    file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (it is read after this returns)
    frame.write_ndjson(file) if kind == "jsonl" else frame.write_parquet(file)
    return Reply(200, _chunks(file), FORMATS[kind])


def rows(call: Call) -> Any:
    """The log as a frame, from `since` to before `until`."""
    since, until = (_moment(call.query, name) for name in ("since", "until"))
    frame = call.loop.log()
    if since is not None:
        frame = frame.filter(frame["at"] >= since)
    if until is not None:
        frame = frame.filter(frame["at"] < until)
    return frame


def _moment(query: dict[str, str], name: str) -> float | None:
    if name not in query:
        return None
    try:
        return moment(float(query[name]), 0.0)
    except ValueError:
        raise RefusedError(422, f"{name} must be seconds since the epoch") from None


def _chunks(file: IO[bytes]) -> Iterator[bytes]:
    with file:
        file.seek(0)
        while chunk := file.read(CHUNK):
            yield chunk
