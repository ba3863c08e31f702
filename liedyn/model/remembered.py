"""Results that are computed once for a robot and stored with it."""
# mypy: ignore-errors

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from liedyn.typing import Function


def remembered(function: Function) -> Function:
    """Decorator: a function's result for a robot is stored in `robot._memo`, by its name and other arguments."""
    @functools.wraps(function)
    def look_up(robot, *arguments):
        key = f"{function.__module__}.{function.__qualname__}", *arguments
        if key not in robot._memo:
            robot._memo[key] = function(robot, *arguments)
        return robot._memo[key]

    return look_up
