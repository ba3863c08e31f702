"""Configurations and velocities in the orderings of Pinocchio and MuJoCo, for comparisons.

============= =========================== ========================== =================================
joint         liedyn                      Pinocchio                  MuJoCo
============= =========================== ========================== =================================
free, q       quaternion xyzw, position   position, quaternion xyzw  position, quaternion wxyz
free, v       omega, v, both in the body  v, omega, both in the body v in the world, omega in the body
spherical, q  quaternion xyzw             quaternion xyzw            quaternion wxyz
planar, q     x, y, angle                 x, y, cos, sin             three joints
planar, v     velocity in the joint frame velocity in the body       three joints
continuous, q angle                       cos, sin                   angle
mimic, q      angle or slide, coupled     none
============= =========================== ========================== =================================

Joints are matched by name. Pinocchio's planar joint moves in the xy plane of its placement. A joint there that is
several here (composite; of three Euler angles) is matched by the names from `liedyn.files.pinocchio_joints.parts_of`.
"""
# mypy: ignore-errors

from typing import NamedTuple

import numpy as np

from liedyn.files.pinocchio_joints import leaders_of, parts_of
from liedyn.machine.errors import InputError, shown, suggestion
from liedyn.model.calls.boundary import as_floats
from liedyn.model.kinds import JOINT_KINDS


class _Same:
    """A joint with the same coordinates in both libraries, possibly in another order."""

    order = slice(None)
    """Indices in our q of their coordinates."""

    @classmethod
    def to_theirs(cls, q):
        return q[..., cls.order]

    @classmethod
    def to_ours(cls, q):
        ours = np.empty_like(q)
        ours[..., cls.order] = q
        return ours

    @staticmethod
    def velocity(q, size):
        """Matrix from our v to theirs."""
        return np.broadcast_to(np.eye(size), (*q.shape[:-1], size, size))

    @staticmethod
    def velocity_rate(q, v):
        return np.zeros((*v.shape, v.shape[-1]))


class _Circle(_Same):
    """An angle, which Pinocchio represents as a point on the circle."""

    @staticmethod
    def to_theirs(q):
        return np.concatenate([np.cos(q), np.sin(q)], axis=-1)

    @staticmethod
    def to_ours(q):
        return np.arctan2(q[..., 1:], q[..., :1])


class _PinocchioFree(_Same):
    order = [4, 5, 6, 0, 1, 2, 3]

    @staticmethod
    def velocity(q, size):
        return np.broadcast_to(np.roll(np.eye(6), 3, axis=0), (*q.shape[:-1], 6, 6))


class _PinocchioPlanar(_Same):
    @staticmethod
    def to_theirs(q):
        return np.concatenate([q[..., :2], np.cos(q[..., 2:]), np.sin(q[..., 2:])], axis=-1)

    @staticmethod
    def to_ours(q):
        return np.concatenate([q[..., :2], np.arctan2(q[..., 3:], q[..., 2:3])], axis=-1)

    @staticmethod
    def velocity(q, size):
        T = np.zeros((*q.shape[:-1], 3, 3))
        c, s = np.cos(q[..., 2]), np.sin(q[..., 2])
        T[..., 0, 0], T[..., 0, 1], T[..., 1, 0], T[..., 1, 1], T[..., 2, 2] = c, s, -s, c, 1.0
        return T

    @staticmethod
    def velocity_rate(q, v):
        T = _PinocchioPlanar.velocity(q, 3)
        quarter_turn = np.array([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
        return v[..., 2, np.newaxis, np.newaxis] * (quarter_turn @ T)


class _MujocoBall(_Same):
    order = [3, 0, 1, 2]


class _MujocoFree(_Same):
    order = [4, 5, 6, 3, 0, 1, 2]

    @staticmethod
    def velocity(q, size):
        T = np.zeros((*q.shape[:-1], 6, 6))
        T[..., :3, 3:] = _rotation(q)
        T[..., 3:, :3] = np.eye(3)
        return T

    @staticmethod
    def velocity_rate(q, v):
        rate = np.zeros((*v.shape[:-1], 6, 6))
        rate[..., :3, 3:] = _rotation(q) @ np.cross(v[..., np.newaxis, :3], np.eye(3)).swapaxes(-1, -2)  # R [omega]
        return rate


def _rotation(q):
    from scipy.spatial.transform import Rotation

    return Rotation.from_quat(q[..., :4].reshape(-1, 4)).as_matrix().reshape(*q.shape[:-1], 3, 3)


class _Match(NamedTuple):
    """One joint, or one of its coordinates, in both libraries."""

    form: type
    q: slice
    v: slice
    their_q: slice
    their_v: slice


class _Mimic(NamedTuple):
    """A coordinate that does not exist in Pinocchio, whose joint mimics another one."""

    place: int
    leader: slice
    scaling: float
    offset: float


class Ordering:
    """Conversion between the coordinates of a robot and another library's ordering. Batch axes come first in every
    method.

    With T = `velocity_matrix` (q), which is orthogonal: their v = T v, tau = T tau, M = T M T^T, Jacobian J T^T,
    a = T a + Tdot v. (If joints mimic others in Pinocchio, T is not square: it omits their velocities.)

    Attributes
    ----------
    nq, nv : int
        Sizes of their configuration and velocity.
    """

    def __init__(self, robot, matches, mimics=()):
        self._robot = robot
        self._matches = matches
        self._mimics = mimics
        self.nq = sum(match.their_q.stop - match.their_q.start for match in matches)
        self.nv = sum(match.their_v.stop - match.their_v.start for match in matches)

    def to_theirs(self, q):
        """Their configuration.

        Parameters
        ----------
        q : array_like, shape (..., nq)

        Returns
        -------
        ndarray, shape (..., their nq)
        """
        q = as_floats("q", q, self._robot.nq)
        theirs = np.empty((*q.shape[:-1], self.nq))
        for match in self._matches:
            theirs[..., match.their_q] = match.form.to_theirs(q[..., match.q])
        return theirs

    def to_ours(self, q):
        """Our configuration. Angles that they store as cosine and sine are returned within (-pi, pi].

        Parameters
        ----------
        q : array_like, shape (..., their nq)

        Returns
        -------
        ndarray, shape (..., nq)
        """
        q = as_floats("q", q, self.nq)
        ours = np.empty((*q.shape[:-1], self._robot.nq))
        for match in self._matches:
            ours[..., match.q] = match.form.to_ours(q[..., match.their_q])
        for mimic in self._mimics:
            ours[..., mimic.place] = mimic.scaling * ours[..., mimic.leader][..., 0] + mimic.offset
        return ours

    def velocity_matrix(self, q):
        """T in their v = T v; orthogonal.

        Parameters
        ----------
        q : array_like, shape (..., nq)

        Returns
        -------
        ndarray, shape (..., nv, nv)
        """
        q = as_floats("q", q, self._robot.nq)
        T = np.zeros((*q.shape[:-1], self.nv, self._robot.nv))
        for match in self._matches:
            T[..., match.their_v, match.v] = match.form.velocity(q[..., match.q], match.v.stop - match.v.start)
        return T

    def velocity_matrix_rate(self, q, v):
        """Tdot in their a = T a + Tdot v.

        Parameters
        ----------
        q : array_like, shape (..., nq)
        v : array_like, shape (..., nv)

        Returns
        -------
        ndarray, shape (..., nv, nv)
        """
        q, v = as_floats("q", q, self._robot.nq), as_floats("v", v, self._robot.nv)
        rate = np.zeros((*v.shape[:-1], self.nv, self._robot.nv))
        for match in self._matches:
            rate[..., match.their_v, match.v] = match.form.velocity_rate(q[..., match.q], v[..., match.v])
        return rate


def pinocchio(robot, model, names=None):
    """The ordering of a Pinocchio model.

    Parameters
    ----------
    robot : Robot
    model : pinocchio.Model
    names : dict, optional
        Their joint name by ours, if these differ. ``"base"`` is their ``"root_joint"`` if there is no other.

    Returns
    -------
    Ordering

    Raises
    ------
    InputError
        A joint that one of the two lacks, or that has different kinds.

    Examples
    --------
    >>> import pinocchio as pin  # doctest: +SKIP
    >>> order = pinocchio(robot, model)  # doctest: +SKIP
    >>> T = order.velocity_matrix(q)  # doctest: +SKIP
    >>> np.allclose(pin.crba(model, data, order.to_theirs(q)), T @ ld.crba(robot, q) @ T.T)  # doctest: +SKIP
    True
    """
    their_joints, matches, mimics = {}, [], []
    for number, (name, joint) in enumerate(zip(model.names, model.joints)):
        if number:
            their_joints[name] = joint
            their_joints |= {called: part for called, part, _ in parts_of(name, joint)}
    # the default names of a floating base in both libraries
    if "root_joint" in their_joints and "base" not in their_joints:
        names = {"base": "root_joint"} | (names or {})
    slices = list(_joint_slices(robot))
    called = [_their_name(joint.name, names, list(their_joints)) for joint, _, _ in slices]
    leaders = {name: q for name, (_, q, _) in zip(called, slices)}
    for name, (joint, q, v) in zip(called, slices):
        theirs = their_joints[name]
        if theirs.shortname() == "JointModelMimic":
            leader, theirs = model.names[leaders_of(model)[theirs.id]], theirs.extract()
            mimics.append(_Mimic(q.start, leaders[leader], theirs.scaling, theirs.offset))
            continue
        form = _pinocchio_form(joint, theirs)
        their_q, their_v = slice(theirs.idx_q, theirs.idx_q + theirs.nq), slice(theirs.idx_v, theirs.idx_v + theirs.nv)
        matches.append(_Match(form, q, v, their_q, their_v))
    return _complete(robot, matches, model.nv, mimics)


_PINOCCHIO_FORMS = {("free", "JointModelFreeFlyer"): _PinocchioFree, ("planar", "JointModelPlanar"): _PinocchioPlanar,
                    ("spherical", "JointModelSpherical"): _Same}


def _pinocchio_form(joint, theirs):
    kind, both = JOINT_KINDS[joint.kind], (joint.kind, theirs.shortname())
    if both in _PINOCCHIO_FORMS:
        return _PINOCCHIO_FORMS[both]
    if joint.kind == "revolute" and theirs.nq == 2:
        return _Circle
    if kind.nq == kind.nv and (theirs.nq, theirs.nv) == (kind.nq, kind.nv):
        return _Same
    raise InputError(f"joint {shown(joint.name)}: {joint.kind} here, {theirs.shortname()} there")


_MUJOCO_TYPES = {_MujocoFree: (0,), _MujocoBall: (1,), _Same: (2, 3)}  # mjtJoint; slides and hinges


def mujoco(robot, model, names=None):
    """The ordering of a MuJoCo model.

    A joint that is several slides and hinges there is matched by the names of its coordinates (``"joint.x"``); joints
    without names have the names that `liedyn.load_mjcf` gives them.

    Parameters
    ----------
    robot : Robot
    model : mujoco.MjModel
    names : dict, optional
        Their joint name by ours (of a joint, or of a coordinate), if these differ.

    Returns
    -------
    Ordering

    Raises
    ------
    InputError
        A joint that one of the two lacks, or that has different kinds.

    Examples
    --------
    >>> order = mujoco(robot, model)  # doctest: +SKIP
    >>> data.qpos[:], data.qvel[:] = order.to_theirs(q), order.velocity_matrix(q) @ v  # doctest: +SKIP
    """
    joints, matches = {_mujoco_name(model, k): model.joint(k) for k in range(model.njnt)}, []
    for name, form, q, v in _mujoco_parts(robot):
        theirs = joints[_their_name(name, names, list(joints))]
        if int(theirs.type[0]) not in _MUJOCO_TYPES[form]:
            raise InputError(f"joint {shown(name)}: another kind than MuJoCo's joint of type {int(theirs.type[0])}")
        iq, iv = int(theirs.qposadr[0]), int(theirs.dofadr[0])
        matches.append(_Match(form, q, v, _moved(q, iq), _moved(v, iv)))
    return _complete(robot, matches, model.nv)


def _mujoco_name(model, j):
    """A joint's own name, else its body's, with a number if that body has several."""
    name = model.joint(j).name
    if name:
        return name
    body = model.body(int(model.jnt_bodyid[j]))
    return (body.name or f"body{body.id}") + (f".{j - int(body.jntadr[0]) + 1}" if int(body.jntnum[0]) > 1 else "")


def _mujoco_parts(robot):
    """Name, form and slices of each joint in MuJoCo: our joints with a quaternion, else single coordinates."""
    for joint, q, v in _joint_slices(robot):
        if JOINT_KINDS[joint.kind].has_quaternion:
            if joint.kind == "free" and not np.array_equal(joint.placement, np.eye(4)):
                raise InputError(f"joint {shown(joint.name)}: MuJoCo's free joint has no placement")
            yield joint.name, _MujocoFree if joint.kind == "free" else _MujocoBall, q, v
        else:
            for k in range(v.stop - v.start):
                one_q, one_v = slice(q.start + k, q.start + k + 1), slice(v.start + k, v.start + k + 1)
                yield robot.velocity_names[one_v.start], _Same, one_q, one_v


def _moved(ours, start):
    return slice(start, start + ours.stop - ours.start)


def _joint_slices(robot):
    """Each joint with the slices of its coordinates in q and v."""
    joints = {joint.name: joint for joint in robot.model.joints}
    iq = iv = 0
    for name in robot.joint_names:
        kind = JOINT_KINDS[joints[name].kind]
        yield joints[name], slice(iq, iq + kind.nq), slice(iv, iv + kind.nv)
        iq, iv = iq + kind.nq, iv + kind.nv


def _their_name(name, names, their_names):
    theirs = (names or {}).get(name, name)
    if theirs not in their_names:
        raise InputError(f"joint {shown(name)}: the other model has no joint {shown(theirs)}, "
                         f"{suggestion(theirs, their_names)}")
    return theirs


def _complete(robot, matches, their_nv, mimics=()):
    if their_nv != robot.nv - len(mimics):
        raise InputError(f"the other model has {their_nv} degrees of freedom, robot {shown(robot.name)} has {robot.nv}")
    return Ordering(robot, matches, mimics)
