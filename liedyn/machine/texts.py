"""Names and texts from files, made safe for terminals and pictures."""
import re


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
