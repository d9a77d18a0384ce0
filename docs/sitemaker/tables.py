"""Tables that can be read: numbers on the right, first column frozen, wide ones scroll alone."""

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


def setup(app: Any) -> None:
    app.add_post_transform(AlignNumbers)
