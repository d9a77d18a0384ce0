"""The chain of a ledger: every edit, gap and cut is found, and erasure and retention leave none."""

import gzip
import json
import shutil
from contextlib import closing
from pathlib import Path

import pytest

from driftbandit import DOMD, Features, Loop, Number, Reward
from driftbandit.loop.reporting.verification import verify
from driftbandit.loop.storage.chain import Head, genesis, sealed
from driftbandit.loop.storage.ledger import Ledger
from raw_sql import run_sql

pytestmark = pytest.mark.usefixtures("no_wait_for_the_disk")

V0_2 = Path(__file__).parents[1] / "fixtures" / "v0_2" / "ledger.db.gz"
ARMS = {name: {"price": k / 2} for k, name in enumerate("abc")}
OPTIONS = {
    "features": Features(context={"x": Number(0, 1)}, arm={"price": Number(0, 1)}),
    "reward": Reward(0, 1, wait="10min"),
    "policy": DOMD,
    "exploration": 0.3,
    "holdout": 0.2,
    "clock": "events",
    "training": "inline",
}


def fill(loop, begin, end):
    for k in range(begin, end):
        loop.decide({"x": 0.5}, ARMS, id=f"d{k}", key=f"u{k % 7}", at=60.0 * k, default="a")
        loop.reward(f"d{k}", k % 2, at=60.0 * k)


@pytest.fixture
def ledger(tmp_path):
    path = tmp_path / "shop.db"
    with Loop(path, **OPTIONS) as loop:
        fill(loop, 0, 40)
    return path


def only(path, **options):
    (found,) = verify(path, **options)
    return found


def test_a_ledger_as_it_was_stored(ledger):
    found = only(ledger)
    assert found.holds, found
    with Loop(ledger, training="inline") as loop:
        assert loop.head == loop.health().head == found.head
        fill(loop, 40, 42)
        assert loop.head != found.head
    assert only(ledger, head=found.head).holds
    assert only(ledger, head=found.head.split(":")[1]).holds


DECISION = "kind = 'decide' AND id = 'd9'"
EDITS = {
    "a choice": f"UPDATE event SET data = replace(data, 'choices', 'means') WHERE {DECISION}",
    "a time": "UPDATE event SET at = at + 1e-6 WHERE seq = 12",
    "a kind": "UPDATE event SET kind = 'cancel' WHERE seq = 13",
    "an id": "UPDATE event SET id = 'other' WHERE seq = 13",
    "a key": f"UPDATE event SET key = 'u1' WHERE {DECISION}",
    "no key": f"UPDATE event SET key = NULL WHERE {DECISION}",
    "a version": "UPDATE event SET v = 1 WHERE seq = 12",
    "a slate": "UPDATE event SET k = 1 WHERE seq = 12",
    "the declaration": "UPDATE event SET data = replace(data, '0.3', '0.2') WHERE seq = 2",
    "a link": "UPDATE event SET seal = zeroblob(80) WHERE seq = 12",
    "no link": "UPDATE event SET seal = NULL WHERE seq = 12",
    "no salt": "UPDATE event SET seal = substr(seal, 1, 64) WHERE seq = 12",
    "blanked": "UPDATE event SET kind = 'erased', id = NULL, key = NULL, data = '{}', "
    "seal = substr(seal, 1, 64) WHERE seq = 12",
    "a gap": "DELETE FROM event WHERE seq = 12",
    "the beginning": "DELETE FROM event WHERE seq = 1",
    "no anchor": "UPDATE loop SET start = 12",
    "the learner": "UPDATE checkpoint SET state = zeroblob(length(state))",
    "the last event": "UPDATE event SET at = at + 1 WHERE seq = (SELECT max(seq) FROM event)",
}


@pytest.mark.parametrize("edit", EDITS)
def test_edits_and_gaps_are_found(ledger, edit):
    run_sql(ledger, EDITS[edit])
    assert not only(ledger).holds


def test_an_edit_is_one_fault_that_names_its_event(ledger):
    for seq in (12, 20, 30):
        run_sql(ledger, "UPDATE event SET data = data || ' ' WHERE seq = ?", seq)
    run_sql(ledger, "DELETE FROM event WHERE seq BETWEEN 14 AND 16")
    told = ["event 12 was edited", "events 14 to 16 are missing"]
    assert only(ledger).faults == [*told, "event 20 was edited", "event 30 was edited"]


def test_two_events_that_changed_places_are_found(ledger):
    for old, new in ((12, -1), (14, 12), (-1, 14)):
        run_sql(ledger, "UPDATE event SET seq = ? WHERE seq = ?", new, old)
    assert {f.split()[1] for f in only(ledger).faults} >= {"12", "14"}


def test_only_a_head_that_was_kept_shows_a_cut_tail(ledger):
    head = only(ledger).head
    run_sql(ledger, "DELETE FROM event WHERE seq > 50")
    assert only(ledger).holds
    (fault,) = only(ledger, head=head).faults
    assert fault == f"the ledger ends at event 50: events to {head.split(':')[0]} were cut off"


def test_only_a_head_that_was_kept_shows_a_rewritten_ledger(ledger):
    """Whoever can write the file can compute a new chain."""
    head = only(ledger).head
    run_sql(ledger, "UPDATE event SET at = at + 1 WHERE seq = 12")
    with closing(Ledger(ledger, "loop", write=False)) as opened:
        events = [event for event, _ in opened.sealed(1)]
    seals, _ = sealed(Head(0, genesis("loop")), events)
    for event, seal in zip(events, seals):
        run_sql(ledger, "UPDATE event SET seal = ? WHERE seq = ?", seal, event.seq)
    assert only(ledger).holds
    (fault,) = only(ledger, head=head).faults
    assert "were rewritten" in fault


def test_erasure_leaves_the_chain_whole_and_no_salt(ledger):
    before = only(ledger).head
    with Loop(ledger, training="inline") as loop:
        gone = loop.erase(key="u3").events
        fill(loop, 40, 45)
        loop.erase(key="u4")
    assert gone
    assert only(ledger, head=before).holds
    rows = run_sql(ledger, "SELECT length(seal), data FROM event WHERE kind = 'erased'")
    assert len(rows) > gone
    assert set(rows) == {(64, "{}")}
    run_sql(ledger, "UPDATE event SET at = at + 1 WHERE kind = 'erased'")
    assert len(only(ledger).faults) == len(rows)


@pytest.fixture
def trimmed(tmp_path, monkeypatch):
    """A ledger whose oldest events were let go, with the head of before that."""
    monkeypatch.setattr("driftbandit.loop.writing.writer.EVERY", 20)
    path = tmp_path / "trimmed.db"
    with Loop(path, **OPTIONS, retention="1h") as loop:
        fill(loop, 0, 5)
        head = loop.head
        loop.configure(exploration=0.25)
        fill(loop, 5, 300)
        assert loop.ledger.start > 100
    assert run_sql(path, "SELECT count(*) FROM event WHERE seq < 100")[0][0] < 10
    return path, head


def test_retention_leaves_an_anchor(trimmed):
    path, head = trimmed
    found = only(path)
    assert found.holds, found
    (fault,) = only(path, head=head).faults
    assert "is older than what is kept" in fault
    with Loop(path, training="inline") as loop:
        loop.erase(key="u1")
    assert only(path, head=found.head).holds


@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE event SET data = replace(data, '0.25', '0.2') WHERE kind = 'configure'",
        "DELETE FROM event WHERE kind = 'configure' AND seq > 2",
        "DELETE FROM event WHERE kind = 'anchor'",
        "UPDATE loop SET start = start + 2",
        "DELETE FROM event WHERE seq IN (SELECT start FROM loop)",
    ],
)
def test_edits_of_what_retention_has_kept_are_found(trimmed, edit):
    run_sql(trimmed[0], edit)
    assert not only(trimmed[0]).holds


def test_an_old_ledger_begins_its_chain_at_its_first_opening(tmp_path):
    path = tmp_path / "old.db"
    path.write_bytes(gzip.decompress(V0_2.read_bytes()))
    names = [name for (name,) in run_sql(path, "SELECT name FROM loop ORDER BY name")]
    lasts = {}
    for name in names:
        where = "SELECT max(seq) FROM event WHERE loop = (SELECT id FROM loop WHERE name = ?)"
        lasts[name] = run_sql(path, where, name)[0][0]
        for _ in range(2):  # it begins once
            Loop(path, name=name, training="inline").close()
    for found in verify(path):
        assert found.holds, found
        assert found.first == lasts[found.loop] + 1
    run_sql(path, "UPDATE event SET at = at + 1 WHERE kind = 'chain'")
    assert not any(found.holds for found in verify(path))


def test_several_deciders_continue_one_chain(postgres):
    url, options = postgres.url(), {**OPTIONS, "clock": "wall", "training": "background"}
    with Loop(url, **options) as one, Loop(url, training="background") as other:
        heads = []
        for k in range(30):
            loop = (one, other)[k % 3 == 0]
            loop.decide({"x": 0.5}, ARMS, id=f"d{k}", key=f"u{k % 7}", default="a")
            heads.append(loop.head)
        for head in heads[::7]:
            assert only(url, head=head).holds
        trains = one if one.health().trains else other
        other_one = other if trains is one else one
        other_one.close()
        trains.erase(key="u3")
    assert only(url, head=heads[-1]).holds


def test_audits_draw_again(ledger):
    """Choices and holdouts that were edited by hand, so that nothing else contradicts them."""
    with Loop(ledger, training="inline") as loop:
        assert all(each.agrees for each in loop.audits())
    for seq, data in run_sql(ledger, "SELECT seq, data FROM event WHERE kind = 'decide'"):
        said = json.loads(data)
        if said["role"] == "holdout":  # as if the holdout had got another default
            said |= {"default": "b", "role": "fallback" if seq % 2 else "apprentice"}
            said |= {"choices": [1], "p": [[0.1, 0.8, 0.1]]}
        else:
            said["choices"] = [(said["choices"][0] + 1) % 3]
        text = json.dumps(said, separators=(",", ":"))
        run_sql(ledger, "UPDATE event SET data = ? WHERE seq = ?", text, seq)
    with Loop(ledger, training="inline") as loop:
        assert not any(each.agrees for each in loop.audits())


def test_the_command(ledger, tmp_path, driftbandit):
    code, told, said = driftbandit("verify", ledger)
    assert code == 0, said
    assert "every event is as it was stored" in told
    head = told.split("head ")[1].split()[0]
    shutil.copy(ledger, tmp_path / "cut.db")
    run_sql(tmp_path / "cut.db", "DELETE FROM event WHERE seq > 30")
    assert driftbandit("verify", tmp_path / "cut.db")[0] == 0
    code, told, _ = driftbandit("verify", tmp_path / "cut.db", "--head", head)
    assert (code, "were cut off" in told) == (1, True)
    for words, what in (
        ([tmp_path / "none.db"], "does not exist: check the name"),
        ([ledger, "--head", "12"], "a head looks like"),
        ([ledger, "--name", "other"], "has no loop 'other'"),
    ):
        code, _, said = driftbandit("verify", *words)
        assert code in (1, 2)
        assert what in said
        assert "Traceback" not in said
    assert not (tmp_path / "none.db").exists()


def test_a_head_belongs_to_one_loop(ledger):
    with Loop(ledger, name="other", **OPTIONS) as loop:
        head = loop.head
    with pytest.raises(ValueError, match="a head belongs to one loop: name it, 'loop', 'other'"):
        verify(ledger, head=head)
    assert only(ledger, name="other", head=head).holds
    assert not only(ledger, name="loop", head=head).holds


def test_a_chain_does_not_fit_another_loop(ledger):
    run_sql(ledger, "UPDATE loop SET name = 'other'")
    assert not only(ledger, name="other").holds


@pytest.mark.parametrize("text", ["\t", "ü\U0001f600", ""])
def test_odd_text_is_hashed_as_it_is_stored(tmp_path, text):
    path = tmp_path / "odd.db"
    with Loop(path, **OPTIONS) as loop:
        loop.decide({"x": 1}, {f"a{text}": {"price": 1}}, at=1.0, default=f"a{text}")
    assert only(path).holds


def test_damage_that_cannot_be_read_is_a_fault(ledger):
    run_sql(ledger, "UPDATE event SET data = '{' WHERE kind = 'checkpoint'")
    assert [fault.split(" ", 2)[2] for fault in only(ledger).faults] == ["was edited"]
