"""Builds a wheel for Linux with compiled kernels: ``python -m liedyn.look.cli.wheel``, in a checkout.

    python -m liedyn.look.cli.wheel [--levels x86-64-v3 x86-64-v4] [--out dist] [--run FILE]

pip makes the usual wheel of Python files. For each processor level (`compiled.levels`) a process then makes all calls
of `liedyn warmup` from it, with an empty cache and the compiler set to that level. The compiled kernels go into the
wheel as ``liedyn/_kernels``, a directory of cache files, which `liedyn.machine.cache` reads and never writes. It takes
seven minutes of processor time for each level.

A kernel is used if everything that determines its machine code is the same as at build time: its sources,
versions of Python, Numba and llvmlite, options of Numba, and the processor level. Otherwise it is compiled as
usual. The wheel is for one version of Python, and requires no other versions of other packages.

Compiling a kernel includes running it, so the machine has to support each level. `--run` names a program whose
kernels are included instead of those of `liedyn warmup`: those of an application, on its own robots.
"""
import argparse
import base64
import contextlib
import hashlib
import os
import runpy
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from pathlib import Path

from numba.core import ir

from liedyn.machine.cache.cache_files import CARRIED
from liedyn.machine.compiled.cpu_targets import LEVEL, LEVELS
from liedyn.machine.errors import LiedynError

NOT_COPIED = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "build", "dist", "tests", "benchmarks")
COMPILE = "from liedyn.look.cli.wheel import compile_kernels; compile_kernels({program!r})"


def build(source=".", out="dist", levels=tuple(LEVELS), program=None):
    """Make the wheel.

    Parameters
    ----------
    source : path
        The checkout.
    out : path
        The folder for the wheel.
    levels : sequence of str
        Processor levels.
    program : path, optional
        A Python file whose kernels are included; by default those of `liedyn warmup`.

    Returns
    -------
    Path
        The wheel.

    Raises
    ------
    LiedynError
        There are no levels for this machine, or it does not support a requested one; pip or a process fails.
    """
    can_run = list(LEVELS)[list(LEVELS).index(LEVEL):] if LEVEL else []
    if sys.platform != "linux" or not set(levels) <= set(can_run):
        raise LiedynError(f"kernels for {', '.join(levels)} cannot be compiled here: this is {sys.platform} on "
                          f"{LEVEL or 'another processor'}")
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        plain = _plain_wheel(Path(source), folder)
        package = folder / "package"
        with zipfile.ZipFile(plain) as archive:
            archive.extractall(package)
        running = [_begin(level, package, folder / level, program and Path(program).resolve()) for level in levels]
        failed = [level for level, process in zip(levels, running) if process.wait()]
        if failed:
            raise LiedynError(f"compiling for {' and '.join(failed)} has failed")
        python, platform = sys.implementation.cache_tag.replace("cpython-", "cp"), sysconfig.get_platform()
        tag = f"{python}-none-{platform.replace('-', '_')}"
        wheel = out / plain.name.replace("py3-none-any", tag)
        files = {file.name: file for level in levels for file in sorted((folder / level).glob("*/*"))}
        _write(wheel, plain, tag, files)
    return wheel


def _plain_wheel(source, folder):
    """The wheel that pip makes, from a copy: leftovers of earlier builds in the checkout would get into it."""
    copy = folder / "source"
    shutil.copytree(source, copy, symlinks=True, ignore=NOT_COPIED)
    done = subprocess.run([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, copy])
    if done.returncode:
        raise LiedynError("pip could not make a wheel")
    plain, = folder.glob("*.whl")
    return plain


def _begin(level, package, cache, program):
    """Starts a process that compiles the kernels of a package for a level into a cache."""
    given = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "LIEDYN_"))}
    given |= {"NUMBA_CPU_NAME": level, "NUMBA_CPU_FEATURES": "", "LIEDYN_CACHE_DIR": str(cache), "LIEDYN_QUIET": "1",
              "PYTHONPATH": str(package), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.Popen([sys.executable, "-c", COMPILE.format(program=program and str(program))], env=given,
                            cwd=package)


def compile_kernels(program):
    """Calls everything that is to be compiled; runs in a process of its own."""
    with _relative_places():
        from liedyn.machine.program.handover import compile_always
        compile_always()
        if program:
            runpy.run_path(program, run_name="__main__")
        else:
            from liedyn.look.cli.warmup import warmup
            warmup(jobs=1, here=True)


@contextlib.contextmanager
def _relative_places():
    """File names in error messages of kernels become relative: without the folders of this machine."""
    folders = sorted({os.path.join(os.path.abspath(each), "") for each in sys.path}, key=len, reverse=True)
    original = ir.Loc.__init__

    def relative(self, filename, *rest, **options):
        inside = next(filter(filename.startswith, folders), "")
        original(self, filename.removeprefix(inside), *rest, **options)

    ir.Loc.__init__ = relative
    try:
        yield
    finally:
        ir.Loc.__init__ = original


def _write(wheel, plain, tag, files):
    """Writes the plain wheel plus files of the cache, for one kind of machine."""
    with zipfile.ZipFile(plain) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    about = next(name for name in entries if name.endswith(".dist-info/WHEEL"))
    entries[about] = entries[about].replace(b"Root-Is-Purelib: true", b"Root-Is-Purelib: false").replace(
        b"Tag: py3-none-any", f"Tag: {tag}".encode())
    record = about.replace("WHEEL", "RECORD")
    del entries[record]
    entries |= {f"{CARRIED.parent.name}/{CARRIED.name}/{name}": file.read_bytes() for name, file in files.items()}
    lines = [f"{name},sha256={_checksum(data)},{len(data)}\n" for name, data in entries.items()]
    entries[record] = "".join([*lines, f"{record},,\n"]).encode()
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, data in entries.items():
            archive.writestr(name, data)


def _checksum(data):
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def main(arguments=None):
    """Run the command; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m liedyn.look.cli.wheel", description=__doc__.splitlines()[0])
    parser.add_argument("--levels", nargs="+", choices=LEVELS, default=list(LEVELS), help="levels of processors")
    parser.add_argument("--out", default="dist", metavar="FOLDER", help="where the wheel goes; default: dist")
    parser.add_argument("--run", metavar="FILE", help="a program whose kernels are carried instead of all")
    options = parser.parse_args(arguments)
    try:
        wheel = build(out=options.out, levels=options.levels, program=options.run)
    except LiedynError as error:
        print(f"liedyn: {error}", file=sys.stderr)
        return 1
    print(f"{wheel}: {wheel.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
