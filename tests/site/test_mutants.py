"""The machinery of `make mutants`: which changes it makes, and that a change is met by everyone."""

import ast
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = '''"""Words are no code: 1 + 1."""
HALF = 0.5

def area(r: float = 2.0) -> float:
    """3 * 3"""
    if r < 0:
        raise ValueError(f"{r + 1} is bad")
    return max(r, HALF) * r
'''


@pytest.fixture
def mutants(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    return lambda name: importlib.import_module(f"benchmarks.mutants.{name}")


def test_changes_are_made_to_code_alone(mutants, tmp_path):
    (tmp_path / "shape.py").write_text(SOURCE)
    changes = mutants("changes")
    found = changes.mutants(tmp_path, "shape.py")
    assert [m.key for m in found] == [
        "shape.py : 0.5 -> 1.0",
        "shape.py area: 2.0 -> 4.0",
        "shape.py area: r < 0 -> r <= 0",
        "shape.py area: r < 0 -> r >= 0",
        "shape.py area: 0 -> 1",
        "shape.py area: max(r, HALF) * r -> max(r, HALF) / r",
        "shape.py area: max(r, HALF) * r -> max(r, HALF)",
        "shape.py area: max(r, HALF) * r -> r",
        "shape.py area: max(r, HALF) -> min(r, HALF)",
    ]
    plain = ast.unparse(ast.parse(SOURCE)).splitlines()
    for mutant in found:
        new = ast.unparse(changes.changed(tmp_path, mutant)).splitlines()
        (pair,) = [(a, b) for a, b in zip(plain, new) if a != b]
        assert pair[1] == pair[0].replace(mutant.before, mutant.after, 1)


def test_a_change_is_met_by_everyone_who_imported_the_function(mutants, monkeypatch):
    from driftbandit import Problem, theory
    from driftbandit.theory import sharp

    judge, problem = mutants("judge"), Problem(dim=2, radius=1.0)
    whole = mutants("changes").mutants(judge.PACKAGE, "theory/domd.py")
    (mutant,) = [m for m in whole if (m.function, m.before) == ("alpha", "1.5")]
    code = theory.alpha.__code__
    monkeypatch.setattr(theory.alpha, "__code__", code)  # put back at the end
    before = theory.alpha(problem), sharp.lam(problem)
    judge.put(mutant)
    assert theory.alpha(problem) == 2.0 * before[0]
    assert sharp.lam(problem) == 2.0 * before[1]


def test_reasons_are_found_by_the_whole_change_or_its_beginning(mutants, monkeypatch):
    equivalent = mutants("equivalent")
    monkeypatch.setattr(equivalent, "REASONS", {"why": ("a.py f: x -> y", "a.py : 1 -> *")})
    assert equivalent.reason("a.py f: x -> y") == equivalent.reason("a.py : 1 -> 2") == "why"
    assert equivalent.reason("a.py f: x -> z") is None
    assert equivalent.reason("a.py f: x -> y #2") is None


def test_unknown_names_are_refused(mutants):
    main = mutants("__main__")
    assert [g.files for g in main.chosen(["theory/extensions.py"])] == [("theory/extensions.py",)]
    assert len(main.chosen([])) == sum(len(groups) for groups in main.GROUPS.values())
    with pytest.raises(SystemExit, match="choose among"):
        main.chosen(["theorie"])
