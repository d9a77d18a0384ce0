"""The command line as a stranger runs it."""

import os
import signal
import subprocess
import sys
import time

import pytest

from driftbandit import Run


def driftbandit(*args, cwd):
    command = [sys.executable, "-m", "driftbandit", *args]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=300)


def test_demo_makes_a_table_a_figure_and_runs_in_a_path_with_spaces(tmp_path):
    folder = tmp_path / "my results"
    done = driftbandit(
        "demo", "--horizon", "60", "--seeds", "2", "--out", str(folder), cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert "DOMD-GLB" in done.stdout
    assert done.stderr == ""  # no bars where nobody watches
    assert (folder / "demo.png").stat().st_size > 10_000
    assert len(Run.load(folder / "panel1-DOMD-GLB.npz").seeds) == 2


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


def test_interrupt_is_quiet_and_leaves_no_half_file(tmp_path):
    command = [
        sys.executable,
        "-m",
        "driftbandit",
        "reproduce",
        "--out",
        "r",
        "--horizon",
        "2000000",
    ]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    time.sleep(6)
    os.kill(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors == "driftbandit: interrupted\n"
    assert list((tmp_path / "r").glob(".*")) == []


def test_no_arguments_shows_help(tmp_path):
    assert "reproduce" in driftbandit(cwd=tmp_path).stdout
