"""Gains and reference signals of controllers, checked."""

import numpy as np

from liedyn.machine.arguments import floats
from liedyn.machine.errors import InputError, said, shown
from liedyn.model.calls.boundary import is_usable
from liedyn.model.travel import Travelling


def gain(name, value, size):
    """A gain matrix (size, size) from a number, one number for each coordinate, or a matrix.

    Raises InputError if a shape does not fit, or an entry is not finite.
    """
    G = floats(name, value)
    if G.shape not in ((), (size,), (size, size)):
        raise InputError(f"{name} must be a number or have shape ({size},) or ({size}, {size}), got {G.shape}")
    if not is_usable(G).all():
        raise InputError(f"{name} is not finite, or too large: {shown(G.tolist())}")
    return G if G.ndim == 2 else np.diag(np.broadcast_to(G, (size,)))


def require_stable(gains, system):
    """Requires gains A_0, A_1, ... for which every solution of A_0 x + A_1 x' + ... + x^(n) = 0 decays.

    Raises InputError if an eigenvalue does not have a negative real part.
    """
    matrices, size = list(gains.values()), len(next(iter(gains.values())))
    companion = np.eye(size * len(matrices), k=size)
    companion[-size:] = -np.hstack(matrices)
    slowest = np.linalg.eigvals(companion).real.max(initial=-np.inf)
    if not slowest < 0.0:
        values = ", ".join(f"{name} = {G.diagonal().tolist() if (G == np.diag(G.diagonal())).all() else G.tolist()}"
                           for name, G in reversed(gains.items()))
        raise InputError(f"gains {values} are not stable: {system} has an eigenvalue with real part {slowest:.3g}")


class Signal(Travelling):
    """A function of t that returns one finite array for each of `sizes`.

    `wanted` is such a function, or the constant first array; then all others are zero.

    Raises
    ------
    InputError
        A shape does not fit, or an entry is not finite; a function raises it when it is called.
    """

    def __init__(self, name, wanted, sizes):
        self.name, self.function, self.sizes = name, wanted if callable(wanted) else None, sizes
        self.first = None if callable(wanted) else (wanted, *(np.zeros(size) for size in sizes[1:]))
        self.first = self._fitted(0.0)

    def __call__(self, t):
        return self.first if self.function is None else self._fitted(t)

    def _fitted(self, t):
        name, sizes, found = self.name, self.sizes, self.first
        if self.function is not None:
            try:
                found = self.function(t)
            except Exception as error:
                raise InputError(f"{name} fails with {said(error)} at t = {t:g}") from error
            found = found if len(sizes) > 1 else (found,)
        found = found if isinstance(found, tuple | list) else list(np.atleast_1d(floats(name, found)))
        if len(found) != len(sizes):
            raise InputError(f"{name} must return {len(sizes)} arrays (position, velocity, acceleration), "
                             f"got {len(found)} at t = {t:g}")
        arrays = [np.atleast_1d(floats(name, x)) for x in found]
        for x, size in zip(arrays, sizes):
            if x.shape != (size,):
                raise InputError(f"{name} must have arrays of shape {', '.join(f'({n},)' for n in sizes)}, got "
                                 f"{', '.join(str(x.shape) for x in arrays)} at t = {t:g}")
            if not is_usable(x).all():
                raise InputError(f"{name} is not finite at t = {t:g}, or too large: {shown(x.tolist())}")
        return arrays if len(sizes) > 1 else arrays[0]
