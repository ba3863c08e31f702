"""Maps between the numbers of q and the tangent space at q, for frameworks with configurations as plain arrays.

In liedyn derivatives by q refer to the tangent space: theta moves q to q exp(theta). The numbers of q then change by
dq = Q(q) theta, with the same Q as in q_dot = Q(q) v: ones for revolute and prismatic joints, half a quaternion product
for rotations, R for the position of a free joint.

In frameworks quaternions are four numbers of any length but zero. A function of the robot depends on the rotation only,
and is therefore constant along a ray from zero: f(Q) = f(Q / |Q|). So theta = W(q) dq with W Q = 1, and W is zero along
the ray; derivatives by the numbers are derivatives in the tangent space times W. Second ones are W^T H W, with the
Hessian H in the exponential's chart, plus f' times the second derivatives K of theta by the numbers: with the
quaternion r = conj(q) Q' of another rotation relative to q, theta = 2 vec(r) / r_s to second order; and the other
position of a free joint, seen from q, is theta_v + theta_w x theta_v / 2.
"""
import numpy as np

from liedyn.lie import rotation_from_quaternion
from liedyn.machine.errors import InputError
from liedyn.model.kinds import FREE, SPHERICAL
from liedyn.model.packed import LINK_IQ, LINK_IV, LINK_PRIMITIVE, links_of
from liedyn.model.remembered import remembered


@remembered
def rotations(robot):
    """For each quaternion (first index in q, first index in v, true for a free joint, which has a position too)."""
    return [(int(link[LINK_IQ]), int(link[LINK_IV]), link[LINK_PRIMITIVE] == FREE)
            for link in links_of(robot.packed)[0] if link[LINK_PRIMITIVE] in (SPHERICAL, FREE)]


@remembered
def _plain(robot):
    """Q for all joints with one degree of freedom, shape (nq, nv); zeros for the others."""
    Q, turning = np.zeros((robot.nq, robot.nv)), [i for _, i, _ in rotations(robot)]
    for link in links_of(robot.packed)[0]:
        if link[LINK_IV] not in turning and link[LINK_PRIMITIVE] not in (SPHERICAL, FREE):
            Q[link[LINK_IQ], link[LINK_IV]] = 1.0
    return Q


def with_unit_quaternions(robot, q):
    """q (..., nq) with unit quaternions, and their original lengths, shape (..., number of quaternions).

    Raises InputError if a quaternion is zero, and represents no rotation.
    """
    places = rotations(robot)
    if not places:
        return q, np.ones(q.shape[:-1] + (0,))
    q = q.copy()
    lengths = np.stack([np.linalg.norm(q[..., k:k + 4], axis=-1) for k, _, _ in places], axis=-1)
    for each, (k, _, _) in enumerate(places):
        if (lengths[..., each] == 0.0).any():
            raise InputError(f"the quaternion of joint {robot.coordinate_names[k].removesuffix('.qx')!r} is zero: "
                             "it stands for no rotation")
        q[..., k:k + 4] /= lengths[..., each, None]
    return q, lengths


def rates(robot, q):
    """Q (..., nq, nv) with dq = Q theta, at a q with unit quaternions (Spencer 2004, A.1.2)."""
    Q = np.broadcast_to(_plain(robot), q.shape[:-1] + (robot.nq, robot.nv)).copy()
    for k, i, is_free in rotations(robot):
        x, y, z, s = np.moveaxis(0.5 * q[..., k:k + 4], -1, 0)
        product = [[s, -z, y], [z, s, -x], [-y, x, s], [-x, -y, -z]]
        Q[..., k:k + 4, i:i + 3] = np.moveaxis(np.array(product), (0, 1), (-2, -1))
        if is_free:
            Q[..., k + 4:k + 7, i + 3:i + 6] = rotation_from_quaternion(q[..., k:k + 4])
    return Q


def tangent(robot, q, lengths):
    """W (..., nv, nq) with theta = W dq, at a q with unit quaternions whose original lengths are given: Q W Q = Q."""
    Q = rates(robot, q)
    W = np.swapaxes(Q, -1, -2).copy()
    for each, (k, i, _) in enumerate(rotations(robot)):
        W[..., i:i + 3, k:k + 4] *= 4.0 / lengths[..., each, None, None]
    return W


def tangent_slopes(robot, q, W, lengths):
    """K (..., nv, nq, nq), the second derivatives of theta, from W = `tangent(robot, q, lengths)`."""
    K = np.zeros((*W.shape, robot.nq))
    for each, (k, i, is_free) in enumerate(rotations(robot)):
        turn, slide, numbers = slice(i, i + 3), slice(i + 3, i + 6), slice(k, k + 4)
        crossed = W[..., turn, numbers, None] * (q[..., numbers] / lengths[..., each, None])[..., None, None, :]
        K[..., turn, numbers, numbers] = -crossed - np.swapaxes(crossed, -1, -2)
        if is_free:
            place = slice(k + 4, k + 7)
            crossed = -0.5 * np.cross(W[..., turn, numbers, None], W[..., slide, None, place], axis=-3)
            K[..., slide, numbers, place] = crossed
            K[..., slide, place, numbers] = np.swapaxes(crossed, -1, -2)
    return K
