"""The program solved by Ipopt, from CasADi's wheel (Waechter and Biegler 2006; Andersson et al. 2019).

Cost and constraints, their sparse Jacobians and the Hessian are passed to CasADi as callbacks, which evaluate the
program.
"""
from typing import TYPE_CHECKING

import numpy as np

from liedyn.machine.compiled.slices import interrupts_noted
from liedyn.machine.errors import InputError, LiedynError, said, shown


def solve(problem, x, options):
    """Unknowns, multipliers of c and of the limits, iterations, status as text, and whether it converged."""
    casadi = require_casadi()
    n, m = len(x), len(problem.c_low)
    interrupts = []
    make = _callbacks(casadi, interrupts)
    dense, sparse = casadi.Sparsity.dense, casadi.Sparsity(m, n, problem.indptr.tolist(), problem.indices.tolist())
    H = problem.hessian(x, np.zeros(m))
    upper, of_hessian = _upper(casadi, H, n)

    def values(x):
        cost, c = problem.values(x)
        return [cost, c]

    def slopes(x, *_):
        return [problem.gradient(x)[None], casadi.DM(sparse, problem.jacobian_entries(x))]

    def curvature(x, _, of_cost, multipliers):
        H = problem.hessian(x, multipliers, float(of_cost[0]))
        H.sort_indices()
        problem.iterated(curvature.count)
        curvature.count += 1
        return [casadi.DM(of_hessian, H.data[upper])]

    curvature.count = 0
    jacobian = make("slopes", slopes, [dense(n), casadi.Sparsity(1, 1), casadi.Sparsity(m, 1)], [dense(1, n), sparse])
    function = make("motion", values, [dense(n)], [dense(1), dense(m)], jacobian)
    hessian = make("curvature", curvature, [dense(n), casadi.Sparsity(0, 1), dense(1), dense(m)], [of_hessian])
    settings = {
        "hess_lag": hessian, "ipopt.tol": options.optimality, "ipopt.constr_viol_tol": options.feasibility,
        "ipopt.max_iter": options.iterations, "ipopt.print_level": 0, "ipopt.sb": "yes", "print_time": False,
        "error_on_fail": False, "calc_lam_p": False, "show_eval_warnings": False,
    } | ({"ipopt.warm_start_init_point": "yes", "ipopt.mu_init": 1e-5} if options.warm is not None else {})
    settings |= {f"ipopt.{name}": each for name, each in options.settings.items()}
    z = casadi.MX.sym("z", n)
    cost, c = function(z)
    try:
        solver = casadi.nlpsol("motion", "ipopt", {"x": z, "f": cost, "g": c}, settings)
    except Exception as error:  # CasADi raises RuntimeError and others for unknown options
        raise InputError(f"Ipopt does not take settings={shown(options.settings)}: {said(error)}") from error
    with interrupts_noted() as noted:
        interrupts.append(noted)
        found = solver(x0=x, lbx=problem.low, ubx=problem.high, lbg=problem.c_low, ubg=problem.c_high)
    stats = solver.stats()
    x, of_c, of_x = (np.asarray(found[name]).ravel() for name in ("x", "lam_g", "lam_x"))
    status = "converged" if stats["success"] else stats["return_status"].replace("_", " ").lower()
    return x, of_c, of_x, stats["iter_count"], status, bool(stats["success"])


def _upper(casadi, H, n):
    """Indices of the entries of H in its upper triangle, and their pattern."""
    H.sort_indices()
    columns = np.repeat(np.arange(n), np.diff(H.indptr))
    upper = np.flatnonzero(H.indices <= columns)
    starts = np.concatenate([[0], np.cumsum(np.bincount(columns[upper], minlength=n))])
    return upper, casadi.Sparsity(n, n, starts.tolist(), H.indices[upper].tolist())


def _callbacks(casadi, interrupts):
    """A constructor of CasADi functions from functions of arrays, with patterns of arguments and results. They fail as
    soon as the list `interrupts` is not empty: Ipopt then stops."""
    if not TYPE_CHECKING:  # they would take it for one of the module
        class Callback(casadi.Callback):
            def __init__(self, name, function, given, found, jacobian=None):
                casadi.Callback.__init__(self)
                self.function, self.given, self.found, self.jacobian_of_it = function, given, found, jacobian
                self.construct(name, {})

            def get_n_in(self):
                return len(self.given)

            def get_n_out(self):
                return len(self.found)

            def get_sparsity_in(self, i):
                return self.given[i]

            def get_sparsity_out(self, i):
                return self.found[i]

            def eval(self, arguments):
                if any(interrupts):
                    raise RuntimeError("interrupted")
                return self.function(*(np.asarray(each).ravel() for each in arguments))

            def has_jacobian(self):
                return self.jacobian_of_it is not None

            def get_jacobian(self, *_):
                return self.jacobian_of_it

    return Callback


def require_casadi():
    """CasADi's module; raises LiedynError if it is not installed."""
    try:
        import casadi
    except ImportError:
        raise LiedynError("solver='ipopt' needs CasADi: pip install 'liedyn[optimize]'") from None
    return casadi
