"""Inverse kinematics: targets, configurations that reach them, and velocities that lead there."""

from liedyn.posture.solve import InverseKinematics, ReachError, ReachWarning, inverse_kinematics
from liedyn.posture.targets import (
    CenterOfMassTarget, DirectionTarget, OrientationTarget, PointTarget, PoseTarget, Target,
)

__all__ = ["CenterOfMassTarget", "DirectionTarget", "InverseKinematics", "OrientationTarget", "PointTarget",
           "PoseTarget", "ReachError", "ReachWarning", "Target", "inverse_kinematics"]
