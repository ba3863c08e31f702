"""A traced program as the source of a Python module: straight lines, and what leads to them from Python."""
from collections import defaultdict

from liedyn.model.packed import NV
from liedyn.specialization.expressions import CALL, INPUT, NEGATE, PART, Expression
from liedyn.specialization.recursions import COLUMNS, FACTOR

HEADER = '''"""{title}

Written by liedyn.specialize: straight lines traced from the recursions of liedyn.tree for the numbers of one robot.
"""
import numpy as np

from liedyn.direct import configuration, direct, packed, result, results, velocity
from liedyn.jit import kernel_in_place
from liedyn.lie.lanes import LANES, SCALAR, WIDTH, load, store
from liedyn.lie.registers import at_once, load_at_once, store_at_once
from liedyn.model.packed import PackedModel
from liedyn.objects import is_none, item, numbers, scratch
from liedyn.tree.batches import aligned, batch, expect_rows, gather, in_lanes, lines_for, scatter, scatter_matrix, see
{imports}

MODEL = PackedModel(np.array({ints}), np.empty(0))
NV = {nv}
'''

KERNEL = '''

@kernel_in_place
def {name}({arguments}):
{body}
'''

STATES = '''

@batch
def {name}_states(begin, end, model, {rows}, verdict):
    """`{name}` on each row; verdict[0] becomes 0 if the state is not finite."""
{room}    if end - begin == 1:
        {see_one}
        {name}(SCALAR, {one})
        return
    {lanes}
    {before}
    for b in range(begin, end, WIDTH):
        {see}
        {gather}
        {expect}
        {name}(LANES, {many})
        {scatter}
'''

DIRECT = '''

@direct
def {name}_direct(model, {inputs}, out):
    """`{name}` on one state as Python passes it."""
    model = packed(model)
    {inputs} = {checked}
{room}    made = {made}
    if not is_none(made):
        {results} = {numbers}
        {name}(SCALAR, {arguments})
    return made
'''


def statements(program, arrays):
    """The straight lines of a kernel.

    Parameters
    ----------
    program : Program
    arrays : dict of Memory
        What is computed, by the names of the arrays it goes to.

    Returns
    -------
    list of str
    """
    results = [(name, k, x) for name, array in arrays.items() for k, x in sorted(array.items())]
    used = program.used_by(x for _, _, x in results)
    places = defaultdict(list)
    for name, k, x in results:
        places[_text(x)].append(f"store(lane, {name}, {k}, {_text(x)})")
    lines, called = [], set()

    def write(x):
        for y in x.arguments:  # functions are called where they are needed: the processor works on what is before
            if isinstance(y, Expression) and y.operation in (CALL, PART) and y.number not in called:
                called.add(y.number)
                write(y)
        # stored at once, it needs no register
        lines.extend([f"{_text(x)} = {_formula(x, _text)}", *places.pop(_text(x), ())])

    for x in program:
        if x.number in used and x.operation not in (CALL, PART):
            write(x)
    return lines + [store for constants in places.values() for store in constants]


def column_statements(solution):
    """The lines that solve for the columns of matrices: as many at once as fill a register.

    Parameters
    ----------
    solution : Solution

    Returns
    -------
    list of str
    """
    used = solution.program.used_by(solution.rows.values())
    used = [x for x in solution.program if x.number in used]
    columns = _depending(used, COLUMNS)
    lines = [f"{_factor_text(x)} = {_formula(x, _factor_text)}" for x in used if x.number not in columns]
    lines.append("for c in range(0, NV, at_once(lane)):")
    for matrix in solution.matrices:
        lines += [f"    {line}" for line in _rows(solution, matrix, [x for x in used if x.number in columns], columns)]
    return lines


def _depending(expressions, name):
    """Numbers of the expressions that depend on an input array."""
    found = set()
    for x in expressions:
        if name in x.arguments[:1] or any(isinstance(y, Expression) and y.number in found for y in x.arguments):
            found.add(x.number)
    return found


def _rows(solution, matrix, expressions, columns):
    """The lines for one matrix."""
    def text(x):
        return f"{matrix}_{x.number}" if isinstance(x, Expression) and x.number in columns else _factor_text(x)

    places = {x.number: k for k, x in solution.rows.items()}
    for x in expressions:
        value = _formula(x, text)
        if x.operation == INPUT:
            value = f"load_at_once(lane, {matrix}, {x.arguments[1]} * NV + c, NV - c)"
        yield f"{text(x)} = {value}"
        if x.number in places:
            yield f"store_at_once(lane, {matrix}, {places[x.number]} * NV + c, NV - c, {text(x)})"


def _formula(x, text):
    arguments = x.arguments
    if x.operation == INPUT:
        return f"load(lane, {arguments[0]}, {arguments[1]})"
    if x.operation == CALL:
        return f"{arguments[0].__name__}({', '.join(map(text, arguments[1:]))})"
    if x.operation == PART:
        return f"{text(arguments[0])}[{arguments[1]}]"
    if x.operation == NEGATE:
        return f"-{text(arguments[0])}"
    return f"{text(arguments[0])} {x.operation} {text(arguments[1])}"


def _text(x):
    return f"x{x.number}" if isinstance(x, Expression) else repr(x)


def _factor_text(x):
    return f"{FACTOR}{x.number}" if isinstance(x, Expression) else repr(x)


def module_source(title, ints, traces):
    """Source of the module that computes all of the traces.

    Parameters
    ----------
    title : str
    ints : ndarray
        The packed model, for the kernels that the traces call in the end.
    traces : dict
        By name of the kernel its `Recursion` and its `Trace`.

    Returns
    -------
    str
    """
    called = {x.arguments[0] for _, trace in traces.values() for x in trace.program if x.operation == CALL}
    called |= {kernel for _, trace in traces.values() for kernel, *_ in trace.calls}
    imports = sorted(f"from {function.__module__} import {function.__name__}" for function in called)
    text = HEADER.format(title=title, imports="\n".join(imports), ints=ints.tolist(), nv=ints[NV])
    for name, (recursion, trace) in traces.items():
        body = statements(trace.program, trace.arrays)
        for solution in trace.solutions:
            body += column_statements(solution)
        body += [f"{kernel.__name__}({', '.join(arguments)})" for kernel, *arguments in trace.calls]
        arguments = ("lane", *recursion.inputs, *trace.arrays)
        text += KERNEL.format(
            name=name, arguments=", ".join(arguments), body="\n".join(f"    {line}" for line in body))
        text += _states(name, recursion) + _direct(name, recursion)
    return text


def _each(form, names, separator=", "):
    return separator.join(form.format(x=x) for x in names)


def _states(name, recursion):
    room = recursion.scratch
    rows, arguments = recursion.inputs + recursion.results, recursion.inputs + room + recursion.results
    return STATES.format(
        name=name, rows=", ".join(rows),
        room="".join(f"    {x} = aligned(NV * NV * WIDTH)\n" for x in room),
        one=", ".join(x if x in room else f"{x}[begin]" for x in arguments),
        lanes=f"{_each('{x}_w', rows)} = {_each('in_lanes({x})', rows)}",
        see_one=_each("see(verdict, {x}, begin, end)", recursion.inputs, "\n        "),
        see=_each("see(verdict, {x}, b, end)", recursion.inputs, "\n        "),
        gather=_each("gather({x}, b, end, {x}_w)", recursion.inputs, "\n        "),
        many=", ".join(x if x in room else f"{x}_w" for x in arguments), **_written(recursion))


def _written(recursion):
    """How results leave: vectors to memory that was sent for, matrices past the cache if they are many."""
    if recursion.square:
        return {"before": f"lines = lines_for({recursion.results[0]})", "expect": "",
                "scatter": _each("scatter_matrix({x}_w, b, end, {x}, lines)", recursion.results, "\n        ")}
    return {"before": "", "expect": _each("expect_rows({x}, b)", recursion.results, "\n        "),
            "scatter": _each("scatter({x}_w, b, end, {x})", recursion.results, "\n        ")}


def _direct(name, recursion):
    room, made = recursion.scratch, recursion.results
    apart = ", ".join(("model.floats", *recursion.inputs, *room))
    if recursion.square:
        shapes = ", ".join(["(NV, NV)"] * len(made))
        make, each = f"results(out, ({shapes}), ({apart}))", "numbers(item(made, {k}), NV * NV)"
    else:
        make, each = f"result(out, (NV,), ({apart}))", "numbers(made, NV)"
    return DIRECT.format(
        name=name, inputs=", ".join(recursion.inputs),
        checked=", ".join(f"{'configuration' if x == 'q' else 'velocity'}(model, {x})" for x in recursion.inputs),
        room="".join(f"    {x} = scratch(NV * NV)\n" for x in room),
        made=make, results=", ".join(made), numbers=", ".join(each.format(k=k) for k in range(len(made))),
        arguments=", ".join(recursion.inputs + room + made))
