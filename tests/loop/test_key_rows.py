"""Learners of keys on the disk: only changed rows are written, few are in memory, and all of it is
what a learner is that has every row in memory."""

import psycopg
import pytest

from driftbandit import DOMD, Category, Features, Flag, Loop, Number, Reward
from driftbandit.loop.errors import LedgerError, ReplacedError
from driftbandit.loop.learning import key_cache
from driftbandit.loop.reporting.verification import verify
from driftbandit.loop.storage.key_rows import KeyRow, RowSum
from driftbandit.loop.storage.ledger import Ledger
from driftbandit.loop.training import replay
from driftbandit.loop.writing import retention, writer
from raw_sql import run_sql

pytestmark = pytest.mark.usefixtures("no_wait_for_the_disk")

FEATURES = Features(
    context={"age": Number(0, 100, required=True)},
    arm={"name": Category(["a", "b"], required=True)},
)
ARMS = {name: {"name": name} for name in "ab"}
NEW = {"features": FEATURES, "reward": Reward(0, 1), "key": "user_id", "clock": "events"}
NEW |= {"policy": DOMD, "exploration": 0.2}
DAY = 86400.0


@pytest.fixture
def few(monkeypatch):
    """Three rows in memory, a checkpoint after every ten examples."""
    row = 8 * DOMD(problem=FEATURES.problem(NEW["reward"])).row_size
    monkeypatch.setattr(key_cache, "MEMORY", 3 * row)
    monkeypatch.setattr(replay, "BYTES", 10 * row)


@pytest.fixture(params=["sqlite", "postgres"])
def path(request, tmp_path):
    if request.param == "sqlite":
        return str(tmp_path / "a.db")
    return request.getfixturevalue("postgres").url()


def sql(path, statement, *values):
    if path.startswith("postgresql"):
        with psycopg.connect(path) as base:
            found = base.execute(statement.replace("?", "%s"), values)
            return found.fetchall() if found.description else []
    return run_sql(path, statement, *values)


def play(loop, n, users, start=0.0, step=1.0, first=0, more=None):
    for k in range(n):
        at, key = start + step * k, f"u{first + (7 * k) % users:03d}"
        context = {"age": float(k % 100), **(more or {})}
        made = loop.decide(context, ARMS, id=f"{start} {k}", key=key, at=at)
        loop.reward(made.id, float((k + len(made.arm)) % 3 == 0), at=at)
    loop.wait_until_trained(20.0)


def reference(loop):
    """The digest of a learner that has every row in memory, from the log alone."""
    ledger = loop.ledger
    return replay.replay(ledger, loop.runtime.reread(), replay.origin(ledger)).learner.digest


def check(loop, least=1):
    assert loop.digest == reference(loop)
    audits = list(loop.audits())
    assert len(audits) >= least
    assert all(audit.logged == audit.computed for audit in audits)


def faster(discount):
    return DOMD(problem=FEATURES.problem(NEW["reward"]), discount=discount)


def rows(path):
    return sql(path, "SELECT key, seq, until FROM key_row ORDER BY key, seq")


@pytest.mark.parametrize("training", ["inline", "background"])
def test_rows_are_written_when_they_change_and_read_when_they_are_asked_for(path, few, training):
    with Loop(path, training=training, **NEW) as loop:
        play(loop, 120, 40)
        check(loop)
        digest = loop.digest
    found = rows(path)
    now = [key for key, _, until in found if until is None]
    assert now == [f"u{k:03d}" for k in range(40)]
    shared = path.startswith("postgresql") and training == "background"  # others may follow
    assert len(sql(path, "SELECT seq FROM checkpoint")) == (3 if shared else 1)
    assert len(found) <= (40 + 2 * 10 if shared else 40)  # no version that no checkpoint needs
    with Loop(path, training=training) as loop:
        assert loop.digest == digest
        play(loop, 10, 10, start=200.0, first=35)  # five known keys, five new ones
        check(loop)
    changed = {key for key, seq, _ in rows(path) if seq > max(seq for _, seq, _ in found)}
    assert changed == {f"u{k:03d}" for k in range(35, 45)}
    (told,) = verify(path)
    assert told.holds, told


def test_few_learners_are_in_memory(path, few, monkeypatch):
    reads = []
    row = key_cache.RowTable.row
    monkeypatch.setattr(
        key_cache.RowTable, "row", lambda *args: reads.append(args[2]) or row(*args)
    )
    with Loop(path, training="inline", **NEW) as loop:
        play(loop, 120, 40)
        reads.clear()
        for k in (3, 4, 3, 4, 3, 4):
            loop.decide({"age": 1.0}, ARMS, key=f"u{k:03d}", at=500.0)
        assert reads == ["u003", "u004"]
        for _ in range(3):
            loop.decide({"age": 1.0}, ARMS, key="never seen", at=500.0)
        assert reads == ["u003", "u004", "never seen"]


def test_rows_of_older_features_grow_when_they_are_read(path, few):
    with Loop(path, training="inline", **NEW) as loop:
        play(loop, 60, 20)
        loop.add_features(context={"vip": Flag()})
        loop.add_features(context={"old": Flag()})
        play(loop, 30, 10, start=100.0, more={"vip": True})
        check(loop)
        digest = loop.digest
    assert len(sql(path, "SELECT DISTINCT features FROM key_row")) > 1
    with Loop(path, training="inline") as loop:
        assert loop.digest == digest
        play(loop, 40, 20, start=200.0, more={"old": True})
        check(loop)


def test_a_checkpoint_in_one_value_is_read_and_becomes_rows(path, few, monkeypatch):
    """As versions before wrote it: all keys in the payload, all rows in one value."""
    with monkeypatch.context() as patch:
        whole = replay.packed
        patch.setattr(replay, "packed", lambda learner, beside, _: whole(learner, beside, None))
        with Loop(path, training="inline", **NEW) as loop:
            play(loop, 45, 20)
            digest = loop.digest
    assert rows(path) == []
    with Loop(path, training="inline") as loop:
        assert loop.digest == digest
        check(loop)
        play(loop, 12, 4, start=100.0)
        check(loop)
        digest = loop.digest
    assert [key for key, _, _ in rows(path)] == [f"u{k:03d}" for k in range(20)]
    with Loop(path, training="inline") as loop:
        assert loop.digest == digest
        loop.erase(key="u003")
        check(loop, least=0)
    dumped = sql(path, "SELECT count(*) FROM event WHERE data LIKE ?", "%u003%")
    assert dumped == [(0,)]  # also in the payloads of old checkpoints
    assert verify(path)[0].holds


@pytest.mark.parametrize("relearn", [False, True])
def test_an_erased_key_has_no_row(path, few, relearn):
    with Loop(path, training="inline", **NEW) as loop:
        play(loop, 90, 30)
        loop.erase(key="u007", relearn=relearn)
        assert "u007" not in {key for key, _, _ in rows(path)}
        assert len({key for key, _, _ in rows(path)}) == 29
        check(loop, least=0)
        play(loop, 30, 30, start=200.0)  # the key comes again
        check(loop)
        digest = loop.digest
    with Loop(path, training="inline") as loop:
        assert loop.digest == digest
        assert "u007" in loop.runtime.learner.bandits
    (told,) = verify(path)
    assert told.holds, told


def test_versions_are_kept_for_the_checkpoint_that_replays_start_from(path, few):
    with Loop(path, training="inline", **NEW) as loop:
        play(loop, 60, 20)
        loop.erase(key="u000")
        base = loop.ledger.base
        for k in range(3):
            play(loop, 40, 10, start=100.0 * (k + 1), first=1)
        check(loop)  # from the base on
    found = rows(path)
    assert {seq for _, seq, until in found if until is not None} <= set(range(base + 1))
    assert max(sum(key == each for each, _, _ in found) for key, _, _ in found) == 2
    assert verify(path)[0].holds


def test_a_candidate_has_rows_of_its_own_and_keeps_them_when_it_is_promoted(path, few):
    with Loop(path, training="inline", **NEW) as loop:
        play(loop, 40, 20)
        loop.shadow("like", exploration=0.5)
        loop.shadow("past", policy=faster(0.9), history=True)
        loop.shadow("other", policy=faster(0.8))
        play(loop, 60, 20, start=100.0)
        check(loop)
    with Loop(path, training="inline") as loop:
        play(loop, 20, 20, start=200.0)
        loop.retire("like")
        loop.promote("past", force=True)
        play(loop, 40, 20, start=300.0)
        check(loop)
        digest = loop.digest
    learners = sql(path, "SELECT DISTINCT learner FROM key_row WHERE until IS NULL")
    assert len(learners) == 2  # of the live policy and of the candidate
    with Loop(path, training="inline") as loop:
        assert loop.digest == digest
        loop.add_features(context={"vip": Flag()})
        play(loop, 40, 20, start=400.0, more={"vip": True})
        check(loop)
    (told,) = verify(path)
    assert told.holds, told


def test_with_a_retention_some_checkpoints_are_kept_in_between(path, few, monkeypatch):
    monkeypatch.setattr(retention, "LOOK", 0.0)
    with Loop(path, training="inline", retention="40d", **NEW) as loop:
        play(loop, 160, 16, step=0.75 * DAY)
        check(loop)
        first = min(event.at for event in loop.ledger.read(loop.ledger.start))
        audits = sum(1 for _ in loop.audits())
    assert 119.25 - first / DAY <= 41.5
    assert 12 > len(sql(path, "SELECT seq FROM checkpoint")) > 4
    assert audits > 40  # of the 53 decisions that are kept
    assert verify(path)[0].holds


def test_damage_and_edits_are_found(tmp_path, few):
    path = str(tmp_path / "a.db")
    with Loop(path, training="inline", **NEW) as loop:
        play(loop, 60, 20)
        digest = loop.digest
    (before,) = sql(path, "SELECT features, last, digest, row FROM key_row WHERE key = 'u003'")
    sql(path, "UPDATE key_row SET row = zeroblob(length(row)) WHERE key = 'u003'")
    assert "u003" in str(verify(path)[0])
    with Loop(path, training="inline") as loop, pytest.raises(LedgerError, match="u003"):
        loop.decide({"age": 1.0}, ARMS, key="u003", at=100.0)
    forged = KeyRow.of("u003", before[0], 1.0, bytes(len(before[3])))  # with the right digest
    where = "WHERE key = 'u003'"
    sql(path, f"UPDATE key_row SET last = 1.0, digest = ?, row = ? {where}", *forged[3:])
    assert "was edited" in str(verify(path)[0])
    sql(path, f"UPDATE key_row SET last = ?, digest = ?, row = ? {where}", *before[1:])
    assert verify(path)[0].holds
    with Loop(path, training="inline") as loop:
        assert loop.digest == digest


def test_a_reader_of_a_replaced_checkpoint_is_told(path, few):
    """Never a row of another time."""
    with Loop(path, training="inline", **NEW) as loop:
        play(loop, 60, 20)
        reader = Ledger(path, "loop", write=False)
        newest = reader.checkpoints()[-1].seq
        assert reader.rows.row(0, "u003", newest).key == "u003"
        assert reader.rows.row(0, "nobody", newest) is None
        play(loop, 60, 20, start=100.0)
        with pytest.raises(ReplacedError, match="ask again"):
            reader.rows.row(0, "u003", newest)
        with pytest.raises(ReplacedError, match="ask again"):
            list(reader.rows.rows(0, newest))
        reader.close()


def test_the_sum_of_rows_does_not_depend_on_their_order_and_forgets():
    digests = [KeyRow.of(f"k{k}", "f", float(k), bytes([k])).digest for k in range(20)]
    one, other = RowSum(), RowSum()
    for digest in digests:
        one.add(digest)
    for digest in reversed([*digests, digests[3]]):
        other.add(digest)
    assert one.state() != other.state()  # a row that is there twice counts twice
    other.take(digests[3])
    assert one.state() == other.state() == RowSum(one.state()).state()


def test_processes_that_follow_have_the_rows_of_the_one_that_trains(postgres, few, monkeypatch):
    monkeypatch.setattr("driftbandit.loop.training.snapshots.PAUSE", 0.02)
    monkeypatch.setattr(writer, "LOOK", 0.02)
    url = postgres.url()
    one = Loop(url, **NEW)
    two = Loop(url)
    for k in range(200):
        loop, key = (one, two)[k % 2], f"u{(7 * k) % 40:03d}"
        made = loop.decide({"age": float(k % 100)}, ARMS, id=f"d{k}", key=key, at=float(k))
        loop.reward(made.id, float(k % 3 == 0), at=float(k))
    one.close()  # the other one takes over
    for k in range(200, 260):
        key = f"u{(7 * k) % 40:03d}"
        made = two.decide({"age": float(k % 100)}, ARMS, id=f"d{k}", key=key, at=float(k))
        two.reward(made.id, float(k % 3 == 0), at=float(k))
    two.wait_until_trained(20.0)
    two.close()
    with Loop(url, training="inline") as loop:
        check(loop)
        assert len(loop.runtime.learner.bandits) == 40
    (told,) = verify(url)
    assert told.holds, told
