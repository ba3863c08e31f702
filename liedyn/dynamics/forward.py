"""Forward dynamics of any mechanism: one signature, one result, several formulations."""
import warnings
from dataclasses import dataclass

import numpy as np

from liedyn.boundary import states, wrenches
from liedyn.constraints.cut_joints import FORBIDDEN, HELICAL
from liedyn.constraints.independent import choose, singular_choice, wrong_count
from liedyn.dynamics.nullspace import (
    RANK_TOLERANCE,
    SINGULAR_CHOICE,
    SINGULAR_INERTIA,
    WRONG_COUNT,
    nullspace_kernel,
)
from liedyn.errors import ConditionWarning, InputError, SingularConfigurationError
from liedyn.model.packed import LOOP_F, LOOP_FLOATS_AT, LOOP_I, LOOP_KIND, LOOP_NROWS, LOOP_PITCH, LOOP_ROW, LOOPS_AT

POOR_CONDITION = 1e8
"""Condition number of [G; R] above which half of the digits are lost, and a warning is due."""


@dataclass(frozen=True)
class ForwardDynamics:
    """Accelerations and forces of a constrained mechanism.

    Attributes
    ----------
    a : ndarray, shape (..., nv)
        Accelerations [rad/s^2, m/s^2].
    lam : ndarray, shape (..., m)
        Multipliers of ``M a + c = tau + tau_joint - G^T lam``, rows as in ``robot.row_names``; of minimum norm
        where rows are redundant.
    constraint_wrenches : dict
        For each loop the wrench (moment, force) [N m, N], shape (..., 6), that its cut joint exerts on the child
        side, in the cut frame with the axes the user declared. It is ``-lam`` spread over the forbidden directions.
    rank : int or ndarray
        Number of independent constraint rows.
    redundant_rows : tuple of str
        Names of rows that depend on the others (at the last state of a batch).
    condition : float or ndarray
        Condition number (1-norm) of the chosen coordinates, [G; R].
    independent : tuple of str
        Names of the independent coordinates used (at the last state of a batch).
    """

    a: np.ndarray
    lam: np.ndarray
    constraint_wrenches: dict
    rank: int
    redundant_rows: tuple
    condition: float
    independent: tuple


def loop_wrench_matrix(robot, l):
    """The (6, rows) map from a loop's multipliers to the wrench on its child side, in the user's cut axes."""
    at = int(robot.ints[LOOPS_AT]) + LOOP_I * l
    kind, first, count = (int(robot.ints[at + k]) for k in (LOOP_KIND, LOOP_ROW, LOOP_NROWS))
    W = np.zeros((6, count))
    for r in range(count):
        W[FORBIDDEN[kind, r], r] = 1.0
        if kind == HELICAL and FORBIDDEN[kind, r] == 5:
            W[2, r] = -robot.floats[int(robot.ints[LOOP_FLOATS_AT]) + LOOP_F * l + LOOP_PITCH]
    fold = robot.loop_folding[l]
    return -np.vstack([fold @ W[:3], fold @ W[3:]]), slice(first, first + count)


def constraint_wrenches(robot, lam):
    """Wrench of every cut joint on its child side, by loop name."""
    out = {}
    for l, name in enumerate(robot.loop_names):
        W, rows = loop_wrench_matrix(robot, l)
        out[name] = lam[..., rows] @ W.T
    return out


def raise_for_status(robot, q, chosen, solved):
    """The status of `nullspace_kernel` as a typed error."""
    status, rank = solved[:2]
    if status == WRONG_COUNT:
        raise wrong_count(robot, chosen, rank)
    if status == SINGULAR_CHOICE:
        raise singular_choice(robot, q, chosen)
    if status == SINGULAR_INERTIA:
        K, M = solved[9][:, rank:], solved[10]
        raise SingularConfigurationError(
            f"no inertia resists some motion of {robot.name!r} that its loops allow: K^T M K is not positive definite",
            np.linalg.svd(K.T @ M @ K, compute_uv=False))


def warn_if_poor(chosen, condition):
    """Report independent coordinates that are close to losing the motion."""
    if condition > POOR_CONDITION:
        warnings.warn(
            f"coordinates {', '.join(chosen.names)} are poorly conditioned here: cond [G; R] = {condition:.2g}",
            ConditionWarning,
            stacklevel=4,
        )


def _solve(robot, q, v, tau, f_ext, independent, tolerance):
    chosen = choose(robot, q, independent, tolerance)
    solved = nullspace_kernel(robot.ints, robot.floats, q, v, tau, f_ext, chosen.rows, chosen.virtual, tolerance)
    raise_for_status(robot, q, chosen, solved)
    warn_if_poor(chosen, solved[2])
    return chosen, solved


def forward_dynamics(robot, q, v, tau, method="nullspace", independent=None, f_ext=None, rank_tolerance=RANK_TOLERANCE):
    """Accelerations and constraint wrenches of a mechanism with its loops closed.

    Parameters
    ----------
    robot : Robot
    q : array_like, shape (..., nq)
        Configuration [rad, m; quaternions (x, y, z, w)] that closes the loops.
    v : array_like, shape (..., nv)
        Velocity [rad/s, m/s] that keeps them closed.
    tau : array_like, shape (..., nv)
        Generalised forces [N m, N].
    method : {"nullspace"}
        Formulation.
    independent : sequence of str, "auto", "tangent" or None
        Coordinates in which the motion is solved; the accelerations do not depend on the choice. None: the robot's own
        declaration, else "auto" (pivoting).
    f_ext : dict or array_like, optional
        Wrenches (moment, force) [N m, N] applied to bodies, each in its body's own frame, as for `rnea`.
    rank_tolerance : float
        Pivots of G below this part of the largest one count as zero.

    Returns
    -------
    ForwardDynamics
        Accelerations ``a``, multipliers ``lam``, ``constraint_wrenches`` by loop, ``rank``, ``redundant_rows``,
        ``condition``.

    Raises
    ------
    InputError
        A shape does not fit, an entry is not finite, an unknown name, or too many or few independent coordinates.
    SingularConfigurationError
        The independent coordinates do not determine the motion here, or some motion moves no inertia.

    Warns
    -----
    ConditionWarning
        The independent coordinates are poorly conditioned here.

    Notes
    -----
    Spencer 2004, eq. 2.42-2.47, with minimum-norm multipliers for redundant rows.

    Examples
    --------
    >>> import liedyn as ld
    >>> loader = ld.load("loader")
    >>> r = ld.forward_dynamics(loader, loader.home, [0.0] * 8, [0.0] * 8)
    >>> r.rank, r.a.shape, sorted(r.constraint_wrenches)
    (6, (8,), ['lift_pin', 'link_pin', 'tilt_pin'])
    """
    if method != "nullspace":
        raise InputError(f"unknown method {method!r}; there is 'nullspace'")
    lead, q, v, tau = states(robot, q=q, v=v, tau=tau)
    forces = wrenches(robot, f_ext, lead)
    if not len(q):
        raise InputError("forward_dynamics needs at least one state")
    results = [_solve(robot, q[b], v[b], tau[b], forces[b], independent, rank_tolerance) for b in range(len(q))]
    chosen, (_, last_rank, _, _, _, order, *_) = results[-1]
    rank, condition, a, lam = (np.reshape([solved[k] for _, solved in results], lead + np.shape(results[0][1][k]))
                               for k in (1, 2, 3, 4))
    if not lead:
        rank, condition = int(rank), float(condition)
    redundant = tuple(robot.row_names[k] for k in sorted(order[last_rank:]))
    return ForwardDynamics(a, lam, constraint_wrenches(robot, lam), rank, redundant, condition, chosen.names)
