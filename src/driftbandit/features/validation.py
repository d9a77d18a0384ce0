"""What a declaration must be, checked when it is made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from driftbandit import validate
from driftbandit.features.columns import refuse_unknown
from driftbandit.features.declarations import Feature, Item
from driftbandit.features.encoders import ONE
from driftbandit.features.plan import all_pairs

if TYPE_CHECKING:
    from driftbandit.features.features import Features

MOST = 1 << 20  # products of coordinates: tables of 16 MB


def columns(side: str, given: Any) -> dict[str, Feature]:
    """The columns of a side."""
    if not isinstance(given, Mapping):
        raise ValueError(
            f"{side} must be a mapping such as {{'age': Number(18, 90)}}, got "
            f"{validate.show(given)}"
        )
    for name, feature in given.items():
        if not isinstance(name, str) or not name or "*" in name or name == ONE:
            raise ValueError(
                f"a column's name is text without '*' and not '1', got {validate.show(name)}"
            )
        if type(feature) is Feature or not isinstance(feature, Feature):
            raise ValueError(
                f"{name!r} must be a Number, Category, Flag, Vector or Item, got "
                f"{validate.show(feature)}"
            )
    return dict(given)


def sides(context: dict[str, Feature], arm: dict[str, Feature]) -> None:
    """Both together."""
    twice = sorted(set(context) & set(arm))
    if twice:
        raise ValueError(
            f"{twice[0]!r} is declared for contexts and for arms: give one of them another name"
        )
    if not arm:
        raise ValueError(
            "without arm columns all arms look the same: declare at least one, for example "
            "arm={'id': Category([...])}"
        )
    items = [name for name, f in arm.items() if isinstance(f, Item)]
    if len(items) > 1 or any(isinstance(f, Item) for f in context.values()):
        raise ValueError(
            "an Item names an arm, so it is one column of the arm: declare others as Category"
        )
    size = (1 + sum(f.width for f in context.values())) * (1 + sum(f.width for f in arm.values()))
    if size > MOST:
        name, widest = max((context | arm).items(), key=lambda item: item[1].width)
        raise ValueError(
            f"context x arm has {size} terms, more than {MOST}, and {name!r} has {widest.width} "
            "coordinates: hash it with Category(size=...), or project it with Vector(..., keep=24)"
        )


def interactions(
    given: Any, context: dict[str, Feature], arm: dict[str, Feature]
) -> tuple[tuple[str, str], ...] | None:
    """Pairs (context, arm), in either order; None for all."""
    if given is None:
        return None
    if isinstance(given, (str, bytes)) or not isinstance(given, (list, tuple)):
        raise ValueError(
            f"interactions must be a list of pairs such as [('age', 'price')], or None for all, "
            f"got {validate.show(given)}"
        )
    pairs = [_pair(each, context, arm) for each in given]
    if len(set(pairs)) < len(pairs):
        raise ValueError(f"interactions name a pair twice: {validate.show(sorted(pairs))}")
    return tuple(sorted(pairs))


def _pair(given: Any, context: dict[str, Feature], arm: dict[str, Feature]) -> tuple[str, str]:
    if isinstance(given, (str, bytes)) or not isinstance(given, (list, tuple)) or len(given) != 2:
        raise ValueError(
            f"an interaction is a pair such as ('age', 'price'), got {validate.show(given)}"
        )
    for name in given:
        if not isinstance(name, str) or name not in context | arm:
            raise ValueError(
                f"interactions name {validate.show(name)}, which is not declared: "
                f"{validate.nearest(name, sorted(context | arm))}"
            )
    first, second = given if given[0] in context else reversed(given)
    if first not in context or second not in arm:
        raise ValueError(
            f"an interaction is between a column of the context and one of the arm, got {given}"
        )
    if isinstance(arm[second], Item):
        raise ValueError(
            f"an Item has an effect of its own and no products: leave {given} out, or declare "
            f"{second!r} as a Category"
        )
    return first, second


def known_columns(given: Mapping[str, Any], names: Iterable[str]) -> None:
    """Columns by name, all of them declared."""
    if not frozenset(names).issuperset(given):
        refuse_unknown("this", given, frozenset(names))


def encoding(given: Any, latest: int) -> None:
    """The version of the rules of encoding."""
    if type(given) is not int or not 1 <= given <= latest:
        raise ValueError(
            f"encoding is a version from 1 to {latest}, got {validate.show(given)}: leave it out"
        )


def dim(given: Any) -> int | str | None:
    """The largest number of coordinates."""
    if given is None or given == "exact":
        return given
    if isinstance(given, str):
        raise ValueError(f"dim must be a number, 'exact', or None for the default, got {given!r}")
    return validate.count("dim", given, "coordinates of a row; 'exact' for one per term", least=2)


def base(grown: Features, old: Any) -> None:
    """What a declaration says it grew out of."""
    if not isinstance(old, type(grown)):
        raise ValueError(f"base is made by grow(), got {validate.show(old)}")
    kept = old.context.items() <= grown.context.items() and old.arm.items() <= grown.arm.items()
    if not kept or not set(all_pairs(old)) <= set(all_pairs(grown)):
        raise ValueError("a declaration keeps what its base declared: use base.grow(...)")
    if old.folded or grown.folded:
        raise ValueError(
            "folded features cannot grow, because new terms would share old coordinates: declare "
            "anew, with dim='exact' if it is to grow"
        )


def fresh(old: Features, new: Mapping[str, Mapping[str, Any]]) -> None:
    """Columns to grow by are new, and the old ones have places of their own."""
    columns = (*old.arm.values(), *(each for side in new.values() for each in side.values()))
    if any(isinstance(each, Item) for each in columns):
        raise ValueError(
            "features with an Item cannot grow: let a candidate learn with new ones, "
            "loop.shadow('wider', features=Features(...))"
        )
    if old.folded:
        raise ValueError(
            "folded features cannot grow, because new terms would share old coordinates: declare "
            "anew, with dim='exact' if it is to grow"
        )
    names = [name for side in new.values() for name in side]
    if not names:
        raise ValueError("there is nothing to grow by: pass context={...} or arm={...}")
    for name in names:
        if name in old.columns:
            raise ValueError(f"{name!r} is declared already and keeps its scale: use another name")
