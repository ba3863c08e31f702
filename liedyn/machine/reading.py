"""Reading of regular files only: a FIFO, device or folder, which could block or never end, is an error."""
import errno
import os
import stat

LARGEST = 64 * 2**20
"""Size in bytes of the largest file that is read."""
USUAL = 2**16
"""Size in bytes of most files."""
_FLAGS = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)


def open_regular(path, buffering=-1):
    """A regular file opened to read bytes; OSError if there is none, or it is not a regular file."""
    _require_regular(os.stat(path))  # tested before opening, as opening alone may trigger a device
    handle = os.open(path, _FLAGS)
    try:
        _require_regular(os.fstat(handle))
        return open(handle, "rb", buffering)
    except BaseException:
        os.close(handle)
        raise


def read_regular(path, most=LARGEST):
    """All bytes of a regular file; OSError also if they are more than `most`."""
    with open_regular(path) as file:
        data = file.read(USUAL)
        if len(data) == USUAL:  # room for the largest file takes longer than to read a usual one
            data += file.read(max(0, most + 1 - USUAL))
    if len(data) > most:
        raise OSError(errno.EFBIG, f"larger than {most / 2**20:g} MiB")
    return data


def _require_regular(state):
    if stat.S_ISDIR(state.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(state.st_mode):
        what = {stat.S_IFIFO: "a FIFO", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device", stat.S_IFSOCK: "a socket"}
        raise OSError(errno.EINVAL, f"{what.get(stat.S_IFMT(state.st_mode), 'something else')}, not a regular file")
