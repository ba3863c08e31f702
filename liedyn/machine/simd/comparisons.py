"""Comparisons with one source for floats and lanes: their result holds for every lane, or is selected lane by lane."""
# mypy: ignore-errors
from llvmlite import ir
from numba import types

from liedyn.machine.simd.lanes import VectorType, as_vector, broadcast, call_intrinsic, everywhere, like
from liedyn.machine.typed_decorators import intrinsic


@intrinsic
def magnitude(typing, x):
    """|x|."""

    def codegen(context, builder, sig, args):
        return call_intrinsic(builder, "fabs", args[0].type, args)

    return x(x), codegen


@intrinsic
def larger(typing, a, b):
    """The larger of a and b; a where b is NaN."""

    def codegen(context, builder, sig, args):
        return builder.select(builder.fcmp_ordered(">", args[1], args[0]), args[1], args[0])

    return a(a, b), codegen


@intrinsic
def where_positive(typing, x, a, b):
    """a where x > 0, else the number b."""

    def codegen(context, builder, sig, args):
        other = broadcast(builder, args[2], x.width) if isinstance(x, VectorType) else args[2]
        return builder.select(builder.fcmp_ordered(">", args[0], like(args[0], 0.0)), args[1], other)

    return a(x, a, types.float64), codegen


@intrinsic
def where_less(typing, a, b, x, y):
    """x where a < b, else y; floats or lanes."""
    width = max((kind.width for kind in (a, b, x, y) if isinstance(kind, VectorType)), default=1)
    number = VectorType(width) if width > 1 else types.float64

    def codegen(context, builder, sig, args):
        a, b, x, y = args if width == 1 else [
            as_vector(context, builder, kind, value, width) for kind, value in zip(sig.args, args)]
        return builder.select(builder.fcmp_ordered("<", a, b), x, y)

    return number(*(kind if isinstance(kind, VectorType) else types.float64 for kind in (a, b, x, y))), codegen


@intrinsic
def is_positive(typing, x):
    """True if x > 0 in every lane."""

    def codegen(context, builder, sig, args):
        return everywhere(builder, builder.fcmp_ordered(">", args[0], like(args[0], 0.0)))

    return types.boolean(x), codegen


@intrinsic
def largest_lane(typing, x):
    """The largest number of a register."""

    def codegen(context, builder, sig, args):
        return call_intrinsic(builder, "vector.reduce.fmax", ir.DoubleType(), args, fastmath=("nnan", "nsz"))

    return types.float64(x), codegen


@intrinsic
def smallest_lane(typing, x):
    """The smallest number of a register."""

    def codegen(context, builder, sig, args):
        return call_intrinsic(builder, "vector.reduce.fmin", ir.DoubleType(), args, fastmath=("nnan", "nsz"))

    return types.float64(x), codegen
