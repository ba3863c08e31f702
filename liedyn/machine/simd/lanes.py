"""SIMD lanes for Numba: one kernel body serves a single state (floats) and W states at once (LLVM ``<W x double>``).

A kernel takes a `lane` argument. Its *type* carries the width, so `load`, `store` and `splat` compile to plain double
accesses for `SCALAR` and to vector accesses for `LANES`; one dispatcher holds both cached signatures.
In an array of a W-lane call, scalar k of the algorithm lies at [k*W, (k+1)*W); the index k is flat over C order.
"""
# mypy: ignore-errors
import functools
import math
import operator

from llvmlite import ir
from numba import typeof, types
from numba.core import cgutils
from numba.core.imputils import lower_constant
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import NativeValue, lower_builtin, models, register_model, typeof_impl, unbox
from numba.np.arrayobj import make_array, populate_array

from liedyn.machine.compiled.cpu_targets import WIDTH
from liedyn.machine.typed_decorators import intrinsic


class Lanes:
    """Number of states that a kernel call works on at once: `SCALAR` (one, plain floats) or `LANES` (one SIMD
    register).

    Attribute `register` is the number of values of one state that fill a register (`liedyn.machine.simd.registers`).
    """

    def __init__(self, width: int, register: int) -> None:
        self.width: int = width
        self.register: int = register


class LanesType(types.Type):
    def __init__(self, width, register):
        self.width, self.register = width, register
        super().__init__(f"Lanes({width}, {register})")


class VectorType(types.Type):
    """W doubles held in one LLVM vector."""

    def __init__(self, width):
        self.width = width
        super().__init__(f"float64x{width}")


@typeof_impl.register(Lanes)
def _typeof_lanes(value, context):
    return LanesType(value.width, value.register)


@register_model(LanesType)
class _LanesModel(models.OpaqueModel):
    def from_argument(self, builder, value):
        # align the stack slots of spilled vectors, so that none straddles two cache lines
        builder.function.attributes.alignstack = 8 * self._fe_type.register
        # llvmlite writes the alignment only together with another attribute
        builder.function.attributes.add("nounwind")
        return super().from_argument(builder, value)


@unbox(LanesType)
def _unbox_lanes(typ, obj, c):
    return NativeValue(c.context.get_dummy_value())


@lower_constant(LanesType)
def _constant_lanes(context, builder, typ, value):
    return context.get_dummy_value()


SCALAR = Lanes(1, WIDTH)
NARROW = Lanes(1, 4)
LANES = Lanes(WIDTH, WIDTH)


@register_model(VectorType)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, dmm, fe_type):
        super().__init__(dmm, fe_type, ir.VectorType(ir.DoubleType(), fe_type.width))


def _number(lane):
    return types.float64 if lane.width == 1 else VectorType(lane.width)


def lane_index(i):
    return ir.Constant(ir.IntType(32), i)


def broadcast(builder, x, width):
    vector = ir.VectorType(x.type, width)
    first = builder.insert_element(ir.Constant(vector, ir.Undefined), x, lane_index(0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), width), [0] * width)
    return builder.shuffle_vector(first, ir.Constant(vector, ir.Undefined), zeros)


def call_intrinsic(builder, name, result, args, **flags):
    """Call of the LLVM intrinsic of this name, for the type (float or lanes) of the first of `args`."""
    kind = args[0].type
    name = f"llvm.{name}.v{kind.count}f64" if isinstance(kind, ir.VectorType) else f"llvm.{name}.f64"
    function = ir.FunctionType(result, [x.type for x in args])
    return builder.call(cgutils.get_or_insert_function(builder.module, function, name), args, **flags)


def everywhere(builder, yes):
    """True if a comparison holds in every lane."""
    if not isinstance(yes.type, ir.VectorType):
        return yes
    bits = ir.IntType(yes.type.count)
    return builder.icmp_signed("==", builder.bitcast(yes, bits), ir.Constant(bits, -1))


def like(x, number):
    """A constant, in every lane if x is lanes."""
    return ir.Constant(x.type, [number] * x.type.count if isinstance(x.type, ir.VectorType) else number)


def as_vector(context, builder, typ, x, width):
    if isinstance(typ, VectorType):
        return x
    return broadcast(builder, context.cast(builder, x, typ, types.float64), width)


def _arithmetic(op, instruction):
    @infer_global(op)
    class _Template(AbstractTemplate):
        def generic(self, args, kws):
            vectors = [t for t in args if isinstance(t, VectorType)]
            if len(args) == 2 and vectors and all(isinstance(t, (VectorType, types.Number)) for t in args):
                return signature(vectors[0], *[t if isinstance(t, VectorType) else types.float64 for t in args])

    def lower(context, builder, sig, args):
        width = sig.return_type.width
        a, b = (as_vector(context, builder, t, x, width) for t, x in zip(sig.args, args))
        return getattr(builder, instruction)(a, b, flags=("contract", "nnan", "nsz"))

    for pair in ((VectorType, VectorType), (VectorType, types.Float), (types.Float, VectorType)):
        lower_builtin(op, *pair)(lower)


for _op, _instruction in (
    (operator.add, "fadd"), (operator.sub, "fsub"), (operator.mul, "fmul"), (operator.truediv, "fdiv"),
):
    _arithmetic(_op, _instruction)


@infer_global(operator.neg)
class _Negate(AbstractTemplate):
    def generic(self, args, kws):
        if len(args) == 1 and isinstance(args[0], VectorType):
            return signature(args[0], args[0])


@lower_builtin(operator.neg, VectorType)
def _lower_negate(context, builder, sig, args):
    return builder.fneg(args[0])


def address(context, builder, lane, array_type, array, k):
    """Address of scalar k of an array: of a double, or of the vector of all its lanes."""
    data = make_array(array_type)(context, builder, array).data
    if lane.width == 1:
        return builder.gep(data, [k], inbounds=True)
    first = builder.gep(data, [builder.mul(k, ir.Constant(k.type, lane.width))], inbounds=True)
    return builder.bitcast(first, ir.VectorType(ir.DoubleType(), lane.width).as_pointer())


def of_type(builder, instruction, name):
    """Annotate an access with its type: stores of floats never change integers, so the model is read only once."""
    root = builder.module.add_metadata(["liedyn"])
    access = builder.module.add_metadata([name, root, ir.Constant(ir.IntType(64), 0)])
    tag = builder.module.add_metadata([access, access, ir.Constant(ir.IntType(64), 0)])
    instruction.set_metadata("tbaa", tag)


@intrinsic
def integer(typing, array, k):
    """integer(ints, k): ints[k] without the cost of Python's negative indices."""

    def codegen(context, builder, sig, args):
        data = make_array(sig.args[0])(context, builder, args[0]).data
        x = builder.load(builder.gep(data, [args[1]], inbounds=True))
        of_type(builder, x, "integer")
        return x

    return types.int64(array, types.intp), codegen


@intrinsic
def load(typing, lane, array, k):
    """load(lane, x, k): scalar k of x, for every lane."""

    def codegen(context, builder, sig, args):
        x = builder.load(address(context, builder, lane, sig.args[1], args[1], args[2]))
        x.align = 8
        of_type(builder, x, "number")
        return x

    return _number(lane)(lane, array, types.intp), codegen


@intrinsic
def store(typing, lane, array, k, value):
    """store(lane, x, k, value): x[k] = value, for every lane."""

    def codegen(context, builder, sig, args):
        value = args[3] if lane.width == 1 else as_vector(context, builder, sig.args[3], args[3], lane.width)
        instruction = builder.store(value, address(context, builder, lane, sig.args[1], args[1], args[2]))
        instruction.align = 8
        of_type(builder, instruction, "number")
        return context.get_dummy_value()

    return types.void(lane, array, types.intp, value if isinstance(value, VectorType) else types.float64), codegen


@intrinsic
def splat(typing, lane, x):
    """splat(lane, c): the constant c in every lane (a plain float for SCALAR)."""

    def codegen(context, builder, sig, args):
        return args[1] if lane.width == 1 else broadcast(builder, args[1], lane.width)

    return _number(lane)(lane, types.float64), codegen


@intrinsic
def lane_of(typing, x, i):
    """The number in lane i of x; a float is the same in every lane."""

    def codegen(context, builder, sig, args):
        return builder.extract_element(*args) if isinstance(x, VectorType) else args[0]

    return types.float64(x, types.intp), codegen


@intrinsic
def narrow(typing, lane):
    """narrow(lane): the same lanes, but one state fills registers of 256 bits only.

    While registers of 512 bits are in use, the processor has one port for scalar products instead of two (Intel 64 and
    IA-32 Architectures Optimization Reference Manual: port 1 is closed): code that mixes vectors and floats is faster
    with narrow registers.
    """
    narrower = lane if lane.width > 1 else typeof(NARROW)

    def codegen(context, builder, sig, args):
        return context.get_dummy_value()

    return narrower(lane), codegen


@intrinsic
def width_of(typing, lane):
    """Number of states that a lane argument stands for: 1 or W."""

    def codegen(context, builder, sig, args):
        return context.get_constant(types.intp, lane.width)

    return types.intp(lane), codegen


def _part(context, builder, sig, args):
    """A view of the shape args[2:], C order, of the numbers of args[0] from args[1] on, without ownership."""
    shape = args[2:]
    whole, out = make_array(sig.args[0])(context, builder, args[0]), make_array(sig.return_type)(context, builder)
    item = ir.Constant(args[1].type, 8)
    strides = [builder.mul(shape[1], item), item] if len(shape) == 2 else [item]
    data = builder.bitcast(builder.gep(whole.data, [args[1]], inbounds=True), out.data.type)
    populate_array(out, data=data, shape=shape, strides=strides, itemsize=item, meminfo=None)
    return out._getvalue()


@intrinsic
def vector_in(typing, work, k, n):
    """vector_in(work, k, n): work[k : k + n] without the cost of a slice; for kernels that return no arrays."""
    return types.Array(types.float64, 1, "C")(work, types.intp, types.intp), _part


@intrinsic
def integers_in(typing, work, k, n):
    """integers_in(work, k, n): n integers in the memory of work[k : k + n]; for kernels that return no arrays."""
    return types.Array(types.int64, 1, "C")(work, types.intp, types.intp), _part


@intrinsic
def matrix_in(typing, work, k, m, n):
    """matrix_in(work, k, m, n): work[k : k + m n] as m rows of n; for kernels that return no arrays."""
    return types.Array(types.float64, 2, "C")(work, types.intp, types.intp, types.intp), _part


def _take(context, builder, sig, args):
    """The next numbers of a workspace whose first number counts the used ones, in whole registers."""
    data = make_array(sig.args[0])(context, builder, args[0]).data
    k = builder.fptosi(builder.load(data), args[1].type)
    size = builder.add(functools.reduce(builder.mul, args[1:]), ir.Constant(k.type, WIDTH - 1))
    size = builder.and_(size, ir.Constant(k.type, -WIDTH))
    builder.store(builder.sitofp(builder.add(k, size), ir.DoubleType()), data)
    return _part(context, builder, sig, [args[0], k, *args[1:]])


@intrinsic
def take_vector(typing, work, n):
    """take_vector(work, n): the next n free numbers of a workspace; work[0] is the index of the first free one.

    The index advances by whole registers, up to WIDTH - 1 numbers more than n: if the first index is aligned to a cache
    line, all are.
    """
    return types.Array(types.float64, 1, "C")(work, types.intp), _take


@intrinsic
def take_integers(typing, work, n):
    """take_integers(work, n): n integers in the memory of the next n numbers, like `take_vector`."""
    return types.Array(types.int64, 1, "C")(work, types.intp), _take


@intrinsic
def take_matrix(typing, work, m, n):
    """take_matrix(work, m, n): the next m n numbers of a workspace as m rows of n, like `take_vector`."""
    return types.Array(types.float64, 2, "C")(work, types.intp, types.intp), _take


def emit_scalar(context, builder, function, args, width):
    """Apply a function of floats lane by lane: one of module math, or plain Python that Numba can compile."""
    scalar = types.float64(*[types.float64] * len(args))

    def implementation(builder, xs):
        if hasattr(function, "__code__"):
            return context.compile_internal(builder, function, scalar, xs)
        return context.get_function(function, scalar)(builder, xs)

    if width == 1:
        return implementation(builder, args)
    out = ir.Constant(ir.VectorType(ir.DoubleType(), width), ir.Undefined)
    for i in range(width):
        y = implementation(builder, [builder.extract_element(x, lane_index(i)) for x in args])
        out = builder.insert_element(out, y, lane_index(i))
    return out


def lanewise(function, *numbers):
    """Signature and code of an intrinsic that applies a scalar function to floats or to each lane.

    For rare transcendental functions outside hot loops: every lane is extracted, computed and inserted again.
    """
    width = next((n.width for n in numbers if isinstance(n, VectorType)), 1)
    number = VectorType(width) if width > 1 else types.float64

    def codegen(context, builder, sig, args):
        return emit_scalar(context, builder, function, args, width)

    return number(*[number] * len(numbers)), codegen


@intrinsic
def sqrt(typing, x):
    """sqrt(x) for a float or for lanes."""
    return lanewise(math.sqrt, x)


@intrinsic
def atan2(typing, y, x):
    """atan2(y, x) for floats or for lanes."""
    return lanewise(math.atan2, y, x)
