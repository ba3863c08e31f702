"""Variations of a tree's motion in many directions at once: the recursions of inverse dynamics, differentiated.

Column c of three matrices is a direction: the configuration is displaced along N, the velocity changes by X, the
acceleration by D. A register holds W directions of one state, or one direction of W states: numbers of the state are
floats or lanes, according to the `lane` argument, those of its variations always lanes. Columns are processed in blocks
of one register; `b` is the number of the block. With eta_i the displacement of link i, V_J = V_i - V_p the twist of its
joint, and everything in world coordinates but *seen from the link*, delta x - ad(eta_i, x), so that S_j and I are
constants:

    eta_i = eta_p + turn                              turn = sum S_j N_j
    dV_i  = dV_p + ad(V_p, turn) + push               push = sum S_j X_j
    dA_i  = dA_p + ad(A_p, turn) + ad(dV_i, V_J) + ad(V_i, push) + sum S_j D_j
    dF_i  = I_i dA_i + V_i x* I_i dV_i + dV_i x* I_i V_i

and inward, with F_i the wrench transmitted by joint i,

    dtau_j = S_j . dF_i                               dF_p += dF_i + turn x* F_i

A direction costs O(n); dtau/dq and dtau/dv would cost O(n d), and their products with N and X as much again. In body
coordinates this is the differentiated recursion of Park, Bobrow and Ploen 1995; forward mode, exact to rounding.
"""
from collections import namedtuple

from liedyn.lie.algebra import (
    Ad_dual_inverse, ad, add6, dot6, inertia_in_parent, inertia_times, minus_ad_dual, scale6, sub6,
)
from liedyn.machine.compiled.jit import VECTOR, group, inline, kernel_in_place
from liedyn.machine.linalg.gauss_jordan import element, put_element
from liedyn.machine.simd.lanes import LANES, WIDTH, integer, load, splat, store
from liedyn.machine.simd.registers import at_once
from liedyn.mechanics.tree.column_coloring import directions_of, leader
from liedyn.mechanics.tree.joints import has_rotation_spring, spring_variation
from liedyn.mechanics.tree.kinematics import ACCELERATION, S, acceleration_of, of_dof, of_link, twist_of, world_pose
from liedyn.model.packed_records import (
    accumulate6, armature, damping, dof_count, first_dof, get6, get_inertia, inertia, link_count, parent, parent_dof,
    put6, put_inertia, stiffness, zero6,
)

VariedLinks = namedtuple("VariedLinks", "world cuts variations")
"""Kinematics in world axes; data of cut joints; variations of all links along a register of columns."""

VARIED_LINKS = group(VariedLinks, *[VECTOR] * 3)
"""Their type, for `liedyn.machine.compiled.jit.late`."""

# numbers per link: inertia, momentum I V, wrench transmitted by the joint
BODY, MOMENTUM, WRENCH = 22, 10, 16
# lanes per link: displacement eta, dV, dA, the contribution of D to dA; dF overwrites dV, from which it is computed
VARIATION, ETA, DV, DA, ADDED, DF = 24, 0, 6, 12, 18, 6


@inline
def of_body(i, what):
    return BODY * i + what


@inline
def varied(i, what):
    return VARIATION * i + what


@inline
def variation_of(variations, i, what):
    """Variation `what` of link i in every direction; zero for the ground."""
    if i < 0:
        return zero6(LANES)
    return get6(LANES, variations, varied(i, what))


@inline
def along_joint(lane, model, work, i, A, b):
    """Sum of S_j A[j, block b] over the degrees of freedom of joint i."""
    j, width = first_dof(model, i), A.shape[1] // WIDTH
    total = scale6(load(LANES, A, width * j + b), get6(lane, work, of_dof(model, j, S)))
    for k in range(j + 1, j + dof_count(model, i)):
        total = add6(total, scale6(load(LANES, A, width * k + b), get6(lane, work, of_dof(model, k, S))))
    return total


# ---- the state itself


@kernel_in_place
def put_bodies(lane, model, v, a, f_ext, work, bodies):
    """Accelerations at a in `work`, which holds poses, screws and twists; and I, I V and wrench of each link alone."""
    for i in range(link_count(model)):
        X, V, Vp = world_pose(lane, work, i), twist_of(lane, work, i), twist_of(lane, work, parent(model, i))
        A = add6(acceleration_of(lane, model, work, parent(model, i)), ad(Vp, V))
        for j in range(first_dof(model, i), first_dof(model, i) + dof_count(model, i)):
            A = add6(A, scale6(load(lane, a, j), get6(lane, work, of_dof(model, j, S))))
        I = inertia_in_parent(X, inertia(model, i))
        P = inertia_times(I, V)
        F = add6(inertia_times(I, A), minus_ad_dual(V, P))
        if f_ext.size > 0:
            F = sub6(F, Ad_dual_inverse(X, get6(lane, f_ext, 6 * i)))
        put6(lane, work, of_link(i, ACCELERATION), A)
        put_inertia(lane, bodies, of_body(i, 0), I)
        put6(lane, bodies, of_body(i, MOMENTUM), P)
        put6(lane, bodies, of_body(i, WRENCH), F)


@inline
def push_link(lane, bodies, i, F):
    """Add F to the wrench of link i, unless it is the ground."""
    if i >= 0:
        accumulate6(lane, bodies, of_body(i, WRENCH), F)


@kernel_in_place
def gather_wrenches(lane, model, bodies):
    """Sum the wrenches of single links inward, to those that their joints transmit."""
    for i in range(link_count(model) - 1, -1, -1):
        push_link(lane, bodies, parent(model, i), get6(lane, bodies, of_body(i, WRENCH)))


# ---- its variations


@kernel_in_place
def vary_velocities(lane, model, work, N, X, b, variations):
    """eta and dV of all links."""
    for i in range(link_count(model)):
        p = parent(model, i)
        turn, push = along_joint(lane, model, work, i, N, b), along_joint(lane, model, work, i, X, b)
        dV = add6(add6(variation_of(variations, p, DV), ad(twist_of(lane, work, p), turn)), push)
        put6(LANES, variations, varied(i, ETA), add6(variation_of(variations, p, ETA), turn))
        put6(LANES, variations, varied(i, DV), dV)


@kernel_in_place
def vary_accelerations(lane, model, work, displaced, X, b, variations):
    """dV and dA of all links for D = 0; eta was computed if any column is `displaced`, and is set to zero if not."""
    for i in range(link_count(model)):
        p = parent(model, i)
        V, Vp = twist_of(lane, work, i), twist_of(lane, work, p)
        push = along_joint(lane, model, work, i, X, b)
        dV, dA = add6(variation_of(variations, p, DV), push), add6(variation_of(variations, p, DA), ad(V, push))
        if displaced:
            turn = sub6(variation_of(variations, i, ETA), variation_of(variations, p, ETA))
            dV = add6(dV, ad(Vp, turn))
            dA = add6(dA, ad(acceleration_of(lane, model, work, p), turn))
        else:
            put6(LANES, variations, varied(i, ETA), zero6(LANES))
        put6(LANES, variations, varied(i, DV), dV)
        put6(LANES, variations, varied(i, DA), add6(dA, ad(dV, sub6(V, Vp))))


@inline
def put_added(lane, model, work, i, D, b, variations):
    """Stores the contribution of D to dA of link i, and returns it."""
    added = add6(variation_of(variations, parent(model, i), ADDED), along_joint(lane, model, work, i, D, b))
    put6(LANES, variations, varied(i, ADDED), added)
    return added


@kernel_in_place
def vary_wrenches(lane, model, work, bodies, D, b, variations):
    """Contribution of D to dA, and dF of each link alone."""
    for i in range(link_count(model)):
        added = put_added(lane, model, work, i, D, b, variations)
        V, I = twist_of(lane, work, i), get_inertia(lane, bodies, of_body(i, 0))
        dV, dA = variation_of(variations, i, DV), add6(variation_of(variations, i, DA), added)
        dF = add6(inertia_times(I, dA), minus_ad_dual(V, inertia_times(I, dV)))
        dF = add6(dF, minus_ad_dual(dV, get6(lane, bodies, of_body(i, MOMENTUM))))
        put6(LANES, variations, varied(i, DF), dF)


@inline
def vary_push(variations, i, dF):
    """Add dF, expressed in link i, to the variation of its wrench."""
    if i >= 0:
        accumulate6(LANES, variations, varied(i, DF), dF)


@inline
def hand_over(lane, model, links, shares, i, p, dF, b, balance):
    """The part of dF, block b of columns, that link i transmits to link p and p on to the ground
    (`liedyn.mechanics.tree.column_coloring`).

    The rest belongs to directions of i's group only: their columns of `balance` receive it, as forces of the joints
    from p to the ground. The ADDED data of link i are overwritten.
    """
    if p < 0 or leader(shares, i) == leader(shares, p):
        return dF
    work, variations, k, registers = links.world, links.variations, varied(i, ADDED), at_once(lane)
    j = first_dof(model, p) + dof_count(model, p) - 1
    while j >= 0:
        store(LANES, variations, k, dot6(get6(lane, work, of_dof(model, j, S)), dF))
        for part in range(2):
            listed, first, end, begin = directions_of(shares, i, part)
            for c in range(max(begin + first, registers * b), min(begin + end, registers * (b + 1))):
                u = integer(shares, listed + c - begin)
                force = load(lane, variations, registers * k + c - registers * b)
                put_element(lane, balance, j, u, element(lane, balance, j, u) - force)
        j = parent_dof(model, j)
    put6(LANES, variations, k, dF)
    for part in range(2):
        _, first, end, begin = directions_of(shares, i, part)
        for c in range(max(begin + first, registers * b), min(begin + end, registers * (b + 1))):
            for x in range(6):
                store(lane, variations, registers * (k + x) + c - registers * b, 0.0)
    return variation_of(variations, i, ADDED)


@inline
def get_block6(A, j, count, b):
    """Rows j to j + count of a padded matrix, six or three of them, as a pair of vectors."""
    width = A.shape[1] // WIDTH
    zero = splat(LANES, 0.0)
    x = (load(LANES, A, width * j + b), load(LANES, A, width * (j + 1) + b), load(LANES, A, width * (j + 2) + b))
    y = (zero, zero, zero)
    if count == 6:
        y = (load(LANES, A, width * (j + 3) + b), load(LANES, A, width * (j + 4) + b),
             load(LANES, A, width * (j + 5) + b))
    return x, y


@kernel_in_place
def vary_forces(lane, model, q, links, bodies, displaced, columns, b, shares, balance):
    """Block b of the last of `columns` (N, X, D, out): out = -dtau of all joints, with springs, dampers and armatures.

    If columns are shared (`liedyn.mechanics.tree.column_coloring`), out is for the shared columns and `balance` for
    single directions.
    """
    (N, X, D, out), work, variations = columns, links.world, links.variations
    from_, to = N.shape[1] // WIDTH, out.shape[1] // WIDTH
    by_X, by_D = X.shape[1] // WIDTH, D.shape[1] // WIDTH
    for i in range(link_count(model) - 1, -1, -1):
        p, first, count = parent(model, i), first_dof(model, i), dof_count(model, i)
        dF = variation_of(variations, i, DF)
        for j in range(first, first + count):
            force = dot6(get6(lane, work, of_dof(model, j, S)), dF)
            force = force + damping(model, j) * load(LANES, X, by_X * j + b)
            force = force + armature(model, j) * load(LANES, D, by_D * j + b)
            if count == 1:
                force = force + stiffness(model, j) * load(LANES, N, from_ * j + b)
            store(LANES, out, to * j + b, -force)
        if count > 1 and has_rotation_spring(model, i):
            moment, force = spring_variation(lane, model, i, q, get_block6(N, first, count, b))
            for k in range(3):
                at = to * (first + k) + b
                store(LANES, out, at, load(LANES, out, at) - moment[k])
                if count == 6:
                    store(LANES, out, at + 3 * to, load(LANES, out, at + 3 * to) - force[k])
        if p >= 0 and displaced:
            turn = sub6(variation_of(variations, i, ETA), variation_of(variations, p, ETA))
            dF = add6(dF, minus_ad_dual(turn, get6(lane, bodies, of_body(i, WRENCH))))
        vary_push(variations, p, hand_over(lane, model, links, shares, i, p, dF, b, balance))
