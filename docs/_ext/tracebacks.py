"""A page whose code prints a traceback fails the build.

Errors of code cells do so already (`nb_execution_raise_on_error`). Pictures are drawn after a cell has ended, and what
goes wrong then is printed like any other text.
"""
from sphinx.errors import SphinxError

MARK = "Traceback (most recent call last)"


def look(app, error):
    if error is not None or app.builder.format != "html":
        return
    pages = [path.relative_to(app.outdir) for path in sorted(app.outdir.rglob("*.html"))
             if MARK in path.read_text(encoding="utf-8", errors="replace")]
    if pages:
        raise SphinxError(f"pages with a traceback: {', '.join(map(str, pages))}")


def setup(app):
    app.connect("build-finished", look)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
