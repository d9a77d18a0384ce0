"""Batch decisions: whole frames and files give what single calls give, and can be repeated."""

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import polars as pl
import pytest

from driftbandit import DOMD, Category, Features, Loop, Number, Reward, Vector
from driftbandit.cli import app

pytestmark = pytest.mark.usefixtures("no_wait_for_the_disk")

FEATURES = Features(
    context={"age": Number(18, 90), "country": Category(["NL", "07"]), "taste": Vector(2)},
    arm={"price": Number(0, 100)},
)
ARMS = {"a": {"price": 9}, "b": {"price": 50}, "c": {"price": 90}}
START = datetime(2026, 11, 18, tzinfo=UTC)


def opened(path, **options):
    new = {"features": FEATURES, "reward": Reward(0, 1, wait="7d", missing=0), "policy": DOMD}
    more = {"clock": "events", "training": "inline", "seed": 3, "arms": ARMS}
    return Loop(path, **(new | more | options))


def requests(n=1203):
    return pl.DataFrame(
        {
            "id": [f"{k:05}" for k in range(n)],
            "age": [18 + k % 60 for k in range(n)],
            "country": ["NL" if k % 3 else "07" for k in range(n)],
            "taste": [[float(k % 2), 0.5] for k in range(n)],
            "at": [START + timedelta(seconds=k) for k in range(n)],
        }
    )


def one_by_one(loop, frame):
    rows = frame.to_dicts()
    keep = ("age", "country", "taste")
    made = [loop.decide({c: r[c] for c in keep}, id=r["id"], at=r["at"]) for r in rows]
    return [(one.id, one.arm, one.probability, one.role) for one in made]


def driftbandit(*args):
    """Return the exit code of a command; wrong input raises."""
    return app(list(args), standalone_mode=False) or 0


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder to work in, with a loop."""
    monkeypatch.chdir(tmp_path)
    opened("shop.db").close()
    return tmp_path


def test_a_frame_is_decided_as_its_rows_are_one_by_one():
    with opened(":memory:") as loop, opened(":memory:") as other:
        found = loop.decide_frame(requests())
        assert found.done.rows() == one_by_one(other, requests())
        assert len(found.refused) == 0
        again = loop.decide_frame(requests())
        assert again.done.equals(found.done)
        assert len(loop.log()) == len(found.done)


def test_an_interrupted_job_goes_on_where_it_was():
    def stop(_):
        raise KeyboardInterrupt

    with opened(":memory:") as loop, opened(":memory:") as whole:
        with pytest.raises(KeyboardInterrupt):
            loop.decide_frame(requests(), progress=stop)
        assert 0 < len(loop.log()) < 1203
        assert loop.decide_frame(requests()).done.equals(whole.decide_frame(requests()).done)
        assert loop.log()["id"].to_list() == whole.log()["id"].to_list()


def test_bad_rows_are_refused_by_reason_and_the_others_are_decided():
    frame = requests(6).with_columns(
        id=pl.Series(["p", None, "q", "q", "r", "s"]),
        taste=pl.Series([[0.0, 1.0]] * 4 + [[0.0]] + [[0.0, 1.0]]),
    )
    with opened(":memory:") as loop:
        found = loop.decide_frame(frame)
        assert found.done["id"].to_list() == ["p", "q", "s"]
        assert found.refused["row"].to_list() == [1, 3, 4]
        assert sum(found.reasons.values()) == 3
        reasons = " ".join(found.reasons)
        assert "id is missing" in reasons
        assert "used for another decision" in reasons
        assert loop.log()["id"].to_list() == ["p", "q", "s"]


def test_structs_json_and_flat_columns_are_the_same_request():
    flat = requests(40)
    struct = flat.select("id", "at", context=pl.struct("age", "country", "taste"))
    text = struct.with_columns(context=pl.col("context").struct.json_encode())
    found = []
    for frame in (flat, struct, text, flat.to_pandas(), flat.to_arrow(), flat.lazy()):
        with opened(":memory:") as loop:
            found.append(loop.decide_frame(frame).done)
    assert len(found[0]) == 40
    assert all(each.equals(found[0]) for each in found)


def test_arms_of_a_row_are_those_that_are_not_null():
    arms = [{"a": {"price": 9}, "b": None}, {"a": None, "b": {"price": 50}}]
    with opened(":memory:", arms=None) as loop:
        found = loop.decide_frame(requests(2).with_columns(arms=pl.Series(arms)))
        assert found.done["arm"].to_list() == ["a", "b"]
        found = loop.decide_frame(requests(3)[2:])
        assert list(found.reasons) == [
            "this loop has no catalogue: pass arms=, or declare a loop with arms="
        ]


def test_columns_have_other_names_and_numbers_are_ids():
    frame = requests(5).rename({"id": "visit", "age": "years"})
    frame = frame.with_columns(visit=pl.Series([1, 2, 3, 4, 5]))
    frame = frame.with_columns(context=pl.struct("country"))
    with opened(":memory:") as loop:
        found = loop.decide_frame(frame, columns={"id": "visit"})
        assert found.done["id"].to_list() == ["1", "2", "3", "4", "5"]


@pytest.mark.parametrize(
    ("change", "columns", "words"),
    [
        (lambda f: f.drop("id"), None, "no column is called 'id'"),
        (lambda f: f.drop("age"), None, "there is no column 'age', which the loop's features"),
        (lambda f: f, {"idd": "id"}, "did you mean 'id'"),
        (lambda f: f, {"id": "visitt"}, "there is no column 'visitt' for id"),
        (lambda f: f, {"id": ["id", "age"]}, "id is one column"),
        (lambda f: f.with_columns(pl.col("at").dt.replace_time_zone(None)), None, "no time zone"),
        (lambda f: [1, 2], None, "pass a frame of Polars, pandas or Arrow"),
    ],
)
def test_a_wrong_frame_is_one_line_and_nothing_is_stored(change, columns, words):
    with opened(":memory:") as loop:
        with pytest.raises(ValueError, match=words):
            loop.decide_frame(change(requests(3)), columns=columns)
        assert len(loop.log()) == 0


def test_rewards_are_given_whatever_sql_calls_a_number():
    values = pl.Series([1, 0, 1], dtype=pl.Int64), pl.Series([True, False, True])
    values += (pl.Series([Decimal("1.0"), Decimal("0.0"), Decimal("1.0")]),)
    values += (pl.Series(["1", "0.0", "true"]),)
    for each in values:
        with opened(":memory:") as loop:
            loop.decide_frame(requests(3))
            given = pl.DataFrame({"id": ["00000", "00001", "nobody"], "reward": each})
            found = loop.reward_frame(given.with_columns(at=pl.lit(START + timedelta(hours=1))))
            assert found.done["result"].to_list() == ["counted", "counted", "held"]
            assert loop.log()["reward"].to_list() == [1.0, 0.0, None]


def test_a_reward_that_is_missing_or_no_number_is_refused():
    given = pl.DataFrame({"id": ["00000", "00001", "00002"], "reward": [None, "many", "1"]})
    with opened(":memory:") as loop:
        loop.decide_frame(requests(3))
        found = loop.reward_frame(given.with_columns(at=pl.lit(START)))
        assert found.refused["row"].to_list() == [0, 1]
        assert found.done.rows() == [("00002", "counted")]
        with pytest.raises(ValueError, match="no column is called 'reward'"):
            loop.reward_frame(given.drop("reward"))


def write(frame, path):
    """CSV has no lists: a vector is JSON text there."""
    kind = {".parquet": "parquet", ".csv": "csv", ".arrow": "ipc", ".jsonl": "ndjson"}[path.suffix]
    if kind == "csv" and "taste" in frame.columns:
        texts = [json.dumps(each) for each in frame["taste"].to_list()]
        frame = frame.with_columns(taste=pl.Series(texts))
    getattr(frame, f"write_{kind}")(path)


@pytest.mark.parametrize("ending", ["parquet", "csv", "arrow", "jsonl"])
def test_the_commands_decide_and_reward_files_and_can_be_repeated(folder, ending, capsys):
    seconds = requests(700).with_columns(at=pl.col("at").dt.epoch("s"))
    write(seconds, folder / f"requests.{ending}")
    decide = "decide", "shop.db", f"requests.{ending}", "decisions.parquet"
    assert driftbandit(*decide) == 0
    decisions = pl.read_parquet("decisions.parquet")
    with opened(":memory:") as loop:
        assert decisions.equals(loop.decide_frame(requests(700)).done)
    assert driftbandit(*decide) == 0
    assert pl.read_parquet("decisions.parquet").equals(decisions)
    at = pl.lit((START + timedelta(hours=1)).timestamp())
    given = decisions.select(visit="id", clicked=pl.int_range(pl.len()) % 2, at=at)
    bad = given[:1].with_columns(clicked=pl.lit(None, dtype=pl.Int64))
    write(pl.concat([given, bad]), folder / f"rewards.{ending}")
    named = "--column", "id=visit", "--column", "reward=clicked"
    assert driftbandit("reward", "shop.db", f"rewards.{ending}", *named) == 1
    assert pl.read_csv("rewards.refused.csv")["row"].to_list() == [700]
    with Loop("shop.db") as loop:
        assert loop.log()["reward"].to_list() == given["clicked"].to_list()
    write(given, folder / f"rewards.{ending}")
    assert driftbandit("reward", "shop.db", f"rewards.{ending}", *named) == 0
    assert not (folder / "rewards.refused.csv").exists()
    told = capsys.readouterr()
    assert "700 rewards: 700 counted" in told.out
    assert "- 1: there is no reward" in told.out
    assert told.err == ""  # no bars where nobody watches


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("decide", "shop.db", "bad.parquet", "out.parquet"), "cannot be read as .parquet"),
        (("decide", "shop.db", "no.parquet", "out.parquet"), "is not a file"),
        (("decide", "shop.db", "bad.parquet", "out.xlsx"), "unknown ending"),
        (("decide", "shop.db", "bad.parquet", "bad.parquet"), "file of their own"),
        (("reward", "sop.db", "good.csv"), "does not exist"),
        (("reward", "shop.db", "good.csv", "--column", "id"), "must be ours=theirs"),
    ],
)
def test_wrong_files_are_one_line(folder, args, words):
    (folder / "bad.parquet").write_text("no")
    (folder / "good.csv").write_text("id,reward\np,1\n")
    with pytest.raises(ValueError, match=words) as error:
        driftbandit(*args)
    assert "\n" not in str(error.value)
