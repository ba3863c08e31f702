"""The rows of wdot in a local state space: K^T M K wdot = K^T balance + K^T S_u u, then transformed to w.

K belongs to the coordinates that the elimination chose (symbols: `liedyn.linear.local`).

The rows of ydot = R_y v in a local state space: A_yy = R_y (Delta - ad_v N) + d(R_y v)/dq N, A_yw = R_y S.

ad_v acts joint by joint, and is zero unless a ball or free joint is among the coordinates: its tangent turns with it.
If y and w are the same coordinates, -R ad_v N and 1 remain (symbols: `liedyn.linear.local`).
"""
from liedyn.lie.algebra import cross
from liedyn.linear.choice import PICKED, SPANNED, into_choice, into_picked, into_span, reads_cuts
from liedyn.machine.compiled.jit import inline, kernel_in_place
from liedyn.machine.linalg.gauss_jordan import (
    add_product, add_row, at, clear, columns_of, element, padded_for, put_element, solve_rows_for,
)
from liedyn.machine.simd.lanes import LANES, SCALAR, WIDTH, integer, load, splat, store, take_matrix
from liedyn.machine.simd.registers import at_once, copy_row, is_zero, load_at_once, put_row, store_at_once
from liedyn.mechanics.constraints.elimination import (
    DEPENDENT, INDEPENDENT, cluster_count, dependence, dependent_dofs, independent_dofs, kept,
)
from liedyn.model.constraint_records import is_cut, loop_count, loop_kind, loop_virtuals
from liedyn.model.kinds import SPHERICAL
from liedyn.model.packed_records import dof_count, dof_total, first_dof, get3, link_count, q_total


@inline
def subtract_cross(lane, w, X, from_, p, out, to):
    """out[to:to+3] -= w x X[from_:from_+3], column by column."""
    for c in range(p):
        x = element(lane, X, from_, c), element(lane, X, from_ + 1, c), element(lane, X, from_ + 2, c)
        y = cross(w, x)
        put_element(lane, out, to, c, element(lane, out, to, c) - y[0])
        put_element(lane, out, to + 1, c, element(lane, out, to + 1, c) - y[1])
        put_element(lane, out, to + 2, c, element(lane, out, to + 2, c) - y[2])


@inline
def subtract_tangent_bracket(lane, model, v, N, p, out):
    """out -= ad_v N joint by joint: zero except for ball and free joints."""
    for i in range(link_count(model)):
        j = first_dof(model, i)
        if dof_count(model, i) > 1:
            subtract_cross(lane, get3(lane, v, j), N, j, p, out, j)
        if dof_count(model, i) == 6:
            # the linear part: w x linear + v x angular
            subtract_cross(lane, get3(lane, v, j), N, j + 3, p, out, j + 3)
            subtract_cross(lane, get3(lane, v, j + 3), N, j, p, out, j + 3)


@kernel_in_place
def turning(model, v, N, p, out):
    """`subtract_tangent_bracket` for the first p columns, compiled as a kernel."""
    subtract_tangent_bracket(SCALAR, model, v, N, p, out)


@inline
def subtract_virtual_bracket(lane, model, z, EN, p, out):
    """out -= ad of the virtual velocities z on E N: zero except for ball cuts."""
    for l in range(loop_count(model)):
        if is_cut(model, l) and loop_kind(model, l) == SPHERICAL:
            k = loop_virtuals(model, l)[0]
            subtract_cross(lane, get3(lane, z, k), EN, k, p, out, k)


@inline
def put_upper_rows(lane, model, v, chosen, known, work, space):
    """The rows of ydot in A and f0.

    known.virtual_upper (nz rows, padded) has the variations of the virtual velocities, if y reads any and y and w
    differ.
    """
    R_y, virtual_y, A, N = chosen.coordinates.R_y, chosen.coordinates.virtual_y, space.A, space.N
    same, virtual_upper = chosen.same, known.virtual_upper
    p, n, begin = virtual_y.size, columns_of(lane, R_y), work[0]
    # tangent spaces turn with ball and free joints, whose configuration has more numbers than their velocity
    reads, moves = reads_cuts(virtual_y), not same or q_total(model) != dof_total(model)
    upper = take_matrix(work, n if moves else 0, N.shape[1])
    if moves:
        clear(upper)
        if not same:
            for i in range(n):
                add_row(upper, i, 1.0, space.X, i)
        subtract_tangent_bracket(lane, model, v, N, p, upper)
    if reads:
        if same:
            clear(virtual_upper)
        read = take_matrix(work, virtual_upper.shape[0], N.shape[1])
        clear(read)
        add_product(lane, 1.0, known.E, n, N, read)
        subtract_virtual_bracket(lane, model, known.z, read, p, virtual_upper)
    for k in range(p):
        rate, row, columns = splat(lane, 0.0), A.shape[0] * k, A.shape[0]
        put_row(lane, A, row, columns, splat(LANES, 0.0))
        if virtual_y[k] >= 0:
            rate = load(lane, known.z, virtual_y[k])
            copy_row(lane, virtual_upper, columns_of(lane, virtual_upper) * virtual_y[k], columns, A, row)
        for i in range(n):
            x = element(lane, R_y, k, i)
            if not is_zero(x):
                rate = rate + x * load(lane, v, i)
                for c in range(0, columns if moves else 0, at_once(lane)):
                    more = x * load_at_once(lane, upper, columns_of(lane, upper) * i + c, columns - c)
                    store_at_once(lane, A, row + c, columns - c, load_at_once(lane, A, row + c, columns - c) + more)
        store(lane, space.f0, k, rate)
        if same:
            put_element(lane, A, k, p + k, 1.0)
    work[0] = begin


@inline
def actuators_at_once(lane, actuators, j, i):
    """A register of row j of the actuator matrix, from column i on; in lanes one entry, repeated for all states."""
    nu = actuators.shape[1]
    if at_once(lane) == 1:
        return splat(LANES, at(actuators, j, i))
    return load_at_once(SCALAR, actuators, nu * j + i, nu - i)


@inline
def reduce_balance(lane, model, e, balance, blocks, actuators, inputs, lower):
    """lower = K^T [balance, S_u], the inputs from column `inputs` on, with the elimination's own K."""
    dependent, independent = dependent_dofs(model, e)[0], independent_dofs(model, e)[0]
    p, nu = lower.shape[0], actuators.shape[1]
    slopes, width, to = dependence(lane, model, e, p)[0], balance.shape[1] // WIDTH, lower.shape[1] // WIDTH
    clear(lower)
    for c in range(cluster_count(model)):
        for s in range(kept(e, c, INDEPENDENT), kept(e, c + 1, INDEPENDENT)):
            for b in range(blocks):
                total = load(LANES, balance, width * integer(independent, s) + b)
                for k in range(kept(e, c, DEPENDENT), kept(e, c + 1, DEPENDENT)):
                    x = element(lane, slopes, k, s)
                    total = total + x * load(LANES, balance, width * integer(dependent, k) + b)
                store(LANES, lower, to * s + b, total)
            for i in range(inputs, min(at_once(lane) * blocks, columns_of(lane, lower))):
                put_element(lane, lower, s, i, 0.0)
            for i in range(0, nu, at_once(lane)):
                total_u = actuators_at_once(lane, actuators, integer(independent, s), i)
                for k in range(kept(e, c, DEPENDENT), kept(e, c + 1, DEPENDENT)):
                    x = element(lane, slopes, k, s)
                    total_u = total_u + x * actuators_at_once(lane, actuators, integer(dependent, k), i)
                store_at_once(lane, lower, columns_of(lane, lower) * s + inputs + i, nu - i, total_u)


@inline
def put_lower_rows(lane, model, chosen, known, inertia, work, space):
    """The rows of wdot in A and B, and of ydot in B; needs the factor of K^T M K, and balance for wdot = 0."""
    coordinates, way, actuators = chosen.coordinates, chosen.way, known.actuators
    p_y, p_w = coordinates.virtual_y.size, coordinates.virtual_w.size
    nu, x = actuators.shape[1], p_y + p_w
    own = take_matrix(work, p_w, padded_for(lane, x + nu))
    lower = take_matrix(work, p_w, padded_for(lane, x + nu))
    reduce_balance(lane, model, known.e, space.balance, padded_for(lane, x) // WIDTH, actuators, x, own)
    solve_rows_for(lane, inertia, own)
    if way == PICKED:
        into_picked(model, known.e, coordinates.R_w, own, lower)
    elif way == SPANNED:
        into_span(lane, model, known.e, coordinates.R_w, own, lower)
    else:
        into_choice(model, known.e, coordinates.R_w, coordinates.virtual_w, known.E, own, lower)
    for k in range(p_y):
        put_row(lane, space.B, nu * k, nu, splat(LANES, 0.0))
    for s in range(p_w):
        row = columns_of(lane, lower) * s
        copy_row(lane, lower, row, x, space.A, x * (p_y + s))
        copy_row(lane, lower, row + x, nu, space.B, nu * (p_y + s))


@kernel_in_place
def complete_derivatives(lane, p_y, actuators, space, lower, moved):
    """da becomes D + S wdot by (y, w, u), and balance the force that the constraints balance, S_u u - M da - ...

    `lower` (p_w rows) and `moved` (n rows) are scratch arrays, padded as da and balance are.
    """
    A, B, X, da, balance = space.A, space.B, space.X, space.da, space.balance
    p_w, x, nu, n = A.shape[0] - p_y, A.shape[0], actuators.shape[1], da.shape[0]
    clear(lower)
    clear(moved)
    for s in range(p_w):
        copy_row(lane, A, x * (p_y + s), x, lower, columns_of(lane, lower) * s)
        copy_row(lane, B, nu * (p_y + s), nu, lower, columns_of(lane, lower) * s + x)
    for j in range(n):
        for s in range(p_w):
            if not is_zero(element(lane, X, j, p_y + s)):
                add_row(moved, j, element(lane, X, j, p_y + s), lower, s)
        for c in range(x, columns_of(lane, da)):
            put_element(lane, da, j, c, 0.0)
            put_element(lane, balance, j, c, at(actuators, j, c - x) if c < x + nu else 0.0)
        add_row(da, j, 1.0, moved, j)
    add_product(lane, -1.0, space.M, n, moved, balance)
