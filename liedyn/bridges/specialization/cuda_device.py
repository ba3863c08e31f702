"""A GPU through CuPy: compiling, memory, launches, and arrays of other libraries without copies."""
import importlib

import numpy as np

from liedyn.machine.errors import InputError, LiedynError

BLOCK = 128
"""Threads of a block."""


class CupyDevice:
    """The current device of CuPy."""

    def __init__(self):
        try:
            cupy = importlib.import_module("cupy")
        except ImportError:
            raise LiedynError(
                "device='cuda' needs CuPy: pip install 'liedyn[cuda]' (or cupy-cuda13x, for CUDA 13)") from None
        self._cupy = cupy

    def compile(self, source):
        """A function that launches kernels of a source by name."""
        module = self._cupy.RawModule(code=source, options=("-std=c++17", f"-DLIEDYN_BLOCK={BLOCK}"))
        module.compile()
        kernels = {}

        def launch(name, count, arguments):
            if name not in kernels:
                kernels[name] = module.get_function(name)
            kernels[name](((count + BLOCK - 1) // BLOCK,), (BLOCK,), (np.int64(count), *arguments))

        return launch

    def array(self, x):
        """An array of any library on this device, without a copy; NumPy's are copied to it."""
        if isinstance(x, self._cupy.ndarray):
            return x
        if hasattr(x, "__dlpack__") and not isinstance(x, np.ndarray):
            try:
                return self._cupy.from_dlpack(x)
            except (BufferError, RuntimeError, TypeError) as error:
                raise InputError(f"an argument cannot be used on the GPU: {error}") from None
        return self._cupy.asarray(x)

    def empty(self, shape, dtype):
        return self._cupy.empty(shape, dtype)

    def zeros(self, shape, dtype):
        return self._cupy.zeros(shape, dtype)

    def room(self):
        """Bytes of memory that may be used for a while: half of what is free."""
        return (self._cupy.cuda.Device().mem_info[0] + self._cupy.get_default_memory_pool().free_bytes()) // 2

    def broadcast(self, x, shape):
        return self._cupy.broadcast_to(x, shape)

    def host(self, x):
        """A NumPy array; waits for the device."""
        return self._cupy.asnumpy(x)

    @staticmethod
    def address(x):
        return x.data.ptr

    def like(self, x, given):
        """A result as an array of the library of an argument, without a copy."""
        library = type(given).__module__.split(".")[0]
        if library == "torch":
            return importlib.import_module("torch").from_dlpack(x)
        if library in ("jax", "jaxlib"):
            return importlib.import_module("jax.dlpack").from_dlpack(x)
        return x
