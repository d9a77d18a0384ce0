"""Loops as feature flags, by the OpenFeature Remote Evaluation Protocol (OFREP): a loop is a flag,
an arm of its catalogue is a variant, and an evaluation is a decision.

In bulk, clients fetch all flags in advance and ask again and again, so only loops with sticky
answers are evaluated: a repeated answer is no new decision.
"""

from __future__ import annotations

import asyncio
import hashlib
from typing import Any

import msgspec
from msgspec.structs import asdict

from driftbandit.loop.loop import Loop
from driftbandit.service.api import loops
from driftbandit.service.api.loops import Call, Reply
from driftbandit.service.errors import RefusedError, problem, without_path
from driftbandit.service.schema import messages as m

KEY, DEFAULT = "targetingKey", "defaultVariant"  # in an evaluation context, beside the columns
DRAWN = ("active", "holdout")  # roles that a draw decides
NO_KEY = "TARGETING_KEY_MISSING"
CODES = {400: "PARSE_ERROR", 404: "FLAG_NOT_FOUND", 422: "INVALID_CONTEXT"}
BAD_REQUEST = (409, 422)  # the protocol has 400 for them


async def evaluate_flag(call: Call) -> Reply:
    """Decide among the arms of the catalogue that are on offer."""
    name, given = call.path["name"], call.body.context
    if call.loop.settings.sticky is not None and _text(given, KEY) is None:
        told = f"answers of loop {name!r} are sticky: add {KEY} to the evaluation context"
        return Reply(400, m.FlagFailure(name, NO_KEY, told))
    return Reply(200, await _evaluated(call))


async def evaluate_flags(call: Call) -> Reply:
    """Decide in all loops with a catalogue; the answer has a tag, so that it is sent only once."""
    if _text(call.body.context, KEY) is None:
        told = f"add {KEY} to the evaluation context: it says whose flags these are"
        return Reply(400, m.FlagListFailure(NO_KEY, told))
    found = await asyncio.gather(*(_flag(call, name) for name in call.service.pool.names))
    flags = m.FlagList([m.ListedFlag(**asdict(each)) for each in found if each is not None])
    tag = f'"{hashlib.sha256(msgspec.json.encode(flags)).hexdigest()[:32]}"'
    if call.known is not None and tag in call.known:
        return Reply(304, b"", "text/plain", {"etag": tag})
    return Reply(200, flags, headers={"etag": tag})


async def _flag(call: Call, name: str) -> m.FlagEvaluation | m.FlagFailure | None:
    """Return a flag's value, or why it has none; None if the loop is no flag."""
    try:
        loop = await call.service.pool.wait_for(name)
        if loop.runtime.definition.now.catalogue is None:
            return None
        if loop.settings.sticky is None:
            raise RefusedError(
                409, "its answers are not sticky: evaluate it alone, or set sticky, such as '7d'"
            )
        return await _evaluated(call._replace(path={"name": name}, loop=loop))
    except Exception as error:
        told = problem(error)
        told.detail = without_path(told.detail, call.service.pool.path)
        return refusal(told, name).message


async def _evaluated(call: Call) -> m.FlagEvaluation:
    name, given = call.path["name"], call.body.context
    asked = _decision(name, call.loop, given)
    made = (await loops.decide(call._replace(body=asked))).message
    told = {"decision_id": made.id, "propensity": made.probability, "role": made.role}
    if ignored := given.keys() - asked.context.keys() - {KEY, DEFAULT}:
        told["ignored"] = ", ".join(sorted(ignored))  # so that a misspelt column is seen
    reason = _reason(made.role, made.arm == asked.default)
    return m.FlagEvaluation(name, made.arm, made.arm, reason, told)


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


def list_refusal(told: m.ProblemDetails, _: str) -> Reply:
    """Return a problem with all flags as the protocol has it."""
    found = refusal(told, "")
    failure = m.FlagListFailure(found.message.error_code, found.message.error_details)
    return Reply(found.status, failure)


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
