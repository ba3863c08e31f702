"""Differential dynamic programming on the manifold of the constraints: plans, and model-predictive control."""

from liedyn.ddp.plan import Plan, PlanWarning, ddp
from liedyn.ddp.problem import Cost, Limits
from liedyn.ddp.solver import PlanError

__all__ = ["Cost", "Limits", "Plan", "PlanError", "PlanWarning", "ddp"]
