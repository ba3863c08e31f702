"""Bodies, joints and names of a model of MuJoCo, declared to a builder."""
from collections import defaultdict

import numpy as np

from liedyn.errors import ModelError, shown, suggestion
from liedyn.model import GROUND, Builder
from liedyn.model.frames import placement

FREE, BALL, SLIDE, HINGE = range(4)  # in the order of mjtJoint
_KINDS = ("free", "spherical", "prismatic", "revolute")
_SIZES = (6, 3, 1, 1)


class Reader:
    """Goes through a model of MuJoCo and declares its parts to a builder.

    Attributes
    ----------
    mujoco : module
    model : MjModel
    builder : Builder
    bodies, joints : list of str
        Names by MuJoCo's numbers.
    missing : dict
        What the robot will not have: names by what it is.
    """

    def __init__(self, mujoco, model, source, keyframe):
        self.mujoco, self.model, self.missing = mujoco, model, defaultdict(list)
        name = model.names[:model.names.index(b"\0")].decode() or source.partition(".")[0]
        self.bodies = [GROUND, *(self.name("body", b) for b in range(1, model.nbody))]
        self.joints = [self.joint_name(j) for j in range(model.njnt)]
        self.builder = Builder(name, gravity=model.opt.gravity, home=self.home(keyframe), source=source)

    # ---- names

    def name(self, kind, k):
        """What the file calls something, or its kind and number."""
        found = self.mujoco.mj_id2name(self.model, getattr(self.mujoco.mjtObj, f"mjOBJ_{kind.upper()}"), k)
        return found or f"{kind}{k}"

    def joint_name(self, j):
        """The joint's own name, else its body's, with a number where that has several."""
        body, kind = self.model.jnt_bodyid[j], int(self.mujoco.mjtObj.mjOBJ_JOINT)
        found = self.mujoco.mj_id2name(self.model, kind, j)
        number = f".{j - self.model.body_jntadr[body] + 1}" if self.model.body_jntnum[body] > 1 else ""
        return found or self.bodies[body] + number

    def coordinate(self, j, what):
        """The coordinate of a joint that has one."""
        if not self.is_single(j):
            raise ModelError(f"{what}: joint {shown(self.joints[j])} has several coordinates")
        return self.joints[j]

    def is_single(self, j):
        """Does a joint have one coordinate?"""
        return self.model.jnt_type[j] in (HINGE, SLIDE)

    # ---- tree

    def add_bodies(self, servos):
        """Bodies and joints; `servos` (joints, 3) is what actuators add to the springs and dampers of joints."""
        m, self.servos = self.model, servos
        for b in range(1, m.nbody):
            R = pose(quaternion=m.body_iquat[b])[:3, :3]
            self.builder.body(self.bodies[b], mass=m.body_mass[b], com=m.body_ipos[b],
                              inertia=R @ np.diag(m.body_inertia[b]) @ R.T)
            self.add_joints(b, range(m.body_jntadr[b], m.body_jntadr[b] + m.body_jntnum[b]))

    def add_sites(self):
        """As frames, those with names of their own."""
        for k in range(self.model.nsite):
            name = self.mujoco.mj_id2name(self.model, int(self.mujoco.mjtObj.mjOBJ_SITE), k)
            if name and name not in self.bodies:
                self.builder.frame(name, *self.site(k))

    def add_joints(self, b, joints):
        """A chain from the parent to body b: a joint moves about its anchor, which is not the body's origin."""
        m, name, parent = self.model, self.bodies[b], self.bodies[self.model.body_parentid[b]]
        frame = pose(m.body_pos[b], m.body_quat[b])  # of the body in `parent`, before the next joint
        for j in joints:
            kind, axis = m.jnt_type[j], m.jnt_axis[j]
            anchor = np.zeros(3) if kind in (FREE, SLIDE) else m.jnt_pos[j]
            if kind == FREE:
                frame = np.eye(4)
            is_last = j == joints[-1] and not anchor.any()
            child = name if is_last else f"{name} behind {self.joints[j]}"
            if not is_last:
                self.builder.body(child)
            self.builder.joint(self.joints[j], _KINDS[kind], parent, child, **self.joint_numbers(j),
                               placement=frame @ pose(anchor) @ self.at_zero(j),
                               axis=axis if kind in (HINGE, SLIDE) else None)
            parent, frame = child, pose(-anchor)
        if parent != name:
            self.builder.joint(f"{name} frame" if len(joints) else name, "fixed", parent, name, placement=frame)

    def at_zero(self, j):
        """The child's pose where the coordinate is zero: the file draws the body where it is `ref`."""
        m, turn = self.model, np.eye(4)
        if m.jnt_type[j] == SLIDE:
            return pose(-m.qpos0[m.jnt_qposadr[j]] * m.jnt_axis[j])
        if m.jnt_type[j] == HINGE:
            half = -m.qpos0[m.jnt_qposadr[j]] / 2.0
            turn = pose(quaternion=[np.cos(half), *np.sin(half) * m.jnt_axis[j]])
        return turn

    def joint_numbers(self, j):
        """What `Builder.joint` takes of springs, dampers, rotors and limits."""
        m, kind = self.model, self.model.jnt_type[j]
        q, v = m.jnt_qposadr[j], m.jnt_dofadr[j]
        stiffness, pull, damping = self.servos[j]
        found = {"damping": m.dof_damping[v:v + _SIZES[kind]] + damping,
                 "armature": m.dof_armature[v:v + _SIZES[kind]]}
        if kind in (HINGE, SLIDE):
            total = m.jnt_stiffness[j] + stiffness
            if total:
                found |= {"stiffness": total, "rest": (m.jnt_stiffness[j] * m.qpos_spring[q] + pull) / total}
            if m.jnt_limited[j]:
                found["limits"] = m.jnt_range[j]
            if m.jnt_actfrclimited[j]:
                found["effort_limit"] = np.abs(m.jnt_actfrcrange[j]).max()
        elif kind == BALL and m.jnt_stiffness[j]:
            found |= {"stiffness": m.jnt_stiffness[j], "rest": _quaternion(m.qpos_spring[q:q + 4])}
        return found

    def frictions(self):
        """Dry friction by coordinate, of joints that have one."""
        m = self.model
        return {self.joints[j]: m.dof_frictionloss[m.jnt_dofadr[j]] for j in range(m.njnt)
                if self.is_single(j) and m.dof_frictionloss[m.jnt_dofadr[j]]}

    def site(self, k):
        """The body of a site, and its pose there."""
        m = self.model
        return self.bodies[m.site_bodyid[k]], pose(m.site_pos[k], m.site_quat[k])

    def home(self, keyframe):
        """Values by joint name."""
        m, home = self.model, {}
        names = [self.name("key", k) for k in range(m.nkey)]
        if keyframe is not None and keyframe not in names:
            raise ModelError(f"no keyframe {shown(keyframe)}, {suggestion(keyframe, names)}")
        chosen = keyframe or ("home" if "home" in names else names[0] if names else None)
        q = m.key_qpos[names.index(chosen)] if chosen else m.qpos0
        for j, name in enumerate(self.joints):
            k = m.jnt_qposadr[j]
            if m.jnt_type[j] in (HINGE, SLIDE):
                home[name] = q[k]
            elif m.jnt_type[j] == BALL:
                home[name] = _quaternion(q[k:k + 4])
            else:
                home[name] = [*_quaternion(q[k + 3:k + 7]), *q[k:k + 3]]
        return home


def pose(xyz=(0.0, 0.0, 0.0), quaternion=None):
    """The pose of a position and a quaternion as MuJoCo has them, w first."""
    return placement(xyz, quaternion=None if quaternion is None else _quaternion(quaternion))


def _quaternion(wxyz):
    """x, y, z, w of a quaternion of unit length."""
    w, *xyz = np.asarray(wxyz) / np.linalg.norm(wxyz)
    return [*xyz, w]
