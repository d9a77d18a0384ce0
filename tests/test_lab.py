"""Studies: validated, run anywhere, resumed, and the same to the last bit."""

import os
import signal
import subprocess
import sys
import time

import duckdb
import polars as pl
import pytest

from driftbandit import DOMD, simulate
from driftbandit.lab import (
    Engine,
    Store,
    execute,
    fit_orders,
    load_results,
    parse_study,
    read_study,
    shipped,
)
from driftbandit.lab.cells import cells_of, run_cell

SMALL = """
name = "small"
horizon = 60
seeds = 5
points = 20

[[environments]]
type = "Circle"
radius = [1.0, 3.0]
label = "S = {radius:g}"

[[policies]]
type = "DOMD"
scale = 0.2

[[policies]]
type = "SCBWeightUCB"
scale = 0.2

[[policies]]
type = "Uniform"
"""
STUDY = parse_study(SMALL, "small.toml")
KEYS = ["environment", "policy", "seed", "round"]
TIMES = ["choose_us", "update_us"]


def settled(folder):
    """What must not depend on how it was run."""
    return load_results(folder).drop(TIMES).sort(KEYS)


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study with spaces")
    assert execute(STUDY, SMALL, Store(folder), Engine(workers=2, block=2)) == (18, 0)
    return folder


def test_results_are_tidy_and_complete(stored):
    frame = load_results(stored)
    assert frame.shape == (2 * 3 * 5 * 20, 11)
    last = frame.filter(pl.col("round") == 60)
    assert last.select(KEYS[:3]).is_duplicated().sum() == 0
    assert (last.filter(pl.col("policy") == "Uniform")["error"].is_nan()).all()


def test_duckdb_reads_the_folder_as_it_is(stored):
    query = f"select count(*) from '{stored}/cells/*.parquet' where policy = 'DOMD-GLB'"
    assert duckdb.sql(query).fetchall() == [(200,)]


def test_a_second_run_has_nothing_to_do(stored):
    before = settled(stored)
    assert execute(STUDY, SMALL, Store(stored), Engine(block=2)) == (0, 18)
    assert settled(stored).equals(before)


def test_engine_workers_and_blocks_change_no_bit(stored, tmp_path):
    execute(STUDY, SMALL, Store(tmp_path / "one"), Engine(workers=1, block=5))
    execute(STUDY, SMALL, Store(tmp_path / "dask"), Engine(workers=2, block=3, scheduler="local"))
    assert settled(tmp_path / "one").equals(settled(stored))
    assert settled(tmp_path / "dask").equals(settled(stored))


def test_a_lost_cell_is_run_again_and_half_files_do_not_count(stored, tmp_path):
    folder = tmp_path / "copy"
    execute(STUDY, SMALL, Store(folder), Engine(workers=1))
    whole = settled(folder)
    victim = sorted((folder / "cells").glob("*.parquet"))[0]
    (folder / "cells" / f".{victim.stem}.x.part").write_bytes(victim.read_bytes()[:100])
    victim.unlink()
    assert execute(STUDY, SMALL, Store(folder), Engine(workers=1)) == (1, 5)
    assert settled(folder).equals(whole)


def test_provenance_is_kept(stored):
    last = Store(stored).runs()[-1]
    assert {"time", "python", "numba", "machine", "commit", "engine", "workers"} <= last.keys()
    assert (stored / "study.toml").read_text() == SMALL


def test_a_dask_worker_killed_in_the_middle_loses_nothing(tmp_path):
    from dask.distributed import Client, LocalCluster

    text = SMALL.replace("horizon = 60", "horizon = 3000").replace("seeds = 5", "seeds = 8")
    study = parse_study(text, "x")
    killed = []

    def kill_one(done, total):
        if done >= 1 and not killed:
            killed.append(True)
            pid = next(iter(client.run(os.getpid).values()))
            os.kill(pid, signal.SIGKILL)

    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        engine = Engine(workers=2, block=2, scheduler=cluster.scheduler_address)
        execute(study, text, Store(tmp_path / "hurt"), engine, kill_one)
    assert killed
    execute(study, text, Store(tmp_path / "calm"), Engine(workers=2, block=4))
    assert settled(tmp_path / "hurt").equals(settled(tmp_path / "calm"))


def test_a_local_worker_killed_in_the_middle_loses_nothing(tmp_path, stored):
    script = f"""
import os, signal, multiprocessing
from driftbandit.lab import *
text = open({str(stored / "study.toml")!r}).read().replace("horizon = 60", "horizon = 2000")
killed = []
def kill_one(done, total):
    if done >= 1 and not killed:
        killed.append(True)
        os.kill(multiprocessing.active_children()[0].pid, signal.SIGKILL)
if __name__ == "__main__":
    execute(parse_study(text, "x"), text, Store("hurt"), Engine(workers=2, block=1), kill_one)
    execute(parse_study(text, "x"), text, Store("calm"), Engine(workers=2, block=5))
    times = ["choose_us", "update_us"]
    keys = ["environment", "policy", "seed", "round"]
    hurt, calm = (load_results(f).drop(times).sort(keys) for f in ("hurt", "calm"))
    assert killed and hurt.equals(calm)
"""
    (tmp_path / "kill.py").write_text(script)
    subprocess.run([sys.executable, "kill.py"], cwd=tmp_path, check=True, timeout=300)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL], ids=["Ctrl-C", "kill -9"])
def test_an_interrupted_run_goes_on(tmp_path, how):
    command = [sys.executable, "-m", "driftbandit", "run", "s.toml", "--out", "r"]
    text = SMALL.replace("horizon = 60", "horizon = 2500").replace("seeds = 5", "seeds = 30")
    (tmp_path / "s.toml").write_text(text)
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    cells = tmp_path / "r" / "cells"
    deadline = time.time() + 120
    while len(list(cells.glob("*.parquet"))) < 2 and time.time() < deadline:
        time.sleep(0.02)
    os.kill(process.pid, how)
    _, errors = process.communicate(timeout=60)
    done = len(list(cells.glob("*.parquet")))
    assert done >= 2
    if how == signal.SIGINT:
        assert process.returncode == 130
        assert errors == "driftbandit: interrupted; what was finished is stored\n"
    study = parse_study(text, "s.toml")
    assert execute(study, text, Store(tmp_path / "r")).stored == done


@pytest.mark.parametrize("name", shipped())
def test_shipped_studies_are_valid(name):
    study, _ = read_study(name)
    assert study.name == name
    assert study.title
    assert cells_of(study, 10)


def test_the_issue_of_shipped_studies_is_complete():
    assert set(shipped()) >= {
        "paper-figure",
        "quick",
        "scaling-in-time",
        "scaling-in-dimension",
        "regret-orders",
        "coverage",
        "sensitivity",
        "same-tuning-budget",
    }


@pytest.mark.parametrize(
    ("old", "new", "line", "word", "near"),
    [
        ("horizon", "horizn", 3, "horizn", "horizon"),
        ('"Circle"', '"Circel"', 8, "Circel", "Circle"),
        ("radius = [", "radus = [", 9, "radus", "radius"),
        ('"SCBWeightUCB"', '"SCBWeigthUCB"', 17, "SCBWeigthUCB", "SCBWeightUCB"),
        ("scale = 0.2", "scal = 0.2", 14, "scal", "scale"),
        ("seeds = 5", 'seeds = "x"', 4, "x", "integer"),
    ],
)
def test_mistakes_name_their_line_and_the_nearest_word(old, new, line, word, near):
    with pytest.raises(ValueError) as caught:
        parse_study(SMALL.replace(old, new, 1), "my.toml")
    message = str(caught.value)
    assert message.startswith(f"my.toml, line {line}: ")
    assert word in message
    assert near in message


def test_values_that_a_class_refuses_are_refused_before_anything_runs():
    with pytest.raises(ValueError, match="change_points"):
        parse_study(SMALL.replace("SCBWeightUCB", "DGLUCB"), "x")
    with pytest.raises(ValueError, match="scale"):
        parse_study(SMALL.replace("scale = 0.2", "scale = -1"), "x")
    with pytest.raises(ValueError, match=r"^x: .*line 1"):
        parse_study("name = = 3", "x")


def test_tuning_uses_other_seeds_and_keeps_one_variant(tmp_path):
    text = SMALL.replace("seeds = 5", "seeds = 3\nfirst_seed = 50\ntune_on = 4").replace(
        "scale = 0.2", "scale = [0.0, 0.2, 20.0]", 1
    )
    study = parse_study(text, "x")
    execute(study, text, Store(tmp_path), Engine(workers=1))
    final = load_results(tmp_path)
    assert final["seed"].unique().sort().to_list() == [50, 51, 52]
    assert load_results(tmp_path / "tuning")["seed"].unique().sort().to_list() == [0, 1, 2, 3]
    assert final.select(KEYS).is_duplicated().sum() == 0  # one variant per policy and environment
    clash = parse_study(text.replace("first_seed = 50", "first_seed = 2"), "x")
    with pytest.raises(ValueError, match="first_seed"):
        execute(clash, text, Store(tmp_path))


TUNED = """
name = "tuned"
horizon = 60
seeds = 4
first_seed = 7
points = 5
[[environments]]
type = "Jumps"
jumps = [0, 3]
label = "{jumps} jumps"
[[policies]]
type = "DOMD"
tuning = "practical"
tune_on = 3
discount = [0.5, 0.99]
bonus = [0.0, 5.0]
label = "best fixed"
[[policies]]
type = "GLMUCB"
seeds = 2
"""


def test_one_policy_is_tuned_on_other_seeds_and_a_slow_one_has_fewer(tmp_path):
    study = parse_study(TUNED, "x")
    execute(study, TUNED, Store(tmp_path), Engine(workers=1))
    final = load_results(tmp_path).filter(pl.col("round") == 60)
    fixed, slow = (final.filter(pl.col("policy") == p) for p in ("best fixed", "GLM-UCB"))
    assert slow["seed"].unique().sort().to_list() == [7, 8]
    assert fixed["seed"].unique().sort().to_list() == [7, 8, 9, 10]
    for label, world, _ in study.worlds():  # it is the best of all four on seeds 0, 1, 2
        variants = [
            DOMD(problem=world.problem, discount=g, bonus=b)
            for g in (0.5, 0.99)
            for b in (0.0, 5.0)
        ]
        best = min(variants, key=lambda policy: simulate(policy, world, range(3)).total.mean())
        found = fixed.filter(pl.col("environment") == label)["regret"].mean()
        assert found == pytest.approx(simulate(best, world, range(7, 11)).total.mean())
    assert execute(study, TUNED, Store(tmp_path), Engine(workers=1)).ran == 0


def test_slopes_are_fitted_next_to_the_theorems(tmp_path):
    text = (
        SMALL.replace("horizon = 60", "horizon = [50, 100, 200]")
        .replace("[1.0, 3.0]", "1.0")
        .replace('label = "S = {radius:g}"', 'label = "T = {horizon}"')
    )
    execute(parse_study(text, "x"), text, Store(tmp_path), Engine(workers=1))
    orders = {order.policy: order for order in fit_orders(Store(tmp_path))}
    assert orders["DOMD-GLB"].theorem == 0.75
    assert orders["Uniform"].slope == pytest.approx(1.0, abs=0.1)
    assert orders["Uniform"].values == (50.0, 100.0, 200.0)


def test_keys_depend_on_everything_that_is_stored():
    base = {cell.key for cell in cells_of(STUDY, 5)}
    for change in ("horizon = 61", "first_seed = 9", "points = 21"):
        old = change.split(" = ")[0]
        lines = [line for line in SMALL.splitlines() if not line.startswith(f"{old} =")]
        text = "\n".join([change, *lines])
        assert base.isdisjoint({cell.key for cell in cells_of(parse_study(text, "x"), 5)})
    renamed = parse_study(SMALL.replace("S = {radius:g}", "radius {radius:g}"), "x")
    assert base.isdisjoint({cell.key for cell in cells_of(renamed, 5)})
    assert base == {cell.key for cell in cells_of(parse_study(SMALL + "\n# remark", "y"), 5)}


def test_a_cell_gives_the_same_frame_twice():
    cell = cells_of(STUDY, 5)[0]
    assert run_cell(cell).drop(TIMES).equals(run_cell(cell).drop(TIMES))
