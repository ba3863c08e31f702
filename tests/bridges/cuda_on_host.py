"""CUDA C++ without a GPU: the same text compiled by g++, whose kernels are loops over states, on NumPy's arrays."""
import ctypes
import hashlib
import shutil
import subprocess

import numpy as np

FLAGS = ("-std=c++17", "-O1", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function",
         "-Wno-unused-parameter")


def gxx():
    return shutil.which("g++")


class HostDevice:
    """What stands for `liedyn.bridges.specialization.cuda_device.CupyDevice`.

    Parameters
    ----------
    folder : Path
        For what is compiled.
    """

    def __init__(self, folder):
        self.folder, self.launched = folder, []

    def compile(self, source):
        path = self.folder / f"{hashlib.sha256(source.encode()).hexdigest()[:16]}.so"
        if not path.exists():
            text = path.with_suffix(".cpp")
            text.write_text(source)
            subprocess.run([gxx(), *FLAGS, str(text), "-o", str(path)], check=True)
        library = ctypes.CDLL(str(path))

        def launch(name, count, arguments):
            self.launched.append((name, count))
            kinds = {np.uint64: ctypes.c_void_p, np.int64: ctypes.c_longlong}
            getattr(library, name)(ctypes.c_longlong(count), *(kinds[type(x)](int(x)) for x in arguments))

        return launch

    array, empty, zeros = staticmethod(np.asarray), staticmethod(np.empty), staticmethod(np.zeros)
    room = staticmethod(lambda: 1 << 20)
    broadcast, host = staticmethod(np.broadcast_to), staticmethod(np.asarray)

    @staticmethod
    def address(x):
        return x.ctypes.data

    @staticmethod
    def like(x, given):
        return x
