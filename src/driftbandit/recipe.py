"""Recipes: frozen dataclasses of plain numbers that print, compare, and go to JSON and back."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

from driftbandit.validate import closest, show


class Recipe:
    """Base of every family, problem, policy and environment.

    A subclass is a frozen, keyword-only dataclass. It is known by its class name, so files
    can name it, and classes written elsewhere load as soon as they have been imported. So no two
    may have one name; a class of a notebook or script may be defined again.

    >>> from driftbandit import Bernoulli
    >>> Bernoulli().to_dict()
    {'type': 'Bernoulli'}
    >>> Recipe.from_dict({'type': 'Binomial', 'trials': 3})
    Binomial(trials=3)
    """

    registry: ClassVar[dict[str, type[Recipe]]] = {}
    former: ClassVar[Mapping[str, str]] = {}  # fields as older versions stored them: today's names
    absent: ClassVar[Mapping[str, Any]] = {}  # fields that older versions lack: what that means

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        _check_name(cls)
        Recipe.registry[cls.__name__] = cls

    @staticmethod
    def kinds(name: str) -> dict[str, type[Recipe]]:
        """Recipes by name: those that have been imported and, if `name` is not among them, all of
        this package and the one that an installed package offers under it."""
        if name not in Recipe.registry:
            import driftbandit

            for each in driftbandit.__all__:
                getattr(driftbandit, each)
        if name not in Recipe.registry:
            from driftbandit import plugins  # reading entry points takes a while

            plugins.offered(name)
        return Recipe.registry

    def _set(self, **values: Any) -> None:
        """Store cleaned values while the dataclass is being made; it is frozen afterwards."""
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __getstate__(self) -> dict[str, Any]:
        """Fields alone: what was computed from them is computed again."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}  # type: ignore[arg-type]

    def to_dict(self) -> dict[str, Any]:
        """The recipe as JSON-ready types, nested recipes included. A field is left out if it says
        what its absence means, so that recipes of older versions keep their fingerprints."""
        names = (f.name for f in dataclasses.fields(self))  # type: ignore[arg-type]
        values = {name: getattr(self, name) for name in names}
        return {"type": type(self).__name__} | {
            name: _plain(value)
            for name, value in values.items()
            if name not in self.absent or value != self.absent[name]
        }

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Any:
        """The recipe that `to_dict` described."""
        if not isinstance(data, Mapping) or not isinstance(data.get("type"), str):
            raise ValueError(f"a recipe is a mapping with a 'type', got {show(data)}")
        values = {k: _revive(v) for k, v in data.items() if k != "type"}
        known = Recipe.kinds(data["type"])
        kind = known.get(data["type"])
        if kind is None:
            near = closest(data["type"], known, cutoff=0.6)
            hint = f"did you mean {near!r}?" if near else "import the module that defines it first"
            raise ValueError(f"unknown recipe {data['type']!r}: {hint}")
        try:
            today = {kind.former.get(name, name): value for name, value in values.items()}
            return kind(**{**kind.absent, **today})
        except TypeError as error:
            raise ValueError(
                f"{data['type']} cannot be built from {sorted(values)}: {error}"
            ) from None


def _check_name(cls: type[Recipe]) -> None:
    """A class that took another's name would take its place in files and studies, unseen."""
    other = Recipe.registry.get(cls.__name__) or (None if _ours(cls) else _shipped(cls.__name__))
    if other is None or cls.__module__ == other.__module__:
        return
    if _ours(cls) or _ours(other):
        ours, theirs = (cls, other) if _ours(cls) else (other, cls)
        raise ValueError(
            f"{ours.__name__!r} is the name of a class that comes with driftbandit "
            f"({ours.__module__}): call the one in {theirs.__module__} something else"
        )
    if {"__main__", "__mp_main__"}.isdisjoint({cls.__module__, other.__module__}):
        raise ValueError(
            f"{cls.__module__} and {other.__module__} both have a class {cls.__name__!r}: call one "
            "of them something else"
        )


def _ours(cls: type) -> bool:
    return cls.__module__.startswith("driftbandit.")


def _shipped(name: str) -> type[Recipe] | None:
    """The recipe of this package with this name, which may not have been loaded yet."""
    import driftbandit

    kind = getattr(driftbandit, name) if name in driftbandit.__all__ else None
    return kind if isinstance(kind, type) and issubclass(kind, Recipe) else None


def _plain(value: Any) -> Any:
    if isinstance(value, Recipe):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    return value.tolist() if hasattr(value, "tolist") else value


def _revive(value: Any) -> Any:
    """Recipes inside; a mapping of them may itself have a key "type", which then is no text."""
    if not isinstance(value, Mapping):
        return value
    if isinstance(value.get("type"), str):
        return Recipe.from_dict(value)
    return {key: _revive(each) for key, each in value.items()}
