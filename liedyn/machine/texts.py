"""Names and texts from files, made safe for terminals and pictures.

Tables of short texts, for terminals and for notebooks.
"""
import re


class ShownText(str):
    """A text of several lines, which the prompt of Python and notebooks show as it is."""

    def __repr__(self) -> str:
        return str(self)


def text_table(rows, indent="  "):
    """Rows of texts as lines in columns: the first column is left-aligned, the others right-aligned.

    Examples
    --------
    >>> print(text_table([["", "a"], ["b", "10"]], indent=""))
        a
    b  10
    """
    rows = [[printable(text) for text in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows)]
    return "\n".join((indent + "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])])).rstrip()
                     for row in rows)


def html_table(title, rows):
    """The same table in HTML below a title; the first row and the first column are headers.

    Examples
    --------
    >>> html_table("x < y", [])
    '<p>x &lt; y</p>'
    """
    from html import escape  # imported here, as its table of character names would slow down each start

    if not rows:
        return f"<p>{escape(title)}</p>"

    def line(row, tag):
        cells = "".join(f"<{tag} style='text-align:right'>{escape(text)}</{tag}>" for text in row[1:])
        return f"<tr><th style='text-align:left'>{escape(row[0])}</th>{cells}</tr>"

    body = "".join(line(row, "td") for row in rows[1:])
    return f"<p>{escape(title)}</p><table><thead>{line(rows[0], 'th')}</thead><tbody>{body}</tbody></table>"


def printable(text):
    """`text` on one line without control sequences: characters that do not print are escaped as in Python.

    Examples
    --------
    >>> print(printable("a\\x1b[2Jb\\nc \\u202e é"))
    a\\x1b[2Jb\\nc \\u202e é
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def in_markdown(text):
    """`text` escaped so that Markdown and HTML show it literally: special characters become numeric references.

    Examples
    --------
    >>> in_markdown("<b>a_1</b> at 0.5 s")
    '&#60;b&#62;a&#95;1&#60;&#47;b&#62; at 0.5 s'
    """
    return re.sub(r"[^\w\s,.+-]|_", lambda found: f"&#{ord(found[0])};", printable(text))


def drawn(text):
    """`text` escaped so that Matplotlib draws it literally, with dollars and, in legends, a leading underscore."""
    text = printable(text).replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text
