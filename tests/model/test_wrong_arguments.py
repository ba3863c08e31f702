"""Wrong arguments of every public function: each gives a typed error that says so, or a sound result."""
import dataclasses
import datetime
import functools
import inspect
import numbers
import warnings
from importlib.util import find_spec

import numpy as np
import pytest

import liedyn as ld
from liedyn.bridges.specialization.specialize import Specialized
from liedyn.linear.state_space import LocalStateSpace

FIVE_BAR, PANDA, DISK = ld.load("five_bar"), ld.load("panda"), ld.load("rolling_disk")
HOME, REST, ARM = FIVE_BAR.home, np.zeros(4), np.zeros(7)
BOX = {"mass": 1.0, "com": (0.1, 0.0, 0.0), "inertia": (1.0, 1.0, 1.0)}


class Unspeakable:
    """Its repr fails."""

    def __repr__(self):
        raise RuntimeError("no repr")


WRONG = {
    "a number": 3, "a negative one": -1, "half a one": 1.5, "a tiny one": 1e-320, "a huge one": 1e300, "nan": np.nan,
    "inf": np.inf, "true": True, "None": None, "text": "x", "empty text": "", "a thing": object(),
    "a thing of no repr": Unspeakable(), "a class": int, "a function": lambda *given: None, "an empty list": [],
    "an empty dict": {}, "a set": {"x"}, "a ragged list": [[1.0], [1.0, 2.0]], "a long list": [0.5] * 1000,
    "complex": np.zeros(7, complex), "complex of four": np.zeros(4, complex), "texts": ["0"] * 4, "bytes": b"pin",
    "dates": np.zeros(4, "datetime64[s]"), "spans": [datetime.timedelta(seconds=1)] * 4, "truths": np.zeros(4, bool),
    "masked": np.ma.array(np.zeros(4), mask=[True, False, False, False]), "nothings": [None] * 4,
    "objects": np.array([object()] * 4), "nans": np.full(4, np.nan), "a name and none": ["q1", 3],
    "numbers by number": {1: 2.0}, "things by name": {"q1": object()}, "texts by name": {"pin": "a"},
}


def feedback(t, q, v):
    return -1.0 * v


def derivative(t, q, v):
    return np.zeros((4, 4)), -np.eye(4)


def builder():
    b = ld.Builder("wrong")
    b.body("a", **BOX)
    b.joint("j", "revolute", "ground", "a")
    return b


def still(t):
    return [0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]


def change(what, name, mass):
    """`Builder.change`, whose first two arguments have no names."""
    builder().change(what, name, mass=mass)


def plot(names):
    """`Trajectory.plot`, whose arguments have no names."""
    run().plot(names)


OTHERWISE = {"Builder.change": change, "Trajectory.plot": plot}
"""What cannot be called by names."""


STATE = dict(robot=FIVE_BAR, q=HOME, v=REST)
ROWS = dict(jacobian=lambda t, q: np.ones((1, 1)), bias=lambda t, q, v: np.zeros(1),
            derivatives=lambda t, q, v, a: (np.zeros((1, 1)),) * 3, force_derivative=lambda t, q, lam: np.zeros((1, 1)))
KALMAN = dict(**STATE, h=0.01, P=1.0, Q=1.0, R=1.0, outputs=["q1", "q4"])
CONTROL, PINOCCHIO = (find_spec(name) is not None for name in ("control", "pinocchio"))
PATH = ld.PathFunction(lambda t, q, v, u: v @ v, lambda t, q, v, u: (0.0 * v, 2.0 * v, 0.0 * u))
SOLID = ld.Builder.of(PANDA)
SOLID.shape("ball", "panda_hand", "sphere", size=0.1, role="collision")
SOLID.shape("wall", "ground", "box", (3.0, 0.0, 0.0), (0.1, 1.0, 1.0), role="collision")
SOLID = SOLID.build()
REACHED = ld.PointTarget("panda_hand", (0.3, 0.3, 0.5))


# ---- what has to be computed, once, when a test asks for it: nothing is while tests are collected


once = functools.cache


@once
def sprung():
    """A five-bar with a torsion bar."""
    b = ld.Builder.of(FIVE_BAR)
    b.coordinate_force("bar", {"q1": 1.0}, stiffness=2.0)
    return b.build()


@once
def controller():
    return ld.PIDC(FIVE_BAR, HOME[:2], G_P=25.0, G_D=10.0, independent=("q1", "q2"))


@once
def model():
    return ld.linearize(FIVE_BAR, HOME, REST, REST)


@once
def run():
    return ld.simulate(FIVE_BAR, HOME, REST, 0.002)


@once
def varied():
    return ld.differentiate_run(FIVE_BAR, HOME, REST, 0.002, tau=REST, parameters=["mass:link1"])


@once
def regulator():
    return ld.lqr(FIVE_BAR, HOME, 1.0, 1.0)


@once
def kalman():
    return ld.dkalman(FIVE_BAR, HOME, 0.01, 1.0, 1.0, outputs=["q1", "q4"])


@once
def extended():
    return ld.ExtendedKalmanFilter(**KALMAN)


@once
def windowed():
    return ld.moving_horizon(**KALMAN, horizon=2)


def output_feedback():
    return dict(controller=regulator(), estimator=kalman(), noise=1.0)


@once
def tracking():
    return ld.tvlqr(FIVE_BAR, run().t, run().q, run().v, 1.0, 1.0, a=run().a)


@once
def motion():
    return ld.optimize_motion(FIVE_BAR, HOME, HOME, duration=0.2, intervals=1, points=3, tolerance=None)


@once
def measured():
    q = ld.random_configuration(PANDA, 0, 20)
    return dict(robot=PANDA, q=q, v=0.5 * q, a=0.3 * q, tau=ld.rnea(PANDA, q, 0.5 * q, 0.3 * q), include=["damping"],
                bodies=["panda_hand"], noise=0.1, consistent=False, distance="quadratic", prior_deviation=2.0)


@once
def identified():
    return ld.identify(**measured())


@once
def plan():
    return ld.ddp(FIVE_BAR, HOME, REST, ld.Cost(), 2, 0.01)


@once
def stepper():
    return ld.Stepper(**STATE)


@once
def coupler():
    return ld.VirtualCoupler(PANDA, "panda_hand", None, 9.0, 1.0)


@once
def fast():
    return ld.specialize(FIVE_BAR, at=HOME)


@once
def bucy():
    return ld.kalman(FIVE_BAR, HOME, 1.0, 1.0, outputs=["q1", "q4"])


def goal():
    return ld.close(FIVE_BAR, HOME, q1=HOME[0] + 0.1, q2=HOME[1])


CALLS = {
    "aba": dict(**STATE, tau=REST), "aba_derivatives": dict(**STATE, tau=REST),
    "aba_second_derivatives": dict(**STATE, tau=REST, weights=REST),
    "body_jacobian": dict(robot=PANDA, q=ARM, body="panda_hand"),
    "body_jacobian_dot": dict(robot=PANDA, q=ARM, v=ARM, body="panda_hand"),
    "body_jacobian_ddot": dict(robot=PANDA, q=ARM, v=ARM, a=ARM, body="panda_hand"),
    "body_jacobian_dq": dict(robot=PANDA, q=ARM, body="panda_hand"),
    "centroidal_momentum_matrix": dict(robot=FIVE_BAR, q=HOME), "centroidal_momentum_matrix_dot": STATE,
    "coriolis_matrix": STATE,
    "bundled": {}, "center_of_mass": dict(robot=FIVE_BAR, q=HOME), "crba": dict(robot=FIVE_BAR, q=HOME),
    "difference": dict(robot=FIVE_BAR, q0=HOME, q1=HOME), "forward_kinematics": dict(robot=FIVE_BAR, q=HOME),
    "regressor": dict(**STATE, a=REST, include=["damping"], independent=["q1", "q2"], friction_width=1e-3),
    "base_parameters": dict(**STATE, a=REST, include=["damping"], tolerance=1e-6, seed=0),
    "excitation": dict(robot=PANDA, duration=5.0, harmonics=2, include=["damping"], samples=10, iterations=1, seed=0,
                       limits={"panda_joint1": (-1.0, 1.0)}, speed=1.0),
    "identify": measured, "low_pass": dict(x=np.sin(np.arange(40.0)), period=0.1, cutoff=1.0, order=4),
    "measured_motion": dict(robot=FIVE_BAR, coordinates={"q1": np.full(30, HOME[0]), "q2": np.full(30, HOME[1])},
                            period=0.1, cutoff=1.0, guess=HOME),
    "dynamic_parameters": dict(robot=FIVE_BAR, include=["damping"]),
    "inertial_parameters": dict(robot=FIVE_BAR), "inertial_regressor": dict(**STATE, a=REST),
    "with_inertial_parameters": lambda: dict(robot=FIVE_BAR, pi=ld.inertial_parameters(FIVE_BAR)),
    "integrate": dict(robot=FIVE_BAR, q=HOME, dv=REST), "kinetic_energy": STATE, "momentum": STATE,
    "momentum_terms": STATE, "canonical_momenta": STATE,
    "velocity_from_momenta": dict(robot=FIVE_BAR, q=HOME, p=np.zeros(2)),
    "canonical_equations": dict(robot=FIVE_BAR, q=HOME, p=np.zeros(2), tau=REST),
    "neutral": dict(robot=FIVE_BAR), "pose": dict(robot=PANDA, q=ARM, body="panda_hand"),
    "potential_energy": dict(robot=FIVE_BAR, q=HOME), "random_configuration": dict(robot=FIVE_BAR, rng=0, size=2),
    "rnea": dict(**STATE, a=REST), "rnea_derivatives": dict(**STATE, a=REST), "total_mass": dict(robot=FIVE_BAR),
    "rnea_second_derivatives": dict(**STATE, a=REST, weights=REST),
    "load": dict(source="five_bar"), "load_toml": None, "load_urdf": None, "load_sdf": None, "load_mjcf": None,
    "trim": dict(robot=FIVE_BAR, q=HOME, v=REST, u=np.zeros(4), hold={"q2": HOME[1]}, free=["force:q1", "force:q4"],
                 bounds={"force:q1": (-99.0, 99.0)}, tolerance=1e-9, iterations=50, rank_tolerance=1e-8),
    "continuation": lambda: dict(
        robot=FIVE_BAR, start=ld.trim(FIVE_BAR, HOME, free=["force:q1", "force:q4"]), parameter="q1", span=(2.0, 2.2),
        free=["force:q1", "force:q4"], hold=["q2"], step=0.02, longest=0.1, points=3, direction=1, rank_tolerance=1e-8),
    "optimize_motion": lambda: dict(
        robot=FIVE_BAR, start=HOME, goal=goal(), duration=0.5,
        cost={"effort": 1.0}, bounds={"q1": (0.0, 3.0)}, path=[], via=[], intervals=2, points=3, tolerance=None,
        guess=None, solver=ld.NLPSolver(iterations=20), progress=False),
    "NLPSolver": dict(name="liedyn", iterations=20, feasibility=1e-8, optimality=1e-6, settings={"mu": 0.1}),
    "PathFunction": dict(f=lambda t, q, v, u: v @ v, df=lambda t, q, v, u: (0.0 * v, 2.0 * v, 0.0 * u), high=1.0),
    "cable_lengths": dict(robot=PANDA, q=ARM),
    "tensions": dict(robot=PANDA, q=ARM, v=ARM, a=ARM, low=-1000.0, high=1000.0),
    "Pulley": dict(body="a", placement=(0.0, 0.0, 1.0), radius=0.1, turn=1, shape="cylinder"),
    "separation": dict(robot=SOLID, pairs=[("ball", "wall")], at_least=0.1),
    "distances": dict(robot=SOLID, q=ARM, pairs=[("ball", "wall")]),
    "DistanceTarget": dict(pairs=[("ball", "wall")], at_least=0.1, one_sided=False),
    "clearance": dict(robot=PANDA, body="panda_hand", center=(0.5, 0.0, 0.5), radius=0.1),
    "inverse_kinematics": dict(robot=PANDA, targets=REACHED, q0=ARM, hold=["panda_joint7"], posture=ARM, seed=0,
                               restarts=1, tolerance=1e-6, angle_tolerance=1e-6, unreached="ignore"),
    "differential_inverse_kinematics": dict(robot=PANDA, q=ARM, targets=REACHED, dt=0.01, rate=1.0, posture=ARM,
                                            velocity_limit=1.0, damping=1e-3),
    "Phase": dict(closed=["foot"], steps=2),
    "Cost": dict(Q=1.0, R=1.0, q=HOME, v=REST, u=REST), "Limits": dict(inputs=(-1.0, 1.0), speeds={"q1": (-1.0, 1.0)}),
    "ddp": dict(robot=FIVE_BAR, q0=HOME, v0=REST, cost=ld.Cost(), steps=2, h=0.01, limits=ld.Limits(), method="euler",
                independent=("q1", "q2"), iterations=2, tolerance=1e-9, limit_tolerance=1e-6, penalty=1.0),
    "MPC": dict(robot=FIVE_BAR, q=HOME, v=REST, cost=ld.Cost(), steps=2, h=0.01, limits=ld.Limits(), method="euler",
                independent=("q1", "q2"), iterations=1, tolerance=1e-9, limit_tolerance=1e-6, penalty=1.0,
                budget=1.0, schedule=None),
    "PoseTarget": dict(body="panda_hand", pose=np.eye(4)), "Target": {},
    "PointTarget": dict(body="panda_hand", position=(0.3, 0.3, 0.3), point=(0.0, 0.0, 0.1)),
    "DirectionTarget": dict(body="panda_hand", axis=(0.0, 0.0, 1.0), direction=(0.0, 0.0, -1.0)),
    "OrientationTarget": dict(body="panda_hand", rotation=np.eye(3)),
    "CenterOfMassTarget": dict(position=(0.1, 0.0, 0.4)),
    "lqr": dict(robot=FIVE_BAR, q=HOME, Q=1.0, R=1.0), "dlqr": dict(robot=FIVE_BAR, q=HOME, h=0.01, Q=1.0, R=1.0),
    "kalman": dict(robot=FIVE_BAR, q=HOME, Q=1.0, R=1.0, outputs=["q1", "q4"]),
    "dkalman": dict(robot=FIVE_BAR, q=HOME, h=0.01, Q=1.0, R=1.0, outputs=["q1", "q4"]),
    "ExtendedKalmanFilter": KALMAN, "OutputFeedback": output_feedback,
    "moving_horizon": KALMAN | {"horizon": 2, "loss": "huber"},
    "to_control": dict(robot=FIVE_BAR, q=HOME, v=REST) if CONTROL else None,
    "from_control": (lambda: dict(
        system=model().to_control(), robot=FIVE_BAR, outputs=["q1", "q2", "q3", "q4"], period=0.01,
        actuators=["q1", "q2"])) if CONTROL else None,
    "tvlqr": lambda: dict(robot=FIVE_BAR, t=run().t, q=run().q, v=run().v, Q=1.0, R=1.0, a=run().a),
    "gain_schedule": dict(robot=FIVE_BAR, grid={"q1": [0.0, 0.1], "q2": [0.0, 0.1]}, Q=1.0, R=1.0, q=HOME),
    "view": None, "export_html": None, "map_states": None, "map_parameters": None, "open_results": None,
    "modes": lambda: dict(ss=model()), "frequency_response": lambda: dict(ss=model(), omega=[1.0, 2.0]),
    "actuator_matrix": lambda: dict(robot=sprung(), q=HOME),
    "element_forces": lambda: dict(robot=sprung(), q=HOME, v=REST),
    "element_states": lambda: dict(robot=sprung(), q=HOME, v=REST),
    "from_pinocchio": (lambda: dict(model=ld.to_pinocchio(PANDA)[0], reference="home")) if PINOCCHIO else None,
    "to_pinocchio": dict(robot=PANDA) if PINOCCHIO else None,
    "save": dict(robot=PANDA, path="a.toml"),
    "save_toml": dict(robot=PANDA, path="a.toml"), "subtree": dict(robot=PANDA, body="panda_link5", joint="free"),
    "reduced": dict(robot=PANDA, locked={"panda_joint1": 0.5}),
    "world_jacobian": dict(robot=PANDA, q=ARM, body="panda_hand"),
    "world_jacobian_dot": dict(robot=PANDA, q=ARM, v=ARM, body="panda_hand"),
    "world_acceleration": dict(robot=PANDA, q=ARM, v=ARM, a=ARM, body="panda_hand"),
    "world_constraint_wrenches": dict(robot=FIVE_BAR, q=HOME, lam=np.zeros(5)),
    "Builder": dict(name="b"), "placement": dict(xyz=(1.0, 0.0, 0.0)),
    "check_constraint": dict(robot=FIVE_BAR, name="pin", q=HOME, v=REST, a=REST, lam=np.zeros(5), tolerance=1e-6),
    "close": dict(robot=FIVE_BAR, q=HOME, held={"q1": HOME[0]}, tolerance=1e-12),
    "closure_error": dict(robot=FIVE_BAR, q=HOME), "constraint_jacobian": dict(robot=FIVE_BAR, q=HOME),
    "complete_velocity": dict(robot=FIVE_BAR, q=HOME, velocities={"q1": 0.1, "q2": 0.1}, tolerance=1e-8),
    "constraint_bias": STATE, "constraint_wrenches": dict(robot=FIVE_BAR, q=HOME, lam=np.zeros(5)),
    "velocity_error": STATE, "virtual_coordinates": dict(robot=FIVE_BAR, q=HOME),
    "virtual_jacobian": dict(robot=FIVE_BAR, q=HOME),
    "HybridController": lambda: dict(motion=controller(), forces={"pin.vx": 0.0}, G_F=1.0, G_I=1.0, plant=FIVE_BAR),
    "PIDC": dict(robot=FIVE_BAR, trajectory=HOME[:2], G_P=25.0, G_D=10.0, G_I=1.0, independent=("q1", "q2"),
                 active=("q1", "q2"), metric=np.ones(4), rank_tolerance=1e-8),
    "controllability": dict(robot=FIVE_BAR, q=HOME, active=("q1",), metric=np.ones(4), rank_tolerance=1e-8),
    "inverse_dynamics": dict(**STATE, accelerations=np.zeros(2), independent=("q1", "q2"), active=("q1", "q2", "q3"),
                             metric=np.ones(4), rank_tolerance=1e-8),
    "joint_wrenches": dict(**STATE, tau=REST),
    "world_joint_wrenches": dict(robot=FIVE_BAR, q=HOME, wrenches={"q2": np.ones(6)}),
    "forward_dynamics": dict(**STATE, tau=REST), "check_feedback": dict(**STATE, feedback=(feedback, derivative)),
    "discretize": dict(**STATE, tau=REST, h=1e-3), "linearize": dict(**STATE, tau=REST),
    "curvature": dict(robot=FIVE_BAR, q=HOME, independent=("q1", "q2"), body=FIVE_BAR.body_names[0]),
    "underlying": dict(**STATE, tau=REST), "specialize": dict(robot=ld.load("particle_on_circle")),
    "generate_c": dict(robot=ld.load("particle_on_circle"), folder="made"),
    "export_fmu": dict(robot=ld.load("particle_on_circle"), file="made.fmu", binary=False),
    "sensitivities": dict(**STATE, tau=REST, parameters=["mass:*"]),
    "simulate": dict(robot=FIVE_BAR, q0=HOME, v0=REST, t_final=0.002, progress=False),
    "differentiate_run": dict(robot=FIVE_BAR, q0=HOME, v0=REST, t_final=0.002, parameters=["mass:link1"]),
    "forward_dynamics_derivatives": dict(**STATE, tau=REST),
    "Event": dict(name="e", guard=lambda t, q, v: 1.0), "Adaptive": dict(name="RK45"), "Baumgarte": {},
    "GeneralizedAlpha": {}, "GasSpring": dict(force=1.0, column=1.0),
    "PolynomialSpring": dict(stiffness=1.0), "Motor": dict(stall_torque=1.0, no_load_speed=1.0),
    "step": dict(**STATE, tau=REST, dt=1e-3), "Stepper": STATE,
    "Sampled": lambda: dict(controller=regulator(), period=0.01),
    "VirtualCoupler": dict(robot=PANDA, body="panda_hand", placement=(0.0, 0.0, 0.1), stiffness=9.0, damping=1.0),
    "RealTimeLoop": dict(function=lambda: None, dt=1e-3),
}
FORMULATIONS = {"baumgarte": "svd", "sigma": "unified", "inertia": "projection", "metric": "projection",
                "scale": "projection", "condition_limit": "kane"}
METHODS = {
    "Stepper.step": (stepper, dict(tau=REST)),
    "Stepper.advance": (stepper, dict(steps=2, tau=REST)),
    "Stepper.reset": (stepper, dict(q=HOME, v=REST, t=0.5, start="check")),
    "Stepper.switch": (stepper, dict(name="pin", on=True)),
    "VirtualCoupler.tuned": (lambda: ld.VirtualCoupler, dict(
        robot=PANDA, body="panda_hand", placement=None, q=ARM, frequency=1.0, damping_ratio=0.7, turning=True)),
    "VirtualCoupler.move": (coupler, dict(pose=np.eye(4), twist=np.zeros(6))),
    "VirtualCoupler.force": (coupler, dict(q=ARM, v=ARM)),
    "VirtualCoupler.check": (coupler, dict(q=ARM, dt=1e-3)),
    "RealTimeLoop.run": (once(lambda: ld.RealTimeLoop(lambda: False, 1e-4)), dict(duration=1e-3)),
    "Builder.body": (builder, dict(name="b", **BOX)),
    "Builder.joint": (builder, dict(name="k", kind="revolute", parent="a", child="c")),
    "Builder.loop": (builder, dict(name="l", kind="revolute", parent="ground", child="a")),
    "Builder.constraint": (builder, dict(name="c", kind="on_plane", parent="ground", child="a")),
    "Builder.stops": (builder, {}), "Builder.custom": (builder, dict(name="r", **ROWS)),
    "Builder.actuator": (builder, dict(name="m", coordinate="j", gear=2.0)),
    "Builder.cylinder": (builder, dict(name="m", parent="ground", child="a")),
    "Builder.thruster": (builder, dict(name="m", body="a", force=(1.0, 0.0, 0.0), torque=(0.0, 0.0, 1.0))),
    "Builder.winch": (builder, dict(name="m", path=[("ground", (0, 0, 1)), ("a", (0, 0, 0))], gear=2.0)),
    "Builder.cable": (builder, dict(name="s", path=[("ground", (0, 0, 1)), ("a", (0, 0, 0))], stiffness=2.0)),
    "Builder.spring": (builder, dict(name="s", parent="ground", child="a", stiffness=2.0)),
    "Builder.coordinate_force": (builder, dict(name="s", coefficients={"j": 1.0}, damping=2.0)),
    "Builder.bushing": (builder, dict(name="s", parent="ground", child="a", stiffness=[1.0] * 6)),
    "Builder.applied_force": (builder, dict(name="s", body="a", force=[1.0, 2.0, 3.0])),
    "Builder.friction": (builder, dict(name="s", coordinate="j", coulomb=1.0)),
    "Builder.of": (lambda: ld.Builder, dict(robot=PANDA)), "Builder.frame": (builder, dict(name="f", body="a")),
    "Builder.change": (builder, dict(what="body", name="a", mass=2.0)),
    "Builder.remove": (builder, dict(what="body", name="a")),
    "Builder.attach": (builder, dict(robot=PANDA, to="a", prefix="p_", joint="revolute")),
    "Robot.at": (lambda: FIVE_BAR, dict(t=0.1)), "Robot.switched": (lambda: FIVE_BAR, dict(states={"pin": True})),
    "Robot.with_target": (lambda: FIVE_BAR, dict(name="pin", target=still)),
    "Robot.body_index": (lambda: FIVE_BAR, dict(name=FIVE_BAR.body_names[0])),
    "Robot.joint_index": (lambda: FIVE_BAR, dict(name="q1")),
    "Robot.constraint_index": (lambda: FIVE_BAR, dict(name="pin")),
    "PIDC.__call__": (controller, dict(t=0.0, q=HOME, v=REST)),
    "PIDC.errors": (controller, dict(t=0.0, q=HOME, v=REST)),
    "HybridController.__call__": (once(lambda: ld.HybridController(controller(), {"pin.vx": 0.0})),
                                  dict(t=0.0, q=HOME, v=REST, lam=np.zeros(1))),
    "Regulator.__call__": (regulator, dict(t=0.0, q=HOME, v=REST)),
    "Regulator.deviation": (regulator, dict(q=HOME, v=REST)),
    "Regulator.derivative": (regulator, dict(t=0.0, q=HOME, v=REST)),
    "Plan.__call__": (plan, dict(t=0.0, q=HOME, v=REST)),
    "MPC.__call__": (once(lambda: ld.MPC(FIVE_BAR, HOME, REST, ld.Cost(), 2, 0.01)), dict(t=0.0, q=HOME, v=REST)),
    "KalmanBucyFilter.rate": (bucy, dict(x=REST, y=HOME[:2], u=REST)),
    "KalmanBucyFilter.measure": (bucy, dict(q=HOME, v=REST, u=REST)),
    "KalmanBucyFilter.innovation": (bucy, dict(y=HOME[:2], x=REST, u=REST)),
    "KalmanBucyFilter.disturbed": (bucy, dict(y=HOME[:2], noise=HOME[:2])),
    "KalmanFilter.measure": (kalman, dict(q=HOME, v=REST, u=REST)),
    "KalmanFilter.innovation": (kalman, dict(y=HOME[:2], x=REST, u=REST)),
    "KalmanFilter.disturbed": (kalman, dict(y=HOME[:2], noise=HOME[:2])),
    "KalmanFilter.reset": (kalman, dict(x=REST)), "KalmanFilter.predict": (kalman, dict(u=REST)),
    "KalmanFilter.update": (kalman, dict(y=HOME[:2], u=REST)),
    "ExtendedKalmanFilter.measure": (extended, dict(q=HOME, v=REST, u=REST)),
    "ExtendedKalmanFilter.deviation": (extended, dict(q=HOME, v=REST)),
    "ExtendedKalmanFilter.disturbed": (extended, dict(y=HOME[:2], noise=HOME[:2])),
    "ExtendedKalmanFilter.update": (extended, dict(y=HOME[[0, 3]], u=REST)),
    "MovingHorizonEstimator.measure": (windowed, dict(q=HOME, v=REST, u=REST)),
    "MovingHorizonEstimator.predict": (windowed, dict(u=REST)),
    "MovingHorizonEstimator.update": (windowed, dict(y=HOME[[0, 3]], u=REST)),
    "OutputFeedback.answer": (once(lambda: ld.OutputFeedback(**output_feedback())), dict(t=0.0, y=HOME[:2])),
    "TrackingRegulator.__call__": (tracking, dict(t=0.0, q=HOME, v=REST)),
    "TrackingRegulator.reference": (tracking, dict(t=0.0)),
    "TrackingRegulator.gain": (tracking, dict(t=0.0)),
    "Sensitivity.index": (once(lambda: ld.sensitivities(FIVE_BAR, HOME, REST, REST)), dict(parameter="mass:link1")),
    "Excitation.at": (once(lambda: ld.excitation(PANDA, 5.0, 2, samples=10, iterations=0)), dict(t=[0.1, 0.2])),
    "Identification.interval": (identified, dict(level=0.9)),
    "Identification.predict": (identified, dict(q=ARM, v=ARM, a=ARM)),
    "LocalStateSpace.discretize": (model, dict(h=1e-3)),
    "LocalStateSpace.taylor": (once(lambda: ld.linearize(FIVE_BAR, HOME, REST, REST, second=True)),
                               dict(dx=REST, du=REST)),
    "Specialized.rnea": (fast, dict(q=HOME, v=REST, a=REST)), "Specialized.aba": (fast, dict(q=HOME, v=REST, tau=REST)),
    "Specialized.rnea_derivatives": (fast, dict(q=HOME, v=REST, a=REST)),
    "Specialized.aba_derivatives": (fast, dict(q=HOME, v=REST, tau=REST)),
    "Specialized.forward_dynamics": (fast, dict(q=HOME, v=REST, tau=REST)),
    "Specialized.linearize": (fast, dict(q=HOME, v=REST, tau=REST, results=("A", "B"))),
    "Robot.coordinate_index": (lambda: FIVE_BAR, dict(name="q1")),
    "Robot.velocity_index": (lambda: FIVE_BAR, dict(name="q1")),
    "Robot.loop_index": (lambda: FIVE_BAR, dict(name="pin")),
    "Robot.virtual_index": (lambda: FIVE_BAR, dict(name=FIVE_BAR.virtual_names[0])),
    "Sensitivity.eigenvalues": (once(lambda: ld.sensitivities(FIVE_BAR, HOME, REST, REST, second=True)),
                                dict(by="states")),
    "Regulator.bounded": (regulator, dict(u=REST, applied=REST)),
    "TrackingRegulator.derivative": (tracking, dict(t=0.0, q=HOME, v=REST)),
    "OptimalMotion.feedforward": (motion, dict(t=0.1, q=HOME, v=REST)),
    "ExtendedKalmanFilter.predict": (extended, dict(u=REST)),
    "MovingHorizonEstimator.disturbed": (windowed, dict(y=HOME[:2], noise=HOME[:2])),
    "OutputFeedback.__call__": (once(lambda: ld.OutputFeedback(**output_feedback())), dict(t=0.0, q=HOME, v=REST)),
    **{f"{kind}.{of}": (once(lambda kind=kind: getattr(ld, kind)(**CALLS[kind])),
                        dict(robot=SOLID if kind == "DistanceTarget" else PANDA, q=ARM))
       for kind in ("CenterOfMassTarget", "DirectionTarget", "DistanceTarget", "OrientationTarget", "PointTarget",
                    "PoseTarget") for of in ("error", "jacobian")},
    "RunDerivatives.forward": (varied, dict(q0=REST, v0=REST, inputs=REST, parameters=[1.0])),
    "RunDerivatives.adjoint": (varied, dict(q=REST, v=REST, t=np.zeros(3))),
    "OptimalMotion.at": (motion, dict(t=0.1)),
    "PathFunction.check": (lambda: PATH, dict(robot=FIVE_BAR, q=HOME, v=REST, u=np.zeros(4))),
    "Trajectory.__getitem__": (run, dict(name="q1")),
    "Trajectories.__getitem__": (once(lambda: ld.simulate(FIVE_BAR, [HOME] * 2, REST, 0.002)), dict(index=1)),
    "Trajectory.plot": (run, dict(names="q1")),
    "Trajectory.animate": (run, dict(path="a.gif", robot=FIVE_BAR, rate=500.0, progress=False)),
    "LocalStateSpace.__getitem__": (
        once(lambda: ld.linearize(FIVE_BAR, np.tile(HOME, (2, 1)), *np.zeros((2, 2, 4)))), dict(index=1)),
}
RESULTS = {"BaseParameters", "Branch", "Curvature", "Distances", "EventRecord", "Excitation",
           "ForwardDynamicsDerivatives", "GainSchedule", "Identification", "InverseKinematics", "KalmanBucyFilter",
           "KalmanFilter", "LargeResult",
           "MovingHorizonEstimator", "OptimalMotion", "Plan", "Regulator", "Robot", "RunDerivatives", "RunGradient",
           "RunVariation", "Sensitivity", "SpecialPoint", "SystemFeedback", "TrackingRegulator", "Trajectories",
           "Trajectory", "Trim"}
"""What is not made by hand."""


def parameters(what):
    """Names of the arguments of something public: a function, a class, or ``class.method``."""
    owner, _, method = what.partition(".")
    of = {"LocalStateSpace": LocalStateSpace, "Specialized": Specialized}.get(owner) or getattr(ld, owner)
    function = OTHERWISE.get(what) or (getattr(of, method) if method else of)
    kinds = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    return [each.name for each in inspect.signature(function).parameters.values()
            if each.kind not in kinds and each.name != "self"]


def call_of(what):
    """What is called, and the arguments of a valid call."""
    if what in CALLS:
        given = CALLS[what]
        return getattr(ld, what), given() if callable(given) else given
    make, given = METHODS[what]
    return OTHERWISE.get(what) or (lambda **named: getattr(make(), what.partition(".")[2])(**named)), given


# files, pages and clusters have their own tests (test_io_toml, test_view, test_large)
TRIED = [*(name for name, given in CALLS.items() if given is not None), *METHODS]
EVERY = [pytest.param(what, name, id=f"{what}-{name}") for what in TRIED for name in parameters(what)]


def is_sound(result):
    """No number of it is NaN, as far as it consists of arrays."""
    if isinstance(result, np.ndarray):
        return result.dtype.kind != "f" or not np.isnan(result).any()
    if isinstance(result, (tuple, list)):
        return all(map(is_sound, result))
    if isinstance(result, dict):
        return all(map(is_sound, result.values()))
    if dataclasses.is_dataclass(result) and hasattr(result, "A"):
        second = getattr(result, "second", None)
        return is_sound([result.A, result.B, *([] if second is None else [second.f])])
    if hasattr(result, "lam"):
        return is_sound([result.a, result.lam])
    return not isinstance(result, numbers.Real) or result == result


def test_every_public_function_is_tried():
    public = {name for name in ld.__all__ if not (inspect.isclass(x := getattr(ld, name)) and issubclass(x, Exception))}
    assert public - set(CALLS) == RESULTS


@pytest.mark.parametrize("what", TRIED)
def test_the_calls_are_valid(what, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    function, given = call_of(what)
    assert is_sound(function(**given))


@pytest.mark.parametrize("what, name", EVERY)
def test_a_wrong_argument_is_refused_or_makes_sense(what, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    function, given = call_of(what)
    if what == "forward_dynamics" and name in FORMULATIONS:
        given = given | {"method": FORMULATIONS[name]}
    if what == "simulate" and name == "sigma":
        given = given | {"formulation": "unified"}
    if name == "u":
        given = {key: value for key, value in given.items() if key != "tau"}
    bad = {}
    for kind, wrong in WRONG.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                if not is_sound(function(**given | {name: wrong})):
                    bad[kind] = "NaN"
            except ld.LiedynError as error:
                if len(str(error)) > 1200:
                    bad[kind] = f"a message of {len(str(error))} characters"
            except Exception as error:
                bad[kind] = f"{type(error).__name__}: {error}"[:150]
    assert not bad
