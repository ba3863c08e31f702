"""The loops of a robot as Pinocchio's rigid constraints.

Pinocchio closes a loop with three rows (two points coincide) or six (two frames coincide). A spherical cut joint is
the former and a fixed one the latter. A revolute one has five rows, which Pinocchio has not; in a planar mechanism the
other joints keep its axis parallel already, and the point alone allows the same motion with fewer rows.
"""
import numpy as np

from benchmarks.errors import MissingPeer

ROWS = {"spherical": 3, "fixed": 6, "weld": 6, "revolute": 3}
"""Rows of Pinocchio's constraint for the cut joints that it can do."""


def is_planar(robot):
    """Whether all joints turn about or slide across one direction, at home."""
    import liedyn as ld

    normals, slides = [], []
    poses = dict(zip(robot.body_names, ld.forward_kinematics(robot, robot.home)))
    for joint in robot.model.joints:
        base = poses.get(joint.parent, np.eye(4))[:3, :3] @ np.asarray(joint.placement)[:3, :3]
        if joint.kind not in ("fixed", "revolute", "prismatic"):
            return False
        (normals if joint.kind == "revolute" else slides).extend(base @ axis for axis in joint.axes)
    return (all(np.linalg.norm(np.cross(normals[0], n)) < 1e-9 for n in normals)
            and all(abs(normals[0] @ s) < 1e-9 for s in slides))


def closures(robot, oracle, planar_loops=False):
    """One entry for each loop, as `benchmarks.native.peers.Machine` takes them.

    `planar_loops` says that every loop is planar, although the robot may not be.

    Raises
    ------
    MissingPeer
        A cut joint that Pinocchio cannot do.
    """
    import pinocchio as pin

    out = []
    for loop in robot.model.loops:
        if loop.kind not in ROWS or loop.kind == "revolute" and not (planar_loops or is_planar(robot)):
            raise MissingPeer(f"no {loop.kind} cut in Pinocchio")
        sides = []
        for body, placement in ((loop.parent, loop.parent_placement), (loop.child, loop.child_placement)):
            joint, pose = 0, pin.SE3.Identity()
            if body != "ground":
                frame = oracle.model.frames[oracle.frames[body]]
                joint, pose = frame.parentJoint, frame.placement
            sides += [joint, pose * pin.SE3(np.asarray(placement))]
        out.append((ROWS[loop.kind], *sides))
    return out
