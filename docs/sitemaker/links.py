"""Names in code type, such as `Bandit` or `loop.decide(...)`, become links to the reference."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.nodes import make_refnode

NAME = re.compile(r"(?:driftbandit\.)?([A-Za-z_][\w.]*)(?:\(.*\))?")


class LinkNames(SphinxPostTransform):
    """A public name on another page leads to its description."""

    default_priority = 900  # references of the author's own are resolved by then

    def run(self, **options: Any) -> None:
        for literal in list(self.document.findall(nodes.literal)):
            if not _inside(literal, (nodes.reference, nodes.title)):
                self._link(literal)

    def _link(self, literal: nodes.literal) -> None:
        match = NAME.fullmatch(literal.astext())
        known = self.env.domains["py"].data["objects"]
        entry = known.get(f"driftbandit.{match[1]}") if match else None
        if entry and entry.docname != self.env.docname:
            link = make_refnode(
                self.app.builder, self.env.docname, entry.docname, entry.node_id, literal.deepcopy()
            )
            literal.replace_self(link)


def _inside(node: nodes.Node, kinds: tuple[type, ...]) -> bool:
    while node.parent is not None:
        node = node.parent
        if isinstance(node, kinds):
            return True
    return False


def setup(app: Any) -> None:
    app.add_post_transform(LinkNames)
