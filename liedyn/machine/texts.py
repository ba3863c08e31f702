"""Names and texts of files on their way to terminals and pictures."""
import re


def printable(text):
    """`text` on one line, with nothing in it that a terminal obeys: what does not print is escaped as Python has it.

    Examples
    --------
    >>> print(printable("a\\x1b[2Jb\\nc \\u202e é"))
    a\\x1b[2Jb\\nc \\u202e é
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def in_markdown(text):
    """`text` as pages of Markdown and HTML show it letter by letter: what could mean something there is a number.

    Examples
    --------
    >>> in_markdown("<b>a_1</b> at 0.5 s")
    '&#60;b&#62;a&#95;1&#60;&#47;b&#62; at 0.5 s'
    """
    return re.sub(r"[^\w\s,.+-]|_", lambda found: f"&#{ord(found[0])};", printable(text))


def drawn(text):
    """`text` as Matplotlib draws it letter by letter: dollars begin no formula, and a legend leaves none out."""
    text = printable(text).replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text
