"""Errors for states that `nullspace_kernel` cannot solve."""
import numpy as np

from liedyn.machine.errors import SingularConfigurationError
from liedyn.mechanics.constraints.independent import singular_choice, wrong_count
from liedyn.mechanics.constraints.loops import rank_of
from liedyn.mechanics.dynamics.nullspace import RANK_TOLERANCE, SINGULAR_CHOICE, SINGULAR_INERTIA, WRONG_COUNT


def raise_for_status(robot, q, chosen, solved):
    """Raise the error for the status of `nullspace_kernel`."""
    status, rank = solved[:2]
    if status == WRONG_COUNT:
        if len(chosen.names) == robot.nv - rank_of(robot, robot.home, RANK_TOLERANCE)[0]:
            # the coordinates fit the robot, but this configuration has lost or gained a motion
            raise singular_choice(robot, q, chosen)
        raise wrong_count(robot, chosen, rank)
    if status == SINGULAR_CHOICE:
        raise singular_choice(robot, q, chosen)
    if status == SINGULAR_INERTIA:
        K, M = solved[9][:, rank:], solved[10]
        raise SingularConfigurationError(
            f"no inertia resists some motion of {robot.name!r} that its loops allow: K^T M K is not positive definite",
            np.linalg.svd(K.T @ M @ K, compute_uv=False))
