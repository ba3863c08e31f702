"""Exact linearization against central differences of the reduced dynamics, in the same compiled code.

For each mechanism and each of several moving states that close its loops: f, the constrained accelerations alone; A, B
and f together; and A, B by central differences of f, every perturbed state assembled again. Differences are compared
with the exact A and B at several steps, and the smallest error is reported: how good they are if the step were known.
"""
from dataclasses import dataclass

import numpy as np

import liedyn as ld
from benchmarks.compiled import cached_njit
from benchmarks.differences import differences
from benchmarks.errors import BenchmarkError, DisagreementError, relative_difference
from benchmarks.tables import markdown, microseconds, ratio
from benchmarks.timing import Contender, race
from liedyn.boundary import wrenches
from liedyn.constraints.independent import choose
from liedyn.dynamics.nullspace import RANK_TOLERANCE, acceleration_kernel, acceleration_size
from liedyn.linearization.local import linearize_kernel
from liedyn.model.packed import N_ROWS

MECHANISMS = ("five_bar", "loader", "stewart", "delta", "cassie_like", "panda", "talos")
"""Bundled robots; the last two have no loops."""
STATES = 8
STEPS = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7)
TIMED_STEP = 1e-5
"""The step that is timed: its size changes how often the assembly iterates, and little else."""
SPREAD, SPEED = 0.02, 0.3
"""Size of the random steps away from home, and of the random velocities [rad, m; rad/s, m/s]."""
TOLERANCE = 1e-4
CONTENDERS = ("f", "exact", "differences", "python_f", "python_exact")


@dataclass(frozen=True)
class Row:
    """Times for one mechanism, the number of evaluations of f in its differences, and their error in A."""

    robot: str
    coordinates: int
    constraint_rows: int
    rank: int
    freedoms: int
    inputs: int
    evaluations: int
    error: float
    step: float
    timings: dict


@cached_njit
def accelerations_loop(ints, floats, q, v, tau, f_ext, tolerance):
    work, a, lam = np.empty(acceleration_size(ints)), np.empty(v.shape[1]), np.empty(ints[N_ROWS])
    total = 0.0
    for s in range(len(q)):
        acceleration_kernel(ints, floats, q[s], v[s], tau[s], f_ext, tolerance, work, a, lam)
        total += a[0]
    return total


@cached_njit
def linearize_loop(ints, floats, q, v, tau, f_ext, R, virtual, actuators, tolerance):
    total = 0.0
    for s in range(len(q)):
        local = linearize_kernel(
            ints, floats, q[s], v[s], tau[s], f_ext, R, virtual, R, virtual, actuators, tolerance)[2]
        total += local.A[0, 0]
    return total


@cached_njit
def differences_loop(ints, floats, q, v, tau, f_ext, R, virtual, actuators, tolerance, step, force, out):
    for s in range(len(q)):
        differences(ints, floats, q[s], v[s], tau[s], f_ext, R, virtual, actuators, tolerance, step, force, out)


def moving_states(robot, count, rng):
    """States that close the loops, their velocities, and forces for accelerations of order one in the open tree.

    Returns
    -------
    q, v, tau : ndarray
        Shapes (count, nq), (count, nv), (count, nv).
    """
    states = []
    for _ in range(count):
        q = ld.integrate(robot, robot.home, SPREAD * rng.normal(size=robot.nv))
        v = SPEED * rng.normal(size=robot.nv)
        if robot.loop_names:
            q = ld.close(robot, q)
            G = ld.constraint_jacobian(robot, q)
            v -= np.linalg.pinv(G, rcond=RANK_TOLERANCE) @ (G @ v)
        states.append((q, v, ld.rnea(robot, q, v, rng.normal(size=robot.nv))))
    return tuple(np.array(x) for x in zip(*states))


def measure(effort, progress):
    """Time every mechanism.

    Parameters
    ----------
    effort : Effort
    progress : callable
        Called with the name of what is timed next.

    Returns
    -------
    list of Row

    Raises
    ------
    BenchmarkError
        The robot's independent coordinates include one of a cut joint.
    DisagreementError
        No step makes differences agree with the exact A.
    """
    rows = []
    for name in MECHANISMS:
        progress(name)
        rows.append(_measure(ld.load(name), effort))
    return rows


def _measure(robot, effort):
    q, v, tau = moving_states(robot, STATES, np.random.default_rng(1))
    chosen = choose(robot, q[0], None, RANK_TOLERANCE)
    if (chosen.virtual >= 0).any():
        raise BenchmarkError(f"{robot.name}: differences are taken in coordinates of the tree only")
    packed = (robot.ints, robot.floats)
    f_ext, actuators = wrenches(robot, None, ())[0], robot.actuator_matrix.copy()
    choice = (f_ext, chosen.rows, chosen.virtual)
    exact = [ld.linearize(robot, *state, independent=chosen) for state in zip(q, v, tau)]
    p, nu = len(chosen.names), actuators.shape[1]
    force = 1.0 / (max(np.abs(ss.B).max() for ss in exact) or 1.0)
    out = np.empty((p, 2 * p + nu))

    errors = {}
    for step in STEPS:
        errors[step] = 0.0
        for ss in exact:
            evaluations = differences(*packed, ss.q, ss.v, ss.tau, *choice, actuators, RANK_TOLERANCE, step, force, out)
            errors[step] = max(errors[step], relative_difference(out[:, :2 * p], ss.A[p:]),
                               relative_difference(out[:, 2 * p:], ss.B[p:]))
    best = min(errors, key=errors.get)
    if not errors[best] <= TOLERANCE:
        raise DisagreementError(
            f"{robot.name}: differences and the exact A differ by {errors[best]:.2g} at the best step", errors[best])
    states, given = list(zip(q, v, tau)), (*packed, q, v, tau, *choice)

    def called(function):
        def run():
            for state in states:
                function(robot, *state, independent=chosen)
        return Contender(run, STATES)

    timings = race({
        "f": Contender(lambda: accelerations_loop(*packed, q, v, tau, f_ext, RANK_TOLERANCE), STATES),
        "exact": Contender(lambda: linearize_loop(*given, actuators, RANK_TOLERANCE), STATES),
        "differences": Contender(
            lambda: differences_loop(*given, actuators, RANK_TOLERANCE, TIMED_STEP, force, out), STATES),
        "python_f": called(ld.forward_dynamics),
        "python_exact": called(ld.linearize),
    }, effort)
    return Row(robot.name, robot.nv, len(robot.row_names), exact[0].rank, p, nu, evaluations, errors[best], best,
               timings)


def table(rows):
    """The rows as Markdown."""
    heading = ("mechanism", "nv / rows / rank / p / nu", "f", "A, B, f exact", "differences", "evaluations",
               "exact / f", "differences / exact", "error of differences", "ld.forward_dynamics", "ld.linearize")
    lines = []
    for row in rows:
        f, exact, by_differences, python_f, python_exact = (row.timings[key] for key in CONTENDERS)
        sizes = " / ".join(map(str, (row.coordinates, row.constraint_rows, row.rank, row.freedoms, row.inputs)))
        lines.append((row.robot, sizes, *map(microseconds, (f, exact, by_differences)), str(row.evaluations),
                      ratio(exact, f), ratio(by_differences, exact), f"{row.error:.1e} (step {row.step:.0e})",
                      *map(microseconds, (python_f, python_exact))))
    return markdown(heading, lines)
