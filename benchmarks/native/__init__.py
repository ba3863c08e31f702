"""The yardstick: Pinocchio's own C++ algorithms compiled for this machine, looped over states without Python.

`trees.cpp`, `loops.cpp` and `second.cpp` are compiled when they are first asked for, with ``g++ -O3 -march=native`` (or
the level of processors that is benchmarked) against the headers that come with the wheels of Pinocchio and of Eigen or
CasADi, which has Eigen's headers in it (`pip install pin cmeel-eigen` or `pip install pin casadi`; some minutes and
4 GB each), and kept in a cache directory. `codegen.cpp` is Pinocchio's own code generation (`pip install cmeel-cppad
cmeel-cppadcodegen`). Where there is no compiler or no header the peer is missing, and says why.
"""
import ctypes
import functools
import hashlib
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from numba import config

from benchmarks.errors import MissingPeer, SlowCompilerError
from liedyn.machine.compiled.cpu_targets import LEVELS

HERE = Path(__file__).resolve().parent
MARCH = f"-march={config.CPU_NAME if config.CPU_NAME in LEVELS else 'native'}"
FLAGS = ("-O3", MARCH, "-std=c++17", "-DNDEBUG", "-fPIC", "-shared", "-w", "-fopenmp", "-fno-gnu-unique",
         "-DEIGEN_DONT_PARALLELIZE",  # threads share the states, not the products of matrices
         "-Wl,-Bsymbolic",  # the wheel of Pinocchio in the same process has functions of the same names
         "-DBOOST_MPL_LIMIT_LIST_SIZE=30", "-DBOOST_MPL_LIMIT_VECTOR_SIZE=30",
         "-DBOOST_MPL_CFG_NO_PREPROCESSED_HEADERS", "-DBOOST_FUSION_INVOKE_MAX_ARITY=12")
HEADERS = ("pinocchio/multibody.hpp", "eigen3/Eigen/Core")
"""Of what is needed, those that tell versions from each other."""


def cache_directory():
    """Where compiled peers are kept: beside the user's compiled kernels, whatever version of liedyn they are of."""
    chosen = os.environ.get("LIEDYN_CACHE_DIR") or os.environ.get("NUMBA_CACHE_DIR")
    base = Path(chosen) if chosen else Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    return base / "liedyn_benchmarks"


def compiler(name):
    """Path of a compiler.

    Raises
    ------
    MissingPeer
        It is not installed.
    """
    found = shutil.which(name)
    if found is None:
        raise MissingPeer(f"no {name}")
    return found


@functools.cache
def library(name):
    """A library of this directory, compiled if it is not in the cache, or the MissingPeer that says why there is none.

    Parameters
    ----------
    name : str
        "trees", "loops", "second" or "codegen".

    Returns
    -------
    ctypes.CDLL

    Raises
    ------
    MissingPeer
        No compiler, no headers, or they do not fit together.
    """
    command, folders = compiler("g++"), _header_folders()
    more = ("cppad/cg.hpp",) if name == "codegen" else ()
    for needed in (*HEADERS, "boost/fusion/container/vector.hpp", *more):
        if not any((folder / needed).exists() for folder in folders):
            raise MissingPeer(f"no header {needed}")
    target = cache_directory() / f"{name}-{_stamp(name, command, folders)}.so"
    if not target.exists():
        places = [f"-I{folder}{each}" for folder in folders for each in ("", "/eigen3")]
        compile_to(target, [command, *FLAGS, *places, str(HERE / f"{name}.cpp"), "-ldl"])
    return ctypes.CDLL(str(target))


def compile_to(target, command, longest=None):
    """Run a compiler; the result appears under its name only when it is whole.

    Parameters
    ----------
    target : Path
    command : list of str
        Without its output.
    longest : int, optional
        Seconds of processor time after which it is ended.

    Raises
    ------
    MissingPeer
        It fails.
    SlowCompilerError
        It takes longer.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished, name = target.with_suffix(f".{os.getpid()}.so"), Path(command[0]).name
    print(f"... compiling {target.name}", file=sys.stderr, flush=True)
    limited = () if longest is None else ("sh", "-c", f'ulimit -t {longest} && exec "$@"', "sh")
    before = _seconds_of_children()
    done = subprocess.run([*limited, *command, "-o", str(unfinished)], capture_output=True, text=True)
    if done.returncode:
        unfinished.unlink(missing_ok=True)
        if longest is not None and _seconds_of_children() - before > 0.95 * longest:
            raise SlowCompilerError(f"{name} takes more than {longest} s", longest)
        last = (done.stderr.strip().splitlines() or ["killed"])[-1]
        raise MissingPeer(f"{name} fails: {last[:100]}")
    unfinished.rename(target)


def _seconds_of_children():
    """Processor time of processes that have been waited for, and of theirs."""
    times = os.times()
    return times.children_user + times.children_system


def _header_folders():
    """Where wheels have left headers; CasADi's come last, as only its copy of Eigen is of use."""
    places = [Path(place) / "cmeel.prefix" / "include" for place in (sysconfig.get_paths()["purelib"], *sys.path)]
    casadi = importlib.util.find_spec("casadi")
    if casadi is not None:
        places.append(Path(casadi.origin).parent / "include")
    return [place for place in dict.fromkeys(places) if place.exists()]


def _stamp(name, command, folders):
    digest = hashlib.sha256(" ".join((*FLAGS, *map(str, folders), platform.processor())).encode())
    for path in (HERE / "model.hpp", HERE / f"{name}.cpp"):
        digest.update(path.read_bytes())
    for header in HEADERS:
        digest.update(next(folder / header for folder in folders if (folder / header).exists()).read_bytes())
    version = subprocess.run([command, "--version"], capture_output=True, text=True).stdout
    cpu = subprocess.run([command, MARCH, "-Q", "--help=target"], capture_output=True, text=True).stdout
    digest.update((version + cpu).encode())
    return digest.hexdigest()[:16]
