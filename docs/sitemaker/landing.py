"""The tree of the site: a page's list of links is its part of the tree.

Landing pages stay plain Markdown, which code hosts show too, and nothing is listed twice. A page
that no list names makes Sphinx complain, and the build fails.
"""

from __future__ import annotations

import re
from typing import Any

LANDING = ("index", "start", "guides", "gallery", "research", "reference")
GALLERY = "gallery"
CARD = re.compile(r"^- \[([^\]]+)\]\(gallery/([\w-]+)\.md\): (.*)\n", flags=re.M)
ENTRY = re.compile(r"^- \[([^\]]+)\]\(([\w/-]+)\.md\)", flags=re.M)


def tree(text: str) -> str:
    """The links that begin an item of a list, as a hidden toctree."""
    entries = "\n".join(f"{title} <{page}>" for title, page in ENTRY.findall(text))
    return f"\n\n```{{toctree}}\n:hidden:\n\n{entries}\n```\n"


def cards(text: str) -> str:
    """The lists of the gallery as cards: the figure of an example, its title and its outcome."""

    def card(match: re.Match[str]) -> str:
        title, name, outcome = match.groups()
        figure = f"gallery/{name.replace('-', '_')}.svg"
        told = f"**{title}** {outcome[0].upper()}{outcome[1:]}"
        return f"[![{title}]({figure}) {told}](gallery/{name}.md)\n\n"

    items = re.compile(r"(?:^- \[.*\n)+", flags=re.M)
    return items.sub(lambda match: f"```{{container}} cards\n{CARD.sub(card, match[0])}```\n", text)


def grow(app: Any, page: str, source: list[str]) -> None:
    if page in LANDING:
        text = source[0]
        source[0] = (cards(text) if page == GALLERY else text) + tree(text)


def setup(app: Any) -> None:
    app.connect("source-read", grow)
