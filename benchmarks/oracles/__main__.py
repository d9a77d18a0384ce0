"""`make bench-oracles`: estimators and sequences next to obp and confseq on the same inputs.

Each oracle is installed in an environment of its own. What it says goes to tests/golden, where the
tests find it, and the largest differences to docs/results/oracles.csv. Exit status 1 if one is
above 1e-10. An oracle that does not install is reported, and what it said before is kept.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.oracles import ours
from benchmarks.peers import venvs
from benchmarks.peers.registry import Peer
from benchmarks.tables import write_rows

GOLDEN = venvs.ROOT / "tests" / "golden"
TOLERANCE = 1e-10
NEEDED = (
    "numpy==2.*", "scipy==1.*", "scikit-learn==1.7.*", "joblib", "cloudpickle", "threadpoolctl",
    "pandas==2.*", "python-dateutil", "pytz", "tzdata", "six",
)  # fmt: skip
# obp 0.5.7 says that it needs a Python below 3.11, and packages that its estimators do not.
FORCED = ("--no-deps", "--ignore-requires-python", "--only-binary=numpy,scipy,scikit-learn,pandas")
OBP = Peer("obp", (*FORCED, "obp==0.5.7", *NEEDED))
# confseq 0.0.11 builds with a pybind11 that knows no newer Python, and with Boost's headers.
BOOST = Peer("cmeel-boost", ("--no-deps", "cmeel-boost==1.*"))
CONFSEQ = Peer("confseq", ("confseq==0.0.11", "numpy==2.*", "scipy==1.*"), range(9, 11))
ORACLES = {OBP: ours.values_of, CONFSEQ: ours.capital_of}


def asked(oracle: Peer) -> dict[str, Any]:
    """What an oracle says, with its version."""
    if oracle == CONFSEQ:
        os.environ["CMAKE_ARGS"] = f"-DBoost_INCLUDE_DIR={_headers()}"
    done = venvs.install(oracle)
    if done.reason:
        raise OSError(done.reason)
    command = [venvs.python_of(oracle), "-m", f"benchmarks.oracles.{oracle.module}_says"]
    environment = os.environ | {"PYTHONPATH": str(venvs.ROOT)}
    text = subprocess.run(command, check=True, stdout=subprocess.PIPE, env=environment).stdout
    return {"version": done.version, "says": json.loads(text)}


def _headers() -> Path | None:
    venvs.install(BOOST)
    home = venvs.python_of(BOOST).parents[1]
    return next(home.glob("lib/python*/site-packages/cmeel.prefix/include"), None)


def compared(said: Any, own: Any) -> float:
    """The largest difference of numbers in the same places."""
    if isinstance(said, dict):
        assert said.keys() == own.keys()
        return max(compared(said[name], own[name]) for name in said)
    return float(np.max(np.abs(np.subtract(said, own)) / np.maximum(1.0, np.abs(said))))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--csv", type=Path, help="also write the table to this file")
    given, missed = parser.parse_args(), False
    lines = [["oracle", "version", "largest difference", "allowed"]]
    for oracle, own in ORACLES.items():
        path = GOLDEN / f"{oracle.name}.json"
        try:
            path.write_text(json.dumps(asked(oracle), indent=1) + "\n")
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"{oracle.name} does not install: {error}")
            if not path.exists():
                continue
        found = json.loads(path.read_text())
        worst = compared(found["says"], own())
        missed |= not worst <= TOLERANCE
        lines.append([oracle.name, found["version"], f"{worst:.1e}", f"{TOLERANCE:g}"])
        print(*lines[-1])
    write_rows(given.csv, lines)
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
