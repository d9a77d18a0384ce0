"""Loop: raw events in, decisions with known probabilities out."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, overload

from driftbandit import validate
from driftbandit.durations import moment
from driftbandit.features import Feature, Features
from driftbandit.loop import answers, frames
from driftbandit.loop.audits import Audit, audit, audit_all
from driftbandit.loop.choose import Asked, choose
from driftbandit.loop.decision import Decision, Name, Slate
from driftbandit.loop.declaration import Declaration, Settings, check_name
from driftbandit.loop.desk import Desk
from driftbandit.loop.events import LedgerError
from driftbandit.loop.health import Health
from driftbandit.loop.ledger import Ledger
from driftbandit.loop.opening import check_new, declared, settings
from driftbandit.loop.request import new_id, request, text
from driftbandit.loop.rules import Rule
from driftbandit.loop.teacher import Lag
from driftbandit.loop.tickets import Started, Ticket
from driftbandit.loop.watch import health
from driftbandit.policies.rows import RowPolicy
from driftbandit.reward import Reward


class Loop:
    """Decisions from raw values, rewards that come late, and a ledger of all of it.

    A call returns when its event is on the disk. Threads may share a loop. What was declared is in
    the ledger: `Loop("shop.db", name="front-page")` goes on where it was.

    | option | |
    |---|---|
    | `features`, `reward` | what a row and a reward mean; a new loop needs both |
    | `policy` | AutoDOMD, or DOMD, or one made for `features.problem(reward)` |
    | `floor`, or `rule` | share of uniform exploration, or a rule such as Thompson(0.02) |
    | `mode` | "live", or "apprentice": the default is played, and the loop learns from it |
    | `holdout` | share of keys that always gets the default |
    | `half_life` | forget in time: "7d" for DOMD, "auto" for AutoDOMD; in rounds if None |
    | `keep` | how long events are kept, such as "90d"; for ever if None |
    | `key` | such as "user_id": a learner for each, which begins like the population's |
    | `clock` | "wall", or "events": time is the largest `at` so far, for a past that is filled in |
    | `teaching` | "background", or "caller": a call returns when what is due is taught |

    The path ":memory:" is a ledger that nobody keeps, for tests and simulations.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        name: str = "loop",
        features: Features | None = None,
        reward: Reward | None = None,
        policy: type[RowPolicy] | RowPolicy | None = None,
        floor: float | None = None,
        rule: Rule | None = None,
        mode: str | None = None,
        holdout: float | None = None,
        half_life: Any = None,
        keep: Any = None,
        key: str | None = None,
        seed: int | None = None,
        clock: str | None = None,
        teaching: str = "background",
    ) -> None:
        given = {k: v for k, v in locals().items() if k not in ("self", "path", "name", "teaching")}
        check_new(path, given)
        self._ledger = Ledger(path, check_name(name), alone=teaching == "caller")
        try:
            past = declared(self._ledger, given)
            chosen = settings(next(reversed(past.settings.values())), given)
            self._desk = Desk(self._ledger, past, teaching)
        except BaseException:
            self._ledger.close()
            raise
        try:
            self._desk.set(chosen)
        except BaseException:
            self.close()
            raise

    def set(
        self,
        *,
        floor: float | None = None,
        rule: Rule | None = None,
        mode: str | None = None,
        holdout: float | None = None,
    ) -> None:
        """Change how decisions are made, from now on."""
        given = {"floor": floor, "rule": rule, "mode": mode, "holdout": holdout}
        self._desk.set(settings(self.settings, given))

    @overload
    def decide(
        self,
        context: Mapping[str, Any],
        arms: Any,
        *,
        id: str | None = None,
        key: str | None = None,
        default: Name | None = None,
        at: Any = None,
    ) -> Decision: ...
    @overload
    def decide(
        self,
        context: Mapping[str, Any],
        arms: Any,
        *,
        k: int,
        id: str | None = None,
        key: str | None = None,
        default: Sequence[Name] | None = None,
        at: Any = None,
    ) -> Slate: ...
    def decide(
        self,
        context: Mapping[str, Any],
        arms: Any,
        *,
        k: int | None = None,
        id: str | None = None,
        key: str | None = None,
        default: Name | Sequence[Name] | None = None,
        at: Any = None,
    ) -> Decision | Slate:
        """Choose among arms: a mapping from names to columns, or a list of columns. With `k` a
        slate: k of them in order, each position drawn among the arms that are left.

        With an `id` of one's own a call can be repeated: it gives the same answer. `key` says whose
        decision it is, for the holdout and for `erase`. `default` is the arm to play when the loop
        stands aside, and what is returned when there is no arm; for a slate, a list of k.
        """
        started = self._decide(context, arms, k=k, id=id, key=key, default=default, at=at)
        self._desk.submit(started.ticket)
        return started.finish()

    def _decide(
        self,
        context: Any,
        arms: Any,
        *,
        k: int | None = None,
        id: str | None = None,
        key: str | None = None,
        default: Any = None,
        at: Any = None,
    ) -> Started:
        """A choice that is not stored yet."""
        asked = request(context, arms, default, k)
        own = new_id() if id is None else text("id", id)
        who = Asked(self.seed, own, None if key is None else text("key", key))
        if key is None and self.declaration.key is not None:
            raise ValueError(f"each {self.declaration.key} has a learner of its own: pass key=")
        self._desk.catch_up()
        when, (seq, chosen) = moment(at, self._desk.clerk.clock), self._desk.current
        made = choose(self._desk.learner, chosen, asked, who, when)
        ticket = Ticket("decide", None if at is None else when, own, who.key, fresh=id is None)
        ticket.data = answers.logged(asked, made, seq)

        def finish() -> Decision | Slate:
            if ticket.known is not None:
                event = self._ledger.events([ticket.known])[ticket.known]
                return answers.again(event, asked, who.key, lambda: self.audit(own).whys)
            self._desk.remember(ticket, made)
            return answers.first(own, asked, made)

        return Started(ticket, finish)

    def together(self, calls: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Any]:
        """Many calls that wait for the disk only once: ("decide", {"context": ..., "arms": ...}),
        ("reward", {"id": ..., "value": ...}) or ("cancel", {"id": ...}), each with the options of
        that method. Gives the answers in order; in place of a call that is refused, the error."""
        started = [self._started(kind, options) for kind, options in calls]
        self._desk.submit_all([each.ticket for each in started if isinstance(each, Started)])
        return [each.end() if isinstance(each, Started) else each for each in started]

    def _started(self, kind: str, options: Mapping[str, Any]) -> Started | ValueError:
        known: dict[str, Callable[..., Started]] = {
            "decide": self._decide,
            "reward": self._reward,
            "cancel": self._cancel,
        }
        begin = known.get(kind)
        if begin is None:
            return ValueError(f"a call is 'decide', 'reward' or 'cancel', got {kind!r}")
        try:
            return begin(**options)
        except LedgerError:
            raise  # it holds for all of them
        except ValueError as error:
            return error

    def reward(self, id: str, value: float, *, position: int | None = None, at: Any = None) -> str:
        """Say what a decision gave, or a `position` of a slate, from 0. Until its window closes the
        last word counts.

        Returns what became of it: "counted", "corrected", "late" (the decision is closed or
        cancelled), "held" (no such decision yet), or "unknown" where nothing is held.
        """
        return self._desk.submit(self._reward(id, value, position=position, at=at).ticket).word

    def _reward(self, id: str, value: float, *, position: Any = None, at: Any = None) -> Started:
        _, clipped = self.declaration.reward.inside(value)
        raw = min(max(float(value), -validate.LARGEST), validate.LARGEST)  # JSON has no infinity
        return self._say("reward", id, {"value": raw, "clipped": clipped}, at, position)

    def cancel(self, id: str, *, position: int | None = None, at: Any = None) -> str:
        """Say that a decision, or a position of a slate, was never shown: it teaches nothing.
        Returns "cancelled", or as `reward` does."""
        return self._desk.submit(self._cancel(id, position=position, at=at).ticket).word

    def _cancel(self, id: str, *, position: Any = None, at: Any = None) -> Started:
        return self._say("cancel", id, {}, at, position)

    def metric(
        self, id: str, name: str, value: float, *, position: int | None = None, at: Any = None
    ) -> None:
        """Record another number about a decision; it is reported and never learnt."""
        clean = validate.number("value", value, "of a metric")
        said = self._say("metric", id, {"name": text("name", name), "value": clean}, at, position)
        self._desk.submit(said.ticket)

    def _say(self, kind: str, id: str, data: dict[str, Any], at: Any, position: Any) -> Started:
        when = None if at is None else moment(at, 0.0)
        if position is not None:
            data["position"] = validate.count("position", position, "in a slate", least=0)
        ticket = Ticket(kind, when, text("id", id), data=data)
        return Started(ticket, lambda: ticket.word)

    def advance(self, at: Any = None) -> None:
        """Close all windows that end now, or by the time `at` where the clock is that of events."""
        if at is not None and self.declaration.clock == "wall":
            raise ValueError("the wall clock says what time it is: leave at out")
        self._desk.submit(Ticket("advance", None if at is None else moment(at, 0.0)))

    def settle(self, timeout: float | None = None) -> bool:
        """Wait until all that is due is taught; False if it takes longer than `timeout` seconds."""
        if timeout is not None:
            timeout = validate.nonnegative("timeout", timeout, "seconds to wait")
        return self._desk.settle(timeout)

    def grow(
        self,
        *,
        context: Mapping[str, Feature] | None = None,
        arm: Mapping[str, Feature] | None = None,
        interactions: Sequence[tuple[str, str]] = (),
    ) -> None:
        """More columns, from the next decision on; what is learnt stays."""
        features = self.features.grow(context=context, arm=arm, interactions=interactions)
        self._desk.grow(features)

    def erase(self, *, key: str, relearn: bool = False) -> int:
        """Blank all that was logged of a key. What the learner has learnt from it stays, unless it
        is to `relearn` from the rest, which takes a replay of the log. Returns how many events."""
        if not isinstance(relearn, bool):
            raise ValueError(f"relearn must be True or False, got {validate.show(relearn)}")
        return self._desk.erase(text("key", key), relearn)

    def audit(self, id: str) -> Audit:
        """Compute a logged decision's probabilities again, from the log alone."""
        return audit(self._ledger, self._desk.now, text("id", id))

    def audits(self) -> Iterator[Audit]:
        """All of the log, in the order of what the learner knew."""
        return audit_all(self._ledger, self._desk.now)

    def log(self) -> Any:
        """All decisions as a Polars frame, each with what became of it."""
        return frames.frame(self._ledger, self._desk.now)

    def export(self, path: str | os.PathLike[str]) -> Path:
        """The same as a Parquet file."""
        return frames.export(self._ledger, self._desk.now, path)

    def health(self, *, since: Any = None) -> Health:
        """How the loop is doing, from its latest 10,000 events. `since`, a date, also asks which
        terms have moved since then by more than they are uncertain."""
        return health(self._desk, None if since is None else moment(since, 0.0))

    def check(self) -> None:
        """Raise if the loop has stopped: nothing can be stored or taught any more."""
        self._desk.check()

    @property
    def declaration(self) -> Declaration:
        """What the loop was declared with."""
        return self._desk.past.declaration

    @property
    def seed(self) -> int:
        """Seed of all draws."""
        return self.declaration.seed

    @property
    def settings(self) -> Settings:
        """How decisions are made now."""
        return self._desk.current[1]

    @property
    def features(self) -> Features:
        """The features as they are now, grown or not."""
        return self._desk.learner.version.features

    @property
    def counts(self) -> dict[str, int]:
        """How many events of each kind there were, and what became of them."""
        return dict(self._desk.clerk.book.counts)

    @property
    def lag(self) -> Lag:
        """Lessons that wait to be taught, and for how many seconds the oldest has."""
        return self._desk.teacher.lag

    @property
    def digest(self) -> str:
        """A fingerprint of the learner: equal for learners that are equal bit for bit."""
        return self._desk.learner.digest

    def close(self) -> None:
        """Stop. Everything that was acknowledged is in the ledger, closed or not."""
        self._desk.close()

    def __enter__(self) -> Loop:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise ValueError("a loop cannot be copied or sent elsewhere: open it where it is needed")

    def __repr__(self) -> str:
        return f"Loop({self._ledger.path!r}, name={self._ledger.name!r})"
