"""Where bodies are, and the plane in which a mechanism moves, for pictures of it."""
import numpy as np

from liedyn.mechanics.tree.forward_kinematics import forward_kinematics, pose
from liedyn.model import GROUND

SLIDING = ("prismatic", "cylindrical")
_PARALLEL = 1e-9


def poses_of(robot, q):
    """Poses of bodies, frames and the ground by name."""
    frames = {name: pose(robot, q, name) for name in robot.frame_names}
    return dict(zip(robot.body_names, forward_kinematics(robot, q))) | frames | {GROUND: np.eye(4)}


def plane_of(robot, poses):
    """The unit normal of the plane of motion of all joints; None if there is no such plane."""
    turning, sliding = [], []
    for joint in robot.model.joints:
        axes = [poses[joint.parent][:3, :3] @ joint.placement[:3, :3] @ axis for axis in joint.axes]
        if joint.kind in ("revolute", "planar"):
            turning += axes
        elif joint.kind == "prismatic":
            sliding += axes
        elif joint.kind != "fixed":
            return None
    if not turning:
        return None
    normal = turning[0]
    if (any(np.linalg.norm(np.cross(normal, axis)) > _PARALLEL for axis in turning)
            or any(abs(normal @ axis) > _PARALLEL for axis in sliding)):
        return None
    return normal * np.sign(normal[np.abs(normal).argmax()])


def axes_of_view(robot, normal):
    """Unit vectors to the right and upward of a flat picture (up is against gravity), or the axes of space."""
    if normal is None:
        return np.eye(3)
    up = -robot.gravity + (robot.gravity @ normal) * normal
    if np.linalg.norm(up) < 1e-6:
        up = np.eye(3)[1 if abs(normal[2]) > 0.5 else 2]
        up = up - (up @ normal) * normal
    up = up / np.linalg.norm(up)
    return np.array([np.cross(up, normal), up])
