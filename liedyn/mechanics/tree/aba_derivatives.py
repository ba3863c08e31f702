"""Derivatives of forward dynamics, with M^-1 as a by-product, from those of inverse dynamics and M = L^T D L.

Differentiating ID(q, v, FD(q, v, tau)) = tau gives (Carpentier and Mansard 2018, RSS)

    da/dq = -M^-1 dtau/dq      da/dv = -M^-1 dtau/dv      da/dtau = M^-1

with dtau/dq and dtau/dv evaluated at the acceleration a = M^-1 (tau + tau_joint - c). The composites that the
derivatives need, evaluated with a = 0, also give M and c; a follows from the factor of M, and its contribution is then
added to the wrenches of the composites, so that nothing is computed twice.

The factor comes in two forms. Twelve numbers a row and sweeps along the tree
(`liedyn.mechanics.tree.articulated_factor`) take O(n) for each column, and for one state process whole registers of
columns. In lanes, and in code written by `specialize`, the entries of L (`liedyn.mechanics.tree.ltdl`) are faster for a
small tree, and slower for a humanoid.
"""
# mypy: ignore-errors

from __future__ import annotations

from typing import TYPE_CHECKING

from liedyn.lie.algebra import add6, dot6, inertia_times, scale6
from liedyn.machine.compiled.jit import inline, kernel_in_place
from liedyn.machine.simd.lanes import WIDTH, load, store
from liedyn.machine.simd.registers import at_once
from liedyn.mechanics.tree.aba import require_regular_tree
from liedyn.mechanics.tree.articulated_factor import (
    ROWS, forks_size, make_symmetric, put_identity, put_identity_of_trees, sweep_factor, sweep_matrices, sweep_vector,
)
from liedyn.mechanics.tree.crba import carried_momenta, inertia_entries
from liedyn.mechanics.tree.joints import accumulate_springs
from liedyn.mechanics.tree.kinematics import (
    ACCELERATION, S, S_DOT, TWIST, acceleration_of, of_dof, of_link, twist_of, world_accelerations, world_positions,
    world_size, world_velocities,
)
from liedyn.mechanics.tree.ltdl import ltdl_factor, ltdl_inverse, ltdl_solve, ltdl_solve_both
from liedyn.mechanics.tree.rnea_derivatives import (
    COMPOSITE, F, TABLE, composites, derivative_rows, derivative_rows_of_trees, derivatives_alone, derivatives_table,
)
from liedyn.mechanics.tree.rows import clear_lanes, pitch, table_in, table_size
from liedyn.model.calls.recursion import recursion
from liedyn.model.packed_records import (
    accumulate6, dof_count, dof_total, first_dof, get6, get_inertia, link_count, parent, put6, zero6,
)

if TYPE_CHECKING:
    from liedyn.model.robot import Robot
    from liedyn.typing import Array, ArrayLike, Wrenches

ENTRIES_PAY = 18  # degrees of freedom up to which, in lanes, the entries of L are faster


@kernel_in_place
def aba_derivatives_size(model):
    """Size of the workspace of `aba_derivatives_kernel`: that of the derivatives of RNEA, and of the sweeps."""
    composites = COMPOSITE * link_count(model)
    return world_size(model) + composites + table_size(model, TABLE + ROWS) + forks_size(model) + WIDTH


@kernel_in_place
def bias_accelerations(lane, model, v, work):
    """The links' accelerations with a = 0; needs `world_velocities`."""
    for i in range(link_count(model)):
        A = acceleration_of(lane, model, work, parent(model, i))
        for j in range(first_dof(model, i), first_dof(model, i) + dof_count(model, i)):
            A = add6(A, scale6(load(lane, v, j), get6(lane, work, of_dof(model, j, S_DOT))))
        put6(lane, work, of_link(i, ACCELERATION), A)


@kernel_in_place
def free_forces(lane, model, q, v, tau, work, free):
    """free = tau + tau_joint - c, the generalised force that accelerates; needs `composites` with a = 0."""
    for i in range(link_count(model)):
        carried = get6(lane, work, world_size(model) + COMPOSITE * i + F)
        for j in range(first_dof(model, i), first_dof(model, i) + dof_count(model, i)):
            store(lane, free, j, load(lane, tau, j) - dot6(carried, get6(lane, work, of_dof(model, j, S))))
        accumulate_springs(lane, model, i, q, v, -1.0, free)


@kernel_in_place
def accelerate_composites(lane, model, a, work):
    """Add the contribution of a to the composites' wrenches: F_i += I_i dA_i + the sum of I_j S_j a_j over all joints j
    beyond.

    dA_i is the contribution of a to the acceleration of link i, and of all links beyond except for their own a_j. Needs
    `world_accelerations`; overwrites the twists, which are no longer needed.
    """
    n, base = link_count(model), world_size(model)
    for i in range(n):
        dA = twist_of(lane, work, parent(model, i))  # dA of the parent overwrites its twist
        for j in range(first_dof(model, i), first_dof(model, i) + dof_count(model, i)):
            dA = add6(dA, scale6(load(lane, a, j), get6(lane, work, of_dof(model, j, S))))
        put6(lane, work, of_link(i, TWIST), dA)
        c = base + COMPOSITE * i
        accumulate6(lane, work, c + F, inertia_times(get_inertia(lane, work, c), dA))
    for i in range(n):
        own = zero6(lane)
        for j in range(first_dof(model, i), first_dof(model, i) + dof_count(model, i)):
            own = add6(own, scale6(load(lane, a, j), get6(lane, work, of_dof(model, j, S))))
        put6(lane, work, of_link(i, TWIST), inertia_times(get_inertia(lane, work, base + COMPOSITE * i), own))
    for i in range(n - 1, -1, -1):
        if parent(model, i) >= 0:
            beyond = get6(lane, work, of_link(i, TWIST))
            accumulate6(lane, work, of_link(parent(model, i), TWIST), beyond)
            accumulate6(lane, work, base + COMPOSITE * parent(model, i) + F, beyond)


@inline
def put_derivatives(lane, model, given, work, rows, put_one, found):
    """found = (a, L, da/dq, da/dv, M^-1) of `aba_derivatives_kernel` for given = (q, v, tau, f_ext).

    Entries between two trees are zero if `rows` and `put_one` write them so.
    """
    (q, v, tau, f_ext), (a, L, da_dq, da_dv, Minv) = given, found
    world_positions(lane, model, q, work)
    world_velocities(lane, model, v, work)
    bias_accelerations(lane, model, v, work)
    composites(lane, model, f_ext, work)
    table = derivatives_table(lane, model, work)
    forks = table_in(lane, work, table + (TABLE + ROWS) * pitch(model))
    sweeps = at_once(lane) > 1 or dof_total(model) > ENTRIES_PAY
    if sweeps:
        carried_momenta(lane, model, world_size(model), COMPOSITE, work, table)
        sweep_factor(lane, model, work, table, TABLE, forks, L)
        free_forces(lane, model, q, v, tau, work, a)
        sweep_vector(lane, model, work, table, TABLE, forks, a)
    else:
        clear_lanes(lane, model, L)
        inertia_entries(lane, model, world_size(model), COMPOSITE, work, L)
        ltdl_factor(lane, model, L)
        free_forces(lane, model, q, v, tau, work, a)
        ltdl_solve(lane, model, L, 1.0, a, 1)
    world_accelerations(lane, model, v, a, work)
    accelerate_composites(lane, model, a, work)
    derivatives_alone(lane, model, q, work, rows, (da_dq, da_dv), Minv)
    if sweeps:
        put_one(lane, model, Minv)
        sweep_matrices(lane, model, work, table, TABLE, forks, da_dq, da_dv, Minv)
        make_symmetric(lane, model, Minv)
    else:
        ltdl_solve_both(lane, model, L, -1.0, da_dq, da_dv, dof_total(model))
        ltdl_inverse(lane, model, L, Minv)


@kernel_in_place
def aba_derivatives_kernel(lane, model, q, v, tau, f_ext, work, a, L, da_dq, da_dv, Minv):
    """da/dq, da/dv and M^-1, each nv x nv; `a` receives the accelerations, the diagonal of `L` is D of M = L^T D L."""
    given, found = (q, v, tau, f_ext), (a, L, da_dq, da_dv, Minv)
    put_derivatives(lane, model, given, work, derivative_rows, put_identity, found)


@kernel_in_place
def aba_derivatives_nonzeros_kernel(lane, model, q, v, tau, f_ext, work, a, L, da_dq, da_dv, Minv):
    """The same if all entries between two trees are zero already; these are not written."""
    given, found = (q, v, tau, f_ext), (a, L, da_dq, da_dv, Minv)
    put_derivatives(lane, model, given, work, derivative_rows_of_trees, put_identity_of_trees, found)


@recursion(aba_derivatives_kernel, work=aba_derivatives_size, scratch={"a": "nv", "L": "nv nv"},
           nonzeros=aba_derivatives_nonzeros_kernel, refuse={"singular_tree": require_regular_tree},
           da_dq="nv nv", da_dv="nv nv", Minv="nv nv")
def aba_derivatives(robot: Robot, q: ArrayLike, v: ArrayLike, tau: ArrayLike, f_ext: Wrenches | None = None,
                    out: Array | None = None) -> tuple[Array, Array, Array]:
    """Derivatives of forward dynamics with respect to configuration, velocity and force.

    Parameters
    ----------
    f_ext : dict or array_like, optional
        Wrenches (moment, force) [N m, N] on bodies, constant in each body's own frame, as for `aba`.

    Returns
    -------
    da_dq : ndarray, shape (..., nv, nv)
        Column j is the derivative along q exp(e_j t): in the tangent space at q, perturbed on the right.
    da_dv : ndarray, shape (..., nv, nv)
    Minv : ndarray, shape (..., nv, nv)
        Inverse of the inertia matrix, the derivative with respect to `tau`; symmetric.

    Raises
    ------
    SingularConfigurationError
        The robot has massless bodies that only its loops hold.

    Notes
    -----
    Carpentier and Mansard 2018, RSS, with the sparse factorisation of Featherstone 2008, section 6.5, in large trees
    in the form of his articulated bodies; springs and dampers of the joints included, loops ignored.

    Examples
    --------
    >>> import numpy as np
    >>> import liedyn as ld
    >>> panda = ld.load("panda")
    >>> q = ld.neutral(panda)
    >>> da_dq, da_dv, Minv = ld.aba_derivatives(panda, q, 0 * q, 0 * q)
    >>> bool(abs(Minv @ ld.crba(panda, q) - np.eye(7)).max() < 1e-10)
    True
    """
