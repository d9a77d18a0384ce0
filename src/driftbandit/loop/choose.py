"""How a loop decides: rule, mode and holdout give a probability to every arm."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from driftbandit.features import Features
from driftbandit.loop.decision import Answer, Request
from driftbandit.loop.declaration import Settings
from driftbandit.loop.learner import Learner, View
from driftbandit.loop.rules import pick, uniform
from driftbandit.policies.base import Floats


class Asked(NamedTuple):
    """Who asks: what the random choice depends on."""

    seed: int
    id: str
    key: str | None


def role(settings: Settings, request: Request, asked: Asked) -> str:
    """Whether the rule decides, or the default is played."""
    aside = settings.mode == "apprentice" or settings.holdout > 0.0
    if aside and request.default is None:
        raise ValueError(
            f"with mode={settings.mode!r} and holdout={settings.holdout:g} every decision needs a "
            "default: pass default=, the arm that is played today"
        )
    if not request.names:
        return "empty"
    if settings.holdout and held_out(settings, asked):
        return "holdout"
    return settings.mode


def held_out(settings: Settings, asked: Asked) -> bool:
    """Whether a key is in the share that always gets the default; without a key each decision is
    drawn on its own."""
    who = asked.id if asked.key is None else asked.key
    return uniform(asked.seed, who, "holdout") < settings.holdout


def probabilities(
    settings: Settings, request: Request, role: str, asked: Asked, X: Floats, view: View
) -> Floats:
    """Of every arm."""
    if role == "live":
        return settings.rule.probabilities(view.bandit, X, words(asked, view))
    share = settings.rule.share if role == "apprentice" else 0.0
    p = np.full(len(X), share / len(X))
    default = request.names.index(request.default)  # type: ignore[arg-type]
    p[default] = -1.0
    p[default] = -math.fsum(p.tolist())  # so that all add up to 1, as exactly as floats can
    return p


def words(asked: Asked, view: View) -> tuple[int | str, ...]:
    return asked.seed, asked.id, view.bandit.policy.name


class Choice(NamedTuple):
    """An answer, and what it came from."""

    answer: Answer
    features: Features
    view: View
    X: Floats
    theta: Floats


def choose(
    learner: Learner, settings: Settings, request: Request, asked: Asked, at: float
) -> Choice:
    """Decide with what the learner knows now."""
    played = role(settings, request, asked)
    while True:
        version = learner.version
        X = _rows(version.features, request)
        with learner.lock:
            if learner.version is not version:  # it has grown meanwhile
                continue
            view = learner.view(at)
            theta = view.bandit.theta.copy()
            if not request.names:
                return Choice(Answer(None, [], played), version.features, view, X, theta)
            p = probabilities(settings, request, played, asked, X, view)
        answer = Answer(pick(p, words(asked, view)), p.tolist(), played)
        return Choice(answer, version.features, view, X, theta)


def _rows(features: Features, request: Request) -> Floats:
    if request.names:
        return features.encode(request.context, request.arms)
    return np.empty((0, features.size))
