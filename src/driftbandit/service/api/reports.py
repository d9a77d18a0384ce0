"""Reports, which read much of a log: health, explanations, the log itself, and evaluations."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from typing import IO, Any

from driftbandit.durations import moment
from driftbandit.service.api.loops import Call, Reply
from driftbandit.service.dashboard.live import health_of
from driftbandit.service.errors import LedgerError, RefusedError
from driftbandit.service.schema import messages as m

CHUNK = 1 << 16  # bytes of a file at once
FORMATS = {"jsonl": "application/jsonl", "parquet": "application/vnd.apache.parquet"}


def health(call: Call) -> Reply:
    """Return counts of all events, and a report of the latest; `since` asks what changed."""
    return Reply(200, health_of(call.path["name"], call.loop, _moment(call.query, "since")))


def why(call: Call) -> Reply:
    """Explain from the log alone: the learner is trained up to the decision, and decides again."""
    try:
        found = call.loop.audit(call.path["id"])
    except LedgerError:
        raise
    except ValueError as error:
        raise RefusedError(404, str(error)) from None
    none: dict[str, Any] = {"arm": None, "runner_up": None, "lead": None, "bonus": None}
    reason = {**none, "terms": {}, "costs": {}}
    if found.why is not None:
        reason = found.why._asdict()
    return Reply(200, m.filled(m.ExplanationResponse, found, **reason))


def log(call: Call) -> Reply:
    """Return decisions from `since` to before `until`, in seconds since the epoch, as a file."""
    kind = call.query.get("format", "jsonl")
    if kind not in FORMATS:
        raise RefusedError(422, f"format must be one of {', '.join(FORMATS)}, got {kind!r}")
    frame = _rows(call)
    file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (it is read after this returns)
    frame.write_ndjson(file) if kind == "jsonl" else frame.write_parquet(file)
    return Reply(200, _chunks(file), FORMATS[kind])


def evaluation(call: Call) -> Reply:
    """Return all numbers, with intervals that hold however often you look."""
    frame, slates = _rows_of_one_arm(call)
    found = _evaluated(call, frame)
    answer = m.EvaluationResponse(call.path["name"], found.rows, slates, found.to_dict())
    return Reply(200, answer)


def evaluation_page(call: Call) -> Reply:
    """Return one page that opens without a network, to be saved as a file."""
    frame, _ = _rows_of_one_arm(call)
    return Reply(200, _evaluated(call, frame).html().encode(), "text/html; charset=utf-8")


def _rows(call: Call) -> Any:
    """The log as a frame, from `since` to before `until`."""
    since, until = (_moment(call.query, name) for name in ("since", "until"))
    frame = call.loop.log()
    if since is not None:
        frame = frame.filter(frame["at"] >= since)
    if until is not None:
        frame = frame.filter(frame["at"] < until)
    return frame


def _rows_of_one_arm(call: Call) -> tuple[Any, int]:
    """Decisions for one arm that were trained, and how many positions of slates there are."""
    frame, most = _rows(call), call.service.limits.rows
    frame = frame.filter((frame["status"] == "trained") & (frame["role"] != "empty"))
    alone = frame.filter(frame["position"].is_null())
    if not len(alone):
        raise RefusedError(
            422, "no decision for one arm was trained yet: ask again when rewards have come"
        )
    if len(alone) > most:
        raise RefusedError(
            422,
            f"{len(alone)} decisions are too many to evaluate here, at most {most}: pass since=, "
            "or run driftbandit evaluate where the ledger is",
        )
    return alone, len(frame) - len(alone)


def _evaluated(call: Call, frame: Any) -> Any:
    try:  # imported lazily: it needs more packages than the rest of the service
        from driftbandit.evidence.candidates import Default, Logged
        from driftbandit.evidence.evaluate import evaluate
        from driftbandit.evidence.log import Log
        from driftbandit.evidence.report.page import page  # noqa: F401 (what a report needs, too)
        from driftbandit.policies.baselines import Uniform
    except ImportError as error:
        raise ImportError(
            f"{error.name} is missing: pip install 'driftbandit[service,evidence]'"
        ) from None
    log = Log.read(frame, features=call.loop.features, reward=call.loop.declaration.reward)
    known = {"default": Default()} if frame["default"].is_not_null().any() else {}
    candidates = {"live": Logged(), **known, "uniform": Uniform()}
    return evaluate(log, candidates, over="default" if known else "uniform")


def _moment(query: dict[str, str], name: str) -> float | None:
    if name not in query:
        return None
    try:
        return moment(float(query[name]), 0.0)
    except ValueError:
        raise RefusedError(422, f"{name} must be seconds since the epoch") from None


async def _chunks(file: IO[bytes]) -> AsyncIterator[bytes]:
    with file:
        file.seek(0)
        while chunk := await asyncio.to_thread(file.read, CHUNK):
            yield chunk
