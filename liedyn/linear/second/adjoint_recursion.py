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
this reverse mode gives as many columns of the Hessian in one outward and one inward pass. Numbers of the state are
floats or lanes, according to the `lane` argument, those of its variations always lanes.
"""
from collections import namedtuple

from liedyn.lie.algebra import ad, add6, add_power, dot, dot6, inertia_times, minus_ad_dual, scale6, sub6
from liedyn.machine.compiled.jit import inline, kernel_in_place
from liedyn.machine.simd.lanes import LANES, WIDTH, load, store
from liedyn.mechanics.tree.joints import has_rotation_spring, screw_of_kind, spring_curvature, spring_variation
from liedyn.mechanics.tree.kinematics import S, acceleration_of, of_dof, twist_of
from liedyn.mechanics.tree.tangent_recursion import (
    ADDED, DA, DV, MOMENTUM, VARIATION, WRENCH, of_body, put_added, variation_of, vary_accelerations,
    vary_velocities,
)
from liedyn.model.packed_records import (
    accumulate6, damping, dof_count, first_dof, get3, get6, get_inertia, inertia, kind, link_count, parent, put6,
    stiffness, zero6,
)

# numbers of each link: W, then the wrenches; its variations have a register for each of them
LINK, W, OF_A, OF_V, OF_W, OF_Q = 30, 0, 6, 12, 18, 24
# registers of each link for a block of columns: its motion, then of_w of the link alone
MOTION = VARIATION + 6

# numbers of each degree of freedom: ad(x_p, S) for x = V, A, W of the parent, and S x* F for the wrenches that go on
JOINT, OF_V_P, OF_A_P, OF_W_P, BY_V, BY_A, BY_W, BY_Q = 42, 0, 6, 12, 18, 24, 30, 36

Columns = namedtuple("Columns", "N X A L")
"""Variations of q, v, a and the multipliers along the columns of a linear model, padded."""

Prepared = namedtuple("Prepared", "world bodies M E S MS inverse columns variations")
"""What all weights share: kinematics and bodies; the inertia matrix and the rows E of cut joints' coordinates; S, M S
and the inverse of S^T M S; the columns, and the variations of all links along them, block by block."""

Weighed = namedtuple("Weighed", "mu rows readers adjoints rates joints cuts")
"""What belongs to one weighted sum: mu, weights of the rows and of cut joints' coordinates (`RowWeights`), wrenches of
the links and their variations along a block of columns, vectors of each degree of freedom (`put_joints`) and of each
cut joint (`liedyn.linear.second.adjoint_cuts.keep_cuts`)."""


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
def put_links(lane, model, prepared, weighed):
    """W of all links and the wrenches of each alone."""
    (world, bodies), (mu, adjoints) = (prepared.world, prepared.bodies), (weighed.mu, weighed.adjoints)
    for i in range(link_count(model)):
        w, V, I = weighed_twist(lane, adjoints, parent(model, i)), twist_of(lane, world, i), get_inertia(
            lane, bodies, of_body(i, 0))
        for j in range(first_dof(model, i), first_dof(model, i) + dof_count(model, i)):
            Sj, x = get6(lane, world, of_dof(model, j, S)), load(lane, mu, j)
            w = add6(w, scale6(x, Sj))
        P = get6(lane, bodies, of_body(i, MOMENTUM))
        put6(lane, adjoints, LINK * i + W, w)
        put6(lane, adjoints, LINK * i + OF_A, inertia_times(I, w))
        put6(lane, adjoints, LINK * i + OF_V, sub6(inertia_times(I, ad(w, V)), minus_ad_dual(w, P)))
        put6(lane, adjoints, LINK * i + OF_W, get6(lane, bodies, of_body(i, WRENCH)))
        put6(lane, adjoints, LINK * i + OF_Q, zero6(lane))


@inline
def handed_on(lane, model, world, adjoints, i):
    """of_v' of link i, and the other wrenches of its joint: (of_v', of_a, of_w, of_q)."""
    V, Vp = twist_of(lane, world, i), twist_of(lane, world, parent(model, i))
    of_a = get6(lane, adjoints, LINK * i + OF_A)
    of_v = add6(get6(lane, adjoints, LINK * i + OF_V), minus_ad_dual(sub6(V, Vp), of_a))
    return of_v, of_a, get6(lane, adjoints, LINK * i + OF_W), get6(lane, adjoints, LINK * i + OF_Q)


@kernel_in_place
def sum_inward(lane, model, world, adjoints):
    """The wrenches of single links become those that their joints transmit."""
    for i in range(link_count(model) - 1, -1, -1):
        p = parent(model, i)
        if p >= 0:
            of_v, of_a, of_w, of_q = handed_on(lane, model, world, adjoints, i)
            accumulate6(lane, adjoints, LINK * p + OF_A, of_a)
            accumulate6(lane, adjoints, LINK * p + OF_V, of_v)
            accumulate6(lane, adjoints, LINK * p + OF_W, of_w)
            accumulate6(lane, adjoints, LINK * p + OF_Q, of_q)


@inline
def spring_gradient(lane, model, q, mu, i, of_q):
    """Adds to of_q what the spring of a ball or free joint contributes."""
    first, zero = first_dof(model, i), zero6(lane)[0]
    for c in range(dof_count(model, i)):
        unit = screw_of_kind(lane, kind(model, i), model, i, c)
        moment, force = spring_variation(lane, model, i, q, unit)
        weights = zero
        if dof_count(model, i) > 3:
            weights = get3(lane, mu, first + 3)
        x = dot(get3(lane, mu, first), moment) + dot(weights, force)
        store(lane, of_q, first + c, load(lane, of_q, first + c) + x)


@kernel_in_place
def put_gradient(lane, model, q, world, weighed, of_q, of_v):
    """The gradient by q and v (nv each); needs `sum_inward`."""
    mu, adjoints = weighed.mu, weighed.adjoints
    for i in range(link_count(model)):
        p = parent(model, i)
        Vp, Ap, Wp = twist_of(lane, world, p), acceleration_of(lane, model, world, p), weighed_twist(
            lane, adjoints, p)
        F_v, F_a, F_w, F_q = handed_on(lane, model, world, adjoints, i)
        F_q = sub6(sub6(sub6(F_q, minus_ad_dual(Vp, F_v)), minus_ad_dual(Ap, F_a)), minus_ad_dual(Wp, F_w))
        own = sub6(get6(lane, adjoints, LINK * i + OF_V), minus_ad_dual(Vp, F_a))
        for j in range(first_dof(model, i), first_dof(model, i) + dof_count(model, i)):
            Sj = get6(lane, world, of_dof(model, j, S))
            by_q, weight = dot6(F_q, Sj), load(lane, mu, j)
            if dof_count(model, i) == 1:
                by_q = by_q + stiffness(model, j) * weight
            store(lane, of_q, j, by_q)
            store(lane, of_v, j, dot6(own, Sj) + damping(model, j) * weight)
        if dof_count(model, i) > 1 and has_rotation_spring(model, i):
            spring_gradient(lane, model, q, mu, i, of_q)


# ---- its variations along a register of directions


@inline
def rate_of(rates, i, what):
    """The variation of a wrench of link i."""
    return get6(LANES, rates, LINK * i + what)


@inline
def add_along_joint(lane, model, joints, what, N, i, b, x):
    """x plus the sum of vector `what` of each degree of freedom of joint i times its row of block b of N."""
    for j in range(first_dof(model, i), first_dof(model, i) + dof_count(model, i)):
        c = load(LANES, N, N.shape[1] // WIDTH * j + b)
        x = add6(x, scale6(c, get6(lane, joints, JOINT * j + what)))
    return x


@inline
def has_inertia(model, i):
    """False for links without mass, between the primitives of a joint."""
    m, _, J = inertia(model, i)
    return m != 0.0 or J[0] != 0.0 or J[3] != 0.0 or J[5] != 0.0


@kernel_in_place
def vary_motions(lane, model, world, bodies, columns, b, variations):
    """Variations of the motion of all links along block b of the columns, and of of_w of each link alone."""
    vary_velocities(lane, model, world, columns.N, columns.X, b, variations)
    vary_accelerations(lane, model, world, True, columns.X, b, variations)
    for i in range(link_count(model)):
        I, P = get_inertia(lane, bodies, of_body(i, 0)), get6(lane, bodies, of_body(i, MOMENTUM))
        dA = add6(variation_of(variations, i, DA), put_added(lane, model, world, i, columns.A, b, variations))
        V, dV, dF = twist_of(lane, world, i), variation_of(variations, i, DV), zero6(LANES)
        if has_inertia(model, i):
            dF = add6(inertia_times(I, dA), add6(minus_ad_dual(dV, P), minus_ad_dual(V, inertia_times(I, dV))))
        put6(LANES, variations, VARIATION * link_count(model) + 6 * i, dF)


@kernel_in_place
def put_joints(lane, model, world, weighed):
    """The vectors of each degree of freedom that its variations take, from wrenches summed inward."""
    adjoints, joints = weighed.adjoints, weighed.joints
    for i in range(link_count(model)):
        p, (F_v, F_a, F_w, F_q) = parent(model, i), handed_on(lane, model, world, adjoints, i)
        Vp, Ap, Wp = twist_of(lane, world, p), acceleration_of(lane, model, world, p), weighed_twist(
            lane, adjoints, p)
        for j in range(first_dof(model, i), first_dof(model, i) + dof_count(model, i)):
            Sj, k = get6(lane, world, of_dof(model, j, S)), JOINT * j
            put6(lane, joints, k + OF_V_P, ad(Vp, Sj))
            put6(lane, joints, k + OF_A_P, ad(Ap, Sj))
            put6(lane, joints, k + OF_W_P, ad(Wp, Sj))
            put6(lane, joints, k + BY_V, minus_ad_dual(Sj, F_v))
            put6(lane, joints, k + BY_A, minus_ad_dual(Sj, F_a))
            put6(lane, joints, k + BY_W, minus_ad_dual(Sj, F_w))
            put6(lane, joints, k + BY_Q, minus_ad_dual(Sj, F_q))


@kernel_in_place
def vary_links(lane, model, prepared, weighed, b, variations):
    """Variations of W and of the wrenches of each link alone, from those of the motion; needs `put_joints`."""
    bodies, world, adjoints, rates, joints = (
        prepared.bodies, prepared.world, weighed.adjoints, weighed.rates, weighed.joints)
    for i in range(link_count(model)):
        dW = add_along_joint(lane, model, joints, OF_W_P, prepared.columns.N, i, b,
                             weighed_twist(LANES, rates, parent(model, i)))
        of_a, of_v = zero6(LANES), zero6(LANES)
        if has_inertia(model, i):
            I, P = get_inertia(lane, bodies, of_body(i, 0)), get6(lane, bodies, of_body(i, MOMENTUM))
            V, dV, w = twist_of(lane, world, i), variation_of(variations, i, DV), weighed_twist(lane, adjoints, i)
            of_a, dP = inertia_times(I, dW), inertia_times(I, dV)
            of_v = sub6(inertia_times(I, add6(ad(dW, V), ad(w, dV))), add6(minus_ad_dual(dW, P), minus_ad_dual(w, dP)))
        put6(LANES, rates, LINK * i + W, dW)
        put6(LANES, rates, LINK * i + OF_A, of_a)
        put6(LANES, rates, LINK * i + OF_V, of_v)
        put6(LANES, rates, LINK * i + OF_W, get6(LANES, variations, VARIATION * link_count(model) + 6 * i))
        put6(LANES, rates, LINK * i + OF_Q, zero6(LANES))


@inline
def spring_rates(lane, model, q, mu, N, i, b, of_q):
    """Adds to block b of of_q what the spring of a ball or free joint contributes."""
    first, count, width = first_dof(model, i), dof_count(model, i), of_q.shape[1] // WIDTH
    for c in range(count):
        total = load(LANES, of_q, width * (first + c) + b)
        for d in range(count):
            moment, force = spring_curvature(
                lane, model, i, q, screw_of_kind(lane, kind(model, i), model, i, c),
                screw_of_kind(lane, kind(model, i), model, i, d))
            x = dot(get3(lane, mu, first), moment)
            if count > 3:
                x = x + dot(get3(lane, mu, first + 3), force)
            total = total + x * load(LANES, N, N.shape[1] // WIDTH * (first + d) + b)
        store(LANES, of_q, width * (first + c) + b, total)


@inline
def vary_parent(lane, model, prepared, weighed, i, b, variations):
    """Variations of the parent's twist, acceleration and mu-twist, as seen from link i."""
    p, N, joints = parent(model, i), prepared.columns.N, weighed.joints
    dA = add6(variation_of(variations, p, DA), variation_of(variations, p, ADDED))
    return (add_along_joint(lane, model, joints, OF_V_P, N, i, b, variation_of(variations, p, DV)),
            add_along_joint(lane, model, joints, OF_A_P, N, i, b, dA),
            add_along_joint(lane, model, joints, OF_W_P, N, i, b, weighed_twist(LANES, weighed.rates, p)))


@kernel_in_place
def vary_gradient(lane, model, q, prepared, weighed, b, variations, of_motion):
    """Block b of the variations of the gradient by q, v and a: three padded matrices with nv rows, the second with all
    columns."""
    (of_q, of_v, of_a), mu, rates, joints, world = (
        of_motion, weighed.mu, weighed.rates, weighed.joints, prepared.world)
    N, X, width, every = prepared.columns.N, prepared.columns.X, of_q.shape[1] // WIDTH, of_v.shape[1] // WIDTH
    for i in range(link_count(model) - 1, -1, -1):
        p, (dV, dA, dW) = parent(model, i), vary_parent(lane, model, prepared, weighed, i, b, variations)
        F_a, F_v, F_w, F_q = (
            rate_of(rates, i, OF_A), rate_of(rates, i, OF_V), rate_of(rates, i, OF_W), rate_of(rates, i, OF_Q))
        own = sub6(twist_of(lane, world, i), twist_of(lane, world, p))
        on = add_along_joint(lane, model, joints, BY_A, X, i, b, add6(F_v, minus_ad_dual(own, F_a)))
        for j in range(first_dof(model, i), first_dof(model, i) + dof_count(model, i)):
            Sj, k = get6(lane, world, of_dof(model, j, S)), JOINT * j
            turned, by_a = get6(lane, joints, k + OF_V_P), get6(lane, joints, k + BY_A)
            x = add_power(dot6(Sj, F_q), turned, on)
            x = add_power(add_power(x, get6(lane, joints, k + OF_A_P), F_a), by_a, dA)
            x = add_power(add_power(x, get6(lane, joints, k + OF_W_P), F_w), get6(lane, joints, k + BY_W), dW)
            store(LANES, of_q, width * j + b, add_power(x, get6(lane, joints, k + BY_V), dV))
            store(LANES, of_v, every * j + b, add_power(add_power(dot6(Sj, F_v), turned, F_a), by_a, dV))
            store(LANES, of_a, width * j + b, dot6(Sj, F_a))
        if dof_count(model, i) > 1 and has_rotation_spring(model, i):
            spring_rates(lane, model, q, mu, N, i, b, of_q)
        if p >= 0:
            accumulate6(LANES, rates, LINK * p + OF_A, add_along_joint(lane, model, joints, BY_A, N, i, b, F_a))
            accumulate6(LANES, rates, LINK * p + OF_V, add_along_joint(lane, model, joints, BY_V, N, i, b, on))
            accumulate6(LANES, rates, LINK * p + OF_W, add_along_joint(lane, model, joints, BY_W, N, i, b, F_w))
            accumulate6(LANES, rates, LINK * p + OF_Q, add_along_joint(lane, model, joints, BY_Q, N, i, b, F_q))


# ---- the same along columns that change velocities and no coordinates: only the gradient by v depends on these


@kernel_in_place
def push_links(lane, model, prepared, weighed, variations):
    """Variations of of_v of each link alone."""
    bodies, adjoints, rates = prepared.bodies, weighed.adjoints, weighed.rates
    for i in range(link_count(model)):
        of_v = zero6(LANES)
        if has_inertia(model, i):
            I, dV, w = get_inertia(lane, bodies, of_body(i, 0)), variation_of(variations, i, DV), weighed_twist(
                lane, adjoints, i)
            of_v = sub6(inertia_times(I, ad(w, dV)), minus_ad_dual(w, inertia_times(I, dV)))
        put6(LANES, rates, LINK * i + OF_V, of_v)


@kernel_in_place
def push_gradient(lane, model, prepared, weighed, b, variations, of_v):
    """Block b of the variations of the gradient by v."""
    rates, joints, X, width = weighed.rates, weighed.joints, prepared.columns.X, of_v.shape[1] // WIDTH
    for i in range(link_count(model) - 1, -1, -1):
        p, F_v = parent(model, i), rate_of(rates, i, OF_V)
        dV = variation_of(variations, p, DV)
        for j in range(first_dof(model, i), first_dof(model, i) + dof_count(model, i)):
            Sj, by_a = get6(lane, prepared.world, of_dof(model, j, S)), get6(lane, joints, JOINT * j + BY_A)
            store(LANES, of_v, width * j + b, add_power(dot6(Sj, F_v), by_a, dV))
        if p >= 0:
            accumulate6(LANES, rates, LINK * p + OF_V, add_along_joint(lane, model, joints, BY_A, X, i, b, F_v))
