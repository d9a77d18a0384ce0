"""The command line as a stranger runs it."""

import re
import subprocess
import sys

import pytest

from driftbandit import cli
from driftbandit.lab import load_results


def driftbandit(*args, cwd):
    command = [sys.executable, "-m", "driftbandit", *args]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=300)


def test_demo_makes_a_report_in_a_path_with_spaces_and_goes_on(tmp_path):
    folder = tmp_path / "my results"
    small = ("--horizon", "60", "--seeds", "2", "--out", str(folder))
    done = driftbandit("demo", *small, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "DOMD-GLB" in done.stdout
    assert re.search(r"quick: \d+ cells run\n", done.stdout)
    assert done.stderr == ""  # no bars where nobody watches
    assert (folder / "report" / "report.html").stat().st_size > 100_000
    assert len(load_results(folder)["seed"].unique()) == 2
    again = driftbandit("demo", *small, cwd=tmp_path)
    assert re.search(r"quick: all \d+ cells were stored already\n", again.stdout)


def test_studies_and_policies_are_listed(tmp_path):
    assert "paper-figure" in driftbandit("studies", cwd=tmp_path).stdout
    assert "SCBPWWeightUCB" in driftbandit("policies", cwd=tmp_path).stdout


def test_an_unknown_study_or_an_empty_folder_is_one_line(tmp_path):
    done = driftbandit("run", "papr-figure", cwd=tmp_path)
    assert done.returncode == 2
    assert "did you mean 'paper-figure'" in done.stderr
    done = driftbandit("report", "nowhere", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("driftbandit: nowhere holds no results")


@pytest.mark.parametrize("args", [["--horizon", "0"], ["--seeds", "x"], ["--colour", "red"]])
def test_wrong_options_are_named(tmp_path, args):
    done = driftbandit("demo", *args, cwd=tmp_path)
    assert done.returncode == 2
    assert args[0] in done.stderr
    assert "Traceback" not in done.stderr


def test_a_file_in_the_way_is_one_line(tmp_path):
    (tmp_path / "taken").write_text("")
    done = driftbandit("demo", "--horizon", "60", "--out", "taken", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("driftbandit: ")
    assert "Traceback" not in done.stderr


def test_no_arguments_shows_help(tmp_path):
    assert "reproduce" in driftbandit(cwd=tmp_path).stdout


def test_markup_in_labels_is_text(capsys):
    cli._table("title", ("policy", "[bold]world"), [("chance [/red]", "1 ± 2")])
    shown = capsys.readouterr().out
    assert "chance [/red]" in shown
    assert "[bold]world" in shown


@pytest.mark.parametrize(
    ("done", "said"),
    [
        ((29, 0), "29 cells run"),
        ((29, 12), "29 cells run, 12 were stored already"),
        ((0, 41), "all 41 cells were stored already"),
    ],
)
def test_cells_are_counted_plainly(done, said):
    assert cli._counted(*done) == said


def test_a_warning_is_one_line(tmp_path):
    code = "import warnings; from driftbandit import cli; warnings.showwarning = cli._warn"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}; warnings.warn('so it is')"], capture_output=True, text=True
    )
    assert done.stderr == "driftbandit: so it is\n"
