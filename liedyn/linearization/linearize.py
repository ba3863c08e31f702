"""Linearization of any mechanism at any state: the public functions."""
from dataclasses import fields

import numpy as np

from liedyn.boundary import states, wrenches
from liedyn.constraints.independent import choose
from liedyn.constraints.loops import closure_error, constraint_jacobian
from liedyn.dynamics.forward import raise_for_status, warn_if_poor
from liedyn.dynamics.nullspace import RANK_TOLERANCE
from liedyn.errors import ClosureError, InputError
from liedyn.linearization.local import linearize_kernel, tangent_bracket
from liedyn.linearization.outputs import Derivatives, output_rows
from liedyn.linearization.state_space import LocalStateSpace

CLOSURE_TOLERANCE = 1e-8
"""Largest closure error, and largest violation of G v = 0 relative to |v|, of an operating point: the derivatives
are those of the manifold, and off it there is no state to linearize about."""


def require_consistent(robot, q, v, tolerance):
    """The state lies on the constraint manifold; returns the closure error.

    Raises
    ------
    ClosureError
        A loop is open.
    InputError
        The velocity opens a loop.
    """
    if not robot.loop_names:
        return 0.0
    error = np.abs(closure_error(robot, q))
    if error.max() > tolerance:
        loop = robot.row_names[error.argmax()].rsplit(".", 1)[0]
        raise ClosureError(
            f"loop {loop!r} of {robot.name!r} is open by {error.max():.3g} ({robot.row_names[error.argmax()]}); "
            "assemble it first with close()",
            float(error.max()),
            loop,
            q,
        )
    violation = np.abs(constraint_jacobian(robot, q) @ v)
    if violation.max() > tolerance * max(1.0, np.abs(v).max()):
        row = robot.row_names[violation.argmax()]
        raise InputError(f"v opens the loops of {robot.name!r}: |G v| = {violation.max():.3g} in {row}; "
                         "make v consistent with complete_velocity()")
    return float(error.max())


def _linearize_one(robot, q, v, tau, f_ext, independent, closure_tolerance, rank_tolerance):
    residual = require_consistent(robot, q, v, closure_tolerance)
    chosen = choose(robot, q, independent, rank_tolerance)
    results = linearize_kernel(robot.ints, robot.floats, q, v, tau, f_ext, chosen.rows, chosen.virtual,
                               robot.actuator_matrix.copy(), rank_tolerance)
    raise_for_status(robot, q, chosen, results[0])
    warn_if_poor(chosen, results[0][2])
    return chosen, residual, results


def linearize(robot, q, v, tau, independent=None, outputs=None, f_ext=None, closure_tolerance=CLOSURE_TOLERANCE,
              rank_tolerance=RANK_TOLERANCE):
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

    Returns
    -------
    LocalStateSpace
        ``A, B, C, D, f0, K`` with names of states, inputs (the robot's actuators, or all of tau) and outputs. For a
        batch the arrays have its leading axes.

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
        independent = choose(robot, q[0], "auto", rank_tolerance)  # one choice for all states of a batch
    systems = [_state_space(robot, q[b], v[b], tau[b], independent, outputs, *_linearize_one(
        robot, q[b], v[b], tau[b], forces[b], independent, closure_tolerance, rank_tolerance)) for b in range(len(q))]
    return systems[0] if not lead else _stack(systems, lead)


def _state_space(robot, q, v, tau, independent, outputs, chosen, residual, results):
    solved, A11, lower, Delta, da, balance, of_virtual = results
    p, nu = len(chosen.names), lower.shape[1] - 2 * len(chosen.names)
    A, B = np.zeros((2 * p, 2 * p)), np.zeros((2 * p, nu))
    A[:p, :p], A[:p, p:], A[p:], B[p:] = A11, np.eye(p), lower[:, :2 * p], lower[:, 2 * p:]
    derivatives = Derivatives(robot, q, v, solved, Delta, da, balance, of_virtual)
    R = chosen.matrix(derivatives.E)
    outputs = robot.outputs if outputs is None else outputs
    if outputs:
        labels, rows = output_rows(robot, outputs, derivatives)
    else:
        labels, rows = chosen.names, np.eye(p, 2 * p + nu)
    return LocalStateSpace(
        A=A,
        B=B,
        C=rows[:, : 2 * p],
        D=rows[:, 2 * p :],
        f0=np.concatenate([R @ v, derivatives.w_dot]),
        K=derivatives.N.copy(),
        states=chosen.names + tuple(f"velocity:{name}" for name in chosen.names),
        inputs=robot.actuator_names,
        outputs=labels,
        q=q.copy(),
        v=v.copy(),
        tau=tau.copy(),
        a=derivatives.a,
        lam=derivatives.lam,
        rank=int(derivatives.rank),
        condition=float(solved[2]),
        closure_residual=residual,
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
    chosen, _, results = _linearize_one(robot, q[0], v[0], tau[0], wrenches(robot, f_ext, lead)[0], independent,
                                        closure_tolerance, rank_tolerance)
    solved, _, _, Delta, da, _, of_virtual = results
    E, N, p = solved[8], np.ascontiguousarray(solved[9][:, solved[1]:]), len(chosen.names)
    bracket = np.empty_like(N)
    tangent_bracket(robot.ints, v[0], N, bracket)
    along_motion = np.block([[Delta - bracket, N], [da[:, :p], da[:, p:2 * p]]])
    R, rate = chosen.matrix(E), np.zeros((p, robot.nv))
    reads = chosen.virtual >= 0
    rate[reads] = of_virtual[0][chosen.virtual[reads]]
    return along_motion @ np.block([[R, np.zeros_like(R)], [rate, R]])
