"""The recursions on open trees, one state after another: liedyn and Pinocchio, from compiled code and from Python.

Contenders do the same work on the same distinct states. "native" is Pinocchio's C++ compiled for this machine and
looped in C++, in its faster variant where it has two; "pin" is its wheel called from Python; "python" and "out" are
liedyn's public functions called from Python; "njit" is liedyn's kernel in a user's ``@njit`` loop.
"""
import inspect
from itertools import repeat

import numpy as np

import liedyn as ld
from benchmarks import recursions, robots
from benchmarks.errors import MissingPeer, require_agreement
from benchmarks.native.peers import Tree
from benchmarks.tables import MISSING, markdown, median, microseconds, quotient, ratio
from benchmarks.targets import NAMES, NJIT, PYTHON, group, mark
from benchmarks.timing import Contender, race

TITLE = "Open trees, one state at a time"
ROBOTS = ("panda", "ur5", "solo12", "talos", "chain10", "chain20", "chain50", "chain100", "chain200")
QUICK_ROBOTS = ("panda", "talos")
TIPS = {"panda": "panda_hand_tcp", "talos": "arm_left_7_link"}
"""Bodies of the Jacobians; the last one of all others."""
ALGORITHMS = tuple(recursions.LOOPS)
QUICK_ALGORITHMS = ALGORITHMS[:6]
CONTENDERS = ("native", "pin", "python", "out", "njit")
TOLERANCE = 1e-7
"""Of the largest entry; the longest chains multiply rounding by 1e6."""

TEXT = """Microseconds of processor time per state: median (lower and upper quartile). One thread, contenders
interleaved, the same distinct states for all. native: Pinocchio's C++, `-O3 -march=native`, looped over the states in
C++, the faster of its variants; njit: liedyn's kernel in a user's `@njit` loop; pin: Pinocchio's wheel called from
Python; liedyn, Python: the public function; `out=`: the same with results written into given arrays; best: the faster
of the two. Ratios of medians, above one where liedyn is faster, with the target in brackets, bold where it is reached.
liedyn checks its input wherever it is called from Python. Pinocchio's derivatives of a Jacobian to time or coordinates
include the Jacobians of all joints: it has no others.
"""


def states(robot, algorithm):
    """Distinct states, fewer for larger robots; for `aba` forces that lead to accelerations of order one."""
    rng = np.random.default_rng(0)
    count = int(np.clip(1280 // robot.nv, 8, 128))
    q = ld.random_configuration(robot, rng, count)
    v, x = rng.normal(size=(2, count, robot.nv))
    return q, v, ld.rnea(robot, q, v, x) if algorithm.startswith("aba") else x


def arguments(algorithm, q, v, x, body):
    """What the public function takes after the robot."""
    return {"crba": (q,), "forward_kinematics": (q,), "body_jacobian": (q, body), "body_jacobian_dq": (q, body),
            "body_jacobian_dot": (q, v, body)}.get(algorithm, (q, v, x))


def measure(effort, progress):
    """Time every algorithm on every robot.

    Returns
    -------
    list of dict
        robot, algorithm, timings by contender (None for a missing one).

    Raises
    ------
    DisagreementError
        Pinocchio and liedyn differ.
    """
    rows = []
    for name in QUICK_ROBOTS if effort.quick else ROBOTS:
        for algorithm in QUICK_ALGORITHMS if effort.quick else ALGORITHMS:
            progress(f"{name} {algorithm}")
            rows.append(_row(name, algorithm, effort))
    return rows


def _row(name, algorithm, effort):
    robot = robots.named(name)
    body = TIPS.get(name, robot.body_names[-1])
    q, v, x = states(robot, algorithm)
    contenders, missing = liedyn_contenders(robot, algorithm, q, v, x, body), {}
    try:
        oracle = robots.oracle(name)
        _check(robot, oracle, algorithm, q[:2], v[:2], x[:2], body)
        given = tuple(map(np.ascontiguousarray, zip(*(oracle.to_pin(*state) for state in zip(q, v, x)))))
        contenders |= _pin(oracle, algorithm, *given, body)
        if not effort.quick:
            contenders |= {f"native {k}": Contender(run, len(q))
                           for k, run in enumerate(Tree(oracle).runs(algorithm, *given, body))}
    except MissingPeer as error:
        missing["native" if "pin" in contenders else "pin"] = str(error)
    timings = race(contenders, effort)
    variants = [timings.pop(key) for key in list(timings) if key.startswith("native")]
    if variants:
        timings["native"] = min(variants)
    return {"robot": name, "algorithm": algorithm, "missing": missing,
            "timings": {key: timings.get(key) for key in CONTENDERS}}


def _check(robot, oracle, algorithm, q, v, x, body):
    """liedyn and Pinocchio compute the same; where the oracle has no such function, nothing is compared."""
    if not hasattr(oracle, algorithm):
        return
    for state in zip(q, v, x):
        given = arguments(algorithm, *state, body)
        require_agreement(f"{robot.name} {algorithm}, liedyn and pin", getattr(ld, algorithm)(robot, *given),
                          getattr(oracle, algorithm)(*given), TOLERANCE)


def _pin(oracle, algorithm, q, v, x, body):
    """Pinocchio's own functions, called from Python with vectors in its own order, as its users call them."""
    import pinocchio as pin

    model, data = oracle.model, oracle.model.createData()
    frame, joint = oracle.frames[body], oracle.model.frames[oracle.frames[body]].parentJoint

    def jacobian_dot(model, data, q, v):
        pin.computeJointJacobiansTimeVariation(model, data, q, v)
        return pin.getFrameJacobianTimeVariation(model, data, frame, pin.LOCAL)

    def jacobian_dq(model, data, q):
        pin.computeJointKinematicHessians(model, data, q)
        return pin.getJointKinematicHessian(model, data, joint, pin.LOCAL)

    function, *taken = {
        "rnea": (pin.rnea, q, v, x), "crba": (pin.crba, q), "aba": (pin.aba, q, v, x),
        "rnea_derivatives": (pin.computeRNEADerivatives, q, v, x),
        "aba_derivatives": (pin.computeABADerivatives, q, v, x),
        "body_jacobian": (pin.computeFrameJacobian, q, repeat(frame), repeat(pin.LOCAL)),
        "body_jacobian_dot": (jacobian_dot, q, v), "body_jacobian_dq": (jacobian_dq, q),
        "forward_kinematics": (pin.framesForwardKinematics, q),
    }[algorithm]
    return {"pin": _called(function, [(model, data, *state) for state in zip(*taken)])}


def _called(function, calls):
    """The function itself on each list of arguments: a call of another one around it would take as long as some do."""
    def run():
        for given in calls:
            function(*given)
    return Contender(run, len(calls))


def liedyn_contenders(robot, algorithm, q, v, x, body):
    """liedyn's public function, the same with `out` where it takes it, and its kernel in compiled code."""
    function, b, loop = getattr(ld, algorithm), robot.body_index(body), recursions.LOOPS[algorithm]
    calls = [(robot, *arguments(algorithm, *state, body)) for state in zip(q, v, x)]
    out, work = recursions.results(robot)
    contenders = {
        "python": _called(function, calls),
        "njit": Contender(lambda: loop(robot.packed, q, v, x, b, work, out), len(q))}
    taken = inspect.signature(function)
    if "out" in taken.parameters:
        given = function(*calls[0])
        full = [taken.bind(*call, out=given) for call in calls]
        for call in full:
            call.apply_defaults()
        contenders["out"] = _called(function, [call.args for call in full])
    return contenders


def best_python(timings):
    """The faster of the two ways to call liedyn from Python."""
    present = [timings[key] for key in ("python", "out") if timings[key] is not None]
    return min(present) if present else None


def report(rows):
    """The section in Markdown."""
    lines, missing = [], {}
    for row in rows:
        t, kind = row["timings"], group(row["robot"])
        missing |= row["missing"]
        lines.append((
            row["robot"], row["algorithm"], microseconds(t["native"]), microseconds(t["njit"]),
            mark(quotient(t["native"], t["njit"]), NJIT[kind][row["algorithm"]]),
            median(t["pin"]), median(t["python"]), median(t["out"]) if t["out"] else MISSING,
            ratio(t["pin"], t["python"]), mark(quotient(t["pin"], best_python(t)), PYTHON[kind][row["algorithm"]])))
    heading = ("robot", "algorithm", "native", "liedyn, njit", "native / njit", "pin, Python", "liedyn, Python",
               "`out=`", "pin / Python", "pin / best")
    notes = "".join(f"\nMissing: {peer} ({why}).\n" for peer, why in missing.items())
    return f"{TEXT}\n{markdown(heading, lines)}\n{notes}"


def target_pairs(rows):
    """For the table of targets: job, peer, and the ratios of all robots with their targets."""
    for targets, slow, fast, where, peer in (
            (NJIT, "native", lambda t: t["njit"], "njit", "Pinocchio, C++"),
            (PYTHON, "pin", best_python, "from Python", "pin, from Python")):
        for algorithm, name in NAMES.items():
            chosen = [row for row in rows if row["algorithm"] == algorithm]
            yield f"{name}, {where}", peer, [
                (quotient(row["timings"][slow], fast(row["timings"])), targets[group(row["robot"])][algorithm])
                for row in chosen]
