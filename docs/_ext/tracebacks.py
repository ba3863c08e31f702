"""A cell that prints a traceback which nobody expects fails the build.

Errors of code cells do so already (`nb_execution_raise_on_error`). Pictures are drawn after a cell has ended, and what
goes wrong then is one more output. Cells that show an error have the tag ``raises-exception``; files in their
tracebacks have their paths in the package, and not those of the machine that makes the site.
"""
import html
import os
import re
from pathlib import Path

from sphinx.errors import SphinxError

import liedyn

MARK = "Traceback (most recent call last)"
CELL, EXPECTED = '<div class="cell ', "tag_raises-exception"
HERE = html.escape(f"{Path(liedyn.__file__).parents[1]}{os.sep}")
OUTPUT = re.compile(r'class="output (?:stream|stderr|traceback)[^"]*"(.*?)(?=class="output |</section>|\Z)', re.DOTALL)


def has_unexpected(page):
    """Does a cell of a page (HTML) show a traceback without the tag?"""
    return any(EXPECTED not in cell.partition(">")[0] and any(MARK in each[1] for each in OUTPUT.finditer(cell))
               for cell in page.split(CELL)[1:])


def look(app, error):
    if error is not None or app.builder.format != "html":
        return
    pages = []
    for path in sorted(app.outdir.rglob("*.html")):
        page = path.read_text(encoding="utf-8", errors="replace")
        if has_unexpected(page):
            pages.append(path.relative_to(app.outdir))
        if HERE in page:
            path.write_text(page.replace(HERE, ""), encoding="utf-8")
    if pages:
        raise SphinxError(f"pages with a traceback: {', '.join(map(str, pages))}")


def setup(app):
    app.connect("build-finished", look)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
