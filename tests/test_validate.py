"""Checks of what users pass, and files that are whole."""

import time

import pytest

from driftbandit import validate
from driftbandit.files import atomically


@pytest.mark.parametrize(
    ("given", "end"),
    [
        ("prize", "did you mean 'price'?"),
        ("zzz", "there is ['price', 'age']"),
        (7, "there is ['price', 'age']"),
        (None, "there is ['price', 'age']"),
    ],
)
def test_the_nearest_name_is_proposed(given, end):
    assert validate.nearest(given, ["price", "age"]) == end


def test_long_names_take_no_time():
    start = time.process_time()
    known = [*("x" * 10**6 + str(k) for k in range(9)), "y"]
    assert "there is" in validate.nearest("x" * 10**6, known)
    assert time.process_time() - start < 1.0  # comparing all letters would take minutes


@pytest.mark.parametrize("value", ["", "a\nb", "x" * 201, 7, None, b"x"])
def test_an_id_is_printable_text(value):
    with pytest.raises(ValueError, match="key must be printable text of at most 200"):
        validate.text("key", value)


def test_an_id_is_returned():
    assert validate.text("key", "ada") == "ada"


def test_a_file_is_replaced_as_a_whole(tmp_path):
    path = tmp_path / "file"
    with atomically(path) as temporary:
        temporary.write_text("old")
        assert not path.exists()
    with pytest.raises(TypeError), atomically(path) as temporary:
        temporary.write_text(b"no text")
    assert path.read_text() == "old"
    with atomically(path) as temporary:
        temporary.write_text("new")
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]
