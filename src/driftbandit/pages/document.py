"""The frame of a page that opens without a network, and the parts that pages have in common."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from driftbandit.pages import asset

# The browser itself then refuses to fetch anything.
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"


def document(
    title: str, contents: str, main: str, data: Any, script: str, *, style: str = ""
) -> str:
    """Return a page: HTML for its header and its body, what its charts show, and the script that
    draws them."""
    name = escape(title)
    # A label must not be able to close the script element.
    encoded = json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return "\n".join(
        [
            '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{name}</title><style>{asset('page.css')}{style}</style></head><body>",
            f'<header><h1>{name}</h1><button type="button" id="theme">Light / dark</button>',
            f"{contents}</header>",
            f"<main>{main}</main>",
            f'<script type="application/json" id="data">{encoded}</script>',
            f"<script>{asset('draw.js')}{script}</script></body></html>",
        ]
    )


def rounded(values: Iterable[float | None]) -> list[float | None]:
    """Return numbers with five digits, which no screen can tell from more; None for what is not
    finite."""
    finite = (v if v is not None and math.isfinite(v) else None for v in values)
    short = (None if v is None else float(f"{v:.5g}") for v in finite)
    return [int(v) if v is not None and v == int(v) else v for v in short]


def data_table(note: str, header: Sequence[str], rows: Iterable[tuple[str, str]]) -> str:
    """Return a table that scrolls: each row is its name and the HTML of its other cells."""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in header)
    body = "".join(f'<tr><th scope="row">{escape(name)}</th>{cells}</tr>' for name, cells in rows)
    return (
        f'<figure class="table"><figcaption>{escape(note)}.</figcaption><div class="scroll" '
        f'tabindex="0"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
        "</figure>"
    )


def swatch(drawn: Mapping[str, Any], width: float) -> str:
    """Return a piece of a policy's line, for legends; `drawn` is what `Look.drawn` says."""
    return (
        f'<svg width="28" height="8" aria-hidden="true"><path d="M0 4H28" stroke-width="{width}" '
        f'style="stroke: light-dark({drawn["colour"]}, {drawn["dark"]})" '
        f'stroke-dasharray="{drawn["dash"]}"/></svg>'
    )
