"""Functions of a GPU whose programs are too long: the kernel's own body for each state, compiled by numba-cuda."""
import contextlib
import importlib.util
import math

import numba
import numpy as np
from numba import config

from liedyn.machine.errors import LiedynError
from liedyn.model.calls.recursion import RECURSIONS

THREADS = 128
"""Of a block."""
ROOM = 1 << 32
"""Bytes of memory for workspaces, at most: as many states as have room are computed at a time."""


def has_numba_cuda():
    """Whether there is what compiles kernels' bodies for a GPU, or a simulator of it."""
    return bool(config.ENABLE_CUDASIM) or importlib.util.find_spec("numba_cuda") is not None


def require_numba_cuda():
    """Raises LiedynError if there is not."""
    if not has_numba_cuda():
        raise LiedynError("functions that are too long for one program need numba-cuda on a GPU: "
                          "pip install 'liedyn[cuda]' (or numba-cuda[cu13], for CUDA 13)")


@contextlib.contextmanager
def numba_cuda():
    """Within this context numba-cuda is imported and used: LiedynError, with the cause, if it does not fit what else is
    installed."""
    require_numba_cuda()
    try:
        yield
    except (ImportError, AttributeError) as error:
        raise LiedynError(f"numba-cuda, which compiles functions that are too long for one program, does not work with "
                          f"NumPy {np.__version__} and Numba {numba.__version__} here: {type(error).__name__}: "
                          f"{error}") from error


class CudaBody:
    """A function of the open tree for many states on a GPU, each with a workspace in its memory.

    Parameters
    ----------
    robot : Robot
    name : str
        Of a recursion (`liedyn.model.calls.recursion`).

    Attributes
    ----------
    inputs, results : dict
        Sizes of arrays, by name.
    """

    def __init__(self, robot, name):
        declared, extents = RECURSIONS[name], {"nq": robot.nq, "nv": robot.nv}
        self._packed, self._numbers = robot.packed, None
        self.inputs = {x: extents["nq" if x == "q" else "nv"] for x in declared.inputs if x != "f_ext"}
        sizes = {x: math.prod(extents.get(k) or int(k) for k in shape)
                 for x, shape in (declared.scratch | declared.results).items()}
        self.results = {x: sizes[x] for x in declared.results}
        self.work = {x: sizes[x] for x in declared.scratch}
        if declared.size is not None:
            self.work["work"] = int(declared.size(robot.packed))
        with numba_cuda():
            from numba import cuda

            from liedyn.bridges.specialization.cuda_entry import entry

            kernel, signature = entry(declared.kernel, tuple(self.inputs), tuple(self.work), tuple(self.results))
            self._kernel = cuda.jit(signature)(kernel)

    def run(self, device, given, dtype, rows):
        """Results of all states, as `DeviceBatch.run` gives them; computed in double precision.

        Parameters
        ----------
        device : CupyDevice
        given : dict
            Arrays (count, n) of the inputs, by name.
        dtype : str
            Of the results.
        rows : bool
            Whether the numbers of a state are neighbours in the memory of results, or numbers of states.
        """
        count = len(next(iter(given.values())))
        given = [x.astype(np.float64, copy=False) for x in given.values()]
        results = {x: device.empty((count, size), np.float64) if rows else device.empty((size, count), np.float64).T
                   for x, size in self.results.items()}
        ok, failed = device.zeros((count,), np.uint8), device.zeros((1,), np.uint32)
        self._numbers = self._numbers or [device.array(x) for x in (*self._packed, np.empty(0))]
        slab = max(1, min(count, min(ROOM, device.room()) // (8 * sum(self.work.values()))))
        work = [device.empty((size, slab), np.float64).T for size in self.work.values()]
        for begin in range(0, count, slab):
            end = min(begin + slab, count)
            self._kernel[(end - begin + THREADS - 1) // THREADS, THREADS](
                *self._numbers, begin, end, *given, *work, *results.values(), ok, failed)
        return {x: array.astype(dtype, copy=False) for x, array in results.items()}, ok, failed
