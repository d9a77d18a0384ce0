"""Candidates over the wire: shadow, trial, comparison and promotion, as `Loop` has them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from driftbandit.loop.loop import Loop
from driftbandit.loop.state.versions import Shadow
from driftbandit.service.api.loops import Call, Reply
from driftbandit.service.http.errors import RefusedError
from driftbandit.service.schema import candidate_messages as c
from driftbandit.service.schema import declarations as d
from driftbandit.service.schema.messages import Difference


def everybody(call: Call) -> Reply:
    return Reply(200, _all(call.loop))


def show(call: Call) -> Reply:
    return Reply(200, _one(call.loop, call.path["candidate"]))


def propose(call: Call) -> Reply:
    """A new candidate, or a check that it is what was declared."""
    loop, name, most = call.loop, call.path["candidate"], call.service.limits.candidates
    was = loop.candidates.get(name)
    if was is None:
        if len(loop.candidates) >= most:
            raise RefusedError(422, f"a loop has at most {most} candidates: delete one")
        _shadow(loop, name, call.body)
    elif apart := _difference(loop, was, call.body):
        raise RefusedError(
            409, f"candidate {name!r} was declared differently: use another name", apart
        )
    return Reply(200 if was else 201, _one(loop, name))


def _shadow(loop: Loop, name: str, proposed: c.Proposed) -> None:
    made = _options(loop, proposed, loop.features)
    loop.shadow(name, **made)


def _options(loop: Loop, proposed: c.Proposed, features: Any) -> dict[str, Any]:
    """What a candidate has of its own; its policy is made for its features, or for these."""
    given = d.given_of(proposed)
    if "half_life" in given and "policy" not in given:
        raise ValueError("half_life belongs to a policy: send that, too")
    if "features" in given:
        given["features"] = features = d.features(given["features"])
    if "exploration" in given:
        given["exploration"] = d.exploration(given["exploration"])
    if "policy" in given:
        given["policy"] = d.policy(given["policy"], features.problem(loop.declaration.reward))
    return given


def _difference(loop: Loop, was: Shadow, proposed: c.Proposed) -> list[Difference]:
    """What is proposed and the candidate has otherwise."""
    now = _options(loop, proposed, was.features)
    if "policy" in now:
        own = {"features": was.features, "half_life": None} | now
        learning = ("features", "policy", "half_life")
        made = replace(loop.declaration, **{name: own[name] for name in learning})
        now |= {"policy": made.trained, "half_life": made.half_life}
    before, after = was.to_dict(), {name: _stored(value) for name, value in now.items()}
    return [each for name in sorted(after) for each in d.apart(name, before[name], after[name])]


def _stored(value: Any) -> Any:
    return value.to_dict() if hasattr(value, "to_dict") else value


def trial(call: Call) -> Reply:
    name = call.path["candidate"]
    call.loop.trial(name, call.body.share)
    return Reply(200, _one(call.loop, name))


def retire(call: Call) -> Reply:
    call.loop.retire(call.path["candidate"])
    return Reply(200, _all(call.loop))


def comparison(call: Call) -> Reply:
    """All numbers, and the same in words."""
    found = call.loop.compare()
    words = [line.strip() for line in repr(found).splitlines()]
    return Reply(200, c.Compared(**found.to_dict(), words=words))


def promote(call: Call) -> Reply:
    """Who acts already need not be promoted: an answer may have been lost on its way."""
    loop, asked = call.loop, call.body
    if asked.candidate != loop.acts:
        expected = asked.expected_live
        loop.promote(asked.candidate, expected_live=expected, force=asked.force)
    return Reply(200, _all(loop))


def _all(loop: Loop) -> c.Candidates:
    return c.Candidates(loop.acts, [_info(loop, each) for each in loop.candidates.values()])


def _one(loop: Loop, name: str) -> c.Candidate:
    found = loop.candidates.get(name)
    if found is None:
        raise RefusedError(404, f"no candidate {name!r}: GET /v1/loops/NAME/candidates lists them")
    return _info(loop, found)


def _info(loop: Loop, one: Shadow) -> c.Candidate:
    share = loop.settings.trials.get(one.name, 0.0)
    declared = {name: value for name, value in one.to_dict().items() if name != "type"}
    return c.Candidate(**declared, share=share)
