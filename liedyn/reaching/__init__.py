"""Inverse kinematics: targets, configurations that reach them, and velocities that lead there."""

from liedyn.reaching.differential import differential_inverse_kinematics
from liedyn.reaching.quadratic import InfeasibleError
from liedyn.reaching.solve import InverseKinematics, ReachError, ReachWarning, inverse_kinematics
from liedyn.reaching.targets import (
    CenterOfMassTarget, DirectionTarget, OrientationTarget, PointTarget, PoseTarget, Target,
)

__all__ = ["CenterOfMassTarget", "DirectionTarget", "InfeasibleError", "InverseKinematics", "OrientationTarget",
           "PointTarget", "PoseTarget", "ReachError", "ReachWarning", "Target", "differential_inverse_kinematics",
           "inverse_kinematics"]
