"""Motion of mechanisms in time: integrators, stabilisation, events, results."""

from liedyn.simulation.events import Event
from liedyn.simulation.simulate import simulate
from liedyn.simulation.trajectory import EventRecord, Trajectory

__all__ = ["Event", "EventRecord", "Trajectory", "simulate"]
