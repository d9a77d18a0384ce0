"""Logs: many formats, one log; bad rows with reasons; learners replayed from them."""

import json
import math
from datetime import UTC, datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet
import pytest

from driftbandit import (
    DOMD,
    GLOC,
    Always,
    AutoDOMD,
    Bandit,
    Category,
    Default,
    Features,
    Log,
    Logged,
    Loop,
    Number,
    Reward,
    Uniform,
    evaluate,
)
from driftbandit.evidence.reading import columns, dsjson, files, parse, row_counts
from driftbandit.evidence.reading.encode import encoded
from driftbandit.loop.exploration import draw
from prices import ARMS, FEATURES

DECLARED = {"features": FEATURES, "reward": Reward(0, 1)}


def rows(n=50, seed=0):
    """Clean rows as mappings."""
    rng, out = np.random.default_rng(seed), []
    for t in range(n):
        h = np.full(3, 0.1)
        h[rng.integers(3)] += 0.7
        action = int(rng.choice(3, p=h / h.sum()))
        out.append(
            {
                "context": {
                    "age": int(rng.integers(18, 90)),
                    "country": str(rng.choice(["NL", "FR"])),
                },
                "arms": ARMS,
                "action": "abc"[action],
                "probability": float(h[action]),
                "probabilities": h.tolist(),
                "reward": float(rng.random() < 0.4),
                "time": 1.7e9 + 60.0 * t,
                "key": f"user {t % 5}",
                "id": f"decision {t}",
            }
        )
    return out


def flat(given):
    """Nested columns as JSON, for formats that have none."""
    nested = ("context", "arms", "probabilities")
    return [{k: json.dumps(v) if k in nested else v for k, v in row.items()} for row in given]


def lines(path, given):
    path.write_text("".join(f"{json.dumps(row)}\n" for row in given))
    return path


def same(one, two):
    """Whether two logs hold the same rows."""
    for left, right in zip(one.chunks(), two.chunks(), strict=True):
        for name in ("action", "p", "h", "reward", "at"):
            assert np.array_equal(getattr(left, name), getattr(right, name), equal_nan=True), name
        assert [m.names for m in left.menus] == [m.names for m in right.menus]
        assert [m.columns for m in left.menus] == [m.columns for m in right.menus]
        assert (left.context, left.key, left.id) == (right.context, right.key, right.id)
    assert one.counts.used == two.counts.used
    return True


def as_parquet(folder):
    pl.DataFrame(flat(rows())).write_parquet(folder / "log.parquet")
    return folder / "log.parquet"


def as_csv(folder):
    pl.DataFrame(flat(rows())).write_csv(folder / "log.csv")
    return folder / "log.csv"


def as_stream(folder):
    table = pl.DataFrame(flat(rows())).to_arrow()
    with (
        pa.OSFile(str(folder / "log.arrows"), "wb") as file,
        pa.ipc.new_stream(file, table.schema) as out,
    ):
        out.write_table(table)
    return folder / "log.arrows"


def as_arrow_file(folder):
    table = pa.Table.from_pylist(flat(rows()))
    with (
        pa.OSFile(str(folder / "log.arrow"), "wb") as file,
        pa.ipc.new_file(file, table.schema) as out,
    ):
        out.write_table(table)
    return folder / "log.arrow"


FORMATS = {
    "parquet": as_parquet,
    "csv": as_csv,
    "json lines": lambda folder: lines(folder / "log.jsonl", rows()),
    "an arrow stream": as_stream,
    "an arrow file": as_arrow_file,
    "pandas": lambda _: pd.DataFrame(rows()),
    "polars": lambda _: pl.DataFrame(flat(rows())),
    "arrow": lambda _: pa.Table.from_pylist(flat(rows())),
    "a reader": lambda _: pa.Table.from_pylist(flat(rows())).to_reader(7),
}


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch):
    for module in (files, columns):
        monkeypatch.setattr(module, "ROWS", 16)


@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_trains_the_same_bits(kind, tmp_path):
    bandit = Bandit(DOMD(problem=FEATURES.problem(Reward(0, 1))))
    for row in rows():
        x = FEATURES.encode(row["context"], [ARMS[row["action"]]])[0]
        bandit.update(x, row["reward"])
    found = Log.read(FORMATS[kind](tmp_path), **DECLARED).replay(DOMD)
    assert np.array_equal(found.bandit.theta, bandit.theta)
    assert found.rows == 50


@pytest.mark.parametrize("ending", ["parquet", "dsjson"])
def test_what_is_written_reads_back_the_same(ending, tmp_path):
    log = Log.read(lines(tmp_path / "log.jsonl", rows()), **DECLARED)
    path = log.write(tmp_path / f"again.{ending}")
    again = Log.read(path)
    if ending == "parquet":
        assert same(log, again)
        assert (again.features, again.reward) == (FEATURES, Reward(0, 1))
    else:  # which has no keys
        assert Log.read(path, **DECLARED).replay(DOMD).digest == log.replay(DOMD).digest
        third = Log.read(again.write(tmp_path / "third.dsjson"))
        assert same(again, third)
    assert [p.name for p in tmp_path.iterdir() if ".part" in p.name] == []


def test_a_log_without_time_stays_one(tmp_path):
    given = [{k: v for k, v in row.items() if k != "time"} for row in rows()]
    log = Log.read(lines(tmp_path / "log.jsonl", given), **DECLARED)
    assert same(log, Log.read(log.write(tmp_path / "again.parquet")))
    assert np.isnan(next(log.chunks()).at).all()


DSJSON = """
{"_label_cost":-1,"_label_probability":0.8,"_label_Action":2,"_labelIndex":1,"Timestamp":"2024-05-01T12:00:00.5160000Z","EventId":"e1","a":[2,1,3],"c":{"User":{"age":31,"_secret":1},"Geo":[{"country":"NL"},{"city":{"name":"Delft"}}],"top":2,"_synthetic":false,"_multi":[{"_tag":"x","i":{"price":9}},{"_tag":"y","i":{"price":5}},{"_tag":"z","i":{"price":1}}]},"p":[0.8,0.15,0.05],"VWState":{"m":"m1"}}
{"_label_cost":0,"_label_probability":0.5,"_label_Action":1,"Timestamp":"2024-05-01T12:00:01Z","EventId":"e2","a":[1,2],"c":{"_multi":[{"i":{"price":9}},{"i":{"price":5}}]},"p":[0.5,0.5]}
{"_label_cost":0.25,"_label_probability":0.5,"_labelIndex":1,"Timestamp":"2024-05-01T12:00:02Z","c":{"_multi":[{"i":{"price":9}},{"i":{"price":5}}]}}
{"_label_cost":0,"_label_probability":0.5,"_labelIndex":0,"_skipLearn":true,"c":{"_multi":[{}]}}
{"EventId":"e1","RewardValue":1.0,"EnqueuedTimeUtc":"2024-05-01T12:00:03Z"}
{"_label_cost":0,"_label_probability":0.5,"_labelIndex":0,"pdrop":0.5,"c":{"_multi":[{"i":{"price":9}}]}}
{"_label_cost":1,"_outcomes":[{"_a":1,"_p":0.8}],"c":{"_multi":[{"i":{}}]}}
{"_label_cost":0,"_label_probability":0.5,"_labelIndex":7,"c":{"_multi":[{"i":{"price":9}}]}}
{"_label_cost":0,"_label_probability":0.5,"_labelIndex":0,"c":{"_multi":[]}}
{"_label_cost":0,"_label_probability":0.5,"_labelIndex":0,"Timestamp":"2024-05-01T12:00:04Z","a":[1,2],"p":[0.9,0.1],"c":{"_multi":[{"i":{"price":9}},{"i":{"price":5}}]}}
not json
"""


def test_dsjson_by_hand(tmp_path):
    (tmp_path / "log.json").write_text(DSJSON.strip())
    log = Log.read(tmp_path / "log.json", limit=1.0)
    (chunk,) = log.chunks()
    assert len(chunk) == 3
    assert chunk.context[0] == {
        "User.age": 31,
        "Geo.country": "NL",
        "Geo.city.name": "Delft",
        "top": 2,
    }
    assert chunk.menus[0].names == ("x", "y", "z")
    assert chunk.menus[0].columns == ({"i.price": 9}, {"i.price": 5}, {"i.price": 1})
    assert chunk.menus[1].names == ("1", "2")
    assert chunk.action.tolist() == [1, 0, 1]
    assert chunk.reward.tolist() == [1.0, 0.0, -0.25]
    assert chunk.p.tolist() == [0.8, 0.5, 0.5]
    assert chunk.h[:5].tolist() == pytest.approx([0.15, 0.8, 0.05, 0.5, 0.5])
    assert np.isnan(chunk.h[5:]).all()
    first = datetime(2024, 5, 1, 12, 0, 0, 516000, tzinfo=UTC).timestamp()
    assert chunk.at.tolist() == [first, first + 0.484, first + 1.484]
    assert chunk.id == ["e1", "e2", None]
    assert dict(log.counts.skipped) == {"_skipLearn": 1, "an outcome without its decision": 1}
    assert sorted(log.counts.bad) == [
        "a decision over several slots",
        "a line that is no JSON object",
        "a probability that differs from that of all arms",
        "an action that is not among the arms",
        "no arms in c._multi",
        "rows around it were dropped (pdrop), so rewards are no fair sample",
    ]
    assert log.counts.first["a line that is no JSON object"] == 11


def test_a_written_line_is_as_vowpal_wabbit_reads_it(tmp_path):
    log = Log.read(lines(tmp_path / "log.jsonl", rows(1)))
    (text,) = dsjson.lines(next(log.chunks()))
    line, row = json.loads(text), rows(1)[0]
    chosen = "abc".index(row["action"])
    assert (line["_label_Action"], line["_labelIndex"]) == (chosen + 1, chosen)
    assert line["_label_cost"] == -row["reward"]
    assert line["a"][0] == chosen + 1
    assert line["p"][0] == line["_label_probability"] == row["probability"]
    assert [arm["_tag"] for arm in line["c"]["_multi"]] == ["a", "b", "c"]
    assert line["c"]["age"] == row["context"]["age"]
    hidden = [row | {"context": {"_age": 3}}]
    with pytest.raises(ValueError, match="'_age' as a feature"):
        Log.read(lines(tmp_path / "x.jsonl", hidden)).write(tmp_path / "x.dsjson")
    assert not (tmp_path / "x.dsjson").exists()


BAD = {
    "no reward": {"reward": None},
    "no reward ": {"reward": "much"},
    "no reward  ": {"reward": 1e999},
    "no probability above 0 and up to 1": {"probability": 0.0, "probabilities": None},
    "no probability above 0 and up to 1 ": {"probability": 1.5, "probabilities": None},
    "no time that can be read": {"time": "yesterday"},
    "no time that can be read ": {"time": 1.7e12},
    "a context that is no mapping": {"context": "[1, 2]"},
    "a context that is no mapping ": {"context": "{"},
    "an action that is not among the arms": {"action": "z"},
    "an action that is not among the arms ": {"action": None},
    "no arms, or the same name twice": {"arms": {}},
    "no arms, or the same name twice ": {"arms": ["a", "a", "b"]},
    "an arm that is not a mapping of columns": {"arms": {"a": 3}},
    "arms that are not JSON": {"arms": "{"},
    "arms that are neither a list nor a mapping": {"arms": "null"},
    "arms that are neither a list nor a mapping ": {"arms": 7},
    "an action that is not among the arms  ": {"action": math.inf},
    "an action that is not among the arms   ": {"action": math.nan},
    "no arms: name their column, or pass arms=": {"arms": None},
    "another number of probabilities than of arms": {"probabilities": [0.5, 0.5]},
    "probabilities that do not add up to 1": {"probabilities": [0.9, 0.9, 0.9]},
    "probabilities that are no list of numbers": {"probabilities": "many"},
    "a probability that differs from that of all arms": {"probability": 0.5},
}


@pytest.mark.parametrize("reason", BAD)
def test_a_bad_row_is_counted_by_reason_and_left_out(reason, tmp_path):
    given = rows()
    given[20] |= BAD[reason]
    log = Log.read(lines(tmp_path / "log.jsonl", given), limit=0.02, **DECLARED)
    assert sum(map(len, log.chunks())) == 49
    assert dict(log.counts.bad) == {reason.strip(): 1}
    assert log.counts.first == {reason.strip(): 21}
    log = Log.read(tmp_path / "log.jsonl", **DECLARED)  # one in fifty is beyond the limit
    with pytest.raises(ValueError, match=r"1 of the first 50 rows are bad.*\(first row 21\)"):
        log.replay(DOMD)


ODD = [
    None, "", "null", "[]", "{", '{"a": 1}', "\ud800", "b", "Infinity", "1e999", "[" * 9000, -1,
    10**30, 10**400, 1e308, math.inf, math.nan, True, [], {}, [None], [[1]], [1, "2"], ["x", 0.5],
    [None, 0.5], {"a": None}, {"a": {"b": [1]}},
]  # fmt: skip
FIRST = {
    "_label_cost": -1, "_label_probability": 0.5, "_labelIndex": 0, "_label_Action": 1,
    "Timestamp": "2024-05-01T12:00:00Z", "EventId": "e", "a": [1, 2], "p": [0.5, 0.5],
    "c": {"age": 30, "country": "NL", "_multi": [{"_tag": tag, "price": 9} for tag in "ab"]},
}  # fmt: skip


@pytest.mark.parametrize("name", [*rows(1)[0], "names", "key", "id", "default", "role", *FIRST])
def test_no_cell_ends_the_reading(name, tmp_path):
    """Whatever stands in one cell of one row, all other rows are read, and that row is counted."""
    usual = [FIRST] * 40 if name in FIRST else rows(40)
    for odd in ODD:
        given = [*usual[:20], usual[20] | {name: odd}, *usual[21:]]
        log = Log.read(lines(tmp_path / "log.jsonl", given), limit=0.1, **DECLARED)
        used = sum(len(examples.chunk) for examples in log.examples())
        assert used == log.counts.used >= 39
        assert log.counts.rows == 40


def test_lines_that_are_no_rows_are_counted_whatever_they_are(tmp_path):
    usual = [json.dumps(row).encode() for row in rows(40)]
    for odd in (b"\xff\xfe", b'{"reward": 1, "action": "\xe4"}', b"[" * 5000, b"7", b"{", b"\x00"):
        (tmp_path / "log.jsonl").write_bytes(b"\n".join([odd, *usual]))  # the first line, too
        log = Log.read(tmp_path / "log.jsonl", limit=0.1, **DECLARED)
        assert sum(map(len, log.chunks())) == 40
        assert dict(log.counts.bad) == {"a line that is no JSON object": 1}


def test_bad_lines_of_a_csv_file_are_counted(tmp_path):
    head, line = "action,probability,reward,country\n", "a,0.5,1,NL\n"
    cases = {
        "text that is not UTF-8": (b"a,0.5,1,\xff\n", 1),
        "a line with too few or too many cells": (b"a,0.5\n", 1),
        "a line that is no CSV: field larger than field limit (131072)": (
            b"a,0.5,1," + b"x" * 200_000 + b"\n",
            1,
        ),
        "a line with too few or too many cells ": (b'a,0.5,"\n' + b"a,0.5,1,NL\n" * 4, 11),
    }
    path = tmp_path / "log.csv"
    for reason, (odd, lost) in cases.items():
        path.write_bytes(head.encode() + 40 * line.encode() + odd + 6 * line.encode())
        columns = {"context": ["country"]}
        log = Log.read(path, columns, arms=["a", "b"], reward=Reward(0, 1), limit=0.9)
        kept = 40 if lost > 1 else 46
        assert sum(map(len, log.chunks())) == kept
        assert dict(log.counts.bad) == {reason.strip(): lost}, reason
    path.write_text(head.replace("country", "city") + 'a,0.5,1,"two\nlines, ""quoted"""\n' * 9)
    (chunk,) = Log.read(path, {"context": ["city"]}, arms=["a", "b"]).chunks()
    assert chunk.context[8] == {"city": 'two\nlines, "quoted"'}


def test_one_bad_byte_in_arrow_text_is_a_bad_row(tmp_path):
    words = pa.array([b"NL"] * 20 + [b"\xff"] + [b"FR"] * 20)
    table = {"action": ["a"] * 41, "probability": [0.5] * 41, "reward": [1.0] * 41}
    table |= {"country": pa.Array.from_buffers(pa.string(), 41, words.buffers())}
    path = tmp_path / "log.parquet"
    pa.parquet.write_table(pa.table(table), path)
    log = Log.read(path, {"context": ["country"]}, arms=["a", "b"], limit=0.1)
    assert sum(map(len, log.chunks())) == 40
    assert log.counts.first == {"text that is not UTF-8": 21}


@pytest.mark.parametrize("name", ["context", "time", "probabilities", "probability", "reward"])
def test_columns_of_json_lines_are_those_of_all_lines(name, tmp_path):
    """What the first line lacks is not lost in the others."""
    given = rows(100)
    whole = Log.read(lines(tmp_path / "whole.jsonl", given), **DECLARED)
    given[0].pop(name)
    some = Log.read(lines(tmp_path / "some.jsonl", given), limit=0.1, **DECLARED)
    expected, found = facts(whole), facts(some)
    assert [found[k] for k in range(2, 101)] == [expected[k] for k in range(2, 101)]
    assert len(found) == 100 - (name in ("time", "reward"))


def facts(log):
    """What a log says of each row, by number."""
    return {
        int(chunk.number[k]): (
            *(chunk.context[k], chunk.p[k], chunk.reward[k], chunk.at[k]),
            chunk.h[chunk.start[k] :][: chunk.sizes[k]].tolist(),
        )
        for chunk in log.chunks()
        for k in range(len(chunk))
    }


def test_a_column_may_begin_anywhere_in_json_lines(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "ROWS", 16)
    given = [row | {"clicked": row["reward"]} for row in rows(60)]
    for row in given[:40]:
        del row["clicked"]
    path = lines(tmp_path / "log.jsonl", given)
    log = Log.read(path, {"reward": "clicked"}, limit=1.0, **DECLARED)
    assert sum(map(len, log.chunks())) == 20
    assert dict(log.counts.bad) == {"no reward": 40}
    with pytest.raises(ValueError, match="there is no column 'bought' for reward"):
        Log.read(path, {"reward": "bought"})


def test_one_odd_value_does_not_stop_a_proposal(tmp_path):
    for odd in ("old", 10**400, [3], {"years": 3}):
        given = rows(100)
        given[7]["context"] = given[7]["context"] | {"age": odd}
        log = Log.read(lines(tmp_path / "log.jsonl", given), limit=0.1)
        assert isinstance(log.features.context["age"], Number)
        assert log.replay(DOMD).rows == 99
        assert log.counts.first.popitem()[1] == 8


def test_values_that_features_or_rewards_refuse_are_bad_rows(tmp_path):
    given = rows()
    given[3] |= {"context": {"age": "old", "country": "NL"}}
    given[30] |= {"reward": 7.0}
    path = lines(tmp_path / "log.jsonl", given)
    strict = Reward(0, 1, invalid="error")
    log = Log.read(path, features=FEATURES, reward=strict, limit=0.1)
    assert log.replay(DOMD).rows == 48
    assert sorted(log.counts.first.values()) == [4, 31]
    assert any("age" in reason for reason in log.counts.bad)
    log = Log.read(path, **DECLARED, limit=0.1)
    assert log.replay(DOMD).rows == 49
    assert log.counts.clipped == 1


def test_a_hopeless_log_is_given_up_early(tmp_path, monkeypatch):
    monkeypatch.setattr(row_counts, "LOOK", 16)
    good = rows(16)
    path = lines(tmp_path / "log.jsonl", good + [row | {"reward": None} for row in rows(500)])
    with pytest.raises(ValueError, match="16 of the first 32 rows"):
        Log.read(path, **DECLARED).replay(DOMD)


def test_reading_is_lazy(monkeypatch):
    seen = []

    def batches():
        for k in range(1000):
            seen.append(k)
            row = rows(1)[0]
            yield {name: [value] for name, value in row.items()}

    chunks = Log(columns.Source(batches), **DECLARED).chunks()
    next(chunks)
    next(chunks)
    assert len(seen) == 2


def test_a_parquet_file_is_not_held_in_memory(tmp_path):
    """pyarrow would fetch all of it before the first row."""
    x, n = np.random.default_rng(0).random((4, 40_000)), 40_000
    columns = {f"x{k}": each for k, each in enumerate(x)} | {"action": ["a", "b"] * (n // 2)}
    table = pa.table(columns | {"probability": np.full(n, 0.5), "reward": x[0]})
    pyarrow.parquet.write_table(table, tmp_path / "log.parquet", row_group_size=1000)
    del table
    context, before = {"context": ["x0", "x1", "x2", "x3"]}, pa.total_allocated_bytes()
    chunks = Log.read(tmp_path / "log.parquet", context, arms=["a", "b"]).chunks()
    next(chunks)
    held = pa.total_allocated_bytes() - before
    assert held < 0.2 * (tmp_path / "log.parquet").stat().st_size


def test_columns_are_mapped_by_name(tmp_path):
    """As the Open Bandit logs have them: items with a catalogue of their own, one probability."""
    given = [
        {
            "timestamp": f"2019-11-24 00:00:{k:02d}.004101+00:00",
            "item_id": k % 3,
            "click": k % 2,
            "propensity_score": 1 / 3,
            "user_feature_0": "x" if k % 4 else "y",
            "user_feature_1": 3.5 * k,
        }
        for k in range(60)
    ]
    frame = pl.DataFrame(given)
    frame.write_csv(tmp_path / "obd.csv")
    columns = {
        "context": ["user_feature_0", "user_feature_1"],
        "action": "item_id",
        "probability": "propensity_score",
        "reward": "click",
        "time": "timestamp",
    }
    catalogue = {"0": {"price": 3.0}, "1": {"price": 1.0}, "2": {"price": 2.0}}
    logs = [Log.read(s, columns, arms=catalogue) for s in (frame, tmp_path / "obd.csv")]
    assert same(*logs)
    assert set(logs[0].features.columns) == {"user_feature_0", "user_feature_1", "price"}
    assert logs[0].replay(DOMD).digest == logs[1].replay(DOMD).digest
    names = Log.read(frame, columns, arms=["0", "1", "2"])  # arms of which only the name is known
    assert list(names.features.arm) == ["arm"]


@pytest.mark.parametrize(
    ("columns", "match"),
    [
        ({"acton": "action"}, "a log has no column 'acton': .*action"),
        ({"reward": "rewrd"}, "no column 'rewrd' for reward"),
        ({"context": ["age", "nothing"]}, "no column"),
    ],
)
def test_wrong_column_names_are_named(columns, match, tmp_path):
    with pytest.raises(ValueError, match=match):
        list(Log.read(pl.DataFrame(flat(rows())), columns).chunks())


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda f: Log.read(f / "nothing.parquet"), "is not a file"),
        (lambda f: Log.read(f / "nothing.db"), "is not a file"),
        (lambda f: Log.read(lines(f / "log.txt", rows())), "unknown ending"),
        (lambda f: Log.read(lines(f / "log.parquet", rows())), "not a Parquet file"),
        (lambda f: Log.read(17), "a log is a path, a frame"),
        (lambda f: Log.read(pl.DataFrame({"a": [1]})), "no column is called 'action'"),
        (lambda f: Log.read(pl.DataFrame({"action": [1], "reward": [1]})), "'probability'"),
        (lambda f: Log.read(lines(f / "l.jsonl", rows()), features=3), "features must be"),
        (lambda f: Log.read(lines(f / "l.jsonl", rows()), arms=3), "arms must be a list"),
        (lambda f: Log.read(lines(f / "l.jsonl", rows()), limit=-1), "limit"),
        (lambda f: Log.read(lines(f / "l.jsonl", rows())).write(f / "x.csv"), "must end in"),
        (lambda f: Log.read(lines(f / "l.jsonl", rows()), least=0.2).replay(), "below least"),
        (lambda f: Log.read(lines(f / "l.jsonl", rows())).replay(GLOC), "problem=log.problem"),
        (lambda f: Log.read(lines(f / "l.jsonl", rows())).replay("DOMD"), "one such as AutoDOMD"),
        (
            lambda f: Log.read(
                lines(f / "l.jsonl", rows()),
                features=Features(context={"agee": Number(0, 1)}, arm={"price": Number(0, 1)}),
            ).replay(),
            "no context of this log has the declared column 'agee'",
        ),
        (
            lambda f: Log.read(lines(f / "l.jsonl", [r | {"reward": 9} for r in rows()])).reward,
            "pass reward=Reward",
        ),
        (
            lambda f: Log.read(lines(f / "l.jsonl", [r | {"reward": "x"} for r in rows()])).reward,
            "no row of the first",
        ),
    ],
)
def test_wrong_input_is_one_line_with_a_remedy(make, match, tmp_path):
    with pytest.raises(ValueError, match=match) as caught:
        make(tmp_path)
    assert "\n" not in str(caught.value)


def test_a_stream_is_read_once():
    log = Log.read(pa.Table.from_pylist(flat(rows())).to_reader(7), **DECLARED)
    assert log.sample.id[0] == "decision 0"  # a look does not lose rows
    assert log.replay(DOMD).rows == 50
    with pytest.raises(ValueError, match="read already"):
        log.replay(DOMD)


def test_moments_however_they_are_written():
    at = datetime(2024, 5, 1, 12, tzinfo=UTC)
    texts = ["2024-05-01T12:00:00Z", "2024-05-01 14:00:00+02:00", "2024-05-01T12:00:00.0000000Z"]
    given = [at, at.replace(tzinfo=None), *texts, str(at.timestamp()), at.timestamp()]
    given += [np.datetime64("2024-05-01T12:00"), pd.Timestamp(at)]
    assert parse.moments(given).tolist() == [at.timestamp()] * len(given)
    assert np.isnan(parse.moments(["soon", None, pd.NaT, "2024-13-01"])).all()


def test_encoded_rows_are_those_of_the_features(tmp_path):
    log = Log.read(lines(tmp_path / "log.jsonl", rows()), **DECLARED)
    for chunk in log.chunks():
        one_by_one = [
            FEATURES.encode(c, list(m.columns)) for c, m in zip(chunk.context, chunk.menus)
        ]
        assert np.array_equal(encoded(FEATURES, chunk), np.concatenate(one_by_one))


def test_rejection_replay_equals_a_naive_twin(tmp_path):
    log = Log.read(lines(tmp_path / "log.jsonl", rows(400)), **DECLARED)
    found = log.rejection(DOMD, seed=5)
    bandit, kept = Bandit(DOMD(problem=log.problem)), []
    for t, row in enumerate(rows(400), start=1):
        X = FEATURES.encode(row["context"], list(ARMS.values()))
        chosen = "abc".index(row["action"])
        agrees = bandit.choose(X) == chosen
        if agrees and draw(5, t, "accept") < 0.1 / row["probability"]:
            bandit.update(X[chosen], row["reward"])
            kept.append(row["reward"])
    assert found.reward.tolist() == kept
    assert 5 < len(kept) < 100
    assert found.rows == 400
    assert np.array_equal(found.bandit.theta, bandit.theta)
    assert found.curve[-1] == pytest.approx(np.mean(kept))
    assert log.rejection(DOMD, seed=6).reward.tolist() != kept


def test_accepted_rows_are_as_if_played(tmp_path):
    """Of a policy that never changes, by far from uniform logs: its own share of rewards."""
    rng, given = np.random.default_rng(1), rows(3000, seed=2)
    for row in given:
        row["reward"] = float(rng.random() < {"a": 0.2, "b": 0.5, "c": 0.8}[row["action"]])
    log = Log.read(lines(tmp_path / "log.jsonl", given), **DECLARED)
    found = log.rejection(AutoDOMD)
    assert abs(found.reward[-100:].mean() - 0.8) < 0.15  # what the best arm gives


@pytest.fixture
def loop(tmp_path, no_wait_for_the_disk):
    """A loop with late, missing and cancelled rewards."""
    rng = np.random.default_rng(0)
    options = {"policy": DOMD, "clock": "events", "training": "inline", "exploration": 0.3}
    reward = Reward(0, 1, wait=100, missing=0)
    with Loop(tmp_path / "shop.db", features=FEATURES, reward=reward, **options) as loop:
        for t in 10.0 * np.arange(80):
            context = {"age": int(rng.integers(18, 90)), "country": str(rng.choice(["NL", "FR"]))}
            decision = loop.decide(context, ARMS, at=t, key=f"user {t % 7:g}")
            if rng.random() < 0.6:
                loop.reward(decision.id, float(rng.random() < 0.5), at=t + 5)
            if rng.random() < 0.1:
                loop.cancel(decision.id, at=t + 5)
        yield loop


def test_a_ledger_replays_to_the_bits_of_its_loop(loop, tmp_path):
    log = Log.read(tmp_path / "shop.db")
    assert log.replay().digest == log.replay(DOMD).digest == loop.digest
    assert log.replay(AutoDOMD).digest != loop.digest
    path = log.write(tmp_path / "copy.parquet")
    assert Log.read(path).replay(DOMD).digest == loop.digest
    loop.export(tmp_path / "export.parquet")
    exported = Log.read(
        tmp_path / "export.parquet", features=FEATURES, reward=loop.declaration.reward
    )
    assert exported.replay(DOMD).digest == loop.digest
    assert set(exported.counts.skipped) == {"cancelled", "open"}
    assert exported.replay(AutoDOMD).digest == log.replay(AutoDOMD).digest
    for _ in log.chunks():
        pass
    assert log.counts.skipped == exported.counts.skipped


@pytest.mark.usefixtures("no_wait_for_the_disk")
def test_decisions_without_a_reward_are_not_left_out_in_silence(tmp_path):
    """Only clicks are reported: all that is known has reward 1, which is no value of 1."""
    options = {"policy": DOMD, "clock": "events", "training": "inline", "exploration": 0.3}
    with Loop(tmp_path / "l.db", features=FEATURES, reward=Reward(0, 1), **options) as loop:
        ids = [loop.decide({"age": 30}, ARMS, at=float(t)).id for t in range(50)]
        for id in ids[::5]:
            loop.reward(id, 1.0, at=60.0)
        found = evaluate(Log.read(tmp_path / "l.db"), {"live": Logged()})
    assert (found.rows, found.log.counts.rows) == (10, 50)
    assert found.log.counts.skipped == {"open": 40}
    assert any("those of decisions with a reward" in note for note in found.notes)


@pytest.mark.usefixtures("no_wait_for_the_disk")
def test_a_holdout_trains_but_is_no_evidence_about_the_policy(tmp_path):
    """The default is played in it whatever the policy says: with its probability of 1, what the
    others would have played counts as worth nothing (ips), or as what the model says (dr)."""
    rng, truth = np.random.default_rng(3), {"a": 0.2, "b": 0.4, "c": 0.3}
    options = {"policy": DOMD, "clock": "events", "training": "inline", "exploration": 0.6}
    reward = Reward(0, 1)
    with Loop(tmp_path / "l.db", features=FEATURES, reward=reward, holdout=0.3, **options) as loop:
        for t in range(900):
            about = {"at": float(t), "default": "a", "key": f"user {t % 400}"}
            alone = loop.record_fallback if t % 50 == 0 else loop.decide
            made = alone({"age": 30, "country": "NL"}, ARMS, id=str(t), **about)
            arm = "a" if t % 50 == 0 else made.arm
            loop.reward(str(t), float(rng.random() < truth[arm]), at=float(t))
        path, digest = loop.export(tmp_path / "e.parquet"), loop.digest
        roles = loop.log()["role"].to_list()
    log = Log.read(tmp_path / "l.db")
    copy = Log.read(log.write(tmp_path / "copy.parquet"))
    ways = [log, copy, Log.read(path, features=FEATURES, reward=reward)]
    everyone = {"b": Always("b"), "default": Default(), "new": DOMD}
    found = [evaluate(each, everyone) for each in ways]
    active = roles.count("active")
    for each, way in zip(found, ways):
        assert each.rows == active < 700
        assert each.values["b"].support == pytest.approx(1.0)
        for kind in ("ips", "snips", "dr"):
            estimate = each.values["b"].estimates[kind]
            assert estimate.low < 0.4 < estimate.high
        for name, worth in found[0].values.items():
            assert each.values[name].estimates["dr"] == pytest.approx(worth.estimates["dr"])
            assert each.values[name].sequence == pytest.approx(worth.sequence)
        assert way.counts.aside == {"holdout": roles.count("holdout"), "fallback": 18}
        assert any("These rows train" in note for note in each.notes)
        assert way.replay(DOMD).digest == digest  # they still train
    vw = Log.read(log.write(tmp_path / "copy.dsjson"), features=FEATURES, reward=reward)
    ips = evaluate(vw, {"b": Always("b")}).values["b"].estimates["ips"]
    assert ips == pytest.approx(found[0].values["b"].estimates["ips"], rel=1e-12)
    assert vw.counts.skipped == {"_skipLearn": 900 - active}
    assert log.rejection(DOMD).rows == active
    held = pl.read_parquet(path).filter(pl.col("role") == "holdout")
    with pytest.raises(ValueError, match="no row of the log can be used"):
        evaluate(Log.read(held, features=FEATURES, reward=reward), {"b": Always("b")})


def test_a_ledger_that_grew_and_forgot(loop, tmp_path):
    loop.add_features(context={"mobile": Category(["yes", "no"])})
    for t in 1000.0 + 10.0 * np.arange(30):
        loop.decide({"age": 30, "mobile": "yes"}, ARMS, at=t, key="new")
    log = Log.read(tmp_path / "shop.db")
    assert log.replay().digest == loop.digest
    assert "mobile" in log.features.context
    assert log.replay(DOMD).digest == loop.digest
    loop.erase(key="new")
    assert Log.read(tmp_path / "shop.db").replay().digest == loop.digest
    with pytest.raises(ValueError, match="the beginning of this ledger is gone"):
        Log.read(tmp_path / "shop.db").replay(AutoDOMD)
    with pytest.raises(ValueError, match="no loop 'other'"):
        Log.read(tmp_path / "shop.db", name="other")


@pytest.mark.usefixtures("no_wait_for_the_disk")
def test_half_lives_are_those_of_a_loop(tmp_path):
    options = {"clock": "events", "training": "inline", "half_life": "1h", "exploration": 0.5}
    reward = Reward(0, 1, wait=100, missing=0)
    with Loop(tmp_path / "l.db", features=FEATURES, reward=reward, policy=DOMD, **options) as loop:
        for t in np.cumsum(np.random.default_rng(3).integers(1, 3000, 60)).astype(float):
            loop.reward(loop.decide({"age": 40}, ARMS, at=t).id, float(t % 2), at=t)
        log = Log.read(tmp_path / "l.db")
        assert log.replay().digest == loop.digest
        copy = Log.read(log.write(tmp_path / "copy.parquet"))
        assert copy.replay(DOMD, half_life="1h").digest == loop.digest
        assert copy.replay(DOMD).digest != loop.digest


@pytest.mark.usefixtures("no_wait_for_the_disk")
def test_slates_are_counted_and_said_in_a_ledger_and_in_an_export(tmp_path):
    options = {"policy": DOMD, "clock": "events", "training": "inline", "exploration": 0.3}
    with Loop(tmp_path / "l.db", features=FEATURES, reward=Reward(0, 1), **options) as loop:
        for t in range(40):
            k = 2 if t % 4 == 0 else None
            made = loop.decide({"age": 30, "country": "NL"}, ARMS, at=float(t), k=k)
            for position in (0, 1) if k and t < 32 else () if k else (None,):
                loop.reward(made.id, t % 2, at=float(t), position=position)
        path = loop.export(tmp_path / "export.parquet")
    declared = {"features": FEATURES, "reward": Reward(0, 1)}
    ways = [Log.read(tmp_path / "l.db"), Log.read(path, **declared)]
    ways.append(Log.read(pl.read_parquet(path).to_pandas(), **declared))  # NaN for no position
    for log in ways:
        found = evaluate(log, {"live": Logged()})
        assert found.rows == 30
        assert log.counts.skipped == {columns.SLATE: 16, "open": 4}  # 8 slates, and 2
        assert any("16 x a slate: only decisions for one arm" in note for note in found.notes)


def test_proposed_features_know_the_names_of_arms(tmp_path):
    """Two arms with the same columns are two arms; an arm that is rarely played is one, too."""
    twins = {"a": {"price": 5}, "b": {"price": 5}, "c": {"price": 9}}
    played = [r | {"probability": None} for r in rows(60)]  # those of all arms say it
    given = [r | {"arms": twins, "action": "ab"[k % 2]} for k, r in enumerate(played)]
    log = Log.read(lines(tmp_path / "log.jsonl", given))
    assert set(log.features.arm["arm"].values) == {"a", "b", "c"}
    assert set(log.features.arm) == {"arm", "price"}
    X = encoded(log.features, log.sample)
    assert not np.array_equal(X[0], X[1])
    copy = Log.read(log.write(tmp_path / "copy.parquet"))
    assert copy.features == log.features
    assert copy.replay(DOMD).digest == log.replay(DOMD).digest
    numbered = [r | {"arms": list(ARMS.values()), "action": k % 3} for k, r in enumerate(played)]
    log = Log.read(lines(tmp_path / "numbered.jsonl", numbered))
    assert set(log.features.arm) == {"price"}  # a place in a list is no name
    own = [r | {"arms": {"a": {"arm": "x"}, "b": {"arm": "y"}}, "action": "a"} for r in rows(9)]
    own = [r | {"probability": 0.5, "probabilities": [0.5, 0.5]} for r in own]
    log = Log.read(lines(tmp_path / "own.jsonl", own))
    assert set(log.features.arm["arm"].values) == {"x", "y"}


def test_uniform_needs_no_problem():
    assert Uniform().problem.dim == 1
