"""Functions of users, compiled by Numba itself, and kept in the cache until what they call or their own file changes.

Numba's own cache looks at the file of a function only, and so would go on with kernels that are no longer there.
"""
from numba import njit

from liedyn.machine.cache import cached


def kept(function):
    """A function with a name of its own, in this state of its file and of all that this imports from the package."""
    return cached(njit(function), function)
