"""The terms of all formulations at one state: M, h, G, and the constraints' velocity and acceleration.

    M a + h + G^T lambda = tau        G v = b, psi = G v - b        G a = gamma

One pass outwards computes poses, screws, twists and the accelerations for a = 0 (Featherstone 2008, section 5.3, in
world axes), and each link's inertia I and wrench F = I A + V x* I V; one pass inwards sums both towards the ground, and
computes M = S^T I S and h = S^T F from the sums (section 6.2). The rows of the constraints need nothing else.

Right sides of G a = ... that reduce violations of the constraints.

    Baumgarte          g'' + 2 alpha g' + beta^2 g = 0     (Spencer 2004, eq. 3.8)
    velocity level     psi' + sigma psi = 0                (Yun and Sarkar 1998, eq. 17 and 37)

Xu and Liu 2017, eq. 52, write g'' + alpha g' + beta g = 0: their (0.5, 200) is (0.25, sqrt(200)) here. Rows without a
residual (nonholonomic ones) have g = 0 and g' = psi, and so psi' + 2 alpha psi = 0.
"""
import numpy as np

from liedyn.lie.algebra import (
    Ad_dual_inverse, ad, add6, compose, dot6, inertia_in_parent, inertia_times, minus_ad_dual, scale6, sub6,
)
from liedyn.machine.compiled.jit import inline, kernel, kernel_in_place
from liedyn.machine.linalg.gauss_jordan import at, clear, put_element
from liedyn.machine.simd.lanes import SCALAR, load, store
from liedyn.machine.simd.sines import put_sines
from liedyn.mechanics.constraints.constraint_rows import clear_rows, constraint_state, constraint_terms
from liedyn.mechanics.constraints.sparse_elimination import complete_terms
from liedyn.mechanics.dynamics.state import StateTerms
from liedyn.mechanics.tree.crba import INERTIA
from liedyn.mechanics.tree.joints import accumulate_springs, by_kind, dofs_of_kind, screw_of_kind_at
from liedyn.mechanics.tree.kinematics import (
    ACCELERATION, POSE, S, TWIST, acceleration_of, of_dof, of_link, origin, put_origin, sines_at, twist_of, world_pose,
    world_size,
)
from liedyn.mechanics.tree.poses import pose_in_parent, put_world_pose
from liedyn.model.constraint_records import is_long
from liedyn.model.packed import NV, N_ROWS
from liedyn.model.packed_records import (
    accumulate6, armature, dof_count, first_dof, get6, get_inertia, inertia, link_count, parent, parent_dof, put6,
    put_inertia, q_total,
)


@kernel_in_place
def baumgarte_rows(terms, gains, out):
    """out = gamma - 2 alpha psi - beta^2 g, for gains = (alpha, beta)."""
    alpha, beta = gains
    for k in range(out.size):
        out[k] = terms.gamma[k] - 2.0 * alpha * terms.psi[k] - beta * beta * terms.residual[k]


@kernel_in_place
def velocity_level_rows(psi, gamma, sigma, out):
    """out = gamma - sigma psi."""
    for k in range(out.size):
        out[k] = gamma[k] - sigma * psi[k]


# numbers per link after the shared part of the workspace: composite inertia, then the wrench at its joint
COMPOSITE, WRENCH = INERTIA + 6, INERTIA


@kernel_in_place
def terms_size(model):
    """Size of the workspace of `terms_in_place`."""
    return world_size(model) + COMPOSITE * link_count(model)


@inline
def put_link(lane, joint, model, i, q, v, f_ext, work):
    """Pose, screws, twist, acceleration (for a = 0), inertia and wrench of link i, given those of its parent."""
    X = pose_in_parent(lane, joint, model, i, q, work, sines_at(model), origin(lane, model, work))
    if parent(model, i) >= 0:
        X = compose(world_pose(lane, work, parent(model, i)), X)
    Vp, Ap = twist_of(lane, work, parent(model, i)), acceleration_of(lane, model, work, parent(model, i))
    V, first = Vp, first_dof(model, i)
    for d in range(dofs_of_kind(joint)):
        Sj = screw_of_kind_at(lane, joint, model, i, X, d)
        put6(lane, work, of_dof(model, first + d, S), Sj)
        V = add6(V, scale6(load(lane, v, first + d), Sj))
    A = add6(Ap, ad(Vp, V))  # sum of v_j ad(V, S_j) = ad(V, V - V_p)
    I = inertia_in_parent(X, inertia(model, i))
    F = add6(inertia_times(I, A), minus_ad_dual(V, inertia_times(I, V)))
    if f_ext.size > 0:
        F = sub6(F, Ad_dual_inverse(X, get6(lane, f_ext, 6 * i)))
    put_world_pose(lane, work, of_link(i, POSE), X)
    put6(lane, work, of_link(i, TWIST), V)
    put6(lane, work, of_link(i, ACCELERATION), A)
    k = world_size(model) + COMPOSITE * i
    put_inertia(lane, work, k, I)
    put6(lane, work, k + WRENCH, F)


@kernel_in_place
def tree_terms(lane, model, q, v, f_ext, work, terms):
    """h (nv) of the open tree, and M (nv, nv, or padded), zero before; prepares row kernels, with a = 0."""
    M, h, n = terms.M, terms.h, link_count(model)
    put_sines(lane, q, q_total(model), work, sines_at(model))
    put_origin(lane, model, q, work)
    for i in range(n):
        by_kind(put_link, lane, model, i, q, v, f_ext, work)
    for i in range(n - 1, -1, -1):
        c = world_size(model) + COMPOSITE * i
        I, F = get_inertia(lane, work, c), get6(lane, work, c + WRENCH)
        for j in range(first_dof(model, i), first_dof(model, i) + dof_count(model, i)):
            Sj = get6(lane, work, of_dof(model, j, S))
            carried = inertia_times(I, Sj)
            store(lane, h, j, dot6(F, Sj))
            put_element(lane, M, j, j, dot6(carried, Sj) + armature(model, j))
            k = parent_dof(model, j)
            while k >= 0:
                inertia_kj = dot6(carried, get6(lane, work, of_dof(model, k, S)))
                put_element(lane, M, k, j, inertia_kj)
                put_element(lane, M, j, k, inertia_kj)
                k = parent_dof(model, k)
        accumulate_springs(lane, model, i, q, v, 1.0, h)
        if parent(model, i) >= 0:
            up = world_size(model) + COMPOSITE * parent(model, i)
            for k in range(INERTIA):
                store(lane, work, up + k, load(lane, work, up + k) + load(lane, work, c + k))
            accumulate6(lane, work, up + WRENCH, F)


@inline
def negate(x):
    """-x in place."""
    for k in range(x.size):
        store(SCALAR, x, k, -load(SCALAR, x, k))


@inline
def clear_terms(model, M, G):
    """Set M and G to zero, but not outside the sparsity patterns of long chains of loops, which would take most of the
    time.

    Only dense algorithms read these entries, after `liedyn.mechanics.constraints.sparse_elimination.complete_terms`.
    """
    if not is_long(model):
        clear_rows(G)
        for k in range(M.size):
            store(SCALAR, M, k, 0.0)


@inline
def copy_inertia(model, M, padded):
    """Copy M (nv, nv) into a padded matrix."""
    n, columns = M.shape[0], padded.shape[1]
    if is_long(model):
        for j in range(n):
            k = j
            while k >= 0:
                store(SCALAR, padded, columns * k + j, at(M, k, j))
                store(SCALAR, padded, columns * j + k, at(M, j, k))
                k = parent_dof(model, k)
        return
    clear(padded)
    for i in range(n):
        for j in range(n):
            store(SCALAR, padded, columns * i + j, at(M, i, j))


@kernel_in_place
def put_terms(model, q, v, f_ext, work, terms):
    """`terms_in_place` for M and G prepared by `clear_terms`."""
    clear_terms(model, terms.M, terms.G)
    tree_terms(SCALAR, model, q, v, f_ext, work, terms)
    constraint_terms(model, q, v, work, terms.G, terms.gamma)
    negate(terms.gamma)


@kernel_in_place
def terms_in_place(model, q, v, f_ext, work, terms):
    """`Terms` M (nv, nv, or padded), h (nv), G (m, nv), gamma (m), with `terms_size` numbers of workspace.

    Poses, twists and accelerations for a = 0 remain in `work`, so that `residual_rows` and `velocity_rows` can follow,
    for formulations with stabilisation.
    """
    put_terms(model, q, v, f_ext, work, terms)
    if is_long(model):
        complete_terms(model, terms.M, terms.G)


@kernel_in_place
def put_state_terms(model, q, v, f_ext, work, terms):
    """`put_terms` for `StateTerms`: with residual and psi (m)."""
    clear_terms(model, terms.M, terms.G)
    tree_terms(SCALAR, model, q, v, f_ext, work, terms)
    constraint_state(model, q, v, work, terms)
    negate(terms.gamma)


@kernel
def terms_kernel(model, q, v, f_ext):
    """`StateTerms` M (n, n), h (n), G (m, n), residual, psi, gamma (m): h contains gravity, joint forces and external
    wrenches."""
    n, m = model.ints[NV], model.ints[N_ROWS]
    work = np.empty(terms_size(model))
    terms = StateTerms(np.empty((n, n)), np.empty(n), np.empty((m, n)), np.empty(m), np.empty(m), np.empty(m))
    put_state_terms(model, q, v, f_ext, work, terms)
    if is_long(model):
        complete_terms(model, terms.M, terms.G)
    return terms
