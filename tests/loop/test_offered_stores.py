"""Stores of other packages: found by the scheme of an address, by entry points."""

import os
import subprocess
import sys

import pytest

from driftbandit import DOMD, Features, Loop, Number, Reward

NEW = {"features": Features(arm={"price": Number(0, 9)}), "reward": Reward(0, 1), "policy": DOMD}
STORE = """
from driftbandit.loop.storage.sqlite import SQLite


class Elsewhere(SQLite):
    def __init__(self, path, *, write):
        super().__init__(path.partition("://")[2], write=write)
"""
PROGRAM = """
import sys
from driftbandit import DOMD, Features, Loop, Number, Reward

path, declared = sys.argv[1], {"features": Features(arm={"price": Number(0, 9)})}
with Loop(path, reward=Reward(0, 1), policy=DOMD, **declared) as loop:
    id = loop.decide({}, {"a": {"price": 1}, "b": {"price": 2}}).id
    print(loop.reward(id, 1))
with Loop(path) as loop:
    print(loop.counts["decide"], loop.audit(id).agrees)
"""


def test_an_entry_point_opens_the_ledger(tmp_path):
    meta = tmp_path / "theirs-1.0.dist-info"
    meta.mkdir()
    (meta / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (meta / "entry_points.txt").write_text(
        "[driftbandit.stores]\nelsewhere = their_store:Elsewhere\n"
    )
    (tmp_path / "their_store.py").write_text(STORE)
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, f"elsewhere://{tmp_path}/a.db"],
        env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.stdout == "counted\n1 True\n", done.stderr
    assert (tmp_path / "a.db").is_file()


def test_a_scheme_that_no_package_offers_is_refused():
    with pytest.raises(
        ValueError, match=r"no store for oracle:// is installed.*driftbandit.stores"
    ):
        Loop("oracle://somewhere/else", **NEW)
