"""Control of constrained mechanisms by projection (Aghili 2005, section VII)."""

from liedyn.control.controllability import Controllability, controllability
from liedyn.control.hybrid import HybridController
from liedyn.control.inverse_dynamics import InverseDynamics, inverse_dynamics
from liedyn.control.pidc import PIDC

__all__ = ["PIDC", "Controllability", "HybridController", "InverseDynamics", "controllability", "inverse_dynamics"]
