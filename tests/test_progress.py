"""Progress bars in a notebook: IPython's displays, played by a small stand-in."""

import sys
import types

import pytest

from driftbandit import Circle, Uniform, simulate


@pytest.fixture
def shown(monkeypatch):
    """What a notebook would show: a list of texts, the newest last."""
    texts = []

    class Handle:
        def update(self, html):
            texts.append(html)

    def show(html, display_id):
        texts.append(html)
        return Handle()

    ipython, display = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    ipython.get_ipython = lambda: types.SimpleNamespace(kernel=object())
    ipython.display, display.HTML, display.display = display, str, show
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    return texts


def test_a_notebook_shows_a_bar_that_ends_full(shown):
    world = Circle(horizon=40)
    simulate(Uniform(problem=world.problem), world, range(2), progress=True)
    assert shown[0].startswith("Uniform <progress>")
    assert shown[-1] == 'Uniform <progress value="40" max="40"></progress> 40 of 40'


def test_a_terminal_python_with_ipython_imported_shows_none(shown, monkeypatch, capsys):
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", lambda: None)
    world = Circle(horizon=40)
    simulate(Uniform(problem=world.problem), world, range(2), progress=True)
    assert not shown
