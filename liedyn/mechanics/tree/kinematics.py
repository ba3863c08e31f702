"""Kinematics of a tree in world axes, shared by Jacobians, inertia matrix, derivatives and loops.

All quantities are spatial vectors at one fixed point, so that no transforms between frames are needed afterwards:
the columns S_j of all body Jacobians, and the rates that the derivatives need (Singh, Russell and Wensing 2022,
eq. 17-20), with p the parent of the link i that degree of freedom j moves:

    Psi_dot_j = ad(V_p, S_j)      Psi_ddot_j = ad(A_p, S_j) + ad(V_p, Psi_dot_j)      S_dot_j = ad(V_i, S_j)

A displacement S_j of all links beyond joint j changes a body twist, expressed in the body, by exactly Psi_dot_j.
Accelerations contain gravity (the ground accelerates upward).

That point is the position of the first link at this state (`liedyn.mechanics.tree.poses.origin_of`), not the world's
origin. Results depend on it only by rounding, which grows with the square of the distance to it.
"""
from liedyn.lie.algebra import ad, add6, compose, scale6
from liedyn.machine.compiled.jit import inline, kernel_in_place
from liedyn.machine.simd.lanes import SCALAR, WIDTH, load
from liedyn.machine.simd.registers import at_once
from liedyn.machine.simd.sines import put_sines, sines_size
from liedyn.mechanics.tree.joints import by_kind, dofs_of_kind, screw_of_kind_at
from liedyn.mechanics.tree.poses import (
    get_world_pose, link_in_world, origin_of, place_one_state, put_world_pose, seen_from,
)
from liedyn.model.packed_records import (
    body_link, body_placement, dof_count, dof_total, first_dof, get3, get6, link_count, minus_gravity, parent, put3,
    put6, q_total, zero6,
)

# the shared part of a workspace: LINK numbers per link, then DOF numbers per degree of freedom
LINK, POSE, TWIST, ACCELERATION = 28, 0, 16, 22
DOF, S, PSI_DOT, PSI_DDOT, S_DOT = 24, 0, 6, 12, 18


@inline
def sines_at(model):
    """Index of the sines and cosines of the coordinates, after links and degrees of freedom."""
    return LINK * link_count(model) + DOF * dof_total(model)


@inline
def origin_at(model):
    """Index of the origin, given by its position in the world, after the sines."""
    return sines_at(model) + sines_size(q_total(model))


@inline
def world_size(model):
    """Size of the shared part of a workspace."""
    return origin_at(model) + WIDTH  # three for the origin; the next part begins with a register


@inline
def put_origin(lane, model, q, work):
    """Choose the origin."""
    put3(lane, work, origin_at(model), origin_of(lane, model, 0, q))


@inline
def origin(lane, model, work):
    """The position of the origin in the world."""
    return get3(lane, work, origin_at(model))


@inline
def of_link(i, what):
    return LINK * i + what


@inline
def of_dof(model, j, what):
    return LINK * link_count(model) + DOF * j + what


@inline
def world_pose(lane, work, i):
    return get_world_pose(lane, work, of_link(i, POSE))


@inline
def twist_of(lane, work, i):
    """Twist of link i, -1 for the ground."""
    if i < 0:
        return zero6(lane)
    return get6(lane, work, of_link(i, TWIST))


@inline
def acceleration_of(lane, model, work, i):
    """Acceleration of link i with gravity, -1 for the ground."""
    if i < 0:
        return minus_gravity(lane, model)
    return get6(lane, work, of_link(i, ACCELERATION))


@inline
def put_link_in_place(lane, joint, model, i, q, work):
    """Pose and screws of link i; for one state the poses are computed before."""
    if at_once(lane) > 1:
        X = world_pose(lane, work, i)
    else:
        X = link_in_world(lane, joint, model, i, q, work, LINK, sines_at(model), origin(lane, model, work))
        put_world_pose(lane, work, of_link(i, POSE), X)
    for d in range(dofs_of_kind(joint)):
        put6(lane, work, of_dof(model, first_dof(model, i) + d, S), screw_of_kind_at(lane, joint, model, i, X, d))


@kernel_in_place
def world_positions(lane, model, q, work):
    """Poses of all links and the screws S_j, and the origin to which they refer."""
    put_sines(lane, q, q_total(model), work, sines_at(model))
    put_origin(lane, model, q, work)
    if at_once(lane) > 1:
        place_one_state(model, q, work, LINK, sines_at(model), origin(SCALAR, model, work))
    for i in range(link_count(model)):
        by_kind(put_link_in_place, lane, model, i, q, work)


@kernel_in_place
def world_velocities(lane, model, v, work):
    """Twists V_i, and Psi_dot_j and S_dot_j; needs `world_positions`."""
    for i in range(link_count(model)):
        Vp, j = twist_of(lane, work, parent(model, i)), first_dof(model, i)
        if dof_count(model, i) == 1:
            Sj = get6(lane, work, of_dof(model, j, S))
            put6(lane, work, of_link(i, TWIST), add6(Vp, scale6(load(lane, v, j), Sj)))
            # a single screw is fixed in its own motion: ad(V, S) = ad(V_p + v S, S)
            psi_dot = ad(Vp, Sj)
            put6(lane, work, of_dof(model, j, PSI_DOT), psi_dot)
            put6(lane, work, of_dof(model, j, S_DOT), psi_dot)
            continue
        V = Vp
        for j in range(first_dof(model, i), first_dof(model, i) + dof_count(model, i)):
            V = add6(V, scale6(load(lane, v, j), get6(lane, work, of_dof(model, j, S))))
        put6(lane, work, of_link(i, TWIST), V)
        for j in range(first_dof(model, i), first_dof(model, i) + dof_count(model, i)):
            Sj = get6(lane, work, of_dof(model, j, S))
            put6(lane, work, of_dof(model, j, PSI_DOT), ad(Vp, Sj))
            put6(lane, work, of_dof(model, j, S_DOT), ad(V, Sj))


@kernel_in_place
def world_accelerations(lane, model, v, a, work):
    """Accelerations A_i with gravity, and Psi_ddot_j; needs `world_velocities`."""
    for i in range(link_count(model)):
        Vp = twist_of(lane, work, parent(model, i))
        Ap = acceleration_of(lane, model, work, parent(model, i))
        A = Ap
        for j in range(first_dof(model, i), first_dof(model, i) + dof_count(model, i)):
            Sj = get6(lane, work, of_dof(model, j, S))
            S_dot_j = get6(lane, work, of_dof(model, j, S_DOT))
            A = add6(A, add6(scale6(load(lane, a, j), Sj), scale6(load(lane, v, j), S_dot_j)))
            psi_dot = get6(lane, work, of_dof(model, j, PSI_DOT))
            put6(lane, work, of_dof(model, j, PSI_DDOT), add6(ad(Ap, Sj), ad(Vp, psi_dot)))
        put6(lane, work, of_link(i, ACCELERATION), A)


@kernel_in_place
def world_motion(lane, model, q, v, a, work):
    """Poses, twists and accelerations of all links, with their screws and rates."""
    world_positions(lane, model, q, work)
    world_velocities(lane, model, v, work)
    world_accelerations(lane, model, v, a, work)


@inline
def body_pose(lane, model, work, b):
    """Pose of body b, in its own declared frame; needs `world_positions`."""
    X = body_placement(lane, model, b)
    if body_link(model, b) < 0:
        return seen_from(origin(lane, model, work), X)
    return compose(world_pose(lane, work, body_link(model, b)), X)
