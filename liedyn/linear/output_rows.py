"""Rows of C and D for every kind of output, in compiled code (names: `liedyn.linear.outputs`).

The columns of [N 0], [Delta S] and da give the changes of q, v and a along a direction of (y, w, u). The changes of
links and cut joints are then the variations from which A and B are made (`liedyn.mechanics.tree.tangent_recursion`), in
world axes and seen from the link, so that those of a body are in its own frame. The accelerations of that recursion
contain gravity A_g; the acceleration of a body r does not:

    dA_r = dA + sum S_j da_j - ad(A_g, eta)

Multipliers are of least norm. Within the range of G, G^T dlambda = balance determines dlambda. As q varies,
lambda = G x stays in that range: the part of dlambda outside it is the part of dG x outside it (Golub and Pereyra
1973, derivative of a projector). With W and T of the elimination, and d = (dG x)_rest - T (dG x)_1 for the rows that
are combinations of others,

    mu = W^T balance        (1 + T T^T) dlambda_rest = T mu + d        dlambda_1 = mu - T^T dlambda_rest
"""
from collections import namedtuple

from liedyn.lie.algebra import Ad_inverse, ad, add6, rotate, scale6, sub6
from liedyn.machine.compiled.jit import inline, kernel_in_place
from liedyn.machine.linalg.gauss_jordan import (
    add_row, clear, columns_of, element, padded_for, put_element, solve_rows_for,
)
from liedyn.machine.simd.lanes import (
    LANES, WIDTH, integer, integers_in, load, splat, store, take_matrix, take_vector, width_of,
)
from liedyn.machine.simd.registers import copy_row, is_zero
from liedyn.mechanics.constraints.constraint_rows import reader_rows, vary_velocity_rows
from liedyn.mechanics.constraints.cut_joints import FORBIDDEN
from liedyn.mechanics.constraints.elimination import (
    DEPENDENT, ROW, cluster_count, dependent_dofs, kept, numbering, solved_cluster,
)
from liedyn.mechanics.constraints.families.cut import (
    CUT as CUT_SIZE, put_cuts, vary_cut_accelerations, vary_cut_velocities,
)
from liedyn.mechanics.constraints.relative import last_dof
from liedyn.mechanics.constraints.sparse_elimination import eliminate_again, is_sparse
from liedyn.mechanics.tree.kinematics import (
    S, body_pose, of_dof, world_accelerations, world_positions, world_size, world_velocities,
)
from liedyn.mechanics.tree.tangent_recursion import (
    BODY as BODY_SIZE, DA, DV, ETA, VARIATION, VariedLinks, variation_of, vary_accelerations, vary_velocities,
)
from liedyn.model.constraint_records import (
    CUSTOM, family_of, get_rotation, has_target, loop_at, loop_count, loop_kind, loop_pitch, loop_rows,
)
from liedyn.model.kinds import HELICAL
from liedyn.model.packed import LOOP_FOLDING, NV, N_ROWS, N_VIRTUAL
from liedyn.model.packed_records import body_link, dof_total, get6, link_count, minus_gravity, parent_dof, zero6

TREE, CUT, BODY, WRENCH, MULTIPLIER = range(5)
"""Kind of an output: coordinate of the tree or of a cut joint, body, wrench of a cut joint, or multiplier of a row."""
POSITION, VELOCITY, ACCELERATION = range(3)
"""Order of its time derivative."""


@inline
def output_size(lane, model, count, x, nu):
    """Size of the workspace of `put_outputs`, for C (count, x) and D (count, nu)."""
    n, m, nz = model.ints[NV], model.ints[N_ROWS], model.ints[N_VIRTUAL]
    links, width = link_count(model), padded_for(lane, x + nu)
    state = world_size(model) + CUT_SIZE * loop_count(model) + nz * n + n + BODY_SIZE * links
    variations = VARIATION * WIDTH * links + (2 * nz + n + m) * padded_for(lane, x)
    state += 20 * WIDTH  # each array rounded up to whole registers
    return WIDTH + width_of(lane) * state + variations + (count + 2 * m) * width + m * padded_for(lane, m)


@inline
def is_among(outputs, what):
    found = False
    for r in range(outputs.shape[0]):
        found = found or outputs[r, 0] == what
    return found


@inline
def highest_rate(outputs):
    """The highest rate among bodies and cut joints, POSITION if there are none."""
    found = POSITION
    for r in range(outputs.shape[0]):
        if outputs[r, 0] == BODY or outputs[r, 0] == CUT:
            found = max(found, outputs[r, 1])
    return found


@inline
def read_accelerations(outputs):
    """True if the outputs need the derivatives of accelerations and multipliers."""
    found = read_multipliers(outputs)
    for r in range(outputs.shape[0]):
        found = found or outputs[r, 1] == ACCELERATION
    return found


@inline
def read_multipliers(outputs):
    return is_among(outputs, WRENCH) or is_among(outputs, MULTIPLIER)


@kernel_in_place
def put_outputs(lane, model, state, outputs, space, e, work, C, D):
    """C and D for outputs (what, rate, number, first row).

    da and balance come from `complete_derivatives` if `read_accelerations` is true; `e` is the workspace of the
    elimination, `work` has `output_size` numbers.
    """
    q, v, a, N, X, da = state.q, state.v, space.a, space.N, space.X, space.da
    columns, blocks, x = da.shape[1], N.shape[1] // WIDTH, columns_of(lane, C)
    m, nz = model.ints[N_ROWS], model.ints[N_VIRTUAL]
    work[0] = WIDTH
    rows, world = take_matrix(work, C.shape[0], columns), take_vector(work, width_of(lane) * world_size(model))
    variations = take_vector(work, VARIATION * WIDTH * link_count(model))
    links = VariedLinks(world, take_vector(work, width_of(lane) * CUT_SIZE * loop_count(model)), variations)
    E, z_dot, z_ddot = (take_matrix(work, nz, width_of(lane) * dof_total(model)), take_matrix(work, nz, N.shape[1]),
                        take_matrix(work, nz, N.shape[1]))
    dlam, reads, rate = take_matrix(work, m, columns), is_among(outputs, CUT), highest_rate(outputs)
    along = Along(N, da, E, z_dot, z_ddot, rows)
    clear(rows)
    if reads or is_among(outputs, BODY) or read_multipliers(outputs):
        world_positions(lane, model, q, world)
    if read_multipliers(outputs):
        put_multiplier_derivatives(lane, model, q, space, e, links, work, dlam)
    if rate >= VELOCITY:
        world_velocities(lane, model, v, world)
    if rate == ACCELERATION:
        world_accelerations(lane, model, v, a, world)
    for b in range(columns // WIDTH):
        if rate >= VELOCITY and b < blocks:
            vary_velocities(lane, model, world, N, X, b, variations)
            if reads:
                vary_cut_velocities(lane, model, links, True, b, z_dot)
        if rate == ACCELERATION and b < blocks:
            vary_accelerations(lane, model, world, True, X, b, variations)
            if reads:
                vary_cut_accelerations(lane, model, links, True, b, z_ddot)
        for r in range(outputs.shape[0]):
            if outputs[r, 0] == BODY:
                put_body_rows(lane, model, links, along, outputs[r], b)
    if reads:
        reader_rows(lane, model, world, E)
    for r in range(outputs.shape[0]):
        what, rate, k, row = outputs[r, 0], outputs[r, 1], outputs[r, 2], outputs[r, 3]
        if what == TREE:
            add_row(rows, row, 1.0, N if rate == POSITION else (X if rate == VELOCITY else da), k)
        elif what == CUT:
            put_reading(lane, along, outputs[r])
        elif what == WRENCH:
            put_wrench_rows(model, k, dlam, rows, row)
        elif what == MULTIPLIER:
            add_row(rows, row, 1.0, dlam, k)
    for row in range(C.shape[0]):
        at, nu = columns_of(lane, rows) * row, columns_of(lane, D)
        copy_row(lane, rows, at, x, C, x * row)
        copy_row(lane, rows, at + x, nu, D, nu * row)


Along = namedtuple("Along", "N da E z_dot z_ddot rows")
"""Along every column: displacements, accelerations; rows that read the velocities of cut joints, and the variations of
these velocities and of their rates; the rows of C and D."""


@inline
def put_reading(lane, along, output):
    """Derivative of a coordinate of a cut joint, or of its rate, along every column: E reads it."""
    (N, da, E, z_dot, z_ddot, rows), rate, k, row = along, output[1], output[2], output[3]
    if rate == VELOCITY:
        add_row(rows, row, 1.0, z_dot, k)
        return
    for j in range(columns_of(lane, E)):
        if rate == POSITION:
            add_row(rows, row, element(lane, E, k, j), N, j)
        else:
            add_row(rows, row, element(lane, E, k, j), da, j)
    if rate == ACCELERATION:
        add_row(rows, row, 1.0, z_ddot, k)


@inline
def along_path(lane, model, world, link, A, b):
    """Sum of S_j A[j, block b] over all degrees of freedom between a link and the ground."""
    total, width, j = zero6(LANES), A.shape[1] // WIDTH, last_dof(model, link)
    while j >= 0:
        total = add6(total, scale6(load(LANES, A, width * j + b), get6(lane, world, of_dof(model, j, S))))
        j = parent_dof(model, j)
    return total


@inline
def put_body_rows(lane, model, links, along, output, b):
    """Displacement, twist or twist rate of a body, in its own frame, in block b of columns; N may have fewer blocks."""
    world, variations, N, da, rows = links.world, links.variations, along.N, along.da, along.rows
    rate, body, row = output[1], output[2], output[3]
    pose, link, width = body_pose(lane, model, world, body), body_link(model, body), rows.shape[1] // WIDTH
    moves, x = b < N.shape[1] // WIDTH, zero6(LANES)
    if rate == POSITION and moves:
        x = along_path(lane, model, world, link, N, b)
    elif rate == VELOCITY and moves:
        x = variation_of(variations, link, DV)
    elif rate == ACCELERATION:
        x = along_path(lane, model, world, link, da, b)
        if moves:
            turned = ad(minus_gravity(lane, model), variation_of(variations, link, ETA))
            x = add6(x, sub6(variation_of(variations, link, DA), turned))
    angular, linear = Ad_inverse(pose, x)
    for k in range(3):
        store(LANES, rows, width * (row + k) + b, angular[k])
        store(LANES, rows, width * (row + 3 + k) + b, linear[k])


# ---- wrenches of cut joints


@inline
def put_wrench_rows(model, l, dlam, rows, row):
    """Derivative of the wrench -W lambda of cut joint l on its child side, in the user's cut axes, in every column."""
    first, count = loop_rows(model, l)
    kind, width = loop_kind(model, l), rows.shape[1] // WIDTH
    fold = get_rotation(model, loop_at(model, l, LOOP_FOLDING))
    for r in range(count):
        k = FORBIDDEN[kind, r]
        add_row(rows, row + k, -1.0, dlam, first + r)
        if kind == HELICAL and k == 5:
            add_row(rows, row + 2, loop_pitch(model, l), dlam, first + r)
    for b in range(width):
        for half in range(row, row + 6, 3):
            x = (load(LANES, rows, width * half + b), load(LANES, rows, width * (half + 1) + b),
                 load(LANES, rows, width * (half + 2) + b))
            turned = rotate(fold, x)
            for k in range(3):
                store(LANES, rows, width * (half + k) + b, turned[k])


@inline
def rows_at(model, e, c):
    """The place in `e` where the row numbers of cluster c begin, independent rows first."""
    return numbering(model)[2] + kept(e, c, ROW)


@inline
def is_moved(model):
    """True if constraints depend on time, by a target or by a user's function."""
    moved = False
    for l in range(loop_count(model)):
        moved = moved or has_target(model, l) or family_of(model, l) == CUSTOM
    return moved


@inline
def put_range(lane, model, lam, e, x):
    """x in lambda = G x; only dependent velocities have non-zero entries."""
    dofs, columns = dependent_dofs(model, e)
    for j in range(dof_total(model)):
        store(lane, x, j, 0.0)
    for c in range(cluster_count(model)):
        table, first, rank = solved_cluster(lane, model, e, c)
        rows = integers_in(e, rows_at(model, e, c), rank)
        for i in range(rank):
            total = splat(lane, 0.0)
            for k in range(rank):
                total = total + element(lane, table, i, integer(columns, first + k)) * load(lane, lam, integer(rows, k))
            store(lane, x, integer(dofs, first + i), total)


@kernel_in_place
def turn_rows(lane, model, q, x, space, links, scratch, turned):
    """turned (m, columns) = dG x along the columns of N; needs `world_positions`. x is set to zero.

    scratch = (bodies, still, rates): a vector for `put_cuts`; matrices of n and m rows, as wide as N.
    """
    a, lam, N, (bodies, still, rates) = space.a, space.lam, space.N, scratch
    clear(turned)
    clear(still)
    for sign in (1.0, -1.0):  # the difference of the variations at x and at 0, where only prescribed motions contribute
        if sign > 0.0 or is_moved(model):
            world_velocities(lane, model, x, links.world)
            put_cuts(lane, model, links.world, lam, bodies, links.cuts)
            for b in range(N.shape[1] // WIDTH):
                vary_velocities(lane, model, links.world, N, still, b, links.variations)
                vary_velocity_rows(lane, model, (q, x, a), links, N, b, rates)
            for i in range(turned.shape[0]):
                add_row(turned, i, sign, rates, i)
        for j in range(dof_total(model)):
            store(lane, x, j, 0.0)


@kernel_in_place
def put_multiplier_derivatives(lane, model, q, space, e, links, work, dlam):
    """dlambda (m, columns), by the equations at the top; needs `world_positions`."""
    n, m, columns, lam, N, balance = model.ints[NV], dlam.shape[0], dlam.shape[1], space.lam, space.N, space.balance
    begin = work[0]
    if width_of(lane) == 1 and is_sparse(model, e):
        eliminate_again(model, space.M, space.G, take_vector(work, m), take_vector(work, n), e)
        work[0] = begin
    turned, begin = take_matrix(work, m, columns), work[0]
    if kept(e, cluster_count(model), DEPENDENT) < m:
        x, bodies, still = (
            take_vector(work, width_of(lane) * n), take_vector(work, width_of(lane) * BODY_SIZE * link_count(model)),
            take_matrix(work, n, N.shape[1]))
        put_range(lane, model, lam, e, x)
        turn_rows(lane, model, q, x, space, links, (bodies, still, take_matrix(work, m, N.shape[1])), turned)
    work[0] = begin
    dofs, own = dependent_dofs(model, e)
    clear(dlam)
    for c in range(cluster_count(model)):
        table, first, rank = solved_cluster(lane, model, e, c)
        rows = integers_in(e, rows_at(model, e, c), table.shape[0])
        for k in range(rank):  # mu
            for i in range(rank):
                add_row(dlam, integer(rows, k), element(lane, table, i, integer(own, first + k)), balance,
                        integer(dofs, first + i))
        if rank < table.shape[0]:
            own_dofs = integers_in(e, numbering(model)[1] + first, rank)
            keep_shortest(lane, table, rank, rows, own_dofs, turned, work, dlam)


@inline
def keep_shortest(lane, table, rank, rows, own, turned, work, dlam):
    """Replaces mu by dlambda of one cluster; `own` are the columns of the table that belong to independent rows."""
    begin, rest, columns = work[0], table.shape[0] - rank, dlam.shape[1]
    normal, right = take_matrix(work, rest, padded_for(lane, rest)), take_matrix(work, rest, columns)
    clear(normal)
    clear(right)
    for i in range(rest):
        put_element(lane, normal, i, i, 1.0)
        add_row(right, i, 1.0, turned, integer(rows, rank + i))
        for k in range(rank):
            x = element(lane, table, rank + i, integer(own, k))
            if not is_zero(x):
                add_row(right, i, x, dlam, integer(rows, k))
                add_row(right, i, -x, turned, integer(rows, k))
                for j in range(rest):
                    y = element(lane, table, rank + j, integer(own, k))
                    put_element(lane, normal, i, j, element(lane, normal, i, j) + x * y)
    solve_rows_for(lane, normal, right)
    for i in range(rest):
        add_row(dlam, integer(rows, rank + i), 1.0, right, i)
        for k in range(rank):
            add_row(dlam, integer(rows, k), -element(lane, table, rank + i, integer(own, k)), right, i)
    work[0] = begin
