"""The configuration space of a tree, a Lie group: q (+) dv = q exp(dv) joint by joint, perturbed on the right.

Revolute, prismatic and helical coordinates add. A quaternion turns by the rotation vector dv in the child's own frame.
A free joint moves by the full exponential of SE(3), so that its dv is a body-fixed twist times time.
"""
# mypy: ignore-errors

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from liedyn.machine.arguments import lead_of, require_robot
from liedyn.machine.compiled.jit import kernel_in_place
from liedyn.machine.errors import InputError, shown
from liedyn.mechanics.tree.joints import joint_difference, move_joint
from liedyn.model.calls.recursion import recursion
from liedyn.model.kinds import JOINTS
from liedyn.model.packed import LINK_IQ, LINK_PRIMITIVE, links_of
from liedyn.model.packed_records import link_count

if TYPE_CHECKING:
    from liedyn.model.robot import Robot
    from liedyn.typing import Array, ArrayLike


@kernel_in_place
def integrate_kernel(model, q, dv, q_new):
    """q_new = q (+) dv; q_new may be q itself. Quaternions are normalised."""
    for i in range(link_count(model)):
        move_joint(model, i, q, dv, q_new)


@kernel_in_place
def difference_kernel(model, q0, q1, dv):
    """The dv with q0 (+) dv = q1, along the shorter way."""
    for i in range(link_count(model)):
        joint_difference(model, i, q0, q1, dv)


def neutral(robot: Robot) -> Array:
    """The configuration with zero coordinates and identity quaternions.

    Parameters
    ----------
    robot : Robot

    Returns
    -------
    q : ndarray, shape (nq,)
        A new array [rad, m; quaternions (x, y, z, w)].

    Notes
    -----
    The identity of the configuration group: every joint frame coincides with its child's (Spencer 2004, A.2).

    Examples
    --------
    >>> import liedyn as ld
    >>> ld.neutral(ld.load("panda"))
    array([0., 0., 0., 0., 0., 0., 0.])
    """
    require_robot(robot)
    return robot.neutral.copy()


def random_configuration(robot: Robot, rng: np.random.Generator | int | None = None,
                         size: int | tuple[int, ...] = ()) -> Array:
    """Random configurations within the limits; loops are ignored.

    Parameters
    ----------
    robot : Robot
    rng : numpy.random.Generator or int, optional
        Random generator, or its seed; by default a new one with a random seed.
    size : int or tuple of int
        Leading axes of the result; by default one configuration.

    Returns
    -------
    q : ndarray, shape (..., nq)
        Uniform between the limits. A coordinate without limits is drawn from (-pi, pi) rad or (-1, 1) m, one with a
        single limit from an interval of that width at the limit; rotations of spherical and free joints are uniform.

    Raises
    ------
    InputError
        `rng` is no generator or seed, or `size` is no size.

    Examples
    --------
    >>> import liedyn as ld
    >>> panda = ld.load("panda")
    >>> q = ld.random_configuration(panda, rng=0, size=100)
    >>> q.shape, bool((q < panda.upper).all())
    ((100, 7), True)
    """
    require_robot(robot)
    lead = lead_of("size", size)
    try:
        rng = np.random.default_rng(rng)
    except Exception:  # any exception of NumPy
        raise InputError(f"rng must be a Generator, a seed that is not negative, or None, got {shown(rng)}") from None
    links, _ = links_of(robot.packed)
    kinds = [JOINTS[primitive] for primitive in links[:, LINK_PRIMITIVE]]
    reach = np.where([is_length for kind in kinds for is_length in kind.are_lengths], 1.0, np.pi)
    below, above = np.isfinite(robot.lower), np.isfinite(robot.upper)
    lower = np.where(below, robot.lower, np.where(above, robot.upper - 2 * reach, -reach))
    upper = np.where(above, robot.upper, lower + 2 * reach)
    q = rng.uniform(lower, upper, size=(*lead, robot.nq))
    for k in (link[LINK_IQ] for link, kind in zip(links, kinds) if kind.has_quaternion):
        quaternions = rng.normal(size=q.shape[:-1] + (4,))
        q[..., k:k + 4] = quaternions / np.linalg.norm(quaternions, axis=-1, keepdims=True)
    return q


@recursion(integrate_kernel, q_new="nq")
def integrate(robot: Robot, q: ArrayLike, dv: ArrayLike, out: Array | None = None) -> Array:
    """Move a configuration by a tangent vector: q (+) dv.

    Parameters
    ----------
    dv : array_like, shape (..., nv)
        Velocity times time [rad, m], body-fixed for spherical and free joints.

    Returns
    -------
    q : ndarray, shape (..., nq)
        The configuration after moving with the constant velocity dv for a unit of time; quaternions of unit length.

    Notes
    -----
    ``q exp(dv)`` joint by joint; a free joint moves by the exponential of SE(3) (Spencer 2004, A.1.3).

    Examples
    --------
    >>> import liedyn as ld
    >>> panda = ld.load("panda")
    >>> ld.integrate(panda, ld.neutral(panda), [0.1] * 7)
    array([0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1])
    """


@recursion(difference_kernel, dv="nv")
def difference(robot: Robot, q0: ArrayLike, q1: ArrayLike, out: Array | None = None) -> Array:
    """The tangent vector from one configuration to another: ``integrate(robot, q0, difference(robot, q0, q1))`` is q1.

    Parameters
    ----------
    q0, q1 : array_like, shape (..., nq)
        Configurations [rad, m; quaternions (x, y, z, w)].

    Returns
    -------
    dv : ndarray, shape (..., nv)
        Velocity times time [rad, m], body-fixed at q0 for spherical and free joints. Rotations of quaternions go the
        shorter way, by half a turn at most (q and -q are the same rotation); angles of other joints are not wrapped.

    Notes
    -----
    ``log(q0^-1 q1)`` joint by joint (Spencer 2004, A.1.3, inverted).

    Examples
    --------
    >>> import liedyn as ld
    >>> panda = ld.load("panda")
    >>> ld.difference(panda, [0.1] * 7, [0.3] * 7).round(12)
    array([0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2])
    """
