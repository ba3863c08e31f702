"""The rows of all constraints of a robot: one set of kernels for all kinds.

    residual        g(q, t)                          of the holonomic rows, zero in the others
    Jacobian        G(q, t)
    velocity        psi = G v - b(q, t)              zero on the manifold
    bias            phi_0 = Gdot v - bdot            G a + phi_0 = phi = 0
    derivatives     dpsi/dq, dphi/dq, dphi/dv        at the actual v and a
    force           d(G^T lambda)/dq

The rows of a constraint that is switched off are zero: no shape changes when constraints are switched, and ranks,
minimum-norm multipliers and derivatives need no special case.
"""
from numba import types

from liedyn.machine.compiled.jit import MATRIX, VECTOR, inline, kernel_in_place, late
from liedyn.machine.simd.lanes import LANES, SCALAR, WIDTH, splat, store, vector_in
from liedyn.mechanics.constraints.cut_joints import closure_kernel
from liedyn.mechanics.constraints.families import cable, contact, coupling, custom
from liedyn.mechanics.constraints.families.cut import (
    cut_bias_kernel, cut_derivatives_kernel, cut_force_derivative_kernel, cut_jacobian_kernel, cut_state_kernel,
    cut_terms_kernel, cut_velocity_kernel, put_cuts, vary_cut_accelerations, vary_cut_velocities, vary_cut_wrenches,
)
from liedyn.mechanics.tree.kinematics import world_positions
from liedyn.mechanics.tree.tangent_recursion import VARIED_LINKS
from liedyn.model.constraint_records import all_cut, family_of, holonomic_count, is_active, loop_count, loop_rows
from liedyn.model.kinds import FAMILIES
from liedyn.model.packed import NV, N_ROWS
from liedyn.model.packed_records import MODEL

TABLE = (
    contact, coupling, custom, cable,
)
"""All families except cut joints; most robots have none or one. Compiled for the first robot that has some."""


def of_all(operation):
    """A function that calls `operation` of the family of each active constraint, if that family defines it; cut joints
    are skipped.

    The family is found by comparisons that are unrolled at compile time.
    """
    chain = _nothing
    for family in TABLE:
        if hasattr(family, operation):
            chain = _either(operation, family, chain)

    def every(model, *arguments):
        for l in range(loop_count(model)):
            if is_active(model, l):
                chain(family_of(model, l), model, l, *arguments)

    return _named(every, f"{operation}_of_all")


@inline
def _nothing(family, model, l, *arguments):
    return


def _either(operation, family, otherwise):
    name = family.__name__.rpartition(".")[2]
    function, number = getattr(family, operation), FAMILIES.index(name)

    def either(family, model, l, *arguments):
        if family == number:
            function(model, l, *arguments)
        else:
            otherwise(family, model, l, *arguments)

    return _named(either, f"{operation}_of_{name}")


def _named(function, name):
    """A copy of a helper with a name of its own."""
    function.__name__ = function.__qualname__ = name
    return inline(function)


def others(*kinds):
    """Decorator: a late kernel (model, ...) for constraints other than cut joints, called if the model has any."""
    def decorate(function):
        call = late(MODEL, *kinds)(function)

        def where_there_are_any(model, *arguments):
            if not all_cut(model):
                call(model, *arguments)

        return _named(where_there_are_any, f"{function.__name__}_if_any")

    return decorate


_residuals, _jacobians, _velocities, _biases = map(of_all, ("residual", "jacobian", "velocity", "bias"))
_derivatives, _force_derivatives = map(of_all, ("derivatives", "force_derivative"))
_vary_rows, _push, _vary_wrenches, _vary_forces = map(of_all, ("vary_rows", "push", "vary_wrench", "vary_forces"))


@others(VECTOR, VECTOR, VECTOR)
def other_residuals(model, q, work, g):
    _residuals(model, q, work, g)


@others(VECTOR, VECTOR, MATRIX)
def other_jacobians(model, q, work, G):
    _jacobians(model, q, work, G)


@others(VECTOR, VECTOR, VECTOR, VECTOR)
def other_velocities(model, q, v, work, psi):
    _velocities(model, q, v, work, psi)


@others(VECTOR, VECTOR, VECTOR, VECTOR)
def other_biases(model, q, v, work, phi):
    _biases(model, q, v, work, phi)


@others(*[VECTOR] * 4, types.UniTuple(MATRIX, 3))
def other_derivatives(model, q, v, a, work, slopes):
    _derivatives(model, q, v, a, work, slopes)


@others(*[VECTOR] * 3, MATRIX)
def other_force_derivatives(model, q, work, lam, D):
    _force_derivatives(model, q, work, lam, D)


@others(types.UniTuple(VECTOR, 3), VARIED_LINKS, types.UniTuple(MATRIX, 2), types.int64, types.int64, MATRIX)
def vary_other_rows(model, motion, links, columns, part, b, out):
    _vary_rows(model, motion, links, columns, part, b, out)


@others(*[VECTOR] * 3)
def push_others(model, work, lam, bodies):
    _push(model, work, lam, bodies)


@others(*[VECTOR] * 3)
def vary_other_wrenches(model, work, lam, variations):
    _vary_wrenches(model, work, lam, variations)


@others(*[VECTOR] * 2, MATRIX, types.int64, MATRIX)
def vary_other_forces(model, q, lam, N, b, balance):
    """balance[:, block b] -= variation of G^T lambda along N, for rows without wrenches."""
    _vary_forces(model, q, lam, N, b, balance)


@kernel_in_place
def holonomic_rows(model, mask):
    """mask[row] = 1 for rows with a residual, 0 for rows on velocities only; also for inactive rows."""
    for l in range(loop_count(model)):
        first, count = loop_rows(model, l)
        for r in range(count):
            mask[first + r] = 1 if r < holonomic_count(model, l) else 0


@inline
def clear_rows(x):
    """Set all rows to zero."""
    for k in range(x.size):
        store(SCALAR, x, k, 0.0)


@kernel_in_place
def residual_rows(model, q, work, g):
    """g (m); needs `world_positions`."""
    clear_rows(g)
    closure_kernel(SCALAR, model, work, g)
    other_residuals(model, q, work, g)


@kernel_in_place
def jacobian_rows(model, q, work, G):
    """G (m, nv); needs `world_positions`."""
    clear_rows(G)
    cut_jacobian_kernel(SCALAR, model, work, False, G)
    other_jacobians(model, q, work, G)


@late(MODEL, VECTOR, VECTOR, MATRIX)
def pose_and_jacobian(model, q, work, G):
    """The pose of q in `work`, and G (m, nv): for callers that need G once, not in a loop."""
    world_positions(SCALAR, model, q, work)
    jacobian_rows(model, q, work, G)


@kernel_in_place
def velocity_rows(model, q, v, work, psi):
    """psi (m) = G v - b; needs `world_velocities`."""
    clear_rows(psi)
    cut_velocity_kernel(SCALAR, model, work, False, psi)
    other_velocities(model, q, v, work, psi)


@kernel_in_place
def bias_rows(model, q, v, work, phi):
    """phi_0 (m); needs `world_accelerations` with a = 0."""
    clear_rows(phi)
    cut_bias_kernel(model, work, False, phi)
    other_biases(model, q, v, work, phi)


@kernel_in_place
def constraint_terms(model, q, v, work, G, phi):
    """`jacobian_rows` and `bias_rows`; G must be zero before. Needs `world_accelerations` with a = 0."""
    clear_rows(phi)
    cut_terms_kernel(SCALAR, model, work, G, phi)
    other_jacobians(model, q, work, G)
    other_biases(model, q, v, work, phi)


@kernel_in_place
def constraint_state(model, q, v, work, terms):
    """`residual_rows`, `velocity_rows` and `constraint_terms` of terms with residual, psi, G and gamma, which receives
    phi_0; G must be zero before.
    """
    residual, psi, G, phi = terms.residual, terms.psi, terms.G, terms.gamma
    clear_rows(residual)
    clear_rows(psi)
    clear_rows(phi)
    cut_state_kernel(SCALAR, model, work, residual, psi, G, phi)
    other_residuals(model, q, work, residual)
    other_velocities(model, q, v, work, psi)
    other_jacobians(model, q, work, G)
    other_biases(model, q, v, work, phi)


@kernel_in_place
def derivative_rows(model, q, v, a, work, slopes):
    """slopes = (dpsi/dq, dphi/dq, dphi/dv) (m, nv); needs positions, velocities, and accelerations at a in `work`."""
    psi_q, phi_q, phi_v = slopes
    clear_rows(psi_q)
    clear_rows(phi_q)
    clear_rows(phi_v)
    cut_derivatives_kernel(model, work, False, psi_q, phi_q, phi_v)
    other_derivatives(model, q, v, a, work, slopes)


@kernel_in_place
def force_derivative_rows(model, q, work, lam, D):
    """D += d(G^T lambda)/dq (nv, nv); needs `world_positions`."""
    cut_force_derivative_kernel(model, work, False, lam, D)
    other_force_derivatives(model, q, work, lam, D)


@kernel_in_place
def reader_rows(lane, model, work, E):
    """E (nz, nv) with E v the virtual velocities of the cut joints; needs `world_positions`."""
    E[:] = 0.0
    cut_jacobian_kernel(lane, model, work, True, E)


# ---- in many directions at once: columns of N displace q, those of X change v
# (`liedyn.mechanics.tree.tangent_recursion`)


@inline
def clear_block(A, b):
    """Set one block of columns of a padded matrix to zero."""
    width = A.shape[1] // WIDTH
    for i in range(A.shape[0]):
        store(LANES, A, width * i + b, splat(LANES, 0.0))


@kernel_in_place
def vary_velocity_rows(lane, model, motion, links, N, b, psi):
    """psi[:, block b], the variation of G v - b along N, for columns in which X is zero; needs `vary_velocities`.

    motion = (q, v, a), `links` a `VariedLinks`. Lanes are for cut joints only.
    """
    q, v, a = motion
    clear_block(psi, b)
    vary_cut_velocities(lane, model, links, False, b, psi)
    vary_other_rows(model, (q, v, vector_in(a, 0, model.ints[NV])), links, (N, N), 2, b, psi)


@kernel_in_place
def vary_acceleration_rows(lane, model, motion, links, columns, b, phi):
    """phi[:, block b], the variation of G a + Gdot v - bdot at constant a; needs `vary_accelerations`.

    columns = (N, X); else as for `vary_velocity_rows`.
    """
    q, v, a = motion
    clear_block(phi, b)
    vary_cut_accelerations(lane, model, links, False, b, phi)
    vary_other_rows(model, (q, v, vector_in(a, 0, model.ints[NV])), links, columns, 3, b, phi)


@kernel_in_place
def push_constraints(lane, model, work, lam, bodies, cuts):
    """Add the wrenches G^T lambda of cut joints and contacts to the links' wrenches; fills `cuts`."""
    put_cuts(lane, model, work, lam, bodies, cuts)
    push_others(model, work, vector_in(lam, 0, model.ints[N_ROWS]), bodies)


@kernel_in_place
def vary_constraint_wrenches(lane, model, links, lam, b, shares, balance):
    """Variations of these wrenches at constant lambda; custom rows have no wrenches (`vary_other_forces`)."""
    vary_cut_wrenches(lane, model, links, b, shares, balance)
    vary_other_wrenches(model, links.world, vector_in(lam, 0, model.ints[N_ROWS]), links.variations)
