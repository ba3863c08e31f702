"""Inverse kinematics: targets, configurations that reach them, and velocities towards them."""

from liedyn.tasks.reaching.differential import differential_inverse_kinematics
from liedyn.tasks.reaching.distance_target import DistanceTarget
from liedyn.tasks.reaching.quadratic import InfeasibleError
from liedyn.tasks.reaching.solve import InverseKinematics, ReachError, ReachWarning, inverse_kinematics
from liedyn.tasks.reaching.targets import (
    CenterOfMassTarget, DirectionTarget, OrientationTarget, PointTarget, PoseTarget, Target,
)

__all__ = ["CenterOfMassTarget", "DirectionTarget", "DistanceTarget", "InfeasibleError", "InverseKinematics",
           "OrientationTarget", "PointTarget", "PoseTarget", "ReachError", "ReachWarning", "Target",
           "differential_inverse_kinematics", "inverse_kinematics"]
