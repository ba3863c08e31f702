"""Motions that the constraints allow: v = K w with the velocities w of independent coordinates.

Multipliers do no work on such motions, K^T G^T = 0: the equations of a closed mechanism multiplied by K^T need no
measured forces in its loops (Ghorbel, Chetelat, Gunawardana and Longchamp 2000;
Khalil and Dombre 2002, chapter 9).
"""
import numpy as np

from liedyn.linear.operating_point import require_consistent
from liedyn.machine.errors import InputError, of_the_batch
from liedyn.mechanics.constraints.cluster_weights import null_space
from liedyn.mechanics.constraints.independent import choose, singular_choice, wrong_count
from liedyn.mechanics.constraints.loops import (
    closure_error, constraint_bias, constraint_jacobian, velocity_error, virtual_jacobian,
)
from liedyn.mechanics.dynamics.nullspace import RANK_TOLERANCE

ALMOST = 1e-6
"""Largest closure error, and largest inconsistent rates relative to all rates: far above those that `close` leaves, far
below those of encoders on dependent joints."""


def chosen_coordinates(robot, q, independent):
    """The independent coordinates, chosen at the first of several states; None if all velocities are independent."""
    if independent is None and not robot.row_names:
        return None
    return choose(robot, q[0], independent, RANK_TOLERANCE)


def require_allowed(robot, lead, q, v, a):
    """Requires states on the constraints, with consistent velocities and accelerations.

    Raises ClosureError if a loop is open, or another constraint is violated. Raises InputError if a velocity or an
    acceleration opens a loop, or violates another constraint.
    """
    if not robot.row_names:
        return
    residual, psi = closure_error(robot, q), velocity_error(robot, q, v)
    left = (constraint_jacobian(robot, q) @ a[..., None])[..., 0] - constraint_bias(robot, q, v)
    for b in range(len(q)):
        with of_the_batch(lead, b):
            require_consistent(robot, q[b], v[b], residual[b], psi[b], ALMOST)
            row = abs(left[b]).argmax()
            if abs(left[b, row]) > ALMOST * max(1.0, abs(a[b]).max(), abs(v[b]).max() ** 2):
                raise InputError(f"a opens constraint {robot.row_owners[row]!r} of {robot.name!r}: |G a - gamma| = "
                                 f"{abs(left[b, row]):.3g} in {robot.row_names[row]}; measured_motion() makes one that "
                                 "does not")


def allowed_motions(robot, q, chosen, lead=None):
    """K, shape (count, nv, p), at configurations (count, nq).

    If `chosen` is None the columns are orthonormal, a different basis at each configuration.

    Raises InputError if there are too many or too few independent coordinates. Raises SingularConfigurationError if the
    coordinates do not determine the motion at one of the configurations.
    """
    G = constraint_jacobian(robot, q)
    if chosen is None:
        bases = [null_space(robot, each, RANK_TOLERANCE) for each in G]
        fewest = min(N.shape[1] for N in bases)
        return np.array([N[:, :fewest] for N in bases])
    R = chosen.matrix(virtual_jacobian(robot, q))
    K = np.empty((len(q), robot.nv, len(chosen.names)))
    for b in range(len(q)):
        with of_the_batch(lead if lead is not None else (len(q),), b):
            N = null_space(robot, G[b], RANK_TOLERANCE)
            if N.shape[1] != len(chosen.names):
                raise wrong_count(robot, chosen, robot.nv - N.shape[1])
            along = R[b] @ N
            if np.linalg.matrix_rank(along, tol=RANK_TOLERANCE) < len(along):
                raise singular_choice(robot, q[b], chosen)
            K[b] = np.linalg.solve(along.T, N.T).T
    return K
