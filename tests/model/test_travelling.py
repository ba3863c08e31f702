"""Robots, and what holds robots, in other processes, in files and as copies, used or not."""
import ast
import copy
import multiprocessing
import pickle
import re
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from numba import njit

import liedyn as ld
import public_calls
from processes import KEPT, interpreter
from public_calls import CALLS, MADE, PLAIN, as_wanted, constant, first_angle, outcomes, tree

ROBOTS = public_calls.robots()
BAR, ARM, REST = ROBOTS["loop"], ROBOTS["tree"], np.zeros(4)
USED = ("rnea", "linearize", "forward_dynamics", "simulate", "step", "Stepper", "inverse_dynamics",
        "inverse_kinematics", "base_parameters", "element_forces", "close", "random_configuration", "Event")
"""Calls that make robots remember: choices of coordinates with addresses of kernels, what makes steps, ..."""
EVERY_WAY = pytest.mark.parametrize("travel", [lambda x: pickle.loads(pickle.dumps(x)), copy.deepcopy, copy.copy],
                                    ids=["pickled", "deeply copied", "copied"])


@pytest.fixture(scope="module")
def used():
    """What calls return, of robots that remember them then."""
    return outcomes(ROBOTS, USED)


def one_process(how):
    return ProcessPoolExecutor(1, multiprocessing.get_context(how))


def test_there_is_a_call_of_everything_public():
    assert set(ld.__all__) <= {*CALLS, *MADE, *PLAIN}, "add it to tests/public_calls.py"
    assert {*MADE.values()} <= CALLS.keys() and {*MADE, *PLAIN} <= set(ld.__all__)


def test_every_function_in_a_spawned_process(used):
    with one_process("spawn") as pool:
        found = pool.submit(outcomes, ROBOTS).result()
    failed = {name: text for name, text in found.items()
              if re.match(r"\w*(Error|Exception): ", text) and "pip install" not in text}
    assert not failed
    assert {name: found[name] for name in USED} == used


@pytest.mark.skipif("forkserver" not in multiprocessing.get_all_start_methods(), reason="no fork here")
def test_a_process_of_a_fork_server(used):
    with one_process("forkserver") as pool:
        assert pool.submit(outcomes, ROBOTS, USED[:5]).result() == {name: used[name] for name in USED[:5]}


def test_a_file(used, tmp_path):
    """As joblib and others write them: arrays and objects by the protocol of pickle, read by whoever comes."""
    path = tmp_path / "robots.pickle"
    path.write_bytes(pickle.dumps(ROBOTS, protocol=4))
    text = interpreter(f"""
import pickle, sys
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
import public_calls
print(public_calls.outcomes(pickle.load(open({str(path)!r}, "rb")), {USED[1:4]!r}))
""", **KEPT).stdout
    assert ast.literal_eval(text) == {name: used[name] for name in USED[1:4]}


@EVERY_WAY
def test_robots(used, travel):
    found = travel(ROBOTS)
    if found["loop"] is not BAR:
        assert not found["loop"]._memo and found["loop"]._memo is not BAR._memo
        assert not found["loop"].home.flags.writeable and found["loop"].packed.floats.flags.writeable
    assert outcomes(found, USED) == used
    for one in (BAR.switched(pin=False), BAR.at(0.5)):
        other = travel(one)
        assert (other.t, other.active, repr(other)) == (one.t, one.active, repr(one))


# ---- what holds a robot


def observer(robot, **options):
    return ld.dkalman(robot, robot.home, 0.01, 1.0, 1e-3, outputs=["q1", "q2"], **options)


def simulated(robot, **options):
    return ld.simulate(robot, robot.home, REST, 0.02, progress=False, **options)


def by_feedback(made):
    return simulated(BAR, u=getattr(made, "sampled", made)).q


def rates(system):
    return system.output(0.0, np.zeros(system.nstates), np.ones(system.ninputs))


def of_control(robot):
    tf = __import__("control").tf
    return ld.from_control(tf([1.0], [1.0, 1.0]), robot, ["q1"], robot.home[:1], actuators=["q1"], period=1e-3)


def motion(robot):
    return ld.optimize_motion(ARM, [0.0, 0.1], [0.3, 0.2], intervals=2)


def plan(robot):
    return ld.ddp(robot, robot.home, REST, ld.Cost(Q=1.0, R=1e-2), 5, 0.01)


class Own(ld.Target):
    """The first angle should be one."""

    def error(self, robot, q):
        return q[:1] - 1.0

    def jacobian(self, robot, q):
        return np.eye(1, robot.nv)


def receding(robot):
    mpc = ld.MPC(robot, robot.home, REST, ld.Cost(Q=1.0, R=1e-2, targets=Own()), 5, 0.01)
    mpc(0.0, robot.home, REST)
    return mpc


def stepper(robot):
    made = ld.Stepper(robot, robot.home, REST)
    coupler = ld.VirtualCoupler(robot, "link2", None, 10.0, 10.0)
    coupler.move([1.0, 1.0, 0.0])
    made.couple(coupler)
    made.advance(50, [1.0, 0.0, 0.0, 0.0])
    return made


def advanced(made):
    made.advance(10)
    return np.concatenate([made.q, made.v, made.a, made.lam, [made.t], made.couplers[0].numbers])


def pid(robot):
    return ld.PIDC(robot, as_wanted, 25.0, 10.0, 5.0, independent=("q1", "q2"))


HOLDERS = {
    "trajectory": (simulated, lambda x: (x.q, x["q1"], x.constraint_wrenches)),
    "trajectories": (lambda robot: ld.simulate(robot, np.tile(robot.home, (2, 1)), REST, 0.01, progress=False),
                     lambda x: (x.q, x[1].a)),
    "run with an event": (lambda robot: simulated(robot, events=ld.Event("here", first_angle)), lambda x: x.events),
    "local state space": (lambda robot: ld.linearize(robot, robot.home, REST, REST), lambda x: (x.A, x.C, x.states)),
    "discrete state space": (lambda robot: ld.discretize(robot, robot.home, REST, REST, 0.01), lambda x: (x.A, x.B)),
    "accelerations": (lambda robot: ld.forward_dynamics(robot, robot.home, REST, REST),
                      lambda x: (x.a, x.lam, x.redundant_rows, x.constraint_wrenches)),
    "inverse dynamics": (lambda robot: ld.inverse_dynamics(robot, robot.home, REST, [0.1, 0.2]),
                         lambda x: (x.tau, x.lam)),
    "regulator": (lambda robot: ld.lqr(robot, robot.home, 1.0, 1.0), by_feedback),
    "discrete regulator": (lambda robot: ld.dlqr(robot, robot.home, 0.01, 1.0, 1.0), by_feedback),
    "filter": (lambda robot: ld.kalman(robot, robot.home, 1.0, 1e-3, outputs=["q1"]),
               lambda x: x.measure(BAR.home, REST)),
    "discrete filter": (observer, lambda x: (x.update([0.1, 0.2]), x.q)),
    "extended filter": (lambda robot: ld.ExtendedKalmanFilter(
        robot, robot.home, REST, 0.01, 1.0, 1.0, 1e-3, ["q1", "q2"]),
                        lambda x: (x.update([0.1, 0.2]), x.q)),
    "output feedback": (lambda robot: ld.OutputFeedback(ld.dlqr(robot, robot.home, 0.01, 1.0, 1.0), observer(robot),
                                                        noise=1e-6), lambda x: (x.reset(), by_feedback(x))[1]),
    "tracking": (lambda robot: ld.tvlqr(ARM, np.linspace(0.0, 0.1, 5), np.full((5, 2), 0.2), np.zeros((5, 2)), 1.0,
                                        1.0, a=np.zeros((5, 2))),
                 lambda x: x(0.03, np.full(2, 0.3), np.zeros(2))),
    "gain schedule": (lambda robot: ld.gain_schedule(ARM, {"a": [0.0, 1.0], "b": [0.0, 1.0]}, 1.0, 1.0),
                      lambda x: x.at(a=0.5, b=0.5).K),
    "PIDC": (pid, lambda x: simulated(BAR, tau=x).q),
    "sampled PIDC": (lambda robot: ld.Sampled(pid(robot), 0.01), lambda x: simulated(BAR, tau=x).q),
    "stepper": (stepper, advanced),
    "plan": (plan, lambda x: (x(0.02, BAR.home, REST), x.K)),
    "receding horizon": (receding, lambda x: x(0.01, BAR.home, REST)),
    "optimal motion": (motion, lambda x: (x.q, x.u, repr(x))),
    "trim": (lambda robot: ld.trim(robot, robot.home, free=["force:q1", "force:q2"]), lambda x: (x.q, x.u)),
    "targets": (lambda robot: [ld.PointTarget("B", (0.5, 0.0, 0.5)), ld.CenterOfMassTarget([0.5, 0.0, 0.5])],
                lambda x: ld.inverse_kinematics(ARM, x, unreached="ignore").q),
    "base parameters": (lambda robot: ld.base_parameters(ARM), lambda x: (x.coefficients, repr(x))),
    "clearance": (lambda robot: ld.clearance(ARM, "B", (3.0, 0.0, 0.0), 0.1),
                  lambda x: x.df(0.0, np.ones(2), np.zeros(2), np.zeros(2))),
    "sensitivity": (lambda robot: ld.sensitivities(robot, robot.home, REST, REST, parameters=["mass:*"]), repr),
    "run derivatives": (lambda robot: ld.differentiate_run(robot, robot.home, REST, 0.01, parameters=["mass:*"]),
                        lambda x: repr(x.adjoint(q=np.ones(4)))),
    "specialized": (lambda robot: ld.specialize(ARM), lambda x: x.rnea(*np.ones((3, 2)))),
    "system": (lambda robot: ld.to_control(robot), rates),
    "regulator as a system": (lambda robot: ld.lqr(robot, robot.home, 1.0, 1.0).to_control(absolute=True), rates),
    "filter as a system": (lambda robot: observer(robot).to_control(absolute=True), rates),
    "feedback by a system": (of_control, by_feedback),
    "generalized alpha": (lambda robot: ld.GeneralizedAlpha(0.8), lambda x: simulated(BAR, method=x).q),
}


BY_CLOUDPICKLE = "regulator as a system", "feedback by a system"
"""What keeps a linear system of python-control, which has functions of its own that pickle does not take."""


@pytest.mark.parametrize("travel", [lambda x: pickle.loads(pickle.dumps(x)), copy.deepcopy],
                         ids=["pickled", "copied"])
@pytest.mark.parametrize("name", HOLDERS)
def test_holders(name, travel):
    make, use = HOLDERS[name]
    if "system" in name:
        pytest.importorskip("control", reason="python-control is not installed")
    if name in BY_CLOUDPICKLE and travel is not copy.deepcopy:
        cloudpickle = pytest.importorskip("cloudpickle")

        def travel(x):
            return pickle.loads(cloudpickle.dumps(x))

    made = make(BAR)
    found = travel(made)
    assert same(use(found), use(made))
    assert same(use(travel(made)), use(travel(found)))  # used by now


def same(one, other):
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and same(list(one.values()), list(other.values()))
    if isinstance(one, np.ndarray | float):
        return np.array_equal(one, other, equal_nan=True)
    return repr(one) == repr(other)


# ---- functions of the user


def moving(t):
    return [0.1 * t, 0.0, 0.0], [0.1, 0.0, 0.0], [0.0, 0.0, 0.0]


def residual(t, q):
    return np.array([q[0] - q[3]])


def jacobian(t, q):
    return np.array([[1.0, 0.0, 0.0, -1.0]])


def bias(t, q, v):
    return np.zeros(1)


def derivatives(t, q, v, a):
    return (np.zeros((1, 4)),) * 3


def force_derivative(t, q, lam):
    return np.zeros((4, 4))


def law(x, w):
    return 3.0 * x, 3.0, 0.0


def custom(robot, jacobian=jacobian, law=law):
    builder = ld.Builder.of(robot)
    builder.custom("equal", rows=1, residual=residual, jacobian=jacobian, bias=bias, derivatives=derivatives,
                   force_derivative=force_derivative, active=False)
    builder.coordinate_force("own", {"q1": 1.0}, law=law)
    return builder.build().switched(equal=True, pin=False)


def compiled(k):
    @njit
    def law(x, w):
        return k * x, k, 0.0

    return law


def accelerations(robot):
    return ld.forward_dynamics(robot, robot.home, REST, REST).a


FUNCTIONS = {"target": lambda: BAR.with_target("pin", moving).at(0.3), "rows and law": lambda: custom(BAR),
             "compiled law": lambda: custom(BAR, law=compiled(2.0))}


@EVERY_WAY
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_the_user(name, travel):
    robot = FUNCTIONS[name]()
    before = accelerations(robot)
    other = travel(robot)
    np.testing.assert_array_equal(accelerations(other), before)
    np.testing.assert_array_equal(accelerations(travel(other)), before)


def test_functions_of_the_user_in_a_spawned_process():
    robots = [make() for make in FUNCTIONS.values()]
    before = [accelerations(robot) for robot in robots]
    with one_process("spawn") as pool:
        np.testing.assert_array_equal(list(pool.map(accelerations, robots)), before)


def test_expressions():
    sympy = pytest.importorskip("sympy")
    from liedyn import symbolic

    builder = ld.Builder.of(BAR)
    q1, q4 = symbolic.coordinates("q1", "q4")
    symbolic.constraint(builder, "cam", sympy.sin(q1) - q4 ** 2 / 2, active=False)
    x = sympy.Symbol("x")
    builder.coordinate_force("spring", {"q1": 1.0}, law=x ** 3)
    robot = builder.build().switched(cam=True, pin=False)
    before = accelerations(robot)
    np.testing.assert_array_equal(accelerations(pickle.loads(pickle.dumps(robot))), before)
    with one_process("spawn") as pool:
        np.testing.assert_array_equal(pool.submit(accelerations, robot).result(), before)


POLYNOMIAL = """<mujoco><worldbody><body><joint name="a" axis="0 1 0"/><geom size="0.1" mass="1" pos="1 0 0"/>
<body><joint name="b" axis="0 1 0"/><geom size="0.1" mass="1" pos="1 0 0"/></body></body></worldbody>
<equality><joint joint1="a" joint2="b" polycoef="0.1 1 0.5 0 0"/></equality></mujoco>"""


def test_polynomials_of_mjcf_files(tmp_path):
    pytest.importorskip("mujoco")
    path = tmp_path / "polynomial.xml"
    path.write_text(POLYNOMIAL)
    robot = ld.load(str(path))
    q = ld.close(robot, robot.home)
    before = ld.forward_dynamics(robot, q, [0.0] * 2, [0.0] * 2).a
    for travel in (copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))):
        np.testing.assert_array_equal(ld.forward_dynamics(travel(robot), q, [0.0] * 2, [0.0] * 2).a, before)


@pytest.mark.parametrize("make, message", [
    (lambda: BAR.with_target("pin", lambda t: moving(t)), "target of constraint 'pin' cannot be pickled"),
    (lambda: custom(BAR, jacobian=lambda t, q: jacobian(t, q)), "jacobian of constraint 'equal' cannot be pickled"),
    (lambda: custom(BAR, law=lambda x, w: law(x, w)), "law of force element 'own' cannot be pickled"),
    (lambda: ld.Event("e", lambda t, q, v: 1.0), "guard of Event cannot be pickled"),
    (lambda: ld.Sampled(lambda t, q, v: constant(t, q, v), 0.01), "controller of Sampled cannot be pickled"),
    (lambda: ld.PIDC(BAR, lambda t: as_wanted(t), 25.0, 10.0, independent=("q1", "q2")),
     "function of Signal cannot be pickled"),
])
def test_functions_that_have_no_name(make, message):
    """They are told by pickle, taken along by cloudpickle, and shared by copies."""
    made = make()
    with pytest.raises(ld.InputError, match=message):
        pickle.dumps([made])
    assert type(copy.deepcopy(made)) is type(made)
    cloudpickle = pytest.importorskip("cloudpickle")
    again = cloudpickle.loads(cloudpickle.dumps(made))
    if isinstance(made, ld.Robot):
        np.testing.assert_array_equal(accelerations(again), accelerations(made))


def test_a_loop_in_real_time_stays_where_it_is():
    with pytest.raises(ld.InputError, match="belongs to its process"):
        pickle.dumps(ld.RealTimeLoop(tree("neutral"), 0.01))
