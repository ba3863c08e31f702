"""Control of constrained mechanisms by projection (Aghili 2005, section VII)."""

from liedyn.control.controllability import Controllability, controllability
from liedyn.control.inverse_dynamics import InverseDynamics, inverse_dynamics

__all__ = ["Controllability", "InverseDynamics", "controllability", "inverse_dynamics"]
