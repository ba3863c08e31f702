"""Projections of configurations on the equations and out of penetrated contacts, for `moreau`.

Both are Newton's method (`liedyn.mechanics.constraints.closing`), in the metric of the kinetic energy: on the rows of
contacts that are penetrated, or, where so many cannot rest at once, with contacts that can only push.
"""
import numpy as np
from numba import types

from liedyn.machine.compiled.jit import inline, inline_array, kernel, kernel_in_place
from liedyn.machine.simd.lanes import SCALAR
from liedyn.mechanics.constraints.closing import Rule, closer
from liedyn.mechanics.constraints.constraint_rows import jacobian_rows, residual_rows
from liedyn.mechanics.contact.complementarity import SOLVED
from liedyn.mechanics.contact.contact_problem import System, Touching, solve_contacts
from liedyn.mechanics.tree.configuration import integrate_kernel
from liedyn.mechanics.tree.kinematics import world_positions
from liedyn.model.constraint_records import loop_rows
from liedyn.motion.simulation.manifold_projection import correction, metric

DEEPEST = 1e-5
"""Largest penetration [m, rad] that a projection may leave."""
ITERATIONS, ENOUGH = 31, 1e-12
"""Steps of a projection, and the largest error where they have ceased to reduce it."""


@inline
def deepest_of(model, work, contacts):
    """The deepest penetration, from the residuals."""
    deepest = 0.0
    for c in range(contacts.index.size):
        deepest = max(deepest, -contacts.side[c] * work.residual[loop_rows(model, contacts.index[c])[0]])
    return deepest


@inline
def error_in_use(model, of, q):
    """The largest residual of the rows in use at q; contacts that are penetrated are in use from then on."""
    _, work, contacts, use = of
    world_positions(SCALAR, model, q, work.world)
    residual_rows(model, q, work.world, work.residual)
    size = 0.0
    for c in range(contacts.index.size):
        r = loop_rows(model, contacts.index[c])[0]
        if use[r] == 0 and contacts.side[c] * work.residual[r] < 0.0:
            use[r], size = 1, 2.0 * ENOUGH  # at least one step moves q out of it
    for r in range(use.size):
        if use[r] != 0:
            size = max(size, abs(work.residual[r]))
    return size


@inline
def step_in_use(model, of, q):
    """The nearest change that satisfies the rows in use."""
    settings, work, _, use = of
    jacobian_rows(model, q, work.world, work.G)
    correction(model, settings, work, work.residual, use, work.order[:0])
    integrate_kernel(model, q, work.vector[0], q)
    return True


_push_out = closer(error_in_use, step_in_use)


@kernel_in_place
def push_out(model, settings, work, contacts, use, q):
    """Projects q on the equations and out of penetrated contacts; all contacts have rows. Returns the deepest
    penetration.

    `use` (m) marks rows: those closed at first, and those of contacts that were reached in between.
    """
    metric(model, settings, work, q)
    _push_out(model, (settings, work, contacts, use), Rule(ITERATIONS, 1e-14, ENOUGH, 0.5, np.inf), q)
    return deepest_of(model, work, contacts)


@inline
def error_with_contacts(model, of, q):
    """The largest residual of the equations, or the deepest penetration; room.c are the right sides of a step."""
    _, work, contacts, touching, room, _ = of
    world_positions(SCALAR, model, q, work.world)
    residual_rows(model, q, work.world, work.residual)
    size = deepest_of(model, work, contacts)
    for r in range(room.c.size):
        room.c[r] = -work.residual[r] if work.holonomic[r] != 0 else 0.0
        size = max(size, abs(room.c[r]) if room.equal[r] else 0.0)
    return size


@inline_array
def step_with_contacts(model, of, q):
    """A step by frictionless contacts; False if there is none."""
    settings, work, _, touching, room, (none, dq, P) = of
    jacobian_rows(model, q, work.world, work.G)
    system = System(work.M, none, work.G, room.c, room.equal)
    if solve_contacts(system, touching, settings.rank_tolerance, dq, P)[0] != SOLVED:
        return False
    integrate_kernel(model, q, dq, q)
    return True


_lift_out = closer(error_with_contacts, step_with_contacts)


@kernel
def lift_out(model, settings, work, contacts, room, q):
    """`push_out` for more resting contacts than can rest: while q is moved out of some contacts, others may open.

    Each step solves frictionless contacts, M dq = -G^T P, gap + G dq >= 0 and P >= 0 complementary. Returns the deepest
    penetration left.
    """
    size, n, rows = contacts.index.size, room.half.size, np.empty(contacts.index.size, np.int64)
    for c in range(size):
        rows[c] = loop_rows(model, contacts.index[c])[0]
    touching = Touching(rows, np.arange(size), np.ones(size, np.int64), np.zeros(size), np.zeros(size, types.boolean),
                        np.zeros((size, 3)), contacts.side, np.zeros(size), np.full(size, -1.0))
    arrays = np.zeros(n), np.empty(n), np.empty(room.force.size)
    _lift_out(model, (settings, work, contacts, touching, room, arrays), Rule(ITERATIONS, 1e-13, DEEPEST, 0.5, np.inf),
              q)
    return deepest_of(model, work, contacts)
