"""Options of a loop: one list, the same for type checkers, errors and the documentation."""

import inspect
from dataclasses import fields

import pytest

from driftbandit import DOMD, Features, Loop, Number, Reward
from driftbandit.loop.config import OPTIONS, Changeable, Declaration, Options, Settings

NEW = {"features": Features(arm={"price": Number(0, 9)}), "reward": Reward(0, 1), "policy": DOMD}


def test_type_checkers_see_all_options_and_no_others():
    assert OPTIONS.keys() == Options.__annotations__.keys()
    own = {each.name for each in fields(Settings) if "meaning" in each.metadata}
    assert Changeable.__annotations__.keys() == own
    assert not own & {each.name for each in fields(Declaration)}


def test_the_documentation_has_a_row_for_each():
    text = inspect.getdoc(Loop)
    for name, meaning in OPTIONS.items():
        assert f"| `{name}` | {meaning} |" in text


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        ("explore", "exploration"),
        ("halflife", "half_life"),
        ("Mode", "mode"),
        ("rewards", "reward"),
    ],
)
def test_an_unknown_option_is_refused_with_a_suggestion(tmp_path, wrong, meant):
    said = f"no option '{wrong}': did you mean '{meant}'"
    with pytest.raises(TypeError, match=said):
        Loop(tmp_path / "a.db", **NEW, **{wrong: 0.1})
    assert not (tmp_path / "a.db").exists()
    with Loop(":memory:", **NEW, training="inline") as loop:
        before = loop.counts
        with pytest.raises(TypeError, match=said):
            loop.configure(**{wrong: 0.1})
        with pytest.raises(TypeError, match="'seed' cannot be changed"):
            loop.configure(seed=3)
        assert loop.counts == before
