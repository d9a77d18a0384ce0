"""Features: the columns of contexts and arms, declared once."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from driftbandit import validate
from driftbandit.families import Bernoulli, Family
from driftbandit.features import validation
from driftbandit.features.columns import Columns, Frame
from driftbandit.features.declarations import ENCODING, Feature, Number
from driftbandit.features.encoders import Counts, count, stable
from driftbandit.features.plan import EncodingPlan, log
from driftbandit.problem import Problem
from driftbandit.recipe import Recipe

Floats = NDArray[np.float64]

LARGEST = {1: 64, 2: 128, 3: 128}  # coordinates up to which terms keep their own, by encoding


@dataclass(frozen=True, kw_only=True, repr=False)
class Features(Recipe):
    """A declaration of columns that turns raw values into contexts.

    The row of an arm is 1 + context + arm + context x arm. `interactions` lists the pairs to
    multiply, ("age", "price") for example; None multiplies all. Up to 128 coordinates every term
    has its own. Above, the terms of the context alone are left out, and then the largest products
    are folded by signed hashing; `repr` says so. `dim=256` is another limit, `dim="exact"` none.
    Scales follow from the declaration and never change; a row has norm at most `norm`, which is 1
    unless the declaration has grown. `encoding` is the version of these rules: a ledger of version
    0.2 keeps 1, in which numbers of arms are lines and the limit is 64. In 2 curves were waves.

    >>> from driftbandit import Category, Number
    >>> features = Features(
    ...     context={"age": Number(18, 90)}, arm={"genre": Category(["rock", "jazz"])}
    ... )
    >>> X = features.encode({"age": 54}, [{"genre": "rock"}, {"genre": "jazz"}])
    >>> X.shape, features.terms[:5]
    ((2, 12), ('1', 'age', 'age missing', 'genre=rock', 'genre=jazz'))
    """

    context: Mapping[str, Feature] = field(default_factory=dict)
    arm: Mapping[str, Feature] = field(default_factory=dict)
    interactions: Sequence[tuple[str, str]] | None = None
    dim: int | str | None = None
    base: Features | None = None  # what it grew out of: see `grow`
    encoding: int = ENCODING  # the rules by which it becomes numbers; of an older ledger, 1
    absent: ClassVar[Mapping[str, Any]] = {"encoding": 1}

    def __post_init__(self) -> None:
        context, arm = (
            validation.columns("context", self.context),
            validation.columns("arm", self.arm),
        )
        validation.encoding(self.encoding, ENCODING)
        self._set(_given=(context, arm, self.dim))
        dim = validation.dim(self.dim)
        if self.encoding > 1:  # defaults are resolved now, and stored
            arm = {
                n: f.of_arm(self.encoding) if isinstance(f, Number) else f for n, f in arm.items()
            }
            dim = self.limit if dim is None else dim
        context, arm = (
            {n: f.of_context if isinstance(f, Number) else f for n, f in side.items()}
            for side in (context, arm)
        )
        validation.sides(context, arm)
        self._set(
            context=MappingProxyType(context),
            arm=MappingProxyType(arm),
            interactions=validation.interactions(self.interactions, context, arm),
            dim=dim,
        )
        if self.base is not None:
            validation.base(self, self.base)

    _given: ClassVar[tuple[dict[str, Feature], dict[str, Feature], int | str | None]]

    @property
    def limit(self) -> int | None:
        """Coordinates above which terms are folded; None for no limit."""
        if self.dim == "exact":
            return None
        return LARGEST[self.encoding] if self.dim is None else int(self.dim)

    def under(self, encoding: int) -> Features:
        """Return what was declared, by the rules of another encoding: a program may still say what
        an older version stored."""
        if encoding == self.encoding:
            return self
        context, arm, dim = self._given
        base = None if self.base is None else self.base.under(encoding)
        return Features(
            context=context,
            arm=arm,
            dim=dim,
            interactions=self.interactions,
            base=base,
            encoding=encoding,
        )

    @cached_property
    def plan(self) -> EncodingPlan:
        """The declaration, compiled."""
        return EncodingPlan(self)

    @property
    def size(self) -> int:
        """Number of coordinates of a row."""
        return self.plan.size

    @property
    def norm(self) -> float:
        """Bound on the norm of a row."""
        return self.plan.norm

    @property
    def folded(self) -> bool:
        """Whether terms share coordinates."""
        return self.plan.size < self.plan.exact

    @property
    def terms(self) -> tuple[str, ...]:
        """Names of all terms, in the order of the coordinates unless they are folded."""
        return self.plan.terms

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of all columns."""
        return (*self.context, *self.arm)

    @cached_property
    def version(self) -> str:
        """A fingerprint: declarations that encode alike have the same."""
        text = json.dumps([self.encoding, self.to_dict()], sort_keys=True)
        return f"{stable(text):016x}"

    def problem(self, reward: Any = None) -> Problem:
        """Return the `Problem` of learning from these rows; `reward` is a `Reward`, or a family."""
        family = Bernoulli() if reward is None else getattr(reward, "family", reward)
        if not isinstance(family, Family):
            raise ValueError(
                f"reward must be a Reward(0, 1) or a family such as Bernoulli(), got "
                f"{validate.show(reward)}"
            )
        norm = self.norm * getattr(reward, "reach", 1.0)  # of differences of rows: twice that
        return Problem(dim=self.size, family=family, context_norm=norm, items=self.plan.items)

    def encode(self, context: Mapping[str, Any], arms: Any, counts: Counts | None = None) -> Floats:
        """Return a row for each arm, (N, size), from raw values by name.

        `arms` is a list of mappings, a mapping whose values are mappings, or a frame. Values that
        are missing, unknown or clipped are added to `counts`, a Counter for example, under
        (column, "missing"), (column, "unknown") and (column, "clipped").
        """
        plan = self.plan
        if counts is None:
            return plan.encode(context, arms)
        return self._rows(plan.context.read("the context", (context,)), plan.arms(arms), counts)

    def encode_pairs(
        self,
        contexts: Sequence[Mapping[str, Any]],
        arms: Sequence[Mapping[str, Any]],
        counts: Counts | None = None,
    ) -> Floats:
        """Return rows of which row k is arm k in context k, (N, size): the same numbers as `encode`
        one by one, and ten times faster."""
        columns = self.plan.arms(arms)
        if not isinstance(contexts, (list, tuple)) or len(contexts) != columns.size:
            raise ValueError(
                f"contexts must be a list of {columns.size} mappings, one for each arm, got "
                f"{validate.show(contexts)}"
            )
        own = self.plan.context.read("a context", contexts)
        return self._rows(own, columns, counts)

    def encode_each(
        self, contexts: Sequence[Mapping[str, Any]], arms: Sequence[Sequence[Mapping[str, Any]]]
    ) -> list[Floats]:
        """Return the arms k in context k, a list of (N_k, size): the same numbers as `encode` one
        by one, and faster."""
        sizes = [len(each) for each in arms]
        plan = self.plan
        left = plan.context.encode(plan.context.read("a context", contexts))
        right = plan.arm.encode(plan.arms([arm for each in arms for arm in each]))
        each_arm = left[0].repeat(sizes, axis=1), left[1].repeat(sizes, axis=1)
        X = plan.rows(each_arm, right)
        ends = np.cumsum(sizes).tolist()
        return [X[end - size : end] for size, end in zip(sizes, ends)]

    def encode_frame(self, frame: Any, counts: Counts | None = None) -> Floats:
        """Return a row for each line of a frame that has a context and an arm, (N, size): the same
        numbers as `encode` line by line."""
        names = self.plan.context.names | self.plan.arm.names
        columns = Frame("what encode_frame takes", frame, names)
        return self._rows(columns, columns, counts)

    def encode_known(self, columns: Mapping[str, Any]) -> Floats:
        """A row of what is known of an arm and a context, (size,): a column that is not given has
        no part in it, not even that of a missing value."""
        plan = self.plan
        validation.known_columns(columns, self.columns)
        left, right = (
            side.known({name: value for name, value in columns.items() if name in side.names})
            for side in (plan.context, plan.arm)
        )
        return plan.rows(left, right)[0]

    def _rows(self, context: Columns, arms: Columns, counts: Counts | None) -> Floats:
        """Encode both sides; `counts` changes only if nothing is refused."""
        if not (counts is None or isinstance(counts, MutableMapping)):
            raise ValueError(f"counts must be a Counter or a dict, got {validate.show(counts)}")
        found: Counts | None = None if counts is None else {}
        left = self.plan.context.encode(context, found)
        right = self.plan.arm.encode(arms, found)
        for (name, what), n in (found or {}).items():
            count(counts, name, what, n)
        return self.plan.rows(left, right)

    def contributions(
        self, context: Mapping[str, Any], arm: Mapping[str, Any], theta: ArrayLike
    ) -> dict[str, float]:
        """Return what each column and each pair of columns adds to x'theta, also if terms are
        folded.

        "1" is the constant and "age*price" the product of two columns; all add up to x'theta.
        """
        estimate = np.asarray(theta, dtype=np.float64)
        if estimate.shape != (self.size,):
            raise ValueError(f"theta must have shape ({self.size},), got {estimate.shape}")
        plan = self.plan
        right = plan.arm.encode(plan.arms([arm]))
        left = plan.context.encode(plan.context.read("the context", (context,)))
        return plan.contributions(left, right, estimate)

    def grow(
        self,
        *,
        context: Mapping[str, Feature] | None = None,
        arm: Mapping[str, Feature] | None = None,
        interactions: Sequence[tuple[str, str]] = (),
    ) -> Features:
        """Return the declaration with more columns. Coordinate j stays coordinate j, with its
        scale; new ones come behind, scaled like the old ones, and `norm` grows.

        `interactions` are pairs to add where they were listed; otherwise all are multiplied.
        `policies.growth` takes a learner along.
        """
        if self.interactions is None and interactions:
            raise ValueError("all pairs are multiplied already: drop interactions")
        listed = None if self.interactions is None else [*self.interactions, *interactions]
        new = {"context": dict(context or {}), "arm": dict(arm or {})}
        validation.fresh(self, new)
        own: dict[str, Any] = {"interactions": listed, "base": self, "encoding": self.encoding}
        own["context"] = {**self._given[0], **new["context"]}
        own["arm"] = {**self._given[1], **new["arm"]}
        exact = Features(dim="exact", **own)
        if self.limit is None or exact.size > self.limit:
            return exact
        return Features(dim=self.dim, **own)

    def pad(self, X: ArrayLike) -> Floats:
        """Rows (..., d) that were encoded before this declaration grew, with 0 for what is new."""
        old = np.asarray(X, dtype=np.float64)
        sizes, base = [self.size], self.base
        while base is not None:
            sizes, base = [*sizes, base.size], base.base
        if old.ndim < 1 or old.shape[-1] not in sizes:
            raise ValueError(f"rows must have one of the lengths {sizes}, got shape {old.shape}")
        return np.pad(old, [(0, 0)] * (old.ndim - 1) + [(0, self.size - old.shape[-1])])

    @staticmethod
    def from_sample(
        frame: Any,
        *,
        arm: Sequence[str] = (),
        dim: int | str | None = None,
        report: Callable[[str], object] = log.info,
    ) -> Features:
        """Propose a declaration from data: look at it, and correct it. `arm` names the columns that
        describe arms. `report` gets the reason for every column; `report=print` shows them."""
        from driftbandit.features.sample import propose

        return propose(frame, arm, dim, report)

    def __repr__(self) -> str:
        parts = [f"context={dict(self.context)}", f"arm={dict(self.arm)}"]
        parts += [] if self.interactions is None else [f"interactions={list(self.interactions)}"]
        parts += [] if self.dim in (None, LARGEST[self.encoding]) else [f"dim={self.dim!r}"]
        parts += [] if self.encoding == ENCODING else [f"encoding={self.encoding}"]
        return f"<Features({', '.join(parts)}): {self.plan.summary}>"

    def __hash__(self) -> int:
        return hash(self.version)

    def __reduce__(self) -> Any:
        return Recipe.from_dict, (self.to_dict(),)
