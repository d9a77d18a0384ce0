"""What a loop is, as its log says: an immutable value that is replaced as a whole."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from driftbandit.features import Features
from driftbandit.loop.config import Declaration, Settings
from driftbandit.loop.errors import reading
from driftbandit.loop.exploration import Rule
from driftbandit.loop.state.asking import Asking
from driftbandit.loop.state.catalogue import Catalogue, CatalogueArm
from driftbandit.loop.state.reward_windows import RewardWindows
from driftbandit.loop.state.spending import Spending
from driftbandit.loop.storage.events import CHANGES, LIVE, Event
from driftbandit.loop.storage.ledger import Ledger
from driftbandit.policies.growth import grown_policy
from driftbandit.policies.rows import RowPolicy
from driftbandit.recipe import Recipe
from driftbandit.reward import Reward
from driftbandit.validate import show


class Version:
    """Features at some time, and the policy that learns from their rows. `reign` is the seq of the
    event that promoted it, 0 for what was declared; `policy_name` is the candidate that it was."""

    def __init__(
        self,
        features: Features,
        policy: RowPolicy,
        half_life: Any,
        reign: int = 0,
        policy_name: str = LIVE,
    ) -> None:
        self.features, self.policy, self.half_life = features, policy, half_life
        self.reign, self.policy_name = reign, policy_name
        self.timed = half_life is not None  # whether memory ages in time
        own = features.version  # a promoted policy may have the features of the one before
        self.name = f"{own}@{reign}" if reign else own

    def is_like(self, other: Version) -> bool:
        """Return whether a learner of one is a learner of the other."""
        mine, theirs = ((v.features, v.policy, v.half_life) for v in (self, other))
        return mine == theirs

    def grown(self, features: Features, reward: Reward) -> Version:
        policy = grown_policy(self.policy, features.problem(reward))
        return Version(features, policy, self.half_life, self.reign, self.policy_name)

    def promoted(self, seq: int) -> Version:
        return Version(self.features, self.policy, self.half_life, seq, self.policy_name)


@dataclass(frozen=True, kw_only=True)
class Shadow(Recipe):
    """A candidate as it was declared. Without `exploration` it explores as the loop does; with
    `history` it has learnt what the log had of the time before it."""

    name: str
    features: Features
    policy: RowPolicy
    half_life: Any = None
    exploration: Rule | None = None
    history: bool = False  # older logs do not say
    former: ClassVar[Mapping[str, str]] = {"rule": "exploration"}

    def __post_init__(self) -> None:
        parts = (self.features, Features), (self.policy, RowPolicy), (self.exploration, Rule | None)
        for given, kind in parts:
            if not isinstance(given, kind):
                raise ValueError(f"a candidate's parts are of another type, got {show(given)}")

    @property
    def version(self) -> Version:
        return Version(self.features, self.policy, self.half_life, policy_name=self.name)


@dataclass(frozen=True)
class Definition:
    """What a ledger says a loop is, after the event `seq`."""

    declaration: Declaration
    settings: dict[int, Settings]  # by the seq of their event, oldest first
    versions: dict[str, Version]  # of the live policy by name, oldest first
    shadows: dict[int, Shadow]  # all candidates that ever were, by the seq of their event
    asking: dict[int, Asking]  # who is asked about decisions, from some event on, oldest first
    seq: int
    spending: Spending  # of error, over all comparisons
    catalogue: Catalogue | None = None  # None: every decision brings its arms
    current: tuple[int, Settings] = field(init=False)  # settings that hold now, and their seq
    costs: frozenset[str] = field(init=False)  # columns of arms that are for budgets, now or before

    def __post_init__(self) -> None:
        now = next(reversed(self.settings.items()), (0, Settings()))
        object.__setattr__(self, "current", now)
        costs = frozenset(name for each in self.settings.values() for name in each.budget)
        object.__setattr__(self, "costs", costs)

    @property
    def watched(self) -> bool:
        """Whether a guard has ever compared the live policy with the default."""
        return any(each.guard for each in self.settings.values())

    def windows(self, since: int = 1) -> RewardWindows:
        """Return the reward windows before the event `since`, with no decision open."""
        declared = self.declaration
        reward, by_events = declared.reward, declared.clock == "events"
        made = RewardWindows(
            reward.wait,
            reward.missing,
            declared.retention,
            by_events=by_events,
            pairs=declared.learns_preferences,
        )
        before = [each for seq, each in self.asking.items() if seq < since]
        made.ask_as(before[-1] if before else Asking())
        return made

    @property
    def asks(self) -> Asking:
        """Who is asked about decisions now."""
        return next(reversed(self.asking.values()))

    def after(self, event: Event) -> Definition:
        """Return what the loop is after one more event; the same value if that is known."""
        if event.seq <= self.seq:
            return self
        with reading(f"event {event.seq}"):
            return self._after(event)

    def _after(self, event: Event) -> Definition:
        data, kind = event.read(), event.kind
        now = replace(self, seq=event.seq)
        if kind in ("configure", *CHANGES):
            asking = {**self.asking, event.seq: self.asks.after(event)}
            now = replace(now, asking=asking, spending=self.spending.after(event))
        if kind == "configure":
            now = now._with_settings(event.seq, data)
        elif kind == "arm" and self.catalogue is not None:
            now = replace(now, catalogue=self.catalogue.after(data))
        elif kind in ("retire", "promote"):
            now = now._with_settings(event.seq, data.settings)
        if kind == "shadow":
            now = replace(now, shadows={**self.shadows, event.seq: Recipe.from_dict(data)})
        elif kind == "add_features":
            features = Recipe.from_dict(data.features)
            now = now._with_version(self.latest.grown(features, self.declaration.reward))
        elif kind == "promote" and data.name != LIVE:
            chosen = next(s for s in reversed(self.shadows.values()) if s.name == data.name)
            now = now._with_version(chosen.version.promoted(event.seq))
        return now

    @property
    def latest(self) -> Version:
        """The newest version of the live policy."""
        return next(reversed(self.versions.values()))

    def _with_settings(self, seq: int, data: dict[str, Any]) -> Definition:
        return replace(self, settings={**self.settings, seq: Recipe.from_dict(data)})

    def _with_version(self, version: Version) -> Definition:
        rest = {name: each for name, each in self.versions.items() if name != version.name}
        return replace(self, versions={**rest, version.name: version})


def _declared(event: Event) -> Definition:
    declaration: Declaration = Recipe.from_dict(event.read())
    first = Version(declaration.features, declaration.timed_policy, declaration.half_life)
    asking = {event.seq: Asking().after(event)}
    arms = declaration.arms
    own = None if arms is None else {name: CatalogueArm(row) for name, row in arms}
    catalogue = None if own is None else Catalogue(own)
    return Definition(
        declaration, {}, {first.name: first}, {}, asking, event.seq, Spending(), catalogue
    )


def define(events: Iterable[Event]) -> Definition | None:
    """Return what lasting events say, in order; None if there are none."""
    found: Definition | None = None
    for event in events:
        if found is None:
            with reading(f"event {event.seq}"):
                found = _declared(event)
        else:
            found = found.after(event)
    return found


def defined(ledger: Ledger) -> Definition:
    """Return what the loop of a ledger is; it must be declared."""
    found = define(ledger.lasting())
    assert found is not None
    return found


class CurrentDefinition:
    """The definition of an open loop. The thread that writes replaces it; others read `now`."""

    def __init__(self, now: Definition) -> None:
        self.now, self._replacing = now, threading.Lock()

    def apply(self, event: Event) -> None:
        """Take one more event into account."""
        with self._replacing:
            self.now = self.now.after(event)
