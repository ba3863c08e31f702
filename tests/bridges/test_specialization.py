"""Straight-line programs against the general kernels, and against Pinocchio; how they are kept; what is refused."""

import re
from pathlib import Path

import numpy as np
import pytest
from numba import njit
from pinocchio_models import pin_model
from processes import interpreter, process
from tree_cases import bundled, off

import liedyn as ld
from liedyn.bridges.specialization.viewpoint import base_parameters
from liedyn.bridges.specialization.recursions import RECURSIONS
from liedyn.machine.program.expressions import Program, call, larger, where_less
from liedyn.model import Builder

SCALAR = ld.kernels.SCALAR


def small(first, seed, count=4):
    """A branched tree with springs, dampers and armatures, its first joint of a given kind."""
    rng = np.random.default_rng(seed)
    builder = Builder(f"small {first}", gravity=(0.5, -1.0, -9.81))
    for k, kind in enumerate([first, "revolute", "prismatic", "helical"][:count]):
        axis = {} if kind in ("spherical", "free") else {"axis": rng.normal(size=3)}
        pitch = {"pitch": 0.02} if kind == "helical" else {}
        builder.body(f"body{k}", 1.0 + k, rng.normal(size=3) / 10, np.diag(rng.uniform(0.1, 0.2, 3)))
        builder.joint(f"joint{k}", kind, "ground" if k == 0 else f"body{(k - 1) // 2}", f"body{k}",
                      rng.normal(size=3) / 5, stiffness=3.0, damping=0.2, armature=0.05, **axis, **pitch)
    return builder.build()


ROBOTS = {
    "revolute": lambda: small("revolute", 0),
    "prismatic": lambda: small("prismatic", 1, count=3),
    "spherical": lambda: small("spherical", 2, count=3),
    "free": lambda: small("free", 3, count=2),
    "one joint": lambda: small("revolute", 5, count=1),
}


@pytest.fixture(scope="module", params=ROBOTS)
def robot(request):
    return ROBOTS[request.param]()


def state(robot, lead=()):
    rng = np.random.default_rng(4)
    return ld.random_configuration(robot, rng, lead), *rng.normal(size=(2, *lead, robot.nv))


@pytest.mark.parametrize("name", RECURSIONS)
def test_general_kernels(robot, name):
    """Scalar program, lanes and a remainder of lanes: rounding is all that may differ."""
    fast, general = ld.specialize(robot), getattr(ld, name)
    for lead in ((), (1,), (3, 7)):
        arguments = state(robot, lead)
        expected, found = general(robot, *arguments), getattr(fast, name)(*arguments)
        pairs = zip(found, expected) if isinstance(expected, tuple) else [(found, expected)]
        for x, y in pairs:
            # 1e-13, times the condition of M where forces become accelerations
            assert off(x, y) < (1e-13 if name.startswith("rnea") else 1e-12)


@pytest.mark.parametrize("name", ["panda", "ur5"])
def test_pinocchio(name):
    robot = bundled(name)
    fast, reference = ld.specialize(robot), pin_model(robot)
    q, v, a = state(robot)
    assert off(fast.rnea(q, v, a), reference.rnea(q, v, a)) < 1e-14
    assert off(fast.aba(q, v, a), reference.aba(q, v, a)) < 1e-11
    for ours, theirs in zip(fast.rnea_derivatives(q, v, a), reference.rnea_derivatives(q, v, a)):
        assert off(ours, theirs) < 1e-13
    # rounding, times the condition of M where forces become accelerations: 200 for panda, 90 for ur5
    for ours, theirs in zip(fast.aba_derivatives(q, v, a), reference.aba_derivatives(q, v, a)):
        assert off(ours, theirs) < 1e-12


def test_out(robot):
    fast = ld.specialize(robot)
    for lead in ((), (5,)):
        q, v, a = state(robot, lead)
        tau, matrices = np.empty((*lead, robot.nv)), tuple(np.empty((3, *lead, robot.nv, robot.nv)))
        assert fast.rnea(q, v, a, out=tau) is tau
        assert off(tau, fast.rnea(q, v, a)) < 1e-14
        made = fast.rnea_derivatives(q, v, a, out=matrices)
        assert all(x is y for x, y in zip(made, matrices))
        assert off(matrices[2], ld.crba(robot, q)) < 1e-13


def test_own_compiled_code(robot):
    kernels = ld.specialize(robot).kernels
    rnea = kernels.rnea

    @njit
    def sums(q, v, a):
        tau = np.empty(v.shape[1])
        total = 0.0
        for k in range(len(q)):
            rnea(SCALAR, q[k], v[k], a[k], tau)
            total += tau.sum()
        return total

    q, v, a = state(robot, (6,))
    assert sums(q, v, a) == pytest.approx(ld.rnea(robot, q, v, a).sum(), rel=1e-12)


def test_bad_input(robot):
    fast = ld.specialize(robot)
    q, v, a = state(robot)
    with pytest.raises(ld.InputError, match=r"^v must have shape"):
        fast.rnea(q, v[1:], a)
    with pytest.raises(ld.InputError, match=r"^tau is not finite: tau\[0\] = nan"):
        fast.aba(q, v, np.full(robot.nv, np.nan))
    with pytest.raises(ld.InputError, match="^out must be an array"):
        fast.rnea(q, v, a, out=[0.0])
    for function in (fast.rnea, fast.rnea_derivatives):
        arguments = state(robot, (19,))
        arguments[1][18, -1] = np.inf
        with pytest.raises(ld.InputError, match=rf"^v is not finite: v\[{robot.nv - 1}\] = inf"):
            function(*arguments)
    assert off(fast.rnea(q.tolist(), v[::-1][::-1], a.astype(np.float32)), ld.rnea(robot, q, v, np.float32(a))) < 1e-13


def test_refused():
    with pytest.raises(ld.InputError, match="1 to 12 degrees of freedom: 'talos' has 38"):
        ld.specialize(bundled("talos")).kernels  # noqa: B018
    massless = Builder("massless")
    massless.body("arm", 0.0)
    massless.joint("pivot", "revolute", "ground", "arm")
    massless.loop("pin", "revolute", "ground", "arm")
    with pytest.raises(ld.SingularConfigurationError, match="no inertia resists"):
        ld.specialize(massless.build()).aba([0.0], [0.0], [0.0])


def test_straight_lines(robot):
    """The program has neither branches nor loops, and its operations are those that are counted."""
    fast = ld.specialize(robot)
    with open(fast.kernels.__file__) as file:
        text = file.read()
    body = re.search(r"def rnea\(.*?\n\n", text, re.S)[0]
    assert not re.search(r"\b(if|for|while)\b", body)
    counted = {sign: len(re.findall(rf"= \S+ {re.escape(sign)} \S+\n", body)) for sign in "+-*/"}
    assert counted == fast.operations()["rnea"]
    assert sum(counted.values()) < 700


def test_same_program(robot):
    """Neither time nor switched constraints are part of it, another mass is."""
    fast = ld.specialize(robot)
    assert ld.specialize(robot.at(2.0)).kernels is fast.kernels
    other = small("revolute", 6, count=1)
    assert ld.specialize(other).kernels is not fast.kernels


SECOND = """
import liedyn as ld, numpy as np
from liedyn.machine.program.expressions import Program, call, larger, where_less
from liedyn.model import Builder
arm = Builder("arm")
arm.body("arm", 2.0, (0.1, 0.0, 0.0), np.eye(3))  # about the centre of mass
arm.joint("pivot", "revolute", "ground", "arm")
arm = arm.build()
fast = ld.specialize(arm)
print(getattr(fast.kernels, "__file__", "memory"), fast.rnea(np.array([0.1]), np.array([0.2]), np.array([0.3]))[0])
"""


def test_kept_for_other_processes(tmp_path):
    """The second process finds the program, with the very same text; without a cache it lives in memory."""
    def run(start=process, **environment):
        place, tau = start(SECOND, **environment).stdout.split()
        # about z through the origin, gravity along z: tau = (1 + m c^2) a, with m = 2, c = 0.1 and a = 0.3
        assert float(tau) == pytest.approx(1.02 * 0.3, rel=1e-14)
        return place

    path = run(LIEDYN_CACHE_DIR=str(tmp_path))
    with open(path) as file:
        text = file.read()
    files = sorted(tmp_path.rglob("*.nb?"))
    assert run(interpreter, LIEDYN_CACHE_DIR=str(tmp_path)) == path
    assert sorted(tmp_path.rglob("*.nb?")) == files
    with open(path, "r+") as file:
        assert file.read() == text
        file.truncate(len(text) // 2)
    assert run(LIEDYN_CACHE_DIR=str(tmp_path)) == path  # cut short, it is written again
    with open(path) as file:
        assert file.read() == text
    assert sorted(tmp_path.rglob("*.nb?")) == files
    assert run(LIEDYN_CACHE="0", LIEDYN_CACHE_DIR=str(tmp_path)) == "memory"


INTERPRETED = """
import liedyn as ld, numpy as np
arm = ld.load("five_bar")
fast, rng = ld.specialize(arm, at=arm.home), np.random.default_rng(0)
for lead in ((), (3,)):
    q = ld.integrate(arm, arm.home, rng.normal(size=(*lead, 4)))
    state = q, *rng.normal(size=(2, *lead, 4))
    for name in ("rnea", "aba", "rnea_derivatives", "aba_derivatives"):
        found, expected = getattr(fast, name)(*state), getattr(ld, name)(arm, *state)
        for x, y in zip(found, expected) if isinstance(found, tuple) else [(found, expected)]:
            assert abs(x - y).max() < 1e-12 * abs(y).max(), name
"""


@pytest.mark.parametrize("environment", [{"LIEDYN_COMPILE": "never"}, {}])
def test_first_calls_are_interpreted(tmp_path, environment):
    """Until a program is compiled, or where no compiler may run, its lines and its constants are Python."""
    process(INTERPRETED, LIEDYN_CACHE_DIR=str(tmp_path), **environment)


def test_base_parameters():
    """Grouped inertias: same generalised forces; mass, moment along z and one inertia of a revolute link are zero."""
    panda = bundled("panda")
    grouped = base_parameters(panda.packed)
    q, v, a = state(panda)
    tau, none, work = np.empty(7), np.empty(0), ld.kernels.workspace(panda)
    ld.kernels.rnea(SCALAR, grouped, q, v, a, none, work, tau)
    assert off(tau, ld.rnea(panda, q, v, a)) < 1e-14
    assert (grouped.floats == 0.0).sum() - (panda.packed.floats == 0.0).sum() >= 3 * 7


def test_expressions():
    """What vanishes, and what is the same; constants are multiplied only where that does not round."""
    program = Program({"q": [1.5, -2.0]})
    x, y = (program.node("input", "q", k) for k in range(2))
    assert 0.0 * x == 0.0 and x - x == 0.0 and 0.0 / x == 0.0
    assert x + 0.0 is x and 1.0 * x is x and (-x) * -1.0 is x and x / 1.0 is x
    assert x + y is y + x and x * y is y * x and -(x - y) is y - x
    assert x + -y is x - y and x - -y is x + y and (-x) * (-y) is x * y and -x + -y is -(x + y)
    assert 2.0 * (3.0 * x) is 6.0 * x and x + x is 2.0 * x and (-2.0) * x is -(2.0 * x) and x / -4.0 is -(0.25 * x)
    assert 3.0 * (0.1 * x) is not 3.0 * 0.1 * x and (x / 3.0).operation == "/"
    assert (x ** 2 - y / x).value == 1.5 ** 2 + 2.0 / 1.5 and (x ** 0.5).value == 1.5 ** 0.5
    assert (1.0 / (x - x + 0.0 * y + x * 0.0 + (y + 2.0))).value == np.inf and np.isnan(call("sqrt", y).value)
    for same in (lambda: x == y, lambda: x == 1.0, lambda: bool(x), lambda: float(x)):
        with pytest.raises(TypeError, match="a program cannot"):
            same()


def test_decisions():
    """Comparisons are decided at the reference state, and recorded as what has to hold at others."""
    program = Program({"q": [1.5, -2.0]})
    x, y = (program.node("input", "q", k) for k in range(2))
    assert x > y and not x < y and x >= 1.5 and not y > 0.0 and abs(y) <= 2.0
    assert [str(guard) for guard in program.guards] == [
        "x1 < x0", "x1 <= x0", "1.5 <= x0", "x1 <= 0.0", "x2 <= 2.0"]
    assert larger(x, y).value == 1.5 and where_less(x, y, 1.0, x).value == 1.5 and len(program.guards) == 5


NAMES = ['""";import pathlib;pathlib.Path("ran").touch();"""', "'''", 'a """ b', "back\\", 'quote"', "{ints}",
         "a\nimport pathlib\n", "%s %(x)s", "\x85\u2028\u202e\x1b[2J", "../../etc", "NUL", "$(touch ran)",
         "Ünïcode 機械", "x" * 300]


@pytest.mark.parametrize("name", NAMES)
def test_names_get_into_no_program(name, tmp_path, monkeypatch):
    """The robot's, and all others: what is executed holds numbers only, and its file lies where such files lie."""
    monkeypatch.chdir(tmp_path)
    builder = Builder(name, description=name, source=name)
    builder.body(f"b {name}", mass=1.0 + NAMES.index(name), inertia=(0.1, 0.1, 0.1))
    builder.joint(name, "revolute", "ground", f"b {name}", axis=(0, 0, 1))
    builder.actuator(name, name)
    fast = ld.specialize(builder.build())
    with open(fast.kernels.__file__, encoding="utf-8") as file:
        text = file.read()
    plain = "".join(filter(str.isalnum, name))
    assert text.isascii() and (len(plain) < 4 or plain not in text) and name not in text
    compile(text, "program", "exec")
    assert [path.name for path in tmp_path.iterdir()] == [] and Path(fast.kernels.__file__).parent.name == "straight"
