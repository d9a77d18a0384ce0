"""The table of routes: who may ask for what, with which body, and what comes back.

The application and the OpenAPI document are both made from it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from driftbandit.service.api import candidates, evaluations, reports
from driftbandit.service.api import loops as do
from driftbandit.service.schema import candidate_messages as c
from driftbandit.service.schema import messages as m
from driftbandit.service.schema import views as v

NAME, ID = "/v1/loops/{name}", "/v1/loops/{name}/decisions/{id}"
CANDIDATE = "/v1/loops/{name}/candidates/{candidate}"
AS_TOML = (m.Declared, c.Proposed)  # bodies that may also be TOML


class Route(NamedTuple):
    """One row. `role` is None where no key is needed; `answers` are messages by status."""

    method: str
    path: str
    role: str | None
    act: Callable[[do.Call], Any]  # a Reply; awaited where it is a coroutine
    summary: str
    body: Any = None
    answers: tuple[tuple[int, Any], ...] = ()
    query: tuple[str, ...] = ()
    problems: tuple[int, ...] = ()
    heavy: bool = False  # reads much of the log: one after the other, in a thread of its own


ROUTES = (
    Route("GET", "/v1/loops", "read", do.names, "The loops", answers=((200, m.Loops),)),
    Route(
        "PUT", NAME, "admin", do.declare, "Declare a loop, as JSON or TOML; repeating it is safe",
        m.Declared, ((200, m.LoopInfo), (201, m.LoopInfo)), problems=(409, 415, 422),
    ),
    Route(
        "GET", NAME, "read", do.show, "What a loop was declared with, and its settings",
        answers=((200, m.LoopInfo),), problems=(404,),
    ),
    Route(
        "PATCH", NAME, "admin", do.change, "Change rule, mode, holdout or guard from now on",
        m.Changes, ((200, m.LoopInfo),), problems=(404, 415, 422),
    ),
    Route(
        "POST", f"{NAME}/decisions", "decide", do.decide, "Decide; the same id, the same answer",
        m.Ask, ((200, m.Made),), problems=(404, 409, 415, 422),
    ),
    Route(
        "POST", f"{NAME}/batches", "decide", do.decide_batch, "Decide many; each on its own",
        m.Batch, ((200, m.MadeBatch),), problems=(404, 415, 422),
    ),
    Route(
        "POST", f"{NAME}/records", "decide", do.record,
        "Record decisions made elsewhere, where the default was played; each on its own",
        m.Records, ((200, m.Recorded),), problems=(404, 415, 422),
    ),
    Route(
        "PUT", f"{ID}/reward", "reward", do.reward, "Say what a decision gave",
        m.Rewarded, ((200, m.Outcome),), problems=(404, 415, 422),
    ),
    Route(
        "GET", f"{ID}/why", "read", reports.why, "Why an arm was chosen, from the log alone",
        answers=((200, v.Why),), problems=(404, 422), heavy=True,
    ),
    Route(
        "DELETE", ID, "decide", do.cancel, "Say that a decision was never shown",
        answers=((200, m.Outcome),), query=("position",), problems=(404, 422),
    ),
    Route(
        "GET", f"{NAME}/candidates", "read", candidates.everybody, "Who acts, and the candidates",
        answers=((200, c.Candidates),), problems=(404,),
    ),
    Route(
        "PUT", CANDIDATE, "admin", candidates.propose,
        "A candidate that learns and never acts, as JSON or TOML; repeating it is safe",
        c.Proposed, ((200, c.Candidate), (201, c.Candidate)), problems=(404, 409, 415, 422),
    ),
    Route(
        "GET", CANDIDATE, "read", candidates.show, "A candidate, and its share of decisions",
        answers=((200, c.Candidate),), problems=(404,),
    ),
    Route(
        "PATCH", CANDIDATE, "admin", candidates.trial, "Give a candidate a share of decisions",
        c.Trial, ((200, c.Candidate),), problems=(404, 409, 415, 422),
    ),
    Route(
        "DELETE", CANDIDATE, "admin", candidates.retire, "Let a candidate go",
        answers=((200, c.Candidates),), problems=(404, 409, 422),
    ),
    Route(
        "GET", f"{NAME}/comparison", "read", candidates.comparison,
        "How candidates stand against the live policy and the default",
        answers=((200, c.Compared),), problems=(404,),
    ),
    Route(
        "POST", f"{NAME}/promotion", "admin", candidates.promote,
        "Let a candidate act, if that is proved; repeating it is safe",
        c.Promotion, ((200, c.Candidates),), problems=(404, 409, 415, 422),
    ),
    Route(
        "GET", f"{NAME}/health", "read", reports.health, "How a loop is doing",
        answers=((200, v.Health),), query=("since",), problems=(404, 422), heavy=True,
    ),
    Route(
        "GET", f"{NAME}/overview", "read", do.overview, "What the dashboard shows",
        answers=((200, v.Overview),), problems=(404, 422),
    ),
    Route(
        "GET", f"{NAME}/live", "read", do.live, "The same as server-sent events, for half a minute",
        answers=((200, "stream"),), problems=(404, 422),
    ),
    Route(
        "GET", f"{NAME}/evaluation", "read", evaluations.evaluation,
        "What live, default and uniform choices are worth on the log, with intervals",
        answers=((200, v.Evaluated),), query=("since", "until"), problems=(404, 422, 501),
        heavy=True,
    ),
    Route(
        "GET", f"{NAME}/evaluation.html", "read", evaluations.report, "The same as a report",
        answers=((200, "page"),), query=("since", "until"), problems=(404, 422, 501), heavy=True,
    ),
    Route(
        "GET", f"{NAME}/log", "read", reports.log, "Decisions and what became of them, by time",
        answers=((200, "file"),), query=("format", "since", "until"), problems=(404, 422, 501),
        heavy=True,
    ),
    Route("GET", "/healthz", None, do.alive, "Whether it runs", answers=((200, m.Status),)),
    Route(
        "GET", "/readyz", None, do.ready, "Whether all loops are open", answers=((200, m.Status),)
    ),
    Route("GET", "/metrics", "read", do.metrics, "For Prometheus", answers=((200, "text"),)),
)  # fmt: skip
