"""The command line as a stranger runs it."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from driftbandit import cli
from driftbandit.lab import load_results
from driftbandit.terminal import show_regrets, show_table


def in_a_process(*args, cwd):
    command = [sys.executable, "-m", "driftbandit", *args]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=300)


def test_the_quick_comparison_makes_a_report_in_a_path_with_spaces_and_goes_on(tmp_path):
    folder = tmp_path / "my results"
    small = ("--horizon", "60", "--seeds", "2", "--out", str(folder))
    done = in_a_process("reproduce", "--quick", *small, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "DOMD-GLB" in done.stdout
    assert re.search(r"quick: \d+ cells run\n", done.stdout)
    assert done.stderr == ""  # no bars where nobody watches
    assert (folder / "report" / "report.html").stat().st_size > 100_000
    assert len(load_results(folder)["seed"].unique()) == 2
    again = in_a_process("reproduce", "--quick", *small, cwd=tmp_path)
    assert re.search(r"quick: all \d+ cells stored already\n", again.stdout)


def test_studies_and_policies_are_listed(driftbandit):
    assert "paper-figure" in driftbandit("studies")[1]
    assert "SCBPWWeightUCB" in driftbandit("policies")[1]


def test_an_unknown_study_or_an_empty_folder_is_one_line(driftbandit):
    code, _, said = driftbandit("run", "papr-figure")
    assert (code, "did you mean 'paper-figure'" in said) == (2, True)
    code, _, said = driftbandit("report", "nowhere")
    assert (code, said.startswith("driftbandit: nowhere holds no results")) == (2, True)


@pytest.mark.parametrize("args", [["--horizon", "0"], ["--seeds", "x"], ["--colour", "red"]])
def test_wrong_options_are_named(driftbandit, args):
    code, _, said = driftbandit("reproduce", "--quick", *args)
    assert code == 2
    assert args[0] in said
    assert "Traceback" not in said


def test_a_file_in_the_way_is_one_line(driftbandit, tmp_path):
    (tmp_path / "taken").write_text("")
    code, _, said = driftbandit("reproduce", "--quick", "--horizon", "60", "--out", "taken")
    assert code == 2
    assert said.startswith("driftbandit: ")
    assert "Traceback" not in said


def test_no_arguments_shows_help(tmp_path):
    assert "reproduce" in in_a_process(cwd=tmp_path).stdout


def commands(path, command):
    yield path, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands([*path, name], inner)


def test_help_is_for_users():
    """No types of Python, no paths of the repository, and commands by what they are for."""
    runner = CliRunner()
    for path, _ in commands([], get_command(cli.app)):
        shown = runner.invoke(cli.app, [*path, "--help"], env={"COLUMNS": "200"}).stdout
        assert re.findall(r"<[a-z\[]|[{}]|\b(?:TEXT|INTEGER|FLOAT|PATH|BOOLEAN)\b", shown) == [], (
            path
        )
        assert "docs/" not in shown, path
    top = runner.invoke(cli.app, ["--help"]).stdout
    places = [top.index(f"─ {group} ─") for group in cli.GROUPS]
    assert places == sorted(places)
    assert list(cli.GROUPS) == ["Serve", "Decide and evaluate", "Research"]


def test_the_commands_of_the_evidence_page_run_on_its_log(tmp_path, driftbandit):
    page = (Path(__file__).parents[2] / "docs" / "evidence.md").read_text()
    program = re.search(r"```python\n(.*?)^columns = ", page, flags=re.M | re.S)[1]
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True)
    script = re.search(r"```sh\n(driftbandit .*?)```", page, flags=re.S)[1].replace("\\\n", " ")
    for line in script.splitlines():
        code, _, said = driftbandit(*shlex.split(line)[1:])
        assert code == 0, said
    assert (tmp_path / "evaluation" / "evaluation.html").exists()
    assert (tmp_path / "learner.npz").exists()
    said = driftbandit("evaluate", "log.parquet")[2]
    assert "--column action=" in said
    assert "columns=" not in said


def test_regrets_are_sorted_and_say_which_is_least(capsys):
    means = {"LinUCB": 90.0, "AutoDOMD": 10.0, "Oracle": 0.0}
    show_regrets(
        [
            {"environment": "drift", "policy": name, "mean": mean, "deviation": 1.0, "seeds": 3}
            | {"late_us": 12.34}
            for name, mean in means.items()
        ]
    )
    shown = capsys.readouterr().out
    assert shown.index("Oracle") < shown.index("AutoDOMD") < shown.index("LinUCB")
    assert "lower is better" in " ".join(shown.split())
    assert "12.3" in shown
    assert "Least regret, of 1 environment: AutoDOMD in 1." in shown


def test_markup_in_labels_is_text(capsys):
    show_table("title", ("policy", "[bold]world"), [("chance [/red]", "1 ± 2")])
    shown = capsys.readouterr().out
    assert "chance [/red]" in shown
    assert "[bold]world" in shown


def regrets(worlds, policies):
    """Made-up results; the first world was not played by the last policy."""
    names = [f"piecewise-stationary, {k} fixed arms, S = 3" for k in range(worlds)]
    learners = [f"[/red] DOMD-GLB (practical {k})" for k in range(policies)]
    cells = [(name, learner) for name in names for learner in learners]
    cells.remove((names[0], learners[-1]))
    return [
        {"environment": w, "policy": p, "mean": 1000.0 + k, "deviation": 20.0, "seeds": 3}
        for k, (w, p) in enumerate(cells)
    ]


def read_back(shown):
    """The form, and the text of each cell by environment and policy."""
    found, title, heads = {}, "", []
    for line in shown.splitlines():
        cells = [cell.strip() for cell in re.split("[│┃]", line)[1:-1]]
        if line.startswith("┏"):
            heads = [""] * (line.count("┳") + 1)
        elif line.startswith("┃"):
            heads = [f"{a} {b}".strip().replace("- ", "-") for a, b in zip(heads, cells)]
        elif line.startswith("│"):
            form = {"environment": "turned"}.get(heads[0], "across")
            form = "blocks" if heads[1:] == ["regret"] else form
            for head, text in zip(heads[1:], cells[1:]):
                places = {"across": (head, cells[0]), "turned": (cells[0], head)}
                found[places.get(form, (title, cells[0]))] = text
        elif line.strip() and line[0] not in "┡└":
            title = line.strip()
    return form, found


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize(
    ("worlds", "policies", "form"),
    [(2, 2, "across"), (2, 34, "across"), (34, 2, "turned"), (34, 22, "blocks")],
)
def test_every_regret_can_be_read_whatever_the_width(
    monkeypatch, capsys, worlds, policies, form, width
):
    monkeypatch.setenv("FORCE_COLOR", "1")  # as in a terminal
    monkeypatch.setenv("COLUMNS", str(width))
    lines = regrets(worlds, policies)
    show_regrets(lines)
    shown = re.sub("\x1b\\[[0-9;]*m", "", capsys.readouterr().out)
    assert max(map(len, shown.splitlines())) <= width
    wanted = {(x["environment"], x["policy"]): f"{x['mean']:.0f} ± 20" for x in lines}
    absent = (lines[0]["environment"], lines[-1]["policy"])
    assert read_back(shown) == (form, wanted | ({} if form == "blocks" else {absent: ""}))


@pytest.mark.parametrize(
    ("done", "said"),
    [
        ((29, 0), "29 cells run"),
        ((1, 0), "1 cell run"),
        ((29, 12), "29 cells run, 12 stored already"),
        ((0, 41), "all 41 cells stored already"),
    ],
)
def test_cells_are_counted_plainly(done, said):
    assert cli.counted(*done) == said


def test_a_warning_is_one_line(tmp_path):
    code = "import warnings; from driftbandit import cli; warnings.showwarning = cli.show_warning"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}; warnings.warn('so it is')"], capture_output=True, text=True
    )
    assert done.stderr == "driftbandit: so it is\n"
