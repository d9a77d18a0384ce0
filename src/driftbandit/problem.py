"""What is known of the world before the first round."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from driftbandit import validate
from driftbandit.families import Bernoulli, Family
from driftbandit.recipe import Recipe

Floats = NDArray[np.float64]

SLACK = 1.0 + 1e-6  # contexts normalised in single precision may be a little too long
UNBOUNDED = 10.0  # bound on |x'theta| where no radius is known
FIRST_NAME, LAST_NAME = 2.0, 2.0**53  # numbers that stand for names: no coordinate is so large


def is_name(x: Floats) -> NDArray[np.bool_]:
    """Return which numbers stand for the name of an item."""
    found: NDArray[np.bool_] = (x >= FIRST_NAME) & (x <= LAST_NAME)
    return found


@dataclass(frozen=True, kw_only=True)
class Problem(Recipe):
    """A nonstationary generalized linear bandit (section 3 of the paper).

    | here | paper | |
    |---|---|---|
    | `dim` | d | length of a context |
    | `family` | m, mu, g(tau), R | how rewards follow from x'theta |
    | `radius` | S | bound on the norm of theta, if known; theory and rivals need it |
    | `context_norm` | L | bound on the norm of a context; the paper has 1 |
    | `horizon` | T | rounds to come, if known |
    | `path_length` | P_T | total movement of theta, if known |
    | `change_points` | Gamma_T | times theta jumps, if known |
    | `items` | | if contexts name items: the coordinate of a new one, and the slots behind it |

    Contexts of norm up to L are the paper's contexts x/L with a parameter in the ball of
    radius S L, so `S` (the bound on |x'theta|) is what the theory sees.

    >>> problem = Problem(dim=5, radius=3.0)
    >>> round(problem.c_mu, 6), problem.k_mu
    (0.045177, 0.25)
    """

    dim: int
    family: Family = field(default_factory=Bernoulli)
    radius: float | None = None
    context_norm: float = 1.0
    horizon: int | None = None
    path_length: float | None = None
    change_points: int | None = None
    items: tuple[int, int] | None = None  # see `policies.items`
    absent: ClassVar[Mapping[str, Any]] = {"items": None}

    def __post_init__(self) -> None:
        if not isinstance(self.family, Family):
            raise ValueError(
                f"family must be one such as Bernoulli(), got {validate.show(self.family)}"
            )
        self._set(
            dim=validate.count("dim", self.dim, "length of a context vector"),
            context_norm=validate.positive("context_norm", self.context_norm, "bound on ||x||"),
        )
        if self.radius is not None:
            meaning = "bound on the norm of theta"
            self._set(radius=validate.positive("radius", self.radius, meaning))
        if self.horizon is not None:
            self._set(horizon=validate.count("horizon", self.horizon, "number of rounds T"))
        if self.path_length is not None:
            meaning = "sum over t of ||theta_{t+1} - theta_t||"
            self._set(path_length=validate.nonnegative("path_length", self.path_length, meaning))
        if self.change_points is not None:
            meaning = "how often theta jumps"
            self._set(
                change_points=validate.count("change_points", self.change_points, meaning, least=0)
            )
        if self.items is not None:
            self._set(items=_items(self.items, self.dim))

    @property
    def ball(self) -> float:
        """Radius of the ball that theta is kept in: `radius`, or so large that |x'theta| <= 10,
        which hardly ever matters, where that is not known."""
        return UNBOUNDED / self.context_norm if self.radius is None else self.radius

    @property
    def S(self) -> float:
        """Bound on |x'theta|: the paper's S once contexts have norm at most 1."""
        return self.known("radius", "the bound S on |x'theta|") * self.context_norm

    @cached_property
    def k_mu(self) -> float:
        """Largest slope of mu on [-S, S]."""
        return self.family.k_mu(self.S)

    @cached_property
    def c_mu(self) -> float:
        """Smallest slope of mu on [-S, S]."""
        return self.family.c_mu(self.S)

    @property
    def limit(self) -> float:
        """Largest ||x||^2 of a context."""
        return (self.context_norm * SLACK) ** 2

    def fits(self, X: Floats) -> NDArray[np.bool_]:
        """Which rows of X (m, d) are contexts, neither too long nor infinite. Sums run in the order
        in which kernels add: both decide alike, to the last bit."""
        squares, X = np.zeros(len(X)), self.without_names(X)
        with np.errstate(over="ignore", invalid="ignore"):
            for column in X.T:
                squares += column * column
        good: NDArray[np.bool_] = squares <= self.limit  # NaN fails
        return good

    def without_names(self, X: Floats) -> Floats:
        """Rows X (m, d) without the numbers that stand for names of items, which have no length."""
        if self.items is None:
            return X
        X, at = X.copy(), self.items[0] + 1
        X[is_name(X[:, at]), at] = 0.0
        return X

    def first_bad(self, X: Floats) -> int:
        """The first row of X (m, d) that is no context, or -1."""
        good = self.fits(X)
        return -1 if good.all() else int(np.argmin(good))

    def check_contexts(self, X: Floats) -> None:
        """Raise ValueError that says what is wrong with a row of X (m, d), if anything is."""
        bad = self.first_bad(X)
        if bad < 0:
            return
        X = self.without_names(X)
        if not np.isfinite(X[bad]).all():
            raise ValueError(f"context {bad} holds NaN or infinity: {X[bad]}; clean the features")
        raise ValueError(
            f"context {bad} has norm {math.hypot(*X[bad]):.9g}, above context_norm="
            f"{self.context_norm:g}: scale the features down, or raise Problem(context_norm=...)"
        )

    def known(self, name: str, why: str) -> float:
        """The value of an optional field, or an error that says who needs it."""
        value = getattr(self, name)
        if value is None:
            raise ValueError(f"{why} needs {name}: pass Problem(..., {name}=...)")
        return float(value)


def _items(given: Any, dim: int) -> tuple[int, int]:
    """Return the coordinate of a new item and the number of slots behind it."""
    try:
        at, slots = given
    except (TypeError, ValueError):
        raise ValueError(
            f"items must be a coordinate and slots, got {validate.show(given)}"
        ) from None
    at = validate.count("items", at, "coordinate of a new item", least=0)
    slots = validate.count("items", slots, "slots for names")
    if at + slots >= dim:
        raise ValueError(f"items need coordinates {at} to {at + slots}, but dim is {dim}")
    return at, slots
