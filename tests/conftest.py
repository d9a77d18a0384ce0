"""Fixtures that several test files share."""

import shutil

import pytest


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
    from driftbandit.loop import database  # not every test needs the loop

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database, "SYNCHRONOUS", "OFF")
        yield
