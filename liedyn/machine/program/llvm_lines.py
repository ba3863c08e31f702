"""Programs as instructions of LLVM, for one state or for one register of states, inside a kernel.

Numba would take minutes to infer the types of ten thousand lines. Here a program is one helper of compiled code, whose
instructions are written from a text with one line for each of them:

    12 + 3 #0.5         number 12 is number 3 plus the constant 0.5
    13 in q 2           number 13 is q[2]
    guard < 13 #1.0     a guard
    put A 5 12          A[5] is number 12

Numbers that are not numbers (NaN) are not excluded, as guards have to see them.
"""
# mypy: ignore-errors
from llvmlite import ir
from numba import types

from liedyn.machine.program.c import scheduled
from liedyn.machine.program.expressions import CALL, DIVIDE, INPUT, MULTIPLY, NEGATE, SELECT, ADD, SUBTRACT, Expression
from liedyn.machine.simd.lanes import address, call_intrinsic, emit_scalar, like, of_type
from liedyn.machine.simd.sines import _LARGEST_REDUCED, _emit_polynomial_sincos
from liedyn.machine.typed_decorators import intrinsic

_ARITHMETIC = {ADD: "fadd", SUBTRACT: "fsub", MULTIPLY: "fmul", DIVIDE: "fdiv"}
_BY_LLVM = ("sqrt", "fabs", "floor", "rint", "copysign")
"""Functions that are instructions of processors; others are called number by number."""


def program_text(trace):
    """The lines of a traced function.

    Parameters
    ----------
    trace : TracedFunction

    Returns
    -------
    str
    """
    order, stores = scheduled(trace)
    lines, loaded = [], set()

    def text(x):
        if not isinstance(x, Expression):
            return f"#{float(x)!r}"
        if x.operation == INPUT and x.number not in loaded:
            loaded.add(x.number)
            lines.append(f"{x.number} in {x.arguments[0]} {x.arguments[1]}")
        return str(x.number)

    for x in order:
        if isinstance(x, Expression):
            name = f"{x.arguments[0]}" if x.operation == CALL else x.operation
            arguments = [text(y) for y in x.arguments if x.operation != CALL or y is not x.arguments[0]]
            lines.append(" ".join((str(x.number), name, *arguments)))
            lines += [f"put {name} {k} {x.number}" for name, k, _ in stores.get(x.number, ())]
        elif isinstance(x[0], str):
            lines.append(f"put {x[0]} {x[1]} {text(x[2])}")
        else:
            lines.append(f"guard {'<' if x.strict else '<='} {text(x.smaller)} {text(x.larger)}")
    return "\n".join(lines)


class _InstructionWriter:
    """Writes the lines into a function of LLVM."""

    def __init__(self, context, builder, lane, arrays):
        self.context, self.builder, self.lane, self.arrays = context, builder, lane, arrays
        number = ir.DoubleType()
        self.number = number if lane.width == 1 else ir.VectorType(number, lane.width)
        self.zero = like(ir.Constant(self.number, ir.Undefined), 0.0)
        self.numbers, self.sines, self.good, self.total = {}, {}, None, self.zero

    def value(self, text):
        return like(self.zero, float(text[1:])) if text[0] == "#" else self.numbers[text]

    def place(self, name, k):
        kind, array = self.arrays[name]
        return address(self.context, self.builder, self.lane, kind, array, ir.Constant(ir.IntType(64), int(k)))

    def line(self, text):
        what, operation, *rest = text.split(" ")
        if what == "guard":
            self.require(operation, *map(self.value, rest))
        elif what == "put":
            self.put(operation, *rest)
        elif operation == "in":
            x = self.numbers[what] = self.builder.load(self.place(*rest))
            x.align = 8
            of_type(self.builder, x, "number")
        else:
            self.numbers[what] = self.computed(operation, rest)

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
        if operation in _BY_LLVM:
            return call_intrinsic(builder, operation, self.number, values)
        import math
        return emit_scalar(self.context, builder, getattr(math, operation), values, self.lane.width)

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
        instruction = self.builder.store(x, self.place(name, k))
        instruction.align = 8
        of_type(self.builder, instruction, "number")
        # not a number, if one of the results is none, or infinite
        self.total = call_intrinsic(self.builder, "fma", self.number, [x, self.zero, self.total])

    def verdict(self):
        """1 where all guards hold and all results are finite, else 0."""
        self.require("==", self.total, self.zero)
        return self.builder.select(self.good, like(self.zero, 1.0), self.zero)


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
            parts = [builder.extract_value(values[1], k) for k in range(len(names) + 1)]
            writer = _InstructionWriter(context, builder, lane, dict(zip((*names, "good"), zip(arrays, parts))))
            for line in text.split("\n"):
                writer.line(line)
            verdict = writer.verdict()
            instruction = builder.store(verdict, writer.place("good", 0))
            instruction.align = 8
            of_type(builder, instruction, "number")
            return context.get_dummy_value()

        return types.void(lane, arrays), codegen

    return lines
