"""Sliding friction of contacts at rows of states, for variations in two directions.

Friction is a known force, except for the part of normal forces, which are unknown
(`liedyn.mechanics.contact.sliding_friction`). The forces of all rows of the contacts are counted, but the tangential
rows are no equations of motion.
"""
import numpy as np

from liedyn.linear.sensitivity.changes import FRICTION
from liedyn.machine.errors import InputError
from liedyn.mechanics.contact.sliding_friction import SlidingFriction
from liedyn.mechanics.dynamics.terms import terms_kernel


class Friction(SlidingFriction):
    """The friction of the contacts that slide; arrays are (states, columns of direction 1, rows, columns of 2).

    Parameters
    ----------
    robot : Robot
        With these contacts closed in all their rows.
    contacts : Contacts
    motion : Motion
        Rows of q, v, a and lambda.

    Attributes
    ----------
    of_unit : ndarray, shape (states, t, contacts)
        mu s, column by column: friction forces of unit normal forces.
    """

    def __init__(self, robot, contacts, motion):
        psi = np.array([terms_kernel(robot.packed, q, v, np.empty(0))[4] for q, v in zip(motion.q, motion.v)])
        if contacts.dry.any():
            raise InputError(f"sensitivities() is not available while joints slide with dry friction that sticks, as "
                             f"{', '.join(map(repr, contacts.names[contacts.dry]))} here: declare it smooth instead, "
                             "Builder.friction(..., width=1e-3)")
        super().__init__(contacts, psi[:, None], motion.lam[:, None])
        self.of_unit = self.of_unit[:, 0]

    def coefficients(self, changes):
        """Derivatives of the coefficients of friction by the parameters, for each tangential row."""
        names = self.contacts.index[self.owner]
        return np.array([[sum(x for kind, k, x in own if kind == FRICTION and k == index) for own, _ in changes]
                         for index in names], dtype=float)
