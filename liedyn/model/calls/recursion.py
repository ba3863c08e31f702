"""One declaration for all Python functions of a kernel: batches, one state, checks, `out`, documentation.

    @recursion(rnea_kernel, work=rnea_size, tau="nv")
    def rnea(robot, q, v, a, f_ext=None, out=None):
        '''One line, then Returns, Notes and Examples; what is the same everywhere is added.'''

The arguments between `robot` and `out` are the inputs: configurations `q`, `q0`, `q1`, a `body`, wrenches `f_ext`; all
others are vectors of nv numbers. Results are keywords with their shapes, made of "nq", "nv", "nbodies" and numbers; ""
is one number. The kernel's arguments have the same names; `b` is the number of the body.

The code is generated from the templates below and compiled in the module of the declaration as if it had been written
there, because Numba's cache cannot find kernels made as closures. `NAME_states` works on the rows of a batch,
`NAME_direct` on one state as Python passes it (`liedyn.model.calls.direct`), and `NAME` is what users call. The first
two are generated at their first call, so that they cost no import time. Tracebacks show the lines of all three.
"""

from __future__ import annotations

import inspect
import linecache
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from liedyn.model.calls import generated_calls

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from liedyn.typing import Function, Kernel

RECURSIONS: dict[str, Recursion] = {}
"""All declarations by name, for `liedyn.kernels` and `liedyn warmup`."""

_EXTENTS = {"nv": "_side.dof_total(model)", "nq": "_side.q_total(model)", "nbodies": "_side.body_count(model)"}

_STATES = '''
@_side.batch
def {name}_states(begin, end, model, {rows}, verdict):
    """`{kernel}` on each row; verdict[0] becomes 0 if the state is not finite."""
    {rooms}
    if end - begin == 1:
        r = begin
        {see_one}
        {call_one}
        return
    {before}
    {lanes} = {in_lanes}
    {zeros}
    for r in range(begin, end, _side.WIDTH):
        {check}
        {gather}
        {prefetch}
        {call_lanes}
        {scatter}
'''
_WITHOUT_LANES = '''
@_side.batch
def {name}_states(begin, end, model, {rows}, verdict):
    """`{kernel}` on each row; verdict[0] becomes 0 if the state is not finite."""
    {rooms}
    for r in range(begin, end):
        {see_one}
        {call_one}
'''
_DIRECT = '''
@_side.direct
def {name}_direct(model, {objects}, out):
    """`{kernel}` on one state as Python passes it."""
    model = _side.packed(model)
    {state} = {checked}
    {number}
    {rooms_of_one}
    made = _side.{make}(out, {shapes}, (model.floats, {apart})){if_known}
    if not _side.is_none(made):
        {call_direct}
    return made
'''
_PUBLIC = '''
def {signature}:
    if not hasattr(robot, "packed"):
        _side.require_robot(robot)
    {refuse}
    {otherwise}
    {if_free}made = {name}_direct(robot.packed, {given}, out)
    {indent}if made is not None:
    {indent}    return {made}
    return _side.of_all_states(robot, {name}_states, {shapes}, out, {state}{others})
'''


def _arguments():
    """Documentation of arguments that functions of the tree have in common.

    Parameters
    ----------
    robot : Robot
    q : array_like, shape (..., nq)
        Configuration [rad, m; quaternions (x, y, z, w)].
    v : array_like, shape (..., nv)
        Velocity [rad/s, m/s], body-fixed for spherical and free joints.
    a : array_like, shape (..., nv)
        Acceleration [rad/s^2, m/s^2].
    tau : array_like, shape (..., nv)
        Generalised forces [N m, N].
    f_ext : dict or array_like, optional
        Wrenches (moment, force) [N m, N] applied to bodies, each in its body's own frame: ``{"name": (..., 6)}``, where
        names of frames may stand too, or an array of shape (..., nbodies, 6).
    body : str
        Name of the body or frame.

    Raises
    ------
    InputError
        A shape does not fit, an entry is not finite, or a quaternion is not of unit length.
    """


@dataclass(frozen=True)
class Recursion:
    """A declaration.

    Attributes
    ----------
    kernel : CPUDispatcher
    size : CPUDispatcher
        Size of `work` for a model; None if there is no `work`.
    inputs : tuple of str
    scratch, results : dict
        Shapes of the kernel's scratch arrays, and of its results, lists of str.
    write : callable
        Generates the code that is generated at the first call.
    function : callable
        What users call.
    """

    kernel: Any
    size: Any
    inputs: tuple[str, ...]
    scratch: dict[str, list[str]]
    results: dict[str, list[str]]
    write: Callable[[], None]
    function: Callable[..., Any]

    def row(self) -> str:
        """Entry of the table in `liedyn.kernels`: arguments, and after a bar the results with their shapes."""
        given = [x for x in arguments_of(self.kernel) if x not in ("lane", "model")]
        written = self.scratch | self.results
        results = [f"{x} ({', '.join(written[x]) or 1})" for x in given if x in written]
        taken = ", ".join(x for x in given if x not in written)
        return f"{taken} | {', '.join(results)}" + "; takes no ``SCALAR``" * ("lane" not in arguments_of(self.kernel))


def recursion(kernel: Kernel, *, work: Kernel | None = None, scratch: Any = (), nonzeros: Kernel | None = None,
              past_cache: Any = None, refuse: Any = (), otherwise: Any = (),
              **results: str) -> Callable[[Function], Function]:
    """The decorator.

    Parameters
    ----------
    kernel : CPUDispatcher
        ``kernel(lane, model, ...)``; without `lane` if it works on one state only.
    work : CPUDispatcher
        Function for the size of its workspace, given a model.
    scratch : dict
        Shapes of further arrays that it writes to, besides `work` and the results.
    nonzeros : CPUDispatcher
        A kernel that does not write the structural zeros of the results. Lanes are set to zero once, and it is used for
        them.
    past_cache : CPUDispatcher
        Replaces `NAME_states` if results are so large that they are written past the cache.
    refuse : dict
        By name of an attribute of robots, the function that raises an error if the attribute is true.
    otherwise : dict
        By name of an attribute of robots, the function that is called instead, with the same arguments, if it is true;
        or by name of an optional argument, which only that function takes, if it is given.
    **results : str
        Shape of each result.
    """
    scratch, results = ({x: shape.split() for x, shape in dict(each).items()} for each in (scratch, results))

    def declare(stub):
        name, names, code = stub.__name__, stub.__globals__, stub.__code__
        taken, place = code.co_varnames[1:code.co_argcount - 1], f"{code.co_filename}:{name}"
        inputs = tuple(x for x in taken if x not in dict(otherwise))
        names["_side"] = generated_calls
        rooms = {"work": f"{work.__name__}(model)"} if work else {}
        rooms |= {x: _size(shape) for x, shape in scratch.items()}
        more = [each and each.__name__ for each in (nonzeros, past_cache)]

        def write():
            _run(written(name, kernel.__name__, arguments_of(kernel), inputs, rooms, results, more), place, names)

        names |= {side: _Unwritten(names, side, write) for side in (f"{name}_states", f"{name}_direct")}
        _run(_public(name, taken, stub.__defaults__, refuse, dict(otherwise), results), f"{place}()", names)
        made = names[name]
        made.__defaults__, made.__annotations__ = stub.__defaults__, stub.__annotations__
        made.__doc__ = document(stub.__doc__, ("robot", *taken), results)
        RECURSIONS[name] = Recursion(kernel, work, inputs, scratch, results, write, made)
        return made

    return declare


class _Unwritten:
    """Stands for a function until its first call, which generates it."""

    def __init__(self, names, name, write):
        self._names, self._name, self._write = names, name, write

    def __call__(self, *arguments):
        if self._names[self._name] is self:
            self._write()
        return self._names[self._name](*arguments)


def _run(text, place, names):
    """Execute generated code in a module; `place` is the file name shown in tracebacks."""
    linecache.cache[place] = len(text), None, text.splitlines(True), place
    exec(compile(text, place, "exec", dont_inherit=True), names)


def arguments_of(kernel):
    """Names of the arguments of a kernel."""
    code = kernel.py_func.__code__
    return code.co_varnames[:code.co_argcount]


# ---- generated code


def written(name, kernel, arguments, inputs, rooms, results, more=(None, None)):
    """Source of `NAME_states` and `NAME_direct`, for the kernel `kernel` with these arguments.

    `inputs` are the user's arguments, `rooms` has expressions for the sizes of scratch arrays, `results` the shapes of
    the results, each a list of str; `more` has names of the kernels `nonzeros` and `past_cache`, see `recursion`.
    """
    nonzeros, past_cache = more
    state = [x for x in inputs if x not in ("f_ext", "body")]
    arrays, body = [x for x in inputs if x != "body"], "body" in inputs
    rows, matrices, many = (*arrays, *results), any(len(x) > 1 for x in results.values()), len(results) > 1
    parameters = (*arrays, *["b"] * body, *results)

    def call(kernel, lane, form, **known):
        known = {"lane": f"_side.{lane}", "model": "model", "b": "b"} | {x: x for x in rooms} | known
        return f"{kernel}({', '.join(known.get(x) or form.format(x=x) for x in arguments)})"

    before = [f"lines = _side.lines_for({list(results)[-1]})"] * matrices
    if past_cache:
        given = ", ".join(("begin", "end", "model", *parameters, "verdict"))
        before += ["if lines.size > 0:", f"    {past_cache}({given})", "    return"]
    leave = "_side.scatter_matrix({x}_w, r, end, {x}, lines)" if matrices else "_side.scatter({x}_w, r, end, {x})"
    shapes = [_tuple(map(_extent, shape)) for shape in results.values()]
    made = {x: f"_side.numbers({f'_side.item(made, {k})' if many else 'made'}, {_size(shape)})"
            for k, (x, shape) in enumerate(results.items())}
    text = (_STATES if "lane" in arguments else _WITHOUT_LANES) + _DIRECT
    return _without_gaps(text.format(
        name=name, kernel=kernel, rows=", ".join(parameters),
        rooms=_lines("{x} = _side.aligned({size} * _side.WIDTH)", rooms, 4),
        see_one=_lines("_side.check_rows(verdict, {x}, r, r + 1)", state), call_one=call(kernel, "SCALAR", "{x}[r]"),
        before="\n    ".join(before), lanes=_each("{x}_w", rows), in_lanes=_each("_side.in_lanes({x})", rows),
        zeros=_lines("{x}_w[:] = 0.0  # once: zeros stay where they are", results, 4) if nonzeros else "",
        check=_lines("_side.check_rows(verdict, {x}, r, end)", state),
        gather=_lines("_side.gather({x}, r, end, {x}_w)", arrays),
        prefetch="" if matrices else _lines("_side.prefetch_rows({x}, r)", results),
        call_lanes=call(nonzeros or kernel, "LANES", "{x}_w"), scatter=_lines(leave, results),
        objects=", ".join((*state, *["names", "body"] * body)), state=", ".join(state),
        checked=", ".join(f"_side.{'configuration' if x[0] == 'q' else 'velocity'}(model, {x})" for x in state),
        number="b = _side.number_of(names, body)" * body, if_known=" if b >= 0 else _side.general_path()" * body,
        rooms_of_one=_lines("{x} = _side.scratch({size})", rooms, 4), make="results" if many else "result",
        shapes=_tuple(shapes) if many else shapes[0], apart=_each("{x}", (*state, *rooms)) + ",",
        call_direct=call(kernel, "SCALAR", "{x}", f_ext="_side.nothing()", **made)))


def _public(name, inputs, defaults, refuse, otherwise, results):
    """Source of `NAME`."""
    own, free = [x for x in inputs if x not in ("f_ext", *otherwise)], "f_ext" in inputs
    state = [x for x in own if x != "body"]
    required = len(inputs) + 2 - len(defaults)
    signature = [x + "=None" * (k >= required) for k, x in enumerate(("robot", *inputs, "out"))]
    shapes = [_tuple(f"robot.{n}" if n.isalpha() else n for n in shape) for shape in results.values()]
    return _without_gaps(_PUBLIC.format(
        name=name, signature=f"{name}({', '.join(signature)})",
        refuse="\n    ".join(f"if robot.{x}:\n        {raises.__name__}(robot)" for x, raises in dict(refuse).items()),
        otherwise="\n    ".join(f"if {f'{x} is not None' if x in inputs else f'robot.{x}'}:\n        "
                               f"return {other.__name__}(robot, {_each('{x}={x}', inputs)}, out=out)"
                               for x, other in otherwise.items()),
        if_free="if f_ext is None:\n        " * free, indent="    " * free,
        given=", ".join("robot.body_numbers, body" if x == "body" else x for x in own),
        made="float(made) if out is None else made" if [] in results.values() else "made",
        shapes=_tuple(shapes) if len(shapes) > 1 else shapes[0], state=f"{{{_each('{x!r}: {x}', state)}}}",
        others=", f_ext=f_ext" * free + ", b=robot.body_index(body)" * ("body" in inputs)))


def _each(form, names, separator=", "):
    return separator.join(form.format(x=x) for x in names)


def _lines(form, names, indent=8):
    """One line for each name; for a dict, its value is inserted as `size`."""
    sizes = names if isinstance(names, dict) else dict.fromkeys(names)
    return f"\n{' ' * indent}".join(form.format(x=x, size=size) for x, size in sizes.items())


def _without_gaps(text):
    return "\n".join(line for line in text.splitlines() if line.strip()) + "\n"


def _extent(symbol):
    return _EXTENTS.get(symbol, symbol)


def _size(shape):
    return " * ".join(map(_extent, shape)) or "1"


def _tuple(parts):
    return f"({''.join(f'{x}, ' for x in parts)})"


def document(text, inputs, results):
    """A docstring completed by the common entries of Parameters and Raises, except those that it has itself."""
    if text is None:  # with python -OO
        return None
    common, own = _sections(_arguments.__doc__), _sections(text)
    known = _entries(common["Parameters"]) | _entries(own.pop("Parameters", ""))
    shape, many = ", ".join(("...", *list(results.values())[-1])), len(results) > 1
    what, go = (f"tuple of {len(results)} ndarrays", "results go") if many else ("ndarray", "result goes")
    room = (f"out : {what}, shape ({shape}), optional\n"
            f"    Where the {go}: C-contiguous float64 of the very shape of the {go.split()[0]}.")
    raised = common["Raises"].replace("A shape", "A body is unknown, a shape" if "body" in inputs else "A shape")
    raised = _entries(raised) | _entries(own.pop("Raises", ""))
    sections = {"": own.pop(""), "Parameters": "\n".join([*dict.fromkeys(known[x] for x in inputs), room]),
                "Returns": own.pop("Returns"), "Raises": "\n".join(raised.values())} | own
    return "\n\n".join(f"{name}\n{'-' * len(name)}\n{each}" if name else each for name, each in sections.items())


def _sections(text):
    """Text of each numpydoc section by its heading; the text before the first heading is under ""."""
    parts = re.split(r"\n\n(\w+)\n-+\n", inspect.cleandoc(text).rstrip())
    return {"": parts[0]} | dict(zip(parts[1::2], parts[2::2]))


def _entries(section):
    """Entries of a section, by the names before their colons."""
    return {name: entry for entry in re.split(r"\n(?=\S)", section) if entry
            for name in re.split(r" : |\n", entry)[0].split(", ")}
