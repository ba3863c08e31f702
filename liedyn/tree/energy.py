"""Energies, centre of mass and momentum of a tree, summed link by link.

Twists are body-fixed and moments are taken about the centre of mass: nothing is lost far from the world's origin.
Bodies fixed to the ground do not count. Armatures count in the kinetic energy only: the reaction of a rotor on the link
that carries it is neglected, as it is in M.
"""

from liedyn.arguments import require_robot
from liedyn.boundary import of_all_states
from liedyn.direct import configuration, direct, packed, result, velocity
from liedyn.errors import InputError
from liedyn.jit import kernel_in_place
from liedyn.lie.algebra import (
    Ad_dual_inverse, Ad_inverse, add, add6, compose, dot, dot6, inertia_times, rotate, scale, sub,
)
from liedyn.lie.lanes import LANES, SCALAR, WIDTH, load, splat, store
from liedyn.model.packed import LINK_MASS, links_of
from liedyn.objects import is_none, no_numbers, numbers, scratch
from liedyn.tree.batches import aligned, batch, gather, in_lanes, scatter
from liedyn.tree.joints import joint_pose, joint_twist, spring_energy
from liedyn.tree.poses import origin_of, seen_from
from liedyn.tree.records import (
    armature, constant3, dof_total, get6, get_pose, inertia, link_count, parent, put3, put6, put_pose, zero3, zero6,
)

WORK = 18  # numbers per link: world pose X (12), twist V in the link's own frame (6)
X, V = 0, 12


@kernel_in_place
def place_links(lane, model, q, origin, work):
    """Poses of all links, in world axes; returns the first moment sum m (p + R c) about the place `origin`."""
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
    origin = origin_of(lane, model, 0, q)  # what is far away has its centre of mass there, too
    com = scale(1.0 / mass_of_links(model), place_links(lane, model, q, origin, work))
    move_links(lane, model, q, v, work)
    total = zero6(lane)
    for i in range(link_count(model)):
        R, p = get_pose(lane, work, WORK * i + X)
        carried = inertia_times(inertia(model, i), get6(lane, work, WORK * i + V))
        total = add6(total, Ad_dual_inverse((R, sub(p, com)), carried))
    put6(lane, momentum, 0, total)


@batch
def kinetic_energy_states(begin, end, model, q, v, energy):
    """`kinetic_energy_kernel` on each row."""
    work = aligned(WORK * link_count(model) * WIDTH)
    if end - begin == 1:
        kinetic_energy_kernel(SCALAR, model, q[begin], v[begin], work, energy[begin])
        return
    q_w, v_w, energy_w = in_lanes(q), in_lanes(v), in_lanes(energy)
    for b in range(begin, end, WIDTH):
        gather(q, b, end, q_w)
        gather(v, b, end, v_w)
        kinetic_energy_kernel(LANES, model, q_w, v_w, work, energy_w)
        scatter(energy_w, b, end, energy)


@batch
def potential_energy_states(begin, end, model, q, energy):
    """`potential_energy_kernel` on each row."""
    work = aligned(WORK * link_count(model) * WIDTH)
    if end - begin == 1:
        potential_energy_kernel(SCALAR, model, q[begin], work, energy[begin])
        return
    q_w, energy_w = in_lanes(q), in_lanes(energy)
    for b in range(begin, end, WIDTH):
        gather(q, b, end, q_w)
        potential_energy_kernel(LANES, model, q_w, work, energy_w)
        scatter(energy_w, b, end, energy)


@batch
def center_of_mass_states(begin, end, model, q, com):
    """`center_of_mass_kernel` on each row."""
    work = aligned(WORK * link_count(model) * WIDTH)
    if end - begin == 1:
        center_of_mass_kernel(SCALAR, model, q[begin], work, com[begin])
        return
    q_w, com_w = in_lanes(q), in_lanes(com)
    for b in range(begin, end, WIDTH):
        gather(q, b, end, q_w)
        center_of_mass_kernel(LANES, model, q_w, work, com_w)
        scatter(com_w, b, end, com)


@batch
def momentum_states(begin, end, model, q, v, momentum):
    """`momentum_kernel` on each row."""
    work = aligned(WORK * link_count(model) * WIDTH)
    if end - begin == 1:
        momentum_kernel(SCALAR, model, q[begin], v[begin], work, momentum[begin])
        return
    q_w, v_w, momentum_w = in_lanes(q), in_lanes(v), in_lanes(momentum)
    for b in range(begin, end, WIDTH):
        gather(q, b, end, q_w)
        gather(v, b, end, v_w)
        momentum_kernel(LANES, model, q_w, v_w, work, momentum_w)
        scatter(momentum_w, b, end, momentum)


@direct
def kinetic_energy_direct(model, q, v, out):
    """`kinetic_energy_kernel` on one state as Python passes it."""
    model = packed(model)
    q, v, work = configuration(model, q), velocity(model, v), scratch(WORK * link_count(model))
    energy = result(out, (), (model.floats, q, v, work))
    if not is_none(energy):
        kinetic_energy_kernel(SCALAR, model, q, v, work, numbers(energy, 1))
    return energy


def kinetic_energy(robot, q, v, out=None):
    """Kinetic energy of the open tree.

    Parameters
    ----------
    robot : Robot
    q : array_like, shape (..., nq)
        Configuration [rad, m; quaternions (x, y, z, w)].
    v : array_like, shape (..., nv)
        Velocity [rad/s, m/s], body-fixed for spherical and free joints.
    out : ndarray, shape (...), optional
        Where the result goes: C-contiguous float64 of the very shape of the result.

    Returns
    -------
    energy : float or ndarray, shape (...)
        ``v^T M(q) v / 2`` [J], joint armatures included.

    Raises
    ------
    InputError
        A shape does not fit, an entry is not finite, or a quaternion is not of unit length.

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
    if not hasattr(robot, "packed"):
        require_robot(robot)
    energy = kinetic_energy_direct(robot.packed, q, v, out)
    if energy is None:
        energy = of_all_states(robot, kinetic_energy_states, (), out, q=q, v=v)
    return float(energy) if out is None and energy.ndim == 0 else energy


@direct
def potential_energy_direct(model, q, out):
    """`potential_energy_kernel` on one state as Python passes it."""
    model = packed(model)
    q, work = configuration(model, q), scratch(WORK * link_count(model))
    energy = result(out, (), (model.floats, q, work))
    if not is_none(energy):
        potential_energy_kernel(SCALAR, model, q, work, numbers(energy, 1))
    return energy


def potential_energy(robot, q, out=None):
    """Potential energy of the open tree: gravity and joint springs.

    Parameters
    ----------
    robot : Robot
    q : array_like, shape (..., nq)
        Configuration [rad, m; quaternions (x, y, z, w)].
    out : ndarray, shape (...), optional
        Where the result goes: C-contiguous float64 of the very shape of the result.

    Returns
    -------
    energy : float or ndarray, shape (...)
        [J], zero for masses at the world's origin and springs at rest. Bodies fixed to the ground do not count.

    Raises
    ------
    InputError
        A shape does not fit, an entry is not finite, or a quaternion is not of unit length.

    Notes
    -----
    ``-g . sum m r + sum k |log(rest^-1 q)|^2 / 2``. Its derivative, tangent at q, is ``rnea`` at rest.

    Examples
    --------
    >>> import liedyn as ld
    >>> panda = ld.load("panda")
    >>> bool(ld.potential_energy(panda, ld.neutral(panda)) > 0.0)
    True
    """
    if not hasattr(robot, "packed"):
        require_robot(robot)
    energy = potential_energy_direct(robot.packed, q, out)
    if energy is None:
        energy = of_all_states(robot, potential_energy_states, (), out, q=q)
    return float(energy) if out is None and energy.ndim == 0 else energy


def total_mass(robot):
    """Mass of all that moves.

    Parameters
    ----------
    robot : Robot

    Returns
    -------
    mass : float
        [kg]. Bodies fixed to the ground do not count.

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


def _require_mass(robot):
    if not total_mass(robot) > 0.0:
        raise InputError(f"robot {robot.name!r} has no moving mass, hence no centre of mass")


@direct
def center_of_mass_direct(model, q, out):
    """`center_of_mass_kernel` on one state as Python passes it; a robot of no mass is unusual."""
    model = packed(model)
    q, work = configuration(model, q), scratch(WORK * link_count(model))
    if not mass_of_links(model) > 0.0:
        work = no_numbers(-1)
    com = result(out, (3,), (model.floats, q, work))
    if not is_none(com):
        center_of_mass_kernel(SCALAR, model, q, work, numbers(com, 3))
    return com


def center_of_mass(robot, q, out=None):
    """Centre of mass of all that moves.

    Parameters
    ----------
    robot : Robot
    q : array_like, shape (..., nq)
        Configuration [rad, m; quaternions (x, y, z, w)].
    out : ndarray, shape (..., 3), optional
        Where the result goes: C-contiguous float64 of the very shape of the result.

    Returns
    -------
    com : ndarray, shape (..., 3)
        In world coordinates [m]. Bodies fixed to the ground do not count.

    Raises
    ------
    InputError
        A shape does not fit, an entry is not finite, a quaternion is not of unit length, or no mass moves.

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
    if not hasattr(robot, "packed"):
        require_robot(robot)
    com = center_of_mass_direct(robot.packed, q, out)
    if com is not None:
        return com
    _require_mass(robot)
    return of_all_states(robot, center_of_mass_states, (3,), out, q=q)


@direct
def momentum_direct(model, q, v, out):
    """`momentum_kernel` on one state as Python passes it; a robot of no mass is unusual."""
    model = packed(model)
    q, v, work = configuration(model, q), velocity(model, v), scratch(WORK * link_count(model))
    if not mass_of_links(model) > 0.0:
        work = no_numbers(-1)
    momentum = result(out, (6,), (model.floats, q, v, work))
    if not is_none(momentum):
        momentum_kernel(SCALAR, model, q, v, work, numbers(momentum, 6))
    return momentum


def momentum(robot, q, v, out=None):
    """Spatial momentum about the centre of mass, in world axes (the centroidal momentum).

    Parameters
    ----------
    robot : Robot
    q : array_like, shape (..., nq)
        Configuration [rad, m; quaternions (x, y, z, w)].
    v : array_like, shape (..., nv)
        Velocity [rad/s, m/s], body-fixed for spherical and free joints.
    out : ndarray, shape (..., 6), optional
        Where the result goes: C-contiguous float64 of the very shape of the result.

    Returns
    -------
    momentum : ndarray, shape (..., 6)
        (angular about the centre of mass, linear) [kg m^2/s, kg m/s]. About another point x the angular part is
        ``angular + (com - x) x linear``. Joint armatures do not count.

    Raises
    ------
    InputError
        A shape does not fit, an entry is not finite, a quaternion is not of unit length, or no mass moves.

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
    if not hasattr(robot, "packed"):
        require_robot(robot)
    total = momentum_direct(robot.packed, q, v, out)
    if total is not None:
        return total
    _require_mass(robot)
    return of_all_states(robot, momentum_states, (6,), out, q=q, v=v)
