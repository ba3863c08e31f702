"""Batches of states on a device: memory for results and between kernels, and launches."""
import numpy as np

FEW = 8
"""Results of so few numbers are written with one state behind the other by the kernels themselves."""
SLAB = 524288
"""States that are computed at a time where kernels hand on numbers, or results are transposed."""


def strided(device, x):
    """Address of a (count, n) array, and the distances of the numbers of a state and of states."""
    size = x.dtype.itemsize
    return device.address(x), x.strides[1] // size, x.strides[0] // size


class DeviceBatch:
    """The launches of one function on many states.

    Parameters
    ----------
    device : CupyDevice
    function : CudaFunction
    launch : callable
        What `CupyDevice.compile` returns.
    dtype : numpy.dtype
    """

    def __init__(self, device, function, launch, dtype):
        self.device, self.function, self.launch, self.dtype = device, function, launch, np.dtype(dtype)

    def run(self, given, rows):
        """Results of all states.

        Parameters
        ----------
        given : dict
            Arrays (count, n) of the inputs, by name.
        rows : bool
            Whether the numbers of a state are neighbours in the memory of results, or numbers of states.

        Returns
        -------
        results : dict
            Arrays (count, size).
        ok : array of uint8, shape (count,)
        failed : array of uint32, shape (1,)
        """
        device, function = self.device, self.function
        count = len(next(iter(given.values())))
        results = {x: device.empty((count, size), self.dtype) if rows else device.empty((size, count), self.dtype).T
                   for x, size in function.results.items()}
        ok, failed = device.empty((count,), np.uint8), device.zeros((1,), np.uint32)
        staged = {x for x, size in function.results.items() if rows and size > FEW}
        inner = function.work | {x: function.results[x] for x in staged}
        slab = min(count, SLAB) if inner else count
        places = {x: strided(device, array) for x, array in (given | results).items()}
        memory = {x: device.empty((size, slab), self.dtype) for x, size in inner.items()}
        for begin in range(0, count, max(slab, 1)):
            part = min(slab, count - begin)
            at = {x: (address + begin * next_ * self.dtype.itemsize, step, next_)
                  for x, (address, step, next_) in places.items()}
            inside = {x: (device.address(array), slab, 1) for x, array in memory.items()}
            tail = (np.uint64(device.address(ok) + begin), np.uint64(device.address(failed)))
            for kernel, arrays in function.launches:
                self.launch(kernel, part, self._arguments(at | inside, arrays) + tail)
            for x in staged:
                self.launch("liedyn_transpose_" + self.dtype.name, part, (np.int64(function.results[x]),
                            *self._arguments(inside, (x,)), *self._arguments(at, (x,))))
        return results, ok, failed

    @staticmethod
    def _arguments(places, arrays):
        return tuple(number for x in arrays for number in (
            np.uint64(places[x][0]), np.int64(places[x][1]), np.int64(places[x][2])))
