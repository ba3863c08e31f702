"""Formulas as MathML, which browsers draw themselves: pages need neither a script nor a network."""
from docutils.nodes import SkipNode
from latex2mathml.converter import convert


def inline(self, node):
    self.body.append(convert(node.astext()))
    raise SkipNode


def display(self, node):
    self.body.append(f'<div class="math-block">{convert(node.astext(), display="block")}</div>')
    raise SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (inline, None), (display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
