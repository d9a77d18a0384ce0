"""Studies: validated, run anywhere, resumed, and the same to the last bit."""

import dataclasses
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import duckdb
import polars as pl
import pytest

from driftbandit import DOMD, simulate
from driftbandit.lab import (
    Engine,
    RunStore,
    changed,
    execute,
    fit_orders,
    load_results,
    parse_study,
    read_study,
    shipped,
    write_report,
)
from driftbandit.lab.run.cells import cells_of, run_cell

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
FILES = Path(__file__).parents[1] / "fixtures" / "v0_2"
KEYS = ["environment", "policy", "seed", "round"]
TIMES = ["choose_us", "update_us"]


def settled(folder):
    """What must not depend on how it was run."""
    return load_results(folder).drop(TIMES).sort(KEYS)


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study with spaces")
    assert execute(STUDY, SMALL, RunStore(folder), Engine(workers=2, block=2)) == (18, 0)
    return folder


def test_results_show_as_a_table_in_notebooks(stored, tmp_path):
    store = RunStore(stored)
    text = store._repr_html_()
    cells = store.current()
    assert text.count("<tr>") == 1 + len(cells)
    for cell in cells:
        mean = store.final_regrets([cell])[0] / len(cell.seeds)
        row = f"<td>{cell.policy_label}</td><td>{len(cell.seeds)}</td><td>{mean:.4g}</td>"
        assert row in text
    assert "no results" in RunStore(tmp_path)._repr_html_()


def test_results_are_tidy_and_complete(stored):
    frame = load_results(stored)
    assert frame.shape == (2 * 3 * 5 * 20, 12)
    assert set(frame["environment.radius"]) == {1.0, 3.0}
    last = frame.filter(pl.col("round") == 60)
    assert last.select(KEYS[:3]).is_duplicated().sum() == 0
    assert (last.filter(pl.col("policy") == "Uniform")["error"].is_nan()).all()


def test_a_store_says_what_it_holds(stored, tmp_path):
    assert repr(RunStore(tmp_path)) == f"<RunStore {str(tmp_path)!r}: no results>"
    assert "2 environments, 3 policies" in repr(RunStore(stored))


def test_duckdb_reads_the_folder_as_it_is(stored):
    query = f"select count(*) from '{stored}/cells/*.parquet' where policy = 'DOMD-GLB'"
    assert duckdb.sql(query).fetchall() == [(200,)]


def test_a_second_run_has_nothing_to_do(stored):
    before = settled(stored)
    assert execute(STUDY, SMALL, RunStore(stored), Engine(block=2)) == (0, 18)
    assert settled(stored).equals(before)


@pytest.mark.slow
def test_engine_workers_and_blocks_change_no_bit(stored, tmp_path):
    by_hand(RunStore(tmp_path / "one"), SMALL)
    execute(
        STUDY, SMALL, RunStore(tmp_path / "dask"), Engine(workers=2, block=3, scheduler="local")
    )
    assert settled(tmp_path / "one").equals(settled(stored))
    assert settled(tmp_path / "dask").equals(settled(stored))


def test_lost_and_damaged_cells_are_run_again_and_half_files_do_not_count(tmp_path):
    folder = tmp_path / "copy"
    by_hand(RunStore(folder), SMALL)
    whole = settled(folder)
    victim = sorted((folder / "cells").glob("*.parquet"))[0]
    (folder / "cells" / f".{victim.stem}.x.part").write_bytes(victim.read_bytes()[:100])
    victim.unlink()
    hurt = sorted((folder / "cells").glob("*.parquet"))[0]
    hurt.write_bytes(hurt.read_bytes()[:-1])
    with pytest.warns(UserWarning, match=f"{hurt.name} is damaged"):
        assert execute(STUDY, SMALL, RunStore(folder), Engine(workers=1)) == (2, 4)
    assert settled(folder).equals(whole)


def by_hand(store, text, block=5):
    """What `execute` does, in this process."""
    cells = cells_of(parse_study(text, "x"), block)
    store.keep(text, cells)
    for cell in store.missing(cells):
        store.add(cell, run_cell(cell))
    return cells


QUICK = """
name = "quick"
horizon = 20
seeds = 5
points = 5
[[environments]]
type = "Circle"
[[policies]]
type = "Uniform"
[[policies]]
type = "Oracle"
"""


def test_the_current_study_is_what_is_loaded(tmp_path):
    store = RunStore(tmp_path)
    for text in (
        QUICK.replace("= 20", "= 30"),
        QUICK.replace("seeds = 5", "seeds = 7"),
        QUICK.replace("points = 5", "points = 4"),
        QUICK.replace('"Uniform"', '"Uniform"\nlabel = "chance"'),
        QUICK,
    ):
        by_hand(store, text)
        frame = load_results(tmp_path)
        study = parse_study(text, "x")
        assert frame.height == 2 * study.seeds * study.points
        assert frame.select(KEYS).is_duplicated().sum() == 0
        assert frame["round"].max() == study.horizon
        assert frame["seed"].max() == study.seeds - 1
    assert frame["policy"].unique().sort().to_list() == ["Oracle", "Uniform"]
    assert [cell.policy_label for cell in store.current()] == ["Uniform", "Oracle"]
    everything = load_results(tmp_path, everything=True)
    assert everything.height == 2 * (5 * 5 + 7 * 5 + 5 * 4)  # seeds 0 to 4 are shared
    told_apart = [*KEYS, "cell"]
    assert everything.select(told_apart).is_duplicated().sum() == 0
    assert everything.filter("current").height == frame.height
    assert set(everything["horizon"]) == {20, 30}


def test_results_of_other_code_stay_but_are_not_shown(tmp_path):
    store = RunStore(tmp_path)
    cells = by_hand(store, QUICK)
    old = [dataclasses.replace(cell, code="of last week") for cell in cells]
    for cell in old:
        store.add(cell, run_cell(cell).with_columns(pl.col("regret") * 7))
    assert load_results(tmp_path).height == 50
    assert load_results(tmp_path, everything=True)["code"].n_unique() == 2
    store.keep(QUICK, old)
    with pytest.warns(UserWarning, match="the code of Oracle, Uniform has changed"):
        assert load_results(tmp_path).height == 50


@pytest.mark.parametrize("damage", ["cut", "bit", "json", "gone", "other"])
def test_damaged_files_are_named_and_made_anew(damage, tmp_path):
    store = RunStore(tmp_path)
    by_hand(store, QUICK)
    whole = settled(tmp_path)
    data, facts = (
        sorted((tmp_path / "cells").glob(f"*.{kind}"))[0] for kind in ("parquet", "json")
    )
    if damage == "cut":
        data.write_bytes(data.read_bytes()[:-20])
    elif damage == "bit":
        bits = bytearray(data.read_bytes())
        bits[len(bits) // 3] ^= 1
        data.write_bytes(bits)
    elif damage == "json":
        facts.write_text(facts.read_text()[:50])
    elif damage == "gone":
        facts.unlink()
    else:
        facts.write_text(facts.read_text().replace('"points": 5', '"points": 6'))
    named = data.name if damage in ("cut", "bit") else facts.name
    with pytest.warns(UserWarning, match=f"{named} is damaged"):
        assert len(load_results(tmp_path)) == 25
    with pytest.warns(UserWarning, match=f"{named} is damaged"):
        by_hand(RunStore(tmp_path), QUICK)
    assert settled(tmp_path).equals(whole)


def test_damaged_lists_are_named(tmp_path):
    store = RunStore(tmp_path)
    by_hand(store, QUICK)
    store.start({})
    with (tmp_path / "runs.jsonl").open("a") as file:
        file.write('{"time": "20')
    with pytest.warns(UserWarning, match=r"runs.jsonl has a damaged line"):
        assert len(store.runs()) == 1
    (tmp_path / "current.json").write_text("{")
    with (
        pytest.warns(UserWarning, match=r"current.json is damaged"),
        pytest.raises(ValueError, match="holds no results"),
    ):
        load_results(tmp_path)


def test_provenance_is_kept(stored):
    last = RunStore(stored).runs()[-1]
    assert {"time", "python", "numba", "machine", "engine", "workers"} <= last.keys()
    assert {"commit", "dirty"} <= last.keys()
    assert (stored / "study.toml").read_text() == SMALL


@pytest.mark.slow
def test_a_dask_worker_killed_in_the_middle_loses_nothing(tmp_path):
    from dask.distributed import Client, LocalCluster

    text = SMALL.replace("horizon = 60", "horizon = 700").replace("seeds = 5", "seeds = 4")
    study = parse_study(text, "x")
    killed = []

    def kill_one(done, total):
        if done >= 1 and not killed:
            killed.append(True)
            pid = next(iter(client.run(os.getpid).values()))
            os.kill(pid, signal.SIGKILL)

    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        Client(cluster) as client,
    ):
        engine = Engine(workers=2, block=1, scheduler=cluster.scheduler_address)
        execute(study, text, RunStore(tmp_path / "hurt"), engine, kill_one)
    assert killed
    by_hand(RunStore(tmp_path / "calm"), text)
    assert settled(tmp_path / "hurt").equals(settled(tmp_path / "calm"))


@pytest.mark.slow
def test_a_local_worker_killed_in_the_middle_loses_nothing(tmp_path, stored):
    script = f"""
import os, signal, multiprocessing
from driftbandit.lab import *
text = open({str(stored / "study.toml")!r}).read().replace("horizon = 60", "horizon = 700")
killed = []
def kill_one(done, total):
    if done >= 1 and not killed:
        killed.append(True)
        os.kill(multiprocessing.active_children()[0].pid, signal.SIGKILL)
if __name__ == "__main__":
    execute(parse_study(text, "x"), text, RunStore("hurt"), Engine(workers=2, block=1), kill_one)
    execute(parse_study(text, "x"), text, RunStore("calm"), Engine(workers=1, block=5))
    times = ["choose_us", "update_us"]
    keys = ["environment", "policy", "seed", "round"]
    hurt, calm = (load_results(f).drop(times).sort(keys) for f in ("hurt", "calm"))
    assert killed and hurt.equals(calm)
"""
    (tmp_path / "kill.py").write_text(script)
    subprocess.run([sys.executable, "kill.py"], cwd=tmp_path, check=True, timeout=300)


# With `nohup make test &` this process ignores Ctrl-C, and children would inherit that.
HEEDING = (
    "import os, signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "os.execv(sys.argv[1], sys.argv[1:])"
)


@contextmanager
def started(command, folder):
    """A command that heeds Ctrl-C, in a session of its own, which ends with this block."""
    process = subprocess.Popen(
        [sys.executable, "-c", HEEDING, *command],
        cwd=folder,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def wait_for(condition, seconds=120):
    deadline = time.time() + seconds
    while not condition():
        assert time.time() < deadline
        time.sleep(0.02)


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL], ids=["Ctrl-C", "kill -9"])
def test_an_interrupted_run_goes_on(tmp_path, how):
    command = [sys.executable, "-m", "driftbandit", "run", "s.toml", "--out", "r"]
    text = SMALL.replace("horizon = 60", "horizon = 1200").replace("seeds = 5", "seeds = 12")
    (tmp_path / "s.toml").write_text(text)
    cells = tmp_path / "r" / "cells"
    with started(command, tmp_path) as process:
        wait_for(lambda: len(list(cells.glob("*.parquet"))) >= 2)
        os.kill(process.pid, how)
        _, errors = process.communicate(timeout=60)
    done = len(list(cells.glob("*.parquet")))
    assert done >= 2
    if how == signal.SIGINT:
        assert process.returncode == 130
        assert errors == "driftbandit: interrupted; what was finished is stored\n"
    study = parse_study(text, "s.toml")
    cells, store = cells_of(study, 10), RunStore(tmp_path / "r")
    missing = store.missing(cells)
    assert len(missing) == len(cells) - done > 0
    store.add(missing[0], run_cell(missing[0]))
    assert len(RunStore(tmp_path / "r").missing(cells)) == len(missing) - 1


@pytest.mark.slow
def test_ctrl_c_on_a_local_cluster_waits_for_no_cell(tmp_path):
    """The second policy's cells take minutes; a terminal sends the signal to workers, too."""
    text = QUICK.replace("horizon = 20", "horizon = 50000").replace("Oracle", "SCBWeightUCB")
    (tmp_path / "s.toml").write_text(text)
    command = [sys.executable, "-m", "driftbandit", "run", "s.toml", "--scheduler", "local"]
    with started([*command, "--out", "r"], tmp_path) as process:
        wait_for(lambda: any(tmp_path.glob("r/cells/*.parquet")))
        begin = time.time()
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    # On a busy machine a worker of Dask may log that its scheduler has gone.
    assert errors.endswith("driftbandit: interrupted; what was finished is stored\n")
    assert time.time() - begin < 10
    assert len(list(tmp_path.glob("r/cells/*.parquet"))) == 1


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


LABEL = 'label = "S = {radius:g}"'


@pytest.mark.parametrize(
    ("label", "match"),
    [
        ("{radis}", "did you mean 'radius'"),
        (r"\\gamma_{t}", "write {{ and }}"),
        ("{}", "name of an option"),
        ("{0}", "name of an option"),
        ("{radius.real}", "name of an option"),
        ("{radius!r}", "name of an option"),
        ("{radius:999999999}", "at most a format"),
        ("{radius:d}", "cannot show 1.0 as 'd'"),
        ("a } b", "write {{ and }}"),
        ("{radius:.0e}", "two environments that differ are called '.e.00'"),
    ],
)
def test_bad_labels_name_their_line(label, match):
    text = SMALL.replace(LABEL, f'label = "{label}"').replace("[1.0, 3.0]", "[1.0, 1.1]")
    with pytest.raises(ValueError, match=match) as caught:
        parse_study(text, "my.toml")
    assert str(caught.value).startswith("my.toml, line 10: ")


@pytest.mark.parametrize(
    ("label", "first"),
    [
        (None, "Circle, radius = 1"),
        ("drift", "drift, radius = 1"),
        ("{radius:g} {{t}}", "1 {t}"),
        ("[/red] {horizon}", "[/red] 60, radius = 1"),
    ],
)
def test_labels_tell_the_variants_of_a_sweep_apart(label, first):
    text = SMALL.replace(LABEL, f'label = "{label}"' if label else "")
    labels = [label for label, _, _ in parse_study(text, "x").worlds()]
    assert labels == [first, first.replace("1", "3") if "1" in first else first]


def test_variants_are_merged_only_where_the_best_is_kept():
    swept = SMALL.replace("scale = 0.2", "scale = [0.1, 0.2]", 1)
    world = STUDY.worlds()[0][1]

    def labels(text):
        return [label for label, _, _ in parse_study(text, "x").contenders(world)]

    rest = ["SCB-WeightUCB", "Uniform"]
    assert labels(swept) == ["DOMD-GLB, scale = 0.1", "DOMD-GLB, scale = 0.2", *rest]
    kept = swept.replace("scale = [", "tune_on = 3\nscale = [")
    assert labels(kept) == ["DOMD-GLB", "DOMD-GLB", *rest]
    twice = SMALL + '\n[[policies]]\ntype = "DOMD"\nscale = 0.3\n'
    with pytest.raises(ValueError, match="line 24: two policies that differ are called 'DOMD-GLB'"):
        parse_study(twice, "x")
    with pytest.raises(ValueError, match=r"scale = \[\] is a sweep over nothing"):
        parse_study(SMALL.replace("scale = 0.2", "scale = []", 1), "x")


def test_only_names_environments_of_the_study():
    def only(*names):
        parse_study(f"{SMALL}only = {list(names)}\n", "my.toml")

    only("Circle", "Jumps")
    with pytest.raises(
        ValueError, match="line 22: only = 'Cirlce' is no environment: did you mean"
    ):
        only("Cirlce", "Circle")
    with pytest.raises(ValueError, match="Uniform is never played: only names Jumps"):
        only("Jumps")


def test_changes_are_made_at_the_top_of_a_study():
    text = """name = "x"  # a remark
first_seed = 3
[[environments]]
type = "Circle"
horizon = 70
[[policies]]
type = "Uniform"
seeds = 2
"""
    new = changed(text, seeds=9, horizon=50, plugins=["json"])
    study = parse_study(new, "x")
    assert (study.seeds, study.horizon, study.first_seed) == (9, 50, 3)
    assert study.plugins == ("json",)
    assert study.policies[0].seeds == 2
    assert [world.horizon for _, world, _ in study.worlds()] == [50]
    assert "# a remark" in new
    assert changed(text) == text


def test_a_part_of_a_study_is_a_study():
    study, text = read_study(
        "paper-figure", environments="drifting, S = 3,SignFlip", policies="AutoDOMD,DOMD-GLB, sharp"
    )
    worlds = ["drifting, S = 3", "piecewise-stationary, S = 1", "piecewise-stationary, S = 3"]
    assert [label for label, _, _ in study.worlds()] == worlds
    whole = {cell.key for cell in cells_of(read_study("paper-figure")[0], 20)}
    cells = cells_of(study, 20)
    assert {cell.policy_label for cell in cells} == {"AutoDOMD", "DOMD-GLB, sharp"}
    assert len(cells) == 6
    assert {cell.key for cell in cells} <= whole
    assert cells_of(parse_study(text, "again"), 20) == cells


def test_parts_of_sweeps_and_horizons_keep_their_options():
    def labels(name, **part):
        study = read_study(name, **part)[0]
        return [(cell.environment_label, cell.policy_label) for cell in cells_of(study, 100)]

    assert labels(
        "sensitivity", environments="drifting, S = 1", policies="gamma = 0.98,eta = 4"
    ) == [
        ("drifting, S = 1", "gamma = 0.98"),
        ("drifting, S = 1", "eta = 4"),
    ]
    world = "one flip, S = 1, T = 100000"
    assert labels("unknown-drift", environments=world, policies="AutoDOMD") == [(world, "AutoDOMD")]
    only = read_study("quick", environments="Circle")[0]  # rivals of flips have no place here
    assert "DGLUCB" not in {entry.type for entry in only.policies}


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ({"policies": "AutoDOM"}, "no policy 'AutoDOM': did you mean 'AutoDOMD'"),
        ({"environments": "drifting, S = 2"}, "no environment 'drifting'"),
    ],
)
def test_names_that_a_study_does_not_have_are_refused(part, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        read_study("paper-figure", **part)


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
    execute(study, text, RunStore(tmp_path), Engine(workers=1))
    final = load_results(tmp_path)
    assert final["seed"].unique().sort().to_list() == [50, 51, 52]
    assert load_results(tmp_path / "tuning")["seed"].unique().sort().to_list() == [0, 1, 2, 3]
    assert final.select(KEYS).is_duplicated().sum() == 0  # one variant per policy and environment
    clash = parse_study(text.replace("first_seed = 50", "first_seed = 2"), "x")
    with pytest.raises(ValueError, match="first_seed"):
        execute(clash, text, RunStore(tmp_path))


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
    execute(study, TUNED, RunStore(tmp_path), Engine(workers=1))
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
    assert execute(study, TUNED, RunStore(tmp_path), Engine(workers=1)).ran == 0


def test_slopes_are_fitted_next_to_the_theorems(tmp_path):
    text = (
        SMALL.replace("horizon = 60", "horizon = [50, 100, 200]")
        .replace("[1.0, 3.0]", "1.0")
        .replace('label = "S = {radius:g}"', 'label = "T = {horizon}"')
    )
    by_hand(RunStore(tmp_path), text)
    orders = {order.policy: order for order in fit_orders(RunStore(tmp_path))}
    assert orders["DOMD-GLB"].theorem == 0.75
    assert orders["Uniform"].slope == pytest.approx(1.0, abs=0.1)
    assert orders["Uniform"].values == (50.0, 100.0, 200.0)


def keys(text, block=5):
    return {cell.key for cell in cells_of(parse_study(text, "x"), block)}


def test_keys_depend_on_what_determines_a_result_and_on_nothing_else():
    for old, new in (
        ("= 60", "= 61"),
        ("points = 20", "points = 21"),
        ("scale = 0.2", "scale = 1"),
    ):
        assert len(keys(SMALL) & keys(SMALL.replace(old, new))) == (2 if "scale" in old else 0)
    for old, new in (
        ("S = {radius:g}", "radius {radius:g}"),
        ("seeds = 5", "seeds = 9"),
        ("seeds = 5", "seeds = 5\nfirst_seed = 9"),
        ("seeds = 5", "seeds = 5  # a remark"),
    ):
        assert keys(SMALL) == keys(SMALL.replace(old, new))
    assert keys(SMALL) == keys(SMALL, block=2)


def test_a_new_label_reruns_nothing_and_is_what_is_shown(tmp_path):
    text = SMALL.replace("[1.0, 3.0]", "[1.0, 2.0, 3.0, 4.0, 5.0]").replace("= 60", "= 20")
    engine = Engine(workers=1, block=5)
    assert len(by_hand(RunStore(tmp_path), text)) == 15
    before = settled(tmp_path)
    named = text.replace("S = {radius:g}", "a ball of {radius:g}").replace(
        '"Uniform"', '"Uniform"\nlabel = "chance"'
    )
    assert execute(parse_study(named, "x"), named, RunStore(tmp_path), engine) == (0, 15)
    after = settled(tmp_path)
    assert set(after["policy"]) == {"DOMD-GLB", "SCB-WeightUCB", "chance"}
    assert after["environment"].unique().sort()[0] == "a ball of 1"
    told = after.with_columns(
        pl.col("environment").str.replace("a ball of", "S ="),
        pl.col("policy").str.replace("chance", "Uniform"),
    )
    assert told.sort(KEYS).equals(before)


def test_the_same_policy_under_two_labels_is_played_once(tmp_path):
    text = QUICK + '[[policies]]\ntype = "Uniform"\nlabel = "chance"\n'
    store = RunStore(tmp_path)
    assert len(by_hand(store, text)) == 3
    assert len(list(store.cells.glob("*.parquet"))) == 2
    found = settled(tmp_path)
    first, second = (found.filter(policy=name).drop("policy") for name in ("Uniform", "chance"))
    assert first.height == 25
    assert first.equals(second)


@pytest.mark.parametrize(("seeds", "more"), [(5, 6), (6, 7), (6, 20)])
def test_seeds_extend_one_by_one(seeds, more, tmp_path):
    store = RunStore(tmp_path)
    by_hand(store, QUICK.replace("seeds = 5", f"seeds = {seeds}"))
    text = QUICK.replace("seeds = 5", f"seeds = {more}")
    missing = store.missing(cells_of(parse_study(text, "x"), 5))
    assert sorted(seed for cell in missing for seed in cell.seeds) == sorted(
        [*range(seeds, more)] * 2
    )
    by_hand(store, text)
    by_hand(RunStore(tmp_path / "at once"), text)
    assert settled(tmp_path).equals(settled(tmp_path / "at once"))
    by_hand(store, QUICK.replace("seeds = 5", "seeds = 2"))  # part of a file is enough
    assert set(load_results(tmp_path)["seed"]) == {0, 1}


def test_a_folder_of_version_0_2_asks_for_another_run(tmp_path):
    shutil.copytree(FILES / "study", tmp_path / "old")
    for read in (load_results, write_report):
        with pytest.raises(ValueError, match=r"again, because its files are of version 0\.2"):
            read(tmp_path / "old")
    text = (tmp_path / "old" / "study.toml").read_text()
    by_hand(RunStore(tmp_path / "old"), text)
    assert load_results(tmp_path / "old").height > 0
    with pytest.warns(UserWarning, match=r"2 files of version 0\.2 are left out"):
        load_results(tmp_path / "old", everything=True)


def test_a_cell_gives_the_same_frame_twice():
    cell = cells_of(STUDY, 5)[0]
    assert run_cell(cell).drop(TIMES).equals(run_cell(cell).drop(TIMES))
