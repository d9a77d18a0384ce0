"""The tree of the site: a page's list of links is its part of the tree.

Landing pages stay plain Markdown, which code hosts show too, and nothing is listed twice. A page
that no list names makes Sphinx complain, and the build fails.
"""

from __future__ import annotations

import re
from typing import Any

LANDING = ("index", "start", "decide", "gallery", "research", "understand", "reference")
ENTRY = re.compile(r"^- \[([^\]]+)\]\(([\w/-]+)\.md\)", flags=re.M)


def tree(text: str) -> str:
    """The links that begin an item of a list, as a hidden toctree."""
    entries = "\n".join(f"{title} <{page}>" for title, page in ENTRY.findall(text))
    return f"\n\n```{{toctree}}\n:hidden:\n\n{entries}\n```\n"


def grow(app: Any, page: str, source: list[str]) -> None:
    if page in LANDING:
        source[0] += tree(source[0])


def setup(app: Any) -> None:
    app.connect("source-read", grow)
