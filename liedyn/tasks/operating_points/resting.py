"""Contacts of an operating point: those that touch stick, and must push and not slip at the result.

The guess determines which contacts touch. They are closed as equations during Newton's method; then the dynamics of the
robot itself, with complementarity of contacts (`liedyn.mechanics.contact.contact_modes`), checks them: a contact that
would pull is opened, one that is penetrated is closed, and the search continues.
"""
import numpy as np

from liedyn.machine.compiled.user_functions import raise_errors
from liedyn.machine.errors import InputError, shown
from liedyn.mechanics.contact.contact_modes import watched
from liedyn.mechanics.contact.contact_state import DEEPEST, with_rows_of
from liedyn.mechanics.dynamics.forward import forward_dynamics
from liedyn.mechanics.dynamics.terms import terms_kernel
from liedyn.mechanics.elements.generalized import actuator_matrix

NEAR = 1e-3
"""Gap [m, rad] at the guess below which a contact touches."""


def touching(robot, q, v):
    """Names of the contacts that touch at a guess.

    Raises InputError if one of them slips.
    """
    contacts, gaps = watched(robot), gaps_of(robot, q)
    psi = _rows(robot, q, v)[4]
    closed = [name for name, gap in gaps.items() if gap <= NEAR]
    limit = NEAR * max(1.0, float(np.abs(v).max(initial=0.0)))
    for c, name in enumerate(contacts.names):
        if name in closed and contacts.friction[c] > 0.0 and contacts.slips(psi, [c])[0] > limit:
            raise InputError(f"contact {shown(name)} slips at this guess: trim takes contacts that stick; switch it "
                             "to 'sliding', which has no friction, or make v consistent with complete_velocity()")
    return closed


def gaps_of(robot, q):
    """Gaps of the contacts that may open and close, by name."""
    contacts = watched(robot)
    residual = _rows(robot, q, np.zeros(robot.nv))[3]
    return dict(zip(contacts.names, contacts.side * residual[contacts.first]))


def _rows(robot, q, v):
    terms = terms_kernel(with_rows_of(robot.packed, watched(robot), slice(None)), q, v, np.empty(0))
    raise_errors(robot.functions)
    return terms


def with_closed(robot, closed):
    """The robot with these contacts closed as equations, and the others off."""
    contacts = watched(robot)
    return robot.switched({name: False if name not in closed else "sticking" if friction > 0.0 else "sliding"
                           for name, friction in zip(contacts.names, contacts.friction)})


def held_up(robot, point, closed):
    """Contacts at a point of ``with_closed(robot, closed)``: names of those that should be closed, of those that slip
    in spite of friction, and the `ForwardDynamics` of the robot itself, None if the closed contacts should change."""
    contacts = watched(robot)
    free = point.robot.switched(dict.fromkeys(contacts.names, True))
    deep = [name for name, gap in gaps_of(free, point.q).items() if name not in closed and gap < -DEEPEST]
    if deep:
        return [*closed, *deep], [], None
    found = forward_dynamics(free, point.q, point.v, actuator_matrix(free, point.q) @ point.u)
    stay = [name for name in closed if found.contacts[name] in ("sticking", "sliding")]
    if stay != closed:
        return stay, [], None
    rub = dict(zip(contacts.names, contacts.friction))
    return closed, [name for name in closed if found.contacts[name] == "sliding" and rub[name] > 0.0], found
