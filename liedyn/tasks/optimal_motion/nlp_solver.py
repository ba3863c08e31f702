"""Solvers of nonlinear programs and their options."""
# mypy: ignore-errors

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from liedyn.machine.arguments import positive, whole
from liedyn.machine.errors import InputError, shown, suggestion
from liedyn.tasks.optimal_motion import interior_point, ipopt_solver, scipy_solver
from liedyn.tasks.optimal_motion.solving import Options

if TYPE_CHECKING:
    from typing import Any

SOLVERS = {"liedyn": interior_point.solve, "scipy": scipy_solver.solve, "ipopt": ipopt_solver.solve}
SETTINGS = {"liedyn": interior_point.SETTINGS, "scipy": scipy_solver.SETTINGS}
"""Settings by name, all of them positive numbers; Ipopt checks its own."""


@dataclass(frozen=True)
class NLPSolver:
    """A solver of nonlinear programs with its options, for the argument `solver` of `optimize_motion`.

    Parameters
    ----------
    name : {"liedyn", "scipy", "ipopt"}
        The library's own sparse interior-point method; SciPy's trust-region method ("trust-constr"); or Ipopt from
        CasADi's wheel (``liedyn[optimize]``).
    iterations : int
        Largest number of iterations on each mesh.
    feasibility : float
        Largest violation of a row of the program.
    optimality : float
        Largest component of the gradient of the scaled Lagrangian.
    settings : dict, optional
        Further options by the solver's own names; for ``"liedyn"`` the first barrier parameter ``mu`` and the first
        distance ``push`` from limits, ``warm_mu`` and ``warm_push`` on finer meshes.

    Raises
    ------
    InputError
        The solver or a setting is unknown, or a number is not positive.
    LiedynError
        Ipopt is chosen, but CasADi is not installed.

    Examples
    --------
    >>> import liedyn as ld
    >>> arm = ld.load("five_bar")
    >>> goal = ld.close(arm, arm.home, q1=arm.home[0] + 0.2, q2=arm.home[1])
    >>> precise = ld.NLPSolver("liedyn", optimality=1e-9, iterations=50)
    >>> ld.optimize_motion(arm, arm.home, goal, duration=0.5, intervals=4, solver=precise).outcome
    'converged'
    """

    name: str = "liedyn"
    iterations: int = 500
    feasibility: float = 1e-8
    optimality: float = 1e-6
    settings: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or self.name not in SOLVERS:
            raise InputError(f"unknown solver {shown(self.name)}, {suggestion(self.name, SOLVERS)}")
        settings = {} if self.settings is None else self.settings
        if not isinstance(settings, dict) or not all(isinstance(key, str) for key in settings):
            raise InputError(f"settings must be a dict of the solver's options by name, got {shown(settings)}")
        if self.name == "ipopt":
            ipopt_solver.require_casadi()
        else:
            _check(self.name, settings)
        for name, x in (("iterations", whole("iterations", self.iterations, 1)),
                        ("feasibility", positive("feasibility", self.feasibility)),
                        ("optimality", positive("optimality", self.optimality)), ("settings", dict(settings))):
            object.__setattr__(self, name, x)

    @property
    def options(self) -> dict[str, Any]:
        """`Options` of a cold start."""
        return Options(self.iterations, self.optimality, self.feasibility, self.settings, None)


def _check(solver, settings):
    """InputError for a setting that does not exist, or is no positive number."""
    known = SETTINGS[solver]
    for name, x in settings.items():
        if name not in known:
            raise InputError(f"unknown option {shown(name)} in settings of the solver {solver!r}, "
                             f"{suggestion(name, known)}")
        positive(f"settings[{name!r}]", x)


def nlp_solver(solver):
    """The `NLPSolver` for a name; an `NLPSolver` is returned as it is."""
    return solver if isinstance(solver, NLPSolver) else NLPSolver(solver)
