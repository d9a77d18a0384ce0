"""Versions: what the live policy learns from, and how, from one time to the next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from driftbandit.features import Features
from driftbandit.loop.config import Declaration
from driftbandit.loop.exploration import Rule
from driftbandit.loop.storage.events import LIVE, Event
from driftbandit.policies.growth import grown_policy
from driftbandit.policies.rows import RowPolicy
from driftbandit.recipe import Recipe
from driftbandit.reward import Reward


class Version:
    """Features at some time, and the policy that learns from their rows. `reign` is the seq of the
    event that promoted it, 0 for what was declared; `who` is the candidate that it was."""

    def __init__(
        self,
        features: Features,
        policy: RowPolicy,
        half_life: Any,
        reign: int = 0,
        who: str = LIVE,
    ) -> None:
        self.features, self.policy, self.half_life = features, policy, half_life
        self.reign, self.who = reign, who

    @property
    def name(self) -> str:
        """The features' fingerprint; a promoted policy may have the features of the one before."""
        own = self.features.version
        return f"{own}@{self.reign}" if self.reign else own

    @property
    def timed(self) -> bool:
        """Whether memory ages in time."""
        return self.half_life is not None

    def is_like(self, other: Version) -> bool:
        """Whether a learner of one is a learner of the other."""
        mine, theirs = ((v.features, v.policy, v.half_life) for v in (self, other))
        return mine == theirs

    def grown(self, features: Features, reward: Reward) -> Version:
        policy = grown_policy(self.policy, features.problem(reward))
        return Version(features, policy, self.half_life, self.reign, self.who)

    def promoted(self, seq: int) -> Version:
        return Version(self.features, self.policy, self.half_life, seq, self.who)


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

    @property
    def version(self) -> Version:
        return Version(self.features, self.policy, self.half_life, who=self.name)


def shadows(events: Sequence[Event]) -> dict[int, Shadow]:
    """All candidates that ever were, by the seq of their event."""
    return {e.seq: Recipe.from_dict(e.read()) for e in events if e.kind == "shadow"}


def versions(declaration: Declaration, events: Sequence[Event]) -> dict[str, Version]:
    """All versions of the live policy by name, oldest first, from the events that made them."""
    current = Version(declaration.features, declaration.trained, declaration.half_life)
    found, known = {current.name: current}, {s.name: s for s in shadows(events).values()}
    for event in events:
        data = event.read() if event.kind in ("grow", "promote") else {}
        if event.kind == "grow":
            current = current.grown(Recipe.from_dict(data["features"]), declaration.reward)
        elif data and data["name"] != LIVE:
            current = known[data["name"]].version.promoted(event.seq)
        found[current.name] = current
    return found
