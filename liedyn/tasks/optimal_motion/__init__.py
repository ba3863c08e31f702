"""Optimal motions of trees and closed mechanisms: direct collocation and multiple shooting in charts of the manifold.

| file | what it has |
|---|---|
| `charts` | tangent-space charts of the constraint manifold, many states at once |
| `dynamics` | accelerations there with exact derivatives, rates in charts |
| `samples` | the unknowns; states and inputs with their derivatives by them |
| `collocation`, `shooting` | two transcriptions |
| `cost`, `limits`, `conditions`, `path_functions` | what is wanted |
| `demands` | all of that, as users give it |
| `between_nodes` | limits between the nodes |
| `program` | all of it as a nonlinear program |
| `lagrangian` | second derivatives of the motion; the exact Hessian of the Lagrangian |
| `solving` | the program as solvers see it; Hessians that are not known, learnt node by node |
| `interior_point`, `scipy_solver`, `ipopt_solver`; `nlp_solver` | solvers; what they are told |
| `guess`, `flow`, `refinement` | first guesses; integration for comparison; finer meshes |
| `optimal_motion_result`, `optimize` | the result; the public function |
"""
from liedyn.tasks.optimal_motion.nlp_solver import NLPSolver
from liedyn.tasks.optimal_motion.optimal_motion_result import MotionWarning, OptimalMotion, OptimizationError
from liedyn.tasks.optimal_motion.optimize import optimize_motion
from liedyn.tasks.optimal_motion.path_functions import PathFunction, clearance

__all__ = ["MotionWarning", "NLPSolver", "OptimalMotion", "OptimizationError", "PathFunction", "clearance",
           "optimize_motion"]
