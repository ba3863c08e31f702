"""Integration methods, one per file. A new one is a file with its `METHODS`, and its name in FILES."""

from __future__ import annotations

import textwrap
from importlib import import_module
from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    from liedyn.typing import Function

FILES = (
    "classical",
    "gauss",
    "implicit",
    "generalized_alpha",
    "moreau",
    "adaptive",
)
METHODS: dict[str, Any] = {
    method.name: method for file in FILES for method in import_module(f"{__name__}.{file}").METHODS}
"""All methods by name, in the order of `simulate`'s docstring."""


def described(function: Function) -> Function:
    """Inserts names and summaries of the methods into a function's docstring, in place of the word METHODS."""
    lines = []
    for summary, some in groupby(METHODS.values(), lambda method: method.summary):
        text = f"{', '.join([f'``{each.name!r}``' for each in some])}: {summary}."
        lines += textwrap.wrap(text, 110, break_on_hyphens=False)
    function.__doc__ = function.__doc__ and function.__doc__.replace("METHODS", "\n        ".join(lines))
    return function
