"""Tables that can be read: numbers on the right, first column frozen, wide ones scroll alone; a
spread stays on the line of its number."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform

# A number, with its unit, its spread or its interval; "-" where there is none.
NUMBER = re.compile(
    r"[-+−–]?(?:\d[\d.,]*(?:e[+-]?\d+)?)?\s?(?:%|µs|us|ms|ns|s|B)?"
    r"(?:\s(?:±|→)\s[\d.,]+|\s?\[[^\]]*\])?|[<>]?= [\d.,e^+-]+"
)


class AlignNumbers(SphinxPostTransform):
    """Columns that hold numbers are marked as such, so that the style sheet can align them."""

    default_priority = 910

    def run(self, **options: Any) -> None:
        for group in self.document.findall(nodes.tgroup):
            rows = [list(row.findall(nodes.entry)) for row in group.findall(nodes.row)]
            for column in zip(*rows):
                texts = [cell.astext().strip() for cell in column[1:]]
                if any(texts) and all(NUMBER.fullmatch(text) for text in texts):
                    for cell in column:
                        cell["classes"].append("number")


class KeepSpreads(SphinxPostTransform):
    """In a cell, no line ends before or after a ±."""

    default_priority = 911

    def run(self, **options: Any) -> None:
        for cell in self.document.findall(nodes.entry):
            for text in list(cell.findall(nodes.Text)):
                if " ± " in text:
                    text.parent.replace(text, nodes.Text(text.replace(" ± ", "\u00a0±\u00a0")))


def setup(app: Any) -> None:
    app.add_post_transform(AlignNumbers)
    app.add_post_transform(KeepSpreads)
