"""Loop: raw events in, decisions with known probabilities out."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, overload

from driftbandit import validate
from driftbandit.durations import moment
from driftbandit.features import Feature, Features
from driftbandit.loop import promotion, proposal
from driftbandit.loop.calls import Calls
from driftbandit.loop.candidates.comparison import Comparison
from driftbandit.loop.config import Declaration, Settings, check_name
from driftbandit.loop.deciding.request import text
from driftbandit.loop.deciding.types import Decision, Name, Slate
from driftbandit.loop.exploration import Rule
from driftbandit.loop.guard import Guard
from driftbandit.loop.opening import check_new, declared, settings
from driftbandit.loop.reporting import export
from driftbandit.loop.reporting.audit import Audit, audit, audit_all
from driftbandit.loop.reporting.health import Health
from driftbandit.loop.reporting.watch import health
from driftbandit.loop.runtime import Desk
from driftbandit.loop.state.versions import Shadow
from driftbandit.loop.storage.ledger import Ledger
from driftbandit.loop.training.trainer import Lag
from driftbandit.loop.writing.pending import Started, Ticket
from driftbandit.policies.rows import RowPolicy
from driftbandit.reward import Reward


class Loop:
    """Makes decisions from raw values, learns from rewards that come late, and logs all of it.

    A call returns when its event is on the disk. Threads may share a loop. The declaration is in
    the ledger: `Loop("shop.db", name="front-page")` goes on where it was.

    | option | |
    |---|---|
    | `features`, `reward` | what a row and a reward mean; a new loop needs both |
    | `policy` | AutoDOMD, or DOMD, or one made for `features.problem(reward)` |
    | `exploration` | share of uniform exploration, or a rule such as Thompson(0.02) |
    | `mode` | "active", or "apprentice": the default is played, and the loop learns from it |
    | `holdout` | share of keys that always gets the default |
    | `guard` | Guard(): the default takes over once it is proved better; False ends that |
    | `half_life` | forget in time: "7d" for DOMD, "auto" for AutoDOMD; in rounds if None |
    | `retention` | how long events are kept, such as "90d"; forever if None |
    | `key` | such as "user_id": a learner for each, which begins like the population's |
    | `clock` | "wall", or "events": time is the largest `at` so far, to fill in a past |
    | `training` | "background", or "inline": a call also trains what is due |

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
        exploration: float | Rule | None = None,
        mode: str | None = None,
        holdout: float | None = None,
        guard: Guard | bool | None = None,
        half_life: Any = None,
        retention: Any = None,
        key: str | None = None,
        seed: int | None = None,
        clock: str | None = None,
        training: str = "background",
    ) -> None:
        given = {k: v for k, v in locals().items() if k not in ("self", "path", "name", "training")}
        check_new(path, given)
        self._ledger = Ledger(path, check_name(name), alone=training == "inline")
        try:
            past = declared(self._ledger, given)
            chosen = settings(next(reversed(past.settings.values())), given)
            self._desk = Desk(self._ledger, past, training)
            self._calls = Calls(self._desk, lambda id: self.audit(id).whys)
        except BaseException:
            self._ledger.close()
            raise
        try:
            self._desk.configure(chosen)
        except BaseException:
            self.close()
            raise

    def configure(
        self,
        *,
        exploration: float | Rule | None = None,
        mode: str | None = None,
        holdout: float | None = None,
        guard: Guard | bool | None = None,
    ) -> None:
        """Change how decisions are made, from now on."""
        given = {"exploration": exploration, "mode": mode, "holdout": holdout, "guard": guard}
        with self._desk.switching:
            self._desk.configure(settings(self.settings, given))

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

        With an `id` of your own you can repeat a call: it gives the same answer. `key` says whose
        decision it is, for the holdout and for `erase`. `default` is the arm to play where the loop
        does not choose, and what is returned if there is no arm; for a slate, a list of k.
        """
        started = self._calls.decide(context, arms, k=k, id=id, key=key, default=default, at=at)
        self._desk.submit(started.ticket)
        return started.finish()

    def record_fallback(
        self,
        context: Mapping[str, Any],
        arms: Any,
        *,
        id: str,
        default: Name | Sequence[Name],
        k: int | None = None,
        key: str | None = None,
        at: Any = None,
    ) -> str:
        """Store a decision that was made while the loop was away: its default was played, with
        probability 1. It trains like any other. Returns "recorded", or "cancelled" where the loop
        has chosen otherwise under this id: nobody saw that choice, so it trains nothing."""
        options = {"id": id, "default": default, "k": k, "key": key, "at": at}
        started = self._calls.record_fallback(context, arms, **options)
        self._desk.submit(started.ticket)
        return str(started.finish())

    def submit_many(self, calls: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Any]:
        """Many calls that wait for the disk only once: ("decide", {"context": ..., "arms": ...}),
        ("record_fallback", ...), ("reward", {"id": ..., "value": ...}) or ("cancel", {"id": ...}),
        each with the options of that method. Gives the answers in order; in place of a call that is
        refused, the error."""
        return self._calls.submit_many(calls)

    def reward(self, id: str, value: float, *, position: int | None = None, at: Any = None) -> str:
        """Say what a decision gave, or a `position` of a slate, from 0. Until its window closes the
        last value counts.

        Returns what became of it: "counted", "corrected", "late" (the decision is closed or
        cancelled), "held" (no such decision yet), or "unknown" where nothing is held.
        """
        return self._said(self._calls.reward(id, value, position=position, at=at))

    def cancel(self, id: str, *, position: int | None = None, at: Any = None) -> str:
        """Say that a decision, or a position of a slate, was never shown: it trains nothing.
        Returns "cancelled", or as `reward` does."""
        return self._said(self._calls.cancel(id, position=position, at=at))

    def metric(
        self, id: str, name: str, value: float, *, position: int | None = None, at: Any = None
    ) -> None:
        """Record another number about a decision. It is reported, and nothing learns from it."""
        self._said(self._calls.metric(id, name, value, position=position, at=at))

    def _said(self, started: Started) -> str:
        return self._desk.submit(started.ticket).word

    def close_windows(self, at: Any = None) -> None:
        """Close all windows that end now, or by the time `at` with clock="events"."""
        if at is not None and self.declaration.clock == "wall":
            raise ValueError("this loop follows the wall clock: leave at= out")
        self._desk.submit(Ticket("advance", None if at is None else moment(at, 0.0)))

    def wait_until_trained(self, timeout: float | None = None) -> bool:
        """Wait until all that is due is trained; return False after `timeout` seconds."""
        if timeout is not None:
            timeout = validate.nonnegative("timeout", timeout, "seconds to wait")
        return self._desk.wait_until_trained(timeout)

    def add_features(
        self,
        *,
        context: Mapping[str, Feature] | None = None,
        arm: Mapping[str, Feature] | None = None,
        interactions: Sequence[tuple[str, str]] = (),
    ) -> None:
        """Add columns, from the next decision on. What was learnt stays."""
        features = self.features.grow(context=context, arm=arm, interactions=interactions)
        self._desk.grow(features)

    def shadow(
        self,
        name: str,
        *,
        policy: type[RowPolicy] | RowPolicy | None = None,
        features: Features | None = None,
        exploration: float | Rule | None = None,
        half_life: Any = None,
        history: bool = True,
    ) -> None:
        """Add a candidate that learns from every example and never acts. It has a policy, features
        or exploration of its own; the rest is as in the live policy. If only exploration differs,
        it begins with what the live policy knows. Otherwise it first learns what the log has, in
        this thread: it is then what it would be had it been there from the log's beginning. With
        history=False it begins with nothing. `decide` takes the columns of all candidates."""
        proposal.shadow(self._desk, name, policy, features, exploration, half_life, history)

    def trial(self, name: str, share: float = 0.1) -> None:
        """Give a candidate a share of decisions; 0 ends the trial. The log has the probabilities of
        the mixture, so all of it can still be evaluated, and differences show sooner."""
        promotion.trial(self._desk, name, share)

    def retire(self, name: str) -> None:
        """Remove a candidate. Its name stays taken."""
        promotion.retire(self._desk, name)

    def compare(self) -> Comparison:
        """Values of candidates, and differences from the live policy and the default, with bounds
        that hold however often you look."""
        return promotion.compare(self._desk)

    def promote(self, name: str, *, expected_live: str | None = None, force: bool = False) -> None:
        """Put a candidate in the place of the live policy, or let "live" act again instead of the
        default. Refused until the log proves that it is better than the policy that acts, and while
        it is proved worse in a metric of the guard. `force` needs no proof. `expected_live` names
        the policy that acts, as a check."""
        promotion.promote(self._desk, name, expected_live, force)

    def erase(self, *, key: str, relearn: bool = False) -> int:
        """Blank all that was logged about a key. What the learner has learnt from it stays, unless
        you let it `relearn` from the rest: a replay of the log. Returns how many events."""
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
        return export.frame(self._ledger, self._desk.now)

    def export(self, path: str | os.PathLike[str]) -> Path:
        """The same as a Parquet file."""
        return export.export(self._ledger, self._desk.now, path)

    def health(self, *, since: Any = None) -> Health:
        """How the loop is doing, from its latest 10,000 events. `since`, a date, also asks which
        terms have moved since then by more than their uncertainty."""
        return health(self._desk, None if since is None else moment(since, 0.0))

    def check(self) -> None:
        """Raise if the loop has stopped: nothing can be stored or trained any more."""
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
    def policy(self) -> RowPolicy:
        """The policy that is live now: as declared, grown, or a promoted candidate's."""
        return self._desk.learner.version.policy

    @property
    def acts(self) -> str:
        """Who acts: "live", the name of a promoted candidate, or "default"."""
        return promotion.acts(self._desk)

    @property
    def candidates(self) -> dict[str, Shadow]:
        """Candidates as they were declared, by name."""
        return {one.shadow.name: one.shadow for one in [*self._desk.panel.candidates.values()]}

    @property
    def counts(self) -> dict[str, int]:
        """How many events of each kind there were, and what became of them."""
        return dict(self._desk.clerk.book.counts)

    @property
    def lag(self) -> Lag:
        """Examples that wait to be trained, and for how many seconds the oldest has."""
        return self._desk.trainer.lag

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
