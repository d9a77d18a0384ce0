"""The notebooks of the documentation run, and what their cells end with shows as a table."""

import ast
import json
import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def played(path):
    """Run all cells in order; return what each code cell ends with, if it is an expression."""
    names, shown = {}, []
    for cell in json.loads(path.read_text())["cells"]:
        if cell["cell_type"] != "code":
            continue
        assert cell["outputs"] == [], "outputs are not committed"
        parts = ast.parse("".join(cell["source"])).body
        last = parts.pop() if isinstance(parts[-1], ast.Expr) else None
        exec(compile(ast.Module(parts, []), path.name, "exec"), names)
        if last is not None:
            shown.append(eval(compile(ast.Expression(last.value), path.name, "eval"), names))
    return shown


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs_and_shows_tables(path):
    tables = [each for each in played(path) if hasattr(each, "_repr_html_")]
    assert len(tables) >= 2
    for each in tables:
        text = each._repr_html_()
        assert re.search(r"<t[rd]", text)
        assert "<script" not in text


def test_there_are_two_and_a_page_names_them():
    text = (FOLDER.parent / "integrations.md").read_text()
    assert len(NOTEBOOKS) == 2
    for path in NOTEBOOKS:
        assert f"notebooks/{path.name}" in text
