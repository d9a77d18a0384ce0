"""Shards of a keyed loop: what workers do with a stretch of its ledger. See `spread`.

| task | | when |
|---|---|---|
| `encoded` | examples of a shard as rows of numbers | at any time |
| `populated` | the population goes on; what its new keys begin with | after the stretch before |
| `trained` | the learners of a shard go on | after the stretch before, and the population |

Each ends with a checkpoint, from which the next goes on, wherever that is.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from driftbandit.evidence.reading.chunk import Floats
from driftbandit.evidence.reading.ledger import Where
from driftbandit.loop.candidates.candidate_set import CandidateSet
from driftbandit.loop.learning.keyed import Keyed, KeyLearner, born
from driftbandit.loop.learning.learner import Learner
from driftbandit.loop.state.definition import CurrentDefinition, Definition
from driftbandit.loop.state.reward_windows import Example
from driftbandit.loop.storage.events import Event
from driftbandit.loop.training.trainer import CHUNK, Trainer

Checkpoint = tuple[dict[str, Any], bytes]  # what `Learner.state` gives and `load` takes
Births = dict[str, tuple[Floats, float]]  # by key: the row it begins with, and when it was trained


class Part(NamedTuple):
    """Examples of one shard in a stretch, and their rows (n, d): NaN where no arm was chosen."""

    examples: list[Example]
    X: Floats

    def pairs(self) -> Iterator[tuple[Example, Floats | None]]:
        for example, x in zip(self.examples, self.X):
            yield example, None if np.isnan(x[0]) else x


class Population(NamedTuple):
    """The population after a stretch, keys that are not born yet, and births by shard."""

    checkpoint: Checkpoint
    waiting: frozenset[str]
    births: list[Births]


class Notes(Learner):
    """Takes down what it is trained."""

    taken: list[Floats]

    def train(self, example: Example, x: Floats | None) -> None:
        features = self.version.features
        if x is None:
            x = np.full(features.size, np.nan)
        self.taken.append(x if x.size == features.size else features.pad(x))


class Parents(Keyed):
    """The population alone, and what keys begin with that wait for their first example."""

    waiting: set[str]
    births: Births

    def _train_own(self, key: str, example: Example, x: Floats) -> None:
        if key in self.waiting:
            self.waiting.remove(key)
            self.births[key] = born(self.policy, self.row), self.last


class Children(Keyed):
    """The learners of some keys, without the population."""

    births: Births

    def train(self, example: Example, x: Floats | None) -> None:
        if x is not None and example.key is not None:
            self._train_own(example.key, example, x)

    def _begun(self, key: str) -> KeyLearner:
        row, last = self.births[key]
        return KeyLearner(self.policy, row.copy(), last)


def shard_of(key: str | None, shards: int) -> int:
    return zlib.crc32(str(key).encode()) % shards


def encoded(where: Where, examples: list[Example], version: str) -> Part:
    """The rows of examples, as long as this version of the features has them."""
    with where.opened() as (ledger, known):
        notes = Notes(known.declaration, known.versions[version])
        notes.taken = []
        unwatched = replace(known, settings={})  # rows are only encoded: no policies are compared
        trainer = Trainer(notes, CandidateSet(CurrentDefinition(unwatched)), ledger)
        for k in range(0, len(examples), CHUNK):
            trainer.train(examples[k : k + CHUNK])
    return Part(examples, np.array(notes.taken))


def populated(
    where: Where,
    before: Population,
    parts: list[Part],
    order: Sequence[int],
    new: frozenset[str],
    growth: Event | None,
) -> Population:
    """Train the population a stretch: `order` says which part each example is in."""
    with where.opened() as (_, known):
        parents = _loaded(Parents, known, before.checkpoint)
    parents.waiting, parents.births = set(before.waiting | new), {}
    each = [part.pairs() for part in parts]
    for shard in order:
        parents.train(*next(each[shard]))
    if growth is not None:
        parents.grow(growth)
    births: list[Births] = [{} for _ in parts]
    for key, birth in parents.births.items():
        births[shard_of(key, len(parts))][key] = birth
    return Population(parents.state(), frozenset(parents.waiting), births)


def births_of(population: Population, shard: int) -> Births:
    """A task of its own, so that no shard is sent the births of others."""
    return population.births[shard]


def trained(
    where: Where, before: Checkpoint, part: Part, births: Births, growth: Event | None
) -> Checkpoint:
    """Train the learners of a shard a stretch."""
    with where.opened() as (_, known):
        children = _loaded(Children, known, before)
    children.births = births
    for example, x in part.pairs():
        children.train(example, x)
    if growth is not None:
        children.grow(growth)
    return children.state()


def _loaded(kind: Any, known: Definition, checkpoint: Checkpoint) -> Any:
    about, state = checkpoint
    version = known.versions[about["version"]]
    learner = kind(known.declaration, version)
    learner.load(about, state, version)
    return learner
