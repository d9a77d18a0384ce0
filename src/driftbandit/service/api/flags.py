"""Loops as feature flags, by the OpenFeature Remote Evaluation Protocol (OFREP): a loop is a flag,
an arm of its catalogue is a variant, and an evaluation is a decision."""

from __future__ import annotations

from typing import Any

from driftbandit.loop.loop import Loop
from driftbandit.service.api import loops
from driftbandit.service.api.loops import Call, Reply
from driftbandit.service.errors import RefusedError
from driftbandit.service.schema import messages as m

KEY, DEFAULT = "targetingKey", "defaultVariant"  # in an evaluation context, beside the columns
DRAWN = ("active", "holdout")  # roles that a draw decides
CODES = {400: "PARSE_ERROR", 404: "FLAG_NOT_FOUND", 422: "INVALID_CONTEXT"}
BAD_REQUEST = (409, 422)  # the protocol has 400 for them


async def evaluate_flag(call: Call) -> Reply:
    """Decide among the arms of the catalogue that are on offer."""
    name, given = call.path["name"], call.body.context
    asked = _decision(name, call.loop, given)
    made = (await loops.decide(call._replace(body=asked))).message
    told = {"decision_id": made.id, "propensity": made.probability, "role": made.role}
    if ignored := given.keys() - asked.context.keys() - {KEY, DEFAULT}:
        told["ignored"] = ", ".join(sorted(ignored))  # so that a misspelt column is seen
    reason = _reason(made.role, made.arm == asked.default)
    return Reply(200, m.FlagEvaluation(name, made.arm, made.arm, reason, told))


def _reason(role: str, is_default: bool) -> str:
    """Return OpenFeature's word for why this arm is the value; SPLIT is a draw."""
    if role == "empty":
        return "DISABLED"
    return "DEFAULT" if is_default and role not in DRAWN else "SPLIT"


def refusal(told: m.ProblemDetails, name: str) -> Reply:
    """Return a problem as the protocol has it."""
    status = 400 if told.status in BAD_REQUEST else told.status
    code = CODES.get(told.status, "GENERAL")
    return Reply(status, m.FlagFailure(name, code, told.detail))


def _decision(name: str, loop: Loop, given: dict[str, Any]) -> m.DecisionRequest:
    """Return the decision that an evaluation context asks for. All flags of an application share
    one context, so attributes that this loop has not declared are left out."""
    if loop.runtime.definition.now.catalogue is None:
        raise RefusedError(409, f"loop {name!r} is no flag: declare another loop with arms")
    key, default = (_text(given, each) for each in (KEY, DEFAULT))
    if default is None and loop.settings.needs_default:
        raise RefusedError(
            422,
            f"loop {name!r} may have to play its default: add {DEFAULT}, the arm that is played "
            "today, to the evaluation context",
        )
    known = set(loop.features.context)
    for each in loop.candidates.values():
        known.update(each.features.context)
    context = {column: value for column, value in given.items() if column in known}
    return m.DecisionRequest(context, key=key, default=default)


def _text(given: dict[str, Any], name: str) -> str | None:
    value = given.get(name)
    if value is not None and not (isinstance(value, str) and value):
        raise RefusedError(422, f"{name} must be text that is not empty: leave it out, or give one")
    return value
