"""Examples in the documents: their code, and what they print.

A file of `examples/` is cut into cells by lines such as `# %% decide`, which editors know. A page
shows one with `<!-- example: news decide -->`, what it printed with `<!-- output: news decide -->`.
`python -m benchmarks.examples` runs them all and stores what they print.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
STORED = ROOT / "docs" / "results" / "examples.json"
CELL = re.compile(r"^# %% (\w+)\n", flags=re.M)
MARK = "== cell "  # on a line of its own between what two cells print


def cells(name: str) -> dict[str, str]:
    """The code of an example, cell by cell; what stands before the first is for readers of the
    file."""
    _, *parts = CELL.split((ROOT / "examples" / f"{name}.py").read_text())
    return {cell: code.strip() for cell, code in zip(parts[::2], parts[1::2])}


def code(name: str, cell: str) -> str:
    return f"```python\n{cells(name)[cell]}\n```"


def output(name: str, cell: str) -> str:
    return f"```\n{json.loads(STORED.read_text())[name][cell]}\n```"


def run(name: str) -> dict[str, str]:
    """What every cell prints, in a process and an empty folder of its own."""
    loud = "\n".join(f"print({MARK + cell!r})\n{text}" for cell, text in cells(name).items())
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", loud]
        done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, check=True)
    _, *parts = re.split(rf"^{MARK}(\w+)\n", done.stdout, flags=re.M)
    printed = {cell: text.rstrip() for cell, text in zip(parts[::2], parts[1::2])}
    return {"source": fingerprint(name), **printed}


def fingerprint(name: str) -> str:
    """Of the code that printed; a test fails when an example has changed since."""
    return hashlib.sha256("\n".join(cells(name).values()).encode()).hexdigest()[:16]


if __name__ == "__main__":
    names = sorted(path.stem for path in (ROOT / "examples").glob("*.py"))
    STORED.write_text(json.dumps({name: run(name) for name in names}, indent=1) + "\n")
