"""Steps in canonical momenta beside steps in velocities: time, accuracy and energy."""
import contextlib
import warnings

import numpy as np

import liedyn as ld
from benchmarks.tables import markdown, median
from benchmarks.timing import Contender, race

TITLE = "Steps in momenta and in velocities"
ROBOTS, QUICK_ROBOTS = ("pendulum", "panda", "five_bar", "loader"), ("pendulum",)
FORMULATIONS, METHODS = ("nullspace", "momenta"), ("rk4", "gauss4")
BLOCK, DT, SHORT, LONG = 100, 1e-2, 1.0, 100.0

TEXT = f"""From a moving start under gravity, projected on constraints. Microseconds of processor time per step of 1 ms
(`Stepper.advance` of {BLOCK}); largest error of q after {SHORT:g} s at {DT:g} s, against DOP853 to 1e-13; and how far
the energy [J] is off on the way, and at the end, over {LONG:g} s at {DT:g} s (dampers and their work included). It
stops where the iteration does not converge.
"""


def measure(effort, progress):
    """Time every robot.

    Returns
    -------
    list of dict
    """
    rows = []
    for name in QUICK_ROBOTS if effort.quick else ROBOTS:
        progress(name)
        robot, q, v = _start(name)
        steppers = {(formulation, method): ld.Stepper(robot, q, v, 1e-3, method=method, formulation=formulation)
                    for formulation in FORMULATIONS for method in METHODS}
        times = race({key: Contender(lambda stepper=stepper: _again(stepper), BLOCK)
                      for key, stepper in steppers.items()}, effort)
        exact = ld.simulate(robot, q, v, SHORT, method=ld.Adaptive("DOP853", 1e-13, 1e-13), progress=False)
        for formulation, method in steppers:
            rows.append({"robot": name, "formulation": formulation, "method": method,
                         "timings": {"liedyn": times[formulation, method]},
                         **_accuracy(robot, q, v, exact.q[-1], formulation, method, 0.1 if effort.quick else 1.0)})
    return rows


def _start(name):
    """A robot at home, moving as its constraints allow."""
    if name == "pendulum":
        builder = ld.Builder("pendulum")
        for body, parent, at in (("upper", "ground", 0.0), ("lower", "upper", 1.0)):
            builder.body(body, 1.0, (0.5, 0.0, 0.0), (0.01, 0.09, 0.09))
            builder.joint(body, "revolute", parent, body, (at, 0.0, 0.0), axis=(0.0, 1.0, 0.0))
        return builder.build(), np.array([0.3, 0.4]), np.array([0.5, -0.2])
    robot = ld.load(name)
    q = ld.close(robot, robot.home)
    G, v = ld.constraint_jacobian(robot, q), np.full(robot.nv, 0.3)
    return robot, q, v - np.linalg.pinv(G, rcond=1e-9) @ (G @ v)


def _again(stepper):
    """The same steps from the start, which takes one evaluation more."""
    stepper.reset(start="as given")
    stepper.advance(BLOCK)


def _accuracy(robot, q, v, exact, formulation, method, part):
    """Error and energies of a method; None where it stops."""
    options = {"dt": DT, "method": method, "formulation": formulation, "progress": False}
    found = {"error": None, "way": None, "end": None}
    with warnings.catch_warnings(), contextlib.suppress(ld.SimulationError):
        warnings.simplefilter("ignore", ld.ConditionWarning)  # steps are long on purpose
        short = ld.simulate(robot, q, v, SHORT, **options)
        found["error"] = float(np.abs(ld.difference(robot, exact, short.q[-1])).max())
        drift = np.abs(ld.simulate(robot, q, v, part * LONG, record=10, **options).energy_drift)
        found |= {"way": float(drift.max()), "end": float(drift[-1])}
    return found


def report(rows):
    """The section in Markdown."""
    lines = [(row["robot"], row["formulation"], row["method"], median(row["timings"]["liedyn"]),
              *("stops" if row[key] is None else f"{row[key]:.1e}" for key in ("error", "way", "end"))) for row in rows]
    return f"{TEXT}\n" + markdown(("robot", "formulation", "method", "step", "error", "energy", "at the end"), lines)
