"""Run the tests of what changed: `make check`.

The table "Changed X, run Y" in CONTRIBUTING.md says which tests concern which file. What changed is
what differs from the branch point with main, committed or not. Tests marked `slow` are left to
`make test`.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[1]
GUIDE = ROOT / "CONTRIBUTING.md"
HEADING = "| Changed | Run |"


def table(text: str) -> dict[str, list[str]]:
    """Return the rows of the guide: the start of a path, and what to run."""
    rows: dict[str, list[str]] = {}
    lines = text.partition(HEADING)[2].splitlines()[2:]
    for line in lines[: next(k for k, line in enumerate(lines) if not line.startswith("|"))]:
        _, changed, run, _ = line.split("|")
        tests = re.findall(r"`([^`]+)`", run)
        rows |= dict.fromkeys(re.findall(r"`([^`]+)`", changed), tests)
    return rows


def tests_of(paths: Iterable[str], rows: dict[str, list[str]]) -> list[str]:
    """Return the tests that concern these files; of several rows the most exact one counts."""
    found: dict[str, None] = {}
    for path in paths:
        if re.fullmatch(r"tests/.*test_\w+\.py", path):
            found[path] = None
        starts = [start for start in rows if path.startswith(start)]
        if starts:
            found |= dict.fromkeys(rows[max(starts, key=len)])
    whole = [test for test in found if not test.endswith(".py")]
    inside = (test for test in found if not any(test.startswith(f"{folder}/") for folder in whole))
    return [test for test in inside if (ROOT / test).exists()]


def changed_files() -> list[str]:
    """Return the files that differ from the branch point with main, and new ones."""
    base = _git("merge-base", "HEAD", "main") or ["HEAD"]
    return [*_git("diff", "--name-only", base[0]), *_git("ls-files", "-o", "--exclude-standard")]


def _git(*command: str) -> list[str]:
    done = subprocess.run(["git", *command], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.split("\n")[:-1] if done.returncode == 0 else []


def main() -> int:
    """Run them; without a change there is nothing to run."""
    tests = tests_of(changed_files(), table(GUIDE.read_text(encoding="utf-8")))
    if not tests:
        print("No test concerns what changed.")
        return 0
    print("Tests of what changed:", *tests)
    command = ["-n", "2", "--dist", "loadfile", "-m", "not slow", *tests]
    code = subprocess.run([sys.executable, "-m", "pytest", *command], cwd=ROOT).returncode
    return 0 if code == 5 else code  # 5: every test is marked slow


if __name__ == "__main__":
    sys.exit(main())
