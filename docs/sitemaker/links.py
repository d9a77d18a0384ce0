"""Names in code type, such as `Bandit` or `loop.decide(...)`, become links to the reference."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from sphinx.addnodes import desc
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.nodes import make_refnode

NAME = re.compile(r"(?:driftbandit\.)?([A-Za-z_][\w.]*)(?:\(.*\))?")
CLOSED = nodes.reference, nodes.title  # a link inside these would be one too many


class LinkNames(SphinxPostTransform):
    """A public name leads to its description, from everywhere but inside it."""

    default_priority = 900  # references of the author's own are resolved by then

    def run(self, **options: Any) -> None:
        for literal in list(self.document.findall(nodes.literal)):
            if not any(isinstance(node, CLOSED) for node in _above(literal)):
                self._link(literal)

    def _link(self, literal: nodes.literal) -> None:
        match = NAME.fullmatch(literal.astext())
        known = self.env.domains["py"].data["objects"]
        entry = known.get(f"driftbandit.{match[1]}") if match else None
        if entry and not any(_describes(node, entry.node_id) for node in _above(literal)):
            link = make_refnode(
                self.app.builder, self.env.docname, entry.docname, entry.node_id, literal.deepcopy()
            )
            literal.replace_self(link)


def _above(node: nodes.Node) -> Iterator[nodes.Node]:
    while node.parent is not None:
        node = node.parent
        yield node


def _describes(node: nodes.Node, name: str) -> bool:
    return isinstance(node, desc) and name in node[0]["ids"]


def setup(app: Any) -> None:
    app.add_post_transform(LinkNames)
