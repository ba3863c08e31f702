"""Operating points: equilibria, steady motions, and branches of them over a parameter."""

from liedyn.tasks.operating_points.continuation import Branch, continuation
from liedyn.tasks.operating_points.special_points import SpecialPoint
from liedyn.tasks.operating_points.trim import trim
from liedyn.tasks.operating_points.trim_result import Trim, TrimError

__all__ = ["Branch", "SpecialPoint", "Trim", "TrimError", "continuation", "trim"]
