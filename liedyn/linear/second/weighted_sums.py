"""Weights of sums of a mechanism's motion, whose Hessians `liedyn.linear.second.hessian` computes."""
from collections import namedtuple

from liedyn.lie.algebra import minus_ad_dual
from liedyn.machine.compiled.jit import inline
from liedyn.machine.linalg.gauss_jordan import columns_of, element, put_element
from liedyn.machine.simd.lanes import WIDTH, load, splat, store, take_matrix, vector_in, width_of
from liedyn.machine.simd.registers import is_zero
from liedyn.model.packed import NV, N_VIRTUAL
from liedyn.model.packed_records import dof_count, first_dof, get3, link_count, zero6

MotionWeights = namedtuple("MotionWeights", "q v a turn reader_rates reader_accelerations")
"""Weights of displacements, velocities and accelerations (nv each), of the rates of coordinates in their own tangent
(nv), and of the velocities and accelerations of cut joints' coordinates (nz each)."""

SumWeights = namedtuple("SumWeights", "y w a lam q v")
"""Rows of weights of the rates of y and w; of all accelerations, of the multipliers, of all displacements, of all
velocities, or none."""

SecondRequest = namedtuple("SecondRequest", "coordinates actuators tolerances")
"""What is differentiated twice: by `Coordinates`, and by inputs u with tau = S_u u; and `Tolerances`."""

Hessians = namedtuple("Hessians", "H done")
"""Second derivatives of rows of states, and for each state 1 where there are some and 0 otherwise."""

MotionSums = namedtuple("MotionSums", "q v a lam turn reader_rates reader_accelerations")
"""Rows of weights as in `MotionWeights`, and of multipliers (m each, or none)."""


@inline
def sums_size(lane, model, count):
    """Size of `count` `MotionSums` made of `SumWeights`."""
    return width_of(lane) * (count * (4 * model.ints[NV] + 2 * model.ints[N_VIRTUAL]) + WIDTH * 8)


@inline
def add_rows(lane, rows, virtual, weights, k, out, readers):
    """out += R^T weights for rows R of the tree; the weights of cut joints' coordinates are added to `readers`."""
    for s in range(virtual.size):
        x = element(lane, weights, k, s)
        if virtual[s] >= 0:
            put_element(lane, readers, k, virtual[s], element(lane, readers, k, virtual[s]) + x)
        else:
            for j in range(0 if is_zero(x) else columns_of(lane, out)):
                put_element(lane, out, k, j, element(lane, out, k, j) + x * element(lane, rows, s, j))


@inline
def put_turns(lane, model, v, turn, of_q):
    """Adds to of_q the weights of displacements that the rates R ad(d, v) have, for their weights R^T y in `turn`."""
    for i in range(link_count(model)):
        first, count = first_dof(model, i), dof_count(model, i)
        if count > 1:
            zero = zero6(lane)[1]
            c, V = (get3(lane, turn, first), zero), (get3(lane, v, first), zero)
            if count == 6:
                c, V = (c[0], get3(lane, turn, first + 3)), (V[0], get3(lane, v, first + 3))
            by_q = minus_ad_dual(V, c)
            for k in range(3):
                store(lane, of_q, first + k, load(lane, of_q, first + k) + by_q[0][k])
                if count == 6:
                    store(lane, of_q, first + 3 + k, load(lane, of_q, first + 3 + k) + by_q[1][k])


@inline
def motion_sums(lane, model, v, coordinates, weights, work):
    """The `MotionSums` of `SumWeights`."""
    n, nz, (R_y, virtual_y, R_w, virtual_w), w = (
        model.ints[NV], model.ints[N_VIRTUAL], coordinates, width_of(lane))
    count = weights.y.shape[0]
    given = MotionSums(
        take_matrix(work, count, w * n), take_matrix(work, count, w * n), take_matrix(work, count, w * n), weights.lam,
        take_matrix(work, count, w * n), take_matrix(work, count, w * nz), take_matrix(work, count, w * nz))
    for j in range(count * n):
        store(lane, given.q, j, load(lane, weights.q, j) if weights.q.size > 0 else splat(lane, 0.0))
        store(lane, given.turn, j, 0.0)
        store(lane, given.a, j, load(lane, weights.a, j) if weights.a.size > 0 else splat(lane, 0.0))
    for j in range(count * nz):
        store(lane, given.reader_rates, j, 0.0)
        store(lane, given.reader_accelerations, j, 0.0)
    for k in range(count):
        add_rows(lane, R_w, virtual_w, weights.w, k, given.a, given.reader_accelerations)
        add_rows(lane, R_y, virtual_y, weights.y, k, given.turn, given.reader_rates)
        put_turns(lane, model, v, vector_in(given.turn, w * n * k, w * n), vector_in(given.q, w * n * k, w * n))
        for j in range(n):
            x = element(lane, weights.v, k, j) if weights.v.size > 0 else splat(lane, 0.0)
            put_element(lane, given.v, k, j, element(lane, given.turn, k, j) + x)
    return given
