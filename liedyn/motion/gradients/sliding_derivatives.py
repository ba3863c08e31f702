"""Variations of accelerations with contacts that slide with friction (`liedyn.mechanics.contact.sliding_friction`).

M a + h + G^T lambda = tau holds with all rows of a contact, of which only the normal one is an equation. Its variation,
with lambda_t = mu N s, is

    M Da + G^T Dlambda + sum c Dlambda_n = f - sum G_t^T (mu N Ds + Dmu N s)        c = -side mu G_t^T s

where the slip varies by dpsi_t/dq Dtheta + G_t Dv. The saddle-point system is solved without the terms in Dlambda_n,
and once for each c as a force; the effect of these solutions on each other's normal forces is the small system of
sliding friction.
"""
import numpy as np

from liedyn.linear.sensitivity.changes import FRICTION, RECORD
from liedyn.machine.compiled.jit import kernel, kernel_in_place
from liedyn.machine.linalg.dense import solve_square
from liedyn.machine.linalg.nearest import forward
from liedyn.machine.linalg.vectors import inner
from liedyn.mechanics.contact.sliding_friction import SLOW, contact_numbers, slips
from liedyn.model.constraint_records import loop_count, loop_rows, switch
from liedyn.model.packed import ON, SLIDING


@kernel_in_place
def hold_sliding(model, f):
    """Closes sliding contacts in all their rows; returns their number. Their indices are stored in f.trials."""
    count = 0
    for l in range(loop_count(model)):
        if slips(model, l):
            f.trials[count, 2] = l
            count += 1
    for k in range(count):
        switch(model, int(f.trials[k, 2]), ON)
    return count


@kernel_in_place
def let_slide(model, f, count):
    """Makes the contacts slide again that `hold_sliding` closed."""
    for k in range(count):
        switch(model, int(f.trials[k, 2]), SLIDING)


@kernel_in_place
def keep_direction(model, x, lam):
    """Stores the directions of slip that the friction in the multipliers has."""
    for l in range(loop_count(model)):
        if slips(model, l):
            first, rows = loop_rows(model, l)
            size = 0.0
            for r in range(1, rows):
                size += lam[first + r] * lam[first + r]
            for r in range(1, rows):
                if size > 0.0:
                    x.friction.direction[l, r - 1] = lam[first + r] / size ** 0.5


@kernel
def coefficient_change(changes, p, l):
    """Derivative of the coefficient of friction of constraint l by parameter p."""
    found = 0.0
    for c in range(changes.first[p], changes.first[p + 1]):
        if changes.records[RECORD * c] == FRICTION and changes.records[RECORD * c + 1] == l:
            found += changes.numbers[changes.records[RECORD * c + 2]]
    return found


def friction_changes(changes, l):
    """`coefficient_change` for all parameters."""
    return np.array([coefficient_change(changes, p, l) for p in range(len(changes.first) - 1)])


@kernel_in_place
def put_sliding(model, x, v, lam, psi_q, room, count):
    """Right sides of sliding contacts, whose tangential rows are no equations here; c in columns after the others."""
    n, columns = v.size, room.theta.shape[1]
    slip, varied, psi_p = room.number[0], room.number[1], room.partials.psi
    first_p = columns - 1 - psi_p.shape[1]
    for k in range(count):
        l = int(x.friction.trials[k, 2])
        first, rows, side, mu = contact_numbers(model, l)
        s, N, size = x.friction.used[l], -side * lam[first], 0.0
        for r in range(1, rows):
            slip[r] = inner(x.G[first + r], v)
            size += slip[r] * slip[r]
            for i in range(n):
                room.forces[i, columns + k] -= side * mu * s[r - 1] * x.G[first + r, i]
        size = size ** 0.5
        for c in range(psi_p.shape[1]):
            mu_p = coefficient_change(room.changes, c, l)
            for r in range(1, rows if mu_p != 0.0 else 0):
                for i in range(n):
                    room.forces[i, first_p + c] -= mu_p * N * s[r - 1] * x.G[first + r, i]
        for c in range(columns if size > SLOW else 0):
            along = 0.0
            for r in range(1, rows):
                varied[r] = psi_p[first + r, c - first_p] if first_p <= c < columns - 1 else 0.0
                for i in range(n):
                    varied[r] += psi_q[first + r, i] * room.theta[i, c] + x.G[first + r, i] * room.v[i, c]
                along += varied[r] * s[r - 1]
            for r in range(1, rows):
                turn = mu * N * (varied[r] - along * s[r - 1]) / size
                for i in range(n):
                    room.forces[i, c] -= turn * x.G[first + r, i]
    for k in range(count):
        first, rows, _, _ = contact_numbers(model, int(x.friction.trials[k, 2]))
        for r in range(1, rows):
            x.G[first + r, :], room.rates[first + r, :] = 0.0, 0.0


@kernel_in_place
def add_sliding(model, x, room, rank, out, count):
    """Adds the effect of the variations of normal forces to `out`; False if friction holds a contact that should slide.

    room.forces is L^-1 f, as the solution of the saddle-point system leaves it.
    """
    n, f = out.shape[0], x.friction
    b, y, normal = room.number[0], room.number[1], room.number[2]
    for i in range(rank):
        row = room.Y[i, :n]
        for j in range(n):
            row[j] = x.G[room.order[i], j]
        forward(room.L, row)
    of_one = room.theta.shape[1]  # the first column of the forces c
    for c in range(of_one + count - 1, -1, -1):
        for j in range(n):  # L^-1 f - L^T x = sum of rows times multipliers
            y[j] = room.forces[j, c] - out[j, c] / room.L[j, j]
            for k in range(j + 1, n):
                y[j] -= room.L[k, j] * out[k, c]
        for i in range(rank):
            b[i] = inner(room.Y[i, :n], y[:n])
            for k in range(rank):
                room.gram[i, k] = inner(room.Y[i, :n], room.Y[k, :n])
        if not solve_square(room.gram, b, rank):
            return False
        for k in range(count):
            normal[k] = 0.0
            for i in range(rank):
                if room.order[i] == loop_rows(model, int(f.trials[k, 2]))[0]:
                    normal[k] = b[i]
        if c >= of_one:  # effect of normal force c on the others
            for k in range(count):
                room.influence[k, c - of_one] = normal[k] + (1.0 if k == c - of_one else 0.0)
            continue
        for k in range(count):
            for j in range(count):
                f.influence[k, j] = room.influence[k, j]
        if not solve_square(f.influence, normal, count):
            return False
        for k in range(count):
            for i in range(n):
                out[i, c] -= normal[k] * out[i, of_one + k]
    return True
