"""Impacts: several contacts that collide or rest on each other, with Newton's restitution and Coulomb friction at once.

    M (v+ - v-) = -G^T Lambda        0 <= P_n,  0 <= u_n^+ + e u_n^-,  complementary;  friction opposes u_t^+

(Moreau 1988; Pfeiffer and Glocker 1996, 8.2). All contacts have the same e: the smallest of those that close. With
friction or several contacts this law may increase the energy (Kane and Levinson 1985); then e is lowered until the
energy is conserved. If friction prevents a contact from separating at all (a sprag), e is zero.
"""
import warnings
from typing import NamedTuple

import numpy as np

from liedyn.machine.errors import ContactWarning, SingularConfigurationError
from liedyn.mechanics.contact.complementarity import SOLVED
from liedyn.mechanics.contact.contact_problem import CONTRADICTION, SINGULAR_INERTIA
from liedyn.mechanics.contact.contact_state import PAINLEVE, equations, solve, touching_of, with_rows_of
from liedyn.mechanics.dynamics.nullspace import RANK_TOLERANCE
from liedyn.mechanics.dynamics.terms import terms_kernel

GAIN = 1e-10
"""Accepted relative gain of kinetic energy, for errors of the impulses (`liedyn.mechanics.contact.complementarity`)."""
ROUNDING = 1e-12
"""Velocity of constraints, relative to the numbers whose difference it is, that counts as zero."""
HALVINGS = 60
MARGIN = 5.0 * PAINLEVE
"""Friction beyond its disk that may stop a contact. Accelerations are already refused slightly before they contradict
each other, where stopping needs this much more friction."""


class Impact(NamedTuple):
    """Velocities after an impact, and its impulses (as multipliers)."""

    v: np.ndarray
    impulse: np.ndarray


def collide(robot, model, contacts, touching, state, newton, names):
    """Velocities and impulses after the contacts numbered `touching` have collided, with all equations satisfied.

    newton = (restitution, bounce): the coefficient of each of these contacts; by row of an equation the speed after the
    impact, against its violation, for events with restitution. `names` are the constraints that close, for messages.
    SingularConfigurationError if the equations contradict each other, or no inertia resists a motion that they permit.
    """
    (q, v, _, f_ext), (restitution, bounce) = state, newton
    restitution, touching = restitution[~contacts.dry[touching]], touching[~contacts.dry[touching]]  # it has no impulse
    M, _, G, _, psi, _ = terms_kernel(with_rows_of(model, contacts, touching), q, v, f_ext)
    equal = equations(model, contacts)
    c = G @ v - psi
    c[np.abs(c) <= ROUNDING * (np.abs(G) @ np.abs(v))] = 0.0  # removes the rounding of constraints at rest
    for row, speed in bounce.items():
        c[row] -= speed
    approach = np.minimum(0.0, contacts.side[touching] * psi[contacts.first[touching]])
    closing = approach < 0.0
    e = float(restitution[closing].min()) if closing.any() else 0.0
    before = 0.5 * v @ M @ v

    def after(e):
        closed = touching_of(contacts, touching, shift=e * approach)
        status, z, lam, *_ = solve(M, M @ v, G, c, equal, closed, RANK_TOLERANCE)
        if status == CONTRADICTION:
            left = np.abs(G @ z - c) * equal
            raise SingularConfigurationError(
                f"no velocity satisfies all constraints: they leave {left.max():.3g} in "
                f"{robot.row_names[left.argmax()]}", np.linalg.svd(G[equal], compute_uv=False))
        if status == SINGULAR_INERTIA:
            raise SingularConfigurationError(
                "no inertia resists some motion that the constraints allow", np.linalg.svd(M, compute_uv=False))
        return (z, lam, 0.5 * z @ M @ z) if status == SOLVED else None

    found, asked, why = after(e), e, ""
    moving = np.abs(c[equal]).max(initial=0.0) > 0.0 and not bounce  # moving targets do work
    if found is None and e > 0.0:
        e, found, why = 0.0, after(0.0), "would have to pull, or to slip against its friction (a sprag)"
    elif found is not None and e > 0.0 and not moving and found[2] > before * (1.0 + GAIN):
        why = (f"would gain {found[2] - before:.3g} J of kinetic energy (Newton's law with friction or several "
               "contacts)")
        low, high = 0.0, e
        for _ in range(HALVINGS):
            e = 0.5 * (low + high)
            tried = after(e)
            low, high = (low, e) if tried is None or tried[2] > before else (e, high)
        e, found = low, after(low)
    if found is None:
        raise SingularConfigurationError(
            f"the impact of {', '.join(names)} has no solution that could be found: impulses that push and obey "
            "Coulomb's law", np.linalg.svd(G, compute_uv=False))
    if why:
        warnings.warn(f"impact of {', '.join(names)}: restitution {asked:g} {why}; it is lowered to {e:.4g}",
                      ContactWarning, stacklevel=2)
    return Impact(*found[:2])


def jam(model, contacts, touching, sliding, state):
    """An impact without collision: impulses inside the friction cone stop the sliding contacts.

    It happens where friction makes accelerations contradict each other (Painleve 1895; Leine, Brogliato and Nijmeijer
    2002). None if the impulses needed pull, or leave the cone.
    """
    q, v, _, f_ext = state
    touching, sliding = touching[~contacts.dry[touching]], [c for c in sliding if not contacts.dry[c]]
    M, _, G, _, psi, _ = terms_kernel(with_rows_of(model, contacts, touching), q, v, f_ext)
    for stopped in [[c] for c in sliding] + [list(sliding)] * (len(sliding) > 1):
        others, equal = [c for c in touching if c not in stopped], equations(model, contacts)
        for c in stopped:
            equal[contacts.rows(c)] = True
        status, z, lam, *_ = solve(M, M @ v, G, G @ v - psi, equal, touching_of(contacts, others),
                                RANK_TOLERANCE)
        loads = [(*contacts.loads(c, lam), contacts.friction[c]) for c in stopped]
        if status == SOLVED and all(N >= 0.0 and friction <= (1.0 + MARGIN) * mu * N for N, friction, mu in loads):
            return Impact(z, lam)
    return None
