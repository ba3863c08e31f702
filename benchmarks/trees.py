"""The recursions of open trees against Pinocchio: an arm and a humanoid.

Contenders do the same work on the same distinct states, one after another: Pinocchio called from Python, the public
functions of liedyn called from Python, liedyn's kernels inside a user's ``@njit`` loop, and one call of the public
function with all states, which runs them in SIMD lanes. The Pinocchio model is the tests' oracle, built from the
robot's declaration.
"""
import importlib.util
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import liedyn as ld
from benchmarks.compiled import cached_njit
from benchmarks.errors import require_agreement
from benchmarks.tables import markdown, microseconds, ratio
from benchmarks.timing import Contender, race
from liedyn import kernels
from liedyn.kernels import SCALAR

ROBOTS = {"panda": ("arm", "panda_hand_tcp"), "talos": ("humanoid", "arm_left_7_link")}
"""Bundled robots: what they are, and the body of the Jacobian."""
STATES = 64
"""Distinct states, a whole number of lanes; their matrices stay in the cache."""
TOLERANCE = 1e-8
ALGORITHMS = ("rnea", "crba", "aba", "rnea_derivatives", "aba_derivatives", "body_jacobian")
CONTENDERS = ("pin", "python", "njit", "lanes")


@dataclass(frozen=True)
class Row:
    """Times of one algorithm on one robot, None for a contender that is missing."""

    robot: str
    algorithm: str
    timings: dict
    difference: float | None


@cached_njit
def rnea_loop(ints, floats, q, v, x, b, work, out):
    none = np.empty(0)
    for s in range(len(q)):
        kernels.rnea(SCALAR, ints, floats, q[s], v[s], x[s], none, work, out[0])


@cached_njit
def crba_loop(ints, floats, q, v, x, b, work, out):
    for s in range(len(q)):
        kernels.crba(SCALAR, ints, floats, q[s], work, out[0])


@cached_njit
def aba_loop(ints, floats, q, v, x, b, work, out):
    none = np.empty(0)
    for s in range(len(q)):
        kernels.aba(SCALAR, ints, floats, q[s], v[s], x[s], none, work, out[0])


@cached_njit
def rnea_derivatives_loop(ints, floats, q, v, x, b, work, out):
    none = np.empty(0)
    for s in range(len(q)):
        kernels.rnea_derivatives(SCALAR, ints, floats, q[s], v[s], x[s], none, work, out[0], out[1],
                                 out[2], out[3])


@cached_njit
def aba_derivatives_loop(ints, floats, q, v, x, b, work, out):
    none = np.empty(0)
    for s in range(len(q)):
        kernels.aba_derivatives(SCALAR, ints, floats, q[s], v[s], x[s], none, work, out[0], out[1],
                                out[2], out[3], out[4])


@cached_njit
def body_jacobian_loop(ints, floats, q, v, x, b, work, out):
    for s in range(len(q)):
        kernels.body_jacobian(SCALAR, ints, floats, q[s], b, out[0])


LOOPS = dict(zip(ALGORITHMS, (rnea_loop, crba_loop, aba_loop, rnea_derivatives_loop, aba_derivatives_loop,
                              body_jacobian_loop)))


def measure(effort, progress):
    """Time every algorithm on every robot.

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
    DisagreementError
        Pinocchio and liedyn differ.
    """
    rows = []
    for name, (_, body) in ROBOTS.items():
        robot, oracle = ld.load(name), _oracle(ld.load(name))
        rng = np.random.default_rng(0)
        q = ld.random_configuration(robot, rng, STATES)
        v, x = rng.normal(size=(2, STATES, robot.nv))
        for algorithm in ALGORITHMS:
            progress(f"{name} {algorithm}")
            difference = None
            if oracle is not None:
                difference = max(_disagreement(robot, oracle, algorithm, body, *state) for state in zip(q[:3], v, x))
            contenders = {"pin": _pin(oracle, algorithm, body, q, v, x)} if oracle is not None else {}
            contenders |= _liedyn(robot, algorithm, body, q, v, x)
            timings = race(contenders, effort)
            rows.append(Row(name, algorithm, {key: timings.get(key) for key in CONTENDERS}, difference))
    return rows


def _oracle(robot):
    """Pinocchio's model of the robot, None where `pin` is not installed."""
    if importlib.util.find_spec("pinocchio") is None:
        return None
    path = Path(__file__).resolve().parents[1] / "tests" / "pinocchio_models.py"
    spec = importlib.util.spec_from_file_location("pinocchio_models", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.pin_model(robot)


def _arguments(algorithm, q, v, x, body):
    return {"crba": (q,), "body_jacobian": (q, body)}.get(algorithm, (q, v, x))


def _disagreement(robot, oracle, algorithm, body, q, v, x):
    mine = getattr(ld, algorithm)(robot, *_arguments(algorithm, q, v, x, body))
    other = getattr(oracle, algorithm)(*_arguments(algorithm, q, v, x, body))
    return require_agreement(f"{robot.name} {algorithm}, liedyn and pin", mine, other, TOLERANCE)


def _pin(oracle, algorithm, body, q, v, x):
    """Pinocchio's own functions, called from Python with vectors in its own order, as its users call them."""
    import pinocchio as pin

    model, data = oracle.model, oracle.model.createData()
    vectors = [tuple(map(np.ascontiguousarray, oracle.to_pin(*state))) for state in zip(q, v, x)]
    if algorithm == "body_jacobian":
        frame = oracle.frames[body]
        return _called(lambda q: pin.computeFrameJacobian(model, data, q, frame, pin.LOCAL), [s[:1] for s in vectors])
    function = getattr(pin, {"rnea_derivatives": "computeRNEADerivatives",
                             "aba_derivatives": "computeABADerivatives"}.get(algorithm, algorithm))
    return _called(lambda *state: function(model, data, *state),
                   [state[:1] if algorithm == "crba" else state for state in vectors])


def _called(function, states):
    def run():
        for state in states:
            function(*state)
    return Contender(run, len(states))


def _liedyn(robot, algorithm, body, q, v, x):
    function, b = getattr(ld, algorithm), robot.body_index(body)
    states = [_arguments(algorithm, *state, body) for state in zip(q, v, x)]
    batch = _arguments(algorithm, q, v, x, body)
    out, work = np.empty((5, robot.nv * max(6, robot.nv))), kernels.workspace(robot)
    loop, packed = LOOPS[algorithm], (robot.ints, robot.floats)
    return {"python": _called(lambda *state: function(robot, *state), states),
            "njit": Contender(lambda: loop(*packed, q, v, x, b, work, out), len(q)),
            "lanes": Contender(lambda: function(robot, *batch), len(q))}


def table(rows):
    """The rows as Markdown."""
    heading = ("robot", "algorithm", "pin, Python", "liedyn, Python", "liedyn, njit", "liedyn, lanes", "pin / Python",
               "pin / njit", "pin / lanes")
    lines = []
    for row in rows:
        pin, python, njit_, lanes = (row.timings[key] for key in CONTENDERS)
        lines.append((f"{row.robot} ({ROBOTS[row.robot][0]})", row.algorithm,
                      *map(microseconds, (pin, python, njit_, lanes)),
                      *(ratio(pin, other) for other in (python, njit_, lanes))))
    return markdown(heading, lines)
