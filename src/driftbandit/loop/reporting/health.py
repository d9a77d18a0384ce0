"""The health of a loop: what a person on call would ask, from its latest events, so that it costs
the same at any age.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from driftbandit.durations import DAY, HOUR
from driftbandit.estimators.formatting import as_json, plural
from driftbandit.estimators.increments import Floats
from driftbandit.html_table import table
from driftbandit.loop import promotion, time_discount
from driftbandit.loop.learning.learner import Learner
from driftbandit.loop.reporting.budgets import BudgetStatus, budgets
from driftbandit.loop.reporting.drift_report import Change, changes
from driftbandit.loop.reporting.misfit import Misfit, misfits
from driftbandit.loop.reporting.outcomes import Outcomes, outcomes
from driftbandit.loop.reporting.policy_values import (
    Line,
    Mean,
    Uplift,
    Window,
    bounded,
    curve,
    default,
    itself,
    seen,
    unbounded,
    uniform,
    unknown,
    uplift,
    value,
)
from driftbandit.loop.runtime import Runtime
from driftbandit.loop.state.clock import LONGEST, SETTLE
from driftbandit.loop.state.reward_windows import RewardWindows
from driftbandit.loop.training.trainer import Lag
from driftbandit.policies.auto import AutoDOMD
from driftbandit.reward import Reward

log = logging.getLogger("driftbandit.loop")

WINDOW = 10_000  # latest events
BINS, LEAST = 5, 20  # of the calibration, and decisions in each
AGAIN = 60.0  # seconds after which concerns are logged again
_warned: WeakKeyDictionary[Runtime, float] = WeakKeyDictionary()  # when they were
TARGETS = {"loop": itself, "uniform": uniform, "default": default}


class Bin(NamedTuple):
    """Decisions whose expected rewards are neighbours: what was expected, and what came."""

    expected: float
    observed: Mean


@dataclass(frozen=True, kw_only=True)
class Health:
    """Counts of a whole life, and the state of its latest decisions. Rewards are in their unit.

    | field | |
    |---|---|
    | `decisions`, `rewards` | in all, of which `recent` decisions are judged below |
    | `missing`, `cancelled` | shares of what is closed, and of what was decided |
    | `missing_reward` | what decisions without a reward count as; None: they train nothing |
    | `clipped`, `late` | shares of rewards |
    | `exploration_share` | mean probability that another arm than the likeliest is chosen |
    | `lag` | examples that wait to be trained, or to be heard of, and for how many seconds |
    | `trains` | whether this process trains; else another one that writes to the ledger does |
    | `acts` | who acts: "live", the name of a promoted candidate, or "default" |
    | `candidates` | shares of decisions by name; 0 in the shadow |
    | `memory`, `state` | how many rewards the estimate rests on; how AutoDOMD sees its world |
    | `bias`, `calibration` | observed minus expected rewards; both in bins of what was expected |
    | `misfits` | arms and values of columns whose rewards the model cannot describe |
    | `values` | mean reward of the loop, of uniform choices and of the default; None: unknown |
    | `uplift` | by how much the loop's mean reward differs from the default's; None: unknown |
    | `curve` | the same over time, in windows, and the shares of arms |
    | `metrics` | by name and arm |
    | `budget` | budgets by name: price, what was spent, bound, and what the cheapest arm costs |
    | `head` | the newest hash of the ledger's chain: kept elsewhere, it shows what was rewritten |
    | `changed` | terms that have moved since the date that was asked for |
    | `clock` | what is wrong with the clock, and what the loop does about it; "" if nothing is |
    """

    name: str
    decisions: int
    rewards: int
    recent: int
    missing: float
    missing_reward: float | None
    cancelled: float
    clipped: float
    late: float
    exploration_share: float
    lag: Lag
    trains: bool
    acts: str
    candidates: Mapping[str, float]
    memory: float | None
    state: str | None
    bias: Mean | None
    calibration: tuple[Bin, ...]
    misfits: tuple[Misfit, ...]
    values: Mapping[str, Mean | None]
    uplift: Uplift | None
    curve: tuple[Window, ...]
    metrics: Mapping[str, Mapping[str, Mean | None]]
    head: str
    changed: tuple[Change, ...]
    budget: Mapping[str, BudgetStatus]
    clock: str = ""

    @property
    def concerns(self) -> list[str]:
        """What is not as it should be, and what to do about it."""
        signs = {
            f"{self.late:.0%} of rewards come too late: raise wait": self.late > 0.05,
            f"{self.clipped:.0%} of rewards are out of range: widen the range": self.clipped > 0.01,
            f"training is {self.lag.seconds:.0f} s behind: give the trainer more CPU, or choose a "
            "cheaper policy": self.lag.seconds > 1.0,
            "no arm is ever explored: pass exploration=0.02": self.recent
            and not self.exploration_share,
        }
        found = [words for words, true in signs.items() if true]
        found += [each.concern(name) for name, each in self.budget.items()]
        return [*filter(None, [*found, self.clock]), *map(str, self.misfits)]

    def to_dict(self) -> dict[str, Any]:
        """As JSON knows it."""
        names = [*(field.name for field in fields(self)), "concerns"]
        return {name: as_json(getattr(self, name)) for name in names}

    def __repr__(self) -> str:
        head = f"loop {self.name!r}: {self._counts()}"
        return "\n".join([head, *(f"  {line}" for line in self._lines())])

    def _repr_html_(self) -> str:
        """Return values of policies as a table, with shares and concerns below it."""
        title = f"Loop {self.name}: {self._counts()}"
        rows = [
            (name, *((one.mean, one.low, one.high, one.rows) if one else (None,) * 4))
            for name, one in self.values.items()
        ]
        header = ("policy", "mean reward", "low", "high", "rows")
        return table(title, header, rows, self._lines())

    def _counts(self) -> str:
        return f"{plural(self.decisions, 'decision')}, {plural(self.rewards, 'reward')}"

    def _lines(self) -> list[str]:
        shares = ("missing", "cancelled", "clipped", "late", "exploration_share")
        lines = [
            f"of the latest {plural(self.recent, 'decision')}: "
            + ", ".join(f"{name} {getattr(self, name):.1%}" for name in shares),
            f"training lag {self.lag.seconds:.1f} s, {plural(self.lag.examples, 'example')}; "
            f"{self._memory()}",
            f"acting policy: {self.acts}{self._candidates()}",
            f"observed minus expected: {_told(self.bias)}",
            "mean reward: " + "; ".join(f"{k} {_told(v)}" for k, v in self.values.items()),
            f"uplift over the default: {self._uplift()}",
        ]
        for name, arms in self.metrics.items():
            lines.append(f"{name}: " + "; ".join(f"{arm} {_told(v)}" for arm, v in arms.items()))
        for name, budget in self.budget.items():
            lines.append(f"budget {name!r}: {budget.words()}")
        for each in self.changed:
            lines.append(f"changed: {each.term} {each.before:+.3g} -> {each.after:+.3g}")
        return lines + [f"look: {concern}" for concern in self.concerns]

    def _uplift(self) -> str:
        if self.uplift is None:
            return "unknown"
        one, form = self.uplift, "+.1%" if self.uplift.relative else "+.3g"
        return f"{one.mean:{form}} ({one.low:{form}} to {one.high:{form}})"

    def _candidates(self) -> str:
        shares = ", ".join(f"{name} {share:.1%}" for name, share in self.candidates.items())
        return f"; candidates and their shares: {shares}" if shares else ""

    def _memory(self) -> str:
        if self.memory is None:
            return "memory unknown"
        word = f", {self.state}" if self.state else ""
        return f"memory {self.memory:.0f} rewards{word}"


def _told(found: Mean | None) -> str:
    if found is None:
        return "unknown"
    return f"{found.mean:.3g} ({found.low:.3g} to {found.high:.3g})"


def health(runtime: Runtime, since: float | None) -> Health:
    """From the latest events; `since` asks what has changed."""
    ledger, definition, windows = runtime.ledger, runtime.reread(), runtime.windows
    counts = windows.counts.copy()
    told = outcomes(ledger, definition, max(ledger.start, windows.seq - WINDOW))
    reward, lines = definition.declaration.reward, told.rows
    pairs = definition.declaration.learns_preferences
    judged = [line for line in lines if line["position"] != 1] if pairs else lines
    targets = dict.fromkeys(TARGETS, unknown) if pairs else TARGETS
    bias, bins = calibration(judged, reward)
    values = {name: value(lines, target, reward) for name, target in targets.items()}
    found = Health(
        name=ledger.name,
        decisions=counts["decide"] + counts["decide cancelled"],
        rewards=counts["reward counted"],
        recent=len({line["seq"] for line in lines}),
        **shares(told),
        missing_reward=reward.missing,
        lag=runtime.training.lag,
        trains=ledger.lock.trains,
        acts=promotion.acts(runtime),
        candidates=promotion.shares(runtime),
        **memory(runtime.learner, lines, runtime.writer.believed),
        bias=bias,
        calibration=bins,
        misfits=() if pairs else misfits(lines, definition.latest.features, reward),
        values=values,
        uplift=uplift(values["loop"], values["default"], reward.goal),
        curve=curve(lines, targets, reward),
        metrics=metrics(lines),
        head=str(ledger.head),
        changed=tuple(
            changes(ledger, definition, runtime.learner, since) if since is not None else ()
        ),
        clock=clock_concern(windows, runtime.writer.reading),
        budget=budgets(runtime),
    )
    _warn(runtime, found)
    return found


def _warn(runtime: Runtime, found: Health) -> None:
    """Log concerns once in a while: a dashboard asks every second."""
    if found.concerns and time.monotonic() - _warned.get(runtime, -math.inf) >= AGAIN:
        _warned[runtime] = time.monotonic()
        for concern in found.concerns:
            log.warning("loop %r: %s", found.name, concern)


def clock_concern(windows: RewardWindows, now: float) -> str:
    """Say what is wrong with the clock (`state.clock`), whose reading is `now`."""
    clock = windows.clock
    reading = clock.leap if windows.by_events and clock.leap is not None else now
    apart = f"{abs(reading - clock.time) / DAY:.1f} days"
    said = "a decision is dated" if windows.by_events else "the machine's clock says"
    if clock.is_ahead(reading):
        return (
            f"{said} {_date(reading)}, {apart} ahead of the log: no window closes until times have "
            "been there for ten minutes; correct the clock if it is wrong"
        )
    if clock.is_back(reading) and not windows.by_events:
        return (
            f"{said} {_date(reading)}, {apart} behind the log: no window closes until it has been "
            "there for ten minutes; correct the clock, or use driftbandit repair"
        )
    if windows.retention is not None and not clock.may_delete:
        until = (
            "driftbandit repair" if clock.leapt > LONGEST else f"{SETTLE / HOUR:.0f} hours later"
        )
        leapt = f"the clock leapt by {clock.leapt / DAY:.0f} days on {_date(clock.landed)}"
        return f"{leapt}: retention deletes nothing until {until}"
    return ""


def _date(at: float) -> str:
    """Return a time as a date in UTC, or as a number if it is none."""
    try:
        return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M")
    except (ValueError, OverflowError, OSError):
        return f"{at:.0f}"


def shares(told: Outcomes) -> dict[str, Any]:
    """Of the latest decisions and rewards."""
    lines, rewards = told.rows, told.kinds["reward"]
    closed = sum(line["status"] in ("trained", "missing") for line in lines)
    exploring = [1.0 - max(line["probabilities"]) for line in lines if line["probabilities"]]
    return {
        "missing": told.counts["missing"] / max(closed, 1),
        "cancelled": sum(line["status"] == "cancelled" for line in lines) / max(len(lines), 1),
        "clipped": told.counts["clipped"] / max(rewards, 1),
        "late": sum(line["late"] for line in lines) / max(rewards, 1),
        "exploration_share": math.fsum(exploring) / max(len(exploring), 1),
    }


def memory(learner: Learner, lines: list[Line], now: float) -> dict[str, Any]:
    """Rewards that the estimate rests on, in effect, and AutoDOMD's word for its world."""
    with learner.lock:
        policy, rounds = learner.policy, learner.bandit.rounds
        if isinstance(policy, AutoDOMD):
            said = learner.bandit.explain()
            return {"memory": said.memory, "state": said.state}
    discount = float(getattr(policy, "discount", 1.0))
    ages: Any = np.arange(rounds)
    if learner.timed:  # of what is in the window: older rewards are not seen
        trained = (line["at"] for line in lines if line["status"] == "trained")
        ages = np.array([time_discount.steps(now - at) for at in trained])
    return {"memory": float((discount**ages).sum()), "state": None}


def calibration(lines: list[Line], reward: Reward) -> tuple[Mean | None, tuple[Bin, ...]]:
    """Observed minus expected rewards in all, and both in bins of what was expected."""
    known = [line for line in lines if line["status"] == "trained" and line["mean"] is not None]
    expected = np.array([float(reward.outside(line["mean"])) for line in known])
    observed = np.array([seen(line, reward) for line in known])
    order = np.argsort(expected, kind="stable")
    parts = np.array_split(order, max(1, min(BINS, len(known) // LEAST)))
    ends = reward.low, reward.high
    found = [(part, bounded(observed[part].tolist(), ends)) for part in parts]
    bins = (Bin(float(expected[part].mean()), each) for part, each in found if each)
    return _bias(observed, expected, ends), tuple(bins)


def _bias(observed: Floats, expected: Floats, ends: tuple[float, float]) -> Mean | None:
    """Observed minus expected: rewards have a range, so the interval is that of their mean."""
    found = bounded(observed.tolist(), ends)
    if found is None:
        return None
    mean = float(expected.mean())
    return found._replace(mean=found.mean - mean, low=found.low - mean, high=found.high - mean)


def metrics(lines: list[Line]) -> dict[str, dict[str, Mean | None]]:
    """Secondary metrics by arm."""
    found: dict[str, dict[str, list[float]]] = {}
    for line in lines:
        for each in line["metrics"]:
            found.setdefault(each["name"], {}).setdefault(line["arm"], []).append(each["value"])
    return {
        name: {arm: unbounded(found[name][arm]) for arm in sorted(found[name])}
        for name in sorted(found)
    }
