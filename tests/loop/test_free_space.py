"""Free space of SQLite files: all of it is overwritten, and nothing else."""

import os
import random
import sqlite3
from contextlib import closing

import pytest

from driftbandit.loop.errors import LedgerError
from driftbandit.loop.storage.free_space import PageFile, free_ranges

TABLES = """
CREATE TABLE a (place INTEGER PRIMARY KEY, name TEXT, data BLOB);
CREATE INDEX a_name ON a (name);
CREATE UNIQUE INDEX a_both ON a (name, place) WHERE name IS NOT NULL;
CREATE TABLE b (name TEXT PRIMARY KEY, n REAL, data TEXT) WITHOUT ROWID;
"""


def changed(base, seed, n=700):
    """Rows that come, grow, shrink and go, in pages of every kind."""
    rng = random.Random(seed)
    for k in range(n):
        name = f"name {rng.randrange(400)} " + "x" * rng.choice((0, 3, 60, 900))
        data = f"PRIVATE {k} " + "y" * rng.choice((0, 30, 3000, 9000))
        act = rng.random()
        if act < 0.5:
            base.execute("INSERT INTO a (name, data) VALUES (?, ?)", (name, data.encode()))
            base.execute("INSERT OR REPLACE INTO b VALUES (?, ?, ?)", (name, rng.random(), data))
        elif act < 0.75:
            place = rng.randrange(1, n)
            base.execute("UPDATE a SET data = ?, name = ? WHERE place = ?", (data, name, place))
            base.execute("UPDATE b SET data = ? WHERE name < ? AND n < 0.1", (data, name))
        else:
            base.execute("DELETE FROM a WHERE place = ?", (rng.randrange(1, n),))
            base.execute("DELETE FROM b WHERE n < ?", (0.02 * rng.random(),))


def scrubbed(path):
    """Overwrite all free space of a file that no connection has open."""
    descriptor = os.open(path, os.O_RDWR)
    file = PageFile.of(descriptor)
    unused = file.unused()
    for number in range(1, file.pages + 1):
        file.overwrite(number, unused)
    left = [n for n in range(1, file.pages + 1) if file.free(n, unused)]
    os.close(descriptor)
    return left


@pytest.mark.parametrize("page", [512, 4096, 65536])
@pytest.mark.parametrize("secure", ["OFF", "ON"])
def test_rows_stay_and_all_else_goes(tmp_path, page, secure):
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as base:
        base.execute(f"PRAGMA page_size = {page}")
        base.execute(f"PRAGMA secure_delete = {secure}")
        base.executescript(TABLES)
        base.execute("BEGIN")
        changed(base, seed=page)
        base.execute("COMMIT")
        before = [*base.iterdump()]
        base.execute("BEGIN")
        base.execute("UPDATE a SET data = 'z', name = NULL WHERE data LIKE 'PRIVATE%'")
        base.execute("UPDATE a SET data = zeroblob(5), name = NULL")
        base.execute("DELETE FROM b")
        base.execute("COMMIT")
        after = [*base.iterdump()]
    assert before != after
    assert scrubbed(path) == []
    assert b"PRIVATE" not in path.read_bytes()
    assert b"name 1" not in path.read_bytes()
    with closing(sqlite3.connect(path, isolation_level=None)) as base:
        assert base.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert [*base.iterdump()] == after
        changed(base, seed=1, n=200)  # it goes on
        assert base.execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.mark.parametrize("seed", range(6))
def test_a_file_in_use_keeps_all_its_rows(tmp_path, seed):
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as base:
        base.executescript(TABLES)
        for part in range(4):
            base.execute("BEGIN")
            changed(base, seed=10 * seed + part, n=400)
            base.execute("COMMIT")
    with closing(sqlite3.connect(path)) as base:
        rows = [*base.iterdump()]
    assert scrubbed(path) == []
    with closing(sqlite3.connect(path)) as base:
        assert base.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert [*base.iterdump()] == rows


def test_a_damaged_page_is_not_touched():
    page = bytearray(512)
    page[0], page[4], page[8:10] = 13, 1, (4).to_bytes(2, "big")  # a cell within the header
    with pytest.raises(LedgerError, match="damaged"):
        list(free_ranges(bytes(page), 512))
