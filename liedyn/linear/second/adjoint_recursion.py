"""The gradient of one number that links, their motion and weights determine, and how it varies along directions.

With weights mu in the place of velocities let W_i be the twists of the links. The number is

    sum of mu_j tau_j = sum over links of W_i . (I_i A_i + V_i x* I_i V_i - f_i)

plus terms of the constraints, each of which depends on the motion of two links (`liedyn.linear.second.adjoint_cuts`).
Its derivatives by the twist V, the acceleration A, the twist W and the displacement of a link are wrenches: a link
alone has, as seen from itself,

    of_a = I W      of_v = I ad(W, V) - W x* I V      of_w = I A + V x* I V - f      of_q = 0

They are summed inward. With s = V - V_p, and of_v' = of_v + s x* of_a the part that goes on to the parent, the gradient
by the coordinates of joint j is

    by a: S_j . of_a        by v: S_j . (of_v - V_p x* of_a)
    by q: S_j . (of_q - V_p x* of_v' - A_p x* of_a - W_p x* of_w)

for displacements q exp(d). Forward mode along a register of directions (`liedyn.mechanics.tree.tangent_recursion`) on
this reverse mode gives as many columns of the Hessian in one outward and one inward pass.
"""
from collections import namedtuple

from liedyn.lie.algebra import ad, add6, dot, dot6, inertia_times, minus_ad_dual, sub6
from liedyn.linear.second.pairs import wrench_back
from liedyn.machine.compiled.jit import inline, kernel_in_place
from liedyn.machine.simd.lanes import LANES, SCALAR, WIDTH, load, store
from liedyn.mechanics.tree.joints import has_rotation_spring, screw_of_kind, spring_curvature, spring_variation
from liedyn.mechanics.tree.kinematics import S, acceleration_of, of_dof, twist_of
from liedyn.mechanics.tree.tangent_recursion import (
    ADDED, DA, DV, ETA, MOMENTUM, VARIATION, WRENCH, of_body, put_added, variation_of, vary_accelerations,
    vary_velocities,
)
from liedyn.model.packed_records import (
    accumulate6, damping, dof_count, first_dof, get3, get6, get_inertia, kind, link_count, parent, put6,
    stiffness, zero6,
)

# numbers of each link: W, then the wrenches; its variations have a register for each of them
LINK, W, OF_A, OF_V, OF_W, OF_Q = 30, 0, 6, 12, 18, 24
# registers of each link for a block of columns: its motion, then of_w of the link alone
MOTION = VARIATION + 6

Columns = namedtuple("Columns", "N X A L")
"""Variations of q, v, a and the multipliers along the columns of a linear model, padded."""

Prepared = namedtuple("Prepared", "world bodies M E S MS inverse columns variations")
"""What all weights share: kinematics and bodies; the inertia matrix and the rows E of cut joints' coordinates; S, M S
and the inverse of S^T M S; the columns, and the variations of all links along them, block by block."""

Weighed = namedtuple("Weighed", "mu rows readers adjoints rates")
"""What belongs to one weighted sum: mu, weights of the rows and of cut joints' coordinates (`RowWeights`), wrenches of
the links and their variations along a block of columns."""


@inline
def weighed_twist(lane, links, i):
    """W of link i, or its variation; zero for the ground."""
    if i < 0:
        return zero6(lane)
    return get6(lane, links, LINK * i + W)


@inline
def push(lane, links, i, what, F):
    """Add F to a wrench of link i, or to its variation, unless it is the ground."""
    if i >= 0:
        accumulate6(lane, links, LINK * i + what, F)


# ---- the gradient


@kernel_in_place
def put_links(model, prepared, weighed):
    """W of all links and the wrenches of each alone."""
    (world, bodies), (mu, adjoints) = (prepared.world, prepared.bodies), (weighed.mu, weighed.adjoints)
    for i in range(link_count(model)):
        w, V, I = weighed_twist(SCALAR, adjoints, parent(model, i)), twist_of(SCALAR, world, i), get_inertia(
            SCALAR, bodies, of_body(i, 0))
        for j in range(first_dof(model, i), first_dof(model, i) + dof_count(model, i)):
            Sj, x = get6(SCALAR, world, of_dof(model, j, S)), load(SCALAR, mu, j)
            w = add6(w, ((x * Sj[0][0], x * Sj[0][1], x * Sj[0][2]), (x * Sj[1][0], x * Sj[1][1], x * Sj[1][2])))
        P = get6(SCALAR, bodies, of_body(i, MOMENTUM))
        put6(SCALAR, adjoints, LINK * i + W, w)
        put6(SCALAR, adjoints, LINK * i + OF_A, inertia_times(I, w))
        put6(SCALAR, adjoints, LINK * i + OF_V, sub6(inertia_times(I, ad(w, V)), minus_ad_dual(w, P)))
        put6(SCALAR, adjoints, LINK * i + OF_W, get6(SCALAR, bodies, of_body(i, WRENCH)))
        put6(SCALAR, adjoints, LINK * i + OF_Q, zero6(SCALAR))


@inline
def handed_on(adjoints, world, model, i):
    """of_v' of link i, and the other wrenches of its joint: (of_v', of_a, of_w, of_q)."""
    V, Vp = twist_of(SCALAR, world, i), twist_of(SCALAR, world, parent(model, i))
    of_a = get6(SCALAR, adjoints, LINK * i + OF_A)
    of_v = add6(get6(SCALAR, adjoints, LINK * i + OF_V), minus_ad_dual(sub6(V, Vp), of_a))
    return of_v, of_a, get6(SCALAR, adjoints, LINK * i + OF_W), get6(SCALAR, adjoints, LINK * i + OF_Q)


@kernel_in_place
def sum_inward(model, world, adjoints):
    """The wrenches of single links become those that their joints transmit."""
    for i in range(link_count(model) - 1, -1, -1):
        p = parent(model, i)
        if p >= 0:
            of_v, of_a, of_w, of_q = handed_on(adjoints, world, model, i)
            accumulate6(SCALAR, adjoints, LINK * p + OF_A, of_a)
            accumulate6(SCALAR, adjoints, LINK * p + OF_V, of_v)
            accumulate6(SCALAR, adjoints, LINK * p + OF_W, of_w)
            accumulate6(SCALAR, adjoints, LINK * p + OF_Q, of_q)


@inline
def spring_gradient(model, q, mu, i, of_q):
    """Adds to of_q what the spring of a ball or free joint contributes."""
    first, zero = first_dof(model, i), zero6(SCALAR)[0]
    for c in range(dof_count(model, i)):
        unit = screw_of_kind(SCALAR, kind(model, i), model, i, c)
        moment, force = spring_variation(SCALAR, model, i, q, unit)
        weights = zero
        if dof_count(model, i) > 3:
            weights = get3(SCALAR, mu, first + 3)
        of_q[first + c] += dot(get3(SCALAR, mu, first), moment) + dot(weights, force)


@kernel_in_place
def put_gradient(model, q, world, weighed, of_q, of_v):
    """The gradient by q and v (nv each); needs `sum_inward`."""
    mu, adjoints = weighed.mu, weighed.adjoints
    for i in range(link_count(model)):
        p = parent(model, i)
        Vp, Ap, Wp = twist_of(SCALAR, world, p), acceleration_of(SCALAR, model, world, p), weighed_twist(
            SCALAR, adjoints, p)
        F_v, F_a, F_w, F_q = handed_on(adjoints, world, model, i)
        F_q = sub6(sub6(sub6(F_q, minus_ad_dual(Vp, F_v)), minus_ad_dual(Ap, F_a)), minus_ad_dual(Wp, F_w))
        own = sub6(get6(SCALAR, adjoints, LINK * i + OF_V), minus_ad_dual(Vp, F_a))
        for j in range(first_dof(model, i), first_dof(model, i) + dof_count(model, i)):
            Sj = get6(SCALAR, world, of_dof(model, j, S))
            of_q[j], of_v[j] = dot6(F_q, Sj), dot6(own, Sj) + damping(model, j) * mu[j]
            if dof_count(model, i) == 1:
                of_q[j] += stiffness(model, j) * mu[j]
        if dof_count(model, i) > 1 and has_rotation_spring(model, i):
            spring_gradient(model, q, mu, i, of_q)


# ---- its variations along a register of directions


@kernel_in_place
def vary_motions(model, world, bodies, columns, b, variations):
    """Variations of the motion of all links along block b of the columns, and of of_w of each link alone."""
    vary_velocities(SCALAR, model, world, columns.N, columns.X, b, variations)
    vary_accelerations(SCALAR, model, world, True, columns.X, b, variations)
    for i in range(link_count(model)):
        I, P = get_inertia(SCALAR, bodies, of_body(i, 0)), get6(SCALAR, bodies, of_body(i, MOMENTUM))
        dA = add6(variation_of(variations, i, DA), put_added(SCALAR, model, world, i, columns.A, b, variations))
        V, dV = twist_of(SCALAR, world, i), variation_of(variations, i, DV)
        dF = add6(inertia_times(I, dA), add6(minus_ad_dual(dV, P), minus_ad_dual(V, inertia_times(I, dV))))
        put6(LANES, variations, VARIATION * link_count(model) + 6 * i, dF)


@kernel_in_place
def vary_links(model, prepared, variations, adjoints, rates):
    """Variations of W and of the wrenches of each link alone, from those of the motion."""
    world, bodies = prepared.world, prepared.bodies
    for i in range(link_count(model)):
        p, I, P = parent(model, i), get_inertia(SCALAR, bodies, of_body(i, 0)), get6(
            SCALAR, bodies, of_body(i, MOMENTUM))
        V, dV, w = twist_of(SCALAR, world, i), variation_of(variations, i, DV), weighed_twist(SCALAR, adjoints, i)
        turn = sub6(variation_of(variations, i, ETA), variation_of(variations, p, ETA))
        dW = add6(weighed_twist(LANES, rates, p), ad(weighed_twist(SCALAR, adjoints, p), turn))
        dP = inertia_times(I, dV)
        of_v = sub6(inertia_times(I, add6(ad(dW, V), ad(w, dV))), add6(minus_ad_dual(dW, P), minus_ad_dual(w, dP)))
        put6(LANES, rates, LINK * i + W, dW)
        put6(LANES, rates, LINK * i + OF_A, inertia_times(I, dW))
        put6(LANES, rates, LINK * i + OF_V, of_v)
        put6(LANES, rates, LINK * i + OF_W, get6(LANES, variations, VARIATION * link_count(model) + 6 * i))
        put6(LANES, rates, LINK * i + OF_Q, zero6(LANES))


@inline
def spring_rates(model, q, mu, N, i, b, of_q):
    """Adds to block b of of_q what the spring of a ball or free joint contributes."""
    first, count, width = first_dof(model, i), dof_count(model, i), of_q.shape[1] // WIDTH
    for c in range(count):
        total = load(LANES, of_q, width * (first + c) + b)
        for d in range(count):
            moment, force = spring_curvature(
                SCALAR, model, i, q, screw_of_kind(SCALAR, kind(model, i), model, i, c),
                screw_of_kind(SCALAR, kind(model, i), model, i, d))
            x = dot(get3(SCALAR, mu, first), moment)
            if count > 3:
                x = x + dot(get3(SCALAR, mu, first + 3), force)
            total = total + x * load(LANES, N, N.shape[1] // WIDTH * (first + d) + b)
        store(LANES, of_q, width * (first + c) + b, total)


@inline
def seen_from_joint(model, world, variations, links, i):
    """Displacement of joint i, and the parent's (V, A, W) with their variations as seen from link i."""
    p, (adjoints, rates) = parent(model, i), links
    turn = sub6(variation_of(variations, i, ETA), variation_of(variations, p, ETA))
    V, A, w = twist_of(SCALAR, world, p), acceleration_of(SCALAR, model, world, p), weighed_twist(SCALAR, adjoints, p)
    dA = add6(variation_of(variations, p, DA), variation_of(variations, p, ADDED))
    return (turn, (V, add6(variation_of(variations, p, DV), ad(V, turn))), (A, add6(dA, ad(A, turn))),
            (w, add6(weighed_twist(LANES, rates, p), ad(w, turn))))


@inline
def both(links, i, what):
    """A wrench of link i and its variation."""
    return get6(SCALAR, links[0], LINK * i + what), get6(LANES, links[1], LINK * i + what)


@inline
def varied_dual(x, F):
    """The variation of -ad*_x F."""
    return add6(minus_ad_dual(x[1], F[0]), minus_ad_dual(x[0], F[1]))


@kernel_in_place
def vary_gradient(model, q, prepared, weighed, b, variations, of_motion):
    """Block b of the variations of the gradient by q, v and a: three padded matrices with nv rows."""
    (of_q, of_v, of_a), (mu, _, _, adjoints, rates) = of_motion, weighed
    world, N = prepared.world, prepared.columns.N
    links, width = (adjoints, rates), of_q.shape[1] // WIDTH
    for i in range(link_count(model) - 1, -1, -1):
        p, (turn, Vp, Ap, Wp) = parent(model, i), seen_from_joint(model, world, variations, links, i)
        F_a, F_v, F_w, F_q = both(links, i, OF_A), both(links, i, OF_V), both(links, i, OF_W), both(links, i, OF_Q)
        s = (sub6(twist_of(SCALAR, world, i), Vp[0]), sub6(variation_of(variations, i, DV), Vp[1]))
        on = (add6(F_v[0], minus_ad_dual(s[0], F_a[0])), add6(F_v[1], varied_dual(s, F_a)))
        by_q = sub6(sub6(sub6(F_q[1], varied_dual(Vp, on)), varied_dual(Ap, F_a)), varied_dual(Wp, F_w))
        by_v = sub6(F_v[1], varied_dual(Vp, F_a))
        for j in range(first_dof(model, i), first_dof(model, i) + dof_count(model, i)):
            Sj = get6(SCALAR, world, of_dof(model, j, S))
            store(LANES, of_q, width * j + b, dot6(Sj, by_q))
            store(LANES, of_v, width * j + b, dot6(Sj, by_v))
            store(LANES, of_a, width * j + b, dot6(Sj, F_a[1]))
        if dof_count(model, i) > 1 and has_rotation_spring(model, i):
            spring_rates(model, q, mu, N, i, b, of_q)
        if p >= 0:
            accumulate6(LANES, rates, LINK * p + OF_A, wrench_back(F_a, turn)[1])
            accumulate6(LANES, rates, LINK * p + OF_V, wrench_back(on, turn)[1])
            accumulate6(LANES, rates, LINK * p + OF_W, wrench_back(F_w, turn)[1])
            accumulate6(LANES, rates, LINK * p + OF_Q, wrench_back(F_q, turn)[1])
