"""Past one machine: the ledger of a keyed loop, replayed by a Dask cluster.

All examples train the population, one after the other. The learner of a key begins with what it
has of the population at its first example, and from there on needs only examples of its own. So the
ledger is cut into stretches and the keys into shards. Every learner is trained on the same examples
in the same order as by one process: all shards together are equal to it, bit for bit.

| task of a worker | | when |
|---|---|---|
| `encoded` | examples of a shard as rows of numbers | at any time |
| `populated` | trains the population; what its new keys begin with | after the stretch before |
| `trained` | trains the learners of a shard | after the stretch before, and the population |

Each ends with a checkpoint, from which the next resumes, on whichever worker that is.
"""

from __future__ import annotations

import json
import logging
import os
import zlib
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from driftbandit import validate
from driftbandit.evidence.reading.chunk import Floats
from driftbandit.evidence.reading.ledger import Where
from driftbandit.loop.candidates.candidate_set import CandidateSet
from driftbandit.loop.learning.key_cache import KeyLearner
from driftbandit.loop.learning.keyed import Keyed
from driftbandit.loop.learning.learner import Learner, digest, fingerprint
from driftbandit.loop.state.definition import CurrentDefinition, Definition
from driftbandit.loop.state.reward_windows import Change, Example
from driftbandit.loop.storage.events import Event
from driftbandit.loop.training.replay import origin, unfold
from driftbandit.loop.training.trainer import CHUNK, Trainer
from driftbandit.recipe import Recipe

log = logging.getLogger("driftbandit.evidence")

STRETCH = 20_000  # examples
AHEAD = 3  # stretches that are under way at once

Checkpoint = tuple[dict[str, Any], bytes]  # what `Learner.state` gives and `load` takes
Births = dict[str, tuple[Floats, float]]  # by key: the row it begins with, and when it was trained


class ShardExamples(NamedTuple):
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

    def train(self, examples: Sequence[Example], rows: Sequence[Floats | None]) -> None:
        features = self.version.features
        for x in rows:
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
            self.births[key] = self.newborn(), self.last


class Children(Keyed):
    """The learners of some keys, without the population."""

    births: Births

    def learn(self, example: Example, x: Floats | None) -> None:
        if x is not None and example.key is not None:
            self._train_own(example.key, example, x)

    def _begun(self, key: str) -> KeyLearner:
        row, last = self.births[key]
        return KeyLearner(self.own_policy, row.copy(), last)


def shard_of(key: str | None, shards: int) -> int:
    return zlib.crc32(str(key).encode()) % shards


def encoded(where: Where, examples: list[Example], version: str) -> ShardExamples:
    """The rows of examples, as long as this version of the features has them."""
    with where.opened() as (ledger, known):
        notes = Notes(known.declaration, known.versions[version])
        notes.taken = []
        unwatched = replace(known, settings={})  # rows are only encoded: no policies are compared
        trainer = Trainer(notes, CandidateSet(CurrentDefinition(unwatched)), ledger)
        for k in range(0, len(examples), CHUNK):
            trainer.train(examples[k : k + CHUNK])
    return ShardExamples(examples, np.array(notes.taken))


def populated(
    where: Where,
    before: Population,
    parts: list[ShardExamples],
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
        parents.learn(*next(each[shard]))
    if growth is not None:
        parents.grow(growth)
    births: list[Births] = [{} for _ in parts]
    for key, birth in parents.births.items():
        births[shard_of(key, len(parts))][key] = birth
    return Population(parents.state(), frozenset(parents.waiting), births)


def births_of(population: Population, shard: int) -> Births:
    """Return the births of one shard, so that none is sent those of others."""
    return population.births[shard]


def trained(
    where: Where, before: Checkpoint, part: ShardExamples, births: Births, growth: Event | None
) -> Checkpoint:
    """Train the learners of a shard a stretch."""
    with where.opened() as (_, known):
        children = _loaded(Children, known, before)
    children.births = births
    for example, x in part.pairs():
        children.learn(example, x)
    if growth is not None:
        children.grow(growth)
    return children.state()


def _loaded(kind: Any, known: Definition, checkpoint: Checkpoint) -> Any:
    about, state = checkpoint
    version = known.versions[about["version"]]
    learner = kind(known.declaration, version)
    learner.load(about, state, version)
    return learner


def spread(where: Where, scheduler: str, workers: int | None) -> Keyed:
    """The learner of a keyed loop, trained by the workers of a cluster ("local": one here)."""
    count = None if workers is None else validate.count("workers", workers, "processes")
    with where.opened() as (ledger, known):
        if known.declaration.key is None:
            raise ValueError(
                "one learner learns one example after the other: only a loop with key= can be "
                "spread over workers; leave scheduler out"
            )
        known.declaration.timed_policy.warm()  # workers would race to compile
        state, changes = unfold(ledger, known, origin(ledger))
        assert isinstance(state.learner, Keyed)
        with connected(scheduler, count, known) as (client, plugins):
            work = _Work(client, where._replace(plugins=plugins), state.learner, count)
            for examples, growth in stretches(changes):
                work.submit(examples, growth)
            return work.whole(known)


@contextmanager
def connected(scheduler: str, workers: int | None, known: Definition) -> Iterator[tuple[Any, Any]]:
    """A cluster, and what its workers must import."""
    try:
        from distributed import default_client
    except ImportError:
        raise ImportError("a cluster needs Dask: pip install 'driftbandit[dask]'") from None
    from driftbandit.lab.run.plugin_files import PluginFiles
    from driftbandit.lab.run.workers import pool_of

    plugins = PluginFiles.of_recipes([json.dumps(known.declaration.to_dict())])
    with pool_of(workers or os.cpu_count() or 1, scheduler, plugins):
        yield default_client(), plugins


def stretches(changes: Iterable[Change]) -> Iterator[tuple[list[Example], Event | None]]:
    """Examples, and the growth of features that ends a stretch."""
    examples: list[Example] = []
    for change in changes:
        growth = change if isinstance(change, Event) else None
        if growth is not None and growth.kind != "add_features":
            raise ValueError(f"a cluster cannot replay {growth.kind!r}: leave scheduler out")
        if isinstance(change, Example):
            examples.append(change)
        if growth is not None or len(examples) == STRETCH:
            yield examples, growth
            examples = []
    if examples:
        yield examples, None


class _Work:
    """Tasks under way: futures of the population, and of the learners of each shard."""

    def __init__(self, client: Any, where: Where, start: Keyed, count: int | None) -> None:
        self.client, self.where = client, where
        self.count = count or max(1, len(client.scheduler_info()["workers"]))
        self.version, self.seen = start.version.features.version, set(start.bandits)
        whole = start.state()
        keys = whole[0]["keys"]
        self.population: Any = Population(_taken(whole, []), frozenset(), [])
        self.own: list[Any] = [
            _taken(whole, [k for k, key in enumerate(keys) if shard_of(key, self.count) == shard])
            for shard in range(self.count)
        ]
        self._waves: deque[list[Any]] = deque()

    def submit(self, examples: list[Example], growth: Event | None) -> None:
        """One stretch."""
        run = partial(self.client.submit, pure=False)
        order = [shard_of(each.key, self.count) for each in examples]
        parts = [run(encoded, self.where, m, self.version) for m in self._dealt(examples)]
        new = frozenset(each.key for each in examples if each.key is not None) - self.seen
        self.seen |= new
        args = self.where, self.population, parts, np.array(order, dtype=np.uint16), new, growth
        self.population = run(populated, *args)
        births = [run(births_of, self.population, k) for k in range(self.count)]
        each = zip(self.own, parts, births)
        self.own = [run(trained, self.where, *those, growth) for those in each]
        if growth is not None:
            self.version = Recipe.from_dict(growth.read().features).version
        self._keep_pace()

    def _dealt(self, examples: list[Example]) -> list[list[Example]]:
        """The examples of each shard."""
        out: list[list[Example]] = [[] for _ in self.own]
        for example in examples:
            out[shard_of(example.key, self.count)].append(example)
        return out

    def _keep_pace(self) -> None:
        """Memory holds a few stretches, not the whole ledger."""
        self._waves.append(self.own)
        if len(self._waves) > AHEAD:
            from distributed import wait

            first = self._waves.popleft()
            wait(first)
            for future in first:
                if future.status == "error":
                    future.result()

    def whole(self, known: Definition) -> Keyed:
        """All learners together."""
        population, *own = self.client.gather([self.population, *self.own])
        about, state = _joined(population.checkpoint, own)
        if about["fingerprint"] != fingerprint():
            log.info("the learner was trained elsewhere (%s)", about["fingerprint"])
        version = known.versions[about["version"]]
        learner = Keyed(known.declaration, version)
        learner.load(about, state, version)
        return learner


def _taken(whole: Checkpoint, chosen: Sequence[int]) -> Checkpoint:
    """The checkpoint with some of its keys, in this order."""
    about, head, rows = *whole[:1], *_parts(whole)
    keys, lasts = ([about[name][k] for k in chosen] for name in ("keys", "lasts"))
    more = rows[list(chosen)].tobytes()
    return about | {"keys": keys, "lasts": lasts, "own": digest(more)}, head + more


def _parts(whole: Checkpoint) -> tuple[bytes, Floats]:
    """The population's bytes, and the rows of all keys."""
    about, state = whole
    size, n = about["head"], len(about["keys"])
    rows = np.frombuffer(state[size:], dtype="<f8")
    return state[:size], rows.reshape(n, rows.size // max(n, 1))


def _joined(population: Checkpoint, own: Sequence[Checkpoint]) -> Checkpoint:
    """The population with the keys of all shards, in order."""
    about, head = population[0], _parts(population)[0]
    keys, lasts = ([k for each, _ in own for k in each[name]] for name in ("keys", "lasts"))
    rows = b"".join(_parts(each)[1].tobytes() for each in own)
    order = sorted(range(len(keys)), key=keys.__getitem__)
    return _taken((about | {"keys": keys, "lasts": lasts}, head + rows), order)
