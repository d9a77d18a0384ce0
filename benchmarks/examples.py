"""Examples in the documents: their code, and what they print.

A file of `examples/` is cut into cells by lines such as `# %% decide`, which editors know. A page
shows one with `<!-- example: news decide -->`, what it printed with `<!-- output: news decide -->`.
An example of the gallery also saves a figure, `NAME.svg`. `python -m benchmarks.examples` runs
those with output on a page and stores it, and their figures; with names it runs these alone.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks import themed

ROOT = Path(__file__).parent.parent
STORED = ROOT / "docs" / "results" / "examples.json"
FIGURES = ROOT / "docs" / "gallery"
STYLE = Path(__file__).with_name("gallery.mplstyle")
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


def shown() -> list[str]:
    """Examples whose output stands on a page; they have seeds, and print the same every time."""
    pages = (page.read_text() for page in (ROOT / "docs").rglob("*.md"))
    return sorted({name for text in pages for name in re.findall(r"<!-- output: (\w+) ", text)})


def run(name: str, folder: Path) -> dict[str, str]:
    """What every cell prints, in a process of its own; what it writes is left in the folder."""
    loud = "\n".join(f"print({MARK + cell!r})\n{text}" for cell, text in cells(name).items())
    shutil.copy(STYLE, folder / "matplotlibrc")
    env = os.environ | {"SOURCE_DATE_EPOCH": "0"}  # a figure is the same whenever it is drawn
    command = [sys.executable, "-c", loud]
    done = subprocess.run(
        command, cwd=folder, env=env, stdout=subprocess.PIPE, text=True, check=True
    )
    _, *parts = re.split(rf"^{MARK}(\w+)\n", done.stdout, flags=re.M)
    printed = {cell: text.rstrip() for cell, text in zip(parts[::2], parts[1::2])}
    return {"source": fingerprint(name), **printed}


def fingerprint(name: str) -> str:
    """Of the code that printed; a test fails when an example has changed since."""
    return hashlib.sha256("\n".join(cells(name).values()).encode()).hexdigest()[:16]


def store(names: list[str]) -> None:
    """Run these, and keep what they print and draw. The others stay as they are stored."""
    known = json.loads(STORED.read_text())
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            known[name] = run(name, Path(folder))
            for figure in Path(folder).glob(f"{name}.svg"):
                drawn = themed.themed(figure.read_text(encoding="utf-8"))
                (FIGURES / figure.name).write_text(drawn, encoding="utf-8")
    kept = {name: known[name] for name in shown() if name in known}
    STORED.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    store(sys.argv[1:] or shown())
