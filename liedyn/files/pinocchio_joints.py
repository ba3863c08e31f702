"""Joints of Pinocchio, for reader, writer and ordering."""
# mypy: ignore-errors

from typing import NamedTuple

import numpy as np

from liedyn.machine.arguments import ORTHOGONALITY
from liedyn.machine.errors import LiedynError, ModelError, shown

KINDS = {"JointModelFreeFlyer": "free", "JointModelSpherical": "spherical", "JointModelPlanar": "planar",
         "JointModelTranslation": "translational"}
TURNS_FIRST = [3, 4, 5, 0, 1, 2]  # order of the components of a free joint, whose translations come first there
PER_VELOCITY = {"armature": "armature", "damping": "damping", "velocity_limit": "velocityLimit",
                "effort_limit": "effortLimit"}
"""Quantities of each velocity coordinate: our names, and Pinocchio's."""


def library():
    """The module pinocchio; LiedynError if it is not installed."""
    try:
        import pinocchio
    except ImportError:
        raise LiedynError("models of Pinocchio need Pinocchio: pip install 'liedyn[pinocchio]'") from None
    return pinocchio


class _Turn(NamedTuple):
    """One of the angles of a Pinocchio joint that has several."""

    axis: tuple
    idx_q: int
    idx_v: int
    nq: int = 1
    nv: int = 1

    def shortname(self):
        return "JointModelRevoluteUnaligned"


def parts_of(name, joint):
    """The chain of joints, called ``name.1`` and so on, that a Pinocchio joint represents; empty for a single joint.

    A list of (name, pinocchio.JointModel, pose (4, 4) relative to the one before).
    """
    return [(f"{name}.{k + 1}", *part) for k, part in enumerate(_within(joint, True))]


def _within(joint, is_whole):
    """Joints and their poses; within a composite one, a universal joint with orthogonal axes is a single joint."""
    own, kind = joint.extract() if hasattr(joint, "extract") else joint, joint.shortname()
    if kind == "JointModelComposite":
        for part, placement in zip(own.joints, own.jointPlacements):
            behind = placement.homogeneous
            for each, pose in _within(part, False):
                yield each, behind @ pose
                behind = np.eye(4)
    elif kind == "JointModelSphericalZYX" or kind == "JointModelUniversal" and (is_whole or not is_universal(joint)):
        axes = (own.axis1, own.axis2) if kind == "JointModelUniversal" else np.eye(3)[::-1]
        for k, axis in enumerate(axes):
            yield _Turn(axis, joint.idx_q + k, joint.idx_v + k), np.eye(4)
    elif not is_whole:
        yield joint, np.eye(4)


def is_universal(joint):
    """True if it has two orthogonal axes."""
    return joint.shortname() == "JointModelUniversal" and abs(joint.extract().axis1 @ joint.extract().axis2
                                                              ) <= ORTHOGONALITY


def leaders_of(model):
    """By number of a joint that mimics another one, the number of that other joint."""
    return dict(zip(getattr(model, "mimicking_joints", ()), getattr(model, "mimicked_joints", ())))


def require_round(name, values):
    """ModelError for armature or unequal damping of a planar joint.

    In Pinocchio, velocity and acceleration of a planar joint are in the rotating axes of the body. Damping that is
    equal in both directions does not depend on that; armature would lack the force due to the rotation.
    """
    (x, y), along = values["damping"][:2], values["armature"][:2]
    if x != y:
        raise ModelError(f"joint {shown(name)}, damping: must be the same in both directions of the plane, which turn "
                         f"with the body in Pinocchio, got {shown([float(x), float(y)])}")
    if along.any():
        raise ModelError(f"joint {shown(name)}, armature: a planar joint can only have it about its axis, since "
                         f"Pinocchio's slides turn with the body, got {shown(along.tolist())}")
