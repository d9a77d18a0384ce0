"""A study: environments x policies x seeds, where lists expand into sweeps."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from driftbandit.environments import Environment, Simulated
from driftbandit.lab.study.labels import labelled, nearest
from driftbandit.policies import Policy
from driftbandit.recipe import Recipe

PIECEWISE = "piecewise"  # environments that say how often theta jumps, and do not drift


class StudyEntry(BaseModel):
    """A policy or an environment of a study; whatever else it holds goes to its constructor."""

    model_config = ConfigDict(extra="allow", frozen=True)

    type: str
    label: str | None = None

    def variants(self, **defaults: Any) -> Iterator[tuple[dict[str, Any], list[str]]]:
        """The options of every combination of its lists, and which of them vary."""
        options = {**defaults, **(self.model_extra or {})}
        lists = {key: value for key, value in options.items() if isinstance(value, list)}
        for key, values in lists.items():
            if not values:
                raise ValueError(f"{key} = [] is a sweep over nothing: give it a value")
        varied = [key for key, values in lists.items() if len(values) > 1]
        for combination in itertools.product(*lists.values()):
            yield options | dict(zip(lists, combination)), varied


class PolicyEntry(StudyEntry):
    """`tuning` is "theory" (from_theory) or "practical" (the plain constructor)."""

    tuning: Literal["theory", "practical"] = "theory"
    only: tuple[str, ...] = ()  # where it plays: classes or bases, or PIECEWISE; empty for all
    seeds: int | None = Field(default=None, ge=1)  # fewer than the study's, where it is slow
    tune_on: int = Field(default=0, ge=0)  # as the study's, for this policy alone: a yardstick

    def plays(self, world: Environment) -> bool:
        """Return whether it is played in this environment."""
        known = {base.__name__ for base in type(world).__mro__}
        if world.problem.change_points is not None:
            known.add(PIECEWISE)
        return not self.only or not known.isdisjoint(self.only)

    def build(self, world: Environment, options: Mapping[str, Any]) -> Policy:
        """The policy with these options for an environment."""
        kind: Any = kind_of(self.type, Policy)
        arguments = {key: _revived(value) for key, value in options.items()}
        if self.tuning == "practical":
            return kind(problem=world.problem, **arguments)
        try:
            return kind.from_theory(world.problem, **arguments)
        except ValueError as error:
            if isinstance(world, Simulated):
                raise
            remedy = 'tuning = "practical" asks for nothing, only = ["Simulated"] avoids streams'
            raise ValueError(f"{error}; {world.name} tells nothing of it: {remedy}") from None


class Study(BaseModel):
    """A validated study."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(pattern=r"^[\w-]+$")
    title: str = ""
    plugins: tuple[str, ...] = ()  # modules that define custom classes
    horizon: int | list[int] = 5000
    seeds: int = Field(default=20, ge=1)
    first_seed: int = Field(default=0, ge=0)
    points: int = Field(default=250, ge=2)
    environments: tuple[StudyEntry, ...] = Field(min_length=1)
    policies: tuple[PolicyEntry, ...] = Field(min_length=1)
    tune_on: int = Field(default=0, ge=0)  # seeds for choosing each policy's best variant first

    def worlds(self) -> list[tuple[str, Environment, dict[str, Any]]]:
        """Label, environment and swept values of every environment."""
        return [world for entry in self.environments for world in self.worlds_of(entry)]

    def worlds_of(self, entry: StudyEntry) -> Iterator[tuple[str, Environment, dict[str, Any]]]:
        """Label, world and options of every variant of an entry."""
        kind: Any = kind_of(entry.type, Environment)
        for options, varied in entry.variants(horizon=self.horizon):
            world = kind(**{key: _revived(value) for key, value in options.items()})
            yield labelled(entry.label, world.name, options, varied), world, options

    def trials(self) -> list[Study]:
        """Smaller studies that choose among the variants of policies before they are judged, on
        seeds that are not evaluated."""
        groups: dict[int, list[PolicyEntry]] = {}
        for entry in self.policies:
            groups.setdefault(entry.tune_on or self.tune_on, []).append(entry)
        seeds = {"first_seed": 0, "points": 2}
        return [
            self.model_copy(update=seeds | {"seeds": n, "policies": tuple(entries)})
            for n, entries in groups.items()
            if n
        ]

    def contenders(self, world: Environment) -> list[tuple[str, Policy, dict[str, Any]]]:
        """Label, policy and options of every policy played in this environment."""
        return [found[:3] for found in self.contests(world)]

    def contests(self, world: Environment) -> list[tuple[str, Policy, dict[str, Any], int]]:
        """The contenders, and on how many seeds each is played."""
        return [found for entry in self.policies for found in self.contests_of(entry, world)]

    def contests_of(
        self, entry: PolicyEntry, world: Environment
    ) -> Iterator[tuple[str, Policy, dict[str, Any], int]]:
        """Label, policy, options and number of seeds of every variant that plays in this world."""
        if not entry.plays(world):
            return
        seeds = min(self.seeds, entry.seeds or self.seeds)
        for options, varied in entry.variants():
            policy = entry.build(world, options)
            apart = [] if self.merges(entry) else varied
            yield labelled(entry.label, policy.name, options, apart), policy, options, seeds

    def merges(self, entry: PolicyEntry) -> bool:
        """Whether the variants of a policy are one contender, of which the best is kept."""
        return entry.tune_on > 0 or self.tune_on > 0


def kind_of(name: str, base: type[Recipe]) -> type[Recipe]:
    """The class of this name, which must be a kind of `base`."""
    known = {k: v for k, v in Recipe.kinds(name).items() if issubclass(v, base) and v is not base}
    if name not in known:
        raise ValueError(
            f"unknown {base.__name__.lower()} {name!r}{nearest(name, known)} (a class of your own "
            'needs plugins = ["its_module"])'
        )
    return known[name]


def _revived(value: Any) -> Any:
    return Recipe.from_dict(value) if isinstance(value, Mapping) and "type" in value else value
