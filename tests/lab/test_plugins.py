"""Classes of one's own: names, modules, entry points, versions of their code, workers."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

import driftbandit
from driftbandit import Policy, Recipe, plugins
from driftbandit.lab import RunStore, load_results, parse_study
from driftbandit.lab.run import code_version
from driftbandit.lab.run.cells import cells_of
from driftbandit.lab.run.code_version import Versions, roots_of
from driftbandit.lab.run.execute import run_pinned
from driftbandit.lab.run.plugin_files import PluginFiles

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "lab.md").read_text()
MODULE, STUDY = (re.search(rf"```{kind}\n(.*?)```", PAGE, re.S)[1] for kind in ("python", "toml"))
SHIPPED = """
name = "shipped"
horizon = 20
seeds = 2
[[environments]]
type = "Circle"
[[policies]]
type = "Uniform"
"""
TIMES = ["choose_us", "update_us"]
KEYS = ["environment", "policy", "seed", "round"]


def python(code, folder, **env):
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        capture_output=True,
        text=True,
        env=os.environ | env,
        timeout=120,
    )


def run(folder, *options):
    command = [sys.executable, "-m", "driftbandit", "run", "my.toml", *options]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)


@pytest.fixture
def mine(tmp_path):
    (tmp_path / "my_module.py").write_text(MODULE)
    (tmp_path / "my.toml").write_text(STUDY)
    return tmp_path


# Names


@pytest.mark.parametrize("name", ["DOMD", "Circle", "Bernoulli"])
def test_a_shipped_name_is_refused(name):
    before = Recipe.kinds(name)[name]
    with pytest.raises(ValueError, match="comes with driftbandit"):
        type(name, (Policy,), {})
    assert Recipe.kinds(name)[name] is before


def test_a_shipped_name_is_refused_before_it_is_loaded(tmp_path):
    code = (
        "import sys; from driftbandit import Policy\n"
        "assert 'driftbandit.policies.gloc' not in sys.modules\n"
        "class GLOC(Policy): pass"
    )
    assert "comes with driftbandit" in python(code, tmp_path).stderr


def test_two_modules_cannot_share_a_name_but_a_notebook_may_define_again(tmp_path):
    for name in ("one", "two"):
        (tmp_path / f"{name}.py").write_text(
            "from driftbandit import Policy\nclass Mine(Policy): pass"
        )
    assert "call one of them something else" in python("import one, two", tmp_path).stderr
    code = (
        "from driftbandit import Policy, Recipe\nimport one, importlib; importlib.reload(one)\n"
        "class Mine(Policy): a = 1\nclass Mine(Policy): a = 2\n"
        "print(Recipe.kinds('Mine')['Mine'].a)"
    )
    done = python(code, tmp_path)
    assert done.stdout == "2\n", done.stderr


def test_entry_points_are_found_by_name_and_listed(tmp_path):
    meta = tmp_path / "theirs-1.0.dist-info"
    meta.mkdir()
    (meta / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (meta / "entry_points.txt").write_text(
        "[driftbandit.policies]\nCorrelation = theirs:Correlation\nBroken = nowhere:Broken\n"
        "[driftbandit.families]\nOther = theirs:Trend\n"
    )
    (tmp_path / "theirs.py").write_text(MODULE)
    path = os.pathsep.join([str(tmp_path), *sys.path])
    code = (
        "from driftbandit import Recipe, cli\nprint(Recipe.kinds('Correlation')['Correlation'])\n"
        "try: Recipe.kinds('Other')\nexcept ValueError as error: print(error)\n"
        "cli.policies([])"
    )
    done = python(code, tmp_path.parent, PYTHONPATH=path, PYTHONWARNINGS="default")
    assert "theirs.Correlation" in done.stdout, done.stderr
    assert "has the name of its class" in done.stdout
    assert "plug-in theirs" in done.stdout
    assert "entry point Broken = 'nowhere:Broken' does not load" in done.stderr


# Modules


@pytest.mark.parametrize(
    ("text", "match"),
    [
        (None, "no plug-in 'bad_module'"),
        ("def", "does not import: SyntaxError"),
        ("import no_such_package", "needs 'no_such_package': install it"),
        ("1 / 0", "does not import: ZeroDivisionError"),
    ],
)
def test_a_plug_in_that_fails_is_one_line(text, match, tmp_path):
    if text is not None:
        (tmp_path / "bad_module.py").write_text(text)
    study = STUDY.replace("my_module", "bad_module")
    with pytest.raises(ValueError, match=f"line 2: .*{match}") as caught:
        parse_study(study, str(tmp_path / "my.toml"))
    assert "\n" not in str(caught.value)


def test_a_plug_in_is_a_module_not_a_file(tmp_path):
    with pytest.raises(ValueError, match=r"without \.py"):
        plugins.load(["my_module.py/"], tmp_path)


def test_an_edited_plug_in_is_imported_again(mine, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    module = mine / "again_module.py"
    module.write_text("import again_helper\nVALUE = again_helper.VALUE")
    (mine / "again_helper.py").write_text("VALUE = 1")
    plugins.load(["again_module"], mine)
    assert sys.modules["again_module"].VALUE == 1
    (mine / "again_helper.py").write_text("VALUE = 2222")
    plugins.load(["again_module"], mine)
    assert sys.modules["again_module"].VALUE == 2222
    other = mine / "other"
    other.mkdir()
    shutil.copy(module, other)
    with pytest.raises(ValueError, match="rename it"):
        plugins.load(["again_module"], other)


# Versions of code

RIVALS = {
    "DOMD": "policies/domd.py",
    "GLOC": "policies/gloc.py",
    "Uniform": "policies/baselines.py",
}


def versions():
    roots = {
        name: {
            "driftbandit." + path.removesuffix(".py").replace("/", "."): "",
            "driftbandit.environments.paths": "",
            "driftbandit.families": "",
        }
        for name, path in RIVALS.items()
    }
    found = Versions()  # reads every file once
    return {name: found.of_roots(some) for name, some in roots.items()}


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of all sources, and the versions of the rivals in it."""
    folder = tmp_path_factory.mktemp("sources")
    shutil.copytree(Path(driftbandit.__path__[0]), folder / "driftbandit")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(code_version, "HERE", folder)
        return folder, versions()


def concerned_by(edit, file, copy, monkeypatch):
    """The rivals whose version changes with an edit of a file, which is taken back."""
    folder, before = copy
    monkeypatch.setattr(code_version, "HERE", folder)
    path = folder / "driftbandit" / file
    text = path.read_text()
    path.write_text(edit(text))
    after = versions()
    path.write_text(text)
    assert edit(text) != text
    return {name for name in RIVALS if after[name] != before[name]}


@pytest.mark.parametrize(
    ("file", "concerned"),
    [
        ("core/domd.py", {"DOMD"}),
        ("core/projection.py", {"DOMD"}),
        ("mle.py", {"GLOC"}),
        ("policies/baselines.py", {"Uniform"}),
        ("environments/paths.py", set(RIVALS)),
        ("simulation.py", set(RIVALS)),
        ("lab/run/play.py", set(RIVALS)),
        ("environments/__init__.py", set(RIVALS)),
        ("environments/regimes.py", set()),
        ("policies/glm.py", set()),
        ("lab/report/page.py", set()),
        ("fleet/fleet.py", set()),
        ("cli.py", set()),
    ],
)
def test_an_edit_concerns_what_imports_it(file, concerned, copy, monkeypatch):
    assert concerned_by(lambda text: text + "\nSIGN = -1.0\n", file, copy, monkeypatch) == concerned


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("core/domd.py", '"""', '"""Once more. '),
        ("core/domd.py", "import math", "import math  # a remark"),
        ("environments/__init__.py", '    "Circle",\n', ""),
    ],
)
def test_words_and_lists_of_names_change_no_version(file, old, new, copy, monkeypatch):
    assert not concerned_by(lambda text: text.replace(old, new, 1), file, copy, monkeypatch)


TRACE = """
import json, sys
from pathlib import Path
from driftbandit import *
from driftbandit.lab.run.play import play
from driftbandit.lab.run.code_version import Versions, roots_of
from driftbandit.policies.catalogue import CATALOGUE

world, package = Jumps(horizon=8, jumps=1), Path(sys.modules["driftbandit"].__path__[0])
versions = Versions()
for entry in CATALOGUE:
    build = getattr(entry.policy, "from_theory", None) if entry.policy is not AutoDOMD else None
    policy = build(world.problem) if build else entry.policy(problem=world.problem)
    recipes = [json.dumps(r.to_dict()) for r in (policy, world)]
    used = set()
    sys.setprofile(lambda frame, event, arg: used.add(frame.f_code.co_filename))
    policy, world = (Recipe.from_dict(json.loads(r)) for r in recipes)
    play(policy, world, (0, 1), 4)
    sys.setprofile(None)
    roots = roots_of(*recipes)
    known = {str(path) for path in versions.sources(roots).modules(roots).values()}
    used = {file for file in used if str(package) in file and "__init__" not in file}
    assert len(used) > 5
    assert used <= known, (entry.policy, used - known)
"""


def test_the_version_covers_every_file_that_runs(tmp_path):
    """Kernels included: they are ordinary functions here, and are seen when they are called."""
    done = python(TRACE, tmp_path, NUMBA_DISABLE_JIT="1")
    assert done.returncode == 0, done.stderr


def test_imports_of_a_plug_in_are_followed_in_its_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    package = tmp_path / "folded"
    package.mkdir()
    (package / "__init__.py").write_text("from .inner import Folded\nfrom .other import THING\n")
    (package / "inner.py").write_text(
        "import numpy\nimport driftbandit as db\nfrom . import deep\nimport far\n"
        "class Folded(db.Policy):\n    def init(self, n=1):\n        return deep.start + far.x\n"
    )
    for name in ("deep.py", "other.py"):
        (package / name).write_text("start = THING = 1")
    (tmp_path / "far.py").write_text("x = 1")
    plugins.load(["folded"], tmp_path)
    recipe = json.dumps({"type": "Folded"})
    plugin_files = PluginFiles(("folded.inner",), (str(tmp_path),))
    sent = {"folded/__init__.py", "folded/inner.py", "folded/deep.py", "far.py"}
    assert plugin_files.files().keys() - {"folded/__init__.py"} == sent - {"folded/__init__.py"}
    before = Versions().of(recipe)
    (package / "other.py").write_text("start = THING = 2000")
    assert Versions().of(recipe) == before
    for path in (package / "deep.py", tmp_path / "far.py"):
        path.write_text("start = x = 2000")
        now = Versions().of(recipe)
        assert now != before
        before = now


def test_classes_without_a_source_file_are_refused():
    exec("class Homeless(Policy): pass", {"Policy": Policy, "__name__": "nowhere"})
    with pytest.raises(ValueError, match="write them into a module"):
        roots_of('{"type": "Homeless"}')


# The page's example, through the command line


def settled(folder):
    return load_results(folder).drop(TIMES).sort(KEYS)


def dask_cli(name, *options):
    """The command `dask NAME`, which ends with this process, even if that is killed."""
    code = (
        f"import os, sys; from distributed.cli.dask_{name} import main\n"
        "from driftbandit.lab.run.workers import settle\n"
        "if __name__ == '__main__': settle(os.getppid()); main()"
    )
    return [sys.executable, "-c", code, *options]


def stop(process):
    """Dask's own worker sometimes waits for a closed scheduler for longer than anybody wants to."""
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def dask(tmp_path_factory):
    """A scheduler and a worker of its own on this machine, as others would start them."""
    folder = tmp_path_factory.mktemp("dask")
    file, log = folder / "scheduler.json", (folder / "log").open("w")
    common = ["--scheduler-file", str(file), "--no-dashboard"]
    options = {"cwd": folder, "stdout": log, "stderr": log}
    scheduler = dask_cli("scheduler", "--host", "127.0.0.1", "--port", "0", *common)
    worker = dask_cli("worker", "--nthreads", "1", "--no-nanny", *common)
    started = []
    try:
        started.append(subprocess.Popen(scheduler, **options))
        deadline = time.time() + 60
        while not file.exists() and time.time() < deadline:
            time.sleep(0.05)
        started.append(subprocess.Popen(worker, **options))
        yield json.loads(file.read_text())["address"]
    finally:
        for process in reversed(started):
            process.terminate()
        for process in reversed(started):
            stop(process)
        log.close()


@pytest.mark.slow
def test_the_example_runs_here_on_dask_and_on_a_scheduler_elsewhere(mine, dask):
    here = run(mine, "--out", "here")
    assert here.returncode == 0, here.stderr
    assert "mine: 6 cells run\n" in here.stdout
    assert "Correlation, rate = 0.05" in here.stdout
    local = run(mine, "--out", "local", "--scheduler", "local")
    assert local.returncode == 0, local.stderr
    away = run(mine, "--out", "away", "--scheduler", dask)
    assert away.returncode == 0, away.stderr
    assert settled(mine / "local").equals(settled(mine / "here"))
    assert settled(mine / "away").equals(settled(mine / "here"))
    facts = RunStore(mine / "away").runs()[-1]
    assert facts["plugins"].keys() == {"my_module"}

    # A flipped sign: the same scheduler gets the new source; only what it concerns is run.
    flipped = MODULE.replace("self.rate * (", "-self.rate * (")
    (mine / "my_module.py").write_text(flipped)
    with pytest.warns(UserWarning, match="has changed since these results were made"):
        old = settled(mine / "away")
    again = run(mine, "--out", "away", "--scheduler", dask)
    assert "mine: 6 cells run\n" in again.stdout, again.stderr  # the world is in the module, too
    new = settled(mine / "away")
    assert new.shape == old.shape
    mine_only = pl.col("policy").str.starts_with("Correlation")
    assert not new.filter(mine_only)["regret"].equals(old.filter(mine_only)["regret"])
    assert new.filter(~mine_only).equals(old.filter(~mine_only))
    everything = load_results(mine / "away", everything=True)
    assert everything.height == 2 * new.height
    assert everything["code"].n_unique() == 4
    assert everything.filter("current").height == new.height


def test_a_worker_with_other_code_plays_nothing():
    cell = cells_of(parse_study(SHIPPED, "x"), 4)[0]
    assert run_pinned(cell, PluginFiles((), ())).height
    with pytest.raises(ValueError, match="a worker has other code for 'Uniform"):
        run_pinned(replace(cell, code="other"), PluginFiles((), ()))
    with pytest.raises(ValueError, match="a worker cannot import 'no_such_module'"):
        run_pinned(cell, PluginFiles(("no_such_module",), ()))
