"""The TypeScript client against a real service, with Node, and its types against the messages."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from driftbandit import __version__
from driftbandit.service.limits import Limits
from driftbandit.service.schema import messages as m
from serving import ARMS, NEWS, ask, in_thread

FOLDER = Path(__file__).parents[2] / "clients" / "typescript"
NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="needs Node")


@pytest.fixture
def url(tmp_path, no_wait_for_the_disk):
    with in_thread(tmp_path / "a.db", limits=Limits(rate=1e6)) as port:
        assert ask(port, "PUT", "/v1/loops/news", {**NEWS, "arms": ARMS})[0] == 201
        yield f"http://127.0.0.1:{port}"


def node(url, *arguments):
    env = os.environ | {"URL": url}
    return subprocess.run(
        [NODE, *arguments], cwd=FOLDER, env=env, capture_output=True, text=True, timeout=60
    )


@needs_node
@pytest.mark.slow
def test_the_client_with_a_service(url):
    done = node(url, "--test", "test/")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "# pass 9" in done.stdout
    assert "# skipped 0" in done.stdout


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


@pytest.mark.parametrize(
    ("interface", "message", "apart"),
    [
        ("Decision", m.DecisionResponse, set()),
        ("Place", m.ServedPosition, set()),
        ("DecideOptions", m.DecisionRequest, {"context", "at"}),  # an argument; the client's clock
        ("Problem", m.ProblemDetails, {"difference", "leads"}),  # of requests it does not make
    ],
)
def test_its_types_have_the_fields_of_the_messages(interface, message, apart):
    text = (FOLDER / "client.d.ts").read_text()
    body = re.search(rf"interface {interface} {{\n(.*?)^}}", text, flags=re.M | re.S)[1]
    named = set(re.findall(r"^  (\w+)\??:", body, flags=re.M))
    assert named == {*message.__struct_fields__} - apart


def test_its_version_is_that_of_the_library():
    assert f'"version": "{__version__}"' in (FOLDER / "package.json").read_text()
