"""A researcher's five jobs, and a study on a cluster: the pages, played as they stand."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SAVED = re.compile(r"\s`([\w.]+)`[^`\n]*:\n\n```\w+\n(.*?)^```$", re.M | re.S)
COMMANDS = re.compile(r"^```sh\n(.*?)^```$", re.M | re.S)
FOLDERS = os.pathsep.join([str(ROOT / "src"), "."])


def run(words, folder):
    env = os.environ | {"PYTHONPATH": FOLDERS}
    done = subprocess.run(
        [sys.executable, *words], cwd=folder, env=env, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, f"{words}: {done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def jobs(tmp_path_factory):
    """What the commands of the page printed, and where."""
    text, folder = (ROOT / "docs/five-jobs.md").read_text(), tmp_path_factory.mktemp("five jobs")
    files = dict(SAVED.findall(text))
    for name, body in files.items():
        (folder / name).write_text(body)
    said = {}
    for line in "".join(COMMANDS.findall(text)).replace("\\\n ", "").splitlines():
        words = re.findall(r'"[^"]*"|\S+', line)
        said[line] = run(["-m", *(word.strip('"') for word in words)], folder)
    for name in files:
        if name.endswith(".py") and name != "my_methods.py":
            said[name] = run([name], folder)
    return folder, said


@pytest.mark.slow
def test_a_panel_is_played_and_a_table_has_the_columns_asked_for(jobs):
    folder, said = jobs
    assert 'name = "quick"' in said["driftbandit studies --show quick"]
    table = (folder / "results/quick/report/table.tex").read_text()
    assert r"\label{tab:drifting-s-1}" in table
    assert r"policy & regret & difference to DOMD-GLB" in table
    assert "memory" not in table
    (shown,) = (text for line, text in said.items() if " report " in line)
    assert "AutoDOMD" in shown
    assert "GLOC" not in shown


@pytest.mark.slow
def test_a_new_method_plays_in_a_new_environment(jobs):
    folder, said = jobs
    assert "both keep their promises" in said["check.py"]
    finals = (folder / "results/mine/report/finals.csv").read_text()
    assert "3 swings,FadingThompson" in finals
    mine, uniform = (float(line.split()[-1]) for line in said["own_loop.py"].splitlines())
    assert mine == pytest.approx(uniform, rel=0.2)  # both play at random


@pytest.mark.slow
def test_a_grid_has_lines_heat_map_and_columns(jobs):
    folder, said = jobs
    report = folder / "results/grid/report"
    assert (report / "heatmap.pdf").exists()
    assert "discount = 0.98" in (report / "sweep.svg").read_text()
    assert "<RunStore 'results/grid': 1 environments, 9 policies>" in said["read_results.py"]


def test_the_citation_is_of_this_version():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert f"version = {{{version}}}" in (ROOT / "docs/five-jobs.md").read_text()


@pytest.mark.slow
@pytest.mark.skipif(" " in sys.executable, reason="dask-jobqueue does not quote Python's path")
def test_a_study_runs_on_jobs_of_a_queue(tmp_path):
    """dask-jobqueue's own local queue: each worker is a script that a shell starts."""
    text = (ROOT / "docs/slurm.md").read_text()
    (program,) = re.findall(r"```py\n(.*?)```", text, flags=re.S)
    program = program.replace(
        "from dask_jobqueue import SLURMCluster",
        "from dask_jobqueue.local import LocalCluster as SLURMCluster",
    ).replace(', walltime="01:00:00"', "")
    (tmp_path / "queue.py").write_text(program)
    (tmp_path / "mine.toml").write_text(
        'name = "mine"\nhorizon = 50\nseeds = 12\n[[environments]]\ntype = "Circle"\n'
        '[[policies]]\ntype = "Uniform"\n[[policies]]\ntype = "LinUCB"\nscale = 0.2\n'
    )
    (tmp_path / "queue.py").rename(tmp_path / "on_the_queue.py")
    assert "Done(ran=4, stored=0)" in run(["on_the_queue.py"], tmp_path)
