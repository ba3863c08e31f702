"""Operating points: equilibria and steady motions, and branches of them."""

from liedyn.operating_points.continuation import Branch, continuation
from liedyn.operating_points.result import Trim, TrimError
from liedyn.operating_points.special_points import SpecialPoint
from liedyn.operating_points.trim import trim

__all__ = ["Branch", "SpecialPoint", "Trim", "TrimError", "continuation", "trim"]
