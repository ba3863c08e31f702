"""Energies, centre of mass and momentum of a tree, summed link by link.

Twists are body-fixed and moments are about the centre of mass, so that precision does not depend on the distance from
the world's origin. Bodies fixed to the ground are not included. Armatures count in the kinetic energy only: the
reaction of a rotor on the link that carries it is neglected, as it is in M.
"""
# mypy: ignore-errors

from __future__ import annotations

from typing import TYPE_CHECKING

from liedyn.lie.algebra import (
    Ad_dual_inverse, Ad_inverse, add, add6, compose, dot, dot6, inertia_times, rotate, scale, sub,
)
from liedyn.machine.arguments import require_robot
from liedyn.machine.by_name import by_name
from liedyn.machine.compiled.jit import kernel_in_place
from liedyn.machine.errors import InputError
from liedyn.machine.simd.lanes import load, splat, store
from liedyn.mechanics.tree.joints import joint_pose, joint_twist, spring_energy
from liedyn.mechanics.tree.poses import origin_of, seen_from
from liedyn.model.calls.recursion import recursion
from liedyn.model.packed import LINK_MASS, links_of
from liedyn.model.packed_records import (
    armature, constant3, dof_total, get6, get_pose, inertia, link_count, parent, put3, put6, put_pose, zero3, zero6,
)

if TYPE_CHECKING:
    from liedyn.model.robot import Robot
    from liedyn.typing import Array, ArrayLike

WORK = 18  # numbers per link: world pose X (12), twist V in the link's own frame (6)
X, V = 0, 12


@kernel_in_place
def energy_size(model):
    """Size of the workspace of all kernels here."""
    return WORK * link_count(model)


@kernel_in_place
def place_links(lane, model, q, origin, work):
    """Poses of all links, in world axes; returns the first moment sum m (p + R c) about the point `origin`."""
    moment = zero3(lane)
    for i in range(link_count(model)):
        Xi = joint_pose(lane, model, i, q)
        if parent(model, i) < 0:
            Xi = seen_from(origin, Xi)
        else:
            Xi = compose(get_pose(lane, work, WORK * parent(model, i) + X), Xi)
        put_pose(lane, work, WORK * i + X, Xi)
        m, h, _ = inertia(model, i)
        R, p = Xi
        moment = add(moment, add(scale(m, p), rotate(R, h)))
    return moment


@kernel_in_place
def move_links(lane, model, q, v, work):
    """Twists of all links, each in its own frame."""
    for i in range(link_count(model)):
        Vi = joint_twist(lane, model, i, v)
        if parent(model, i) >= 0:
            f = joint_pose(lane, model, i, q)
            Vi = add6(Ad_inverse(f, get6(lane, work, WORK * parent(model, i) + V)), Vi)
        put6(lane, work, WORK * i + V, Vi)


@kernel_in_place
def mass_of_links(model):
    mass = 0.0
    for i in range(link_count(model)):
        mass += inertia(model, i)[0]
    return mass


@kernel_in_place
def kinetic_energy_kernel(lane, model, q, v, work, energy):
    """energy[0] = sum V^T I V / 2 + sum armature v^2 / 2."""
    move_links(lane, model, q, v, work)
    twice = splat(lane, 0.0)
    for i in range(link_count(model)):
        Vi = get6(lane, work, WORK * i + V)
        twice = twice + dot6(inertia_times(inertia(model, i), Vi), Vi)
    for j in range(dof_total(model)):
        twice = twice + armature(model, j) * load(lane, v, j) * load(lane, v, j)
    store(lane, energy, 0, 0.5 * twice)


@kernel_in_place
def potential_energy_kernel(lane, model, q, work, energy):
    """energy[0] = -g . sum m (p + R c) + energy of the joint springs."""
    moment = place_links(lane, model, q, zero3(lane), work)
    total = -dot(constant3(lane, model, 0), moment)
    for i in range(link_count(model)):
        total = total + spring_energy(lane, model, i, q)
    store(lane, energy, 0, total)


@kernel_in_place
def center_of_mass_kernel(lane, model, q, work, com):
    """com = sum m (p + R c) / sum m, in world coordinates."""
    moment = place_links(lane, model, q, zero3(lane), work)
    put3(lane, com, 0, scale(1.0 / mass_of_links(model), moment))


@kernel_in_place
def momentum_kernel(lane, model, q, v, work, momentum):
    """momentum = sum Ad*_{X^-1} I V, with each X seen from the centre of mass, in world axes."""
    origin = origin_of(lane, model, 0, q)  # for robots far away, the centre of mass is near this origin
    com = scale(1.0 / mass_of_links(model), place_links(lane, model, q, origin, work))
    move_links(lane, model, q, v, work)
    total = zero6(lane)
    for i in range(link_count(model)):
        R, p = get_pose(lane, work, WORK * i + X)
        carried = inertia_times(inertia(model, i), get6(lane, work, WORK * i + V))
        total = add6(total, Ad_dual_inverse((R, sub(p, com)), carried))
    put6(lane, momentum, 0, total)


@recursion(kinetic_energy_kernel, work=energy_size, energy="")
def kinetic_energy(robot: Robot, q: ArrayLike, v: ArrayLike, out: Array | None = None) -> float | Array:
    """Kinetic energy of the open tree.

    Returns
    -------
    energy : float or ndarray, shape (...)
        ``v^T M(q) v / 2`` [J], joint armatures included.

    Notes
    -----
    The sum of ``V^T I V / 2`` over the links (Featherstone 2008, eq. 2.67).

    Examples
    --------
    >>> import liedyn as ld
    >>> panda = ld.load("panda")
    >>> float(ld.kinetic_energy(panda, ld.neutral(panda), [0.0] * 7))
    0.0
    """


def with_elements(robot, q, out=None):
    """The potential energy of a robot that has force elements."""
    # imported here, as elements use constraints, which use the tree
    return by_name("liedyn.mechanics.elements.generalized:potential_energy")(robot, q, out)


@recursion(potential_energy_kernel, work=energy_size, otherwise={"elements": with_elements}, energy="")
def potential_energy(robot: Robot, q: ArrayLike, out: Array | None = None) -> float | Array:
    """Potential energy of gravity, joint springs and conservative force elements.

    Returns
    -------
    energy : float or ndarray, shape (...)
        [J], zero for masses at the world's origin and springs at rest. Not included are bodies fixed to the ground, and
        force elements without energy or with unknown energy: laws that are functions, friction, motors, applied forces.

    Notes
    -----
    ``-g . sum m r + sum k |log(rest^-1 q)|^2 / 2``, plus the energies of springs, gas springs and bushings. Its
    derivative, tangent at q, is ``rnea`` at rest minus ``element_forces`` at rest of these.

    Examples
    --------
    >>> import liedyn as ld
    >>> panda = ld.load("panda")
    >>> bool(ld.potential_energy(panda, ld.neutral(panda)) > 0.0)
    True
    """


def total_mass(robot: Robot) -> float:
    """Total mass of the moving bodies.

    Parameters
    ----------
    robot : Robot

    Returns
    -------
    mass : float
        [kg], without bodies fixed to the ground.

    Notes
    -----
    The sum over the links of the tree.

    Examples
    --------
    >>> import liedyn as ld
    >>> bool(ld.total_mass(ld.load("panda")) > 0.0)
    True
    """
    if not hasattr(robot, "packed"):
        require_robot(robot)
    return float(links_of(robot.packed)[1][:, LINK_MASS].sum())


def refuse_massless(robot):
    """InputError: no moving body has mass, so there is no centre of mass."""
    raise InputError(f"robot {robot.name!r} has no moving mass, hence no centre of mass")


@recursion(center_of_mass_kernel, work=energy_size, refuse={"massless": refuse_massless}, com="3")
def center_of_mass(robot: Robot, q: ArrayLike, out: Array | None = None) -> Array:
    """Centre of mass of the moving bodies.

    Returns
    -------
    com : ndarray, shape (..., 3)
        In world coordinates [m], without bodies fixed to the ground.

    Raises
    ------
    InputError
        A shape does not fit, an entry is not finite, a quaternion is not of unit length, or no moving body has mass.

    Notes
    -----
    ``sum m r / sum m`` over the links.

    Examples
    --------
    >>> import liedyn as ld
    >>> panda = ld.load("panda")
    >>> ld.center_of_mass(panda, ld.neutral(panda)).shape
    (3,)
    """


@recursion(momentum_kernel, work=energy_size, refuse={"massless": refuse_massless}, momentum="6")
def momentum(robot: Robot, q: ArrayLike, v: ArrayLike, out: Array | None = None) -> Array:
    """Spatial momentum about the centre of mass, in world axes (the centroidal momentum).

    Returns
    -------
    momentum : ndarray, shape (..., 6)
        (angular about the centre of mass, linear) [kg m^2/s, kg m/s]. About another point x the angular part is
        ``angular + (com - x) x linear``. Joint armatures are not included.

    Raises
    ------
    InputError
        A shape does not fit, an entry is not finite, a quaternion is not of unit length, or no moving body has mass.

    Notes
    -----
    Orin, Goswami and Lee 2013, summed over the links; momenta change frames as wrenches do (Spencer 2004, A.1.5).

    Examples
    --------
    >>> import liedyn as ld
    >>> panda = ld.load("panda")
    >>> ld.momentum(panda, ld.neutral(panda), [0.0] * 7)
    array([0., 0., 0., 0., 0., 0.])
    """
