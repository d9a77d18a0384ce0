"""The ledger: what is stored stays, one writer, and errors that name the remedy."""

import os
import sqlite3
import subprocess
import sys
import textwrap

import pytest

from driftbandit.loop.errors import LedgerError
from driftbandit.loop.state.reward_windows import Example, RewardWindows
from driftbandit.loop.storage.events import Event, encode, plain
from driftbandit.loop.storage.key_rows import Numbers
from driftbandit.loop.storage.ledger import Ledger
from naive_book import examples


def event(seq, kind="decide", at=0.0, id=None, data="{}", key=None, k=None):
    return Event(seq, kind, at, id or (f"d{seq}" if kind == "decide" else None), key, data, k)


@pytest.fixture(params=["sqlite", "postgres"])
def address(request, tmp_path):
    """Where ledgers are kept: the same tests hold in both."""
    if request.param == "sqlite":
        return tmp_path / "with spaces ü.db"
    return request.getfixturevalue("postgres").url()


@pytest.fixture
def ledger(address):
    made = Ledger(address, "shop")
    yield made
    made.close()


@pytest.fixture
def in_file(tmp_path):
    made = Ledger(tmp_path / "with spaces ü.db", "shop")
    yield made
    made.close()


def test_events_come_back_in_order(ledger):
    events = [event(k, at=-k / 3, key="ann", data=encode({"n": k})) for k in range(1, 5001)]
    ledger.append(events[:1])
    ledger.append(events[1:])
    assert list(ledger.read()) == events
    assert list(ledger.read(4999)) == events[-2:]
    assert ledger.last() == 5000
    assert ledger.find("d17") == events[16]
    assert ledger.find("17") is None
    assert ledger.events([3, 9]) == {3: events[2], 9: events[8]}
    assert all(e.data == "{}" for e in ledger.read(light=True))
    ledger.append([event(5001, k=3), event(5002, "metric", data='{"x":1}')])
    light = [(e.data, e.k) for e in ledger.read(5000, light=True)]
    assert light == [("{}", None), ("{}", 3), ('{"x":1}', None)]  # the size of a slate matters


def test_two_loops_live_in_one_file(ledger, address):
    with_other = Ledger(address, "other")
    ledger.append([event(1)])
    with_other.append([event(1), event(2)])
    assert (ledger.last(), with_other.last()) == (1, 2)
    with_other.close()


def test_all_of_a_group_or_nothing(ledger):
    ledger.append([event(1)])
    with pytest.raises(LedgerError, match=r"(?i)unique"):
        ledger.append([event(2), event(3), event(2)])
    with pytest.raises(LedgerError, match=r"(?i)unique"):
        ledger.append([event(2), event(3), event(2)], [(event(3), Numbers(b"state"))])
    assert [e.seq for e in ledger.read()] == [1]
    assert ledger.checkpoints() == []


def test_an_id_decides_once(ledger):
    ledger.append([event(1, id="x"), event(2, "reward", id="x")])
    with pytest.raises(LedgerError, match=r"(?i)unique"):
        ledger.append([event(3, id="x")])


def test_checkpoints_and_what_they_replace(ledger, address):
    marks = [event(k, "checkpoint") for k in (4, 8)]
    ledger.append(
        [event(1, "declare"), event(2), event(3), marks[0]], [(marks[0], Numbers(b"four"))]
    )
    ledger.append([event(5), event(6), event(7), marks[1]], [(marks[1], Numbers(b"eight"))])
    assert ledger.checkpoints() == marks
    assert ledger.state(4) == b"four"
    anchor = ledger.rest_on(8, start=6, seq=9, at=0.0)
    while ledger.sweep():
        pass
    assert ledger.checkpoints() == marks[1:]
    assert [e.seq for e in ledger.read(6)] == [6, 7, 8, 9]
    assert ledger.anchor() == anchor
    assert [e.kind for e in ledger.lasting()] == ["declare"]
    with pytest.raises(LedgerError, match=r"event 2 .* is missing"):
        list(ledger.read())
    ledger.close()
    ledger.__init__(address, "shop")
    assert (ledger.base, ledger.start) == (8, 6)


def test_erased_text_leaves_the_file(in_file):
    secret = encode({"context": {"street": "Sesamstraat 123"}})
    in_file.append([event(1, key="ann", data=secret), event(2, key="bob")])
    in_file.append([event(3, "reward", id="d1", data=secret)])
    assert in_file.about("ann") == (1, [1, 3])
    in_file.erase(
        [1, 3],
        [event(4, "erase"), event(5, "checkpoint")],
        [(event(5, "checkpoint"), Numbers(b"state"))],
    )
    assert in_file.purge(in_file.unpurged()) == ""
    in_file.purged(in_file.unpurged())
    assert in_file.unpurged() is None
    assert [e.kind for e in in_file.read()] == ["erased", "decide", "erased", "erase", "checkpoint"]
    assert (in_file.base, in_file.start) == (5, 1)
    for name in os.listdir(os.path.dirname(in_file.path)):
        with open(os.path.join(os.path.dirname(in_file.path), name), "rb") as file:
            assert b"Sesamstraat" not in file.read()


def test_opened_twice(ledger, address):
    with pytest.raises(LedgerError, match="open already"):
        Ledger(address, "shop")
    code = f"from driftbandit.loop.storage.ledger import Ledger; Ledger({str(address)!r}, 'shop')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "open already" in done.stderr
    reader = Ledger(address, "shop", write=False)
    ledger.append([event(1)])
    assert reader.last() == 1
    reader.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:This process.*fork:DeprecationWarning")
def test_no_ledger_in_a_forked_child(in_file):
    read, write_end = os.pipe()
    if os.fork() == 0:
        for name in ("shop", "other"):
            try:
                Ledger(in_file.path, name)
                os.write(write_end, b"opened ")
            except LedgerError as error:
                os.write(write_end, b"refused " if "forked" in str(error) else b"? ")
        os._exit(0)
    os.wait()
    assert os.read(read, 100) == b"refused refused "
    in_file.append([event(1)])
    assert in_file.last() == 1


def test_files_that_are_no_ledgers(tmp_path):
    path = tmp_path / "text.db"
    path.write_text("no database at all, but long enough to be looked at " * 20)
    with pytest.raises(LedgerError, match=r"text.db.*restore"):
        Ledger(path, "shop")
    other = tmp_path / "other.db"
    sqlite3.connect(other).executescript("CREATE TABLE mine (x)")
    with pytest.raises(LedgerError, match="holds no loops"):
        Ledger(other, "shop")
    with pytest.raises(LedgerError, match="folder must exist"):
        Ledger(tmp_path / "nowhere" / "x.db", "shop")
    with pytest.raises(LedgerError, match="folder must exist"):
        Ledger(tmp_path / "none.db", "shop", write=False)


def test_a_newer_file_and_an_unknown_name(in_file):
    in_file.close()
    with pytest.raises(LedgerError, match="no loop 'shops'"):
        Ledger(in_file.path, "shops", write=False)
    base = sqlite3.connect(in_file.path)
    base.execute("PRAGMA user_version = 99")
    base.close()
    with pytest.raises(LedgerError, match="upgrade"):
        Ledger(in_file.path, "shop")


def read_all(path):
    again = Ledger(path, "shop")
    try:
        for each in again.read():
            each.read()
    finally:
        again.close()


def test_a_damaged_page_is_an_error(tmp_path):
    made = Ledger(tmp_path / "a.db", "shop")
    made.append([event(k, data=encode({"x": "y" * 500})) for k in range(1, 200)])
    made.close()
    with (tmp_path / "a.db").open("r+b") as file:
        file.seek(4096 * 8)
        file.write(os.urandom(4096 * 8))
    with pytest.raises(LedgerError, match="restore"):
        read_all(tmp_path / "a.db")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_is_read_only(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(LedgerError, match="writable"):
        Ledger(tmp_path / "a.db", "shop")
    tmp_path.chmod(0o700)


def test_a_full_disk_loses_nothing_that_was_stored(tmp_path):
    code = """
        import resource, sys
        from driftbandit.loop.errors import LedgerError
        from driftbandit.loop.storage.events import Event
        from driftbandit.loop.storage.ledger import Ledger
        ledger = Ledger(sys.argv[1], "shop")
        resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
        stored = 0
        try:
            while True:
                ledger.append([Event(stored + 1, "decide", 0.0, str(stored), data="x" * 3000)])
                stored += 1
        except LedgerError as error:
            print(stored, error)
    """
    path = str(tmp_path / "a.db")
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), path], capture_output=True, text=True
    )
    stored, message = done.stdout.split(" ", 1)
    assert "make room" in message
    assert int(stored) > 10
    ledger = Ledger(path, "shop")
    assert ledger.last() == int(stored)
    ledger.close()


def test_plain_values():
    import decimal

    import numpy as np

    odd = {"a": np.float32(0.1), "b": np.int64(3), "c": np.bool_(True), "d": float("nan")}
    odd |= {"e": np.array([1.5, 2.0]), "f": (1, None), "g": decimal.Decimal("2.5"), "h": "ü €"}
    again = Event(1, "configure", 0.0, data=encode(plain(odd))).read()
    assert again == plain(odd)
    assert again == {"a": float(np.float32(0.1)), "b": 3, "c": True, "d": None, "e": [1.5, 2.0],
                     "f": [1, None], "g": 2.5, "h": "ü €"}  # fmt: skip
    for bad in (float("inf"), object(), b"bytes", {1: 2}, 1j):
        with pytest.raises(ValueError, match=r"pass None|convert|text"):
            plain({"x": bad, "y": float("nan")})
    with pytest.raises(LedgerError, match="event 7 is damaged"):
        Event(7, "decide", 0.0, data="[1]").read()


def said(windows, kind, at=0.0, id=None, **data):
    data = {"of": None, "clipped": False} | data
    return windows.apply(Event(windows.seq + 1, kind, at, id, None, encode(data)))


def test_the_last_word_inside_the_window_counts():
    windows = RewardWindows(10.0, 0.0)
    said(windows, "decide", 0.0, "a")
    assert said(windows, "reward", 1.0, "a", value=1.0).word == "counted"
    assert said(windows, "reward", 99.0, "a", value=0.5).word == "corrected"  # only seq orders
    assert said(windows, "advance", 9.9).changes == []
    assert said(windows, "advance", 10.0).changes == [Example(5, 1, 0.0, 0.5)]
    assert said(windows, "reward", 3.0, "a", value=1.0, of=1).word == "late"
    assert said(windows, "cancel", 3.0, "a", of=1).word == "late"


def test_examples_come_in_order_of_time():
    windows = RewardWindows(10.0, 0.0)
    for at, id in ((3.0, "a"), (1.0, "b"), (2.0, "c"), (1.0, "d")):
        said(windows, "decide", at, id)
    said(windows, "cancel", 0.0, "c")
    assert [example.decision for example in said(windows, "advance", 99.0).changes] == [2, 4, 1]
    assert windows.counts["missing"] == 3


def test_without_a_wait_the_first_reward_closes():
    windows = RewardWindows(0.0, 0.0)
    for id in "abc":
        said(windows, "decide", 5.0, id)
    assert said(windows, "advance", 6e5).changes == []
    assert [c.decision for c in said(windows, "reward", 0.0, "b", value=1.0).changes] == [2]
    assert said(windows, "reward", 0.0, "b", value=0.0, of=2).word == "late"
    assert said(windows, "reward", 0.0, "nobody", value=0.0).word == "unknown"
    assert [c.decision for c in said(windows, "reward", 0.0, "a", value=1.0).changes] == [1]
    kept = RewardWindows(0.0, 0.0, retention=100.0)
    said(kept, "decide", 5.0, "a")
    assert said(kept, "advance", 105.0).changes == []
    assert said(kept, "reward", 0.0, "a", value=1.0, of=1).word == "late"


def test_a_reward_may_come_before_its_decision():
    windows = RewardWindows(10.0, None)
    assert said(windows, "reward", 0.0, "a", value=1.0).word == "held"
    assert said(windows, "cancel", 5.0, "b").word == "held"
    said(windows, "advance", 9.0)
    said(windows, "decide", 5.0, "a")
    assert said(windows, "decide", 5.0, "b").word == "cancelled"
    assert said(windows, "reward", 0.0, "c", value=1.0).word == "held"
    said(windows, "advance", 10.0)
    assert windows.counts["expired"] == 1
    said(windows, "decide", 12.0, "c")
    changes = said(windows, "advance", 99.0).changes
    assert [(c.decision, c.value) for c in changes] == [(4, 1.0)]  # c's reward had gone
    assert examples([], 10.0, None) == []


def test_what_is_open_follows_from_where_the_windows_say():
    windows, events = RewardWindows(10.0, 0.0), []
    for k in range(50):
        known, early = ({"value": k, "of": of, "clipped": False} for of in (1, None))
        for each in (
            Event(windows.seq + 1, "decide", k, f"d{k}"),
            Event(windows.seq + 2, "reward", k, f"d{k // 2}", None, encode(known)),
            Event(windows.seq + 3, "reward", k, f"d{k + 3}", None, encode(early)),
            Event(windows.seq + 4, "advance", k),
        ):
            events.append(each)
            windows.apply(each)
        part = RewardWindows(10.0, 0.0)
        for each in events[windows.since - 1 :]:
            part.apply(each)
        assert (part.open, part.early) == (windows.open, windows.early)
