"""What is known of the world before the first round."""

from __future__ import annotations

from dataclasses import dataclass, field

from driftbandit import validate
from driftbandit.families import Bernoulli, Family
from driftbandit.recipe import Recipe


@dataclass(frozen=True, kw_only=True)
class Problem(Recipe):
    """A nonstationary generalized linear bandit (section 3 of the paper).

    | here | paper | |
    |---|---|---|
    | `dim` | d | length of a context |
    | `family` | m, mu, g(tau), R | how rewards follow from x'theta |
    | `radius` | S | bound on the norm of theta, if known; else most policies take the paper's 1 |
    | `context_norm` | L | bound on the norm of a context; the paper has 1 |
    | `horizon` | T | rounds to come, if known |
    | `path_length` | P_T | total movement of theta, if known |
    | `change_points` | Gamma_T | times theta jumps, if known |

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

    @property
    def ball(self) -> float:
        """Radius of the ball that theta is kept in: `radius`, or 1 where it is not known."""
        return 1.0 if self.radius is None else self.radius

    @property
    def S(self) -> float:
        """Bound on |x'theta|: the paper's S once contexts have norm at most 1."""
        return self.ball * self.context_norm

    @property
    def k_mu(self) -> float:
        return self.family.k_mu(self.S)

    @property
    def c_mu(self) -> float:
        return self.family.c_mu(self.S)

    def known(self, name: str, why: str) -> float:
        """The value of an optional field, or an error that says who needs it."""
        value = getattr(self, name)
        if value is None:
            raise ValueError(f"{why} needs {name}: pass Problem(..., {name}=...)")
        return float(value)
