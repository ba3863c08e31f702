"""Levels of x86-64 processors for which kernels can be compiled ahead, and the width of a register.

A processor of a level runs code compiled for that level, so a wheel can contain kernels for a few levels
(`liedyn.look.cli.wheel`). Kernels are written for registers of eight doubles or of four, and the width belongs to the
level: code for x86-64-v3 with vectors of eight would split each register in two.

``NUMBA_CPU_NAME=x86-64-v3 NUMBA_CPU_FEATURES=`` in the environment selects a level below that of the processor.
"""
# mypy: ignore-errors
import itertools

from llvmlite import binding
from numba.core import config

LEVELS = {
    "x86-64-v4": ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"),
    "x86-64-v3": ("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"),
}
"""Features of each level that the next lower one, listed after it, lacks (System V ABI, AMD64 supplement, 3.1.1)."""


def _features():
    """Names of the processor features that Numba uses."""
    if not config.ENABLE_AVX:
        return set()
    if config.CPU_FEATURES is None:
        return {name for name, is_there in binding.get_host_cpu_features().items() if is_there}
    return {name[1:] for name in config.CPU_FEATURES.split(",") if name.startswith("+")}


def _level(name, features):
    """The highest level of a processor with this LLVM name and these features; None if there is none."""
    if name in LEVELS:  # the features that belong to a level's name are not listed
        features = features.union(*[LEVELS[each] for each in list(LEVELS)[list(LEVELS).index(name):]])
    passed = list(itertools.takewhile(lambda level: features.issuperset(LEVELS[level]), reversed(LEVELS)))
    return passed[-1] if passed else None


LEVEL = _level(config.CPU_NAME, _features())
"""The level of the processor for which Numba compiles in this process."""
WIDTH = 8 if LEVEL == "x86-64-v4" else 4
"""Doubles in one register."""
