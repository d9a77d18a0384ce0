"""Calls of a loop before they are stored: decisions, rewards, cancels and metrics as tickets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from driftbandit import validate
from driftbandit.durations import moment
from driftbandit.loop import elsewhere
from driftbandit.loop.deciding import payloads
from driftbandit.loop.deciding.choose import Asked, Ready, choose, ready
from driftbandit.loop.deciding.request import new_id, request, text
from driftbandit.loop.deciding.types import Decision, Explain, Request, Slate
from driftbandit.loop.runtime import Desk
from driftbandit.loop.storage.events import LedgerError
from driftbandit.loop.writing.pending import Started, Ticket


class Question(NamedTuple):
    """A decision to be made; `at` is None for now."""

    request: Request
    who: Asked
    at: Any
    fresh: bool  # whether the id was made for it


class Calls:
    """`explain` says why the decision with an id was made."""

    def __init__(self, desk: Desk, explain: Callable[[str], Any]) -> None:
        self._desk, self._explain = desk, explain
        self._declaration = desk.past.declaration

    def decide(self, context: Any, arms: Any, **options: Any) -> Started:
        """A choice that is not stored yet."""
        return self._answer(self._question(context, arms, **options))

    def _question(
        self,
        context: Any,
        arms: Any,
        *,
        k: int | None = None,
        id: str | None = None,
        key: str | None = None,
        default: Any = None,
        at: Any = None,
        fallback: bool = False,
    ) -> Question:
        """A `fallback` was made elsewhere."""
        asked = request(context, arms, default, k)
        own = new_id() if id is None else text("id", id)
        whose = None if key is None else text("key", key)
        if key is None and self._declaration.key is not None:
            raise ValueError(f"each {self._declaration.key} has a learner of its own: pass key=")
        return Question(asked, Asked(self._declaration.seed, own, whose, fallback), at, id is None)

    def _answer(self, question: Question, before: Ready | None = None) -> Started:
        """What is `ready` need not be encoded again."""
        (asked, who, at, fresh), desk = question, self._desk
        desk.catch_up()
        when, (seq, chosen) = moment(at, desk.clerk.clock), desk.current
        made = choose(desk.learner, desk.panel, chosen, asked, who, when, before)
        ticket = Ticket("decide", None if at is None else when, who.id, who.key, fresh=fresh)
        ticket.data = payloads.logged(asked, made, seq)

        def finish() -> Decision | Slate:
            if ticket.known is not None:
                event = desk.ledger.events([ticket.known])[ticket.known]
                explain: Explain = lambda: self._explain(who.id)  # noqa: E731
                return payloads.again(event, asked, who.key, explain)
            desk.remember(ticket, made)
            return payloads.first(who.id, asked, made)

        return Started(ticket, finish)

    def record_fallback(
        self, context: Any, arms: Any, *, id: Any = None, default: Any = None, **options: Any
    ) -> Started:
        """A choice that was made elsewhere."""
        elsewhere.check(id, default)
        made = self.decide(context, arms, id=id, default=default, **options, fallback=True)

        def cancel() -> str:
            return self._desk.submit(self.cancel(id).ticket).word

        return elsewhere.recorded(made, default, cancel)

    def reward(self, id: str, value: float, *, position: Any = None, at: Any = None) -> Started:
        _, clipped = self._declaration.reward.inside(value)
        raw = min(max(float(value), -validate.LARGEST), validate.LARGEST)  # JSON has no infinity
        return self._say("reward", id, {"value": raw, "clipped": clipped}, at, position)

    def cancel(self, id: str, *, position: Any = None, at: Any = None) -> Started:
        return self._say("cancel", id, {}, at, position)

    def metric(
        self, id: str, name: str, value: float, *, position: Any = None, at: Any = None
    ) -> Started:
        clean = validate.number("value", value, "of a metric")
        return self._say("metric", id, {"name": text("name", name), "value": clean}, at, position)

    def _say(self, kind: str, id: str, data: dict[str, Any], at: Any, position: Any) -> Started:
        when = None if at is None else moment(at, 0.0)
        if position is not None:
            data["position"] = validate.count("position", position, "in a slate", least=0)
        ticket = Ticket(kind, when, text("id", id), data=data)
        return Started(ticket, lambda: ticket.word)

    def submit_many(self, calls: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Any]:
        """Answers to many calls that are stored together; in place of one that is refused, the
        error."""
        begun = [_tried(self._begin, *call) for call in calls]
        asked = [each.request for each in begun if isinstance(each, Question)]
        rows = iter(ready(self._desk.learner, self._desk.panel, asked))
        started = [
            _tried(self._answer, each, next(rows)) if isinstance(each, Question) else each
            for each in begun
        ]
        self._desk.submit_all([each.ticket for each in started if isinstance(each, Started)])
        return [each.end() if isinstance(each, Started) else each for each in started]

    def _begin(self, kind: str, options: Mapping[str, Any]) -> Question | Started:
        known: dict[str, Callable[..., Question | Started]] = {
            "decide": self._question,
            "record_fallback": self.record_fallback,
            "reward": self.reward,
            "cancel": self.cancel,
        }
        if kind not in known:
            raise ValueError(
                f"a call is 'decide', 'record_fallback', 'reward' or 'cancel', got {kind!r}"
            )
        return known[kind](**options)


def _tried(step: Callable[..., Any], *args: Any) -> Any:
    """What a step gives, or why it is refused."""
    try:
        return step(*args)
    except LedgerError:
        raise  # it holds for all of them
    except ValueError as error:
        return error
