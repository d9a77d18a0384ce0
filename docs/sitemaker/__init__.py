"""What the site needs beyond Sphinx and MyST: landing pages, links to names, docstrings, readable
tables and formulas."""

from __future__ import annotations

from typing import Any

from sitemaker import formulas, landing, links, llms, reference, tables


def setup(app: Any) -> dict[str, bool]:
    for part in (formulas, landing, links, llms, reference, tables):
        part.setup(app)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
