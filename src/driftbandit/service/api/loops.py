"""What the service does: a function for every route, over loops."""

from __future__ import annotations

from typing import Any, NamedTuple

from driftbandit.loop.deciding.types import Decision, Place, Slate
from driftbandit.loop.loop import Loop
from driftbandit.loop.storage.events import LedgerError
from driftbandit.service.dashboard.live import Live
from driftbandit.service.http.errors import RefusedError, problem
from driftbandit.service.http.limits import Limits
from driftbandit.service.ops.metrics import Metrics
from driftbandit.service.pool.batcher import Crowd
from driftbandit.service.pool.loop_pool import Loops
from driftbandit.service.schema import messages as m


class Service(NamedTuple):
    """What all endpoints share."""

    loops: Loops
    crowd: Crowd
    limits: Limits
    metrics: Metrics
    live: Live


class Call(NamedTuple):
    """A request, as endpoints see it."""

    service: Service
    path: dict[str, str]
    query: dict[str, str]
    body: Any

    @property
    def loop(self) -> Loop:
        return self.service.loops.get(self.path["name"])

    async def say(self, kind: str, options: dict[str, Any]) -> Any:
        """One call to the loop, together with those of others."""
        (answer,) = await self.service.crowd.call(self.path["name"], [(kind, options)])
        if isinstance(answer, Exception):
            raise answer
        return answer


class Reply(NamedTuple):
    """An answer: a message, or bytes of another media type."""

    status: int
    message: Any
    media: str = "application/json"


def declare(call: Call) -> Reply:
    loops, name = call.service.loops, call.path["name"]
    if name not in loops.names and len(loops.names) >= call.service.limits.loops:
        raise RefusedError(
            422, f"a service has at most {call.service.limits.loops} loops: start another"
        )
    new = loops.declare(name, call.body)
    return Reply(201 if new else 200, _info(name, loops.get(name)))


def change(call: Call) -> Reply:
    name = call.path["name"]
    return Reply(200, _info(name, call.service.loops.change(name, call.body)))


def show(call: Call) -> Reply:
    return Reply(200, _info(call.path["name"], call.loop))


def _info(name: str, loop: Loop) -> m.LoopInfo:
    declaration, chosen = loop.declaration.to_dict(), loop.settings.to_dict()
    return m.LoopInfo(name, declaration, chosen, loop.features.version)


def names(call: Call) -> Reply:
    return Reply(200, m.Loops(call.service.loops.names))


async def decide(call: Call) -> Reply:
    found = await call.say("decide", asked(call.body, call.service.limits))
    call.service.live.note(call.path["name"], found)
    return Reply(200, made(found))


async def decide_batch(call: Call) -> Reply:
    """Each decision is made or refused on its own; a ledger that has stopped refuses all."""
    answers = await _each(call, "decide")
    for each in answers:
        if not isinstance(each, m.Problem):
            call.service.live.note(call.path["name"], each)
    return Reply(200, m.MadeBatch([_made_or_not(each) for each in answers]))


def _made_or_not(answer: Any) -> m.MadeOrNot:
    if isinstance(answer, m.Problem):
        return m.MadeOrNot(problem=answer)
    return m.MadeOrNot(made=made(answer))


async def record(call: Call) -> Reply:
    """Decisions that were made elsewhere, each on its own."""
    said = [
        m.RecordedOrNot(problem=each) if isinstance(each, m.Problem) else m.RecordedOrNot(each)
        for each in await _each(call, "record")
    ]
    return Reply(200, m.Recorded(said))


async def _each(call: Call, kind: str) -> list[Any]:
    """Many calls of one kind; in place of one that is refused stands the problem."""
    limits = call.service.limits
    limits.check_batch(call.body.decisions)
    calls = [(kind, asked(ask, limits)) for ask in call.body.decisions]
    answers = await call.service.crowd.call(call.path["name"], calls)
    for each in answers:
        if isinstance(each, (LedgerError, RefusedError)):
            raise each
    return [problem(each) if isinstance(each, Exception) else each for each in answers]


def asked(ask: m.Ask | m.Record, limits: Limits) -> dict[str, Any]:
    """The options of `Loop.decide`, or of `Loop.record`."""
    limits.check_arms(ask.arms)
    return {name: getattr(ask, name) for name in ask.__struct_fields__}


def made(found: Decision | Slate) -> m.Made:
    if isinstance(found, Slate):
        places = [m.Place(each.arm, each.probability, _named(each)) for each in found.places]
        return m.Made(found.id, None, found.probability, {}, found.role, places)
    return m.Made(found.id, found.arm, found.probability, _named(found), found.role)


def _named(found: Decision | Place) -> dict[str, float]:
    return {str(name): p for name, p in found.probabilities.items()}


async def reward(call: Call) -> Reply:
    said = {name: getattr(call.body, name) for name in call.body.__struct_fields__}
    return Reply(200, m.Outcome(await call.say("reward", {"id": call.path["id"], **said})))


async def cancel(call: Call) -> Reply:
    said: dict[str, Any] = {"id": call.path["id"]}
    if "position" in call.query:
        said["position"] = _position(call.query["position"])
    return Reply(200, m.Outcome(await call.say("cancel", said)))


def _position(text: str) -> int:
    if not text.isdecimal() or len(text) > 9:
        raise RefusedError(422, "position must be a whole number from 0")
    return int(text)


async def overview(call: Call) -> Reply:
    return Reply(200, await call.service.live.view(call.path["name"]))


async def live(call: Call) -> Reply:
    events = await call.service.live.stream(call.path["name"])
    return Reply(200, events, "text/event-stream")


def alive(call: Call) -> Reply:
    return Reply(200, m.Status("alive"))


def ready(call: Call) -> Reply:
    if not call.service.loops.ready:
        raise RefusedError(503, "some loops are not open: the service is starting or has no disk")
    return Reply(200, m.Status("ready"))


def metrics(call: Call) -> Reply:
    return Reply(200, call.service.metrics.text(), "text/plain; version=0.0.4; charset=utf-8")
