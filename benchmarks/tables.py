"""Markdown tables of times."""
MISSING = "missing"


def microseconds(timing):
    """Median and quartiles in microseconds; "missing" for None.

    Examples
    --------
    >>> from benchmarks.timing import Timing
    >>> microseconds(Timing(2e-6, 1.9e-6, 2.25e-6, 3, 1)), microseconds(None)
    ('2.00 (1.90-2.25)', 'missing')
    """
    if timing is None:
        return MISSING
    digits = next((d for limit, d in ((10e-6, 2), (1e-3, 1)) if timing.median < limit), 0)
    median, lower, upper = (f"{1e6 * t:.{digits}f}" for t in (timing.median, timing.lower, timing.upper))
    return f"{median} ({lower}-{upper})"


def ratio(slow, fast):
    """How many times faster the second is; "missing" if one of them is.

    Examples
    --------
    >>> from benchmarks.timing import Timing
    >>> ratio(Timing(3e-6, 3e-6, 3e-6, 1, 1), Timing(2e-6, 2e-6, 2e-6, 1, 1))
    '1.50'
    """
    if slow is None or fast is None:
        return MISSING
    return f"{slow.median / fast.median:.2f}"


def markdown(heading, rows):
    """A table with its columns aligned, first column to the left.

    Examples
    --------
    >>> print(markdown(("a", "b"), [("x", "1.0")]))
    | a |   b |
    |:--|----:|
    | x | 1.0 |
    """
    widths = [max(map(len, column)) for column in zip(heading, *rows)]
    padded = [[row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])] for row in (heading, *rows)]
    lines = ["| " + " | ".join(cells) + " |" for cells in padded]
    rule = "|:" + "-" * (widths[0] + 1) + "|" + "".join("-" * (w + 1) + ":|" for w in widths[1:])
    return "\n".join([lines[0], rule, *lines[1:]])
