"""How many digits a state's accelerations have: the condition number of its constraints without singular values,
compiled.

With velocities in radians and in a unit near the size of the mechanism (`liedyn.model.size.weights`), and the rows of G
divided by their lengths at home, G = [1; T] G_1 for r independent rows G_1 (clusters of constraints are blocks of their
own), and the squares of its singular values are the eigenvalues of

    S C,    S = G_1 G_1^T,    C = 1 + T^T T.

For most states a bound of kappa = s_1 / s_r, at the cost of an inverse, shows that the digits are sufficient:

    s_r^-4 <= trace of S^-2,    s_1^2 <= |G|_1 |G|_inf and |G|_F^2

For the others, the largest eigenvalues of S C and of its inverse are estimated from the traces of their eighth powers,
three products each: kappa is too large by the sixteenth root of r at most, and exact if one eigenvalue dominates.
Squaring is accurate enough up to a kappa of 1e6; beyond that `liedyn.mechanics.dynamics.singular`, which also derives
the number of digits from kappa, uses singular values.
"""
import math
from collections import namedtuple

import numpy as np
from numba import types

from liedyn.machine.compiled.jit import MATRIX, VECTOR, inline, kernel_in_place, late
from liedyn.machine.compiled.objects import is_none, new_array, numbers, scratch
from liedyn.machine.compiled.objects import integer as python_integer
from liedyn.machine.linalg.dense import largest_size
from liedyn.machine.linalg.gauss_jordan import add_products_in_registers, at, clear, padded, scale_row, solve_rows
from liedyn.machine.simd.lanes import SCALAR, WIDTH, integer, integers_in, load, store, take_matrix, take_vector
from liedyn.machine.simd.registers import first_place
from liedyn.mechanics.constraints.constraint_rows import pose_and_jacobian
from liedyn.mechanics.constraints.elimination import (
    ROW, cluster_count, cluster_lists, cluster_size, dependent_dofs, eliminate, elimination_size, kept, numbering,
    solved_cluster,
)
from liedyn.mechanics.dynamics.nullspace import RANK_TOLERANCE
from liedyn.mechanics.tree.kinematics import world_size
from liedyn.model.calls.batches import batch
from liedyn.model.calls.direct import configuration, direct, general_path, packed, usual, velocity
from liedyn.model.packed import NV, N_ROWS, PackedModel
from liedyn.model.packed_records import MODEL

EPS = np.finfo(np.float64).eps
FASTEST = 10.0
"""Upper bound for v^2 / |a|, for motions without accelerations."""
ENOUGH = 6.0
"""Fewer remaining digits than this cause a warning: plots, comparisons with measurements and controller design need
three to five, and machines far from singular configurations have nine and more."""
SQUARINGS = 3


@kernel_in_place
def digits_left(kappa, v, a, power):
    """Digits of the accelerations (power 2) or of the linearization (power 3) for a condition number kappa; v and a in
    units of the mechanism.
    """
    fastest = largest_size(v)
    speed = min(fastest * fastest / max(largest_size(a), 1e-300), FASTEST)
    return -math.log10(EPS * kappa ** power * (1.0 + kappa * speed))


@kernel_in_place
def digits_size(model):
    """Size of the workspace of `spread_and_digits`."""
    n, m = model.ints[NV], model.ints[N_ROWS]
    return (WIDTH * 12 + world_size(model) + elimination_size(SCALAR, model) + 3 * padded(n) + m + m * n
            + 2 * m * padded(2 * m) + 2 * m * padded(m))


@inline
def size_of_rows(G):
    """An upper bound of the largest singular value."""
    squares = largest_column = largest_row = 0.0
    for j in range(G.shape[1]):
        column = 0.0
        for i in range(G.shape[0]):
            column += abs(at(G, i, j))
        largest_column = max(largest_column, column)
    for i in range(G.shape[0]):
        row = 0.0
        for j in range(G.shape[1]):
            row += abs(at(G, i, j))
            squares += at(G, i, j) * at(G, i, j)
        largest_row = max(largest_row, row)
    return math.sqrt(min(squares, largest_row * largest_column))


@inline
def put_products(model, e, c, G, S):
    """S = G_1 G_1^T for the first rows of cluster c, as many as S has, followed by the identity."""
    count, n, dofs = S.shape[0], cluster_size(model, c)[1], cluster_lists(model, c)[1]
    rows = integers_in(e, numbering(model)[2] + kept(e, c, ROW), count)
    clear(S)
    for i in range(count):
        for k in range(i + 1):
            x = 0.0
            for j in range(n):
                dof = integer(model.ints, dofs + j)
                x += at(G, rows[i], dof) * at(G, rows[k], dof)
            S[i, k] = S[k, i] = x
        S[i, count + i] = 1.0


@inline
def put_dependence(model, e, c, C):
    """C = 1 + T^T T of cluster c."""
    table, first, count = solved_cluster(SCALAR, model, e, c)
    columns = dependent_dofs(model, e)[1]
    clear(C)
    for i in range(count):
        for k in range(i + 1):
            x = 1.0 if i == k else 0.0
            for row in range(count, table.shape[0]):
                x += at(table, row, columns[first + i]) * at(table, row, columns[first + k])
            C[i, k] = C[k, i] = x


@inline
def largest_eigenvalue(A, squared):
    """The largest eigenvalue of a padded matrix with positive eigenvalues, which is overwritten; `squared` is scratch.

    Computed from the trace of its eighth power, after division by its own trace.
    """
    n, trace = A.shape[0], 0.0
    for i in range(n):
        trace += at(A, i, i)
    for i in range(n):
        scale_row(A, i, 1.0 / trace)
    for _ in range(SQUARINGS):
        clear(squared)
        add_products_in_registers(A, 0, A.shape[1], 1, n, n, A, squared)
        for j in range(A.size):
            store(SCALAR, A, j, load(SCALAR, squared, j))
    power = 0.0
    for i in range(n):
        power += at(A, i, i)
    return trace * power ** (0.5 ** SQUARINGS)


@late(MODEL, VECTOR, types.int64, MATRIX, MATRIX, VECTOR, returns=types.UniTuple(types.float64, 2))
def extreme_eigenvalues(model, e, c, G, S, work):
    """The largest eigenvalues of S C and of its inverse for cluster c; S^-1 is stored after the columns of S."""
    count = S.shape[0]
    C = take_matrix(work, count, padded(2 * count))
    A, B = take_matrix(work, count, padded(count)), take_matrix(work, count, padded(count))
    put_dependence(model, e, c, C)
    clear(A)
    clear(B)
    for i in range(count):
        for k in range(count):
            C[i, count + k] = at(S, i, count + k)
    put_products(model, e, c, G, S)
    for i in range(count):
        for k in range(count):
            B[i, k] = at(C, i, k)
    add_products_in_registers(S, 0, S.shape[1], 1, count, count, B, A)
    largest = largest_eigenvalue(A, B)
    if not solve_rows(SCALAR, C):
        return largest, np.inf
    clear(A)
    for i in range(count):
        for k in range(count):
            A[i, k] = at(C, i, count + k)
    return largest, largest_eigenvalue(A, B)


Scales = namedtuple("Scales", "lengths long power")
"""Lengths of the rows of G at home, in units of the mechanism; the divisor of kappa; 2 for accelerations, 3 for the
linearization."""


@kernel_in_place
def spread_and_digits(model, q, v, a, rank, scales, work):
    """kappa, by the bound if that is sufficient, and the remaining digits; infinite if the rank differs from `rank`."""
    lengths, long, power = scales
    n, m = model.ints[NV], model.ints[N_ROWS]
    work[0] = first_place(work)
    e, world = take_vector(work, elimination_size(SCALAR, model)), take_vector(work, world_size(model))
    choosable, gamma, G = take_vector(work, padded(n)), take_vector(work, m), take_matrix(work, m, n)
    speeds, rates = take_vector(work, n), take_vector(work, n)
    room = work[0]
    pose_and_jacobian(model, q, world, G)
    for i in range(m):
        gamma[i] = 0.0
        for j in range(n):
            G[i, j] /= lengths[i]
    for j in range(n):
        store(SCALAR, choosable, j, 1.0)
    if eliminate(model, G, gamma, choosable, RANK_TOLERANCE, e)[0] != rank:
        return np.inf, -np.inf
    for j in range(n):  # T does not depend on the units of velocities
        unit = model.floats[model.floats.size - n + j]
        speeds[j], rates[j] = v[j] / unit, a[j] / unit
        for i in range(m):
            G[i, j] *= unit
    bound, largest, inverse = 0.0, 1.0, 0.0
    for closer in range(2):
        for c in range(cluster_count(model)):
            count = solved_cluster(SCALAR, model, e, c)[2]
            work[0] = room
            S = take_matrix(work, count, padded(2 * count))
            put_products(model, e, c, G, S)
            if not solve_rows(SCALAR, S):
                return np.inf, -np.inf
            if closer:
                if count > 0:
                    x, y = extreme_eigenvalues(model, e, c, G, S, work)
                    largest, inverse = max(largest, x), max(inverse, y)
            else:
                for i in range(count):
                    for k in range(count):
                        bound += at(S, i, count + k) ** 2
        kappa = math.sqrt(largest * inverse) if closer else max(1.0, size_of_rows(G)) * bound ** 0.25
        kappa = max(kappa / long, 1.0)
        digits = digits_left(kappa, speeds, rates, power)
        if digits >= ENOUGH:
            break
    return kappa, digits


@batch
def digits_states(begin, end, model, motion, rank, scales, found):
    """found = (kappa, digits), those of `spread_and_digits` of each state; motion = (q, v, a)."""
    (q, v, a), (kappa, digits) = motion, found
    model = PackedModel(model.ints, model.floats.copy())  # a copy, as moving targets and custom rows write to floats
    work = np.empty(digits_size(model))
    for b in range(begin, end):
        kappa[b], digits[b] = spread_and_digits(model, q[b], v[b], a[b], rank[b], scales, work)


@direct
def digits_direct(model, q, v, a, rank, lengths, power):
    """`spread_and_digits` of one state, in a new array of two numbers; `long` is the last entry of `lengths`."""
    model = packed(model)
    q, v, a = configuration(model, q), velocity(model, v), velocity(model, a)
    work = scratch(digits_size(model))
    if not usual((model.floats, q, v, a, work)):
        return general_path()
    found = new_array((2,))
    if not is_none(found):
        m, result = model.ints[N_ROWS], numbers(found, 2)
        given = numbers(lengths, m + 1)
        scales = Scales(given, given[m], python_integer(power))
        result[0], result[1] = spread_and_digits(model, q, v, a, python_integer(rank), scales, work)
    return found


def digits_of_one(robot, q, v, a, rank, lengths, power):
    """The condition number of the constraints at one usual state, and the number of remaining digits.

    `rank` is that of the constraints; `lengths` (m + 1) are those of the rows of G at home, followed by the divisor of
    the condition number; `power` is 2 for accelerations, 3 for the linearization. None if the arrays are not of the
    usual type.
    """
    found = digits_direct(robot.packed, q, v, a, rank, lengths, power)
    return None if found is None else found.tolist()
