"""Markdown tables of times: a time is (median, lower quartile, upper quartile) in seconds, None where it is missing."""
MISSING = "missing"


def microseconds(timing):
    """Median and quartiles in microseconds; "missing" for None.

    Examples
    --------
    >>> microseconds((2e-6, 1.9e-6, 2.25e-6)), microseconds(None)
    ('2.00 (1.90-2.25)', 'missing')
    """
    if timing is None:
        return MISSING
    digits = next((d for limit, d in ((10e-6, 2), (1e-3, 1)) if timing[0] < limit), 0)
    median, lower, upper = (f"{1e6 * t:.{digits}f}" for t in timing)
    return f"{median} ({lower}-{upper})"


def median(timing):
    """The median alone, in microseconds.

    Examples
    --------
    >>> median((2e-6, 1.9e-6, 2.25e-6))
    '2.00'
    """
    return microseconds(timing).split(" ")[0]


def quotient(slow, fast):
    """How many times faster the second is, None if one of them is missing.

    Examples
    --------
    >>> quotient((3e-6, 3e-6, 3e-6), (2e-6, 2e-6, 2e-6)), quotient(None, (1.0, 1.0, 1.0))
    (1.5, None)
    """
    return None if slow is None or fast is None else slow[0] / fast[0]


def ratio(slow, fast):
    """The same as text; "missing" if one of them is.

    Examples
    --------
    >>> ratio((3e-6, 3e-6, 3e-6), (2e-6, 2e-6, 2e-6))
    '1.50'
    """
    value = quotient(slow, fast)
    return MISSING if value is None else f"{value:.2f}" if value < 100 else f"{value:.0f}"


def per_second(timing):
    """Operations per second, with three digits.

    Examples
    --------
    >>> per_second((2e-6, 2e-6, 2e-6)), per_second((4e-8, 4e-8, 4e-8)), per_second((2e-3, 2e-3, 2e-3))
    ('500 k', '25.0 M', '500')
    """
    if timing is None:
        return MISSING
    rate = 1.0 / timing[0]
    scale, letter = next(((s, name) for s, name in ((1e6, " M"), (1e3, " k")) if rate >= s), (1.0, ""))
    digits = max(0, 2 - int(rate / scale >= 10) - int(rate / scale >= 100))
    return f"{rate / scale:.{digits}f}{letter}" if letter else f"{rate:.0f}"


def markdown(heading, rows, text=1):
    """A table with its columns aligned: the first ones, of text, to the left, and the others to the right.

    Examples
    --------
    >>> print(markdown(("a", "b"), [("x", "1.0")]))
    | a |   b |
    |:--|----:|
    | x | 1.0 |
    """
    widths = [max(map(len, column)) for column in zip(heading, *rows)]
    padded = [[*map(str.ljust, row[:text], widths), *map(str.rjust, row[text:], widths[text:])]
              for row in (heading, *rows)]
    lines = ["| " + " | ".join(cells) + " |" for cells in padded]
    rule = "|" + "".join(":" + "-" * (w + 1) + "|" for w in widths[:text])
    return "\n".join([lines[0], rule + "".join("-" * (w + 1) + ":|" for w in widths[text:]), *lines[1:]])
