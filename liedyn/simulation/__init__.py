"""Motion of mechanisms in time: integrators, stabilisation, events, results."""

from liedyn.simulation.events import Event
from liedyn.simulation.integrators.adaptive import Adaptive
from liedyn.simulation.integrators.generalized_alpha import GeneralizedAlpha
from liedyn.simulation.preparation import Baumgarte
from liedyn.simulation.simulate import simulate
from liedyn.simulation.trajectory import EventRecord, Trajectory

__all__ = ["Adaptive", "Baumgarte", "Event", "EventRecord", "GeneralizedAlpha", "Trajectory", "simulate"]
