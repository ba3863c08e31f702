"""Pinocchio as an oracle: any liedyn robot rebuilt as a Pinocchio model, from its declaration alone.

Nothing of liedyn's packed model or kernels is used. Joints keep their user axes (nothing is folded into z), a joint of
several coordinates becomes a chain of Pinocchio joints of one coordinate each, and bodies become frames with inertia.
Loops are left out. Quantities go in and come out in liedyn's orderings and conventions (twists angular first).

    oracle = pin_model(robot)
    tau = oracle.rnea(q, v, a)
"""

import functools
from collections import defaultdict

import numpy as np
import pinocchio as pin
import pytest

from liedyn.model.frames import joint_basis
from liedyn.model.kinds import JOINT_KINDS

SWAP = [3, 4, 5, 0, 1, 2]  # (linear, angular) to (angular, linear) and back
against_pinocchio = functools.partial(pytest.mark.validation, oracle="Pinocchio",
                                      robots="trees of all joint kinds, panda, ur5, solo12, talos")


def pin_model(robot):
    """Build the Pinocchio model of a robot's open tree.

    Parameters
    ----------
    robot : liedyn.model.Robot

    Returns
    -------
    PinModel
    """
    return PinModel(robot)


class PinModel:
    """A Pinocchio model of a robot's open tree, spoken to in liedyn's conventions; one state at a time.

    Attributes
    ----------
    model, data : pinocchio.Model, pinocchio.Data
    q_order : ndarray, shape (nq,)
        q_pin = q[q_order].
    v_order : ndarray, shape (nv,)
        v_pin = v[v_order].
    frames : dict
        Pinocchio's frame number by body name.

    Notes
    -----
    Springs, dampers and armatures of joints are included (Pinocchio knows armatures only).
    """

    def __init__(self, robot):
        self.robot = robot
        self.model = pin.Model()
        self.model.name = robot.name
        self.model.gravity = pin.Motion(np.array(robot.gravity), np.zeros(3))
        self.frames = {}
        self._springs = []  # joint, its Pinocchio joints
        bodies = {body.name: body for body in robot.model.bodies}
        carriers = {"ground": (0, pin.SE3.Identity())}  # Pinocchio joint that carries a body, pose of the body in it
        q_names, v_names = [], []
        for joint in _depth_first(robot.model.joints):
            parent, pose = carriers[joint.parent]
            pose = pose * pin.SE3(joint.placement)
            for k, part in enumerate(_parts(joint)):
                parent, pose = self.model.addJoint(parent, part, pose, f"{joint.name}/{k}"), pin.SE3.Identity()
                self.model.addJointFrame(parent)
            kind = JOINT_KINDS[joint.kind]
            q_names += [joint.name + suffix for suffix in _PIN_COORDINATES.get(joint.kind, kind.coordinates)]
            v_names += [joint.name + suffix for suffix in _PIN_VELOCITIES.get(joint.kind, kind.velocities)]
            carriers[joint.child] = parent, pose
            body = bodies[joint.child]
            self.model.appendBodyToJoint(parent, pin.Inertia(body.mass, body.com, body.inertia), pose)
            frame = pin.Frame(body.name, parent, 0, pose, pin.FrameType.BODY)
            self.frames[body.name] = self.model.addFrame(frame, False)
        self.q_order = np.array([robot.coordinate_names.index(name) for name in q_names], dtype=int)
        self.v_order = np.array([robot.velocity_names.index(name) for name in v_names], dtype=int)
        assert sorted(self.q_order) == list(range(robot.nq)) and self.model.nq == robot.nq
        assert sorted(self.v_order) == list(range(robot.nv)) and self.model.nv == robot.nv
        self._place_springs()
        self.model.armature = self._dof_values("armature")[self.v_order]
        self.damping = self._dof_values("damping")
        self.data = self.model.createData()

    # ---- orderings ----

    def to_pin(self, q, v=None, *more):
        """q, v, ... in Pinocchio's order."""
        vectors = [np.asarray(x)[self.v_order] for x in (v, *more) if x is not None]
        return np.asarray(q)[self.q_order], *vectors

    def from_pin_v(self, v):
        """A velocity, acceleration or generalised force from Pinocchio's order."""
        out = np.empty(self.robot.nv)
        out[self.v_order] = v
        return out

    def from_pin_q(self, q):
        """A configuration from Pinocchio's order."""
        out = np.empty(self.robot.nq)
        out[self.q_order] = q
        return out

    def _square(self, matrix):
        out = np.empty((self.robot.nv, self.robot.nv))
        out[np.ix_(self.v_order, self.v_order)] = matrix
        return out

    def _columns(self, matrix):
        out = np.empty((len(matrix), self.robot.nv))
        out[:, self.v_order] = matrix
        return out

    def _wrenches(self, f_ext):
        """Body wrenches by name, (moment, force) in the body frame, as Pinocchio's forces on joints."""
        forces = [pin.Force.Zero() for _ in range(self.model.njoints)]
        for name, wrench in (f_ext or {}).items():
            frame = self.model.frames[self.frames[name]]
            forces[frame.parentJoint] += frame.placement * pin.Force(np.asarray(wrench, dtype=float)[SWAP])
        return forces

    # ---- configuration space ----

    def random_configuration(self, rng):
        """A configuration with angles and slides from a normal distribution and uniform rotations."""
        q = rng.normal(size=self.robot.nq)
        for joint, start, _ in self._springs:
            if joint.kind in ("spherical", "free"):
                q[start : start + 4] /= np.linalg.norm(q[start : start + 4])
        return q

    def integrate(self, q, d):
        """q (+) d."""
        return self.from_pin_q(pin.integrate(self.model, *self.to_pin(q, d)))

    def difference(self, q0, q1):
        """The d with q0 (+) d = q1."""
        return self.from_pin_v(pin.difference(self.model, *self.to_pin(q0), *self.to_pin(q1)))

    # ---- kinematics ----

    def pose(self, q, body):
        """World pose of a body, (4, 4)."""
        pin.framesForwardKinematics(self.model, self.data, *self.to_pin(q))
        return self.data.oMf[self.frames[body]].homogeneous

    def forward_kinematics(self, q):
        """World poses of all bodies in the robot's order, (nbodies, 4, 4)."""
        pin.framesForwardKinematics(self.model, self.data, *self.to_pin(q))
        return np.array([self.data.oMf[self.frames[name]].homogeneous for name in self.robot.body_names])

    def body_jacobian(self, q, body):
        """Twist (omega, v) of a body in its own frame is this (6, nv) times v."""
        J = pin.computeFrameJacobian(self.model, self.data, *self.to_pin(q), self.frames[body], pin.LOCAL)
        return self._columns(J[SWAP])

    def body_jacobian_dot(self, q, v, body):
        """Time derivative of :meth:`body_jacobian`."""
        pin.computeJointJacobiansTimeVariation(self.model, self.data, *self.to_pin(q, v))
        pin.updateFramePlacements(self.model, self.data)
        J = pin.getFrameJacobianTimeVariation(self.model, self.data, self.frames[body], pin.LOCAL)
        return self._columns(J[SWAP])

    def body_twist(self, q, v, body):
        """Twist (omega, v) of a body in its own frame."""
        pin.forwardKinematics(self.model, self.data, *self.to_pin(q, v))
        return pin.getFrameVelocity(self.model, self.data, self.frames[body], pin.LOCAL).vector[SWAP]

    def body_acceleration(self, q, v, a, body):
        """Time derivative of :meth:`body_twist` (spatial acceleration, without gravity)."""
        pin.forwardKinematics(self.model, self.data, *self.to_pin(q, v, a))
        return pin.getFrameAcceleration(self.model, self.data, self.frames[body], pin.LOCAL).vector[SWAP]

    # ---- dynamics ----

    def rnea(self, q, v, a, f_ext=None):
        """Inverse dynamics; f_ext maps body names to wrenches (moment, force) in the body frame."""
        # Not every version of Pinocchio counts armatures here: take them out of its hands.
        armature, self.model.armature = self.model.armature.copy(), np.zeros(self.robot.nv)
        tau = pin.rnea(self.model, self.data, *self.to_pin(q, v, a), self._wrenches(f_ext))
        self.model.armature = armature
        return self.from_pin_v(tau + armature * self.to_pin(q, a)[1]) - self.joint_forces(q, v)

    def crba(self, q):
        """Joint-space inertia matrix."""
        M = np.triu(pin.crba(self.model, self.data, *self.to_pin(q)))
        return self._square(M + np.triu(M, 1).T)

    def aba(self, q, v, tau, f_ext=None):
        """Forward dynamics of the open tree."""
        state = self.to_pin(q, v, tau + self.joint_forces(q, v))
        return self.from_pin_v(pin.aba(self.model, self.data, *state, self._wrenches(f_ext)))

    def rnea_derivatives(self, q, v, a):
        """dtau_dq, dtau_dv, M."""
        pin.computeRNEADerivatives(self.model, self.data, *self.to_pin(q, v, a))
        dtau_dq, dtau_dv = self._square(self.data.dtau_dq.copy()), self._square(self.data.dtau_dv.copy())
        return dtau_dq - self.joint_stiffness(q), dtau_dv + np.diag(self.damping), self.crba(q)

    def aba_derivatives(self, q, v, tau):
        """da_dq, da_dv, Minv: from the derivatives of inverse dynamics at the same acceleration."""
        dtau_dq, dtau_dv, M = self.rnea_derivatives(q, v, self.aba(q, v, tau))
        Minv = np.linalg.inv(M)
        return -Minv @ dtau_dq, -Minv @ dtau_dv, Minv

    def kinetic_energy(self, q, v):
        """Kinetic energy, armatures included."""
        return 0.5 * v @ self.crba(q) @ v

    def potential_energy(self, q):
        """Potential of gravity and of the joint springs."""
        return pin.computePotentialEnergy(self.model, self.data, *self.to_pin(q)) + self.spring_energy(q)

    def center_of_mass(self, q):
        """Centre of mass of all that moves."""
        return pin.centerOfMass(self.model, self.data, *self.to_pin(q)).copy()

    def momentum(self, q, v):
        """Momentum (angular about the world's origin, linear) of all that moves, in world axes; without armatures."""
        h = pin.computeCentroidalMomentum(self.model, self.data, *self.to_pin(q, v))
        com = pin.centerOfMass(self.model, self.data, *self.to_pin(q))
        return np.concatenate([h.angular + np.cross(com, h.linear), h.linear])

    def centroidal_maps(self, q, v):
        """The centroidal momentum matrix and its time derivative."""
        state = self.to_pin(q, v)
        pin.centerOfMass(self.model, self.data, *state)  # the next function takes the velocity that this one leaves
        pin.computeCentroidalMapTimeVariation(self.model, self.data, *state)
        return self._columns(self.data.Ag[SWAP]), self._columns(self.data.dAg[SWAP])

    # ---- joint springs and dampers, which Pinocchio does not have ----

    def _place_springs(self):
        for joint in self.robot.model.joints:
            kind = JOINT_KINDS[joint.kind]
            if kind.nv:
                q_start = self.robot.coordinate_names.index(joint.name + kind.coordinates[0])
                v_start = self.robot.velocity_names.index(joint.name + kind.velocities[0])
                self._springs.append((joint, q_start, v_start))

    def _dof_values(self, key):
        out = np.zeros(self.robot.nv)
        for joint, _, start in self._springs:
            values = getattr(joint, key)
            out[start : start + len(values)] = values
        return out

    def _deflections(self, q):
        """Per joint: start in v, stiffness, deflection u with force -k u and energy k u^2 / 2, and du/dq."""
        for joint, iq, iv in self._springs:
            n = len(joint.stiffness)
            if joint.kind not in ("spherical", "free"):
                yield iv, joint.stiffness, q[iq : iq + n] - joint.rest, np.eye(n)
                continue
            R, R_rest = (pin.Quaternion(*np.roll(x, 1)).toRotationMatrix() for x in (q[iq : iq + 4], joint.rest[:4]))
            angle = pin.log3(R_rest.T @ R)
            deflection, slope = angle, pin.Jlog3(R_rest.T @ R)
            if joint.kind == "free":
                slide = R.T @ (q[iq + 4 : iq + 7] - joint.rest[4:])
                deflection = np.concatenate([angle, slide])
                slope = np.block([[slope, np.zeros((3, 3))], [pin.skew(slide), np.eye(3)]])
            yield iv, joint.stiffness, deflection, slope

    def joint_forces(self, q, v):
        """tau_joint: what springs and dampers exert."""
        out = -self.damping * v
        for iv, k, u, _ in self._deflections(q):
            out[iv : iv + len(k)] -= k * u
        return out

    def joint_stiffness(self, q):
        """d tau_joint / d q."""
        out = np.zeros((self.robot.nv, self.robot.nv))
        for iv, k, _, slope in self._deflections(q):
            out[iv : iv + len(k), iv : iv + len(k)] = -k[:, np.newaxis] * slope
        return out

    def spring_energy(self, q):
        """Energy stored in the joint springs."""
        return sum(0.5 * np.sum(k * u * u) for _, k, u, _ in self._deflections(q))


# Pinocchio's order of the coordinates of a free joint; all other joints agree.
_PIN_COORDINATES = {"free": (".x", ".y", ".z", ".qx", ".qy", ".qz", ".qw")}
_PIN_VELOCITIES = {"free": (".x", ".y", ".z", ".rx", ".ry", ".rz")}


def _depth_first(joints):
    """Joints parents first, children of a body in the order of declaration: Pinocchio wants subtrees contiguous."""
    children = defaultdict(list)
    for joint in joints:
        children[joint.parent].append(joint)

    def walk(body):
        for joint in children[body]:
            yield joint
            yield from walk(joint.child)

    return walk("ground")


def _parts(joint):
    """A joint as a chain of Pinocchio joints about and along the user's own axes."""
    if joint.kind == "fixed":
        return []
    if joint.kind == "revolute":
        return [pin.JointModelRevoluteUnaligned(joint.axes[0])]
    if joint.kind == "prismatic":
        return [pin.JointModelPrismaticUnaligned(joint.axes[0])]
    if joint.kind == "helical":
        return [pin.JointModelHelicalUnaligned(joint.axes[0], joint.pitch)]
    if joint.kind == "cylindrical":
        return [pin.JointModelRevoluteUnaligned(joint.axes[0]), pin.JointModelPrismaticUnaligned(joint.axes[0])]
    if joint.kind == "universal":
        return [pin.JointModelRevoluteUnaligned(axis) for axis in joint.axes]
    if joint.kind == "planar":
        x, y, z = joint_basis(joint.axes).T  # which x and y go with the axis is liedyn's convention
        return [pin.JointModelPrismaticUnaligned(axis) for axis in (x, y)] + [pin.JointModelRevoluteUnaligned(z)]
    if joint.kind == "translational":
        return [pin.JointModelPrismaticUnaligned(axis) for axis in np.eye(3)]
    if joint.kind == "spherical":
        return [pin.JointModelSpherical()]
    if joint.kind == "free":
        return [pin.JointModelFreeFlyer()]
    raise NotImplementedError(joint.kind)
