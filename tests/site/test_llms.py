"""llms.txt lists every page of the site once, with what it is about."""

import importlib
import re
import sys
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_every_page_is_listed_once_and_exists(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    text = importlib.import_module("sitemaker.llms").listed(DOCS)
    sys.modules.pop("sitemaker.llms")
    assert text.startswith("# driftbandit\n\n> Contextual bandits")
    pages = re.findall(r"^- \[.+?\]\(([\w/-]+)\.html\)", text, flags=re.M)
    assert len(set(pages)) == len(pages) > 20
    assert all((DOCS / f"{page}.md").is_file() for page in pages)
    assert {"guides", "research"}.isdisjoint(pages)  # they are the sections
    for page in ("loop", "openfeature", "clusters", "service", "sticky", "batch"):
        assert page in pages
    described = [line for line in text.splitlines() if re.match(r"- \[.+\]\(.+\): \w", line)]
    assert len(described) > 0.8 * len(pages)
