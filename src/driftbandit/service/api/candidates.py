"""Candidates: shadow, trial, comparison and promotion, as `Loop` has them."""

from __future__ import annotations

from driftbandit.loop.loop import Loop
from driftbandit.loop.state.definition import Shadow
from driftbandit.service.api.loops import Call, Reply
from driftbandit.service.errors import RefusedError
from driftbandit.service.schema import messages as m
from driftbandit.service.schema import options as o


def list_all(call: Call) -> Reply:
    return Reply(200, _list(call.loop))


def show_one(call: Call) -> Reply:
    return Reply(200, _one(call.loop, call.path["candidate"]))


def propose(call: Call) -> Reply:
    """Add a candidate, or check that it is what was declared."""
    loop, name, most = call.loop, call.path["candidate"], call.service.limits.candidates
    was = loop.candidates.get(name)
    if was is None:
        if len(loop.candidates) >= most:
            raise RefusedError(422, f"a loop has at most {most} candidates: delete one")
        loop.shadow(name, **o.candidate_options(loop, call.body, loop.features))
    elif apart := o.candidate_difference(loop, was, call.body):
        raise RefusedError(
            409, f"candidate {name!r} was declared differently: use another name", apart
        )
    return Reply(200 if was else 201, _one(loop, name))


def trial(call: Call) -> Reply:
    call.loop.trial(call.path["candidate"], call.body.share, effect=call.body.effect)
    return show_one(call)


def retire(call: Call) -> Reply:
    call.loop.retire(call.path["candidate"])
    return list_all(call)


def comparison(call: Call) -> Reply:
    """Return all numbers, and the same in words."""
    found = call.loop.compare()
    words = [line.strip() for line in repr(found).splitlines()]
    return Reply(200, m.ComparisonResponse(**found.to_dict(), words=words))


def promote(call: Call) -> Reply:
    """Promote a candidate, unless it acts already: an earlier answer may have been lost."""
    loop, body = call.loop, call.body
    if body.candidate != loop.acts:
        loop.promote(
            body.candidate,
            expected_live=body.expected_live,
            force=body.force,
            not_worse=body.not_worse,
        )
    return list_all(call)


def _list(loop: Loop) -> m.CandidateList:
    return m.CandidateList(loop.acts, [_info(loop, each) for each in loop.candidates.values()])


def _one(loop: Loop, name: str) -> m.CandidateInfo:
    found = loop.candidates.get(name)
    if found is None:
        raise RefusedError(404, f"no candidate {name!r}: GET /v1/loops/NAME/candidates lists them")
    return _info(loop, found)


def _info(loop: Loop, one: Shadow) -> m.CandidateInfo:
    declared = {name: value for name, value in one.to_dict().items() if name != "type"}
    return m.CandidateInfo(**declared, share=loop.settings.trials.get(one.name, 0.0))
