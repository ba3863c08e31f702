"""Decorators of other libraries with type annotations: `functools.cache` and Numba's `intrinsic`."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from liedyn.typing import Function


def once(function: Function) -> Function:
    """Decorator: `functools.cache`, annotated to keep the signature of the function."""
    return functools.cache(function)  # type: ignore[return-value]


def intrinsic(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Decorator: Numba's `intrinsic`; callers pass other arguments than the typing function has."""
    from numba import extending

    if function is None:
        return functools.partial(intrinsic, **options)
    return extending.intrinsic(**options)(function) if options else extending.intrinsic(function)
