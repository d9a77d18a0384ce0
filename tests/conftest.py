"""Fixtures that several test files share."""

import shutil

import pytest

from driftbandit.loop.storage import sqlite


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
