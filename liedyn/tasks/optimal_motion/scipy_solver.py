"""The program solved by SciPy: the trust-region interior-point method of Byrd, Hribar and Nocedal 1999, "trust-constr".

It accepts sparse Jacobians and an indefinite Hessian, so that all exact derivatives can be used: it needs far
fewer iterations than SciPy's SLSQP, whose matrices are dense and whose Hessian is approximated from the identity.
"""
# mypy: ignore-errors
import warnings
from collections import deque

import numpy as np
from scipy.optimize import Bounds, NonlinearConstraint, minimize

BARRIER = 1e-8
"""The barrier parameter at a solution, relative to the scale of the cost. SciPy
itself stops at a small gradient, whatever the barrier."""
NEVER = 1e-300
FLAT = 30
"""Number of iterations with a relative change of the cost below 1e-9 that ends the search if the gradient is small."""
STARTS = 6
"""Number of restarts if the trust region shrinks to nothing before the solution."""
SETTINGS = ("initial_tr_radius", "initial_constr_penalty", "initial_barrier_parameter", "initial_barrier_tolerance",
            "xtol")
"""Options of SciPy that users may set, all of them positive numbers."""


def solve(problem, x, options):
    """Unknowns, multipliers of c and of the limits, iterations, status as text, and whether it converged."""
    rows = NonlinearConstraint(lambda x: problem.values(x)[1], problem.c_low, problem.c_high,
                               jac=lambda x: problem.jacobian(x).tocsr(),
                               hess=lambda x, multipliers: problem.hessian(x, multipliers, of_cost=0.0))
    bounded = np.isfinite(problem.low) | np.isfinite(problem.high)
    solved, made, costs, mu = [], 0, deque(maxlen=FLAT + 1), 1e-4 if options.warm is not None else 0.1

    def after(_, state):
        problem.iterated(made + state.nit)
        costs.append(state.fun)
        if getattr(state, "barrier_parameter", 0.0) <= BARRIER and state.constr_violation < options.feasibility:
            if state.optimality < options.optimality:
                solved.append("converged")
            elif state.optimality < 100.0 * options.optimality and len(costs) > FLAT and (
                    max(costs) - min(costs) < 1e-9 * abs(costs[-1])):
                solved.append("converged, as the cost ceased to change")
        return bool(solved)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about singular matrices of iterates, which it regularises
        for _ in range(STARTS):
            settings = {"maxiter": options.iterations - made, "gtol": NEVER, "xtol": 1e-11,
                        "initial_barrier_parameter": mu, "initial_barrier_tolerance": mu} | options.settings
            found = minimize(
                lambda x: problem.values(x)[0], x, jac=problem.gradient, hess=problem.cost_hessian,
                method="trust-constr", bounds=Bounds(problem.low, problem.high) if bounded.any() else None,
                constraints=[rows] if len(problem.c_low) else [], options=settings, callback=after)
            made += found.nit
            if solved or made >= options.iterations or problem.failures or np.array_equal(x, found.x):
                break
            x, mu = np.clip(found.x, problem.low, problem.high), 1e-4
    status = solved[0] if solved else ("its limit of iterations" if made >= options.iterations else
                                         "its steps have become too short")
    return found.x, *_multipliers(found.v, problem), made, status, bool(solved)


def _multipliers(v, problem):
    v = [np.asarray(each) for each in v]
    of_c = next((each for each in v if len(each) == len(problem.c_low)), np.zeros(len(problem.c_low)))
    of_x = v[-1] if len(v) > 1 and len(v[-1]) == len(problem.low) else np.zeros(len(problem.low))
    return of_c, of_x
