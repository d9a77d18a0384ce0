"""The changes: one operator, number, comparison, call or line at a time, as syntax trees."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

SWAPS: dict[type, list[type]] = {
    ast.Add: [ast.Sub],
    ast.Sub: [ast.Add],
    ast.Mult: [ast.Div],
    ast.Div: [ast.Mult],
    ast.Pow: [ast.Mult],
    ast.Mod: [ast.FloorDiv],
    ast.FloorDiv: [ast.Mult],
    ast.Lt: [ast.LtE, ast.GtE],
    ast.LtE: [ast.Lt, ast.Gt],
    ast.Gt: [ast.GtE, ast.LtE],
    ast.GtE: [ast.Gt, ast.Lt],
    ast.Eq: [ast.NotEq],
    ast.NotEq: [ast.Eq],
    ast.Is: [ast.IsNot],
    ast.IsNot: [ast.Is],
    ast.And: [ast.Or],
    ast.Or: [ast.And],
}
CALLS = {"max": "min", "min": "max", "floor": "ceil", "ceil": "floor", "any": "all", "all": "any"}
UNWRAPPED = {"sqrt", "log", "log1p", "exp", "expm1", "abs", "cumsum"}
NO_CODE = ("annotation", "returns", "decorator_list")


class Mutant(NamedTuple):
    """One change: the `alternative`-th of the `node`-th node of a file, in the order of `nodes`."""

    file: str
    function: str
    line: int
    before: str
    after: str
    occurrence: int  # of the same change in the same function
    node: int
    alternative: int

    @property
    def key(self) -> str:
        again = f" #{self.occurrence}" if self.occurrence > 1 else ""
        return f"{self.file} {self.function}: {self.before} -> {self.after}{again}"


def alternatives(node: ast.AST) -> Iterator[ast.AST]:
    """What could stand in place of a node."""
    if isinstance(node, ast.BinOp):
        for operator in SWAPS.get(type(node.op), []):
            yield ast.BinOp(node.left, operator(), node.right)
        if isinstance(node.op, (ast.Add, ast.Sub, ast.Mult, ast.Div)):
            yield node.left
        if isinstance(node.op, (ast.Add, ast.Mult)):
            yield node.right
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        for operator in SWAPS.get(type(node.ops[0]), []):
            yield ast.Compare(node.left, [operator()], node.comparators)
    elif isinstance(node, ast.BoolOp):
        yield ast.BoolOp(SWAPS[type(node.op)][0](), node.values)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.Not, ast.Invert)):
        yield node.operand
    elif isinstance(node, ast.AugAssign):
        for operator in SWAPS.get(type(node.op), []):
            yield ast.AugAssign(node.target, operator(), node.value)
        yield ast.Pass()
    elif isinstance(node, ast.Constant):
        yield from _numbers(node.value)
    elif isinstance(node, ast.Call):
        yield from _calls(node)
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield ast.Pass()


def _numbers(value: object) -> Iterator[ast.AST]:
    if isinstance(value, bool):
        yield ast.Constant(not value)
    elif isinstance(value, int):
        yield ast.Constant(value + 1)
    elif isinstance(value, float):
        yield ast.Constant(2.0 * value if value else 1.0)


def _calls(node: ast.Call) -> Iterator[ast.AST]:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name in CALLS:
        other = copy.deepcopy(node.func)
        setattr(other, "attr" if isinstance(other, ast.Attribute) else "id", CALLS[name])
        yield ast.Call(other, node.args, node.keywords)
    if name in UNWRAPPED and node.args:
        yield node.args[0]


class Place(NamedTuple):
    """Where a node hangs, and in which function."""

    node: ast.AST
    parent: ast.AST
    field: str
    index: int | None
    function: str


def places(tree: ast.AST, function: str = "") -> Iterator[Place]:
    """All nodes that are code: no annotations, texts, error messages or decorators."""
    for field, value in ast.iter_fields(tree):
        if field in NO_CODE:
            continue
        for index, child in enumerate(value if isinstance(value, list) else [value]):
            if not isinstance(child, ast.AST) or isinstance(child, (ast.Raise, ast.JoinedStr)):
                continue
            yield Place(child, tree, field, index if isinstance(value, list) else None, function)
            named = isinstance(child, (ast.FunctionDef, ast.ClassDef))
            yield from places(child, child.name if named else function)


def mutants(root: Path, file: str) -> list[Mutant]:
    """Every change to a file."""
    found: list[Mutant] = []
    seen: dict[str, int] = {}
    for number, place in enumerate(places(ast.parse((root / file).read_text()))):
        before = ast.unparse(place.node) if isinstance(place.node, (ast.expr, ast.stmt)) else ""
        for alternative, node in enumerate(alternatives(place.node)):
            after = ast.unparse(ast.fix_missing_locations(copy.deepcopy(node)))
            mutant = Mutant(
                *(file, place.function, getattr(place.node, "lineno", 0), before, after),
                *(1, number, alternative),
            )
            seen[mutant.key] = seen.get(mutant.key, 0) + 1
            found.append(mutant._replace(occurrence=seen[mutant.key]))
    return found


def changed(root: Path, mutant: Mutant) -> ast.Module:
    """The file with its change."""
    tree = ast.parse((root / mutant.file).read_text())
    place = next(p for number, p in enumerate(places(tree)) if number == mutant.node)
    *_, node = (n for _, n in zip(range(mutant.alternative + 1), alternatives(place.node)))
    ast.copy_location(node, place.node)
    if place.index is None:
        setattr(place.parent, place.field, node)
    else:
        getattr(place.parent, place.field)[place.index] = node
    return ast.fix_missing_locations(tree)
