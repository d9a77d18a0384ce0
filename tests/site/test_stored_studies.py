"""Stored studies: rows know which code played them, pages say which rows are old, rows merge."""

import csv
import importlib
import re
from pathlib import Path

import polars as pl
import pytest

from driftbandit.lab import Engine, RunStore, execute, finals, read_study

ROOT = Path(__file__).parents[2]
STUDY = """
name = "small"
horizon = 60
seeds = 3
first_seed = 40
points = 4

[[environments]]
type = "Circle"
radius = [1.0, 3.0]
label = "drift, S = {radius:g}"

[[policies]]
type = "DOMD"
scale = 0.2

[[policies]]
type = "GLOC"
scale = 0.2

[[policies]]
type = "LinUCB"
scale = 0.2
"""


@pytest.fixture
def stored_studies(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    return importlib.import_module("benchmarks.stored_studies")


@pytest.fixture
def small(stored_studies, tmp_path, monkeypatch):
    """A study that is stored in a folder of its own; how to play (a part of) it."""
    path, results = tmp_path / "small.toml", tmp_path / "stored"
    path.write_text(STUDY)
    results.mkdir()
    monkeypatch.setattr("benchmarks.tables.RESULTS", results)
    monkeypatch.setattr(stored_studies, "STUDIES", ("small",))
    monkeypatch.setattr(stored_studies, "read_study", lambda name: read_study(path))

    def play(folder, policies=None):
        stored_studies.cells.cache_clear()
        study, text = read_study(path, policies=policies)
        store = RunStore(tmp_path / folder / "small")
        execute(study, text, store, Engine(workers=1))
        stored_studies.collect("small", tmp_path / folder)
        stored_studies.out_of_date.cache_clear()
        return store

    yield play
    stored_studies.cells.cache_clear()
    stored_studies.out_of_date.cache_clear()


def read(path):
    with path.open() as file:
        return list(csv.DictReader(file))


def recoded(path, policy, code):
    lines = read(path)
    for line in lines:
        line["code"] = code if line["policy"] == policy else line["code"]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(lines[0]))
        writer.writeheader()
        writer.writerows(lines)


def test_rows_merge_and_what_is_old_is_named_and_confirmed(small, stored_studies, tmp_path):
    whole = finals(small("all"))
    assert whole["code"].null_count() == 0
    table = tmp_path / "stored" / "small.csv"
    assert not stored_studies.out_of_date("small")
    assert stored_studies.said(["small"]).startswith("All results")
    before = read(table)

    recoded(table, "GLOC", "of last week")
    stored_studies.out_of_date.cache_clear()
    assert stored_studies.said(["small"]).endswith("Made by earlier code: `small` (GLOC).")
    small("part", "GLOC")  # nothing else is in this folder
    assert not stored_studies.out_of_date("small")
    times = {"early_us", "late_us"}
    for was, now in zip(before, read(table), strict=True):
        for name in was.keys() - times:
            same = was[name] == now[name]
            assert same or float(now[name]) == pytest.approx(float(was[name]), abs=2e-4), name

    recoded(table, "LinUCB", "of last week")
    stored_studies.out_of_date.cache_clear()
    stored_studies.confirm("small")
    stored_studies.out_of_date.cache_clear()
    assert not stored_studies.out_of_date("small")


def test_other_regrets_are_not_confirmed(small, stored_studies, tmp_path, capsys):
    small("all")
    folder = tmp_path / "stored"
    seeds = pl.read_csv(folder / "small-seeds.csv")
    changed = pl.when(pl.col("policy") == "GLOC").then(pl.col("42") + 1.0).otherwise(pl.col("42"))
    seeds.with_columns(changed.alias("42")).write_csv(folder / "small-seeds.csv")
    recoded(folder / "small.csv", "GLOC", "")
    stored_studies.out_of_date.cache_clear()
    stored_studies.confirm("small")
    assert "0 of 2 rows confirmed" in capsys.readouterr().out


def test_rows_that_were_stored_without_seeds_stay_as_they_are(small, stored_studies, tmp_path):
    small("all")
    folder = tmp_path / "stored"
    (folder / "small-seeds.csv").unlink()  # as studies were stored once
    recoded(folder / "small.csv", "LinUCB", "")
    before = {(x["environment"], x["policy"]): x for x in read(folder / "small.csv")}
    small("part", "GLOC,DOMD")
    for line in read(folder / "small.csv"):
        was = before[line["environment"], line["policy"]]
        kept = line["policy"] == "LinUCB"
        assert line["best"] == ""  # nothing can be told from a row without seeds
        assert float(line["mean"]) == pytest.approx(float(was["mean"]), abs=2e-4)
        assert kept == all(line[name] == was[name] for name in line if name != "best")
        assert (line["code"] == "") == kept
    assert stored_studies.said(["small"]).endswith("named their code: `small` (LinUCB).")


def test_results_of_other_seeds_are_refused(small, stored_studies, tmp_path):
    study, text = read_study(tmp_path / "small.toml", seeds=2)
    execute(study, text, RunStore(tmp_path / "few" / "small"), Engine(workers=1))
    with pytest.raises(ValueError, match="other options, rounds or seeds"):
        stored_studies.collect("small", tmp_path / "few")


def test_seeds_give_the_means_that_are_stored(stored_studies):
    for path in sorted((ROOT / "docs" / "results").glob("*-seeds.csv")):
        means = {
            (x["environment"], x["policy"]): x
            for x in read(path.with_name(path.name.replace("-seeds", "")))
        }
        for line in read(path):
            facts = means.pop((line.pop("environment"), line.pop("policy")))
            assert facts["code"]
            regrets = [float(value) for value in line.values() if value]
            assert len(regrets) == int(facts["seeds"])
            assert sum(regrets) / len(regrets) == pytest.approx(float(facts["mean"]), abs=2e-4)
        assert not [x for x in means.values() if x["code"]]  # rows of before have none


def test_every_page_that_quotes_a_study_says_how_old_its_rows_are(stored_studies):
    readme = importlib.import_module("benchmarks.readme")
    with pytest.raises(ValueError, match="says by itself"):
        readme.filled("<!-- table: catalogue -->\n<!-- end -->")
    assert re.search("played -->(All results|Not all results)", (ROOT / "README.md").read_text())
