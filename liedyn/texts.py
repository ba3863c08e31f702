"""Names and texts of files on their way to terminals and pictures."""


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


def drawn(text):
    """`text` as Matplotlib draws it letter by letter: dollars begin no formula, and a legend leaves none out."""
    text = printable(text).replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text
