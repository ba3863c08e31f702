"""Operating points: equilibria and steady motions, and branches of them."""

from liedyn.operating_points.continuation import Branch, SpecialPoint, continuation
from liedyn.operating_points.trim import Trim, TrimError, trim

__all__ = ["Branch", "SpecialPoint", "Trim", "TrimError", "continuation", "trim"]
