"""Operating points: equilibria and steady motions."""

from liedyn.operating_points.trim import Trim, TrimError, trim

__all__ = ["Trim", "TrimError", "trim"]
