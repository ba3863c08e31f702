"""Generated C, compiled by the gcc of this machine with sanitizers, or by another compiler, and run on many states in
one process.
"""
import functools
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

import liedyn as ld

FLAGS = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic")
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer")
DRIVER = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "{prefix}.h"

static int get({prefix}_real *x, int count, FILE *file)
{{
    double y;
    int k;
    for (k = 0; k < count; ++k) {{
        if (fread(&y, sizeof y, 1, file) != 1) return 0;
        x[k] = ({prefix}_real)y;
    }}
    return 1;
}}

static void put(const {prefix}_real *x, int count)
{{
    int k;
    for (k = 0; k < count; ++k) {{
        double y = (double)x[k];
        fwrite(&y, sizeof y, 1, stdout);
    }}
}}

int main(int argc, char **argv)
{{
    FILE *file = argc == 3 ? fopen(argv[2], "rb") : NULL;
    if (!file) return 1;
{functions}
    return 0;
}}
"""
CALL = """    if (!strcmp(argv[1], "{name}")) {{
        {prefix}_real {rooms};
        while ({gets}) {{
            double code = {prefix}_{name}({given});
            fwrite(&code, sizeof code, 1, stdout);
            {puts}
        }}
    }}
"""


def gcc():
    return shutil.which("gcc")


def clang():
    """The command of a clang: the one of this machine, or that in package ziglang; None if there is neither."""
    found = shutil.which("clang")
    return [found] if found else zig()


def zig():
    """The command of the clang in package ziglang, which compiles for other processors too, or None."""
    found = shutil.which("zig")
    if found:
        return [found, "cc"]
    return [sys.executable, "-m", "ziglang", "cc"] if importlib.util.find_spec("ziglang") else None


@functools.cache
def _version(*compiler):
    return subprocess.run([*compiler, "--version"], capture_output=True, check=True).stdout


def kept_program(compiler, flags, sources, headers=()):
    """The file that a compiler makes of sources: in the cache of the tests, where the next run finds it.

    Its name is a hash of all that it depends on: files, flags, and version of the compiler.
    """
    parts = [compiler, _version(*compiler), flags, *(Path(file).read_bytes() for file in (*sources, *headers))]
    folder = Path(os.environ.get("LIEDYN_CACHE_DIR") or Path(sources[0]).parent) / "programs"
    program = folder / hashlib.sha256(repr(parts).encode()).hexdigest()[:24]
    if not program.exists():
        folder.mkdir(parents=True, exist_ok=True)
        new = program.with_suffix(f".{os.getpid()}")
        subprocess.run([*compiler, *flags, *map(str, sources), "-o", str(new), "-lm"], check=True)
        os.replace(new, program)  # another process sees all of it or nothing
    return program


class Compiled:
    """The functions of a generated folder.

    Parameters
    ----------
    robot : Robot
    folder : Path
    *flags : str
        Of the compiler, instead of those for sanitizers.
    compiler, emulator : list of str, optional
        Commands: of another compiler than gcc, and of what runs its programs here.
    **options
        Of `generate_c`.

    Attributes
    ----------
    arguments : dict
        For each function, names and sizes of its arguments and of its results.
    """

    def __init__(self, robot, folder, *flags, compiler=None, emulator=(), **options):
        self.emulator = emulator
        files = ld.generate_c(robot, folder, **options)
        header, self.folder = next(file for file in files if file.endswith(".h")), folder
        with open(header) as file:
            text = file.read()
        self.prefix = re.search(r"(\w+)_real;", text)[1]
        self.arguments = {name: _arguments(inside) for name, inside in re.findall(
            rf"\nint {self.prefix}_(\w+)\((.*?)\);", text, re.S)}
        calls = "".join(self._call(name, *both) for name, both in self.arguments.items())
        (folder / "driver.c").write_text(DRIVER.format(prefix=self.prefix, functions=calls))
        source = next(file for file in files if file.endswith(".c") and not file.endswith("main.c"))
        self.program = kept_program([*(compiler or [gcc()])], [*FLAGS, *(flags or ("-O1", *SANITIZERS))],
                                    [source, folder / "driver.c"], [header])

    def _call(self, name, given, found):
        rooms = ", ".join(f"{x}[{size}]" for x, size in (given | found).items())
        return CALL.format(name=name, prefix=self.prefix, rooms=rooms,
                           gets=" && ".join(f"get({x}, {size}, file)" for x, size in given.items()),
                           puts=" ".join(f"put({x}, {size});" for x, size in found.items()),
                           given=", ".join(f"*{x}" if x == "dt" else x for x in given | found))

    def __call__(self, name, *arguments):
        """Codes (count), and rows of each result by name."""
        given, found = self.arguments[name]
        rows = np.hstack([np.broadcast_to(np.asarray(x, float).reshape(-1, size), (len(arguments[0]), size))
                          for x, size in zip(arguments, given.values(), strict=True)])
        (self.folder / "rows").write_bytes(np.ascontiguousarray(rows).tobytes())
        made = subprocess.run([*self.emulator, str(self.program), name, str(self.folder / "rows")],
                              check=True, capture_output=True).stdout
        made = np.frombuffer(made).reshape(len(rows), -1)
        ends = 1 + np.cumsum([0, *found.values()])
        return made[:, 0].astype(int), {x: made[:, a:b] for x, a, b in zip(found, ends, ends[1:])}


def _arguments(text):
    """Names and sizes of arguments, and of results, of a declaration."""
    given, found = {}, {}
    for const, name, size in re.findall(r"(const )?\w+_real (\w+)(?:\[(\d+)\])?", text):
        (given if const or not size else found)[name] = int(size or 1)
    return given, found


def moving_states(robot, count, spread, seed=1):
    """Closed states far from home, with consistent velocities, and forces."""
    rng, rows = np.random.default_rng(seed), []
    while len(rows) < count:
        q = ld.integrate(robot, robot.home, spread * rng.normal(size=robot.nv))
        v, tau = rng.normal(size=robot.nv), 5.0 * rng.normal(size=robot.nv)
        if robot.row_names:
            try:
                q = ld.close(robot, q)
            except ld.LiedynError:
                continue
            G = ld.constraint_jacobian(robot, q)
            v -= np.linalg.pinv(G, rcond=1e-8) @ (G @ v)
        rows.append((q, v, tau))
    return tuple(map(np.array, zip(*rows)))
