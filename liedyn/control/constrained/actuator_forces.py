"""From accelerations of independent coordinates to the forces of the actuators, at one state (Aghili 2005, VII).

    [G; R] a = [gamma; w_dot - Rdot v]        tau - G^T lambda = M a + h

The least-norm tau is `acting` (M a + h) (`liedyn.control.constrained.decomposition`); adding forces in the `internal`
directions changes lambda alone, which hybrid control makes use of.
"""
import numpy as np

from liedyn.control.constrained.controllability import judged
from liedyn.control.constrained.decomposition import Decomposition, decompose, internal_forces
from liedyn.machine.compiled.jit import kernel
from liedyn.machine.compiled.user_functions import raise_errors
from liedyn.machine.errors import ControllabilityError
from liedyn.machine.linalg.dense import inverse
from liedyn.machine.simd.lanes import SCALAR
from liedyn.mechanics.constraints.constraint_rows import reader_rows
from liedyn.mechanics.constraints.families.cut import cut_bias_kernel
from liedyn.mechanics.constraints.independent import singular_choice, wrong_count
from liedyn.mechanics.constraints.loops import rank_of, require_defined
from liedyn.mechanics.dynamics.state import State
from liedyn.mechanics.dynamics.terms import terms_kernel
from liedyn.mechanics.elements.generalized import element_forces
from liedyn.mechanics.tree.kinematics import world_accelerations, world_positions, world_size, world_velocities
from liedyn.model.constraint_records import ranking_of
from liedyn.model.packed import N_VIRTUAL

NOTHING, ROUNDING = 1e-9, 1e-12
"""A force that no actuator can give counts as rounding below this part of the terms of which it is a difference: states
are closed to 1e-12, times the condition number of the mechanism; or below this part of the largest force, as its terms
may themselves be rounding."""


@kernel
def readers_kernel(model, q, v):
    """E (nz, nv) and rho (nz): virtual velocities are E v, virtual accelerations E a + rho."""
    nz, zero = model.ints[N_VIRTUAL], np.zeros(v.size)
    work, E, rho = np.empty(world_size(model)), np.empty((nz, v.size)), np.empty(nz)
    world_positions(SCALAR, model, q, work)
    world_velocities(SCALAR, model, v, work)
    world_accelerations(SCALAR, model, v, zero, work)
    reader_rows(SCALAR, model, work, E)
    cut_bias_kernel(model, work, True, rho)
    return E, rho


@kernel
def motion_kernel(model, state, w_dot, chosen, drive, tolerance):
    """(condition of R K, a, force = M a + h, size of its terms, tau, fields of the `Decomposition`).

    `state` contains the forces that act already; h is the remaining bias. `chosen` are the constant rows R of the
    coordinates, and the numbers of the virtual ones; `drive` is (B, C, C^-1).

    The condition is infinite if the independent coordinates do not determine the motion, and NaN if there are too
    many or too few of them; a, force and tau are zero then.
    """
    q, v, n = state.q, state.v, state.v.size
    (R_constant, virtual), (B, C, C_inverse) = chosen, drive
    M, h, G, _, _, gamma = terms_kernel(model, q, v, state.f_ext)
    h = h - state.tau
    parts = decompose(G, B, C, C_inverse, ranking_of(model, tolerance))
    K, multipliers, acting = parts[1], parts[2], parts[8]
    p, zero = K.shape[1], np.zeros(n)
    if virtual.size != p:
        return np.nan, zero, zero, zero, zero, parts
    R, wanted = R_constant.copy(), w_dot.copy()
    if np.any(virtual >= 0):
        E, rho = readers_kernel(model, q, v)
        for k in range(p):
            if virtual[k] >= 0:
                R[k] = E[virtual[k]]
                wanted[k] -= rho[virtual[k]]
    RK_inverse = np.empty((p, p))
    condition = inverse(R @ K, RK_inverse) if p > 0 else 1.0
    if not condition < 1.0 / np.finfo(np.float64).eps:
        return np.inf, zero, zero, zero, zero, parts
    a = gamma @ multipliers
    a = a + K @ (RK_inverse @ (wanted - R @ a))
    force = M @ a + h
    return condition, a, force, np.abs(M) @ np.abs(a) + np.abs(h), acting @ force, parts


class DrivenState:
    """The forces and accelerations that the wanted accelerations of independent coordinates need at a state.

    The state is (q, v, f_ext), `actuation` and `root` are what the functions `actuation` and `metric_root` return.

    Attributes
    ----------
    condition : float
        Condition number of the independent coordinates.
    parts : Decomposition
    a : ndarray, shape (nv,)
    force : ndarray, shape (nv,)
        M a + h = tau - G^T lambda.
    tau : ndarray, shape (nv,)
        The least-norm forces of the actuators for this motion.

    Raises
    ------
    InputError, SingularConfigurationError, ControllabilityError
        As for `inverse_dynamics`.
    """

    def __init__(self, robot, state, w_dot, chosen, actuation, root, tolerance):
        q, v, f_ext = state
        self.robot, (self.actuators, B), self.f_ext = robot, actuation, f_ext
        self.condition, self.a, self.force, size, self.tau, parts = motion_kernel(
            robot.packed, State(q, v, element_forces(robot, q, v), f_ext), w_dot, (chosen.rows, chosen.virtual),
            (B, *root), tolerance)
        raise_errors(robot.functions)
        self.parts = parts = Decomposition(*parts)
        if not (np.isfinite(self.condition) and np.isfinite(self.a).all()):
            require_defined(robot, q, v)
        # if their number is right at home, this configuration is singular: it has one more degree of freedom
        if np.isnan(self.condition) and len(chosen.names) != robot.nv - rank_of(robot, robot.home, tolerance)[0]:
            raise wrong_count(robot, chosen, parts.rank)
        if not np.isfinite(self.condition):
            raise singular_choice(robot, q, chosen)
        if parts.driven < len(parts.cosines):
            lost = np.abs(self.force @ parts.undriven)
            if (lost > np.maximum(NOTHING * (size @ np.abs(parts.undriven)), ROUNDING * size.max())).any():
                judgement = judged(robot, parts, self.actuators)
                raise ControllabilityError(f"{robot.name!r} cannot make this motion: {judgement}", judgement)

    def multipliers(self, tau):
        """The least-norm lam with G^T lam = tau - M a - h."""
        return self.parts.multipliers @ (tau - self.force)

    def internal_forces(self, rows):
        """T and Pi of `decomposition.internal_forces` for the multipliers of some rows."""
        return internal_forces(self.parts.multipliers[rows], self.parts.U[rows], self.parts.internal)

    def with_multipliers(self, rows, lam):
        """tau for which the multipliers of these rows have given values, too.

        Raises ControllabilityError if no forces of the actuators give these multipliers.
        """
        T, Pi = self.internal_forces(rows)
        tau = self.tau + T @ (lam - self.multipliers(self.tau)[rows])
        missed = np.abs(Pi @ (lam - self.multipliers(tau)[rows]))
        size = np.abs(self.parts.multipliers[rows]) @ (np.abs(tau) + np.abs(self.force)) + np.abs(lam)
        if (missed > NOTHING * size.max()).any():
            judgement = judged(self.robot, self.parts, self.actuators)
            raise ControllabilityError(
                f"{self.robot.name!r}: multipliers of {', '.join(self.robot.row_names[k] for k in rows)} cannot be had "
                f"besides the motion: {', '.join(self.actuators) or 'no actuators'} can load the constraints in "
                f"{judgement.internal} independent ways without moving anything", judgement)
        return tau
