"""Another process that compiles kernels into the cache, while this one interprets them.

It gets one line for each kernel, from a pipe, and writes files only. It ends with this process, also if that is
killed: the pipe is closed then, and the process that started it is no longer its parent. It has a low priority, and a
session of its own, so that Ctrl-C in a terminal does not reach it.
"""
# mypy: ignore-errors
import atexit
import base64
import contextlib
import importlib
import os
import pickle
import subprocess
import sys
import threading
import time
import warnings

NICE = 10
"""By how much its priority is lower."""
PAUSE = 0.25
"""Seconds between two looks whether its parent is still there."""
IDLE = 60.0
"""Seconds without work after which it ends; it is started again for the next kernel."""


class Background:
    """The process, started when it is asked for something.

    In a forked child there is none, as it belongs to the parent.
    """

    def __init__(self):
        self._process, self._lock, self._is_allowed = None, threading.Lock(), None
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)

    def _forget(self):
        if self._process is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
            self._process.returncode = 0
        self._process, self._lock, self._is_allowed = None, threading.Lock(), False

    def ask(self, dispatcher, kinds):
        """Have a kernel compiled for arguments of these types; False if nobody will."""
        if self._is_allowed is None:
            self._is_allowed = _may_start()
        if not self._is_allowed:
            return False
        with self._lock:
            try:
                what = dispatcher.__module__, dispatcher.__name__, kinds
                line = base64.b64encode(pickle.dumps(what)) + b"\n"
            except Exception:  # types of something that is not known by a name
                return False
            if not self.is_alive():
                if not self._is_allowed:
                    return False
                try:
                    self._process = _started()
                except OSError as error:
                    self._give_up(f"kernels are not compiled in the background, as no process can be started: {error}")
                    return False
            try:
                while line:
                    line = line[self._process.stdin.write(line):]
            except OSError:  # it has ended this moment
                return False
        return True

    def is_alive(self):
        """False if there is none, or if it has ended, with a warning."""
        if self._process is None:
            return False
        status = self._process.poll()
        if status == 0:  # it had nothing to do
            self._process = None
            return False
        if status is not None and self._is_allowed:
            self._give_up(f"the process that compiled kernels in the background ended with status {status}; from now "
                          "on they are compiled where they are needed")
        return status is None

    def _give_up(self, why):
        from liedyn.machine.errors import CacheWarning

        self._is_allowed = False
        warnings.warn(why, CacheWarning, stacklevel=2)


def _may_start():
    """True if kernels that another process compiles can be found, and one can be started from here."""
    from liedyn.machine.cache.cache_files import cache_directory, switched_on

    if os.environ.get("LIEDYN_BACKGROUND", "1") == "0" or not switched_on():
        return False
    multiprocessing = sys.modules.get("multiprocessing.process")
    if multiprocessing and multiprocessing.parent_process() is not None:  # one of many alike
        return False
    is_python = os.path.basename(sys.executable or "").lower().startswith(("python", "pypy"))
    return is_python and not getattr(sys, "frozen", False) and cache_directory() is not None


def _started():
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    path = [package, *(each for each in sys.path if each and each != package)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path), "LIEDYN_INTERPRET": "0", "LIEDYN_QUIET": "1"}
    command = [sys.executable, "-P", "-m", __name__, str(os.getpid())]
    process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, start_new_session=True, bufsize=0)
    atexit.register(_end, process, os.getpid())
    return process


def _end(process, parent):
    if os.getpid() == parent:  # else a forked child ends
        with contextlib.suppress(OSError):
            process.stdin.close()
        if process.poll() is None:
            process.returncode = 0  # it ends without being waited for


# ---- in the other process


class _Saving:
    """The process does not end while it writes a file."""

    def __init__(self):
        from liedyn.machine.cache import stored_kernels

        self._lock, self._write, stored_kernels.write = threading.Lock(), stored_kernels.write, self.write

    def write(self, name, data):
        with self._lock:
            return self._write(name, data)

    def end(self):
        self._lock.acquire()
        os._exit(0)


def _watch(parent, end):
    while os.getppid() == parent:
        time.sleep(PAUSE)
    end()


def _read(lines, end):
    for line in sys.stdin.buffer:
        lines.put(line)
    end()


def _kernel(module, name):
    """A kernel by its names; its module is imported, and what is written at the first call is written."""
    from liedyn.machine.compiled.jit import KERNELS

    found = getattr(importlib.import_module(module), name, None)
    if hasattr(found, "_write"):  # `liedyn.model.calls.recursion`
        found._write()
    return next(each for each in reversed(KERNELS) if (each.__module__, each.__name__) == (module, name))


def _main(parent):
    import queue

    lines, saving = queue.SimpleQueue(), _Saving()
    if hasattr(os, "nice"):
        os.nice(NICE)
    if os.name == "posix":
        threading.Thread(target=_watch, args=(parent, saving.end), daemon=True).start()
    threading.Thread(target=_read, args=(lines, saving.end), daemon=True).start()
    while True:
        try:
            line = lines.get(timeout=IDLE)
        except queue.Empty:
            saving.end()
        with contextlib.suppress(Exception):  # who needs the kernel will compile it, and see the error
            module, name, kinds = pickle.loads(base64.b64decode(line))
            _kernel(module, name).compile(kinds)


if __name__ == "__main__":
    _main(int(sys.argv[1]))
