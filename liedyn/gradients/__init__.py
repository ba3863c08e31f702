"""Derivatives of whole runs, exact for the steps of the integrator itself: forwards and backwards in time."""
from liedyn.gradients.run import RunDerivatives, RunGradient, RunVariation, differentiate_run

__all__ = ["RunDerivatives", "RunGradient", "RunVariation", "differentiate_run"]
