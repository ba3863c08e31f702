"""Control of constrained mechanisms by projection (Aghili 2005, section VII)."""

from liedyn.control.constrained.controllability import Controllability, controllability
from liedyn.control.constrained.hybrid import HybridController
from liedyn.control.constrained.inverse_dynamics import InverseDynamics, inverse_dynamics
from liedyn.control.constrained.pidc import PIDC

__all__ = ["PIDC", "Controllability", "HybridController", "InverseDynamics", "controllability", "inverse_dynamics"]
