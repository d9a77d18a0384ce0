"""Loop: raw events in, decisions with known probabilities out."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, Unpack, overload

from driftbandit import validate
from driftbandit.durations import moment
from driftbandit.features import Feature, Features
from driftbandit.loop import arms, frames, promotion
from driftbandit.loop.calls import RECORDED, Calls
from driftbandit.loop.candidates.comparison import Comparison
from driftbandit.loop.config import (
    OPTIONS,
    Changeable,
    Declaration,
    Options,
    Settings,
    check_name,
    check_options,
)
from driftbandit.loop.deciding.types import Decision, Name, Slate
from driftbandit.loop.erasure import Erasure, erase, finish_earlier
from driftbandit.loop.exploration import Rule
from driftbandit.loop.opening import check_path, declared
from driftbandit.loop.reporting import export
from driftbandit.loop.reporting.audit import Audit, audit, audit_all
from driftbandit.loop.reporting.health import Health, health
from driftbandit.loop.runtime import Runtime
from driftbandit.loop.state.catalogue import CatalogueArm
from driftbandit.loop.state.definition import Shadow
from driftbandit.loop.storage.events import Repair
from driftbandit.loop.storage.ledger import Ledger
from driftbandit.loop.training.trainer import Lag
from driftbandit.loop.writing.pending import Pending
from driftbandit.policies.rows import RowPolicy


class Loop:
    """Makes decisions from raw values, learns from rewards that come late, and logs all of it.

    A call returns when its event is on the disk. Threads may share a loop. The declaration is in
    the ledger: `Loop("shop.db", name="front-page")` resumes the loop that is there.

    | option | |
    |---|---|
    {options}
    | `training` | "background", or "inline": a call also trains what is due |

    `runtime` and `ledger` are the parts of the open loop, for tests and tools; they may change
    between versions.

    The path ":memory:" is a ledger that goes away with the process, for tests and simulations.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        name: str = "loop",
        training: str = "background",
        **options: Unpack[Options],
    ) -> None:
        check_options(options)
        check_path(path, options)
        self.ledger = Ledger(path, check_name(name), alone=training == "inline")
        try:
            definition = declared(self.ledger, options)
            chosen = definition.current[1].changed(options)
            self.runtime = Runtime(self.ledger, definition, training)
            self._calls = Calls(self.runtime, lambda id: self.audit(id).whys)
        except BaseException:
            self.ledger.close()
            raise
        try:
            self.runtime.configure(chosen)
            finish_earlier(self.runtime)
        except BaseException:
            self.close()
            raise

    def configure(self, **options: Unpack[Changeable]) -> None:
        """Change exploration, mode, holdout, guard, shares, budget or sticky, from now on."""
        check_options(options)
        if fixed := [name for name in options if name not in Changeable.__annotations__]:
            raise TypeError(f"{fixed[0]!r} cannot be changed: use another name for a new loop")
        with self.runtime.switching:
            self.runtime.configure(self.settings.changed(options))

    @overload
    def decide(
        self,
        context: Mapping[str, Any],
        arms: Any = None,
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
        arms: Any = None,
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
        arms: Any = None,
        *,
        k: int | None = None,
        id: str | None = None,
        key: str | None = None,
        default: Name | Sequence[Name] | None = None,
        at: Any = None,
    ) -> Decision | Slate:
        """Choose among arms: a mapping from names to columns, or a list of columns. With `k` a
        slate: k of them in order, each position drawn among the arms that are left.

        If the loop has a catalogue (`Loop(arms=...)`), leave `arms` out, name some of its arms in a
        list, or pass a mapping with columns that hold for this decision alone.

        With an `id` of your own you can repeat a call: it gives the same answer. `key` says whose
        decision it is, for the holdout and for `erase`. `default` is the arm to play where the loop
        does not choose, and what is returned if there is no arm; for a slate, a list of k.

        If answers are `sticky`, a key that asks again within that time gets its decision again,
        with the same id, whatever the context is by then.
        """
        return self._calls.decide(context, arms, k=k, id=id, key=key, default=default, at=at)

    def record_fallback(
        self,
        context: Mapping[str, Any],
        arms: Any = None,
        *,
        id: str,
        default: Name | Sequence[Name],
        k: int | None = None,
        key: str | None = None,
        at: Any = None,
    ) -> str:
        """Store a decision that was made while the loop was away: its default was played, with
        probability 1. It trains like any other. Return "recorded", or "cancelled" if the loop
        has chosen another arm under this id: that arm was never shown, so it trains nothing."""
        return self._calls.record_fallback(
            context, arms, id=id, default=default, k=k, key=key, at=at
        )

    def submit_many(self, calls: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Any]:
        """Make many calls that wait for the disk only once: ("decide", {"context": ..., "arms":
        ...}), ("record_fallback", ...), ("reward", {"id": ..., "value": ...}), ("prefer", ...),
        ("cancel", {"id": ...}) or ("metric", ...), each with the options of that method. Return the
        answers in order, with the error in place of a call that is refused."""
        return self._calls.submit_many(calls)

    def reward(self, id: str, value: float, *, position: int | None = None, at: Any = None) -> str:
        """Store the reward of a decision, or of a `position` of a slate, counted from 0. Until the
        window of the decision closes, the last value counts.

        Return what became of it: "counted", "corrected", "late" (the decision is closed or
        cancelled), "held" (no such decision yet), or "unknown" if the loop holds no rewards.
        """
        return self._store(self._calls.reward(id, value, position=position, at=at))

    def prefer(self, id: str, other: int | str, *, at: Any = None) -> str:
        """Store which of two arms was better. Of a decision with k=2, `other` is the position of
        the better arm, 0 or 1: `prefer(pair.id, 1)`. Of two decisions that each played one arm, it
        is the id of the worse one: `prefer(winner.id, loser.id)`. They may differ in context and
        time.

        The loop is declared with reward=Preference(...). Until a window closes, that of the pair
        or the first of both decisions, the last word counts. Return what became of it, as `reward`
        does; a comparison with a decision that is not in the log raises."""
        said = {"over": other} if isinstance(other, str) else {"position": other}
        return self._store(self._calls.prefer(id, **said, at=at))

    def cancel(self, id: str, *, position: int | None = None, at: Any = None) -> str:
        """Mark a decision, or a position of a slate, as never shown: it trains nothing.
        Return "cancelled", or what `reward` would return."""
        return self._store(self._calls.cancel(id, position=position, at=at))

    def metric(
        self, id: str, name: str, value: float, *, position: int | None = None, at: Any = None
    ) -> str:
        """Record another number about a decision. It is reported, and no policy learns from it.
        Returns "recorded", or "unknown" if there is no such decision: then it counts nowhere."""
        return (
            self._store(self._calls.metric(id, name, value, position=position, at=at)) or RECORDED
        )

    def decide_frame(
        self, frame: Any, *, columns: frames.Columns | None = None, progress: Any = False
    ) -> frames.Batch:
        """Decide for every row of a frame (Polars, pandas, Arrow), some hundred at a time. A row
        has an `id`, and may have `context`, `arms`, `default`, `key` and `at`. Without a column
        `context`, the columns that the features declare are the context. `columns` maps these names
        to those of the frame: {"id": "visit", "context": ["age", "country"]}.

        Rows that are stored already give the same answer, so an interrupted job can run again."""
        given = [each.features.context for each in self.candidates.values()]
        declared = {
            name: one for each in (*given, self.features.context) for name, one in each.items()
        }
        return frames.decide_frame(self.submit_many, declared, frame, columns, progress)

    def reward_frame(
        self, frame: Any, *, columns: frames.Columns | None = None, progress: Any = False
    ) -> frames.Batch:
        """Store the rewards of a frame: a row has the `id` of a decision and a `reward`, and may
        have `position` and `at`. The answer of a row is that of `reward`."""
        return frames.reward_frame(self.submit_many, frame, columns, progress)

    def _store(self, pending: Pending) -> str:
        return self.runtime.writer.submit(pending).word

    def close_windows(self, at: Any = None) -> None:
        """Close all windows that end now, or by the time `at` with clock="events"."""
        if at is not None and self.declaration.clock == "wall":
            raise ValueError("this loop follows the wall clock: leave at= out")
        self.runtime.writer.submit(Pending("advance", None if at is None else moment(at, 0.0)))

    def wait_until_trained(self, timeout: float | None = None) -> bool:
        """Wait until all that is due is trained; return False after `timeout` seconds."""
        if timeout is not None:
            timeout = validate.nonnegative("timeout", timeout, "seconds to wait")
        return self.runtime.wait_until_trained(timeout)

    def add_features(
        self,
        *,
        context: Mapping[str, Feature] | None = None,
        arm: Mapping[str, Feature] | None = None,
        interactions: Sequence[tuple[str, str]] = (),
    ) -> None:
        """Add columns, from the next decision on. What was learnt stays."""
        features = self.features.grow(context=context, arm=arm, interactions=interactions)
        self.runtime.change("add_features", {"features": features.to_dict()})

    def add_arm(self, name: str, columns: Mapping[str, Any] | None = None) -> None:
        """Add an arm to the catalogue, from the next decision on, or give it other columns."""
        arms.add(self.runtime, name, {} if columns is None else columns)

    def pause_arm(self, name: str) -> None:
        """Pause an arm: decisions that name it choose among the others."""
        arms.pause(self.runtime, name)

    def resume_arm(self, name: str) -> None:
        """Offer a paused arm again."""
        arms.resume(self.runtime, name)

    def retire_arm(self, name: str) -> None:
        """Remove an arm from the catalogue: decisions that name it are refused."""
        arms.retire(self.runtime, name)

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
        this thread, and is then what it would be if it had been there from the beginning of the
        log. With history=False it begins with nothing. `decide` takes the columns of all
        candidates."""
        promotion.shadow(self.runtime, name, policy, features, exploration, half_life, history)

    def trial(self, name: str, share: float = 0.1, *, effect: float | None = None) -> None:
        """Give a candidate a share of decisions; 0 ends the trial. The log has the probabilities of
        the mixture, so all of it can still be evaluated, and differences show sooner.

        `effect` is the gain that you plan for, as a part of the live policy's reward: with 0.1, a
        gain of 10 % shows soonest. The first trial begins a new comparison, as does another effect;
        another share does not."""
        promotion.trial(self.runtime, name, share, effect)

    def retire(self, name: str) -> None:
        """Remove a candidate. Its name stays taken."""
        promotion.retire(self.runtime, name)

    def compare(self) -> Comparison:
        """Return the values of candidates, and their differences from the live policy and the
        default, with bounds that hold however often you look."""
        return promotion.compare(self.runtime)

    def promote(
        self,
        name: str,
        *,
        expected_live: str | None = None,
        force: bool = False,
        not_worse: Mapping[str, float] | None = None,
    ) -> None:
        """Put a candidate in the place of the live policy, or let "live" act again instead of the
        default. This is refused until the log proves that it is better than the policy that acts,
        and while it is proved worse in a metric of the guard. `not_worse` demands more: with
        {"cost": 0.05}, the log must prove that it costs at most 0.05 more. `force` needs no proof.
        `expected_live` names the policy that acts, as a check."""
        promotion.promote(self.runtime, name, expected_live, force, not_worse)

    def erase(self, *, key: str, relearn: bool = False) -> Erasure:
        """Remove all that was logged about a key, from the log, the file and the database's own
        copies. What the learner has learnt from it stays, unless you let it `relearn` from the
        rest, by a replay of the log while decisions go on. Return what was removed.

        Raises `UnfinishedErasureError` if another connection keeps the database from removing its
        copies now: the log has nothing of the key then, and the loop removes the copies as soon as
        it can, also after a restart."""
        if not isinstance(relearn, bool):
            raise ValueError(f"relearn must be True or False, got {validate.show(relearn)}")
        return erase(self.runtime, validate.text("key", key), relearn)

    def repair(self, at: Any = None) -> float:
        """Set the loop's clock to the time of this machine, or to `at` with clock="events", and
        return the time. Decisions that are open and dated later count as made then. Use it
        after the clock was wrong."""
        if at is not None and self.declaration.clock == "wall":
            raise ValueError("this loop follows the wall clock: set that right, and leave at= out")
        if at is None and self.declaration.clock == "events":
            raise ValueError("events are the clock of this loop: pass at=, the time it is")
        self.runtime.check_trains()
        when = moment(at, self.runtime.now())
        self._store(Pending("repair", when, payload=Repair("user")))
        return when

    def audit(self, id: str) -> Audit:
        """Compute a logged decision's probabilities again, from the log alone."""
        return audit(self.ledger, self.runtime.reread(), validate.text("id", id))

    def audits(self) -> Iterator[Audit]:
        """Compute the probabilities of all logged decisions again, in the order of what the learner
        knew."""
        return audit_all(self.ledger, self.runtime.reread())

    def log(self) -> Any:
        """Return all decisions as a Polars frame, each with what became of it."""
        return export.frame(self.ledger, self.runtime.reread())

    def export(self, path: str | os.PathLike[str]) -> Path:
        """Write what `log` returns to a Parquet file, and return its path."""
        return export.export(self.ledger, self.runtime.reread(), path)

    def health(self, *, since: Any = None) -> Health:
        """Return how the loop is doing, from its latest 10,000 events. With `since`, a date, also
        return which terms have moved since then by more than their uncertainty."""
        return health(self.runtime, None if since is None else moment(since, 0.0, "since"))

    def check(self) -> None:
        """Raise if the loop has stopped and can no longer store or train anything."""
        self.runtime.check()

    @property
    def declaration(self) -> Declaration:
        """The declaration of the loop."""
        return self.runtime.definition.now.declaration

    @property
    def seed(self) -> int:
        """The seed of all draws."""
        return self.declaration.seed

    @property
    def settings(self) -> Settings:
        """The settings by which decisions are made now."""
        return self.runtime.settings

    @property
    def features(self) -> Features:
        """The features as they are now, grown or not."""
        return self.runtime.learner.version.features

    @property
    def arms(self) -> Mapping[str, CatalogueArm]:
        """The arms of the catalogue by name, with their columns and whether they are paused."""
        return arms.catalogue(self.runtime).arms

    @property
    def policy(self) -> RowPolicy:
        """The policy that is live now: as declared, grown, or a promoted candidate's."""
        return self.runtime.learner.version.policy

    @property
    def acts(self) -> str:
        """The policy that acts: "live", the name of a promoted candidate, or "default"."""
        return promotion.acts(self.runtime)

    @property
    def candidates(self) -> dict[str, Shadow]:
        """The candidates by name, as they were declared."""
        return {
            one.shadow.name: one.shadow for one in [*self.runtime.candidates.candidates.values()]
        }

    @property
    def counts(self) -> dict[str, int]:
        """The number of events of each kind, and of what became of them."""
        return dict(self.runtime.windows.counts)

    @property
    def lag(self) -> Lag:
        """The number of examples that wait to be trained, and the seconds that the oldest has
        waited."""
        return self.runtime.training.lag

    @property
    def digest(self) -> str:
        """A fingerprint of the learner: equal for learners that are equal bit for bit."""
        return self.runtime.learner.digest

    @property
    def head(self) -> str:
        """The head of the ledger's chain, as "seq:hash". Keep it elsewhere: `driftbandit verify
        --head` then finds events that were cut off or rewritten."""
        return str(self.ledger.head)

    def close(self) -> None:
        """Stop the loop. Every event that was acknowledged is in the ledger already."""
        self.runtime.close()

    def __enter__(self) -> Loop:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise ValueError("a loop cannot be copied or sent elsewhere: open it where it is needed")

    def __repr__(self) -> str:
        return f"Loop({self.ledger.path!r}, name={self.ledger.name!r})"


Loop.__doc__ = str(Loop.__doc__).replace(
    "    {options}", "\n".join(f"    | `{name}` | {meaning} |" for name, meaning in OPTIONS.items())
)
