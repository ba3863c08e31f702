"""Augmented Lagrangian of all limits of a plan that multipliers hold: quantities within bounds, gaps, and contacts.

A limit that a quantity c has to lie in a convex set, with multiplier lambda and penalty mu, adds to the cost (Bertsekas
1996, 3.2; Shapiro and Sun 2004; Howell, Jackson and Manchester 2019)

    mu/2 |z - Pi z|^2 - |lambda|^2 / (2 mu)        z = c + lambda / mu, Pi z the point of the set that is nearest to z

The gradient by c is the force mu (z - Pi z), which is also the next lambda; the second derivatives mu (1 - dPi) are
positive semidefinite, as the set is convex. The sets are

- an interval: of coordinates, velocities and errors of targets (`liedyn.tasks.planning.objective`);
- zero: of the gaps of contacts that close after a knot (`liedyn.tasks.planning.phases`);
- the friction cone K = {f : |f_tangential| <= friction f_normal}: of the force f = (normal, tangential) of a closed
  contact (Jackson et al. 2021; Parikh and Boyd 2014, 6.3.2). Forces depend on the state at the beginning of a step and
  on its inputs; at a phase change they are the impulses of the contacts that close. Forces are measured in weights of
  the robot, impulses in those that stop its mass at 1 m/s.

Limits of inputs are treated separately (`liedyn.tasks.planning.backward_pass`).
"""
import math
from collections import namedtuple

from numba import types

from liedyn.machine.compiled.by_address import record
from liedyn.machine.compiled.jit import INTEGERS, MATRIX, VECTOR, inline, kernel_in_place, late
from liedyn.machine.simd.lanes import SCALAR
from liedyn.mechanics.constraints.constraint_rows import jacobian_rows, residual_rows
from liedyn.mechanics.tree.kinematics import world_positions
from liedyn.model.packed import PackedModel

Cones = namedtuple("Cones", "rows first count side friction closed unit lam mu g")
"""`rows` of the multipliers of contacts (r); for each contact the first one among them, their number (3, on spheres 4,
or 1 if only pulling is limited), the side and the friction; `closed` (steps, contacts) is 1 if it pushes in a
step; `unit` of the forces of a step; multipliers (steps, r) and penalties (steps); scratch for a gradient by x and the
inputs."""

CONES = record(Cones, *[INTEGERS] * 3, *[VECTOR] * 2, types.int64[:, ::1], VECTOR, MATRIX, *[VECTOR] * 2)


@inline
def interval_limit(c, low, high, lam, mu):
    """For low <= c <= high: the force mu (z - Pi z), what is added to the cost, and the violation."""
    z = c + lam / mu
    force = mu * (z - min(max(z, low), high))
    return force, 0.5 * (force * force - lam * lam) / mu, max(low - c, c - high, 0.0)


@inline
def next_penalty(mu, factor, largest):
    """A penalty times a factor, up to the largest."""
    return min(factor * mu, largest)


@inline
def add_square(g, count, factor, lxx):
    """lxx += factor g g^T, for as many entries of g."""
    for i in range(count):
        x = factor * g[i]
        if x != 0.0:
            for j in range(count):
                lxx[i, j] += x * g[j]


# ---- gaps of contacts that close after a knot


@inline
def put_touching(model, steps, stage, k, q):
    """Residuals of the next phase at q, and their rows in stage.G; returns the number of that phase."""
    i = steps.phases.of_knot[k + 1]
    closed = PackedModel(steps.phases.configuration[i], model.floats)
    world_positions(SCALAR, closed, q, stage.world)
    residual_rows(closed, q, stage.world, stage.residual)
    jacobian_rows(closed, q, stage.world, stage.G)
    return i - 1


@inline
def gap_limit(steps, stage, i, r):
    """`interval_limit` of gap r at the end of phase i."""
    return interval_limit(stage.residual[r], 0.0, 0.0, steps.phases.lam[i, r], steps.phases.mu[i, r])


@kernel_in_place
def gap_cost(model, steps, stage, k, q):
    """Augmented Lagrangian of the gaps of contacts that close after knot k, and the largest gap."""
    i, added, worst = put_touching(model, steps, stage, k, q), 0.0, 0.0
    for r in range(stage.residual.size):
        _, more, violation = gap_limit(steps, stage, i, r)
        added, worst = added + more, max(worst, violation)
    return added, worst


@kernel_in_place
def add_gap_derivatives(model, steps, stage, k, q, N, slopes):
    """Result of `gap_cost`; adds its gradient and Gauss-Newton matrix (lx, lxx), by the motions N of the state."""
    lx, lxx = slopes
    i, added, worst, p = put_touching(model, steps, stage, k, q), 0.0, 0.0, N.shape[1]
    for r in range(stage.residual.size):
        force, more, violation = gap_limit(steps, stage, i, r)
        added, worst = added + more, max(worst, violation)
        for j in range(p):
            stage.change[j] = 0.0
        for l in range(N.shape[0]):
            x = stage.G[r, l]
            for j in range(p if x != 0.0 else 0):
                stage.change[j] += x * N[l, j]
        for j in range(p):
            lx[j] += force * stage.change[j]
        add_square(stage.change, p, steps.phases.mu[i, r], lxx)
    return added, worst


@kernel_in_place
def update_gap_multipliers(model, steps, stage, k, q, factor, largest):
    """The next multipliers of gaps, and penalties times a factor."""
    i = put_touching(model, steps, stage, k, q)
    for r in range(stage.residual.size):
        steps.phases.lam[i, r] = gap_limit(steps, stage, i, r)[0]
        steps.phases.mu[i, r] = next_penalty(steps.phases.mu[i, r], factor, largest)


# ---- forces of contacts


@inline
def shifted(cones, k, c, lam, part):
    """f + part lambda / mu of contact c in step k: normal and three tangential components, if they exist."""
    return (shifted_row(cones, k, c, lam, part, 0), shifted_row(cones, k, c, lam, part, 1),
            shifted_row(cones, k, c, lam, part, 2), shifted_row(cones, k, c, lam, part, 3))


@inline
def shifted_row(cones, k, c, lam, part, i):
    if i >= cones.count[c]:
        return 0.0
    row = cones.first[c] + i
    sign = -cones.side[c] if i == 0 else 1.0
    return sign * lam[cones.rows[row]] / cones.unit[k] + part * cones.lam[k, row] / cones.mu[k]


@inline
def tangential(z):
    return math.sqrt(z[1] * z[1] + z[2] * z[2] + z[3] * z[3])


@inline
def nearest(z, friction):
    """(s, t): the point of the cone that is nearest to z is (s, t z_1, t z_2, t z_3)."""
    r = tangential(z)
    if z[0] >= 0.0 and r <= friction * z[0]:
        return z[0], 1.0
    if friction * r <= -z[0]:
        return 0.0, 0.0
    s = (z[0] + friction * r) / (1.0 + friction * friction)
    return s, friction * s / r


@inline
def outside(z, friction):
    """z - Pi z, the part of z outside the cone."""
    s, t = nearest(z, friction)
    return z[0] - s, (1.0 - t) * z[1], (1.0 - t) * z[2], (1.0 - t) * z[3]


@inline
def square(a):
    return a[0] * a[0] + a[1] * a[1] + a[2] * a[2] + a[3] * a[3]


@kernel_in_place
def cone_cost(cones, k, lam):
    """Augmented Lagrangian of the contact forces in step k, for multipliers lam; largest distance from a cone."""
    added = worst = 0.0
    for c in range(cones.first.size):
        if cones.closed[k, c] == 0:
            continue
        added += 0.5 * cones.mu[k] * square(outside(shifted(cones, k, c, lam, 1.0), cones.friction[c]))
        for i in range(cones.first[c], cones.first[c] + cones.count[c]):
            added -= 0.5 * cones.lam[k, i] * cones.lam[k, i] / cones.mu[k]
        worst = max(worst, math.sqrt(square(outside(shifted(cones, k, c, lam, 0.0), cones.friction[c]))))
    return added, worst


@inline
def put_force_gradient(cones, k, c, along, C, D):
    """cones.g = derivatives by (x, u) of the force along a direction, from those of the multipliers."""
    x, first = C.shape[1], cones.first[c]
    for j in range(cones.g.size):
        cones.g[j] = 0.0
    for i in range(cones.count[c]):
        factor = (-cones.side[c] if i == 0 else 1.0) * along[i] / cones.unit[k]
        for j in range(x if factor != 0.0 else 0):
            cones.g[j] += factor * C[first + i, j]
        for j in range(D.shape[1] if factor != 0.0 else 0):
            cones.g[x + j] += factor * D[first + i, j]


@inline
def add_slope(g, factor, lx, lu):
    """lx and lu += factor g."""
    for i in range(lx.size):
        lx[i] += factor * g[i]
    for i in range(lu.size):
        lu[i] += factor * g[lx.size + i]


@inline
def add_curvature(g, factor, lxx, by_u):
    """lxx and by_u += factor g g^T."""
    x = lxx.shape[0]
    for i in range(g.size):
        s = factor * g[i]
        if s == 0.0:
            continue
        for j in range(x if i < x else g.size):
            if i < x:
                lxx[i, j] += s * g[j]
            else:
                by_u[i - x, j] += s * g[j]


@kernel_in_place
def add_cone_derivatives(cones, k, lam, by, slopes):
    """Result of `cone_cost`; adds its gradient and Gauss-Newton matrix: slopes = (lx, lxx, lu, [l_ux l_uu]).

    by = (C, D) are the derivatives of the multipliers by the state and by the inputs.
    """
    (C, D), (lx, lxx, lu, by_u) = by, slopes
    mu = cones.mu[k]
    for c in range(cones.first.size):
        if cones.closed[k, c] == 0:
            continue
        friction, z = cones.friction[c], shifted(cones, k, c, lam, 1.0)
        beyond, r = outside(z, friction), tangential(z)
        if square(beyond) == 0.0:
            continue
        put_force_gradient(cones, k, c, beyond, C, D)
        add_slope(cones.g, mu, lx, lu)
        s, t = nearest(z, friction)
        for i in range(cones.count[c]):  # all directions if the apex is nearest, else those along the cone's surface
            if i == 0 and s > 0.0:
                continue
            put_force_gradient(
                cones, k, c, (1.0 if i == 0 else 0.0, 1.0 if i == 1 else 0.0, 1.0 if i == 2 else 0.0,
                              1.0 if i == 3 else 0.0), C, D)
            add_curvature(cones.g, mu * (1.0 - t), lxx, by_u)
        if s > 0.0:
            e, size = (z[1] / r, z[2] / r, z[3] / r), math.sqrt(1.0 + friction * friction)
            put_force_gradient(cones, k, c, (0.0, e[0], e[1], e[2]), C, D)
            add_curvature(cones.g, -mu * (1.0 - t), lxx, by_u)
            put_force_gradient(cones, k, c, (-friction / size, e[0] / size, e[1] / size, e[2] / size), C, D)
            add_curvature(cones.g, mu, lxx, by_u)
    return cone_cost(cones, k, lam)


@late(CONES, types.int64, VECTOR, types.float64, types.float64)
def update_cone_multipliers(cones, k, lam, factor, largest):
    """The next multipliers of cones, and penalties times a factor; compiled separately, for plans with contacts."""
    for c in range(cones.first.size):
        if cones.closed[k, c] == 0:
            continue
        beyond = outside(shifted(cones, k, c, lam, 1.0), cones.friction[c])
        for i in range(cones.count[c]):
            cones.lam[k, cones.first[c] + i] = cones.mu[k] * beyond[i]
    cones.mu[k] = next_penalty(cones.mu[k], factor, largest)
