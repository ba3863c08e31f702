"""Arrays of the derivatives of steps (`liedyn.motion.gradients.step_derivatives`)."""
from collections import namedtuple

import numpy as np

from liedyn.linear.sensitivity.changes import CHANGES
from liedyn.linear.sensitivity.element_sensitivity import element_partials_size
from liedyn.linear.sensitivity.law_sensitivity import SLOPES
from liedyn.linear.sensitivity.variations import partials_size
from liedyn.machine.compiled.jit import VECTOR, group, kernel
from liedyn.motion.simulation.integrators.derivatives import make_derivatives

Room = namedtuple("Room", "at_rest unit inputs changes of_elements partials q_start v_start q_rate a q theta v forces "
                          "rates Y out L gram influence order shift mu number theta_star held "
                          "derivatives")
"""Scratch arrays of a step with C columns: numbers of a model at rest; the identity (nu, nu), its effect as inputs
(n, nu); changes by parameters, those of force elements, and partial derivatives; variations of the numbers of q (nq, C)
and of v (n, C) at the start, of their rates at the stages, and of one stage, theta in its tangent space; right sides,
with one more column for each contact that may slide; vectors; for a projection (n, C) theta at its beginning, and
the effect of its metric on corrections; and `Derivatives` of the equations."""

Partials = namedtuple("Partials", "force phi psi g force_0 phi_0 psi_0 g_0 work")
"""By parameters: of ID + G^T lambda (n, np), of phi, psi and g (m, np); the same at a = 0, lambda = 0; and scratch."""

OfElements = namedtuple("OfElements", "changes slopes work")
"""Changes of force elements (`liedyn.linear.sensitivity.element_sensitivity`), slopes of laws, and scratch."""

OF_ELEMENTS = group(OfElements, CHANGES, SLOPES, VECTOR)
"""Its type, for `liedyn.machine.compiled.jit.late`."""

StepDerivatives = namedtuple("StepDerivatives", "by_state by_inputs by_parameters by_length")
"""Derivatives of (theta, v) at the ends of steps, (steps, 2 n, ...), the last axis 2 n, nu, np, or none."""


@kernel
def make_room(model, x, changes, of_elements, slopes):
    """Arrays for the steps of a run with workspace x and for its parameters (`liedyn.linear.sensitivity.changes`)."""
    m, n = x.G.shape
    parameters = changes.first.size - 1
    slides = x.friction.solution.size
    partials = Partials(
        np.zeros((n, parameters)), np.zeros((m, parameters)), np.zeros((m, parameters)), np.zeros((m, parameters)),
        np.zeros((n, parameters)), np.zeros((m, parameters)), np.zeros((m, parameters)), np.zeros((m, parameters)),
        np.empty(partials_size(model, parameters)))
    elements = OfElements(of_elements, slopes, np.empty(element_partials_size(x.elements, slopes.owners.size)))
    nq, stages, nu = x.q_stage.size, x.a_stage.shape[0], x.actuators.shape[1]
    C = 2 * n + nu + parameters + 1
    return Room(
        model.floats.copy(), np.eye(nu), np.zeros((n, nu)), changes, elements, partials, np.zeros((nq, C)),
        np.zeros((n, C)), np.zeros((stages, nq, C)), np.zeros((stages, n, C)), np.zeros((nq, C)), np.zeros((n, C)),
        np.zeros((n, C)), np.zeros((n, C + slides)), np.zeros((m, C + slides)), np.zeros((m, n + C + slides)),
        np.zeros((n, C + slides)), np.zeros((n, n)), np.zeros((m, m)), np.zeros((slides, slides)),
        np.zeros(max(m, 1), np.int64), np.zeros(n), np.zeros(m), np.zeros((4, max(nq, n, m))), np.zeros((n, C)),
        np.zeros((n, C)), make_derivatives(model, x))
