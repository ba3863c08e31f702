"""The program solved by SciPy: the trust-region interior-point method of Byrd, Hribar and Nocedal 1999 ("trust-constr").

It takes sparse Jacobians and a Hessian that need not be positive, and so can be given all that is known: it needs far
fewer iterations than SciPy's SLSQP, whose matrices are dense and whose Hessian is learnt from nothing.
"""
import warnings

import numpy as np
from scipy.optimize import Bounds, NonlinearConstraint, minimize

from liedyn.optimal_motion.solving import Stopped


def solve(problem, x, options):
    """Unknowns, multipliers of c and of the limits, iterations, status in words, and did it converge?"""
    problem_c = NonlinearConstraint(lambda x: problem.values(x)[1], problem.c_low, problem.c_high,
                                    jac=lambda x: problem.jacobian(x).tocsr(),
                                    hess=lambda x, multipliers: problem.hessian(x, multipliers, of_cost=0.0))
    bounded = np.isfinite(problem.low) | np.isfinite(problem.high)
    settings = {"maxiter": options.iterations, "gtol": options.optimality, "xtol": 1e-11,
                "sparse_jacobian": True, "initial_barrier_parameter": 1e-4 if options.warm else 0.1,
                "initial_barrier_tolerance": 1e-4 if options.warm else 0.1} | options.settings
    best = {"nit": 0, "v": [np.zeros(len(problem.c_low))] * 2}

    def after(_, state):
        best.update(nit=state.nit, v=state.v)
        problem.iterated(state.nit)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of matrices that are singular on the way: it regularises
        try:
            found = minimize(
                lambda x: problem.values(x)[0], x, jac=problem.gradient, hess=problem.cost_hessian,
                method="trust-constr", bounds=Bounds(problem.low, problem.high) if bounded.any() else None,
                constraints=[problem_c] if len(problem.c_low) else [], options=settings, callback=after)
        except Stopped:
            return problem.best, *_multipliers(best["v"], problem), best["nit"], "stopped", False
    status = "converged" if found.status in (1, 2) else found.message
    return found.x, *_multipliers(found.v, problem), found.nit, status, found.status in (1, 2)


def _multipliers(v, problem):
    v = [np.asarray(each) for each in v]
    of_c = next((each for each in v if len(each) == len(problem.c_low)), np.zeros(len(problem.c_low)))
    of_x = v[-1] if len(v) > 1 and len(v[-1]) == len(problem.low) else np.zeros(len(problem.low))
    return of_c, of_x
