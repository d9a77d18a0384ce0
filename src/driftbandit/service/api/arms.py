"""Arms of the catalogue: add, pause, resume and retire, as `Loop` has them."""

from __future__ import annotations

from driftbandit.loop.loop import Loop
from driftbandit.service.api.loops import Call, Reply
from driftbandit.service.errors import RefusedError
from driftbandit.service.schema import messages as m


def list_arms(call: Call) -> Reply:
    return Reply(200, m.ArmList([_info(call.loop, name) for name in call.loop.arms]))


def add_arm(call: Call) -> Reply:
    """Add an arm, or give it other columns."""
    loop, name, most = call.loop, call.path["arm"], call.service.limits.arms
    new = name not in loop.arms
    if new and len(loop.arms) >= most:
        raise RefusedError(422, f"a catalogue has at most {most} arms: delete one")
    loop.add_arm(name, call.body.columns)
    return Reply(201 if new else 200, _info(loop, name))


def set_arm(call: Call) -> Reply:
    loop, name = call.loop, call.path["arm"]
    (loop.pause_arm if call.body.paused else loop.resume_arm)(name)
    return Reply(200, _info(loop, name))


def retire_arm(call: Call) -> Reply:
    call.loop.retire_arm(call.path["arm"])
    return list_arms(call)


def _info(loop: Loop, name: str) -> m.ArmInfo:
    arm = loop.arms[name]
    return m.ArmInfo(name, arm.columns, arm.paused)
