"""Inverse dynamics of a tree, varied in two directions to second order: one outward and one inward pass.

Symbols and the rules for carrying variations: `liedyn.linear.sensitivity.second_order_sensitivity`. With u = S v and
the turns t = (S N_1, S N_2 + Z, S N_12), where Z is the displacement of the joint itself by the parameter
(`liedyn.linear.sensitivity.changes`):

    e_i = combined(e_p, t)
    V_i = carried(V_p, t) + u
    A_i = carried(A_p, t) + ad(V_i, u) + S a
    F_i = I A_i + V_i x* I V_i

and on the way to the ground tau_j = S_j . F_i, F_p += wrench_carried(F_i, t): the recursion of Luh, Walker and Paul
(1980) with every number replaced by a quadruple. S is constant seen from the link.
"""
from collections import namedtuple

from liedyn.lie.algebra import add, add6, cross, inertia_in_parent, scale6
from liedyn.linear.sensitivity.changes import (
    ARMATURE, DAMPING, REST, STIFFNESS, inertia_change, number_change, of_dof, of_gravity, shift_of,
)
from liedyn.linear.sensitivity.second_order_sensitivity import (
    bracket, carried, combined, dual_bracket, momentum, plus, power, rotation_vector, wrench_carried,
)
from liedyn.machine.compiled.jit import VECTOR, group, inline, kernel_in_place
from liedyn.machine.simd.lanes import LANES, SCALAR, WIDTH, load, store
from liedyn.mechanics.tree.joints import has_rotation_spring, spring_rotation, spring_shift
from liedyn.mechanics.tree.kinematics import S, acceleration_of, world_pose
from liedyn.mechanics.tree.kinematics import of_dof as screw_at
from liedyn.mechanics.tree.tangent_recursion import along_joint, get_block6
from liedyn.model.packed_records import (
    accumulate6, armature, damping, dof_count, first_dof, first_q, get3, get6, inertia, link_count, parent, put6,
    rest, stiffness, zero6,
)

Columns = namedtuple("Columns", "N X A L")
"""Variations of q, v, a and lambda: vectors along one direction; matrices, or padded ones, with a column for each."""

Along = namedtuple("Along", "one two N_12 X_12")
"""Both directions: `Columns` along direction 1, vectors, and along direction 2, padded matrices with a column for each
parameter; and the mixed variations of q and v, padded."""

Passes = namedtuple("Passes", "spread floats lanes")
"""Workspace of a pass: changes by the parameters, and variations of each link, parts of direction 2 in registers."""

PASSES = group(Passes, *[VECTOR] * 3)
"""Their type, for `liedyn.machine.compiled.jit.late`."""

# floats and registers of each link: displacement, then twist, acceleration and wrench; two of four parts each
FLOATS, LANED = 42, 48
MOTION, ACCELERATION, WRENCH = 0, 1, 2


@inline
def put_quadruple(passes, i, what, x):
    k, u = FLOATS * i + 6 + 12 * what, LANED * i + 12 + 12 * what
    put6(SCALAR, passes.floats, k, x[0])
    put6(SCALAR, passes.floats, k + 6, x[1])
    put6(LANES, passes.lanes, u, x[2])
    put6(LANES, passes.lanes, u + 6, x[3])


@inline
def quadruple(passes, i, what):
    k, u = FLOATS * i + 6 + 12 * what, LANED * i + 12 + 12 * what
    return (get6(SCALAR, passes.floats, k), get6(SCALAR, passes.floats, k + 6), get6(LANES, passes.lanes, u),
            get6(LANES, passes.lanes, u + 6))


@inline
def still():
    """A twist that is zero and does not vary."""
    return zero6(SCALAR), zero6(SCALAR), zero6(LANES), zero6(LANES)


@inline
def displacement_of(passes, i):
    """Displacement of link i; zero for the ground, i < 0."""
    if i < 0:
        return zero6(SCALAR), zero6(LANES), zero6(LANES)
    return (get6(SCALAR, passes.floats, FLOATS * i), get6(LANES, passes.lanes, LANED * i),
            get6(LANES, passes.lanes, LANED * i + 6))


@inline
def motion_of(passes, i):
    """Twist of link i."""
    if i < 0:
        return still()
    return quadruple(passes, i, MOTION)


@inline
def rate_of(model, work, passes, i):
    """Acceleration of link i minus gravity, which may be a parameter."""
    if i < 0:
        zero, (x, y, z) = zero6(SCALAR), get3(LANES, passes.spread, of_gravity(model))
        return acceleration_of(SCALAR, model, work, -1), zero, (zero6(LANES)[0], (-x, -y, -z)), zero6(LANES)
    return quadruple(passes, i, ACCELERATION)


@inline
def push(passes, i, F):
    """Adds a wrench, seen from link i, to those on the link; ignored for the ground."""
    if i >= 0:
        k, u = FLOATS * i + 6 + 12 * WRENCH, LANED * i + 12 + 12 * WRENCH
        accumulate6(SCALAR, passes.floats, k, F[0])
        accumulate6(SCALAR, passes.floats, k + 6, F[1])
        accumulate6(LANES, passes.lanes, u, F[2])
        accumulate6(LANES, passes.lanes, u + 6, F[3])


@inline
def along_one(model, work, i, x):
    """Sum of S_j x_j over the degrees of freedom of joint i."""
    j = first_dof(model, i)
    total = scale6(load(SCALAR, x, j), get6(SCALAR, work, screw_at(model, j, S)))
    for k in range(j + 1, j + dof_count(model, i)):
        total = add6(total, scale6(load(SCALAR, x, k), get6(SCALAR, work, screw_at(model, k, S))))
    return total


@inline
def turn_of(model, work, passes, along, i, b):
    """Displacement of joint i along directions 1 and 2, and the mixed one."""
    turned = add6(along_joint(SCALAR, model, work, i, along.two.N, b), shift_of(passes.spread, i))
    return (along_one(model, work, i, along.one.N), turned, along_joint(SCALAR, model, work, i, along.N_12, b))


@kernel_in_place
def vary_links(model, motion, work, along, b, massive, passes):
    """Displacements, twists, accelerations and wrenches of each link; needs `world_positions` and `put_changes`.

    In a model of force elements links have no mass: `massive` is false.
    """
    one, two = along.one, along.two
    for i in range(link_count(model)):
        p, I = parent(model, i), inertia_in_parent(world_pose(SCALAR, work, i), inertia(model, i))
        t = turn_of(model, work, passes, along, i, b)
        u = (along_one(model, work, i, motion.v), along_one(model, work, i, one.X),
             along_joint(SCALAR, model, work, i, two.X, b), along_joint(SCALAR, model, work, i, along.X_12, b))
        V = plus(carried(motion_of(passes, p), t), u)
        pushed = (along_one(model, work, i, motion.a), along_one(model, work, i, one.A),
                  along_joint(SCALAR, model, work, i, two.A, b), zero6(LANES))
        A = plus(plus(carried(rate_of(model, work, passes, p), t), bracket(V, u)), pushed)
        dI = inertia_change(passes.spread, i)
        e = combined(displacement_of(passes, p), t)
        put6(SCALAR, passes.floats, FLOATS * i, e[0])
        put6(LANES, passes.lanes, LANED * i, e[1])
        put6(LANES, passes.lanes, LANED * i + 6, e[2])
        put_quadruple(passes, i, MOTION, V)
        put_quadruple(passes, i, ACCELERATION, A)
        if massive:
            put_quadruple(passes, i, WRENCH, plus(momentum(I, dI, A), dual_bracket(V, momentum(I, dI, V))))
        else:
            put_quadruple(passes, i, WRENCH, still())


@inline
def joint_forces(model, motion, along, passes, j, b):
    """Forces of the damper and the armature of degree of freedom j: the parts that vary along direction 2.

    A damper d v has the mixed part d X_12 + d_2 X_1; an armature likewise.
    """
    (_, two, _, X_12), spread = along, passes.spread
    k = X_12.shape[1] // WIDTH * j + b
    d, m = number_change(spread, of_dof(model, j, DAMPING)), number_change(spread, of_dof(model, j, ARMATURE))
    force = d * load(SCALAR, motion.v, j) + damping(model, j) * load(LANES, two.X, k)
    force = force + (m * load(SCALAR, motion.a, j) + armature(model, j) * load(LANES, two.A, k))
    mixed = d * load(SCALAR, along.one.X, j) + damping(model, j) * load(LANES, X_12, k)
    return force, mixed + m * load(SCALAR, along.one.A, j)


@inline
def spring_forces(model, q, along, passes, i, b):
    """Force of the spring k (q - rest) of a joint with one degree of freedom: the parts that vary along direction 2."""
    j, at, spread = first_dof(model, i), first_q(model, i), passes.spread
    k = along.N_12.shape[1] // WIDTH * j + b
    d, moved = number_change(spread, of_dof(model, j, STIFFNESS)), number_change(spread, of_dof(model, j, REST))
    force = d * (load(SCALAR, q, at) - rest(model, at)) + stiffness(model, j) * (load(LANES, along.two.N, k) - moved)
    return force, d * load(SCALAR, along.one.N, j) + stiffness(model, j) * load(LANES, along.N_12, k)


@inline
def add_to(out, k, x):
    """Adds x to register k."""
    store(LANES, out, k, load(LANES, out, k) + x)


@kernel_in_place
def add_group_spring(model, q, along, i, b, force, mixed):
    """Adds the forces of the spring of ball or free joint i, in child axes: stiffness times phi and times shift."""
    j, count, width = first_dof(model, i), dof_count(model, i), along.N_12.shape[1] // WIDTH
    (w_2, v_2), (w_12, v_12) = get_block6(along.two.N, j, count, b), get_block6(along.N_12, j, count, b)
    w_1, k = get3(SCALAR, along.one.N, j), stiffness(model, j)
    phi = rotation_vector(spring_rotation(SCALAR, model, i, q), 0.5, w_1, w_2, w_12)
    for r in range(3):
        add_to(force, width * (j + r) + b, k * phi[2][r])
        add_to(mixed, width * (j + r) + b, k * phi[3][r])
    if count == 6:
        s, k = spring_shift(SCALAR, model, i, q), stiffness(model, j + 3)
        s_2 = add(cross(s, w_2), v_2)
        s_12 = add(add(cross(s, w_12), cross(s_2, w_1)), v_12)
        for r in range(3):
            add_to(force, width * (j + 3 + r) + b, k * s_2[r])
            add_to(mixed, width * (j + 3 + r) + b, k * s_12[r])


@kernel_in_place
def gather_forces(model, work, along, b, passes, force, mixed):
    """Adds to block b of `force` and `mixed` (nv) the parts of joint forces that vary along direction 2."""
    width = force.shape[1] // WIDTH
    for i in range(link_count(model) - 1, -1, -1):
        F, first = quadruple(passes, i, WRENCH), first_dof(model, i)
        for j in range(first, first + dof_count(model, i)):
            tau_2, tau_12 = power(get6(SCALAR, work, screw_at(model, j, S)), F)
            add_to(force, width * j + b, tau_2)
            add_to(mixed, width * j + b, tau_12)
        if parent(model, i) >= 0:
            push(passes, parent(model, i), wrench_carried(F, turn_of(model, work, passes, along, i, b)))


@kernel_in_place
def add_joint_forces(model, motion, along, b, passes, force, mixed):
    """Adds the forces of dampers, armatures and springs."""
    width = force.shape[1] // WIDTH
    for i in range(link_count(model)):
        first, count = first_dof(model, i), dof_count(model, i)
        for j in range(first, first + count):
            tau_2, tau_12 = joint_forces(model, motion, along, passes, j, b)
            add_to(force, width * j + b, tau_2)
            add_to(mixed, width * j + b, tau_12)
        if count == 1:
            tau_2, tau_12 = spring_forces(model, motion.q, along, passes, i, b)
            add_to(force, width * first + b, tau_2)
            add_to(mixed, width * first + b, tau_12)
        elif has_rotation_spring(model, i):
            add_group_spring(model, motion.q, along, i, b, force, mixed)
