"""Candidates beside the live learner, and the totals that say which policy is better.

They are trained on what the live learner is trained on, and asked about a decision when the trainer
passes its event, so they are a function of the log, too. A loop without candidates and without a
guard has an empty set.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection
from typing import Any

from driftbandit.features import Features
from driftbandit.loop.candidates.ballots import Ballots
from driftbandit.loop.candidates.candidate import Candidate
from driftbandit.loop.candidates.scoring import (
    Ballot,
    LoggedDecision,
    asked,
    live_vote,
    logged_decision,
    lost,
    metrics,
    reward_by_mean,
    reward_by_model,
    score,
    split,
)
from driftbandit.loop.candidates.totals import Row, Totals, TrialPlan
from driftbandit.loop.config import MODES, Settings
from driftbandit.loop.deciding import slates
from driftbandit.loop.deciding.choose import probe
from driftbandit.loop.deciding.types import Request, View, Vote, Votes
from driftbandit.loop.learning.key_cache import StoredRows
from driftbandit.loop.learning.learner import IN_TABLE, Learner, Packing, digest
from driftbandit.loop.state.definition import CurrentDefinition
from driftbandit.loop.state.reward_windows import Example, Lost, Note
from driftbandit.loop.storage.events import DEFAULT, LIVE, Event
from driftbandit.loop.storage.key_rows import RowBatch

LOOK = 100  # rows from one look of the guard to the next
RULE = 2  # of comparisons; what was compared by another rule is not taken over

ViewOf = Callable[[str, Learner], View]  # a candidate as it is asked


class CandidateSet:
    """Hold the live learner's lock while it changes or votes. `on_look` is called
    with the totals once in a while, for the guard."""

    def __init__(self, definition: CurrentDefinition) -> None:
        self.definition, self.candidates = definition, dict[str, Candidate]()
        self.demoted, self.skipped = False, Counter[str]()  # examples that compared no policies
        self.on_look: Callable[[Totals], None] | None = None
        self._totals, self._rows = Totals(), list[Row]()  # rows that are not added yet
        self._unseen = 0  # rows since the guard looked
        self._ballots = Ballots()
        self._switched = 0  # the event that last changed who acts
        self._ended = list[int]()  # learners whose rows of keys are not needed any more

    @property
    def active(self) -> bool:
        """Whether there is anything to compare."""
        return bool(self.candidates) or self.definition.now.watched

    @property
    def waiting(self) -> int:
        """How many open decisions have votes."""
        return len(self._ballots)

    def read(self, features: Features, request: Request) -> Request:
        """Return what the live policy reads of a request; other columns are for candidates, or for
        policies that are gone."""
        definition = self.definition.now
        if not definition.shadows:
            unread = definition.costs.difference(features.arm)
            return slates.without(request, unread, definition.catalogue) if unread else request
        known = [each.features for each in definition.versions.values()]
        known += [each.features for each in definition.shadows.values()]
        slates.check_columns(known, request, definition.costs)
        return slates.read_by(features, request)

    def probe(self, settings: Settings, learner: Learner) -> None:
        """Raise if a policy could not vote with these settings: training must not fail later."""
        budget = bool(settings.budget)
        probe(settings.exploration, learner.bandit, budget)
        for one in [*self.candidates.values()]:
            probe(one.exploration(settings), one.learner.bandit, budget)

    def votes(self, settings: Settings, request: Request, role: str, view: ViewOf) -> Votes:
        """Return what candidates on trial would do; slates and holdouts have no trial."""
        found: dict[str, Vote] = {}
        if request.k is None and role in MODES:
            for name in settings.trials:
                one = self.candidates.get(name)
                X = one.rows(request) if one else None
                if one and X is not None:
                    found[name] = one.vote(X[0], settings, request, view(name, one.learner))
        return found

    def note(self, note: Note, event: Event, learner: Learner) -> None:
        """Ask every policy about a decision that was made, or count one that gives no example."""
        logged = logged_decision(event, self.definition.now)
        if isinstance(note, Lost):
            self._lose(note, logged, learner)
        elif self._ballots.passes(note.decision) and not self._not_comparable(logged, learner):
            self._ballots.put(note.decision, asked(logged, event.at, learner, self.candidates))

    def _lose(self, note: Lost, logged: LoggedDecision, learner: Learner) -> None:
        ballot = self._ballots.take(note.decision, (LIVE, *self.candidates))
        if note.why == "late":  # its votes are gone, but for those of a trial, which are logged
            ballot = {} if self._ballots.passes(note.event) else None
        if ballot is None or self._not_comparable(logged, learner):
            return
        arms = [str(name) for name in logged.request.names]
        self._totals.lost.add(note.why, arms, logged.h, logged.chosen)
        self._append(lost(logged, ballot, note.why, self._totals), logged)

    def learn(self, example: Example, event: Event, learner: Learner) -> None:
        """Compare the policies in a decision, then train the candidates."""
        logged = logged_decision(event, self.definition.now)
        if why := self._compare(example, logged, learner):
            self.skipped[why] += 1
        choice = logged.answer.choices[example.position or 0]
        for one in self.candidates.values():
            one.train(example, one.rows(logged.request), choice)

    def _compare(self, example: Example, logged: LoggedDecision, learner: Learner) -> str:
        """Add a row to the totals, or return why there is none."""
        names = (LIVE, *self.candidates)
        ballot = self._ballots.take(example.decision, names) or {}
        since = self.definition.now.asks.since
        if not self.candidates and logged.settings.guard is None:
            return "unwatched"
        if since is None or example.decision < since:
            return "earlier version"
        return self._score(example, logged, learner, ballot)

    def _score(
        self, example: Example, logged: LoggedDecision, learner: Learner, ballot: Ballot
    ) -> str:
        older = self._not_comparable(logged, learner)
        same = logged.version == learner.version.name and example.decision > self._switched
        splits = logged.splits and same and not self.demoted  # both sides of the draw are there
        outcomes = {} if older and not splits else metrics(example, logged, self._totals)
        if splits:
            mean = reward_by_mean(example, logged, learner, self._totals)
            self._append(split(logged, {"": mean, **outcomes}), logged)
        if older:
            return "" if splits else older
        live = live_vote(logged, ballot)
        if live is None:
            return "not asked"
        outcomes[""] = reward_by_model(example, logged, learner)
        self._append(score(logged, ballot, live, outcomes, self._totals), logged)
        return ""

    def _append(self, row: Row, logged: LoggedDecision) -> None:
        """Keep a row; a candidate whose trial was planned anew since begins anew with it."""
        plans = logged.settings.plans
        for name in {first for first, _ in row.pairs if first in self.candidates}:
            plan, now = TrialPlan(*plans.get(name, ())), self._totals.plans.get(name, TrialPlan())
            if plan.stretch > now.stretch:
                self.add_up().begin(name, plan)
            elif plan.stretch < now.stretch:  # decided before its trial
                pairs = {pair: both for pair, both in row.pairs.items() if pair[0] != name}
                row = row._replace(pairs=pairs)
        self._rows.append(row)
        self._unseen += 1

    def _not_comparable(self, logged: LoggedDecision, learner: Learner) -> str:
        """Return why policies cannot be compared in a decision; "" if they can."""
        older = logged.version != learner.version.name
        return logged.not_comparable or ("older policy" if older else "")

    def add_up(self) -> Totals:
        """Return the totals of all rows. Many rows are added at once: that is ten times faster, and
        changes no bit."""
        rows, self._rows = self._rows, []
        self._totals.add(rows)
        return self._totals

    def look(self) -> None:
        """Let the guard look at the totals, once in a while."""
        if self._unseen >= LOOK:
            self._unseen = 0
            totals = self.add_up()
            if self.on_look:
                self.on_look(totals)

    def admit(self, one: Candidate, event: Event, learner: Learner) -> None:
        """Add a candidate; from here on it is compared."""
        self.candidates[one.shadow.name] = one
        learner.count(event)

    def switch(self, event: Event, learner: Learner) -> None:
        """Let a candidate go or take over, or the default; or let comparisons begin anew."""
        totals = self.add_up()
        if event.kind == "recount":
            self._forget_all()
        elif event.kind == "demote":
            totals.forget(LIVE, DEFAULT)
        else:
            name = event.read().name
            if event.kind == "retire":
                self._end(name)
            elif name != LIVE:
                learner.become(self.candidates[name].learner, event)
                self._end(name)
                self._forget_all()
            else:
                totals.forget(LIVE, DEFAULT)
        if event.kind in ("demote", "promote"):
            self.demoted, self._switched = event.kind == "demote", event.seq
        learner.count(event)

    def _forget_all(self) -> None:
        self._totals, self._rows = Totals(), []
        self._ballots.clear()

    def _end(self, name: str) -> None:
        home = self.candidates.pop(name).learner.home
        if home is not None:
            self._ended.append(home)
        self._totals.drop(name)

    def drop(self, key: str, decisions: Collection[int]) -> None:
        """Forget what was learnt of one key alone, and votes about its decisions."""
        self._ballots.drop(decisions)
        for one in self.candidates.values():
            one.learner.drop(key)

    def state(self, packing: Packing | None = None) -> tuple[dict[str, Any], bytes]:
        """Return a checkpoint, as a learner's."""
        both = [one.state(packing) for one in self.candidates.values()]
        about = {
            "candidates": [each for each, _ in both],
            "rule": RULE,
            "passed": self._ballots.passed,
            "switched": self._switched,
            "totals": self.add_up().state(),
            "demoted": self.demoted,
            "skipped": dict(self.skipped),
        }
        if packing is not None and packing.rows == IN_TABLE:
            packing.batches += [RowBatch(home, whole=True) for home in self._ended]
            self._ended.clear()
        elif packing is not None:
            about["ended"] = self._ended
        return about, b"".join([*(state for _, state in both), self._ballots.state()])

    def load(self, about: dict[str, Any], state: bytes, stored: StoredRows | None = None) -> None:
        """Go on from a checkpoint."""
        definition = self.definition.now
        self._ended = list(about.get("ended", ()))
        self.candidates.clear()
        for each in about["candidates"]:
            shadow = definition.shadows[each["shadow"]]
            one = Candidate(each["shadow"], shadow, definition.declaration)
            own, state = state[: each["size"]], state[each["size"] :]
            one.load(each, own, stored)
            self.candidates[shadow.name] = one
        self._forget_all()
        self.demoted, self.skipped = about["demoted"], Counter(about["skipped"])
        if about.get("rule") == RULE:
            self._totals.load(about["totals"])
            self._switched = about["switched"]
            self._ballots.load(about["passed"], state)

    @property
    def digest(self) -> str:
        """A fingerprint of all of it: equal only if every bit is."""
        about, state = self.state()
        text = json.dumps(about, sort_keys=True).encode()
        return digest(text + state)
