"""Calls of a loop: a question or a reward becomes a stored event, and an answer.

`decide` reads from top to bottom: request -> rows -> probabilities and a draw -> payload -> writer
-> answer.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from driftbandit import validate
from driftbandit.durations import moment
from driftbandit.loop.config import Settings
from driftbandit.loop.deciding import slates
from driftbandit.loop.deciding.choose import NO_VOTES, chances, decided, role
from driftbandit.loop.deciding.offers import Offers
from driftbandit.loop.deciding.pairs import SIZE, expected
from driftbandit.loop.deciding.payloads import Choice, again
from driftbandit.loop.deciding.pricing import SPENT_ROLE, is_empty, priced
from driftbandit.loop.deciding.request import request
from driftbandit.loop.deciding.types import (
    Answer,
    Decision,
    Explain,
    Request,
    Slate,
    View,
    Vote,
    Votes,
)
from driftbandit.loop.errors import LedgerError, ReplacedError
from driftbandit.loop.learning.learner import Learner
from driftbandit.loop.runtime import Runtime
from driftbandit.loop.state.definition import Version
from driftbandit.loop.state.sticky import Sticky
from driftbandit.loop.storage.events import LIVE, Cancel, Metric, RewardGiven
from driftbandit.loop.writing.pending import Pending
from driftbandit.policies.base import Floats
from driftbandit.policies.items import PointEstimate

RECORDED, CANCELLED = "recorded", "cancelled"
FOLLOWS = 10.0  # seconds in which the snapshot of a process that trains is expected


class Encoded(NamedTuple):
    """Rows of a request that were encoded before, by the features of a version."""

    version: Version
    X: Floats  # (k, K, size)


class Calls:
    """`explain` says why the decision with an id was made."""

    def __init__(self, runtime: Runtime, explain: Callable[[str], Any]) -> None:
        self._runtime, self._explain, self._offers = runtime, explain, Offers()
        self._declaration = runtime.definition.now.declaration
        self._pairs = self._declaration.learns_preferences

    def decide(self, *given: Any, **options: Any) -> Decision | Slate:
        """Make a decision, and wait until it is stored."""
        made = self._choose(self.ask(*given, **options))
        return self._answer(made, self._runtime.writer.submit(self._pending(made)))

    def ask(
        self,
        context: Any,
        arms: Any = None,
        *,
        k: int | None = None,
        id: str | None = None,
        key: str | None = None,
        default: Any = None,
        at: Any = None,
        fallback: bool = False,
    ) -> Request:
        """Return the request of a decision."""
        now = self._runtime.definition.now
        if key is None and not fallback and now.current[1].sticky is not None:
            raise ValueError("answers are sticky, and each belongs to a key: pass key=")
        if key is None and self._declaration.key is not None:
            raise ValueError(f"each {self._declaration.key} has a learner of its own: pass key=")
        if self._pairs and k not in (None, SIZE):
            raise ValueError(
                "a preference is between two arms: pass k=2 to show a pair, or leave k out to play "
                f"the best arm, got k={validate.show(k)}"
            )
        when = None if at is None else moment(at, 0.0)
        return request(
            context, arms, default, k, id=id, key=key, at=when, fallback=fallback,
            catalogue=now.catalogue,
        )  # fmt: skip

    def _choose(self, asked: Request, before: Encoded | None = None) -> Choice:
        """Decide with what the learner knows now; rows may have been encoded before."""
        runtime = self._runtime
        runtime.writer.check()
        if runtime.inline:
            runtime.catch_up()
        seq, settings = runtime.definition.now.current
        played = role(settings, asked, self._declaration.seed_words, runtime.candidates.demoted)
        if settings.budget and asked.names:
            at = runtime.writer.clock if asked.at is None else asked.at
            with runtime.writer.midst:  # the thread that writes waits for the lock of accounts
                asked = priced(asked, settings, runtime.windows.accounts, at)
            played = SPENT_ROLE if played == "active" and is_empty(asked) else played
        until = time.monotonic() + FOLLOWS
        while True:
            version, X = before or self._encode(asked)
            try:
                with runtime.learner.lock:
                    if runtime.learner.version is version:  # it has not grown meanwhile
                        return self._chosen(asked, played, seq, settings, version, X)
            except ReplacedError:  # another process trains: its next snapshot names newer rows
                if time.monotonic() > until:
                    raise
                time.sleep(0.01)
            before = None

    def _chosen(
        self, asked: Request, played: str, seq: int, settings: Settings, version: Version, X: Floats
    ) -> Choice:
        """Return probabilities and a draw; the caller holds the learner's lock."""
        learner, seed = self._runtime.learner, self._declaration.seed_words
        at = asked.at
        if at is None:
            at = self._runtime.writer.believed if learner.timed or settings.trials else 0.0
        # in a trial all policies have learnt the same examples: one position is logged for all
        view = (learner.exact if settings.trials else learner.view)(at, asked.key)
        if not asked.names:
            none: list[Any] = [None for _ in asked.defaults]
            answer = Answer(none, [[] for _ in none], none, played)
            return Choice(asked, answer, seq, version, view, X, PointEstimate(X[0]), NO_VOTES)
        votes = self._votes(asked, played, settings, at) if settings.trials else NO_VOTES
        pairs = self._pairs
        arms, p = decided(settings, asked, played, seed, X, view, votes, pairs=pairs)
        if votes:
            words = (*seed, asked.id, view.policy)
            live = chances(settings.exploration, settings, asked, view, X[0], words)
            votes = {LIVE: Vote(live, view.aged), **votes}
        estimate = view.bandit.estimate
        z = estimate.values(np.array([rows[arm] for rows, arm in zip(X, arms)]))
        family = version.policy.problem.family
        means = expected(z, family) if pairs else np.atleast_1d(family.mu(z)).tolist()
        answer = Answer([*arms], p.tolist(), means, played)
        return Choice(asked, answer, seq, version, view, X, estimate, votes, pairs)

    def _votes(self, asked: Request, played: str, settings: Settings, at: float) -> Votes:
        def view(_: str, one: Learner) -> View:
            return one.exact(at, asked.key)

        return self._runtime.candidates.votes(settings, asked, played, view)

    def _encode(self, asked: Request) -> Encoded:
        version = self._runtime.learner.version
        definition = self._runtime.definition.now
        if definition.shadows or definition.costs:  # columns may be for other policies, or budgets
            asked = self._runtime.candidates.read(version.features, asked)
        if asked.k is None and asked.names:
            plan = version.features.plan
            return Encoded(version, self._offers.rows(plan, asked.context, asked.arms)[None])
        return Encoded(version, slates.rows(version.features, asked))

    def _pending(self, made: Choice) -> Pending:
        asked = made.request
        return Pending(
            "decide",
            asked.at,
            asked.id,
            asked.key,
            None if asked.spend is None else made.priced,
            made.logged(),
            k=asked.k,
            new_id=asked.new_id,
            sticky=None if asked.key is None else self._sticky(made),
        )

    def _sticky(self, made: Choice) -> Sticky | None:
        """Return what the key's latest decision must be like to be the answer again."""
        asked, settings = made.request, self._runtime.definition.now.settings.get(made.settings)
        if settings is None or settings.sticky is None or asked.fallback or not asked.names:
            return None
        return Sticky(settings.sticky, made.answer.role, asked.names, asked.default, asked.k)

    def _answer(self, made: Choice, pending: Pending) -> Decision | Slate:
        """Return the decision; the one of before, if its id has been used or it is sticky."""
        if pending.known is not None:
            event = self._runtime.ledger.events([pending.known])[pending.known]
            id = str(event.id)
            explain: Explain = lambda: self._explain(id)  # noqa: E731
            return again(event, None if pending.repeats else made.request, explain)
        if pending.event is not None:
            self._runtime.trainer.remember(pending.event, made)
        return made.first()

    def record_fallback(
        self, context: Any, arms: Any = None, *, id: Any = None, default: Any = None, **options: Any
    ) -> str:
        """Store a decision that a client made alone."""
        made = self._choose(self._fallback(context, arms, id=id, default=default, **options))
        return self._recorded(made, self._runtime.writer.submit(self._pending(made)))

    def _fallback(self, *given: Any, id: Any = None, default: Any = None, **more: Any) -> Request:
        if id is None or default is None:
            raise ValueError(
                "a decision made elsewhere has an id and played its default: pass both"
            )
        return self.ask(*given, id=id, default=default, fallback=True, **more)

    def _recorded(self, made: Choice, pending: Pending) -> str:
        """Cancel the loop's own choice under this id, if there is another: its answer was lost on
        the way, so it was never shown."""
        found, default = self._answer(made, pending), made.request.default
        chosen = found.arms if isinstance(found, Slate) else [found.arm]
        if chosen == (list(default) if isinstance(found, Slate) else [default]):
            return RECORDED
        self._runtime.writer.submit(self.cancel(made.request.id))
        return CANCELLED

    def reward(self, id: str, value: float, *, position: Any = None, at: Any = None) -> Pending:
        """Return a reward that is to be stored."""
        if self._pairs:
            raise ValueError(
                "this loop learns from preferences: show two arms with decide(..., k=2), and say "
                "with prefer(id, position) which one was better, or compare two decisions with "
                "prefer(winner_id, loser_id)"
            )
        _, clipped = self._declaration.reward.inside(value)
        raw = min(max(float(value), -validate.LARGEST), validate.LARGEST)  # JSON has no infinity
        return _said("reward", id, RewardGiven(raw, clipped), position, at)

    def prefer(self, id: str, position: Any = None, *, over: Any = None, at: Any = None) -> Pending:
        """Return a preference that is to be stored. That of a pair is its reward: 1 for its first
        arm and 0 for its second one. That of two decisions is a reward of 1 of the better one,
        `over` the other one."""
        if not self._pairs:
            raise ValueError(
                "this loop learns from rewards: use reward(id, value), or declare a loop with "
                "reward=Preference(wait=...)"
            )
        if (position is None) == (over is None):
            raise ValueError(
                "a preference is between the arms of a pair or between two decisions: pass the "
                "position of the better arm, or over=, the id of the decision that was worse"
            )
        if over is not None:
            return self._prefer_over(id, validate.text("over", over), at)
        place = validate.count("position", position, "of the better arm, from 0", least=0)
        if place >= SIZE:
            raise ValueError(f"position must be 0 or 1, that of the better arm, got {place}")
        return _said("reward", id, RewardGiven(1.0 - place, clipped=False), None, at)

    def _prefer_over(self, id: str, over: str, at: Any) -> Pending:
        if over == id:
            raise ValueError(
                f"decision {id!r} cannot be preferred over itself: a preference is between two "
                "decisions, and a sticky answer is the same decision again"
            )
        return _said("reward", id, RewardGiven(1.0, clipped=False, over=over), None, at)

    def cancel(self, id: str, *, position: Any = None, at: Any = None) -> Pending:
        """Return a cancel that is to be stored."""
        if position is not None and self._pairs:
            raise ValueError("a pair is shown or not as a whole: leave position out")
        return _said("cancel", id, Cancel(), position, at)

    def metric(
        self, id: str, name: str, value: float, *, position: Any = None, at: Any = None
    ) -> Pending:
        """Return a metric that is to be stored."""
        clean = validate.number("value", value, "of a metric")
        if clean < 0.0 and name in self._runtime.settings.budget:
            raise ValueError(
                f"a bill of budget {name!r} is the whole cost of its decision, from 0 on, got "
                f"{clean:g}: a later one takes the place of an earlier one"
            )
        return _said("metric", id, Metric(validate.text("name", name), clean), position, at)

    def submit_many(self, calls: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Any]:
        """Answer many calls that are stored together; an error stands in place of the answer of a
        call that is refused."""
        begun = [_tried(self._begin, *call) for call in calls]
        asked = [each for each in begun if isinstance(each, Request)]
        rows = iter(self._encode_all(asked))
        made = [
            _tried(self._choose, each, next(rows)) if isinstance(each, Request) else each
            for each in begun
        ]
        pending = [
            _tried(self._pending, each) if isinstance(each, Choice) else each for each in made
        ]
        self._runtime.writer.submit_all([each for each in pending if isinstance(each, Pending)])
        return [_tried(self._end, *both) for both in zip(made, pending)]

    def _begin(self, kind: str, options: Mapping[str, Any]) -> Request | Pending:
        known: dict[str, Callable[..., Request | Pending]] = {
            "decide": self.ask,
            "record_fallback": self._fallback,
            "reward": self.reward,
            "prefer": self.prefer,
            "cancel": self.cancel,
            "metric": self.metric,
        }
        if kind not in known:
            raise ValueError(f"a call is one of {', '.join(map(repr, known))}, got {kind!r}")
        return known[kind](**options)

    def _encode_all(self, asked: Sequence[Request]) -> list[Encoded | None]:
        """Return the rows of many requests, encoded at once, which is faster. If one is a slate or
        has no arm, or is refused, each is encoded on its own, and it shows which one it was."""
        version = self._runtime.learner.version
        try:
            read = [self._runtime.candidates.read(version.features, each) for each in asked]
            if len(asked) > 1 and all(each.names and each.k is None for each in read):
                contexts, arms = [each.context for each in read], [each.arms for each in read]
                found = version.features.encode_each(contexts, arms)
                return [Encoded(version, X[None]) for X in found]
        except Exception:  # each is tried again, and fails on its own
            pass
        return [None] * len(asked)

    def _end(self, made: Any, pending: Any) -> Any:
        """Return the answer of a call, or what is wrong with it."""
        if not isinstance(pending, Pending):
            return pending
        if pending.error is not None:
            return pending.error
        if not isinstance(made, Choice):
            return pending.word or RECORDED  # a metric has no other word
        if made.request.fallback:
            return self._recorded(made, pending)
        return self._answer(made, pending)


def _said(kind: str, id: str, payload: Any, position: Any, at: Any) -> Pending:
    when = None if at is None else moment(at, 0.0)
    if position is not None:
        payload.position = validate.count("position", position, "in a slate", least=0)
    return Pending(kind, when, validate.text("id", id), payload=payload)


def _tried(step: Callable[..., Any], *args: Any) -> Any:
    """Return what a step gives, or why it fails: an exception stays with its own call."""
    try:
        return step(*args)
    except LedgerError:
        raise  # it holds for all of them
    except ValueError as error:
        return error.with_traceback(None)  # a refusal: its frames would keep the whole group
    except Exception as error:
        return error
