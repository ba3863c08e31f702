"""Compiled kernels on disk: compiled once, read by every process that starts later.

`files` reads and writes whole files with checksums, `stamps` says which sources a kernel depends on, and `kernels` is
the cache that Numba asks. Nothing here changes what a kernel is compiled to, so this folder alone is not part of the
stamps: an edit of it makes no compiled kernel stale. If an edit changes what the files contain, count
`files.FORMAT` up.

Where they lie: in ``LIEDYN_CACHE_DIR`` (or Numba's own ``NUMBA_CACHE_DIR``) if that is set, and nowhere else then; by
default in ``__pycache__`` of the package and in the user's cache directory (``XDG_CACHE_HOME``, or ``~/.cache``; none
for a user without a home). All of them are read, also those that cannot be written; new files go to the first that can.
What cannot be kept, because no directory is writable or the disk is full, is compiled in memory, and one `CacheWarning`
of the process says why. ``LIEDYN_CACHE=0`` switches the cache off.

Of processes that need the same kernel at once, one compiles it and the others wait for its file.

A wheel may carry kernels (`liedyn.look.cli.wheel`). They lie in ``_kernels`` of the package, which is read after all of
these and never written.

Every file begins with a checksum of the rest. A file that is not what was written (cut short, changed, a folder, not
readable) is as good as none: the kernel is compiled again and the file replaced. The checksum guards against
accidents, not against people: who can write to the directory can run code in your processes, as with ``__pycache__``.
"""
from liedyn.machine.cache.cache_files import cache_directory
from liedyn.machine.cache.stamps import source_stamp
from liedyn.machine.cache.stored_kernels import cached

__all__ = ["cache_directory", "cached", "source_stamp"]
