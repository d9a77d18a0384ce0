"""llms.txt: the pages of the site as a list for language models (llmstxt.org)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from sitemaker.landing import LANDING

ITEM = re.compile(r"^- \[([^\]]+)\]\(([\w/-]+)\.md\):? ?(.*)$", flags=re.M)
TITLE = re.compile(r"^# (.+)$", flags=re.M)
ABOUT = (
    "> Contextual bandits that keep up with a changing world: a Python library, a lab and a "
    "decision service. Decisions come with exact propensities, rewards may be late, memory tunes "
    "itself, and every number can be computed again from an append-only log."
)


def listed(docs: Path) -> str:
    """Return the text: a section for every landing page, a line for every page that it lists."""
    parts, seen = ["# driftbandit", ABOUT], set[str]()
    for landing in LANDING[1:]:
        text = (docs / f"{landing}.md").read_text(encoding="utf-8")
        lines = []
        for title, page, about in ITEM.findall(text):
            if page not in seen and (docs / f"{page}.md").exists():
                seen.add(page)
                lines.append(f"- [{title}]({page}.html)" + (f": {about}" if about else ""))
        found = TITLE.search(text)
        if lines and found:
            parts.append(f"## {found[1]}\n\n" + "\n".join(lines))
    return "\n\n".join(parts) + "\n"


def write(app: Any, error: Exception | None) -> None:
    if error is None and app.builder.format == "html":
        Path(app.outdir, "llms.txt").write_text(listed(Path(app.srcdir)), encoding="utf-8")


def setup(app: Any) -> None:
    app.connect("build-finished", write)
