"""What is computed once and stored: results for a robot, and attributes of a result that are rarely read."""
# mypy: ignore-errors

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any, Self

    from liedyn.typing import Function


def remembered(function: Function) -> Function:
    """Decorator: a function's result for a robot is stored in `robot._memo`, by its name and other arguments."""
    name = f"{function.__module__}.{function.__qualname__}"

    @functools.wraps(function)
    def look_up(robot, *arguments):
        memo, key = robot._memo, (name, *arguments)
        if key not in memo:
            memo[key] = function(robot, *arguments)
        return memo[key]

    return look_up


class LazyResult:
    """Base of frozen dataclasses of which some fields are computed when they are first read.

    `_later`, of the class or among the attributes of one result, is a tuple: a function, and arguments that it takes
    after the name of the field and the result. The function returns a dict with that field, and perhaps others.
    """

    _later: Any = (lambda name, result: {},)

    @classmethod
    def of(cls, known: dict[str, Any]) -> Self:
        """A result from a dict of attributes, four times as fast as the constructor; the rest is computed later."""
        made = object.__new__(cls)
        object.__setattr__(made, "__dict__", known)
        return made

    def __getattr__(self, name: str) -> Any:
        if name in type(self).__dataclass_fields__:
            read, *given = self._later
            self.__dict__.update(read(name, self, *given))
            if name in self.__dict__:
                return self.__dict__[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __getstate__(self) -> Any:  # everything, without the robot
        return {name: getattr(self, name) for name in self.__dataclass_fields__}
