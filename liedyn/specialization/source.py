"""A traced program as the source of a Python module: straight lines, and what leads to them from Python."""
from collections import defaultdict

from liedyn.model.packed import NV
from liedyn.specialization.expressions import CALL, INPUT, NEGATE, PART, Expression

HEADER = '''"""{title}

Written by liedyn.specialize: straight lines traced from the recursions of liedyn.tree for the numbers of one robot.
"""
import numpy as np

from liedyn.direct import configuration, direct, model, result, results, velocity
from liedyn.jit import kernel_in_place
from liedyn.lie.lanes import LANES, SCALAR, WIDTH, load, store
from liedyn.objects import is_none, item, numbers, scratch
from liedyn.tree.batches import aligned, batch, gather, in_lanes, scatter
{imports}

INTS = np.array({ints})
NV = {nv}
'''

KERNEL = '''

@kernel_in_place
def {name}({arguments}):
{body}
'''

STATES = '''

@batch
def {name}_states(begin, end, ints, floats, {rows}):
    """`{name}` on each row."""
{room}    if end - begin == 1:
        {name}(SCALAR, {one})
        return
    {lanes}
    for b in range(begin, end, WIDTH):
        {gather}
        {name}(LANES, {many})
        {scatter}
'''

DIRECT = '''

@direct
def {name}_direct(ints, floats, {inputs}, out):
    """`{name}` on one state as Python passes it."""
    ints, floats = model(ints, floats)
    {inputs} = {checked}
{room}    made = {made}
    if not is_none(made):
        {results} = {numbers}
        {name}(SCALAR, {arguments})
    return made
'''


def statements(program, arrays, calls):
    """The lines of a kernel.

    Parameters
    ----------
    program : Program
    arrays : dict of Memory
        What is computed, by the names of the arrays it goes to.
    calls : list of tuple
        Kernels to be called in the end, each with its arguments as source.
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
        lines.extend([f"{_text(x)} = {_formula(x)}", *places.pop(_text(x), ())])  # stored at once, it needs no register

    for x in program:
        if x.number in used and x.operation not in (CALL, PART):
            write(x)
    lines += [store for constants in places.values() for store in constants]
    return lines + [f"{kernel.__name__}({', '.join(arguments)})" for kernel, *arguments in calls]


def _formula(x):
    arguments = x.arguments
    if x.operation == INPUT:
        return f"load(lane, {arguments[0]}, {arguments[1]})"
    if x.operation == CALL:
        return f"{arguments[0].__name__}({', '.join(map(_text, arguments[1:]))})"
    if x.operation == PART:
        return f"{_text(arguments[0])}[{arguments[1]}]"
    if x.operation == NEGATE:
        return f"-{_text(arguments[0])}"
    return f"{_text(arguments[0])} {x.operation} {_text(arguments[1])}"


def _text(x):
    return f"x{x.number}" if isinstance(x, Expression) else repr(x)


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
        body = statements(trace.program, trace.arrays, trace.calls)
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
        gather=_each("gather({x}, b, end, {x}_w)", recursion.inputs, "\n        "),
        many=", ".join(x if x in room else f"{x}_w" for x in arguments),
        scatter=_each("scatter({x}_w, b, end, {x})", recursion.results, "\n        "))


def _direct(name, recursion):
    room, made = recursion.scratch, recursion.results
    apart = ", ".join(("floats", *recursion.inputs, *room))
    if recursion.square:
        shapes = ", ".join(["(NV, NV)"] * len(made))
        make, each = f"results(out, ({shapes}), ({apart}))", "numbers(item(made, {k}), NV * NV)"
    else:
        make, each = f"result(out, (NV,), ({apart}))", "numbers(made, NV)"
    return DIRECT.format(
        name=name, inputs=", ".join(recursion.inputs),
        checked=", ".join(f"{'configuration' if x == 'q' else 'velocity'}(ints, {x})" for x in recursion.inputs),
        room="".join(f"    {x} = scratch(NV * NV)\n" for x in room),
        made=make, results=", ".join(made), numbers=", ".join(each.format(k=k) for k in range(len(made))),
        arguments=", ".join(recursion.inputs + room + made))
