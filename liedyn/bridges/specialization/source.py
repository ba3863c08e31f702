"""A traced program as the source of a Python module: straight lines of a kernel that Numba compiles, for one state and
for lanes, and their interface to Python."""
from collections import defaultdict

from liedyn.bridges.specialization.program_module import kept_module
from liedyn.bridges.specialization.recursions import COLUMNS, FACTOR, RECURSIONS, shortest_trace
from liedyn.machine.program.expressions import CALL, INPUT, NEGATE, SELECT, Expression
from liedyn.model.calls.recursion import written
from liedyn.model.packed import LOOPS_AT, LOOP_FLOATS_AT, NV, TIME, PackedModel

CALLED = {
    "sqrt": ("liedyn.machine.simd.lanes", "sqrt"), "atan2": ("liedyn.machine.simd.lanes", "atan2"),
    "fabs": ("liedyn.machine.simd.comparisons", "magnitude"),
    "select": ("liedyn.machine.simd.comparisons", "where_less"), "sincos": ("liedyn.machine.simd.sines", "sincos"),
}
"""Module and name of the functions that lines call."""
_SINES = {"sin": 0, "cos": 1}


def imports(programs):
    """The lines that import what programs call."""
    called = {x.arguments[0] if x.operation == CALL else x.operation
              for program in programs for x in program if x.operation in (CALL, SELECT)}
    return sorted("from {} import {}".format(*CALLED["sincos" if name in _SINES else name]) for name in called)


def statements(program, arrays):
    """The straight lines of a kernel.

    Parameters
    ----------
    program : Program
        Without decisions: lines ask no guards.
    arrays : dict
        The results, by the names of their arrays: expressions and numbers, None for what is not written.

    Returns
    -------
    list of str
    """
    if len(program.guards):
        raise ValueError("lines have no guards")
    results = [(name, k, x) for name, array in arrays.items() for k, x in enumerate(array) if x is not None]
    used = program.used_by(x for _, _, x in results)
    places = defaultdict(list)
    for name, k, x in results:
        places[text_of(x)].append(f"store(lane, {name}, {k}, {text_of(x)})")
    lines, called = [], set()

    def write(x):
        # function calls are placed where they are needed: the processor meanwhile computes what comes before
        for y in x.arguments:
            if isinstance(y, Expression) and y.operation == CALL and y.number not in called:
                called.add(y.number)
                write(y)
        # stored at once, so that it needs no register
        lines.extend([f"{text_of(x)} = {formula(x, text_of)}", *places.pop(text_of(x), ())])

    for x in program:
        if x.number in used and x.operation != CALL:
            write(x)
    return lines + [store for constants in places.values() for store in constants]


def formula(x, text):
    """The right side of a line; `text` is that of a number."""
    arguments = x.arguments
    if x.operation == INPUT:
        return f"load(lane, {arguments[0]}, {arguments[1]})"
    if x.operation == CALL:
        if arguments[0] in _SINES:
            return f"sincos({text(arguments[1])})[{_SINES[arguments[0]]}]"
        return f"{CALLED[arguments[0]][1]}({', '.join(map(text, arguments[1:]))})"
    if x.operation == NEGATE:
        return f"-{text(arguments[0])}"
    if x.operation == SELECT:
        return f"where_less({', '.join(map(text, arguments))})"
    return f"{text(arguments[0])} {x.operation} {text(arguments[1])}"


def text_of(x):
    """An expression's name, or a constant."""
    return f"x{x.number}" if isinstance(x, Expression) else repr(float(x))


HEADER = '''"""Dynamics of one robot, written by liedyn.specialize.

Straight lines traced from the recursions of liedyn.mechanics.tree for the numbers of the robot: no text of it is here.
"""
import numpy as np

from liedyn.model.calls import generated_calls as _side
from liedyn.machine.compiled.jit import kernel_in_place
from liedyn.machine.simd.lanes import load, store
from liedyn.machine.simd.registers import at_once, load_at_once, store_at_once
from liedyn.model.packed import PackedModel
{imports}

MODEL = PackedModel(np.array({ints}), np.empty(0))
NV = {nv}
'''

KERNEL = '''

@kernel_in_place
def {name}({arguments}):
{body}
'''


def column_statements(solution):
    """The lines that solve for the columns of matrices: as many at once as a register holds.

    Parameters
    ----------
    solution : Solution

    Returns
    -------
    list of str
    """
    numbers, columns = solution.program.used_by(solution.rows), set()
    used = [x for x in solution.program if x.number in numbers]
    for x in used:  # marks those that depend on the columns
        if (x.operation == INPUT and x.arguments[0] == COLUMNS) or any(
                isinstance(y, Expression) and y.number in columns for y in x.arguments):
            columns.add(x.number)
    lines = [f"{_factor_text(x)} = {formula(x, _factor_text)}" for x in used if x.number not in columns]
    lines.append("for c in range(0, NV, at_once(lane)):")
    for matrix in solution.matrices:
        lines += [f"    {line}" for line in _rows(solution, matrix, [x for x in used if x.number in columns], columns)]
    return lines


def _rows(solution, matrix, expressions, columns):
    """The lines for one matrix."""
    def text(x):
        return f"{matrix}_{x.number}" if isinstance(x, Expression) and x.number in columns else _factor_text(x)

    places = {x.number: k for k, x in enumerate(solution.rows)}
    for x in expressions:
        value = formula(x, text)
        if x.operation == INPUT:
            value = f"load_at_once(lane, {matrix}, {x.arguments[1]} * NV + c, NV - c)"
        yield f"{text(x)} = {value}"
        if x.number in places:
            yield f"store_at_once(lane, {matrix}, {places[x.number]} * NV + c, NV - c, {text(x)})"


def _factor_text(x):
    return f"{FACTOR}{x.number}" if isinstance(x, Expression) else repr(x)


def module_source(ints, traces):
    """Source of the module that computes all of the traces.

    Parameters
    ----------
    ints : ndarray
        The packed model, for the kernels that the traces call at the end.
    traces : dict
        For each kernel, by name, its `Recursion` and its `Trace`.

    Returns
    -------
    str
    """
    called = {kernel for _, trace in traces.values() for kernel, *_ in trace.calls}
    lines = {f"from {function.__module__} import {function.__name__}" for function in called}
    lines |= set(imports(trace.program for _, trace in traces.values()))
    text = HEADER.format(imports="\n".join(sorted(lines)), ints=ints.tolist(), nv=ints[NV])
    for name, (recursion, trace) in traces.items():
        body = statements(trace.program, trace.arrays)
        for solution in trace.solutions:
            body += column_statements(solution)
        body += [f"{kernel.__name__}({', '.join(arguments)})" for kernel, *arguments in trace.calls]
        arguments, rooms = ("lane", *recursion.inputs, *trace.arrays), dict.fromkeys(recursion.scratch, "NV * NV")
        text += KERNEL.format(name=name, arguments=", ".join(arguments), body="\n".join(f"    {x}" for x in body))
        text += "\n\n" + written(name, name, arguments, recursion.inputs, rooms, recursion.results)
    return text


def tree_of(robot):
    """The part of the packed model that describes the tree, with time zero."""
    ints, floats = robot.packed
    tree = PackedModel(ints[:ints[LOOPS_AT]].copy(), floats[:ints[LOOP_FLOATS_AT]].copy())
    tree.floats[TIME] = 0.0
    return tree


def recursions_module(robot):
    """The module with the robot's recursions, from the cache or newly written."""
    return kept_module(robot, "tree", tree_of(robot), __file__, lambda: _source(tree_of(robot)))


def _source(tree):
    return module_source(tree.ints, {name: (recursion, shortest_trace(recursion, tree))
                                     for name, recursion in RECURSIONS.items()})
