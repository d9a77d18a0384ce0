"""The file of a ledger: other names of it, and a file that goes away while a loop is open."""

import os
import shutil
import subprocess
import sys
import time

import pytest

from driftbandit import DOMD, Features, Loop, Number, Reward
from driftbandit.loop.errors import LedgerError
from driftbandit.loop.reporting.verification import verify
from driftbandit.loop.storage.one_name import LOCKS
from driftbandit.service.ops.backup import backup

pytestmark = pytest.mark.usefixtures("no_wait_for_the_disk")

ARMS = {"a": {"price": 0}, "b": {"price": 1}}
OPTIONS = {
    "features": Features(context={}, arm={"price": Number(0, 1)}),
    "reward": Reward(0, 1),
    "policy": DOMD,
}
OTHER = """
import sys
from driftbandit import Loop
try:
    Loop(sys.argv[1], name=sys.argv[2], training="inline").decide({}, {"a": {"price": 0}})
    print("opened")
except ValueError as error:
    print("refused:", error)
"""


def elsewhere(path, name="loop"):
    """What another process says that opens a loop and decides."""
    command = [sys.executable, "-c", OTHER, str(path), name]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def two(tmp_path):
    """A file with two loops."""
    path = tmp_path / "a.db"
    for name in ("loop", "other"):
        Loop(path, name=name, **OPTIONS).close()
    return path


def test_a_second_writer_through_a_symbolic_link_is_refused(two):
    link = two.with_name("link.db")
    link.symlink_to(two)
    with Loop(two) as loop:
        loop.decide({}, ARMS)
        assert "open already" in elsewhere(link)
        assert elsewhere(link, "other") == "opened\n"  # SQLite knows where the link leads
        loop.decide({}, ARMS)
    assert all(found.holds for found in verify(two))


@pytest.mark.skipif(not LOCKS, reason="needs locks of open file descriptions")
@pytest.mark.parametrize(("folder", "name"), [(".", "loop"), ("elsewhere", "other")])
def test_a_file_with_two_names_opens_under_one(two, folder, name):
    link = two.parent / folder / "b.db"
    link.parent.mkdir(exist_ok=True)
    os.link(two, link)
    with Loop(two) as loop:
        loop.decide({}, ARMS)
        assert "is open under another name" in elsewhere(link, name)
        with pytest.raises(LedgerError, match="is open under another name"):
            Loop(link, name="other")  # in this process, too
        assert elsewhere(two, "other") == "opened\n"
    assert elsewhere(link, name) == "opened\n"  # it is free again


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:This process.*fork:DeprecationWarning")
def test_a_forked_child_does_not_keep_the_name(two):
    """A child outlives its parent's loop: the file must be free for a new name then."""
    loop = Loop(two, training="inline")
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(write)
        os.read(read, 1)  # until the test is over
        os._exit(0)
    try:
        os.close(read)
        loop.close()
        two.rename(two.with_name("moved.db"))
        assert elsewhere(two.with_name("moved.db")) == "opened\n"
    finally:
        os.close(write)
        os.waitpid(child, 0)


def moved(path):
    for end in ("", "-wal", "-shm"):
        path.with_name(path.name + end).rename(path.with_name("old.db" + end))


def deleted(path):
    for end in ("", "-wal", "-shm"):
        path.with_name(path.name + end).unlink()


def replaced(path):
    shutil.copy(path, path.with_name("copy.db"))
    os.replace(path.with_name("copy.db"), path)


@pytest.mark.parametrize("happens", [moved, deleted, replaced])
@pytest.mark.parametrize("training", ["inline", "background"])
def test_a_loop_whose_file_goes_away_stops(two, happens, training):
    loop = Loop(two, training=training)
    loop.decide({}, ARMS, id="before")
    happens(two)
    for _ in range(2):
        with pytest.raises(LedgerError, match="was moved, deleted or replaced while it was open"):
            loop.decide({}, ARMS)
    loop.close()
    assert two.exists() == (happens is replaced)  # no empty ledger takes its place


def test_a_loop_that_waits_notices_within_a_second(two):
    loop = Loop(two)
    deleted(two)
    end = time.monotonic() + 5.0
    while time.monotonic() < end:
        try:
            loop.check()
        except LedgerError:
            break
        time.sleep(0.05)
    assert time.monotonic() < end - 3.0  # a second, and some patience with a busy machine
    loop.close()


def test_a_backup_is_not_restored_beside_files_of_another_ledger(two):
    copy = two.with_name("copy.db")
    backup(two, copy)
    two.unlink()
    for end in ("-wal", "-shm", "-journal"):
        left = two.with_name(two.name + end)
        left.write_bytes(b"of a ledger that is gone")
        with pytest.raises(ValueError, match="is left from a ledger that is gone: move it away"):
            backup(copy, two)
        assert not two.exists()
        left.unlink()
    backup(copy, two)
    assert all(found.holds for found in verify(two))
