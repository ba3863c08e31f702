"""Linearization of any mechanism at any state: the public functions."""
from dataclasses import dataclass, fields

import numpy as np

from liedyn.boundary import states, wrenches
from liedyn.constraints.independent import (
    Independent, choose_positions, choose_speeds, holonomic, singular_choice, wrong_count,
)
from liedyn.constraints.loops import reader_kernel
from liedyn.dynamics.forward import raise_for_status, warn_if_poor
from liedyn.dynamics.nullspace import OK, RANK_TOLERANCE, WRONG_COUNT, nullspace_kernel
from liedyn.errors import ClosureError, InputError
from liedyn.linearization.local import linearize_kernel
from liedyn.linearization.outputs import Derivatives, output_rows
from liedyn.linearization.state_space import LocalStateSpace
from liedyn.linearization.upper_rows import turning

CLOSURE_TOLERANCE = 1e-8
"""Largest closure error, and largest violation of G v = b relative to |v|, of an operating point: the derivatives
are those of the manifold, and off it there is no state to linearize about."""


def require_consistent(robot, q, v, residual, psi, tolerance):
    """The state lies on the constraint manifold; returns the largest closure error.

    Raises
    ------
    ClosureError
        A loop is open, or another constraint is not met.
    InputError
        The velocity opens a loop, or breaks another constraint.
    """
    if not len(residual):
        return 0.0
    row = np.abs(residual).argmax()
    error, owner = abs(residual[row]), robot.row_owners[row]
    if error > tolerance:
        what = f"loop {owner!r} of {robot.name!r} is open" if owner in robot.loop_names else (
            f"constraint {owner!r} of {robot.name!r} is not met: off")
        raise ClosureError(f"{what} by {error:.3g} ({robot.row_names[row]}); assemble it first with close()",
                           float(error), owner, q)
    row = np.abs(psi).argmax()
    if abs(psi[row]) > tolerance * max(1.0, np.abs(v).max()):
        owner, moves = robot.row_owners[row], abs(psi[row])
        what = f"the loops of {robot.name!r}: |G v - b|" if owner in robot.loop_names else (
            f"constraint {owner!r} of {robot.name!r}: |G v - b|")
        raise InputError(f"v opens {what} = {moves:.3g} in {robot.row_names[row]}; "
                         "make v consistent with complete_velocity()")
    return float(error)


@dataclass(frozen=True)
class _Found:
    """What is known of one state: coordinates y, velocities w, rank and condition number, closure error, `Local`."""

    coordinates: Independent
    velocities: Independent
    rank: int
    condition: float
    residual: float
    local: object


def _linearize_one(robot, q, v, tau, f_ext, independent, speeds, closure_tolerance, rank_tolerance):
    y = choose_positions(robot, q, independent, rank_tolerance)
    w = choose_speeds(robot, q, y, speeds, rank_tolerance)
    of_w, of_y, local = linearize_kernel(robot.ints, robot.floats, q, v, tau, f_ext, y.rows, y.virtual, w.rows,
                                         w.virtual, robot.actuator_matrix.copy(), rank_tolerance)
    residual = require_consistent(robot, q, v, local.residual, local.psi, closure_tolerance)
    status, rank, condition = of_w
    if status != OK:
        raise_for_status(robot, q, w, nullspace_kernel(
            robot.ints, robot.floats, q, v, tau, f_ext, w.rows, w.virtual, rank_tolerance))
    if of_y[0] == WRONG_COUNT:
        raise wrong_count(robot, y, of_y[1])
    if of_y[0] != OK:
        raise singular_choice(robot, q, y, holonomic(robot))
    warn_if_poor(w, condition)
    warn_if_poor(y, of_y[2])
    return _Found(y, w, rank, condition, residual, local)


def linearize(robot, q, v, tau, independent=None, outputs=None, f_ext=None, closure_tolerance=CLOSURE_TOLERANCE,
              rank_tolerance=RANK_TOLERANCE, speeds=None):
    """Exact minimal state-space model of a mechanism about a state, moving or at rest.

    Parameters
    ----------
    robot : Robot
    q : array_like, shape (..., nq)
        Configuration [rad, m; quaternions (x, y, z, w)] that closes the loops.
    v : array_like, shape (..., nv)
        Velocity [rad/s, m/s] that keeps them closed.
    tau : array_like, shape (..., nv)
        Generalised forces [N m, N] at the operating point.
    independent : sequence of str, "auto", "tangent" or None
        Coordinates y of the state: names of the tree's or of cut joints' coordinates (a joint's name stands for all it
        has), "auto" (pivoting, at the first state of a batch), "tangent" (an orthonormal basis of the tangent
        space). None: what the robot declares, else "auto".
    outputs : sequence of str, optional
        Outputs, such as ``"bucket"``, ``"velocity:boom"``, ``"acceleration:boom"``, ``"pose:bucket"``,
        ``"twist:bucket"``, ``"twist_rate:bucket"``, ``"wrench:pin"``. None: what the robot declares, else the
        independent coordinates.
    f_ext : dict or array_like, optional
        Wrenches (moment, force) [N m, N] on bodies, constant in each body's own frame, as for `rnea`.
    closure_tolerance : float
        Largest closure error [rad, m] and relative violation of ``G v = 0`` accepted.
    rank_tolerance : float
        Pivots of G below this part of the largest one count as zero.
    speeds : sequence of str, optional
        Independent velocities w of the state, where rolling or other constraints on velocities alone leave fewer of
        them than independent coordinates. None: what the robot declares, else those of the independent coordinates that
        pivoting leaves; all of them where every constraint is holonomic.

    Returns
    -------
    LocalStateSpace
        ``A, B, C, D, f0, K, S, drift`` with names of states, inputs (the robot's actuators, or all of tau) and outputs.
        For a batch the arrays have its leading axes.

    Raises
    ------
    ClosureError
        A loop is open at q.
    InputError
        v opens a loop, a shape does not fit, an entry is not finite, an unknown name, or too many or few coordinates.
    SingularConfigurationError
        The independent coordinates do not determine the motion here, or some motion moves no inertia.

    Warns
    -----
    ConditionWarning
        The independent coordinates are poorly conditioned here.

    Notes
    -----
    Spencer 2004, 4.2-4.4 (A21, A22 and B of the local state space), extended to coordinates on Lie groups, virtual
    coordinates and redundant loops: see `liedyn.linearization.local`. No step size: exact to rounding.
    The tangent of a ball or free joint among the coordinates is body-fixed, and turns with the body (upper left of A).
    Constraints that are switched off do not count, moving ones are taken at the robot's time (``robot.at(t)``).

    Examples
    --------
    >>> import liedyn as ld
    >>> loader = ld.load("loader")
    >>> ss = ld.linearize(loader, loader.home, [0.0] * 8, [0.0] * 8, independent=("boom", "bucket"))
    >>> ss.A.shape, ss.inputs
    ((4, 4), ('lift_cylinder', 'tilt_cylinder'))
    """
    lead, q, v, tau = states(robot, q=q, v=v, tau=tau)
    forces = wrenches(robot, f_ext, lead)
    if not len(q):
        raise InputError("linearize needs at least one state")
    if independent == "auto" or (independent is None and not robot.independent):
        independent = choose_positions(robot, q[0], "auto", rank_tolerance)  # one choice for all states of a batch
    if speeds is None and len(q) > 1:
        first = choose_positions(robot, q[0], independent, rank_tolerance)
        speeds = choose_speeds(robot, q[0], first, None, rank_tolerance)
    systems = [_state_space(robot, q[b], v[b], tau[b], outputs, _linearize_one(
        robot, q[b], v[b], tau[b], forces[b], independent, speeds, closure_tolerance, rank_tolerance))
        for b in range(len(q))]
    return systems[0] if not lead else _stack(systems, lead)


def _state_space(robot, q, v, tau, outputs, found):
    local, p_y, p_w, nu = found.local, len(found.coordinates.names), len(found.velocities.names), found.local.B.shape[1]
    N, S = local.N[:, :p_y].copy(), local.X[:, p_y:p_y + p_w].copy()
    outputs = robot.outputs if outputs is None else outputs
    if outputs:
        derivatives = Derivatives(robot, q, v, found.rank, (p_y, p_w, nu), local)
        labels, rows = output_rows(robot, outputs, derivatives)
    else:
        labels, rows = found.coordinates.names, np.eye(p_y, p_y + p_w + nu)
    return LocalStateSpace(
        A=local.A,
        B=local.B,
        C=rows[:, :p_y + p_w],
        D=rows[:, p_y + p_w:],
        f0=local.f0,
        K=N,
        S=S,
        drift=v - S @ local.w,
        states=found.coordinates.names + tuple(f"velocity:{name}" for name in found.velocities.names),
        inputs=robot.actuator_names,
        outputs=labels,
        q=q.copy(),
        v=v.copy(),
        tau=tau.copy(),
        a=local.a,
        lam=local.lam,
        rank=found.rank,
        condition=found.condition,
        closure_residual=found.residual,
    )


def _stack(systems, lead):
    """One result whose arrays have the leading axes of the batch."""
    first = systems[0]
    stacked = {}
    for field in fields(LocalStateSpace):
        values = [getattr(system, field.name) for system in systems]
        stacked[field.name] = getattr(first, field.name) if isinstance(values[0], tuple) else np.reshape(
            values, lead + np.shape(values[0]))
    return LocalStateSpace(**stacked)


def underlying(robot, q, v, tau, independent=None, f_ext=None, closure_tolerance=CLOSURE_TOLERANCE,
               rank_tolerance=RANK_TOLERANCE):
    """Linearized underlying ODE in all coordinates, A = [Df] P of the thesis.

    Parameters
    ----------
    robot : Robot
    q : array_like, shape (nq,)
        Configuration [rad, m; quaternions (x, y, z, w)] that closes the loops.
    v : array_like, shape (nv,)
        Velocity [rad/s, m/s] that keeps them closed.
    tau : array_like, shape (nv,)
        Generalised forces [N m, N].
    independent : sequence of str, "auto", "tangent" or None
        Coordinates that define the projection P onto the tangent of the constraint manifold, as for `linearize`.
    f_ext : dict or array_like, optional
        Wrenches (moment, force) [N m, N] on bodies, as for `rnea`.
    closure_tolerance : float
        Largest closure error [rad, m] and relative violation of ``G v = 0`` accepted.
    rank_tolerance : float
        Pivots of G below this part of the largest one count as zero.

    Returns
    -------
    A : ndarray, shape (2 nv, 2 nv)
        d(dq, dv)/dt for a tangent perturbation (dq, dv) that is first projected by P. Its rank is 2p at most; at an
        equilibrium its spectrum is that of the local state space, and zeros.

    Raises
    ------
    ClosureError
        A loop is open at q.
    InputError
        v opens a loop, a shape does not fit, an entry is not finite, an unknown name, or too many or few coordinates.
    SingularConfigurationError
        The independent coordinates do not determine the motion here, or some motion moves no inertia.

    Notes
    -----
    Spencer 2004, eq. 4.3 and 4.4, theorems 4.1.1 and 4.1.2.

    Examples
    --------
    >>> import liedyn as ld
    >>> loader = ld.load("loader")
    >>> ld.underlying(loader, loader.home, [0.0] * 8, [0.0] * 8).shape
    (16, 16)
    """
    lead, q, v, tau = states(robot, q=q, v=v, tau=tau)
    if lead:
        raise InputError(f"underlying takes one state, got leading axes {lead}")
    found = _linearize_one(robot, q[0], v[0], tau[0], wrenches(robot, f_ext, lead)[0], independent, None,
                           closure_tolerance, rank_tolerance)
    y, w, local = found.coordinates, found.velocities, found.local
    p_y, x = len(y.names), len(y.names) + len(w.names)
    rates = local.X[:, :x].copy()
    turning(robot.ints, v[0], local.N, p_y, rates)
    along_motion = np.vstack([rates, local.da[:, :x]])
    E, rho_q, _, _ = reader_kernel(robot.ints, robot.floats, q[0], v[0], local.a)
    R_y, R_w = y.matrix(E), w.matrix(E)
    rate, reads = np.zeros_like(R_w), w.virtual >= 0
    rate[reads] = rho_q[w.virtual[reads]]
    return along_motion @ np.block([[R_y, np.zeros_like(R_y)], [rate, R_w]])
