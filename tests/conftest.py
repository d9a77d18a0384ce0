"""Fixtures that several test files share."""

import hashlib
import shutil
import sys
import warnings
from collections import Counter
from itertools import count

import pytest

from driftbandit import cli
from driftbandit.loop.deciding import request as asking
from driftbandit.loop.storage import sqlite


def pytest_collection_modifyitems(items):
    """Begin with files that have slow tests: the file that ends last decides how long it takes."""
    slow = Counter(item.path for item in items if item.get_closest_marker("slow"))
    items.sort(key=lambda item: -slow[item.path])


@pytest.fixture(autouse=True)
def same_ids(monkeypatch, request):
    """Give a test the same ids in every run: draws hash them, so a test that counts clicks would
    otherwise fail once in many runs. Tests that share a loop have ids of their own."""
    numbers, name = count(1), request.node.nodeid

    def next_id() -> str:
        k = next(numbers)
        return f"{k:012x}{hashlib.sha256(f'{name} {k}'.encode()).hexdigest()[:20]}"

    monkeypatch.setattr(asking, "new_id", next_id)


@pytest.fixture
def driftbandit(tmp_path, monkeypatch, capsys):
    """The command line, in this process and in the test's own folder: exit code and what it says.
    A process of its own would take most of its time to start."""
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)  # the command has its own

    def run(*words):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", ["driftbandit", *map(str, words)])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        return stop.value.code, *capsys.readouterr()

    return run


@pytest.fixture(scope="session")
def postgres():
    """A PostgreSQL server, started when a test first asks for it."""
    if not all(map(shutil.which, ("initdb", "postgres"))):
        pytest.skip("no PostgreSQL here: install Debian's postgresql and put it on the path")
    from databases import Server  # psycopg is needed only here

    server = Server()
    yield server
    server.remove()


@pytest.fixture(scope="module")
def no_wait_for_the_disk():
    """Ledgers of this process do not wait until what they store is on the disk."""

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite, "SYNCHRONOUS", "OFF")
        yield
