"""Programs as instructions of LLVM, for one state or for one register of states, inside a kernel.

Numba would take minutes to infer the types of ten thousand lines. Here a program is one helper of compiled code, whose
instructions are written from a text with one line for each of them:

    12 + 3 #0.5         number 12 is number 3 plus the constant 0.5
    13 in q 2           number 13 is q[2]
    guard < 13 #1.0     a guard
    put A 5 12          A[5] is number 12

A long program is written as several functions, one after the other (`liedyn.machine.program.program_parts`):

    memory 150          so many numbers are handed on to later parts
    part                the next function begins
    keep 3 12           number 12 goes to place 3 of these
    12 kept 3           number 12 is read from there

Numbers that are not numbers (NaN) are not excluded, as guards have to see them.
"""
# mypy: ignore-errors
import math

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.np.arrayobj import make_array

from liedyn.machine.program.expressions import CALL, DIVIDE, INPUT, MULTIPLY, NEGATE, SELECT, ADD, SUBTRACT, Expression
from liedyn.machine.program.program_parts import divided
from liedyn.machine.simd.lanes import call_intrinsic, emit_scalar, like, of_type
from liedyn.machine.simd.sines import _LARGEST_REDUCED, _emit_polynomial_sincos
from liedyn.machine.typed_decorators import intrinsic

_ARITHMETIC = {ADD: "fadd", SUBTRACT: "fsub", MULTIPLY: "fmul", DIVIDE: "fdiv"}
_BY_LLVM = ("sqrt", "fabs", "floor", "rint", "copysign")
"""Functions that are instructions of processors; others are called number by number."""


KEPT = "kept numbers"
"""The name of the memory for what parts hand on to each other; arrays have names without spaces."""
LONGEST = 1000
"""Lines of a function: with half or three times as many, programs are slower."""


def program_text(trace):
    """The lines of a traced function.

    Parameters
    ----------
    trace : TracedFunction

    Returns
    -------
    str
    """
    parts = divided(trace, LONGEST)
    lines = [f"memory {parts.size}"]
    for k in range(len(parts.lines)):
        lines += ["part", *_part(parts, k)]
    return "\n".join(lines)


def _part(parts, k):
    lines, loaded = [], set()

    def text(x):
        if not isinstance(x, Expression):
            return f"#{float(x)!r}"
        before = x.operation != INPUT and parts.defined[x.number] != k
        if (before or x.operation == INPUT) and x.number not in loaded:
            loaded.add(x.number)
            source = ("kept", parts.slots[x.number]) if before else ("in", *x.arguments)
            lines.append(" ".join(map(str, (x.number, *source))))
        return str(x.number)

    for x in parts.lines[k]:
        if isinstance(x, Expression):
            name = f"{x.arguments[0]}" if x.operation == CALL else x.operation
            arguments = [text(y) for y in x.arguments if x.operation != CALL or y is not x.arguments[0]]
            lines.append(" ".join((str(x.number), name, *arguments)))
            lines += [f"put {name} {at} {x.number}" for name, at, _ in parts.stores.get(x.number, ())]
            if x.number in parts.slots:
                lines.append(f"keep {parts.slots[x.number]} {x.number}")
        elif isinstance(x[0], str):
            lines.append(f"put {x[0]} {x[1]} {text(x[2])}")
        else:
            lines.append(f"guard {'<' if x.strict else '<='} {text(x.smaller)} {text(x.larger)}")
    return lines


class _PartWriter:
    """Writes the lines of a part into a function of LLVM.

    `pointers` are those to the numbers of arrays, by name, and `kept` the pointer to what parts hand on; `total` is a
    sum that is zero as long as all guards hold and all results are finite, else not a number.
    """

    def __init__(self, context, builder, width, pointers, total):
        self.context, self.builder, self.width, self.pointers = context, builder, width, pointers
        self.number, self.total = total.type, total
        self.zero = like(total, 0.0)
        self.numbers, self.sines, self.good = {}, {}, None

    def value(self, text):
        return like(self.zero, float(text[1:])) if text[0] == "#" else self.numbers[text]

    def place(self, name, k):
        at = ir.Constant(ir.IntType(64), int(k) * self.width)
        return self.builder.bitcast(self.builder.gep(self.pointers[name], [at], inbounds=True),
                                    self.number.as_pointer())

    def line(self, text):
        what, operation, *rest = text.split(" ")
        if what == "guard":
            self.require(operation, *map(self.value, rest))
        elif what == "put":
            self.put(operation, *rest)
        elif what == "keep":
            self.store(self.numbers[rest[0]], KEPT, operation)
        elif operation == "in":
            self.load(what, *rest)
        elif operation == "kept":
            self.load(what, KEPT, *rest)
        else:
            self.numbers[what] = self.computed(operation, rest)

    def load(self, what, name, k):
        x = self.numbers[what] = self.builder.load(self.place(name, k))
        x.align = 8
        of_type(self.builder, x, "number")

    def store(self, x, name, k):
        instruction = self.builder.store(x, self.place(name, k))
        instruction.align = 8
        of_type(self.builder, instruction, "number")

    def computed(self, operation, texts):
        builder, values = self.builder, [self.value(x) for x in texts]
        if operation in _ARITHMETIC:
            return getattr(builder, _ARITHMETIC[operation])(*values, flags=("contract",))
        if operation == NEGATE:
            return builder.fneg(*values)
        if operation == SELECT:
            return builder.select(builder.fcmp_ordered("<", *values[:2]), *values[2:])
        if operation in ("sin", "cos"):
            return self.sine(texts[0], values[0])[operation == "cos"]
        if operation == "hypot":  # Numba's calls a function that it compiles apart, which a part cannot
            x, y = (builder.fmul(x, x, flags=("contract",)) for x in values)
            return call_intrinsic(builder, "sqrt", self.number, [builder.fadd(x, y, flags=("contract",))])
        if operation in _BY_LLVM:
            return call_intrinsic(builder, operation, self.number, values)
        return emit_scalar(self.context, builder, getattr(math, operation), values, self.width)

    def sine(self, text, x):
        """Sine and cosine by polynomials, for angles that a guard keeps small enough."""
        if text not in self.sines:
            self.sines[text] = _emit_polynomial_sincos(self.builder, x)
            self.require("<=", call_intrinsic(self.builder, "fabs", self.number, [x]), like(x, _LARGEST_REDUCED))
        return self.sines[text]

    def require(self, operation, a, b):
        yes = self.builder.fcmp_ordered(operation, a, b)
        self.good = yes if self.good is None else self.builder.and_(self.good, yes)

    def put(self, name, k, text):
        x = self.value(text)
        self.store(x, name, k)
        self.total = call_intrinsic(self.builder, "fma", self.number, [x, self.zero, self.total])

    def verdict(self):
        """The sum, not a number if a guard does not hold."""
        if self.good is None:
            return self.total
        return self.builder.select(self.good, self.total, like(self.zero, math.nan))


def _call_part(context, builder, lines, width, pointers, total):
    """A call of a new function with the lines of a part; returns its verdict."""
    kinds = [x.type for x in pointers.values()]
    kind = ir.FunctionType(total.type, [total.type, *kinds])
    name = builder.module.get_unique_name("liedyn_part")
    function = ir.Function(builder.module, kind, name)
    function.linkage = "internal"
    for attribute in ("noinline", "nounwind"):
        function.attributes.add(attribute)
    if width > 1:  # so that no spilled vector straddles two cache lines
        function.attributes.alignstack = 8 * width
    inside = ir.IRBuilder(function.append_basic_block())
    writer = _PartWriter(context, inside, width, dict(zip(pointers, function.args[1:])), function.args[0])
    for line in lines:
        writer.line(line)
    inside.ret(writer.verdict())
    return builder.call(function, [total, *pointers.values()])


def lines_of(text, names):
    """A helper of compiled code: ``lines(lane, *arrays, good)`` runs a program.

    Parameters
    ----------
    text : str
        As `program_text` writes it.
    names : tuple of str
        Names of the arrays, in the order of the arguments. `good` receives 1 where all guards hold, else 0.
    """
    @intrinsic
    def lines(typing, lane, arrays):
        def codegen(context, builder, signature, values):
            number = ir.DoubleType() if lane.width == 1 else ir.VectorType(ir.DoubleType(), lane.width)
            zero = like(ir.Constant(number, ir.Undefined), 0.0)
            memory, *parts = [part.split("\n") for part in text.split("\npart\n")]
            kept = cgutils.alloca_once(builder, number, size=max(int(memory[0].split(" ")[1]), 1))
            kept.align = 8 * lane.width
            pointers = {KEPT: builder.bitcast(kept, ir.DoubleType().as_pointer())}
            for k, (name, kind) in enumerate(zip((*names, "good"), arrays)):
                pointers[name] = make_array(kind)(context, builder, builder.extract_value(values[1], k)).data
            total = zero
            for part in parts:
                total = _call_part(context, builder, part, lane.width, pointers, total)
            good = builder.select(builder.fcmp_ordered("==", total, zero), like(zero, 1.0), zero)
            instruction = builder.store(good, builder.bitcast(pointers["good"], number.as_pointer()))
            instruction.align = 8
            of_type(builder, instruction, "number")
            return context.get_dummy_value()

        return types.void(lane, arrays), codegen

    return lines
