"""Motion of mechanisms in time: integrators, stabilisation, events, results."""

from liedyn.simulation.coupler import VirtualCoupler
from liedyn.simulation.events import Event
from liedyn.simulation.integrators.adaptive import Adaptive
from liedyn.simulation.integrators.generalized_alpha import GeneralizedAlpha
from liedyn.simulation.one_step import step
from liedyn.simulation.preparation import Baumgarte
from liedyn.simulation.realtime import RealTimeLoop
from liedyn.simulation.sampled import Sampled
from liedyn.simulation.simulate import simulate
from liedyn.simulation.stepper import Stepper
from liedyn.simulation.trajectories import Trajectories
from liedyn.simulation.trajectory import EventRecord, Trajectory

__all__ = [
    "Adaptive", "Baumgarte", "Event", "EventRecord", "GeneralizedAlpha", "RealTimeLoop", "Sampled", "Stepper",
    "Trajectories", "Trajectory", "VirtualCoupler", "simulate", "step",
]
