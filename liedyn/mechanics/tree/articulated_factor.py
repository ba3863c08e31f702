"""The factorisation M = L^T D L of a tree's inertia matrix in twelve numbers for each degree of freedom.

Entry (k, i) of L, where i carries k, is U_k . S_i / D_k: U_k is the momentum of a unit speed of k if all joints beyond
move freely, D_k = S_k . U_k (articulated bodies: Featherstone 2008, section 7.2; Rodriguez, Jain and Kreutz-Delgado
1991). So products with L need no entries of it: inward, sum the wrenches p = sum U_k y_k / D_k, outward, the twists A =
sum S_k x_k, six numbers each. `liedyn.mechanics.tree.ltdl` computes the same factor entry by entry, which is faster for
short chains.

A table holds S_k, the momenta of the composite inertias, U_k / D_k and 1 / D_k (`liedyn.mechanics.tree.rows`). Sums of
several branches are stored at a fork, a degree of freedom that carries several others directly.
"""
from liedyn.lie.algebra import add6, dot, dot6, scale6, sub6
from liedyn.lie.articulated import add_articulated, articulated_times, without_direction
from liedyn.machine.compiled.jit import inline, kernel_in_place
from liedyn.machine.simd.lanes import LANES, WIDTH, load, splat, store
from liedyn.machine.simd.registers import at_once, load_at_once, store_at_once
from liedyn.mechanics.tree.aba import get_articulated, put_articulated
from liedyn.mechanics.tree.crba import CARRIED, SCREW
from liedyn.mechanics.tree.rows import of_one6, pitch
from liedyn.model.packed_records import (
    accumulate6, armature, dof_total, fork_of, get6, parent_dof, put6, root_of, stretch_of, subtree_end, zero6,
)

D_INVERSE, ROWS = 6, 7  # after U / D: 1 / D_k; number of rows
FORK = 18 * WIDTH  # numbers stored at a fork: six registers of each of three matrices


@inline
def forks_size(model):
    """Size of the workspace of the sweeps."""
    count = 0
    for j in range(dof_total(model)):
        count = max(count, fork_of(model, j) + 1)
    return FORK * count


@inline
def is_leaf(model, k):
    return subtree_end(model, k) == k + 1


@inline
def is_last_branch(model, k):
    """True if k is the last branch of its predecessor, the first one met by an inward sweep."""
    return subtree_end(model, k) == subtree_end(model, parent_dof(model, k))


@kernel_in_place
def sweep_factor(lane, model, work, table, give, forks, L):
    """U_k / D_k and 1 / D_k into seven rows of the table from `give` on, D_k onto the diagonal of L (nv, nv).

    U_k = I S_k - G S_k, with the composite inertia I and the sum G of U U^T / D over all joints beyond.
    """
    nv, o = dof_total(model), splat(lane, 0.0)
    nothing = (o, o, o, o, o, o), (o, o, o, o, o, o, o, o, o), (o, o, o, o, o, o)
    G = nothing
    for k in range(nv - 1, -1, -1):
        if is_leaf(model, k):
            G = nothing
        elif fork_of(model, k) >= 0:
            G = add_articulated(G, get_articulated(lane, work, forks + FORK * fork_of(model, k)))
        Sk = of_one6(lane, model, work, table, SCREW, k)
        U = sub6(of_one6(lane, model, work, table, CARRIED, k), articulated_times(G, Sk))
        d = dot6(U, Sk) + armature(model, k)
        store(lane, L, (nv + 1) * k, d)
        at, (n, f) = table + give * pitch(model) + k, scale6(1.0 / d, U)
        for r in range(3):
            store(lane, work, at + r * pitch(model), n[r])
            store(lane, work, at + (r + 3) * pitch(model), f[r])
        store(lane, work, at + D_INVERSE * pitch(model), 1.0 / d)
        G = without_direction(G, U, -1.0 / d)
        previous = parent_dof(model, k)
        if 0 <= previous != k - 1:
            at, waiting = forks + FORK * fork_of(model, previous), G
            if not is_last_branch(model, k):
                waiting = add_articulated(G, get_articulated(lane, work, at))
            put_articulated(lane, work, at, waiting)


@kernel_in_place
def sweep_vector(lane, model, work, table, give, forks, b):
    """b = M^-1 b."""
    nv, p, A = dof_total(model), zero6(lane), zero6(lane)
    for k in range(nv - 1, -1, -1):
        if is_leaf(model, k):
            p = zero6(lane)
        elif fork_of(model, k) >= 0:
            p = add6(p, get6(lane, work, forks + FORK * fork_of(model, k)))
        y = load(lane, b, k) - dot6(p, of_one6(lane, model, work, table, SCREW, k))
        store(lane, b, k, y)
        p = add6(p, scale6(y, of_one6(lane, model, work, table, give, k)))
        previous = parent_dof(model, k)
        if 0 <= previous != k - 1:
            if is_last_branch(model, k):
                put6(lane, work, forks + FORK * fork_of(model, previous), p)
            else:
                accumulate6(lane, work, forks + FORK * fork_of(model, previous), p)
    for k in range(nv):
        previous = parent_dof(model, k)
        if previous < 0:
            A = zero6(lane)
        elif previous != k - 1:
            A = get6(lane, work, forks + FORK * fork_of(model, previous))
        x = (load(lane, b, k) * load(lane, work, table + (give + D_INVERSE) * pitch(model) + k)
             - dot6(of_one6(lane, model, work, table, give, k), A))
        store(lane, b, k, x)
        A = add6(A, scale6(x, of_one6(lane, model, work, table, SCREW, k)))
        if fork_of(model, k) >= 0:
            put6(lane, work, forks + FORK * fork_of(model, k), A)


@inline
def get_waiting(lane, work, k):
    """Load the six registers of a fork."""
    w = at_once(lane)
    return ((load_at_once(lane, work, k, WIDTH), load_at_once(lane, work, k + w, WIDTH),
             load_at_once(lane, work, k + 2 * w, WIDTH)),
            (load_at_once(lane, work, k + 3 * w, WIDTH), load_at_once(lane, work, k + 4 * w, WIDTH),
             load_at_once(lane, work, k + 5 * w, WIDTH)))


@inline
def put_waiting(lane, work, k, V):
    w = at_once(lane)
    for r in range(3):
        store_at_once(lane, work, k + r * w, WIDTH, V[0][r])
        store_at_once(lane, work, k + (r + 3) * w, WIDTH, V[1][r])


@inline
def put_three(lane, work, at, p, q, r):
    """Store six registers of each of three matrices at a fork."""
    put_waiting(lane, work, at, p)
    put_waiting(lane, work, at + 6 * at_once(lane), q)
    put_waiting(lane, work, at + 12 * at_once(lane), r)


@inline
def get_three(lane, work, at):
    """Load them."""
    return (get_waiting(lane, work, at), get_waiting(lane, work, at + 6 * at_once(lane)),
            get_waiting(lane, work, at + 12 * at_once(lane)))


@inline
def less_power(x, F, V):
    """x - F . V, in a short chain of fused operations."""
    return x - F[0][0] * V[0][0] - F[0][1] * V[0][1] - F[0][2] * V[0][2] - dot(F[1], V[1])


@kernel_in_place
def sweep_matrices(lane, model, work, table, give, forks, B, C, E):
    """B = -M^-1 B, C = -M^-1 C, E = M^-1 E, each (nv, nv), nonzero only where one degree of freedom carries the other.

    The three are computed together, a register of columns of each, so that latencies overlap. From one leaf or fork to
    the next the sums stay in registers. Branches that meet only at the ground keep their zeros.
    """
    nv, zero = dof_total(model), zero6(LANES)
    d_at = table + (give + D_INVERSE) * pitch(model)
    for c in range(0, nv, at_once(lane)):
        count, columns_end, behind = nv - c, min(c + at_once(lane), nv), 0
        for j in range(c, columns_end):
            behind = max(behind, subtree_end(model, j))
        begin, end = root_of(model, c), subtree_end(model, root_of(model, columns_end - 1))
        first = end
        while first > begin:
            last = first - 1
            first = stretch_of(model, last)
            # do links that `first` carries, or that carry it, have these columns? They carry nothing from `behind` on
            met = c < subtree_end(model, first) and (columns_end > first or behind > first)
            at = forks + FORK * fork_of(model, last)
            p, q, r = zero, zero, zero
            if met:
                if not is_leaf(model, last):
                    p, q, r = get_three(lane, work, at)
                for k in range(last, first - 1, -1):
                    S, g = of_one6(lane, model, work, table, SCREW, k), of_one6(lane, model, work, table, give, k)
                    x = less_power(load_at_once(lane, B, k * nv + c, count), p, S)
                    y = less_power(load_at_once(lane, C, k * nv + c, count), q, S)
                    z = less_power(load_at_once(lane, E, k * nv + c, count), r, S)
                    store_at_once(lane, B, k * nv + c, count, x)
                    store_at_once(lane, C, k * nv + c, count, y)
                    store_at_once(lane, E, k * nv + c, count, z)
                    p, q, r = add6(p, scale6(x, g)), add6(q, scale6(y, g)), add6(r, scale6(z, g))
            if parent_dof(model, first) >= 0:
                at, newest = forks + FORK * fork_of(model, parent_dof(model, first)), is_last_branch(model, first)
                if met and not newest:
                    p_others, q_others, r_others = get_three(lane, work, at)
                    p, q, r = add6(p, p_others), add6(q, q_others), add6(r, r_others)
                if met or newest:
                    put_three(lane, work, at, p, q, r)
        k = begin
        while k < end:
            p, q, r = zero, zero, zero
            if parent_dof(model, k) >= 0:
                p, q, r = get_three(lane, work, forks + FORK * fork_of(model, parent_dof(model, k)))
            first = k
            while k < end and stretch_of(model, k) == first:
                S, g = of_one6(lane, model, work, table, SCREW, k), of_one6(lane, model, work, table, give, k)
                d_inverse = load(lane, work, d_at + k)
                x = less_power(-1.0 * (d_inverse * load_at_once(lane, B, k * nv + c, count)), g, p)
                y = less_power(-1.0 * (d_inverse * load_at_once(lane, C, k * nv + c, count)), g, q)
                z = less_power(d_inverse * load_at_once(lane, E, k * nv + c, count), g, r)
                store_at_once(lane, B, k * nv + c, count, x)
                store_at_once(lane, C, k * nv + c, count, y)
                store_at_once(lane, E, k * nv + c, count, z)
                p, q, r = add6(p, scale6(x, S)), add6(q, scale6(y, S)), add6(r, scale6(z, S))
                k += 1
            if not is_leaf(model, k - 1):
                put_three(lane, work, forks + FORK * fork_of(model, k - 1), p, q, r)


@kernel_in_place
def put_identity(lane, model, X):
    """X (nv, nv) = 1."""
    nv = dof_total(model)
    for c in range(0, nv * nv, at_once(lane)):
        store_at_once(lane, X, c, nv * nv - c, splat(LANES, 0.0))
    for k in range(nv):
        store(lane, X, (nv + 1) * k, 1.0)


@kernel_in_place
def put_identity_of_trees(lane, model, X):
    """X_ij = 1 or 0 for degrees of freedom of one tree; the whole first row is written, as it was scratch."""
    nv = dof_total(model)
    for c in range(0, nv, at_once(lane)):
        store_at_once(lane, X, c, nv - c, splat(LANES, 0.0))
    for k in range(nv):
        end = subtree_end(model, root_of(model, k))
        for c in range(root_of(model, k), end, at_once(lane)):
            store_at_once(lane, X, k * nv + c, end - c, splat(LANES, 0.0))
        store(lane, X, (nv + 1) * k, 1.0)


@kernel_in_place
def make_symmetric(lane, model, X):
    """Copy the part of X (nv, nv) below the diagonal to that above it, as rounding differs."""
    nv = dof_total(model)
    for k in range(nv):
        for i in range(root_of(model, k), k):
            store(lane, X, i * nv + k, load(lane, X, k * nv + i))
