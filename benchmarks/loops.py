"""Closed mechanisms: constrained accelerations f, and A, B and f together, against Pinocchio and against differences.

For each mechanism and each of several moving states that close its loops: f, the constrained accelerations alone; A, B
and f together; and A, B by central differences of f, every perturbed state assembled again. Differences are compared
with the exact A and B at several steps, and the smallest error is reported: how good they are if the step were known.
"""
import numpy as np

import liedyn as ld
from benchmarks import robots
from benchmarks.closures import closures
from benchmarks.compiled import cached_njit
from benchmarks.differences import differences
from benchmarks.errors import BenchmarkError, DisagreementError, MissingPeer, relative_difference
from benchmarks.native.peers import Machine, Tree
from benchmarks.tables import MISSING, markdown, median, microseconds, quotient, ratio
from benchmarks.targets import CONSTRAINED, DERIVED, LINEARIZATION, mark
from benchmarks.timing import Contender, race
from liedyn.linear.local import linearize_in_place, linearize_size, new_space
from liedyn.linear.space import Coordinates
from liedyn.mechanics.constraints.independent import choose
from liedyn.mechanics.dynamics.nullspace import RANK_TOLERANCE, acceleration_kernel, acceleration_size
from liedyn.mechanics.dynamics.state import State
from liedyn.model.calls.boundary import wrenches
from liedyn.model.packed import N_ROWS

TITLE = "Closed mechanisms and their linearization"
MECHANISMS = ("four_bar", "five_bar", "parallel_four_bar", "loader", "stewart", "delta", "cassie_like",
              "parallel_five_bar", "ladder6", "panda", "talos")
"""Bundled robots, and six parallelograms; the last two have no loops."""
QUICK_MECHANISMS = ("five_bar", "loader", "stewart", "delta", "cassie_like", "panda", "talos")
STATES = 32
STEPS = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7)
TIMED_STEP = 1e-5
"""The step that is timed: its size changes how often the assembly iterates, and little else."""
TOLERANCE = 1e-4
CONTENDERS = ("f", "exact", "differences", "python_f", "python_exact", "native_f", "native_exact")
SMALL = 20
"""Degrees of freedom up to which A, B and f should cost no more than LINEARIZATION evaluations of f."""

TEXT = """Microseconds of processor time per state, compiled code, one thread: median (lower and upper quartile). f:
constrained accelerations and multipliers. A, B, f: the local state space, reduced to p independent coordinates, in
given arrays (`linearize_in_place`). native:
Pinocchio's `constraintDynamics` in C++ with one proximal iteration (mu = 0, or 1e-10 where rows are redundant), and the
same with `computeConstraintDynamicsDerivatives`, not reduced to independent coordinates; it closes spherical cuts and
the revolute cuts of planar mechanisms by points (3 rows), fixed ones by frames (6 rows). Without loops it is `aba` and
`computeABADerivatives`. "its error": of Pinocchio's accelerations, relative to the largest. differences: A and B by
central differences of f in the same compiled code, every perturbed state assembled again with a frozen Newton matrix;
"error" is the largest against the exact A and B, relative to the largest entry, at the best of several steps. Targets
in brackets (A, B, f / f: at most 3, to 20 degrees of freedom). The last two columns are single calls from Python.
"""


@cached_njit
def accelerations_loop(model, q, v, tau, f_ext, tolerance):
    work, a, lam = np.empty(acceleration_size(model)), np.empty(v.shape[1]), np.empty(model.ints[N_ROWS])
    total = 0.0
    for s in range(len(q)):
        acceleration_kernel(model, q[s], v[s], tau[s], f_ext, tolerance, work, a, lam)
        total += a[0]
    return total


@cached_njit
def linearize_loop(model, q, v, tau, f_ext, R, virtual, actuators, tolerance):
    p, nu, coordinates, total = virtual.size, actuators.shape[1], Coordinates(R, virtual, R, virtual), 0.0
    work, space = np.empty(linearize_size(model, p, p, nu)), new_space(model, p, p, nu)
    for s in range(len(q)):
        linearize_in_place(model, State(q[s], v[s], tau[s], f_ext), coordinates, actuators, tolerance, work, space)
        total += space.A[0, 0]
    return total


@cached_njit
def differences_loop(model, q, v, tau, f_ext, R, virtual, actuators, tolerance, step, force, out):
    for s in range(len(q)):
        differences(model, q[s], v[s], tau[s], f_ext, R, virtual, actuators, tolerance, step, force, out)


def measure(effort, progress):
    """Time every mechanism.

    Returns
    -------
    list of dict

    Raises
    ------
    BenchmarkError
        The robot's independent coordinates include one of a cut joint.
    DisagreementError
        No step makes differences agree with the exact A.
    """
    rows = []
    for name in QUICK_MECHANISMS if effort.quick else MECHANISMS:
        progress(name)
        rows.append(row(name, effort))
    return rows


def choice_of(robot, q):
    """The robot's own independent coordinates.

    Raises
    ------
    BenchmarkError
        They include one of a cut joint.
    """
    chosen = choose(robot, q, None, RANK_TOLERANCE)
    if (chosen.virtual >= 0).any():
        raise BenchmarkError(f"{robot.name}: differences are taken in coordinates of the tree only")
    return chosen


def given(robot, q, v, tau):
    """What the loops over states take first, then the matrix of actuators and the number of independent coordinates."""
    chosen = choice_of(robot, q[0])
    f_ext = wrenches(robot, None, ())[0]
    return (robot.packed, q, v, tau, f_ext, chosen.rows, chosen.virtual), robot.actuator_matrix.copy(), len(
        chosen.names)


def row(name, effort, native=True):
    """One mechanism."""
    robot = robots.named(name)
    q, v, tau = robots.moving_states(robot, 4 if effort.quick else STATES, np.random.default_rng(1))
    packed, chosen = robot.packed, choice_of(robot, q[0])
    arguments, actuators, p = given(robot, q, v, tau)
    choice = f_ext, *_ = arguments[4:]
    exact = [ld.linearize(robot, *state, independent=chosen) for state in zip(q[:8], v, tau)]
    nu = actuators.shape[1]
    force = 1.0 / (max(np.abs(ss.B).max() for ss in exact) or 1.0)
    out = np.empty((p, 2 * p + nu))

    errors = {}
    for step in STEPS[1:5] if effort.quick else STEPS:
        errors[step] = 0.0
        for ss in exact:
            evaluations = differences(packed, ss.q, ss.v, ss.tau, *choice, actuators, RANK_TOLERANCE, step, force, out)
            errors[step] = max(errors[step], relative_difference(out[:, :2 * p], ss.A[p:]),
                               relative_difference(out[:, 2 * p:], ss.B[p:]))
    best = min(errors, key=errors.get)
    if not errors[best] <= TOLERANCE:
        raise DisagreementError(
            f"{robot.name}: differences and the exact A differ by {errors[best]:.2g} at the best step", errors[best])
    states = list(zip(q, v, tau))

    def called(function):
        def run():
            for state in states:
                function(robot, *state, independent=chosen.names)
        return Contender(run, len(q))

    native, its_error, missing = _native(name, q, v, tau, effort) if native else ({}, None, None)
    timings = race({
        "f": Contender(lambda: accelerations_loop(packed, q, v, tau, f_ext, RANK_TOLERANCE), len(q)),
        "exact": Contender(lambda: linearize_loop(*arguments, actuators, RANK_TOLERANCE), len(q)),
        "differences": Contender(
            lambda: differences_loop(*arguments, actuators, RANK_TOLERANCE, TIMED_STEP, force, out), len(q)),
        "python_f": called(ld.forward_dynamics),
        "python_exact": called(ld.linearize),
    } | native, effort)
    return {"robot": name, "nv": robot.nv, "rows": len(robot.row_names), "rank": int(exact[0].rank), "p": p, "nu": nu,
            "evaluations": int(evaluations), "error": errors[best], "step": best, "its_error": its_error,
            "missing": missing, "timings": {key: timings.get(key) for key in CONTENDERS}}


def _native(name, q, v, tau, effort):
    """Pinocchio's contenders, the error of its accelerations, and why it is missing."""
    if effort.quick:
        return {}, None, "not in quick runs"
    robot = robots.named(name)
    try:
        oracle = robots.oracle(name)
        given = tuple(map(np.ascontiguousarray, zip(*(oracle.to_pin(*state) for state in zip(q, v, tau)))))
        expected = np.array([ld.forward_dynamics(robot, *state).a for state in zip(q, v, tau)])
        a = np.empty_like(v)
        if not robot.loop_names:
            tree = Tree(oracle)
            timed = {key: Contender(tree.runs(algorithm, *given)[-1], len(q))
                     for key, algorithm in (("native_f", "aba"), ("native_exact", "aba_derivatives"))}
            tree.runs("aba", *given, out=a)[-1]()
        else:
            machine = Machine(oracle, closures(robot, oracle))
            machine.run(*given, 1e-12, 0.0, 1, a=a)
            mu = 0.0 if _relative_to_pin(oracle, a, expected) < TOLERANCE else 1e-10
            machine.run(*given, 1e-12, mu, 1, a=a)
            timed = {key: Contender(lambda d=d, mu=mu: machine.run(*given, 1e-12, mu, 1, d, a), len(q))
                     for key, d in (("native_f", False), ("native_exact", True))}
    except MissingPeer as error:
        return {}, None, str(error)
    error = _relative_to_pin(oracle, a, expected)
    if not error < TOLERANCE:
        raise DisagreementError(f"{name}: Pinocchio's constrained accelerations differ by {error:.2g}", error)
    return timed, error, None


def _relative_to_pin(oracle, a, expected):
    got = np.array([oracle.from_pin_v(row) for row in a])
    return relative_difference(got, expected) if np.isfinite(got).all() else np.inf


def report(rows):
    """The section in Markdown."""
    first = ("mechanism", "nv / rows / rank / p / nu", "f", "A, B, f", "native f", "native derivatives", "its error",
             "native f / f", "native derivatives / A, B, f", "A, B, f / f")
    second = ("mechanism", "differences", "evaluations of f", "differences / exact", "target", "error of differences",
              "ld.forward_dynamics", "ld.linearize")
    one, two, missing = [], [], {}
    for row in rows:
        t = row["timings"]
        if row["missing"]:
            missing[row["missing"]] = missing.get(row["missing"], []) + [row["robot"]]
        sizes = " / ".join(str(row[key]) for key in ("nv", "rows", "rank", "p", "nu"))
        cost = ratio(t["exact"], t["f"])
        if row["nv"] <= SMALL:
            cost = f"**{cost}** (3)" if quotient(t["exact"], t["f"]) <= LINEARIZATION else f"{cost} (3)"
        one.append((row["robot"], sizes, microseconds(t["f"]), microseconds(t["exact"]), microseconds(t["native_f"]),
                    microseconds(t["native_exact"]), MISSING if row["its_error"] is None else f"{row['its_error']:.0e}",
                    mark(quotient(t["native_f"], t["f"]), CONSTRAINED),
                    mark(quotient(t["native_exact"], t["exact"]), DERIVED), cost))
        two.append((row["robot"], microseconds(t["differences"]), str(row["evaluations"]),
                    ratio(t["differences"], t["exact"]), f"{differences_target(row):.1f}",
                    f"{row['error']:.1e} (step {row['step']:.0e})", median(t["python_f"]), median(t["python_exact"])))
    notes = "".join(f"\nMissing for {', '.join(names)}: native ({why}).\n" for why, names in missing.items())
    return f"{TEXT}\n{markdown(first, one)}\n{notes}\n{markdown(second, two)}\n"


def differences_target(row):
    """How many times faster than central differences the exact A, B and f should be: (4 p + 2 n) / 4."""
    return (4 * row["p"] + 2 * row["nv"]) / 4


def target_pairs(rows):
    """For the table of targets: job, peer, and the ratios of all mechanisms with their targets."""
    closed = [row["timings"] for row in rows if row["rank"]]
    yield "f", "constraintDynamics, C++", [(quotient(t["native_f"], t["f"]), CONSTRAINED) for t in closed]
    yield "A, B and f", "constraintDynamics + derivatives, C++", [
        (quotient(t["native_exact"], t["exact"]), DERIVED) for t in closed]
    yield f"3 f / (A, B and f), to {SMALL} degrees of freedom", "f", [
        (LINEARIZATION * quotient(row["timings"]["f"], row["timings"]["exact"]), 1.0)
        for row in rows if row["nv"] <= SMALL]
    yield "A, B and f / ((4 p + 2 n) / 4)", "central differences of f", [
        (quotient(row["timings"]["differences"], row["timings"]["exact"]) / differences_target(row), 1.0)
        for row in rows]
