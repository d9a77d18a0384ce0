"""The panel beside the live learner: candidates, and the tally of who is better.

It is trained what the live learner is trained and asked before anybody is told, so it is a function
of the log, too. A loop without candidates and without a guard has an empty panel.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

from driftbandit.features import Features
from driftbandit.loop.candidates.candidate import Candidate
from driftbandit.loop.candidates.hearing import hear, recorded
from driftbandit.loop.candidates.scoring import Case, case
from driftbandit.loop.candidates.totals import Row, Tally
from driftbandit.loop.config import MODES, Settings
from driftbandit.loop.deciding import slates
from driftbandit.loop.deciding.choose import Asked
from driftbandit.loop.deciding.mixture import Vote, Votes, probe
from driftbandit.loop.deciding.types import Request
from driftbandit.loop.learning.learner import Learner, View, digest
from driftbandit.loop.state.definition import Past
from driftbandit.loop.state.waiting import Example
from driftbandit.loop.storage.events import DEFAULT, LIVE, Event

LOOK = 100  # rows from one look of the guard to the next

Viewed = Callable[[str, Learner], View]  # a candidate as it is asked


class Panel:
    """Hold the live learner's lock while it changes or votes. `alarm` is told when the live policy
    is worse than the default."""

    def __init__(self, past: Past) -> None:
        self.past, self.candidates, self._tally = past, dict[str, Candidate](), Tally()
        self.demoted, self.skipped = False, Counter[str]()  # examples in which nobody was compared
        self.alarm: Callable[[Tally], None] | None = None
        self._rows: list[Row] = []  # not added yet
        self._unseen = 0  # rows since the guard looked

    @property
    def active(self) -> bool:
        """Whether there is anything to watch."""
        return bool(self.candidates) or any(s.guard for s in [*self.past.settings.values()])

    def read(self, features: Features, request: Request) -> Request:
        """What the live policy reads of a request; other columns are somebody else's, or were."""
        if not self.past.shadows:
            return request
        everybody = [each.features for each in [*self.past.versions.values()]]
        everybody += [each.features for each in [*self.past.shadows.values()]]
        slates.check(everybody, request)
        return slates.read_by(features, request)

    def probe(self, settings: Settings, learner: Learner) -> None:
        """Raise if somebody could not vote with these settings: training must not fail later."""
        probe(settings.exploration, learner.bandit)
        for one in [*self.candidates.values()]:
            probe(one.exploration(settings), one.learner.bandit)

    def votes(
        self, settings: Settings, request: Request, role: str, asked: Asked, view: Viewed
    ) -> Votes:
        """What candidates on trial would do; slates and holdouts have no trial."""
        found: dict[str, Vote] = {}
        if request.k is None and role in MODES:
            for name in settings.trials:
                one = self.candidates.get(name)
                X = one.rows(request) if one else None
                if one and X is not None:
                    found[name] = one.vote(X[0], settings, asked, view(name, one.learner))
        return found

    def watch(self, example: Example, event: Event, learner: Learner) -> None:
        """Ask everybody about a decision, then train the candidates."""
        about = case(event, self.past.declaration.seed, self.past.settings)
        X = {name: one.rows(about.request) for name, one in self.candidates.items()}
        if word := self._aside(about, learner):
            self.skipped[word] += 1
        else:
            able = {k: (self.candidates[k], x[0]) for k, x in X.items() if x is not None}
            row = hear(example, about, learner, able)
            self._rows.append(row._replace(metrics=recorded(example, about, self._tally)))
            self._unseen += 1
        choice = about.answer.choices[example.position or 0]
        for name, one in self.candidates.items():
            one.train(example, X[name], choice)

    def _aside(self, about: Case, learner: Learner) -> str:
        """Why nobody is compared; "" if they are."""
        if not self.candidates and about.settings.guard is None:
            return "unwatched"
        return about.aside or ("older policy" if about.version != learner.version.name else "")

    @property
    def tally(self) -> Tally:
        """The tally of all that was heard. Many rows are added at once: that is ten times faster,
        and changes no bit."""
        rows, self._rows = self._rows, []
        self._tally.add(rows)
        return self._tally

    def look(self) -> None:
        """Now and then the guard looks at the tally."""
        if self._unseen >= LOOK:
            tally, self._unseen = self.tally, 0
            if self.alarm:
                self.alarm(tally)

    def admit(self, one: Candidate, event: Event, learner: Learner) -> None:
        """A candidate comes; from here on it is compared."""
        self.past.shadows[event.seq] = one.shadow
        self.candidates[one.shadow.name] = one
        learner.count(event)

    def switch(self, event: Event, learner: Learner) -> None:
        """A candidate goes or takes over, or the default does."""
        data, tally = event.read(), self.tally
        if event.kind == "retire":
            self._end(data["name"])
        elif event.kind == "promote" and data["name"] != LIVE:
            learner.become(self.candidates[data["name"]].learner, event)
            self._end(data["name"])
            self._tally = Tally()
        else:
            tally.forget(LIVE, DEFAULT)
        self.demoted = event.kind == "demote" or (self.demoted and event.kind != "promote")
        learner.count(event)

    def _end(self, name: str) -> None:
        del self.candidates[name]
        self.tally.drop(name)

    def drop(self, key: str) -> None:
        """What was learnt of one key alone goes."""
        for one in self.candidates.values():
            one.learner.drop(key)

    def state(self) -> tuple[dict[str, Any], bytes]:
        """A checkpoint, as a learner's."""
        both = [one.state() for one in self.candidates.values()]
        about = {
            "candidates": [each for each, _ in both],
            "tally": self.tally.state(),
            "demoted": self.demoted,
            "skipped": self.skipped,
        }
        return about, b"".join(state for _, state in both)

    def load(self, about: dict[str, Any], state: bytes) -> None:
        """Go on from a checkpoint."""
        self.candidates.clear()
        for each in about["candidates"]:
            shadow = self.past.shadows[each["shadow"]]
            one = Candidate(each["shadow"], shadow, self.past.declaration)
            own, state = state[: each["size"]], state[each["size"] :]
            one.load(each, own)
            self.candidates[shadow.name] = one
        self._rows, self._tally = [], Tally()
        self._tally.load(about["tally"])
        self.demoted, self.skipped = about["demoted"], Counter(about["skipped"])

    @property
    def digest(self) -> str:
        """A fingerprint of all of it: equal only if every bit is."""
        about, state = self.state()
        about["tally"]["sums"].sort()
        text = json.dumps(about, sort_keys=True).encode()
        return digest(text + state)
