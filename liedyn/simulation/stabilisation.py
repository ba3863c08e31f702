"""Which way a state is brought back to its constraints."""
from liedyn.jit import kernel_in_place
from liedyn.simulation.minimal import choose, complete, has_fallen
from liedyn.simulation.projection import project
from liedyn.simulation.workspace import MINIMAL, OK, PROJECTION


@kernel_in_place
def on_constraints(model, o, x, h, energy, q, v):
    """Project (q, v), or complete it from its independent coordinates, or leave it; returns a status."""
    if o.stabilisation == PROJECTION:
        return project(model, o, x, h, energy, q, v)
    if o.stabilisation == MINIMAL:
        if has_fallen(x):
            choose(model, o, x, q)
        return complete(model, o, x, q, v)
    return OK
