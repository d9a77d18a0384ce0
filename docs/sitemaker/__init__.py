"""What the site needs beyond Sphinx and MyST: landing pages, links to names, docstrings."""

from __future__ import annotations

from typing import Any

from sitemaker import landing, links, reference


def setup(app: Any) -> dict[str, bool]:
    landing.setup(app)
    links.setup(app)
    reference.setup(app)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
