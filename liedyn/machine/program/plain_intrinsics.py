"""What the intrinsics of kernels do, in plain Python: registers of numbers, workspaces, records, whole lines.

Intrinsics are written as LLVM code (`liedyn.machine.simd`); here is each of those that kernels call, under the name of
its module and its own. Registers have the width that they have in compiled code, so that arrays have the same layout
and numbers are added in the same order: interpreted and compiled kernels may work on the same memory.

What is read behind an array raises IndexError.
"""
# mypy: ignore-errors
import ctypes
import math

import numpy as np

from liedyn.machine.program.plain_arrays import Open, Tensor, Vector, of_numpy
from liedyn.machine.program.plain_registers import Register, lanewise
from liedyn.machine.simd.lanes import NARROW, WIDTH
from liedyn.machine.simd.lines import ENDINGS, LEFT
from liedyn.machine.simd.registers import LARGEST


# ---- memory


def _read(x, k, count):
    """`count` numbers of an array from number k on, as a list."""
    m = x.m[k:k + count] if k >= 0 else ()
    found = m.tolist() if type(m) is memoryview else list(m)  # NumPy's numbers remain what they are
    if len(found) != count:
        raise IndexError(f"numbers {k} to {k + count - 1} of {len(x.m)}")
    return found


def _write(x, k, numbers):
    m = x.m
    if k < 0 or k + len(numbers) > len(m):
        raise IndexError(f"numbers {k} to {k + len(numbers) - 1} of {len(m)}")
    for y in numbers:
        m[k] = y
        k += 1


def _padded(numbers, width):
    return Register(numbers) if len(numbers) == width else Register((*numbers, *(0.0,) * (width - len(numbers))))


def _spread(x, width):
    return x if type(x) is Register else Register((x,) * width)


def integer(ints, k):
    if k < 0:
        raise IndexError(k)
    return ints.m[k]


def load(lane, x, k):
    if lane.width > 1:
        return Register(_read(x, k * lane.width, lane.width))
    if k < 0:
        raise IndexError(k)
    return x.m[k]


def store(lane, x, k, value):
    if lane.width > 1:
        _write(x, k * lane.width, _spread(value, lane.width))
    elif k < 0:
        raise IndexError(k)
    else:
        x.m[k] = value


def splat(lane, x):
    return float(x) if lane.width == 1 else Register((float(x),) * lane.width)


def lane_of(x, i):
    return x[i] if type(x) is Register else x


def _section(work, k, size):
    m = work.m[k:k + size]
    if k < 0 or len(m) != size:
        raise IndexError(f"{size} numbers from {k} on of {len(work.m)}")
    return m


def _integers(m):
    if isinstance(m, np.ndarray):
        return m.view(np.int64)
    return m if m.format in "lq" else m.cast("B").cast("l")


def _taken(work, size):
    k = int(work.m[0])
    work.m[0] = float(k + size + -size % WIDTH)
    return _section(work, k, size)


def take_vector(work, n):
    return Vector(_taken(work, n))


def take_matrix(work, m, n):
    return Tensor(_taken(work, m * n), (m, n))


def take_integers(work, n):
    return Vector(_integers(_taken(work, n)))


def vector_in(work, k, n):
    return Vector(_section(work, k, n)) if n else Open(work.m[k:])


def matrix_in(work, k, m, n):
    return Tensor(_section(work, k, m * n), (m, n))


def integers_in(work, k, n):
    return Vector(_integers(_section(work, k, n))) if n else Open(_integers(work.m[k:]))


def before_line(x, k):
    return -((np.asarray(x.m).ctypes.data >> 3) + k) % WIDTH


# ---- registers


def at_once(lane):
    return lane.register // lane.width


def load_at_once(lane, x, k, count):
    if lane.width > 1:
        return Register(_read(x, k * lane.width, lane.width))
    return _padded(_read(x, k, max(min(count, lane.register), 0)), lane.register)


def store_at_once(lane, x, k, count, value):
    if lane.width > 1:
        _write(x, k * lane.width, value)
    else:
        _write(x, k, value[:max(min(count, lane.register), 0)])


def side_by_side(*numbers):
    return Register(lane_of(x, 0) for x in numbers)


def yzx(a):
    return Register((a[1], a[2], a[0], a[3]))


def is_zero(x):
    return all(y == 0.0 for y in x) if type(x) is Register else x == 0.0


def bounded_at_once(x, k):
    return all(abs(y) <= LARGEST for y in _read(x, k, WIDTH))


def is_positive(x):
    return all(y > 0.0 for y in x) if type(x) is Register else x > 0.0


def _extreme(choose):
    def extreme(x):  # as LLVM's reductions, which ignore NaN
        numbers = [y for y in x if y == y] if type(x) is Register else [x]
        return choose(numbers) if numbers else x[0]

    return extreme


def _before(count, x, y):
    """The first `count` numbers of x, then those of y."""
    count = max(count, 0)
    return Register((*x[:count], *y[count:]))


def where_before(j, end, x):
    return _before(end - j, x, (0.0,) * len(x))


# ---- records


def _starts(lane, first, step, last):
    end = first + last * step
    return [min(first + r * step, end) for r in range(lane.register)]


def _columns(x, starts, size):
    return tuple(map(Register, zip(*[_read(x, start, size) for start in starts]))) if size else ()


def _lanes(lane, x, base, size):
    return tuple(load(lane, x, base + k) for k in range(size))


def records_at_once(lane, x, base, stride, last, size):
    if lane.width > 1:
        return _lanes(lane, x, base, size)
    return _columns(x, _starts(lane, base, stride, last), size)


def constants_at_once(lane, x, base, stride, last, size):
    if lane.width > 1:
        return tuple(_read(x, base, size))
    return _columns(x, _starts(lane, base, stride, last), size)


def chosen_records_at_once(lane, x, base, stride, ints, at, step, last, size):
    if lane.width > 1:
        return _lanes(lane, x, base + stride * integer(ints, at), size)
    return _columns(x, [base + stride * integer(ints, k) for k in _starts(lane, at, step, last)], size)


def put_records_at_once(lane, x, base, stride, last, values):
    values = [_spread(value, lane.register) for value in values]
    if lane.width > 1:
        for k, value in enumerate(values):
            store(lane, x, base + k, value)
        return
    width = lane.register
    for start, row in reversed(list(zip(_starts(lane, base, stride, last), zip(*values), strict=True))):
        _write(x, start, _padded(row, len(row) + -len(row) % width))


# ---- rows and lanes


def turned(*columns):
    return tuple(map(Register, zip(*columns)))


def rows_to_lanes(lane, rows, start, stride, last, columns, lanes, k):
    width = lane.width
    loaded = [_padded(_read(rows, start + min(i, last) * stride, columns), width) for i in range(width)]
    for j, column in enumerate(zip(*loaded)):
        _write(lanes, (k + j) * width, column)


def lanes_to_rows(lane, lanes, k, rows, start, stride, last, columns):
    width = lane.width
    block = [_read(lanes, (k + j) * width, width) for j in range(min(columns, width))]
    for i, row in enumerate(zip(*block)):
        if i <= last:
            _write(rows, start + i * stride, row)


def mirror_block(x, row, column, step, rows, columns):
    block = [_read(x, row + r * step, columns) for r in range(rows)]
    for c, turned in enumerate(zip(*block)):
        _write(x, column + c * step, turned[:rows])


def mirror_square(x, at, step, count):
    block = [_read(x, at + r * step, count) for r in range(count)]
    for c, turned in enumerate(list(zip(*block))[:count]):
        _write(x, at + c * step, (*block[c][:c + 1], *turned[c + 1:]))


def registers_turned(lanes, m):
    there = min(WIDTH, len(lanes.m) // WIDTH - m * WIDTH)  # of the last block, columns that are not written may lack
    block = [_read(lanes, (m * WIDTH + j) * WIDTH, WIDTH) for j in range(there)] + [(0.0,) * WIDTH] * (WIDTH - there)
    return tuple(map(Register, zip(*block)))


def _bits(lines):
    """Numbers in the memory of the integers of `liedyn.machine.simd.lines`."""
    return np.asarray(lines.m).view(np.float64)


def registers_left(lines):
    return tuple(Register(x) for x in _bits(lines)[LEFT:LEFT + WIDTH * WIDTH].reshape(WIDTH, WIDTH).tolist())


def leave_registers(lines, registers):
    _bits(lines)[LEFT:LEFT + WIDTH * WIDTH] = np.array(registers).ravel()


def _lines(lines, m, before, now):
    """Shift, first index and numbers of line m of each state."""
    for s in range(WIDTH):
        shift = lines.m[WIDTH + s]
        yield shift, lines.m[s] + m * WIDTH, (*before[s], *now[s])[WIDTH - shift:2 * WIDTH - shift]


def write_lines(rows, lines, m, before, now):
    for _, start, line in _lines(lines, m, before, now):
        _write(rows, start, line)


def write_endings(rows, lines, m, before, now, behind):
    for s, (shift, start, line) in enumerate(_lines(lines, m, before, now)):
        count = behind + shift
        if count >= WIDTH:
            _write(rows, start, line)
        elif count > 0:
            _bits(lines)[ENDINGS + s * WIDTH:ENDINGS + (s + 1) * WIDTH] = line
            if s >= lines.m[2 * WIDTH]:
                _write(rows, start, line[:count])


def write_beginnings(rows, lines, now):
    for s, (shift, start, line) in enumerate(_lines(lines, 0, now, now)):
        if s == 0:
            _write(rows, start + shift, line[shift:])
        elif s <= lines.m[2 * WIDTH]:
            _write(rows, start, (*_bits(lines)[ENDINGS + (s - 1) * WIDTH:].tolist()[:shift], *line[shift:]))


# ---- others

_POINTER = ctypes.POINTER(ctypes.c_double)
_USER = ctypes.CFUNCTYPE(None, ctypes.c_double, *[_POINTER] * 5)


def call_user(address, t, q, v, a, lam, out, at):
    """The C function that stands for a user's function (`liedyn.machine.compiled.user_functions.call`)."""
    arrays = [np.ascontiguousarray(of_numpy(x)) for x in (q, v, a, lam)]
    found = np.asarray(out.m)[at:]
    _USER(address)(t, *(x.ctypes.data_as(_POINTER) for x in (*arrays, found)))


def to_fixed_tuple(x, count):
    return tuple(_read(x, 0, count))


def _same(x):
    return x


def _nothing(*given):
    pass


def _sincos(x):
    if type(x) is Register:
        return Register(map(math.sin, x)), Register(map(math.cos, x))
    return math.sin(x), math.cos(x)


PLAIN = {
    "machine.simd.lanes": dict(
        integer=integer, load=load, store=store, splat=splat, lane_of=lane_of, width_of=lambda lane: lane.width,
        narrow=lambda lane: lane if lane.width > 1 else NARROW, take_vector=take_vector, take_matrix=take_matrix,
        take_integers=take_integers, vector_in=vector_in, matrix_in=matrix_in, integers_in=integers_in,
        sqrt=lanewise(lambda x: math.sqrt(x) if not x < 0.0 else math.nan), atan2=lanewise(math.atan2)),
    "machine.simd.registers": dict(
        at_once=at_once, load_at_once=load_at_once, store_at_once=store_at_once, is_zero=is_zero,
        before_line=before_line, prefetch_line=_nothing, finish_stores=_nothing, bounded_at_once=bounded_at_once,
        side_by_side=side_by_side, yzx=yzx),
    "machine.simd.transposition": dict(turned=turned, rows_to_lanes=rows_to_lanes, lanes_to_rows=lanes_to_rows),
    "machine.simd.mirroring": dict(mirror_block=mirror_block, mirror_square=mirror_square),
    "machine.simd.lines": dict(
        turned=registers_turned, registers_left=registers_left, leave_registers=leave_registers,
        write_lines=write_lines, write_endings=write_endings, write_beginnings=write_beginnings),
    "machine.simd.comparisons": dict(
        magnitude=lanewise(abs), larger=lanewise(lambda a, b: b if b > a else a), is_positive=is_positive,
        where_positive=lanewise(lambda x, a, b: a if x > 0.0 else b), largest_lane=_extreme(max),
        smallest_lane=_extreme(min), where_less=lanewise(lambda a, b, x, y: x if a < b else y)),
    "machine.simd.strided": dict(
        records_at_once=records_at_once, constants_at_once=constants_at_once, put_records_at_once=put_records_at_once,
        chosen_records_at_once=chosen_records_at_once, where_before=where_before, first_then=_before,
        where_larger=lanewise(lambda a, b, x: x if a > b else 0.0)),
    "machine.simd.sines": dict(sincos=_sincos),
    "lie.exponential": dict(_near_zero=lanewise(lambda t, series, closed: series if t < 1.0 else closed)),
    "machine.compiled.by_address": dict(placed=_same, contents=_same),
    "machine.compiled.user_functions": dict(call=call_user),
    "": dict(to_fixed_tuple=to_fixed_tuple),
}
"""A plain version of each intrinsic, by its module in the package ("" for Numba's own) and its name. Those that call an
address or a late kernel are made by `liedyn.machine.program.interpret`."""


def _sines(x):
    return np.sin(x), np.cos(x)


CAREFUL = {
    "machine.simd.lanes": dict(
        splat=lambda lane, x: np.float64(x) if lane.width == 1 else Register((np.float64(x),) * lane.width),
        atan2=lanewise(np.arctan2), sqrt=lanewise(lambda x: np.sqrt(x))),
    "machine.simd.sines": dict(
        sincos=lambda x: tuple(map(Register, zip(*map(_sines, x)))) if type(x) is Register else _sines(x)),
}
"""The versions of the careful world where they differ: with NumPy's numbers, infinite and NaN instead of errors."""
