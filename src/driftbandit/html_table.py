"""Results as HTML tables, for notebooks: no script, no style, and all text is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any


def table(
    title: str, header: Sequence[str], rows: Iterable[Sequence[Any]], notes: Iterable[str] = ()
) -> str:
    """Return a table with a caption, and a paragraph for each note below it."""
    head = "".join(f"<th>{escape(each)}</th>" for each in header)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    below = "".join(f"<p>{escape(note)}</p>" for note in notes)
    caption = f"<caption>{escape(title)}</caption>"
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{below}"


def _cell(value: Any) -> str:
    """Return a cell; a number has four digits, and what is not known is a dash."""
    if value is None:
        return "<td>–</td>"
    return f"<td>{escape(f'{value:.4g}' if isinstance(value, float) else str(value))}</td>"
