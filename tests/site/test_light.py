"""`pip install driftbandit` alone stays light: what extras bring is loaded when it is used."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
CORE = {"numpy", "scipy", "lazy-loader", "msgspec", "numba", "rich", "threadpoolctl", "typer"}
EXTRAS = "httpx gymnasium mcp opentelemetry sklearn polars pandas narwhals psycopg uvicorn pydantic"
PROGRAM = """
import sys

for name in sys.argv[1].split():
    sys.modules[name] = None  # as if it were not installed
import driftbandit
from driftbandit import Bandit, Client, DOMD, Features, Loop, Number, Problem, Reward, track_rewards

Bandit(DOMD(problem=Problem(dim=2))).choose([[1.0, 0.0], [0.0, 1.0]])
features, sticky = Features(arm={"price": Number(0, 9)}), {"sticky": "7d"}
with Loop(":memory:", features=features, reward=Reward(0, 1), policy=DOMD, **sticky) as loop:
    made = loop.decide({}, {"a": {"price": 1}, "b": {"price": 2}}, key="ann")
    print(loop.reward(made.id, 1))
"""


def test_the_core_has_the_dependencies_that_it_had():
    named = {re.match(r"[\w-]+", each)[0] for each in PROJECT["dependencies"]}
    assert named == CORE


def test_the_core_works_without_any_extra():
    done = subprocess.run([sys.executable, "-c", PROGRAM, EXTRAS], capture_output=True, text=True)
    assert done.stdout == "counted\n", done.stderr
