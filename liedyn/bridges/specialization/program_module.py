"""A function of a mechanism as compiled code: the module that holds its programs."""
import hashlib
import re
import sys
from types import ModuleType

import numpy as np

from liedyn.machine.cache import cache_files as files, source_stamp
from liedyn.machine.compiled.jit import inline
from liedyn.machine.program.llvm_lines import program_text
from liedyn.machine.simd.lanes import WIDTH

MODULE = '''"""A function of one robot, written by liedyn.specialize: lines with guards, no text of the robot."""
from liedyn.bridges.specialization.program_module import put_good
from liedyn.machine.compiled.jit import kernel_in_place
from liedyn.machine.program.llvm_lines import lines_of
from liedyn.model.calls import generated_calls as _side

SIZES = {sizes}
REFERENCE = {reference}
'''
VARIANT = '''
_lines_{letter} = lines_of("""\\
{text}""", {names})


@kernel_in_place
def {name}_{letter}(lane, {arrays}, good):
    _lines_{letter}(lane, ({arrays}, good))


@_side.batch
def {name}_{letter}_states(begin, end, {arrays}, good, verdict):
    {rooms}
    good_w = _side.aligned(_side.WIDTH)
    for b in range(begin, end, _side.WIDTH):
        {check}
        {gather}
        _lines_{letter}(_side.LANES, ({lanes}, good_w))
        {scatter}
        put_good(good_w, {condition}, b, end, good)
'''
KERNEL = '''

@kernel_in_place
def {name}(lane, {arrays}, good):
    {name}_a(lane, {arrays}, good)
{others}'''
OTHER = '''    if good[0] == 0.0:
        {name}_{letter}(lane, {arrays}, good)
'''
LETTERS = "abcdefghijklmnopqrstuvwxyz"
QUIET = 30.0
"""Condition numbers up to this one need no closer look: neither by other references nor for digits that are lost."""


@inline
def put_good(lanes, condition, b, end, good):
    """good (count) of W states from b on: 1, or 0 where there is no result, 2 where the condition number is large."""
    for k in range(min(WIDTH, end - b)):
        good[b + k] = lanes[k] if lanes[k] == 0.0 or condition[k] <= QUIET else 2.0


def module_text(name, traces, reference):
    """Source of the module of one function, traced at several reference states.

    Parameters
    ----------
    name : str
    traces : list of TracedFunction
    reference : sequence of float
        The configuration of the first one.

    Returns
    -------
    str
    """
    given = list(traces[0].inputs)
    sizes = {x: len(values) for x, values in traces[0].results.items()}
    found = [x for x, size in sizes.items() if size]
    arrays = (*given, *found)
    rooms = [f"{x}_w = _side.in_lanes({x})" for x in arrays] + [f"{x}_lines = _side.lines_for({x})" for x in found]
    text = MODULE.format(sizes=sizes, reference=[float(x) for x in reference])
    for letter, trace in zip(LETTERS, traces):
        text += VARIANT.format(
            letter=letter, text=program_text(trace), names=arrays, name=name, arrays=", ".join(arrays),
            rooms="\n    ".join(rooms), check=_lines("_side.check_rows(verdict, {x}, b, end)", given),
            gather=_lines("_side.gather({x}, b, end, {x}_w)", given), lanes=", ".join(f"{x}_w" for x in arrays),
            condition="condition_w" if "condition" in found else "good_w",
            scatter=_lines("_side.scatter_matrix({x}_w, b, end, {x}, {x}_lines)", found))
    given = ", ".join(arrays)
    others = "".join(OTHER.format(name=name, letter=letter, arrays=given) for letter in LETTERS[1:len(traces)])
    return text + KERNEL.format(name=name, arrays=given, others=others)


def _lines(form, names):
    return "\n        ".join(form.format(x=x) for x in names)


def kept_module(robot, name, parts, origin, write):
    """A module written for a robot, from the cache or newly written.

    Parameters
    ----------
    robot : Robot
    name : str
        What the module is about.
    parts : tuple
        All that determines it, besides the sources: texts and arrays.
    origin : str
        The file whose imports, and theirs, are the sources.
    write : callable
        Returns its source.

    Returns
    -------
    module
    """
    stamp, digest = source_stamp(origin), hashlib.sha256()
    for part in (stamp, name, *parts):
        digest.update(np.ascontiguousarray(part).tobytes() if isinstance(part, np.ndarray) else repr(part).encode())
    key = digest.hexdigest()[:16]
    module_name = f"liedyn_straight_{key}"
    if module_name not in sys.modules:
        file = f"straight/{re.sub('[^A-Za-z0-9]+', '_', robot.name)[:40]}_{name}_{key}.py"
        text, path = _kept(file, write) if stamp else (write().encode(), None)
        module = ModuleType(module_name)
        if path is not None:
            module.__file__ = str(path)
        # a line in front of it, as in the file
        exec(compile(b"\n" + text, f"<{module_name}>" if path is None else str(path), "exec"), module.__dict__)
        sys.modules[module_name] = module
    return sys.modules[module_name]


def _kept(file, write):
    """The program as bytes, and the file where it is stored, None if it cannot be."""
    kept = files.read(file)
    if kept is not None:
        return kept.data, kept.path
    text = write().encode()
    return text, files.write(file, text)
