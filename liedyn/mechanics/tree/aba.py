"""Articulated-body algorithm: forward dynamics of a tree in O(n) (Featherstone 2008, table 7.1), body coordinates.

A joint of several degrees of freedom is eliminated one screw at a time, last first: its screws share the link's frame,
so this equals the block elimination of table 7.1, without inverting a block, and includes armatures.
"""
# mypy: ignore-errors

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from liedyn.lie.algebra import ad, add6, dot6, inertia_times, minus_ad_dual, scale6, sub6
from liedyn.lie.articulated import add_articulated, articulated, articulated_times, without_direction
from liedyn.machine.compiled.jit import inline, kernel_in_place
from liedyn.machine.errors import SingularConfigurationError
from liedyn.machine.simd.lanes import load, splat, store
from liedyn.machine.simd.sines import put_sines_from, sines_size
from liedyn.mechanics.tree.joint_transforms import (
    add_gamma, first_angle, inertia_to_parent, twist_to_child, wrench_to_parent,
)
from liedyn.mechanics.tree.joints import accumulate_springs_of_kind, by_kind, dofs_of_kind, screw_of_kind, twist_of_kind
from liedyn.model.calls.recursion import recursion
from liedyn.model.packed import REVOLUTE
from liedyn.model.packed_records import (
    armature, dof_total, first_dof, get6, get9, get_symmetric, inertia, link_count, minus_gravity, parent, put6, put9,
    put_symmetric, q_total,
)

if TYPE_CHECKING:
    from liedyn.model.robot import Robot
    from liedyn.typing import Array, ArrayLike, Wrenches

# numbers per link: twist V, later overwritten by the acceleration A; then per dof: U/D and u/D; then for the branch on
# the way to the ground, and for those that wait at forks: articulated inertia I and bias wrench p
LINK = 6
DOF, GAIN, FREED = 7, 0, 6
CARRIED, I, P = 27, 0, 21


@kernel_in_place
def aba_size(model):
    """Size of the workspace of `aba_kernel`."""
    return sines_at(model) + sines_size(q_total(model))


@inline
def dofs_at(model):
    return LINK * link_count(model)


@inline
def carried_at(model):
    return dofs_at(model) + DOF * dof_total(model)


@inline
def sines_at(model):
    return carried_at(model) + CARRIED * link_count(model)


@inline
def get_articulated(lane, work, k):
    return get_symmetric(lane, work, k), get9(lane, work, k + 6), get_symmetric(lane, work, k + 15)


@inline
def put_articulated(lane, work, k, I):
    put_symmetric(lane, work, k, I[0])
    put9(lane, work, k + 6, I[1])
    put_symmetric(lane, work, k + 15, I[2])


@inline
def carries(model, i):
    """True if link i carries others; the next link is then one of them."""
    return i + 1 < link_count(model) and parent(model, i + 1) == i


@inline
def outward(lane, joint, model, i, q, v, tau, work, a):
    """Twist of link i, and in `a` the force that accelerates it."""
    if joint == REVOLUTE:
        add_gamma(lane, model, i, work, sines_at(model))
    Vi = twist_of_kind(lane, joint, model, i, v)
    if parent(model, i) >= 0:
        Vp = get6(lane, work, LINK * parent(model, i))
        Vi = add6(twist_to_child(lane, joint, model, i, q, work, sines_at(model), Vp), Vi)
    put6(lane, work, LINK * i, Vi)
    for j in range(first_dof(model, i), first_dof(model, i) + dofs_of_kind(joint)):
        store(lane, a, j, load(lane, tau, j))
    # minus the force of spring and damper
    accumulate_springs_of_kind(lane, joint, model, i, q, v, -1.0, a)


@inline
def velocity_product(lane, joint, model, i, v, work):
    """c = ad(V, S v)."""
    return ad(get6(lane, work, LINK * i), twist_of_kind(lane, joint, model, i, v))


@inline
def eliminate_dof(lane, joint, model, i, d, work, a, Ia, p):
    """Articulated inertia and bias wrench of link i if it moves freely along screw d of its joint."""
    j, S = first_dof(model, i) + d, screw_of_kind(lane, joint, model, i, d)
    U = articulated_times(Ia, S)
    d_inverse = 1.0 / (dot6(U, S) + armature(model, j))
    freed = d_inverse * (load(lane, a, j) - dot6(p, S))
    k = dofs_at(model) + DOF * j
    put6(lane, work, k + GAIN, scale6(d_inverse, U))
    store(lane, work, k + FREED, freed)
    return without_direction(Ia, U, d_inverse), add6(p, scale6(freed, U))


@inline
def eliminate_three_dofs(lane, joint, model, i, d, work, a, Ia, p):
    """`eliminate_dof` for screws d + 2, d + 1 and d, unrolled: zeros of screws known at compile time cost nothing."""
    Ia, p = eliminate_dof(lane, joint, model, i, d + 2, work, a, Ia, p)
    Ia, p = eliminate_dof(lane, joint, model, i, d + 1, work, a, Ia, p)
    return eliminate_dof(lane, joint, model, i, d, work, a, Ia, p)


@inline
def inward(lane, joint, model, i, taken, given, q, v, f_ext, work, a):
    """Inward step at joint i: articulated inertia and bias wrench across the free joint are added to the parent's.

    `taken` and `given` are the positions on the stack of the branches of link i and of its own result.
    """
    Vi, Ii = get6(lane, work, LINK * i), inertia(model, i)
    Ia, p = articulated(splat(lane, 0.0), Ii), minus_ad_dual(Vi, inertia_times(Ii, Vi))
    if f_ext.size > 0:
        p = sub6(p, get6(lane, f_ext, 6 * i))
    if carries(model, i):
        k = carried_at(model) + CARRIED * taken
        Ia, p = add_articulated(Ia, get_articulated(lane, work, k + I)), add6(p, get6(lane, work, k + P))
    if dofs_of_kind(joint) == 1:
        Ia, p = eliminate_dof(lane, joint, model, i, 0, work, a, Ia, p)
    else:
        if dofs_of_kind(joint) == 6:
            Ia, p = eliminate_three_dofs(lane, joint, model, i, 3, work, a, Ia, p)
        Ia, p = eliminate_three_dofs(lane, joint, model, i, 0, work, a, Ia, p)
    if parent(model, i) >= 0:
        if joint == REVOLUTE and armature(model, first_dof(model, i)) == 0.0:
            # rotation without resistance: its row and column contain only rounding
            (xx, xy, _, yy, _, _), (Bxx, Bxy, Bxz, Byx, Byy, Byz, _, _, _), C = Ia
            o = splat(lane, 0.0)
            Ia = (xx, xy, o, yy, o, o), (Bxx, Bxy, Bxz, Byx, Byy, Byz, o, o, o), C
            pass_on(lane, joint, model, i, taken, given, q, v, Ia, p, work)
        else:
            pass_on(lane, joint, model, i, taken, given, q, v, Ia, p, work)


@inline
def pass_on(lane, joint, model, i, taken, given, q, v, Ia, p, work):
    """Transform inertia and wrench of link i to its parent."""
    p = add6(p, articulated_times(Ia, velocity_product(lane, joint, model, i, v, work)))
    Ia = inertia_to_parent(lane, joint, model, i, q, work, sines_at(model), Ia)
    p = wrench_to_parent(lane, joint, model, i, q, work, sines_at(model), p)
    k = carried_at(model) + CARRIED * given
    if given < taken:  # not the first branch of the parent
        Ia, p = add_articulated(Ia, get_articulated(lane, work, k + I)), add6(p, get6(lane, work, k + P))
    put_articulated(lane, work, k + I, Ia)
    put6(lane, work, k + P, p)


@inline
def accelerated(lane, joint, model, i, q, v, work, a):
    """Accelerations of joint and link i, given that of the parent."""
    Ap = minus_gravity(lane, model) if parent(model, i) < 0 else get6(lane, work, LINK * parent(model, i))
    Ai = twist_to_child(lane, joint, model, i, q, work, sines_at(model), Ap)
    Ai = add6(Ai, velocity_product(lane, joint, model, i, v, work))
    for d in range(dofs_of_kind(joint)):
        j = first_dof(model, i) + d
        k = dofs_at(model) + DOF * j
        aj = load(lane, work, k + FREED) - dot6(get6(lane, work, k + GAIN), Ai)
        store(lane, a, j, aj)
        Ai = add6(Ai, scale6(aj, screw_of_kind(lane, joint, model, i, d)))
    put6(lane, work, LINK * i, Ai)  # overwrites the twist, which is no longer needed


@kernel_in_place
def aba_kernel(lane, model, q, v, tau, f_ext, work, a):
    """a = M^-1 (tau + tau_joint(q, v) - c(q, v)); f_ext is (6 n) or empty.

    Depth first, as `rnea_kernel`. Results of branches are on a stack, where the first branch of a fork waits for the
    others: a chain has only one inertia at a time.
    """
    n = link_count(model)
    put_sines_from(lane, q, first_angle(model), q_total(model), work, sines_at(model))
    waiting = -1
    for i in range(n):
        by_kind(outward, lane, model, i, q, v, tau, work, a)
        if not carries(model, i):
            waiting += 1
        fork = parent(model, i + 1) if i + 1 < n else -1
        k = i
        while k != fork:  # back to the parent of the next link
            given = waiting if k == parent(model, k) + 1 else waiting - 1
            by_kind(inward, lane, model, k, waiting, given, q, v, f_ext, work, a)
            k, waiting = parent(model, k), given
    for i in range(n):
        by_kind(accelerated, lane, model, i, q, v, work, a)


def require_regular_tree(robot):
    """SingularConfigurationError if M of the open tree is singular: the robot has massless bodies held by loops
    only."""
    if robot.singular_tree:
        raise SingularConfigurationError(
            f"the open tree of {robot.name!r} has no accelerations: no inertia resists the motion of "
            f"{', '.join(robot.singular_tree)}, which only loops hold; use forward_dynamics", np.zeros(1))


@recursion(aba_kernel, work=aba_size, refuse={"singular_tree": require_regular_tree}, a="nv")
def aba(robot: Robot, q: ArrayLike, v: ArrayLike, tau: ArrayLike, f_ext: Wrenches | None = None,
        out: Array | None = None) -> Array:
    """Forward dynamics of the open tree by the articulated-body algorithm.

    Returns
    -------
    a : ndarray, shape (..., nv)
        Accelerations [rad/s^2, m/s^2]; springs, dampers and armatures of the joints act, loops are ignored.

    Raises
    ------
    SingularConfigurationError
        The robot has massless bodies that only its loops hold.

    Notes
    -----
    Featherstone 2008, table 7.1.

    Examples
    --------
    >>> import liedyn as ld
    >>> panda = ld.load("panda")
    >>> q = ld.neutral(panda)
    >>> tau = ld.rnea(panda, q, 0 * q, 0 * q + 1.0)
    >>> bool(abs(ld.aba(panda, q, 0 * q, tau) - 1.0).max() < 1e-9)
    True
    """
