"""Linear-quadratic regulators on the manifold: at an operating point, along a motion, over a grid of equilibria."""

from liedyn.control.regulation.gain_schedule import GainSchedule, gain_schedule
from liedyn.control.regulation.lqr import Regulator, dlqr, lqr
from liedyn.control.regulation.tracking import TrackingRegulator, tvlqr

__all__ = ["GainSchedule", "Regulator", "TrackingRegulator", "dlqr", "gain_schedule", "lqr", "tvlqr"]
