"""Motion of mechanisms in time: integrators, stabilisation, events, results."""

from liedyn.motion.simulation.coupler import VirtualCoupler
from liedyn.motion.simulation.events import Event
from liedyn.motion.simulation.integrators.adaptive import Adaptive
from liedyn.motion.simulation.integrators.generalized_alpha import GeneralizedAlpha
from liedyn.motion.simulation.one_step import step
from liedyn.motion.simulation.preparation import Baumgarte
from liedyn.motion.simulation.realtime import RealTimeLoop
from liedyn.motion.simulation.sampled import Sampled
from liedyn.motion.simulation.simulate import simulate
from liedyn.motion.simulation.stepper import Stepper
from liedyn.motion.simulation.trajectories import Trajectories
from liedyn.motion.simulation.trajectory import EventRecord, Trajectory

__all__ = [
    "Adaptive", "Baumgarte", "Event", "EventRecord", "GeneralizedAlpha", "RealTimeLoop", "Sampled", "Stepper",
    "Trajectories", "Trajectory", "VirtualCoupler", "simulate", "step",
]
