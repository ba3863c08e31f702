"""Differential dynamic programming on the manifold of the constraints: plans, and model-predictive control."""

from liedyn.tasks.planning.mpc import MPC
from liedyn.tasks.planning.phase_schedule import Phase
from liedyn.tasks.planning.plan import Plan, PlanWarning, ddp
from liedyn.tasks.planning.planning_problem import Cost, Limits
from liedyn.tasks.planning.solver import PlanError

__all__ = ["Cost", "Limits", "MPC", "Phase", "Plan", "PlanError", "PlanWarning", "ddp"]
