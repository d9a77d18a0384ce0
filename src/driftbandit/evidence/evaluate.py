"""evaluate: what other policies would have earned, from a log of what was done."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from itertools import combinations
from typing import Any

import numpy as np

from driftbandit import validate
from driftbandit.estimators import shrinkage
from driftbandit.estimators.accumulators import Difference, Value
from driftbandit.estimators.increments import LoggedArms
from driftbandit.estimators.overlap import Overlap, overlap
from driftbandit.estimators.propensity_check import Ratios
from driftbandit.estimators.windows import WindowSums
from driftbandit.evidence.candidates import Fixed, players
from driftbandit.evidence.evaluation import Evaluation
from driftbandit.evidence.log import Examples, Log
from driftbandit.evidence.models import Model, model_of
from driftbandit.evidence.numbers import Found
from driftbandit.evidence.reading.chunk import Chunk, Floats
from driftbandit.evidence.spend import SpendSums
from driftbandit.evidence.trained_policy import TrainedPolicy
from driftbandit.loop.exploration import Rule
from driftbandit.progress import rounds_bar
from driftbandit.reward import Reward

CLIP = 20.0  # weights above are clipped in the clipped estimates


def evaluate(
    log: Log,
    candidates: Mapping[str, Any],
    *,
    over: str | None = None,
    model: Any = None,
    exploration: Rule | None = None,
    half_life: Any = None,
    level: float = 0.95,
    window: Any = None,
    clip: float = CLIP,
    seed: int = 0,
    progress: bool | Callable[[int], None] = False,
) -> Evaluation:
    """Estimate the values of candidates on a log, with intervals and differences, in one pass.

    Candidates are policies (or their classes), `Always("a")`, `Default()`, `Uniform()` and `Logged()`, by name. A
    policy learns from the log as it goes and is asked before it is told, so its value is that of
    *the policy trained on this log*. Nothing is used twice, and no sample is split. On the log of a
    loop with budgets it decides at the logged prices, and `spend` says what it would have spent.

    | option | |
    |---|---|
    | `over` | compare with this candidate alone; otherwise all pairs |
    | `model` | predicts rewards for DM and DR: a candidate's name, a policy, or "mean"; None takes the first candidate that learns |
    | `exploration` | how policies decide; their best arm if None |
    | `half_life` | policies forget in time, as in `Loop` |
    | `level` | confidence of every interval; of all differences together |
    | `window` | length of the curve's windows, such as "7d", or rows; a few dozen windows if None |
    | `clip` | largest weight in the clipped estimates |
    """  # noqa: E501
    if not isinstance(log, Log):
        raise ValueError(f"log must be Log.read(...), got {validate.show(log)}")
    level = validate.interval("level", level, "confidence, below 1", low=0.0, high=1.0 - 1e-9)
    clip = validate.positive("clip", clip, "largest weight")
    seed = validate.count("seed", seed, "of policies that draw", least=0)
    options = {"rule": exploration, "half_life": half_life, "wait": log.reward.wait, "seed": seed}
    playing = players(candidates, log.problem, options)
    work = _Pass(log.reward, playing, _pairs(list(playing), over), clip, window)
    work.model = model_of(model, playing, log.problem, options)
    with rounds_bar("evaluate", None, progress) as advance:
        for examples in log.examples():
            work.take(examples, log)
            advance(len(examples.chunk))
    _check_offered(playing, log)
    if not work.rows:
        raise ValueError(" ".join(["no row of the log can be used.", *log.counts.sentences()]))
    return Evaluation(log, level, clip, work.found(log))


def _check_offered(playing: Mapping[str, Fixed | TrainedPolicy], log: Log) -> None:
    """Refuse a candidate whose arm no row offers: it would be played at random in all of them."""
    for name, player in playing.items():
        if isinstance(player, Fixed) and player.absent and player.absent == log.counts.used:
            raise ValueError(f"candidate {name!r}: {player.never_offered(log.menus.names)}")


def _pairs(names: list[str], over: str | None) -> list[tuple[str, str]]:
    if over is None:
        return list(combinations(names, 2))
    if over not in names:
        raise ValueError(f"over must be one of {', '.join(names)}, got {validate.show(over)}")
    return [(name, over) for name in names if name != over]


class _Pass:
    """One pass over a log."""

    def __init__(
        self,
        reward: Reward,
        playing: dict[str, Fixed | TrainedPolicy],
        pairs: list[tuple[str, str]],
        clip: float,
        window: Any,
    ) -> None:
        self.unit = reward.range if reward.counts else 1.0  # of what learners are trained
        self.playing, self.model, self.clip = playing, Model(), clip
        self.values = {name: Value(clip) for name in playing}
        self.differences = {pair: Difference() for pair in pairs}
        self.overlaps = defaultdict[str | tuple[str, str], Overlap](Overlap)
        self.windows, self.ratios, self.spend = WindowSums(window), Ratios(), SpendSums()
        self.rows, self.complete, self.end = 0, True, -np.inf
        self.sizes: list[int] = []

    def take(self, examples: Examples, log: Log) -> None:
        """All rows train; those that no policy decided are in no sum."""
        chunk = examples.chunk
        arms, R = chunk.arms(log.least), examples.r / self.unit
        pi = {name: player.play(examples, arms) for name, player in self.playing.items()}
        q = self.model.predict(examples, arms, R)
        if chunk.aside.any():
            drawn = np.repeat(~chunk.aside, chunk.sizes)
            pi, q, R = {name: each[drawn] for name, each in pi.items()}, q[drawn], R[~chunk.aside]
            chunk = chunk.take(np.flatnonzero(~chunk.aside).tolist())
            arms = chunk.arms(log.least)
        if len(chunk):
            self._overlap(arms, pi, q, R)
            self.spend.add(chunk, arms, pi)
            self._add(chunk, arms, self._columns(arms, pi, q, R), log)

    def _overlap(self, arms: LoggedArms, pi: dict[str, Floats], q: Floats, R: Floats) -> None:
        pairs = [((a, b), pi[a] - pi[b]) for a, b in self.differences]
        everyone: list[tuple[str | tuple[str, str], Floats]] = [*pi.items(), *pairs]
        for who, own in everyone:
            self.overlaps[who] = self.overlaps[who].plus(overlap(arms, own, q, R, self.clip))

    def _add(self, chunk: Chunk, arms: LoggedArms, columns: list[Floats], log: Log) -> None:
        self.windows.add(chunk.at, np.hstack(columns))
        self.sizes = [part.shape[1] for part in columns]
        self.ratios.add(arms, log.menus.codes(chunk.menus))
        self.rows, self.complete = self.rows + len(chunk), self.complete and chunk.complete
        self.end = max(self.end, float(chunk.at.max()))

    def _columns(
        self, arms: LoggedArms, pi: dict[str, Floats], q: Floats, R: Floats
    ) -> list[Floats]:
        own = [self.values[name].columns(arms, pi[name], q, R) for name in pi]
        shrunk = [shrinkage.sums(arms, pi[name], q, R) for name in pi]
        both = self.differences.items()
        return own + shrunk + [each.columns(arms, (pi[a], pi[b]), q, R) for (a, b), each in both]

    def found(self, log: Log) -> Found:
        parts = np.split(self.windows.sums, np.cumsum(self.sizes)[:-1], axis=1)
        names, pairs = list(self.values), list(self.differences)
        return Found(
            values=dict(zip(names, parts)),
            shrunk=dict(zip(names, parts[len(names) :])),
            differences=dict(zip(pairs, parts[2 * len(names) :])),
            overlaps=self.overlaps,
            windows=self.windows,
            check=self.ratios.check(log.menus.names),
            largest={name: value.largest for name, value in self.values.items()},
            absent={name: player.absent for name, player in self.playing.items()},
            learners={
                name: player.policy.name
                for name, player in self.playing.items()
                if isinstance(player, TrainedPolicy)
            },
            model=self.model.name,
            complete=self.complete,
            end=self.end,
            spend=self.spend,
        )
