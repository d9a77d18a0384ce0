"""The table of routes: the role that each needs, its body, and its answers.

The application and the OpenAPI document are both made from it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from driftbandit.service.api import arms, candidates, flags, loops, reports
from driftbandit.service.schema import messages as m
from driftbandit.service.schema import options as o

NAME, ID = "/v1/loops/{name}", "/v1/loops/{name}/decisions/{id}"
CANDIDATE = "/v1/loops/{name}/candidates/{candidate}"
ARM = "/v1/loops/{name}/arms/{arm}"
FLAGS = "/ofrep/v1/evaluate/flags"
FLAG = f"{FLAGS}/{{name}}"
AS_TOML = (o.LoopDeclaration, o.CandidateDeclaration)  # bodies that may also be TOML
UP = ((200, m.ServiceStatus),)


class Route(NamedTuple):
    """One row. `role` is None if no key is needed; `answers` are messages by status."""

    method: str
    path: str
    role: str | None
    act: Callable[[loops.Call], Any]  # returns a Reply; awaited if it is a coroutine
    summary: str
    body: Any = None
    answers: tuple[tuple[int, Any], ...] = ()
    query: tuple[str, ...] = ()
    problems: tuple[int, ...] = ()
    every_loop: bool = False  # asks all loops: it counts as so many calls
    heavy: bool = False  # reads much of the log: one after the other, in a thread of its own
    refusal: Callable[[m.ProblemDetails, str], loops.Reply] | None = None  # if no problem+json
    failure: Any = m.ProblemDetails  # the message of a refusal

    @property
    def needs_loop(self) -> bool:
        """Return whether the endpoint is about a loop that is open; a declaration may make it."""
        return "{name}" in self.path and self.act is not loops.declare


ROUTES = (
    Route("GET", "/v1/loops", "read", loops.names, "The loops", answers=((200, m.LoopList),)),
    Route(
        "PUT", NAME, "admin", loops.declare,
        "Declare a loop, as JSON or TOML; repeating it is safe",
        o.LoopDeclaration, ((200, m.LoopInfo), (201, m.LoopInfo)), problems=(409, 415, 422),
    ),
    Route(
        "GET", NAME, "read", loops.show, "What a loop was declared with, and its settings",
        answers=((200, m.LoopInfo),), problems=(404,),
    ),
    Route(
        "PATCH", NAME, "admin", loops.change,
        "Change exploration, mode, holdout, guard, shares, budget or sticky from now on",
        o.LoopChanges, ((200, m.LoopInfo),), problems=(404, 415, 422),
    ),
    Route(
        "POST", f"{NAME}/decisions", "decide", loops.decide, "Decide; the same id, the same answer",
        m.DecisionRequest, ((200, m.DecisionResponse),), problems=(404, 409, 415, 422),
    ),
    Route(
        "POST", f"{NAME}/batches", "decide", loops.decide_batch, "Decide many; each on its own",
        m.DecisionBatch, ((200, m.BatchResponse),), problems=(404, 415, 422),
    ),
    Route(
        "POST", f"{NAME}/records", "decide", loops.record,
        "Record fallbacks: decisions in which a client played the default; each on its own",
        m.FallbackBatch, ((200, m.RecordsResponse),), problems=(404, 415, 422),
    ),
    Route(
        "POST", FLAG, "decide", flags.evaluate_flag,
        "Decide, as OpenFeature's remote evaluation protocol (OFREP) evaluates a flag",
        m.FlagRequest, ((200, m.FlagEvaluation),), problems=(404, 415),
        refusal=flags.refusal, failure=m.FlagFailure,
    ),
    Route(
        "POST", FLAGS, "decide", flags.evaluate_flags,
        "Decide in all loops that are flags with sticky answers, as OFREP evaluates flags in bulk",
        m.FlagRequest, ((200, m.FlagList), (304, None)), problems=(415,),
        refusal=flags.list_refusal, failure=m.FlagListFailure, every_loop=True,
    ),
    Route(
        "PUT", f"{ID}/reward", "reward", loops.reward, "Say what a decision gave",
        m.RewardRequest, ((200, m.OutcomeResponse),), problems=(404, 415, 422),
    ),
    Route(
        "PUT", f"{ID}/preference", "reward", loops.prefer, "Say which of two arms was better",
        m.PreferenceRequest, ((200, m.OutcomeResponse),), problems=(404, 415, 422),
    ),
    Route(
        "GET", f"{ID}/why", "read", reports.why, "Why an arm was chosen, from the log alone",
        answers=((200, m.ExplanationResponse),), problems=(404, 422), heavy=True,
    ),
    Route(
        "DELETE", ID, "decide", loops.cancel, "Say that a decision was never shown",
        answers=((200, m.OutcomeResponse),), query=("position",), problems=(404, 422),
    ),
    Route(
        "PUT", f"{ID}/metrics/{{metric}}", "reward", loops.metric,
        "Record another number about a decision, such as its cost",
        m.MetricRequest, ((200, m.OutcomeResponse),), problems=(404, 415, 422),
    ),
    Route(
        "GET", f"{NAME}/arms", "read", arms.list_arms, "The arms of the catalogue",
        answers=((200, m.ArmList),), problems=(404, 409),
    ),
    Route(
        "PUT", ARM, "admin", arms.add_arm,
        "Add an arm, or give it other columns; repeating it is safe",
        m.ArmDeclaration, ((200, m.ArmInfo), (201, m.ArmInfo)), problems=(404, 409, 415, 422),
    ),
    Route(
        "PATCH", ARM, "admin", arms.set_arm, "Pause an arm, or put it on offer again",
        m.ArmState, ((200, m.ArmInfo),), problems=(404, 409, 415, 422),
    ),
    Route(
        "DELETE", ARM, "admin", arms.retire_arm, "Remove an arm from the catalogue",
        answers=((200, m.ArmList),), problems=(404, 409, 422),
    ),
    Route(
        "GET", f"{NAME}/candidates", "read", candidates.list_all,
        "The policy that acts, and the candidates",
        answers=((200, m.CandidateList),), problems=(404,),
    ),
    Route(
        "PUT", CANDIDATE, "admin", candidates.propose,
        "Add a candidate that learns and does not act, as JSON or TOML; repeating it is safe",
        o.CandidateDeclaration, ((200, m.CandidateInfo), (201, m.CandidateInfo)),
        problems=(404, 409, 415, 422),
    ),
    Route(
        "GET", CANDIDATE, "read", candidates.show_one, "A candidate, and its share of decisions",
        answers=((200, m.CandidateInfo),), problems=(404,),
    ),
    Route(
        "PATCH", CANDIDATE, "admin", candidates.trial, "Give a candidate a share of decisions",
        m.TrialRequest, ((200, m.CandidateInfo),), problems=(404, 409, 415, 422),
    ),
    Route(
        "DELETE", CANDIDATE, "admin", candidates.retire, "Remove a candidate",
        answers=((200, m.CandidateList),), problems=(404, 409, 422),
    ),
    Route(
        "GET", f"{NAME}/comparison", "read", candidates.comparison,
        "How candidates compare with the live policy and the default",
        answers=((200, m.ComparisonResponse),), problems=(404,),
    ),
    Route(
        "POST", f"{NAME}/promotion", "admin", candidates.promote,
        "Promote a candidate that is proved better; repeating it is safe",
        m.PromotionRequest, ((200, m.CandidateList),), problems=(404, 409, 415, 422),
    ),
    Route(
        "POST", f"{NAME}/erasures", "admin", loops.erase,
        "Erase all that was logged about a key; repeating it is safe",
        m.ErasureRequest, ((200, m.ErasureResponse),), problems=(404, 409, 415, 422), heavy=True,
    ),
    Route(
        "POST", f"{NAME}/repair", "admin", loops.repair,
        "Set the clock of a loop after a wrong one; repeating it is safe",
        m.RepairRequest, ((200, m.RepairResponse),), problems=(404, 409, 415, 422),
    ),
    Route(
        "GET", f"{NAME}/health", "read", reports.health, "How a loop is doing",
        answers=((200, m.HealthResponse),), query=("since",), problems=(404, 422), heavy=True,
    ),
    Route(
        "GET", f"{NAME}/overview", "read", loops.overview, "What the dashboard shows",
        answers=((200, m.Overview),), problems=(404, 422),
    ),
    Route(
        "GET", f"{NAME}/live", "read", loops.live,
        "The same as server-sent events, for half a minute",
        answers=((200, "stream"),), problems=(404, 422),
    ),
    Route(
        "GET", f"{NAME}/evaluation", "read", reports.evaluation,
        "What live, default and uniform choices are worth on the log, with intervals",
        answers=((200, m.EvaluationResponse),), query=("since", "until"), problems=(404, 422, 501),
        heavy=True,
    ),
    Route(
        "GET", f"{NAME}/evaluation.html", "read", reports.evaluation_page, "The same as a report",
        answers=((200, "page"),), query=("since", "until"), problems=(404, 422, 501), heavy=True,
    ),
    Route(
        "GET", f"{NAME}/log", "read", reports.log, "Decisions and what became of them, by time",
        answers=((200, "file"),), query=("format", "since", "until"), problems=(404, 422, 501),
        heavy=True,
    ),
    Route("GET", "/healthz", None, loops.alive, "The service runs", answers=UP),
    Route("GET", "/readyz", None, loops.ready, "All loops are open", answers=UP),
    Route("GET", "/metrics", "read", loops.metrics, "For Prometheus", answers=((200, "text"),)),
)  # fmt: skip
