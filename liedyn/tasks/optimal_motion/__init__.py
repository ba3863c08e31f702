"""Optimal motions of trees and closed mechanisms: direct collocation and multiple shooting in charts of the manifold.

| file | content |
|---|---|
| `charts` | tangent-space charts of the constraint manifold, many states at once |
| `dynamics` | accelerations at states with exact derivatives, rates in charts |
| `samples` | the unknowns; states and inputs with their derivatives by the unknowns |
| `collocation`, `shooting` | two transcriptions |
| `cost`, `limits`, `path_functions` | terms of the cost and of the constraints |
| `demands` | conditions, and all of these, from the arguments of `optimize_motion` |
| `between_nodes` | limits between the nodes |
| `program` | the nonlinear program |
| `lagrangian` | second derivatives of the motion; the exact Hessian of the Lagrangian |
| `solving` | the program in the form of solvers; approximation of unknown Hessians, node by node |
| `interior_point`, `scipy_solver`, `ipopt_solver`; `nlp_solver` | solvers; their options |
| `guess`, `flow`, `refinement` | first guesses; integration for comparison; finer meshes |
| `optimal_motion_result`, `optimize` | the result; the public function |
"""
from liedyn.tasks.optimal_motion.nlp_solver import NLPSolver
from liedyn.tasks.optimal_motion.optimal_motion_result import MotionWarning, OptimalMotion, OptimizationError
from liedyn.tasks.optimal_motion.optimize import optimize_motion
from liedyn.tasks.optimal_motion.path_functions import PathFunction, clearance, separation

__all__ = ["MotionWarning", "NLPSolver", "OptimalMotion", "OptimizationError", "PathFunction", "clearance",
           "optimize_motion", "separation"]
