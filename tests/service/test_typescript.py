"""The TypeScript client against a real service, with Node, and its types against the document."""

import fcntl
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from driftbandit import __version__
from driftbandit.service.limits import Limits
from serving import ARMS, NEWS, ask, in_thread

FOLDER = Path(__file__).parents[2] / "clients" / "typescript"
NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="needs Node")
needs_npm = pytest.mark.skipif(shutil.which("npm") is None, reason="needs npm")
INSTALL = ["npm", "install", "--no-package-lock", "--ignore-scripts", "--no-audit", "--no-fund"]


@pytest.fixture
def url(tmp_path, no_wait_for_the_disk):
    with in_thread(tmp_path / "a.db", limits=Limits(rate=1e6)) as port:
        assert ask(port, "PUT", "/v1/loops/news", {**NEWS, "arms": ARMS})[0] == 201
        arena = {**NEWS, "reward": {"type": "Preference", "wait": "10min"}, "arms": ARMS}
        assert ask(port, "PUT", "/v1/loops/arena", arena)[0] == 201
        yield f"http://127.0.0.1:{port}"


def node(url, *arguments):
    env = os.environ | {"URL": url}
    return subprocess.run(
        [NODE, *arguments], cwd=FOLDER, env=env, capture_output=True, text=True, timeout=60
    )


@needs_node
@pytest.mark.slow
def test_the_client_with_a_service(url):
    done = node(url, "--test", "test/client.test.js")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "# pass 9" in done.stdout
    assert "# skipped 0" in done.stdout


def install():
    """Install what the client is built and tested with, in a folder that git ignores."""
    with (FOLDER / "package.json").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another worker may install them
        needed = json.load(lock)["devDependencies"]
        if not all((FOLDER / "node_modules" / name).exists() for name in needed):
            subprocess.run(INSTALL, cwd=FOLDER, check=True, capture_output=True, timeout=120)


@pytest.fixture
def packages():
    """The official packages of OpenFeature."""
    install()


@pytest.fixture
def compiler():
    """The generator of types, and TypeScript."""
    try:
        install()
    except subprocess.SubprocessError as error:
        pytest.skip(f"npm cannot install openapi-typescript and typescript: {error}")


def run_script(name, *arguments, **env):
    """Run a script of package.json."""
    command = ["npm", "run", name, "--", *arguments]
    env = os.environ | env
    return subprocess.run(command, cwd=FOLDER, env=env, capture_output=True, text=True, timeout=60)


@needs_node
@needs_npm
def test_the_official_providers_of_openfeature(url, packages):
    port = int(url.rsplit(":", 1)[1])
    sticky = {**NEWS, "arms": ARMS, "sticky": "7d"}
    assert ask(port, "PUT", "/v1/loops/banner", sticky)[0] == 201
    done = node(url, "--test", "test/openfeature.test.js")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "# pass 3" in done.stdout
    counts = ask(port, "GET", "/v1/loops/banner/health")[1]["counts"]
    assert (counts["decide"], counts["reward counted"]) == (2, 1)  # ann and cyd, however often
    assert "decide" not in ask(port, "GET", "/v1/loops/news/health")[1]["counts"]


@needs_node
@needs_npm
def test_the_page_about_openfeature_runs_in_node(url, packages):
    text = (FOLDER / "../../docs/openfeature.md").read_text()
    (script,) = re.findall(r"```sh\n(.*?)```", text, flags=re.S)
    env = os.environ | {"URL": url}
    subprocess.run(["bash", "-euc", script], env=env, check=True, capture_output=True)
    (program,) = re.findall(r"```js\n(.*?)```", text, flags=re.S)
    done = node(url, "--input-type=module", "-e", program)
    assert done.returncode == 0, done.stderr
    value, reason, propensity = done.stdout.split()
    assert (value in ("summer", "winter"), reason) == (True, "SPLIT")
    assert 0.0 < float(propensity) <= 1.0
    counts = ask(int(url.rsplit(":", 1)[1]), "GET", "/v1/loops/banner/health")[1]["counts"]
    assert counts["reward counted"] == 1


@needs_node
@pytest.mark.parametrize("page", ["README.md", "../../docs/typescript.md"])
def test_its_pages_run(url, page):
    """A stranger declares, decides and rewards by what the page says."""
    text = (FOLDER / page).read_text()
    for script in re.findall(r"```sh\n(.*?)```", text, flags=re.S):
        env = os.environ | {"URL": url}
        subprocess.run(["bash", "-euc", script], env=env, check=True, capture_output=True)
    (program,) = re.findall(r"```js\n(.*?)```", text, flags=re.S)
    done = node(url, "--input-type=module", "-e", program)
    assert done.returncode == 0, done.stderr
    arm, _, outcome = done.stdout.split()
    assert (arm in {*ARMS, "summer", "winter"}, outcome) == (True, "counted")


@needs_node
@needs_npm
def test_its_types_are_generated_from_the_document_of_today(url, compiler):
    done = run_script("types", "--check", URL=url)
    remedy = "start a service, and run `URL=http://... npm run types` in clients/typescript"
    assert done.returncode == 0, f"{remedy}: {done.stdout}{done.stderr}"


@needs_node
@needs_npm
def test_programs_with_its_types_compile_and_mistakes_do_not(compiler):
    done = run_script("check")
    assert done.returncode == 0, done.stdout + done.stderr


def test_it_is_published_with_all_its_files_and_needs_no_other_package():
    package = json.loads((FOLDER / "package.json").read_text())
    own = {file.name for kind in ("*.js", "*.d.ts") for file in FOLDER.glob(kind)}
    assert set(package["files"]) == own
    assert not {"dependencies", "peerDependencies"} & package.keys()


def test_its_version_is_that_of_the_library():
    assert f'"version": "{__version__}"' in (FOLDER / "package.json").read_text()
