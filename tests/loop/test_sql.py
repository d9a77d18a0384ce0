"""SQL of both databases: numbered steps, and queries by name that the sources use."""

import ast
import sqlite3
from pathlib import Path

import pytest

import driftbandit
from driftbandit import Features, Loop, Number, Reward
from driftbandit.loop.errors import LedgerError
from driftbandit.loop.storage import sql
from driftbandit.loop.storage.ledger import Ledger

SOURCES = Path(driftbandit.__file__).parent
STORES = ("sqlite", "postgres")
ASKING = {
    "ask",
    "run",
    "run_many",
    "_pages",
    "ask_writer",
    "_ask",
    "_try",
}  # calls whose first argument is a query
LOCKED = {"turn", "read"}  # calls of a lock, which pass a query on
NEW = {"features": Features(arm={"price": Number(0, 9)}), "reward": Reward(0, 1)}


def texts(node):
    """The constants that an expression may be."""
    if isinstance(node, ast.IfExp):
        return texts(node.body) | texts(node.orelse)
    return {node.value} if isinstance(node, ast.Constant) and isinstance(node.value, str) else set()


def asked(path):
    """Names of queries in a file: what is asked for, and variables named `query`."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            of_lock = node.func.attr in LOCKED and "lock" in ast.unparse(node.func.value)
            if node.func.attr in ASKING or of_lock:
                found |= texts(node.args[0])
        elif isinstance(node, ast.Subscript) and ast.unparse(node.value).endswith("_queries"):
            found |= texts(node.slice)
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "query":
            found |= texts(node.value)
    return found


def test_every_query_that_is_used_exists_and_every_one_is_used():
    known = {store: sql.queries(store).keys() for store in STORES}
    files = [path for part in ("loop", "service") for path in (SOURCES / part).rglob("*.py")]
    used = {path: asked(path) for path in files}
    for path, names in used.items():
        for store in STORES if path.stem not in STORES else (path.stem,):
            assert names <= known[store], f"{path.name} asks {store} for {names - known[store]}"
    for store in STORES:
        assert known[store] <= set().union(*used.values())
    assert len(set().union(*used.values())) >= len(known["postgres"]) > 20  # all were found


def test_both_databases_have_had_the_same_steps():
    assert len(sql.migrations("sqlite")) == len(sql.migrations("postgres"))


@pytest.fixture(params=STORES)
def address(request, tmp_path):
    if request.param == "sqlite":
        return request.param, str(tmp_path / "a.db")
    return request.param, request.getfixturevalue("postgres").url()


def test_an_older_version_refuses_what_this_one_has_written(address, monkeypatch):
    """It knows one step less: it would take the columns of today for those of before."""
    store, path = address
    with Loop(path, training="inline", **NEW) as loop:
        digest = loop.digest
    known = sql.migrations(store)
    module = f"driftbandit.loop.storage.{store}.migrations"
    with monkeypatch.context() as patch:
        patch.setattr(module, lambda _: known[:-1])
        for write in (True, False):
            with pytest.raises(LedgerError, match="newer version: upgrade driftbandit"):
                Ledger(path, "loop", write=write)
    with Loop(path, training="inline") as loop:  # nothing has changed
        assert loop.digest == digest


@pytest.mark.parametrize("name", ["lasting_events", "checkpoints"])
def test_what_a_start_reads_is_found_by_the_index_of_rare_events(name):
    """A loop with 10^6 decisions starts without reading them."""
    base = sqlite3.connect(":memory:")
    for step in sql.migrations("sqlite"):
        base.executescript(step)
    (first, *_) = base.execute(f"EXPLAIN QUERY PLAN {sql.queries('sqlite')[name]}", (1,))
    assert "INDEX rare" in first[-1]
