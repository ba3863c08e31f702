"""Force elements: springs, dampers, friction and other forces given by a law of a displacement and its rate.

A force element measures something, as a constraint does: the distance of two points, a sum of coordinates, or the
displacement of two frames in all six directions. A constraint keeps this quantity at zero by a force that follows from
the motion; an element lets it change and has a law for the force (`liedyn.model.laws`,
`liedyn.mechanics.elements.element_wrenches`):

    tau = -G^T f(x, xd)           G = dx/dv, the rows of the constraint that measures x

f > 0 pulls: it acts against x. So elements use the code of constraints, by a packed model with the elements as its
constraints, and their derivatives are exact. None of it is compiled for robots without elements.
"""
from liedyn.mechanics.elements.generalized import actuator_matrix, element_forces, element_states
from liedyn.mechanics.elements.lengths_of_cables import cable_lengths
from liedyn.mechanics.elements.tensions import tensions

__all__ = ["actuator_matrix", "cable_lengths", "element_forces", "element_states", "tensions"]
