"""How a loop decides: rule, mode and holdout give a probability to every arm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from driftbandit.loop import exploration
from driftbandit.loop.config import Settings
from driftbandit.loop.deciding import slates
from driftbandit.loop.deciding.mixture import Vote, Votes, mixed
from driftbandit.loop.deciding.types import Answer, Request
from driftbandit.loop.exploration import draw
from driftbandit.loop.learning.learner import Learner, View
from driftbandit.loop.state.versions import Version
from driftbandit.loop.storage.events import LIVE
from driftbandit.policies.base import Floats, Ints

if TYPE_CHECKING:
    from driftbandit.loop.candidates.candidate_set import Panel

NOBODY: Votes = {}


class Asked(NamedTuple):
    """Who asks: what the random choice depends on. Or who says that the default was played
    `elsewhere`, because the loop could not be asked."""

    seed: int
    id: str
    key: str | None
    elsewhere: bool = False


def role(settings: Settings, request: Request, asked: Asked, demoted: bool) -> str:
    """Whether the rule decides, or the default is played."""
    if settings.may_stand_aside and request.default is None:
        given = "a guard" if settings.guard else f"mode={settings.mode!r}"
        raise ValueError(
            f"with {given} and holdout={settings.holdout:g} every decision needs a default: pass "
            "default=, the arm that is played today"
        )
    if not request.names:
        return "empty"
    if asked.elsewhere:
        return "fallback"
    if settings.holdout and held_out(settings, asked):
        return "holdout"
    return "apprentice" if demoted else settings.mode


def held_out(settings: Settings, asked: Asked) -> bool:
    """Whether a key is in the share that always gets the default; without a key each decision is
    drawn on its own."""
    who = asked.id if asked.key is None else asked.key
    return draw(asked.seed, who, "holdout") < settings.holdout


def decided(
    settings: Settings,
    request: Request,
    role: str,
    asked: Asked,
    X: Floats,
    view: View,
    votes: Votes = NOBODY,
    chosen: Sequence[int | None] | None = None,
) -> exploration.Sequence:
    """Arm and probabilities at every position, from rows X (k, K, size), and the `votes` of
    candidates in a trial. With what was `chosen` already, the probabilities that it had."""
    own = words(asked, view)

    def named(place: int) -> exploration.Words:
        return own if request.k is None else (*own, place)

    def acting(place: int, left: Ints) -> Floats:
        if role != "active":
            return _aside(
                settings.exploration.uniform if role == "apprentice" else 0.0, request, left
            )
        rows = X[place] if request.k is None else X[place, left]
        return settings.exploration.probabilities(view.bandit, rows, named(place))

    def at(place: int, left: Ints) -> Floats:
        p = acting(place, left)
        return mixed(p, settings.trials, votes) if votes else p

    def take(place: int, p: Floats) -> int:
        before = None if chosen is None else chosen[place]
        return exploration.pick(p, named(place)) if before is None else before

    return exploration.sequence(X.shape[0], X.shape[1], at, take)


def _aside(share: float, request: Request, left: Ints) -> Floats:
    """The first default that is left, but for a share of exploration."""
    p = np.full(len(left), share / len(left))
    places = (request.names.index(name) for name in request.defaults)
    default = next(k for place in places for k in np.flatnonzero(left == place))
    return exploration.completed(p, int(default))


def words(asked: Asked, view: View) -> exploration.Words:
    return asked.seed, asked.id, view.bandit.policy.name


class Choice(NamedTuple):
    """An answer, and what it came from."""

    answer: Answer
    version: Version
    view: View
    X: Floats  # (k, K, size)
    theta: Floats
    votes: Votes = NOBODY  # of the trial, the live policy's among them


class Ready(NamedTuple):
    """Rows of a request that were encoded beforehand, by the features of a version."""

    version: Version
    X: Floats  # (1, K, size)


def ready(learner: Learner, panel: Panel, requests: Sequence[Request]) -> list[Ready | None]:
    """Rows of many requests at once, which is faster. None are ready where one is a slate or has no
    arm, or is refused: then each is encoded on its own, and it shows which one it was."""
    version = learner.version
    if len(requests) < 2:
        return [None] * len(requests)
    try:
        read = [panel.read(version.features, each) for each in requests]
        if all(each.names and each.k is None for each in read):
            contexts, arms = [each.context for each in read], [each.arms for each in read]
            found = version.features.encode_each(contexts, arms)
            return [Ready(version, X[None]) for X in found]
    except ValueError:
        pass
    return [None] * len(requests)


def choose(
    learner: Learner,
    panel: Panel,
    settings: Settings,
    request: Request,
    asked: Asked,
    at: float,
    before: Ready | None = None,
) -> Choice:
    """Decide with what the learner knows now."""
    played = role(settings, request, asked, panel.demoted)
    while True:
        version = learner.version
        if before and before.version is version:
            X = before.X
        else:
            X = slates.rows(version.features, panel.read(version.features, request))
        with learner.lock:
            if learner.version is not version:  # it has grown meanwhile
                continue
            # in a trial everybody has had the same examples: one position is logged for all
            view = (learner.exact if settings.trials else learner.view)(at, asked.key)
            theta = view.bandit.theta.copy()
            if not request.names:
                nothing = [None for _ in request.defaults]
                answer = Answer([*nothing], [[] for _ in nothing], [*nothing], played)
                return Choice(answer, version, view, X, theta)
            votes = NOBODY
            if settings.trials:
                votes = panel.votes(
                    settings, request, played, asked, lambda _, one: one.exact(at, asked.key)
                )
            arms, p = decided(settings, request, played, asked, X, view, votes)
            if votes:
                live = settings.exploration.probabilities(view.bandit, X[0], words(asked, view))
                votes = {LIVE: Vote(live, view.aged), **votes}
        x = X[np.arange(len(arms)), arms]
        means = np.atleast_1d(version.policy.problem.family.mu(x @ theta)).tolist()
        answer = Answer(arms.tolist(), p.tolist(), means, played)
        return Choice(answer, version, view, X, theta, votes)
