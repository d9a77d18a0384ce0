"""Loops: declare, decide, reward, and whether the service is up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from driftbandit.loop.deciding.types import Decision, Slate
from driftbandit.loop.loop import Loop
from driftbandit.service.dashboard.live import LiveViews
from driftbandit.service.errors import LedgerError, RefusedError, problem
from driftbandit.service.fairness import Turns
from driftbandit.service.limits import Limits
from driftbandit.service.ops.metrics import Metrics
from driftbandit.service.pool.batcher import BYTES, Batcher, LoopCalls
from driftbandit.service.pool.loop_pool import LoopPool
from driftbandit.service.schema import messages as m
from driftbandit.service.schema import options as o


class Service(NamedTuple):
    """What all endpoints share."""

    pool: LoopPool
    batcher: Batcher
    limits: Limits
    metrics: Metrics
    views: LiveViews
    turns: Turns


class Call(NamedTuple):
    """A request, as endpoints see it."""

    service: Service
    path: dict[str, str]
    query: dict[str, str]
    body: Any
    loop: Loop  # open; None if the route is about no loop
    key: str = ""  # name of the API key
    known: str | None = None  # the tag of the answer that the client has (If-None-Match)
    size: int = 0  # bytes of the body

    async def submit(self, calls: LoopCalls, scored: int = 0) -> list[Any]:
        """Return answers of the loop, or errors in their place; other requests share the write.
        `scored` is how many arms all calls score."""
        asked = self.path["name"], self.loop, calls
        return await self.service.batcher.call(self.key, *asked, scored + self.size // BYTES)

    async def submit_one(self, kind: str, options: dict[str, Any], scored: int = 0) -> Any:
        (answer,) = await self.submit([(kind, options)], scored)
        if isinstance(answer, Exception):
            raise answer
        return answer


class Reply(NamedTuple):
    """An answer: a message, bytes, or an asynchronous iterator of bytes."""

    status: int
    message: Any
    media: str = "application/json"
    headers: Mapping[str, str] | None = None


async def declare(call: Call) -> Reply:
    pool, name, most = call.service.pool, call.path["name"], call.service.limits.loops
    if name not in pool.names and len(pool.names) >= most:
        raise RefusedError(422, f"a service has at most {most} loops: start another")
    loop, new = await pool.create(name, await asyncio.to_thread(o.loop_options, call.body))
    apart = [] if new else await asyncio.to_thread(o.loop_difference, loop, call.body)
    if apart:
        raise RefusedError(
            409,
            f"loop {name!r} was declared differently: leave out what differs, PATCH "
            "exploration, mode or holdout, or use another name for a new loop",
            apart,
        )
    return Reply(201 if new else 200, _info(name, loop))


def change(call: Call) -> Reply:
    call.loop.configure(**o.given(call.body))
    return show(call)


def show(call: Call) -> Reply:
    return Reply(200, _info(call.path["name"], call.loop))


def _info(name: str, loop: Loop) -> m.LoopInfo:
    declaration, chosen = loop.declaration.to_dict(), loop.settings.to_dict()
    return m.LoopInfo(name, declaration, chosen, loop.features.version)


def names(call: Call) -> Reply:
    return Reply(200, m.LoopList(call.service.pool.names))


def erase(call: Call) -> Reply:
    """Erase a key; 503 if the database keeps copies for now, which the loop removes later."""
    return Reply(
        200, m.ErasureResponse(*call.loop.erase(key=call.body.key, relearn=call.body.relearn))
    )


def repair(call: Call) -> Reply:
    return Reply(200, m.RepairResponse(call.loop.repair(call.body.at)))


async def decide(call: Call) -> Reply:
    scored = _total(call, [_size(call, call.body)])
    found = await call.submit_one("decide", _asked(call.body), scored)
    call.service.views.note(call.path["name"], found)
    return Reply(200, _response(found))


async def decide_batch(call: Call) -> Reply:
    """Each decision is made or refused on its own; a ledger that has stopped refuses all."""

    def entry(made: Decision | Slate | Exception) -> m.BatchEntry:
        if isinstance(made, Exception):
            return m.BatchEntry(problem=problem(made))
        call.service.views.note(call.path["name"], made)
        return m.BatchEntry(_response(made))

    return Reply(200, m.BatchResponse(await _each(call, "decide", entry)))


async def record(call: Call) -> Reply:
    """Store decisions that a client made, each on its own."""

    def entry(made: str | Exception) -> m.RecordEntry:
        if isinstance(made, Exception):
            return m.RecordEntry(problem=problem(made))
        return m.RecordEntry(made)

    return Reply(200, m.RecordsResponse(await _each(call, "record_fallback", entry)))


async def _each(call: Call, kind: str, entry: Callable[[Any], Any]) -> list[Any]:
    """Make many calls of one kind, and return an entry for each, also for one that is refused."""
    decisions, turns, key = call.body.decisions, call.service.turns, call.key
    sizes = await turns.each(key, lambda one: _size(call, one), decisions)
    scored = _total(call, sizes)
    asked = await turns.each(key, lambda one: (kind, _asked(one)), decisions)
    answers = await call.submit(asked, scored)
    for answer in answers:
        if isinstance(answer, LedgerError):
            raise answer
    return await turns.each(key, entry, answers)


def _size(call: Call, asked: m.DecisionRequest | m.FallbackRecord) -> tuple[int, int]:
    """Return how many arms a decision scores, and the bytes of its answer."""
    arms: Mapping[str, Any] | list[Any] | None = asked.arms
    if arms is None:
        catalogue = call.loop.runtime.definition.now.catalogue
        arms = {} if catalogue is None else catalogue.arms
    return call.service.limits.check_decision(arms, asked.k)


def _total(call: Call, sizes: Sequence[tuple[int, int]]) -> int:
    """Return how many arms a request scores; raise if that, or the answer, would be too much."""
    scored, answer = sum(each[0] for each in sizes), sum(each[1] for each in sizes)
    call.service.limits.check_total(scored, call.loop.features.size, answer)
    return scored


def _asked(body: m.DecisionRequest | m.FallbackRecord) -> dict[str, Any]:
    """The options of `Loop.decide`, or of `Loop.record_fallback`."""
    return {
        "context": body.context,
        "arms": body.arms,
        "id": body.id,
        "key": body.key,
        "default": body.default,
        "at": body.at,
        "k": body.k,
    }


def _response(found: Decision | Slate) -> m.DecisionResponse:
    if isinstance(found, Slate):
        places = [m.filled(m.ServedPosition, each) for each in found.places]
        return m.DecisionResponse(found.id, None, found.probability, {}, found.role, places)
    shares: Any = found.probabilities  # numbers of arms become text in JSON
    return m.DecisionResponse(found.id, found.arm, found.probability, shares, found.role)


async def reward(call: Call) -> Reply:
    said = {"id": call.path["id"], "value": call.body.value}
    said |= {"at": call.body.at, "position": call.body.position}
    return Reply(200, m.OutcomeResponse(await call.submit_one("reward", said)))


async def prefer(call: Call) -> Reply:
    said = {"id": call.path["id"], "at": call.body.at}
    said |= {"position": call.body.position, "over": call.body.over}
    return Reply(200, m.OutcomeResponse(await call.submit_one("prefer", said)))


async def metric(call: Call) -> Reply:
    said = {"id": call.path["id"], "name": call.path["metric"], "value": call.body.value}
    said |= {"at": call.body.at, "position": call.body.position}
    return Reply(200, m.OutcomeResponse(await call.submit_one("metric", said)))


async def cancel(call: Call) -> Reply:
    said: dict[str, Any] = {"id": call.path["id"]}
    if "position" in call.query:
        said["position"] = _position(call.query["position"])
    return Reply(200, m.OutcomeResponse(await call.submit_one("cancel", said)))


def _position(text: str) -> int:
    if not text.isdecimal() or len(text) > 9:
        raise RefusedError(422, "position must be a whole number from 0")
    return int(text)


async def overview(call: Call) -> Reply:
    return Reply(200, await call.service.views.view(call.path["name"]))


async def live(call: Call) -> Reply:
    events = await call.service.views.stream(call.path["name"])
    return Reply(200, events, "text/event-stream")


def alive(call: Call) -> Reply:
    return Reply(200, m.ServiceStatus("alive"))


def ready(call: Call) -> Reply:
    if not call.service.pool.ready:
        raise RefusedError(503, "some loops are not open: the service is starting or has no disk")
    return Reply(200, m.ServiceStatus("ready"))


def metrics(call: Call) -> Reply:
    return Reply(200, call.service.metrics.text(), "text/plain; version=0.0.4; charset=utf-8")
