"""Null-space dynamics in canonical momenta (Spencer 2004, 2.4 and 5.1).

Independent velocities w = R v (rows that pick coordinates of the tree, read virtual velocities at a cut, or span the
tangent space) determine v = K w + v_p, with G K = 0, R K = 1 and G v_p = b. Their momenta are p = dT/dw,

    p = K^T M v        v = K (K^T M K)^-1 (p - K^T M v_p) + v_p

and with the forces Q of `liedyn.mechanics.tree.momenta`, M v changing by tau + Q - G^T lambda, and GK = 0

    qdot = v           pdot = K^T (tau + Q) + Kdot^T M v        Kdot = -[G_1; R]^-1 [Gdot_1; Rdot] K

Accelerations and multipliers are not needed. Gdot = dphi/dv - dpsi/dq, as phi = G a + Gdot v - bdot is the rate of psi
= G v - b, moving constraints included. The thesis names this as future work (5.1) and prints no equations; these are
derived.

Accelerations follow from the rate of p = K^T M v,

    K^T M a = pdot - Kdot^T M v - K^T Mdot v        G a = gamma

where the terms in Kdot cancel: "momenta" and "nullspace" are the same dynamics.
"""
from collections import namedtuple

import numpy as np

from liedyn.machine.compiled.jit import kernel
from liedyn.machine.compiled.user_functions import raise_errors
from liedyn.machine.simd.lanes import SCALAR
from liedyn.mechanics.constraints.constraint_rows import derivative_rows
from liedyn.mechanics.constraints.families.cut import cut_derivatives_kernel
from liedyn.mechanics.constraints.independent import choose
from liedyn.mechanics.dynamics.dynamics_problem import Solution, stabilized
from liedyn.mechanics.dynamics.nullspace import SINGULAR_CHOICE, WRONG_COUNT, nullspace_kernel
from liedyn.mechanics.dynamics.nullspace import raise_for_status
from liedyn.mechanics.dynamics.terms import terms_size
from liedyn.mechanics.tree.kinematics import world_motion
from liedyn.mechanics.tree.momenta import momentum_size, momentum_terms_kernel
from liedyn.mechanics.tree.rnea import rnea_kernel, rnea_size
from liedyn.model.packed import NV, N_ROWS, N_VIRTUAL

NO_WRENCHES = np.empty(0)

Basis = namedtuple("Basis", "K G_sharp rows M chosen condition")
"""[G_1; R]^-1 = [G_sharp K], the numbers of the rows G_1, M, and the coordinates with the condition of [G_1; R]."""


def basis(robot, q, independent, tolerance):
    """`Basis` at one configuration, for coordinates as users specify them, or an `Independent`.

    If the robot's declared coordinates do not determine the motion, pivoting chooses others. If coordinates in the
    argument do not, an error is raised.
    """
    rest = np.zeros(robot.nv)

    def solved_in(choice):
        chosen = choose(robot, q, choice, tolerance)
        return chosen, nullspace_kernel(
            robot.packed, q, rest, rest, NO_WRENCHES, chosen.rows, chosen.virtual, tolerance)

    chosen, solved = solved_in(independent)
    if independent is None and solved[0] in (WRONG_COUNT, SINGULAR_CHOICE):
        chosen, solved = solved_in("auto")
    raise_errors(robot.functions)
    raise_for_status(robot, q, chosen, solved)
    rank, order, inverse = solved[1], solved[5], solved[9]
    return Basis(inverse[:, rank:], inverse[:, :rank], order[:rank], solved[10], chosen, solved[2])


@kernel
def row_rates_kernel(model, q, v):
    """(Gdot, Edot) along v: of the constraints (m, nv), and of the virtual velocities' rows (nz, nv)."""
    n, m, nz = model.ints[NV], model.ints[N_ROWS], model.ints[N_VIRTUAL]
    work, psi_q, phi_q, G_dot = np.empty(terms_size(model)), np.empty((m, n)), np.empty((m, n)), np.empty((m, n))
    z_q, phi_z, E_dot = np.zeros((nz, n)), np.zeros((nz, n)), np.zeros((nz, n))
    rest = np.zeros(n)
    world_motion(SCALAR, model, q, v, rest, work)
    derivative_rows(model, q, v, rest, work, (psi_q, phi_q, G_dot))
    cut_derivatives_kernel(model, work, True, z_q, phi_z, E_dot)
    return G_dot - psi_q, E_dot - z_q


def turning(robot, q, v, at):
    """Kdot (nv, p) for the motion v."""
    G_dot, E_dot = row_rates_kernel(robot.packed, q, v)
    raise_errors(robot.functions)
    R_dot = np.zeros_like(at.chosen.rows)
    reads = at.chosen.virtual >= 0
    R_dot[reads] = E_dot[at.chosen.virtual[reads]]
    return -at.G_sharp @ (G_dot[at.rows] @ at.K) - at.K @ (R_dot @ at.K)


@kernel
def momenta_of_state(model, q, v, f_ext):
    """M v, Q and Mdot v (nv) at one state.

    Mdot v is the rate of M v at constant velocities: the inertia forces h - h(v = 0), plus the effect of the rotating
    screws, Q - Q(v = 0); dampers are in both and cancel.
    """
    n = model.ints[NV]
    momenta, forces, at_rest = np.empty(n), np.empty(n), np.empty(n)
    rate, held, zero, work = np.empty(n), np.empty(n), np.zeros(n), np.empty(momentum_size(model))
    rnea_kernel(SCALAR, model, q, v, zero, f_ext, np.empty(rnea_size(model)), rate)
    rnea_kernel(SCALAR, model, q, zero, zero, f_ext, np.empty(rnea_size(model)), held)
    momentum_terms_kernel(SCALAR, model, q, zero, f_ext, work, momenta, at_rest)
    momentum_terms_kernel(SCALAR, model, q, v, f_ext, work, momenta, forces)
    return momenta, forces, rate - held + forces - at_rest


def solve(problem, independent=None, baumgarte=None):
    """Accelerations from the rate of the momenta; `condition` is that of [G_1; R]."""
    robot, wanted = problem.robot, stabilized(problem, baumgarte)
    a, force, condition = np.empty_like(problem.h), np.empty_like(problem.h), np.empty(len(problem.h))
    for b, M in enumerate(problem.M):
        q, v = problem.q[b], problem.v[b]
        at = basis(robot, q, independent, problem.ranking.tolerance)
        K_dot = turning(robot, q, v, at)
        momenta, forces, inertial = momenta_of_state(robot.packed, q, v, problem.f_ext[b])
        p_dot = at.K.T @ (problem.tau[b] + forces) + K_dot.T @ momenta
        left, aim = p_dot - K_dot.T @ momenta - at.K.T @ inertial, wanted[b][at.rows]
        inertia, G_1, found = at.K.T @ M @ at.K, problem.G[b][at.rows], np.zeros(robot.nv)
        for _ in range(2):  # the second pass removes rounding errors of the first, as in `linear_solution`
            a_p = at.G_sharp @ (aim - G_1 @ found)
            found = found + a_p + at.K @ np.linalg.solve(inertia, left - at.K.T @ (M @ (found + a_p)))
        a[b], condition[b] = found, at.condition
        force[b] = G_1.T @ (at.G_sharp.T @ (problem.tau[b] - problem.h[b] - M @ found))
    return Solution(a, problem.minimum_norm(force), problem.rank, condition, problem.dependent, at.chosen.names)
