"""Compiled kernels on disk: compiled once, read by every process that starts later.

`cache_files` reads and writes whole files with checksums, `stamps` computes which sources a kernel depends on, and
`stored_kernels` is the cache in Numba's protocol. Nothing here changes what a kernel is compiled to, so this folder
alone is left out of the stamps: an edit of it makes no compiled kernel stale. If an edit changes the content of the
files, increase `cache_files.FORMAT`.

Directories: if ``LIEDYN_CACHE_DIR`` (or Numba's own ``NUMBA_CACHE_DIR``) is set, that one only; otherwise
``__pycache__`` of the package and the user's cache directory (``XDG_CACHE_HOME``, or ``~/.cache``; none for a user
without a home). All of them are read, also those that cannot be written; new files go to the first writable one. If no
directory is writable or the disk is full, kernels are compiled in memory only, and one `CacheWarning` per process gives
the cause. ``LIEDYN_CACHE=0`` switches the cache off.

If several processes need the same kernel at once, one compiles it and the others wait for its file.

A wheel may contain kernels (`liedyn.look.cli.wheel`), in ``_kernels`` of the package. That directory is read last and
never written.

Every file begins with a checksum of the rest. A file that is damaged (cut short, changed, a folder, not readable) is
ignored: the kernel is compiled again and the file replaced. The checksum guards against accidents, not against people:
who can write to the directory can run code in your processes, as with ``__pycache__``.
"""
from liedyn.machine.cache.cache_files import cache_directory
from liedyn.machine.cache.stamps import source_stamp
from liedyn.machine.cache.stored_kernels import cached

__all__ = ["cache_directory", "cached", "source_stamp"]
