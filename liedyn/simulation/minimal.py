"""Minimal coordinates: the independent ones are integrated, the others follow from the constraints at every stage.

Spencer 2004, 2.3.1: the dependent coordinates solve g(q) = 0 and G v = b with the independent ones held, by Newton from
the integrated guess. Positions may have more independent coordinates than velocities (rolling), so each has its own
partition. Both are chosen by pivoting, and anew as soon as the determinant's last pivot has fallen to a part of what it
was when they were chosen (Gillespie 2003, section 4: singularities of the choice are avoided, not met).
"""
from liedyn.constraints.rows import jacobian_rows, residual_rows, velocity_rows
from liedyn.jit import kernel_in_place
from liedyn.lie.lanes import SCALAR
from liedyn.nearest import nearest_in_columns, orthonormal_rows
from liedyn.simulation.projection import ITERATIONS, is_closed, relative_size
from liedyn.simulation.workspace import NOT_CLOSED, OK
from liedyn.tree.configuration import integrate_kernel
from liedyn.tree.kinematics import world_positions, world_velocities

FALLEN = 0.5
"""Part of its first value at which the last pivot calls for a new choice: early, because choosing costs little and the
error of a step grows with the slopes of the dependent coordinates."""


@kernel_in_place
def complete(model, o, x, q, v):
    """Dependent coordinates and velocities of (q, v) from the independent ones; x.pivots[1] is their worth."""
    before = 1e300
    closed = False
    for _ in range(ITERATIONS):
        world_positions(SCALAR, model, q, x.world)
        residual_rows(model, q, x.world, x.residual)
        jacobian_rows(model, q, x.world, x.G)
        size = relative_size(x)
        if is_closed(o, size, before):
            closed = True
            break
        if not size < 1e100:
            break
        before = size
        nearest_in_columns(x.G, x.residual, x.holonomic, x.dependent[0], o.rank_tolerance, x.Y, x.order, x.vector[0])
        for j in range(v.size):
            x.vector[0, j] = -x.vector[0, j]
        integrate_kernel(model, q, x.vector[0], q)
    if not (closed or before <= o.tolerance):
        return NOT_CLOSED
    world_velocities(SCALAR, model, v, x.world)
    velocity_rows(model, q, v, x.world, x.psi)
    x.pivots[1] = nearest_in_columns(
        x.G, x.psi, x.every, x.dependent[1], o.rank_tolerance, x.Y, x.order, x.vector[0])
    if x.pivots[0] == 0.0:
        x.pivots[0] = x.pivots[1]
    for j in range(v.size):
        v[j] -= x.vector[0, j]
    return OK


@kernel_in_place
def choose_columns(x, rows, tolerance, dependent):
    """Mark the columns of x.G that determine its marked rows best."""
    n, m = x.columns.shape[0], x.columns.shape[1] - 1
    for j in range(n):
        for i in range(m):
            x.columns[j, i] = x.G[i, j] if rows[i] != 0 else 0.0
        x.columns[j, m] = 0.0
        dependent[j] = 0
    rank, _ = orthonormal_rows(x.columns, tolerance, x.order)
    for k in range(rank):
        dependent[x.order[k]] = 1


@kernel_in_place
def choose(model, o, x, q):
    """Both partitions at q, by pivoting."""
    world_positions(SCALAR, model, q, x.world)
    jacobian_rows(model, q, x.world, x.G)
    choose_columns(x, x.holonomic, o.rank_tolerance, x.dependent[0])
    choose_columns(x, x.every, o.rank_tolerance, x.dependent[1])
    x.pivots[0], x.pivots[1] = 0.0, 1.0  # what they are worth is seen at their first use


@kernel_in_place
def has_fallen(x):
    """Is it time for another choice? Also where the first was made at a bad place, and others may be better now."""
    return x.pivots[1] < FALLEN * x.pivots[0] or x.pivots[0] < FALLEN * x.pivots[1]
