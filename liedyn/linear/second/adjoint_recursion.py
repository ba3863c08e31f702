"""The gradient of one number that links, their motion and weights determine, and how it varies along directions.

With weights mu in the place of velocities let W_i be the twists of the links. The number is

    sum of mu_j tau_j + terms of the constraints

where each of the latter depends on the motion of two links (`liedyn.linear.second.adjoint_cuts`). By the twist V, the
acceleration A, the twist W and the displacement of a link it has derivatives that are wrenches, as seen from the link:
of_v, of_a, of_w, of_q. They are summed inward. With s = V - V_p, and of_v' = of_v + s x* of_a the part that goes on to
the parent, what the constraints add to the gradient by the coordinates of joint j is

    by a: S_j . of_a        by v: S_j . (of_v - V_p x* of_a)
    by q: S_j . (of_q - V_p x* of_v' - A_p x* of_a - W_p x* of_w)

for displacements q exp(d); mu . tau adds mu times the derivatives of tau.

Its Hessian has three parts. That of mu . tau has a closed form (`liedyn.mechanics.tree.rnea_hessian`). The wrenches add
to it their products with the second-order motion of the links. Let j be on the way from i to the ground. With Psi_dot,
Psi_ddot and S_rate = Psi_dot + S_dot of j (`liedyn.mechanics.tree.kinematics`),

    psi = ad(W_p, S_j)      k_x = S_i x* of_x (of_v' for v)      m = k_v + V_p x* k_a, with the parent of i

they are

    qq(i, j) = qq(j, i) = m . Psi_dot + k_a . Psi_ddot + k_w . psi + k_q . S_j / 2       vv(i, j) = vv(j, i) = k_a . S_j
    qv(i, j) = m . S_j + k_a . S_rate       qv(j, i) = k_a . Psi_dot                     qa(i, j) = k_a . S_j

and within one joint qq(i, j), vv(i, j) and qv(j, i), of which qq and vv are made symmetric.

The terms of the constraints alone are varied along directions, a register of them at once
(`liedyn.mechanics.tree.tangent_recursion`). Numbers of the state are floats or lanes, according to the `lane` argument,
those of its variations always lanes.
"""
from collections import namedtuple

from liedyn.lie.algebra import ad, add, add6, add_power, dot6, minus_ad_dual, scale6, sub6
from liedyn.machine.compiled.jit import inline, kernel_in_place
from liedyn.machine.linalg.gauss_jordan import element, put_element
from liedyn.machine.simd.lanes import LANES, WIDTH, load, splat, store
from liedyn.mechanics.tree.crba import CARRIED
from liedyn.mechanics.tree.kinematics import PSI_DDOT, PSI_DOT, S, S_DOT, acceleration_of, of_dof, twist_of
from liedyn.mechanics.tree.rnea_derivatives import BY_Q as BY_Q_ROW
from liedyn.mechanics.tree.rnea_derivatives import BY_V as BY_V_ROW
from liedyn.mechanics.tree.rnea_derivatives import derivatives_table
from liedyn.mechanics.tree.rnea_hessian import G, M_ROW, N_ROW, finish_joint, weighed_sums, weighed_vectors
from liedyn.mechanics.tree.rows import of_one3, of_one6
from liedyn.mechanics.tree.tangent_recursion import (
    DV, VARIATION, along_joint, put_added, varied, variation_of, vary_accelerations, vary_velocities,
)
from liedyn.model.packed_records import (
    accumulate6, dof_count, dof_link, dof_total, first_dof, get6, last_of_joint, link_count, parent, parent_dof, put6,
    subtree_end, zero6,
)

# numbers of each link: W, then the wrenches; its variations have a register for each of them
LINK, W, OF_A, OF_V, OF_W, OF_Q = 30, 0, 6, 12, 18, 24
# registers of each link for a block of columns: its motion
MOTION = VARIATION

# numbers of each degree of freedom: ad(x_p, S) for x = A, W of the parent, then m, k_a, k_w and k_q
JOINT, OF_A_P, OF_W_P, BY_V, BY_A, BY_W, BY_Q = 36, 0, 6, 12, 18, 24, 30

Columns = namedtuple("Columns", "N X A L")
"""Variations of q, v, a and the multipliers along the columns of a linear model, padded."""

Prepared = namedtuple("Prepared", "world bodies M D_q D_v E S MS inverse columns variations sides")
"""What all weights share: kinematics, with what `liedyn.mechanics.tree.rnea_hessian` keeps behind it; wrenches of links
that only `put_cuts` fills; the inertia matrix, dtau/dq and dtau/dv; the rows E of cut joints' coordinates; S, M S and
the inverse of S^T M S; the columns, and the variations along them, block by block, of all links and of the sides of all
cut joints."""

Weighed = namedtuple("Weighed", "mu rows readers adjoints rates joints cuts")
"""What belongs to one weighted sum: mu, weights of the rows and of cut joints' coordinates (`RowWeights`), wrenches of
the links and their variations along a block of columns, vectors of each degree of freedom (`put_joints`) and of each
cut joint (`liedyn.linear.second.adjoint_cuts`)."""

TreeHessian = namedtuple("TreeHessian", "qq vv qv qa")
"""Second derivatives of one number by coordinates, velocities and accelerations of all joints, nv x nv each; only
entries of which one degree of freedom carries the other are defined."""


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
def put_links(lane, model, world, weighed):
    """W of all links, and no wrenches yet."""
    mu, adjoints = weighed.mu, weighed.adjoints
    for k in range(LINK * link_count(model)):  # all at once, which is one call of memset
        store(lane, adjoints, k, splat(lane, 0.0))
    for i in range(link_count(model)):
        w = weighed_twist(lane, adjoints, parent(model, i))
        for j in range(first_dof(model, i), first_dof(model, i) + dof_count(model, i)):
            w = add6(w, scale6(load(lane, mu, j), get6(lane, world, of_dof(model, j, S))))
        put6(lane, adjoints, LINK * i + W, w)


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
def times_related(lane, model, x, A, j):
    """x . A[:, j], for a matrix whose entries are zero unless one degree of freedom carries the other."""
    total, k, last = splat(lane, 0.0), last_of_joint(model, j), last_of_joint(model, j)
    while k >= 0:
        total = total + load(lane, x, k) * element(lane, A, k, j)
        k = parent_dof(model, k)
    for i in range(last + 1, subtree_end(model, j)):
        total = total + load(lane, x, i) * element(lane, A, i, j)
    return total


@kernel_in_place
def put_gradient_by_q(lane, model, prepared, weighed, of_q):
    """The gradient by q (nv); needs `sum_inward`."""
    mu, adjoints, world = weighed.mu, weighed.adjoints, prepared.world
    for i in range(link_count(model)):
        p = parent(model, i)
        Vp, Ap, Wp = twist_of(lane, world, p), acceleration_of(lane, model, world, p), weighed_twist(
            lane, adjoints, p)
        F_v, F_a, F_w, F_q = handed_on(lane, model, world, adjoints, i)
        F_q = sub6(sub6(sub6(F_q, minus_ad_dual(Vp, F_v)), minus_ad_dual(Ap, F_a)), minus_ad_dual(Wp, F_w))
        for j in range(first_dof(model, i), first_dof(model, i) + dof_count(model, i)):
            x = times_related(lane, model, mu, prepared.D_q, j)
            store(lane, of_q, j, add_power(x, F_q, get6(lane, world, of_dof(model, j, S))))


@kernel_in_place
def put_gradient_by_v(lane, model, prepared, weighed, of_v):
    """The gradient by v (nv); needs of_a and of_v as `sum_inward` leaves them."""
    mu, adjoints, world = weighed.mu, weighed.adjoints, prepared.world
    for i in range(link_count(model)):
        F_v, F_a = get6(lane, adjoints, LINK * i + OF_V), get6(lane, adjoints, LINK * i + OF_A)
        own = sub6(F_v, minus_ad_dual(twist_of(lane, world, parent(model, i)), F_a))
        for j in range(first_dof(model, i), first_dof(model, i) + dof_count(model, i)):
            x = times_related(lane, model, mu, prepared.D_v, j)
            store(lane, of_v, j, add_power(x, own, get6(lane, world, of_dof(model, j, S))))


# ---- its Hessian, but for the terms of the constraints


@kernel_in_place
def put_joints(lane, model, world, weighed):
    """The vectors of each degree of freedom that second derivatives take, from wrenches summed inward."""
    adjoints, joints = weighed.adjoints, weighed.joints
    for i in range(link_count(model)):
        p, (F_v, F_a, F_w, F_q) = parent(model, i), handed_on(lane, model, world, adjoints, i)
        Vp, Ap, Wp = twist_of(lane, world, p), acceleration_of(lane, model, world, p), weighed_twist(
            lane, adjoints, p)
        for j in range(first_dof(model, i), first_dof(model, i) + dof_count(model, i)):
            Sj, k = get6(lane, world, of_dof(model, j, S)), JOINT * j
            by_a = minus_ad_dual(Sj, F_a)
            put6(lane, joints, k + OF_A_P, ad(Ap, Sj))
            put6(lane, joints, k + OF_W_P, ad(Wp, Sj))
            put6(lane, joints, k + BY_V, add6(minus_ad_dual(Sj, F_v), minus_ad_dual(Vp, by_a)))
            put6(lane, joints, k + BY_A, by_a)
            put6(lane, joints, k + BY_W, minus_ad_dual(Sj, F_w))
            put6(lane, joints, k + BY_Q, scale6(0.5, minus_ad_dual(Sj, F_q)))


@inline
def pair_vectors_of(lane, model, moves, world, joints, i):
    """The wrenches of degree of freedom i in all products with vectors of those that carry it: g, m, n and by_q of mu .
    tau with what the constraints add to them, and by_v and I S."""
    m, by_a = get6(lane, joints, JOINT * i + BY_V), get6(lane, joints, JOINT * i + BY_A)
    by_w, zero = get6(lane, joints, JOINT * i + BY_W), zero6(lane)
    g, n, by_q, by_v, carried = by_a, by_a, by_w, zero, zero
    if moves:
        table = derivatives_table(lane, model, world)
        g = add6(by_a, of_one6(lane, model, world, table, G, i))
        m = add(m[0], of_one3(lane, model, world, table, M_ROW, i)), m[1]
        n = add(by_a[0], of_one3(lane, model, world, table, N_ROW, i)), by_a[1]
        by_q = add6(by_w, of_one6(lane, model, world, table, BY_Q_ROW, i))
        by_v = of_one6(lane, model, world, table, BY_V_ROW, i)
        carried = of_one6(lane, model, world, table, CARRIED, i)
    return g, m, n, by_q, by_v, carried


@inline
def put_pairs(lane, model, moves, world, joints, i, H):
    """The entries of i with all degrees of freedom that carry it and those of its joint."""
    g, m, n, by_q, by_v, carried = pair_vectors_of(lane, model, moves, world, joints, i)
    along, j = get6(lane, joints, JOINT * i + BY_Q), last_of_joint(model, i)
    while j >= 0:
        Sj, psi_dot = get6(lane, world, of_dof(model, j, S)), get6(lane, world, of_dof(model, j, PSI_DOT))
        psi_ddot, psi = get6(lane, world, of_dof(model, j, PSI_DDOT)), get6(lane, joints, JOINT * j + OF_W_P)
        qq = add_power(dot6(along, Sj), m, psi_dot) + add_power(dot6(g, psi_ddot), by_q, psi)
        vv = dot6(n, Sj)
        put_element(lane, H.qq, j, i, qq)
        put_element(lane, H.vv, j, i, vv)
        put_element(lane, H.qv, j, i, dot6(n, psi_dot) + dot6(by_v, psi))
        put_element(lane, H.qa, j, i, dot6(carried, psi))
        if dof_link(model, i) != dof_link(model, j):
            S_rate = add6(psi_dot, get6(lane, world, of_dof(model, j, S_DOT)))
            put_element(lane, H.qq, i, j, qq)
            put_element(lane, H.vv, i, j, vv)
            put_element(lane, H.qv, i, j, dot6(m, Sj) + dot6(g, S_rate))
            put_element(lane, H.qa, i, j, dot6(g, Sj))
        j = parent_dof(model, j)


@kernel_in_place
def put_tree_hessian(lane, model, q, moves, prepared, weighed, H):
    """Second derivatives but for those of the constraints' terms along the motion of links; mu = 0 unless it `moves`.

    Needs `put_joints`.
    """
    world, mu = prepared.world, weighed.mu
    if moves:
        weighed_sums(lane, model, mu, world)
        weighed_vectors(lane, model, world)
    for i in range(dof_total(model)):
        put_pairs(lane, model, moves, world, weighed.joints, i, H)
    for i in range(link_count(model)):
        if dof_count(model, i) > 1:
            finish_joint(lane, model, q, mu, i, H.qq, H.vv)


@inline
def block(A, j, b):
    """Block b of row j of a padded matrix."""
    return load(LANES, A, A.shape[1] // WIDTH * j + b)


@inline
def add_columns(lane, H, columns, i, j, of_motion):
    """Adds to the variations of the gradient by q_i, v_i and a_i what those of q_j, v_j and a_j make."""
    (of_q, of_v, of_a), (N, X, A, _) = of_motion, columns
    qq, qv, qa = element(lane, H.qq, i, j), element(lane, H.qv, i, j), element(lane, H.qa, i, j)
    vq, vv, aq = element(lane, H.qv, j, i), element(lane, H.vv, i, j), element(lane, H.qa, j, i)
    width, every = of_q.shape[1] // WIDTH, of_v.shape[1] // WIDTH
    for b in range(width):
        d, v, a = block(N, j, b), block(X, j, b), block(A, j, b)
        store(LANES, of_q, width * i + b, block(of_q, i, b) + qq * d + qv * v + qa * a)
        store(LANES, of_v, every * i + b, block(of_v, i, b) + vq * d + vv * v)
        store(LANES, of_a, width * i + b, block(of_a, i, b) + aq * d)
    for b in range(width, every):
        store(LANES, of_v, every * i + b, block(of_v, i, b) + vv * block(X, j, b))


@kernel_in_place
def put_tree_columns(lane, model, H, columns, of_motion):
    """The variations of the gradient by q, v and a, that this Hessian makes: three padded matrices with nv rows, the
    second with all columns."""
    (of_q, of_v, of_a), zero = of_motion, splat(LANES, 0.0)
    width, every = of_q.shape[1] // WIDTH, of_v.shape[1] // WIDTH
    for i in range(dof_total(model)):
        for b in range(width):
            store(LANES, of_q, width * i + b, zero)
            store(LANES, of_a, width * i + b, zero)
        for b in range(every):
            store(LANES, of_v, every * i + b, zero)
        last = last_of_joint(model, i)
        j = last
        while j >= 0:
            add_columns(lane, H, columns, i, j, of_motion)
            j = parent_dof(model, j)
        for k in range(last + 1, subtree_end(model, i)):
            add_columns(lane, H, columns, i, k, of_motion)


# ---- variations of the constraints' terms along a register of directions


@inline
def rate_of(rates, i, what):
    """The variation of a wrench of link i."""
    return get6(LANES, rates, LINK * i + what)


@kernel_in_place
def vary_motions(lane, model, world, columns, b, variations):
    """Variations of the motion of all links along block b of the columns."""
    vary_velocities(lane, model, world, columns.N, columns.X, b, variations)
    vary_accelerations(lane, model, world, True, columns.X, b, variations)
    for i in range(link_count(model)):
        put_added(lane, model, world, i, columns.A, b, variations)


@kernel_in_place
def push_motions(lane, model, world, columns, b, variations):
    """The variations of twists alone, along columns that displace nothing."""
    for i in range(link_count(model)):
        push_i = along_joint(lane, model, world, i, columns.X, b)
        put6(LANES, variations, varied(i, DV), add6(variation_of(variations, parent(model, i), DV), push_i))


@kernel_in_place
def vary_links(lane, model, columns, weighed, b):
    """Variations of W of all links, and none of their wrenches yet; needs `put_joints`."""
    rates, joints, N = weighed.rates, weighed.joints, columns.N
    for k in range(LINK * link_count(model)):
        store(LANES, rates, k, splat(LANES, 0.0))
    for i in range(link_count(model)):
        dW = weighed_twist(LANES, rates, parent(model, i))
        for j in range(first_dof(model, i), first_dof(model, i) + dof_count(model, i)):
            dW = add6(dW, scale6(load(LANES, N, N.shape[1] // WIDTH * j + b), get6(lane, joints, JOINT * j + OF_W_P)))
        put6(LANES, rates, LINK * i + W, dW)


@kernel_in_place
def vary_gradient(lane, model, prepared, weighed, b, of_motion):
    """Adds what the varied wrenches make to block b of the variations of the gradient."""
    (of_q, of_v, of_a), rates, joints, world = of_motion, weighed.rates, weighed.joints, prepared.world
    width, every = of_q.shape[1] // WIDTH, of_v.shape[1] // WIDTH
    for i in range(link_count(model) - 1, -1, -1):
        p, F_a, F_v, F_w, F_q = parent(model, i), rate_of(rates, i, OF_A), rate_of(rates, i, OF_V), rate_of(
            rates, i, OF_W), rate_of(rates, i, OF_Q)
        on = add6(F_v, minus_ad_dual(sub6(twist_of(lane, world, i), twist_of(lane, world, p)), F_a))
        for j in range(first_dof(model, i), first_dof(model, i) + dof_count(model, i)):
            Sj, turned, k = (get6(lane, world, of_dof(model, j, S)), get6(lane, world, of_dof(model, j, PSI_DOT)),
                             JOINT * j)
            x, y = dot6(turned, on), dot6(get6(lane, joints, k + OF_W_P), F_w)  # short sums, which need not wait
            x, y = add_power(x, Sj, F_q), add_power(y, get6(lane, joints, k + OF_A_P), F_a)
            store(LANES, of_q, width * j + b, load(LANES, of_q, width * j + b) + x + y)
            x, y = dot6(turned, F_a), dot6(Sj, F_v)
            store(LANES, of_v, every * j + b, load(LANES, of_v, every * j + b) + x + y)
            store(LANES, of_a, width * j + b, add_power(load(LANES, of_a, width * j + b), Sj, F_a))
        if p >= 0:
            accumulate6(LANES, rates, LINK * p + OF_A, F_a)
            accumulate6(LANES, rates, LINK * p + OF_V, on)
            accumulate6(LANES, rates, LINK * p + OF_W, F_w)
            accumulate6(LANES, rates, LINK * p + OF_Q, F_q)


# ---- the same along columns that change velocities and no coordinates: only the gradient by v depends on these


@inline
def push_rate(rates, i, F):
    """Add F to the variation of of_v of link i, six registers for each link here, unless it is the ground."""
    if i >= 0:
        accumulate6(LANES, rates, 6 * i, F)


@kernel_in_place
def push_links(model, rates):
    """No variations of of_v yet."""
    for k in range(6 * link_count(model)):
        store(LANES, rates, k, splat(LANES, 0.0))


@kernel_in_place
def push_gradient(lane, model, world, rates, b, of_v):
    """Adds what the varied wrenches make to block b of the variations of the gradient by v."""
    width = of_v.shape[1] // WIDTH
    for i in range(link_count(model) - 1, -1, -1):
        F_v = get6(LANES, rates, 6 * i)
        for j in range(first_dof(model, i), first_dof(model, i) + dof_count(model, i)):
            Sj = get6(lane, world, of_dof(model, j, S))
            store(LANES, of_v, width * j + b, load(LANES, of_v, width * j + b) + dot6(Sj, F_v))
        push_rate(rates, parent(model, i), F_v)
