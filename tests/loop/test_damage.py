"""Fields of a ledger that were damaged: a `LedgerError` of one line, or the same answers."""

import json
import random
import shutil

import pytest

from driftbandit import DOMD, Features, Flag, Guard, Loop, Number, Reward
from driftbandit.loop.errors import LedgerError
from driftbandit.loop.writing import writer
from raw_sql import run_sql

pytestmark = pytest.mark.usefixtures("no_wait_for_the_disk")

ARMS = {name: {"price": k / 2} for k, name in enumerate("abc")}
WRONG = (None, "x", {}, [], -1, 10**6, 1e308, True, ...)  # the last one deletes a field


@pytest.fixture(scope="module")
def ledger(tmp_path_factory):
    """A ledger with events of nearly all kinds."""
    path = tmp_path_factory.mktemp("damage") / "a.db"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writer, "EVERY", 10)
        features = Features(context={"x": Number(0, 1)}, arm={"price": Number(0, 1)})
        guard = Guard(metrics={"cost": Reward(0, 1)})
        options = {"clock": "events", "training": "inline", "exploration": 0.3, "guard": guard}
        reward = Reward(0, 1, wait="10min")
        with Loop(path, features=features, reward=reward, policy=DOMD, **options) as loop:
            play(loop, 0, 15)
            loop.shadow("narrow", exploration=0.1)
            loop.decide({"x": 0.5}, ARMS, id="slate", k=2, at=800.0, default=["a", "b"])
            play(loop, 15, 30)
            loop.cancel("29")
            loop.trial("narrow", 0.2)
            loop.add_features(context={"new": Flag()})
            play(loop, 30, 35)
            loop.promote("narrow", force=True)
    return path


def play(loop, begin, end):
    for k in range(begin, end):
        loop.decide({"x": 0.5}, ARMS, id=str(k), at=60.0 * k, key=f"u{k % 3}", default="a")
        loop.reward(str(k), k % 2)
        loop.metric(str(k), "cost", 0.5)


def places(value, path=()):
    """Every place in a JSON value, as the keys that lead there."""
    yield path
    if isinstance(value, (dict, list)):
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(each, (*path, key))


def put(value, path, new):
    if not path:
        return new
    copy, (key, *rest) = value.copy(), path
    if new is ... and not rest:
        del copy[key]
    else:
        copy[key] = put(value[key], rest, new)
    return copy


def read(path):
    """Read all of a ledger; returns what is wrong with it, if it says so."""
    try:
        with Loop(path, training="inline") as loop:
            list(loop.audits())
            loop.health()
            loop.log()
            loop.compare()
    except LedgerError as error:
        return str(error)


@pytest.mark.parametrize("seed", range(4))
def test_a_damaged_field_is_found_or_changes_no_answer(ledger, tmp_path, seed):
    rng, copy = random.Random(seed), tmp_path / "b.db"
    rows = run_sql(ledger, "SELECT seq, kind, data FROM event")
    kinds = sorted({kind for _, kind, _ in rows})
    for n in range(12):
        seq, _, data = rng.choice([row for row in rows if row[1] == kinds[n % len(kinds)]])
        said = json.loads(data)
        path = rng.choice(list(places(said)))
        new = rng.choice(WRONG if path else WRONG[:4])
        shutil.copy(ledger, copy)
        text = json.dumps(put(said, path, new))
        run_sql(copy, "UPDATE event SET data = ? WHERE seq = ?", text, seq)
        if n % 2:
            run_sql(copy, "DELETE FROM checkpoint")
        told = read(copy)
        assert told is None or "\n" not in told, (seq, path, new)
