"""What every recipe promises."""

from __future__ import annotations

import json
import pickle
import traceback
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from driftbandit.recipe import Recipe


def run_checks(checks: Iterable[Callable[..., None]], subject: Any, *more: Any) -> None:
    """Run checks one by one; an AssertionError names the promise that is broken, and where."""
    if isinstance(subject, type):
        name = subject.__name__
        raise ValueError(f"a check needs an object, not the class: make one, as {name}(...)")
    for check in checks:
        try:
            check(subject, *more)
        except Exception as error:
            if isinstance(error, AssertionError) and str(error):
                raise
            promise = check.__name__.removeprefix("check_").replace("_", " ")
            head = f"{type(subject).__name__} breaks the promise {promise!r}"
            raise AssertionError(f"{head}: {_fault(error)}") from error


def _fault(error: Exception) -> str:
    """Return the line whose condition does not hold, or what was raised instead."""
    if isinstance(error, AssertionError):
        return f"not true is `{traceback.extract_tb(error.__traceback__)[-1].line}`"
    return f"it raises {type(error).__name__}" + (f": {error}" if str(error) else "")


def check_recipe(recipe: Any) -> None:
    """Printable, hashable, equal to its copy, and the same after JSON and pickle."""
    assert repr(recipe)
    twin = Recipe.from_dict(json.loads(json.dumps(recipe.to_dict())))
    assert twin == recipe, f"from_dict(to_dict()) gives {twin!r}, not {recipe!r}"
    assert hash(twin) == hash(recipe)
    assert pickle.loads(pickle.dumps(recipe)) == recipe


def same(found: Any, expected: Any, message: str) -> None:
    """Both hold the same arrays, to the last bit."""
    for a, b in zip(found, expected):
        assert np.array_equal(a, b), message
