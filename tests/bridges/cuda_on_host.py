"""CUDA C++ without a GPU: the same text compiled by g++, whose kernels are loops over states, on NumPy's arrays."""
import ctypes
import hashlib
import shutil

import numpy as np
from c_programs import kept_program

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
        text = self.folder / f"{hashlib.sha256(source.encode()).hexdigest()[:16]}.cpp"
        text.write_text(source)
        library = ctypes.CDLL(str(kept_program([gxx()], FLAGS, [text])))

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
