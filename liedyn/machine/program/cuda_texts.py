"""What is the same in all generated CUDA C++: how a state is read and written, and sine and cosine.

The text is C++ for any compiler: without CUDA a kernel is a loop over all states, which tests compile.
"""
import math
from typing import NamedTuple

from liedyn.machine.simd import sines

LARGEST_ANGLE = sines._LARGEST_REDUCED

_SIN_FLOAT = (-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)
_COS_FLOAT = (2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)
_HALF_PI_FLOAT = (1.5707963109016418457, 1.5893254712295857e-8)
"""Cephes' sinf and cosf (Moshier), with two parts of pi/2; for |x| <= 1e4."""

HEAD = """\
#ifndef LIEDYN_PROGRAMS
#define LIEDYN_PROGRAMS
#ifdef __CUDACC__
#define LIEDYN_INLINE static __device__ __forceinline__
#define LIEDYN_MEMBER __device__ __forceinline__
#define LIEDYN_BITS(name, to, from, intrinsic) LIEDYN_INLINE to name(from x) { return intrinsic(x); }
#else
#include <cmath>
#include <cstring>
#define LIEDYN_INLINE static inline
#define LIEDYN_MEMBER inline
#define LIEDYN_BITS(name, to, from, intrinsic) \\
    static inline to name(from x) { to y; std::memcpy(&y, &x, sizeof y); return y; }
#endif
LIEDYN_BITS(liedyn_bits, long long, double, __double_as_longlong)
LIEDYN_BITS(liedyn_bits, int, float, __float_as_int)
LIEDYN_BITS(liedyn_number, double, long long, __longlong_as_double)
LIEDYN_BITS(liedyn_number, float, int, __int_as_float)
#define LIEDYN_NAN(Real) ((Real)liedyn_number(0x7fc00000))

/* The size of a number as an integer that grows with it; infinity, and what is not a number, is `liedyn_endless`. */
LIEDYN_INLINE unsigned liedyn_size(float x) { return (unsigned)liedyn_bits(x) & 0x7fffffffu; }
LIEDYN_INLINE unsigned liedyn_size(double x) { return (unsigned)(liedyn_bits(x) >> 32) & 0x7fffffffu; }
LIEDYN_INLINE unsigned liedyn_endless(float) { return 0x7f800000u; }
LIEDYN_INLINE unsigned liedyn_endless(double) { return 0x7ff00000u; }

/* An array of results of one state, which remembers how large the numbers in it are. */
template <class Array, class Real> struct LiedynResults {
    struct Place {
        Array array;
        int k;
        unsigned &largest;
        LIEDYN_MEMBER void operator=(Real x)
        {
            const unsigned size = liedyn_size(x);
            array[k] = x;
            largest = size > largest ? size : largest;
        }
    };
    Array array;
    unsigned &largest;
    LIEDYN_MEMBER Place operator[](int k) const { return Place{array, k, largest}; }
};
template <class Real, class Array> LIEDYN_INLINE LiedynResults<Array, Real> liedyn_results(Array x, unsigned &largest)
{
    return LiedynResults<Array, Real>{x, largest};
}
template <class Real, class Array> LIEDYN_INLINE int liedyn_bounded(Array x, int count, Real most)
{
    unsigned largest = 0;
    for (int k = 0; k < count; ++k) largest = liedyn_size((Real)x[k]) > largest ? liedyn_size((Real)x[k]) : largest;
    return largest <= liedyn_size(most);
}
template <class Real, class Array> LIEDYN_INLINE void liedyn_clear(Array x, int count)
{
    for (int k = 0; k < count; ++k) x[k] = LIEDYN_NAN(Real);
}

/* Numbers of one state among those of many: number k is `step` places behind number k - 1. */
template <class Real> struct LiedynInput {
    const Real *x;
    long long step;
#ifdef __CUDACC__
    LIEDYN_MEMBER Real operator[](int k) const { return __ldg(x + k * step); }
#else
    LIEDYN_MEMBER Real operator[](int k) const { return x[k * step]; }
#endif
};
template <class Real> struct LiedynOutput {
    Real *x;
    long long step;
    LIEDYN_MEMBER Real &operator[](int k) const { return x[k * step]; }
};

/* Sine and cosine: reduction by parts of pi/2 (Cody and Waite), then polynomials (Cephes). */
@sines@

/* One thread for each state; without CUDA, a loop over all of them. */
#ifdef __CUDACC__
#ifndef LIEDYN_BLOCK
#define LIEDYN_BLOCK 128
#endif
#define LIEDYN_KERNEL extern "C" __global__ void __launch_bounds__(LIEDYN_BLOCK)
#define LIEDYN_EACH(i, count) \\
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; \\
    if (i < count)
#define LIEDYN_ADD(x) atomicAdd(x, 1u)
#else
#define LIEDYN_KERNEL extern "C" void
#define LIEDYN_EACH(i, count) for (long long i = 0; i < count; ++i)
#define LIEDYN_ADD(x) (*(x) += 1u)
#endif

/* Numbers of states that are neighbours in `x`, to where the numbers of a state are neighbours. */
#define LIEDYN_TILE 32
template <class Real> LIEDYN_INLINE void liedyn_transpose(
    long long count, long long size, const Real *__restrict__ x, long long step, Real *__restrict__ y, long long next)
{
#ifdef __CUDACC__
    __shared__ Real tile[LIEDYN_TILE * (LIEDYN_BLOCK + 1)];
    const long long first = (long long)blockIdx.x * LIEDYN_BLOCK, i = first + threadIdx.x;
    const int tiles = ((int)size + LIEDYN_TILE - 1) / LIEDYN_TILE, broad = ((int)size + tiles - 1) / tiles;
    const int j = threadIdx.x % LIEDYN_TILE;
    for (long long k = 0; k < size; k += broad) {
        const int width = size - k < broad ? (int)(size - k) : broad;
        for (int row = 0; row < width; ++row) {
            if (i < count) tile[row * (LIEDYN_BLOCK + 1) + threadIdx.x] = x[(k + row) * step + i];
        }
        __syncthreads();
        for (int state = threadIdx.x / LIEDYN_TILE; state < LIEDYN_BLOCK; state += LIEDYN_BLOCK / LIEDYN_TILE) {
            if (j < width && first + state < count) {
                y[(first + state) * next + k + j] = tile[j * (LIEDYN_BLOCK + 1) + state];
            }
        }
        __syncthreads();
    }
#else
    for (long long i = 0; i < count; ++i) {
        for (long long k = 0; k < size; ++k) y[i * next + k] = x[k * step + i];
    }
#endif
}
#define LIEDYN_TRANSPOSE(name, Real) \\
    LIEDYN_KERNEL name(long long count, long long size, const Real *x, long long step, long long, \\
                       Real *y, long long, long long next) \\
    { \\
        liedyn_transpose<Real>(count, size, x, step, y, next); \\
    }
#endif
"""
TRANSPOSE = {"float64": "LIEDYN_TRANSPOSE(liedyn_transpose_float64, double)\n",
             "float32": "LIEDYN_TRANSPOSE(liedyn_transpose_float32, float)\n"}
"""A kernel that transposes results."""

_SINES = """\
LIEDYN_INLINE void liedyn_sincos({real} x, {real} &sine, {real} &cosine)
{{
    const {real} shift = {shift}; /* adding it rounds to an integer */
    const {real} t = {fma}(x, {per_turn}, shift), n = t - shift;
    const {integer} k = liedyn_bits(t);
    const {real} r = {fma}(n, -{low}, {fma}(n, -{high}, x)), z = r * r;
    {real} s = {sin}, c = {cos};
{horner}
    s = {fma}(r * z, s, r);
    c = {fma}(z * z, c, {fma}(z, -{half}, {one}));
    const {real} a = k & 1 ? c : s, b = k & 1 ? s : c;
    const bool small = {fabs}(x) <= {largest};
    sine = small ? (k & 2 ? -a : a) : LIEDYN_NAN({real}); /* angles that are too large give no result */
    cosine = small ? ((k + 1) & 2 ? -b : b) : LIEDYN_NAN({real});
}}
LIEDYN_INLINE {real} liedyn_sin({real} x) {{ {real} s, c; liedyn_sincos(x, s, c); return s; }}
LIEDYN_INLINE {real} liedyn_cos({real} x) {{ {real} s, c; liedyn_sincos(x, s, c); return c; }}"""


class _Precision(NamedTuple):
    """How sines are computed in double or single precision: names of types and of C's functions, the suffix of numbers,
    what added to a number rounds it, coefficients of both series, pi / 2 in parts, the largest angle."""

    real: str
    integer: str
    fma: str
    fabs: str
    suffix: str
    shift: float
    sin: tuple
    cos: tuple
    parts: tuple
    largest: float

    def text(self, x):
        return f"{x!r}{self.suffix}"


def head():
    """The text."""
    double = _Precision(real="double", integer="long long", fma="fma", fabs="fabs", suffix="", shift=1.5 * 2.0 ** 52,
                        sin=sines._SIN, cos=sines._COS, parts=sines._HALF_PI, largest=LARGEST_ANGLE)
    single = _Precision(real="float", integer="int", fma="fmaf", fabs="fabsf", suffix="f", shift=1.5 * 2.0 ** 23,
                        sin=_SIN_FLOAT, cos=_COS_FLOAT, parts=_HALF_PI_FLOAT, largest=1e4)
    return HEAD.replace("@sines@", "\n".join(map(_sines, (double, single))))


def _sines(of):
    """Functions of sine and cosine in a `_Precision`."""
    horner = "\n".join(f"    {name} = {of.fma}({name}, z, {of.text(x)});" for pair in zip(of.sin[1:], of.cos[1:])
                       for name, x in zip("sc", pair))
    numbers = dict(shift=of.shift, high=of.parts[0], low=of.parts[1], per_turn=2.0 / math.pi, half=0.5, one=1.0,
                   largest=of.largest)
    return _SINES.format(real=of.real, integer=of.integer, fma=of.fma, fabs=of.fabs, horner=horner,
                         sin=of.text(of.sin[0]), cos=of.text(of.cos[0]),
                         **{name: of.text(x) for name, x in numbers.items()})
