"""Events at the edges of surfaces that end (`Builder.constraint` with an `extent`).

A contact whose point comes over the edge is switched off, and on again when the point is inside and above: events as
users make them (`liedyn.motion.simulation.events`).
"""
from liedyn.mechanics.contact.contact_state import DEEPEST, place_on, surfaces_that_end
from liedyn.model.packed import LOOP_ACTIVE, OFF, OPEN, constraints_of
from liedyn.motion.simulation.events import Event

SCALE = 10.0
"""Factor of guards, so that they are above the depth that counts as contact where a gap is zero."""


def edges(robot):
    """The events of all surfaces that end."""
    found = []
    for each in surfaces_that_end(robot).values():
        def ends(t, q, v, each=each):
            return -place_on(robot, each, q)[0]

        def begins(t, q, v, each=each):
            inside, gap = place_on(robot, each, q)
            # from one surface to the next one, beside it, a point may be as deep; an impact is no beginning (`SCALE`)
            return SCALE * min(inside, gap + 0.5 * DEEPEST)

        found += [Event(f"{each.name} ends", ends, 1, off=each.name),
                  Event(f"{each.name} begins", begins, 1, on=each.name)]
    return tuple(found)


def leave_surfaces(robot, model, q):
    """Switches the contacts in `model` off that are beyond the edge at q, or below the surface."""
    records, _ = constraints_of(model)
    for k, each in surfaces_that_end(robot).items():
        inside, gap = place_on(robot, each, q)
        if records[k, LOOP_ACTIVE] == OPEN and (inside < 0.0 or gap < -DEEPEST):
            records[k, LOOP_ACTIVE] = OFF
