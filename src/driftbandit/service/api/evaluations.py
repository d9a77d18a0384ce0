"""A loop's log evaluated: what was played against the default and against chance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from driftbandit.service.api import reports
from driftbandit.service.api.loops import Call, Reply
from driftbandit.service.http.errors import RefusedError
from driftbandit.service.schema import views as v

if TYPE_CHECKING:
    from driftbandit.evidence.evaluation import Evaluation


def evaluation(call: Call) -> Reply:
    """All numbers, with intervals that hold whenever one looks."""
    frame, slates = _rows(call)
    found = _evaluated(call, frame)
    return Reply(200, v.Evaluated(call.path["name"], found.rows, slates, found.to_dict()))


def report(call: Call) -> Reply:
    """One page that opens without a network, to be kept as a file."""
    frame, _ = _rows(call)
    return Reply(200, _evaluated(call, frame).html().encode(), "text/html; charset=utf-8")


def _rows(call: Call) -> tuple[Any, int]:
    """Decisions for one arm that were trained, and how many positions of slates there are."""
    frame, most = reports.rows(call), call.service.limits.rows
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


def _evaluated(call: Call, frame: Any) -> Evaluation:
    try:  # imported lazily: a service that nobody asks for this needs none of it
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
