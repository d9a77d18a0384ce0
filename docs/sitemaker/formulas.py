"""Formulas as MathML, made from LaTeX when the site is built: no script, no font, no network."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert


def inline(writer: Any, node: nodes.math) -> None:
    writer.body.append(convert(node.astext(), display="inline"))
    raise nodes.SkipNode


def block(writer: Any, node: nodes.math_block) -> None:
    mathml = convert(node.astext(), display="block")
    writer.body.append(f'<div class="formula">{mathml}</div>\n')
    raise nodes.SkipNode


def setup(app: Any) -> None:
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
