"""Differential dynamic programming on the manifold of the constraints: plans, and model-predictive control."""

from liedyn.planning.mpc import MPC
from liedyn.planning.plan import Plan, PlanWarning, ddp
from liedyn.planning.problem import Cost, Limits
from liedyn.planning.schedule import Phase
from liedyn.planning.solver import PlanError

__all__ = ["Cost", "Limits", "MPC", "Phase", "Plan", "PlanError", "PlanWarning", "ddp"]
