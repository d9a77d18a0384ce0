"""What a loop is told: every option with its type, default, meaning and check, in one place.

`Declaration` holds the options that never change, `Settings` those that `Loop.configure` changes.
A new option is one field here, with its meaning; the signature of `Loop`, the ledger, HTTP and the
table in the documentation follow from the fields.
"""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar, TypedDict, cast

from driftbandit import validate
from driftbandit.durations import seconds
from driftbandit.features import Features
from driftbandit.loop import time_discount
from driftbandit.loop.exploration import Floor, Rule, Words
from driftbandit.loop.prior import Prior
from driftbandit.policies.auto import AutoDOMD
from driftbandit.policies.domd import DOMD
from driftbandit.policies.rows import RowPolicy
from driftbandit.recipe import Recipe
from driftbandit.reward import Preference, Reward

CLOCKS = ("wall", "events")
MODES = ("active", "apprentice")
LEVEL = 0.95
AUTO = "auto"
KEYED_BONUS = 1.5  # of the default policy of a key: judged by `make bench-declarations`
RUN_LENGTH = 1e7
DRAWS = 2  # version of the draws of new loops
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
MOST_ARMS = 100_000  # of one catalogue


def meaning(text: str) -> dict[str, str]:
    """Return the metadata of a field that is an option: its row in the documentation."""
    return {"meaning": text}


class Changeable(TypedDict, total=False):
    """The options of `Loop.configure`, as type checkers see them; None leaves one as it is."""

    exploration: float | Rule | None
    mode: str | None
    holdout: float | None
    guard: Guard | bool | None
    shares: Mapping[str, Sequence[float]] | None
    budget: Budget | Sequence[Budget] | bool | None
    sticky: Any


class Options(Changeable, total=False):
    """The options of `Loop`, as type checkers see them; None leaves one as it was declared."""

    features: Features | None
    reward: Reward | None
    policy: type[RowPolicy] | RowPolicy | None
    half_life: Any
    retention: Any
    key: str | None
    seed: int | None
    clock: str | None
    arms: Mapping[str, Mapping[str, Any]] | None
    prior: Prior | Mapping[str, float] | None
    population: float | str | None


@dataclass(frozen=True, kw_only=True)
class Guard(Recipe):
    """Watches the live policy against the default, and metrics of all candidates.

    Once the latest rows show that the live policy is worse than the default, the default is played,
    until a policy is promoted again. As long as it is not worse, a false alarm takes `run_length`
    rows on average, or more. `level` is the confidence of all promotions together.

    `metrics` are secondary metrics by name, such as {"complaints": Reward(0, 1, goal="min",
    wait="30min", missing=0)}: a candidate that is proved worse in one of them is not promoted. A
    metric counts when it is recorded before its decision is trained; `wait` is that of the loop's
    reward, or left out.
    """

    level: float = LEVEL
    run_length: float = RUN_LENGTH
    metrics: Mapping[str, Reward] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, metric in self.metrics.items():
            validate.text("a metric's name", name)
            if not isinstance(metric, Reward) or isinstance(metric, Preference):
                raise ValueError(
                    f"metric {name!r} needs its range, such as Reward(0, 1, goal='min'), got "
                    f"{validate.show(metric)}"
                )
        level = validate.interval("level", self.level, "confidence", low=0.0, high=1.0 - 1e-9)
        rows = validate.number(
            "run_length", self.run_length, "rows until a false alarm, on average"
        )
        if rows < 1000.0:
            raise ValueError(f"run_length must be 1000 rows or more, such as 1e7, got {rows:g}")
        self._set(level=level, run_length=rows, metrics=MappingProxyType(dict(self.metrics)))

    def check_wait(self, reward: Reward) -> None:
        """Raise unless metrics are known when their decision is trained."""
        for name, metric in self.metrics.items():
            if metric.wait not in (0.0, reward.wait):
                raise ValueError(
                    f"metric {name!r} waits for {metric.wait:g} s and its decisions for "
                    f"{reward.wait:g} s: declare the same wait for both"
                )


ON_EMPTY = ("price", "default")


@dataclass(frozen=True)
class Budget(Recipe):
    """A bound on what decisions cost: `mean` for each decision, or a `total` for each period `per`.

    Every arm states its expected cost in the column `metric`, and `Loop.metric` reports the bill
    under the same name, now or later. The loop learns what bills are for what is stated, and ranks
    arms by reward less a price on their cost, which moves so that the mean is kept.

    A total is spread over what is left of its period. With on_empty="default" the default is played
    once the rest pays for no arm, whatever it costs: let it cost nothing; with "price" the cheapest
    arms go on.

    >>> Budget("cost", mean=0.002)
    Budget(metric='cost', mean=0.002, per=None, total=None, on_empty='price')
    >>> Budget("cost", per="1d", total=50).per
    86400.0
    """

    metric: str
    _: KW_ONLY
    mean: float | None = None
    per: Any = None
    total: float | None = None
    on_empty: str = "price"

    def __post_init__(self) -> None:
        validate.text("a budget's metric", self.metric)
        has_total = self.total is not None
        if has_total == (self.mean is not None) or has_total != (self.per is not None):
            raise ValueError(
                f"budget {self.metric!r} needs a mean, such as mean=0.002, or a total for each "
                "period, such as per='1d', total=50"
            )
        if self.on_empty not in ON_EMPTY:
            raise ValueError(
                f"on_empty must be one of {ON_EMPTY}, got {validate.show(self.on_empty)}"
            )
        if self.mean is not None and self.on_empty != "price":
            raise ValueError("a mean cannot be used up: on_empty belongs to per= and total=")
        if self.mean is not None:
            self._set(mean=validate.positive("mean", self.mean, "cost of a decision"))
        if self.total is not None:
            total = validate.positive("total", self.total, "cost of a period")
            self._set(per=seconds(self.per, "per"), total=total)
            validate.positive("per", self.per, "seconds of a period")


def _budgets(given: Any) -> dict[str, Budget]:
    """Return budgets by metric: of one, a list or a mapping of them, or False for none."""
    if given is False or given is None:
        return {}
    listed = [given] if isinstance(given, Budget) else given
    listed = list(listed.values()) if isinstance(listed, Mapping) else listed
    if not isinstance(listed, (list, tuple)) or not all(isinstance(b, Budget) for b in listed):
        raise ValueError(
            "budget must be Budget('cost', mean=0.002), a list of such, or False, got "
            f"{validate.show(given)}"
        )
    found = {each.metric: each for each in listed}
    if len(found) < len(listed):
        raise ValueError("every budget needs a metric of its own: two have the same")
    return found


@dataclass(frozen=True, kw_only=True)
class Declaration(Recipe):
    """What never changes in the life of a loop, except that features may be added."""

    features: Features = field(
        metadata={"meaning": "what a row of raw values means; a new loop needs it"}
    )
    reward: Reward = field(metadata=meaning("what a reward means; a new loop needs it"))
    policy: Any = field(
        metadata={"meaning": "AutoDOMD, or DOMD, or one made for `features.problem(reward)`"},
        default=None,
    )
    half_life: Any = field(
        metadata={
            "meaning": 'forget in time: "7d" for DOMD, "auto" for AutoDOMD; in rounds if None'
        },
        default=None,
    )
    retention: Any = field(
        metadata={"meaning": 'how long events are kept, such as "90d"; forever if None'},
        default=None,
    )
    seed: int = field(default=0, metadata=meaning("of all draws, with the loop's name"))
    clock: str = field(
        metadata={
            "meaning": '"wall", or "events": time is the largest `at` decided, to fill in a past'
        },
        default="wall",
    )
    key: str | None = field(
        metadata={
            "meaning": 'such as "user_id": a learner for each, which begins like the population\'s'
        },
        default=None,
    )
    arms: Any = field(
        metadata={
            "meaning": "a catalogue of arms by name, with their columns; decisions may leave it out"
        },
        default=None,
    )  # pairs of a name and columns: as a mapping, a column "type" would look like a recipe's
    prior: Any = field(
        metadata={
            "meaning": 'expected rewards, such as {"large": 0.9}, worth 30 rewards each; or a Prior'
        },
        default=None,
    )
    population: Any = field(
        metadata={
            "meaning": 'with `key`: rewards that the population is worth to a key; "auto" learns it'
        },
        default=AUTO,
    )
    absent: ClassVar[Mapping[str, Any]] = {"prior": None, "population": None}  # as in 0.2
    name: str = ""  # of the loop, in every draw from version 2 on
    draws: int = 1  # version of the draws; ledgers that say nothing have the first
    former: ClassVar[Mapping[str, str]] = {"keep": "retention"}

    def __post_init__(self) -> None:
        if not isinstance(self.features, Features):
            raise ValueError(f"features must be Features(...), got {validate.show(self.features)}")
        if not isinstance(self.reward, Reward):
            raise ValueError(f"reward must be Reward(...), got {validate.show(self.reward)}")
        if self.clock not in CLOCKS:
            raise ValueError(f"clock must be one of {CLOCKS}, got {validate.show(self.clock)}")
        if self.key is not None:
            validate.text("key", self.key)
        if self.draws not in (1, DRAWS):
            raise ValueError(
                f"draws of version {validate.show(self.draws)} are unknown: upgrade driftbandit"
            )
        kept = self.retention
        self._set(
            policy=self._policy(),
            seed=validate.count("seed", self.seed, "of the loop's random choices", least=0),
            retention=None if kept is None else seconds(kept, "retention"),
            arms=None if self.arms is None else _arms(self.arms),
        )
        if self.population not in (AUTO, None):  # None: the rule of version 0.2
            population = validate.positive("population", self.population, "in rewards, or 'auto'")
            self._set(population=population)
        if self.learns_preferences:
            self._check_preferences()
        if self.prior is not None:
            prior = self.prior if isinstance(self.prior, Prior) else Prior(self.prior)
            self._set(prior=prior.resolved(self.features, self.reward, dict(self.arms or ())))
        if self.half_life not in (None, "auto"):
            self._set(half_life=seconds(self.half_life, "half_life"))
        self.timed_policy  # noqa: B018  (checks `half_life`)
        if self.retention is not None and self.retention <= self.reward.wait:
            raise ValueError(
                f"retention must be longer than wait, {self.reward.wait:g} s, got "
                f"{self.retention:g} s"
            )

    @property
    def learns_preferences(self) -> bool:
        """Whether people say which of two arms is better, instead of what an arm gave."""
        return isinstance(self.reward, Preference)

    def _check_preferences(self) -> None:
        """Raise for options that need rewards: a preference compares two arms and has no scale."""
        remedies = {"key": "leave it out", "prior": "there is no expected reward, so leave it out"}
        for name, remedy in remedies.items():
            if getattr(self, name) is not None:
                raise ValueError(f"a loop that learns from preferences knows no {name}: {remedy}")
        if self.policy.problem.items is not None:
            raise ValueError(
                "a loop that learns from preferences knows no Item, because a pair would need two "
                "slots at once: declare the column as a Category"
            )

    def _policy(self) -> RowPolicy:
        """Return the policy for rows of the features."""
        problem, policy = self.features.problem(self.reward), self.policy
        if policy is None and self.key is not None:
            policy = DOMD(problem=problem, bonus=KEYED_BONUS)
        elif policy is None:
            policy = AutoDOMD
        if isinstance(policy, type) and issubclass(policy, RowPolicy):
            policy = policy(problem=problem)
        if not isinstance(policy, RowPolicy):
            raise ValueError(
                "policy must be DOMD or AutoDOMD, or one of them made for features.problem(reward),"
                f" got {validate.show(policy)}"
            )
        short = self.learns_preferences and policy.problem.context_norm < problem.context_norm
        if short or (policy.problem.dim, policy.problem.family) != (problem.dim, problem.family):
            raise ValueError(
                f"the policy was made for {policy.problem}: make it with "
                "problem=features.problem(reward)"
            )
        if self.key is not None and not isinstance(policy, DOMD):
            raise ValueError(
                "a learner for each key must be DOMD, which is small: leave policy out"
            )
        if self.key is not None and problem.items is not None:
            raise ValueError(
                "a loop with key= knows no Item, because its slots would differ from key to key: "
                "declare the column as a Category, or leave key out"
            )
        return policy

    @cached_property
    def seed_words(self) -> Words:
        """The words that every draw of the loop begins with. Version 1 has the seed alone, so two
        loops with one seed draw alike for equal ids; from version 2 on each loop has its own draws,
        and an experiment in one says nothing about assignments in another."""
        return (self.seed,) if self.draws == 1 else (self.seed, self.name)

    @cached_property
    def timed_policy(self) -> RowPolicy:
        """The policy with its memory in time, if that is asked for."""
        if self.half_life is None:
            return self.policy
        return cast(RowPolicy, time_discount.timed(self.policy, self.half_life))


@dataclass(frozen=True, kw_only=True)
class Settings(Recipe):
    """How decisions are made: each change is an event."""

    exploration: Rule = field(
        metadata={"meaning": "share of uniform exploration, or a rule such as Thompson(0.02)"},
        default_factory=Floor,
    )
    mode: str = field(
        metadata={"meaning": '"active", or "apprentice": play the default, and learn from it'},
        default="active",
    )
    holdout: float = field(
        metadata={"meaning": "share of keys that always gets the default"}, default=0.0
    )
    guard: Guard | None = field(
        metadata={
            "meaning": "Guard(): the default takes over once it is proved better; False ends that"
        },
        default=None,
    )
    shares: Mapping[Any, Any] = field(
        metadata={
            "meaning": 'least and largest probability of arms by name, such as {"large": (0, 0.2)}'
        },
        default_factory=dict,
    )
    budget: Any = field(
        metadata={
            "meaning": 'Budget("cost", mean=0.002), or a list: the best reward under a mean cost'
        },
        default_factory=dict,
    )  # by metric
    sticky: Any = field(
        metadata={"meaning": 'how long a key keeps its answer, such as "7d"; False ends that'},
        default=None,
    )
    trials: Mapping[str, float] = field(default_factory=dict)  # shares of decisions by candidate
    # Which stretch of rows counts for a candidate, and the relative gain that is planned for.
    plans: Mapping[str, tuple[int, float | None]] = field(default_factory=dict)
    former: ClassVar[Mapping[str, str]] = {"rule": "exploration"}
    absent: ClassVar[Mapping[str, Any]] = {"sticky": None}

    def __post_init__(self) -> None:
        self._set(exploration=exploration_rule(self.exploration))
        if self.mode == "live":  # as version 0.2 stored it
            self._set(mode="active")
        if self.mode not in MODES:
            raise ValueError(f"mode must be one of {MODES}, got {validate.show(self.mode)}")
        holdout = validate.nonnegative("holdout", self.holdout, "share of keys")
        if holdout >= 1.0:
            raise ValueError(f"holdout must be below 1, such as 0.05, got {holdout:g}")
        guard: Any = self.guard
        if guard is False:
            self._set(guard=None)
        if self.guard is not None and not isinstance(self.guard, Guard):
            raise ValueError(f"guard must be Guard(...) or False, got {validate.show(self.guard)}")
        self._set(holdout=holdout, trials=self._trial_shares(), shares=_bounds(self.shares))
        self._set(plans={name: (plan[0], plan[1]) for name, plan in self.plans.items()})
        self._set(budget=_budgets(self.budget), sticky=_lasting(self.sticky))
        if self.sticky is not None and self.budget:
            raise ValueError(
                "sticky answers are given again without a decision, so a budget would not count "
                "what they cost: leave out sticky or budget"
            )
        self._set(needs_default=" and ".join(self._plays_default()))

    needs_default: ClassVar[str]  # why a decision may have to play its default; "" if it never does

    def _plays_default(self) -> Iterator[str]:
        if self.mode == "apprentice":
            yield f"mode={self.mode!r}"
        if self.holdout > 0.0:
            yield f"holdout={self.holdout:g}"
        if self.guard is not None:
            yield "a guard"
        for name, each in self.budget.items():
            if each.on_empty == "default":
                yield f"on_empty='default' of budget {name!r}"

    def _trial_shares(self) -> dict[str, float]:
        meaning = "part of all decisions"
        shares = {k: validate.nonnegative("share", v, meaning) for k, v in self.trials.items()}
        total = math.fsum(shares.values())
        if total >= 1.0:
            raise ValueError(f"the shares of all trials must add up to less than 1, got {total:g}")
        return {name: share for name, share in shares.items() if share > 0.0}

    def check_declaration(self, declared: Declaration) -> None:
        """Raise unless a loop that was declared this way can decide by these settings."""
        if self.guard:
            self.guard.check_wait(declared.reward)
        if declared.learns_preferences and (self.guard or self.budget):
            name = "guard" if self.guard else "budget"
            raise ValueError(
                f"a loop that learns from preferences knows no {name}, because a preference says "
                "which arm is better and not what it earns: leave it out"
            )
        if None not in (self.sticky, declared.retention) and self.sticky > declared.retention:
            raise ValueError(
                f"sticky must be at most retention, {declared.retention:g} s, because answers are "
                f"in the log, got {self.sticky:g} s"
            )

    def changed(self, given: Mapping[str, Any]) -> Settings:
        """Return the settings with what was given (not None) changed."""
        own = [each.name for each in fields(self) if given.get(each.name) is not None]
        return replace(self, **{name: given[name] for name in own})


def _lasting(given: Any) -> float | None:
    """Return how many seconds answers are sticky, None if they are not."""
    if given is None or given is False:
        return None
    if given is True or not (lasts := seconds(given, "sticky")):
        raise ValueError(f"sticky must be a duration such as '7d', or False, got {given!r}")
    return lasts


def _arms(given: Any) -> tuple[tuple[str, Mapping[str, Any]], ...]:
    """Return the arms of a catalogue as pairs of a name and its columns."""
    pairs = given.items() if isinstance(given, Mapping) else given
    pairs = list(pairs) if isinstance(pairs, Iterable) and not isinstance(pairs, str) else [given]
    for each in pairs:
        pair = isinstance(each, (list, tuple)) and len(each) == 2
        if not pair or not isinstance(each[1], Mapping):
            raise ValueError(
                "arms must be a mapping from names to columns, such as {'a': {'price': 9}}, got "
                f"{validate.show(given)}"
            )
    found = {validate.text("an arm's name", name): columns for name, columns in pairs}
    if len(found) > MOST_ARMS:
        raise ValueError(f"a catalogue has at most {MOST_ARMS} arms, got {len(found)}")
    return tuple(found.items())


def _bounds(given: Any) -> dict[str, tuple[float, float]]:
    """Return the least and the largest share of arms by name."""
    if not isinstance(given, Mapping):
        raise ValueError(
            "shares must be a mapping from arms to their least and largest share, such as "
            f"{{'large': (0, 0.2)}}, got {validate.show(given)}"
        )
    found = {
        validate.text("an arm's name", name): _pair(name, each) for name, each in given.items()
    }
    total = math.fsum(least for least, _ in found.values())
    if total > 1.0:
        raise ValueError(f"the least shares of all arms must add up to at most 1, got {total:g}")
    return found


def _pair(name: str, given: Any) -> tuple[float, float]:
    pair = list(given) if isinstance(given, (list, tuple)) else []
    clean = [validate.nonnegative("a share", each, "probability of an arm") for each in pair]
    if len(clean) != 2 or not clean[0] <= clean[1] <= 1.0:
        raise ValueError(
            f"the shares of {name!r} must be its least and its largest, such as (0, 0.2), got "
            f"{validate.show(given)}"
        )
    return clean[0], clean[1]


OPTIONS: dict[str, str] = {
    each.name: each.metadata["meaning"]
    for kind in (Declaration, Settings)
    for each in fields(kind)
    if "meaning" in each.metadata
}  # every option of a loop with its meaning, as the documentation shows it


def check_options(given: Mapping[str, Any]) -> None:
    """Raise if an option has a name that no loop has."""
    for name in given:
        if name not in OPTIONS:
            raise TypeError(
                f"a loop has no option {name!r}: {validate.nearest(name, list(OPTIONS))}"
            )


def exploration_rule(given: Any) -> Rule:
    """Return the rule that an option says: a rule, or the share of a `Floor`."""
    if isinstance(given, Rule) and type(given) is not Rule:
        return given
    if isinstance(given, (Rule, bool)) or not isinstance(given, numbers.Real):
        raise ValueError(
            "exploration must be a share such as 0.05, or a rule such as Thompson(0.05), got "
            f"{validate.show(given)}"
        )
    if not 0.0 <= float(given) <= 1.0:
        raise ValueError(f"exploration must be a share from 0 to 1, such as 0.05, got {given:g}")
    return Floor(float(given))


def check_name(name: Any) -> str:
    """Return the name of a loop; raise if it cannot be one."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise ValueError(
            "a loop's name is up to 64 letters, digits, '.', '_' and '-', and begins with a letter "
            f"or digit, got {validate.show(name)}"
        )
    return name
