"""Wrong arguments of every public function: each gives a typed error that says so, or a sound result."""
import dataclasses
import datetime
import inspect
import numbers
import warnings
from importlib.util import find_spec

import numpy as np
import pytest

import liedyn as ld

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


def of_builder(method):
    """A method of a fresh builder, in the signature of the method."""
    def call(**given):
        return getattr(builder(), method)(**given)
    call.__signature__ = inspect.signature(getattr(builder(), method))
    return call


def change(what, name, mass):
    """`Builder.change`, whose first two arguments have no names."""
    builder().change(what, name, mass=mass)


def sprung():
    """A five-bar with a torsion bar."""
    b = ld.Builder.of(FIVE_BAR)
    b.coordinate_force("bar", {"q1": 1.0}, stiffness=2.0)
    return b.build()


SPRUNG = sprung()
STATE = dict(robot=FIVE_BAR, q=HOME, v=REST)
ROWS = dict(jacobian=lambda t, q: np.ones((1, 1)), bias=lambda t, q, v: np.zeros(1),
            derivatives=lambda t, q, v, a: (np.zeros((1, 1)),) * 3, force_derivative=lambda t, q, lam: np.zeros((1, 1)))
CONTROLLER = ld.PIDC(FIVE_BAR, HOME[:2], G_P=25.0, G_D=10.0, independent=("q1", "q2"))
MODEL = ld.linearize(FIVE_BAR, HOME, REST, REST)
MODELS = ld.linearize(FIVE_BAR, np.tile(HOME, (2, 1)), np.zeros((2, 4)), np.zeros((2, 4)))
RUN = ld.simulate(FIVE_BAR, HOME, REST, 0.002)
VARIED = ld.differentiate_run(FIVE_BAR, HOME, REST, 0.002, tau=REST, parameters=["mass:link1"])
REGULATOR = ld.lqr(FIVE_BAR, HOME, 1.0, 1.0)
FILTER = ld.dkalman(FIVE_BAR, HOME, 0.01, 1.0, 1.0, outputs=["q1", "q4"])
BUCY = ld.kalman(FIVE_BAR, HOME, 1.0, 1.0, outputs=["q1", "q4"])
KALMAN = dict(**STATE, h=0.01, P=1.0, Q=1.0, R=1.0, outputs=["q1", "q4"])
EKF, OUTPUT_FEEDBACK = ld.ExtendedKalmanFilter(**KALMAN), dict(controller=REGULATOR, estimator=FILTER, noise=1.0)
CONTROL = find_spec("control") is not None
TRACKING = ld.tvlqr(FIVE_BAR, RUN.t, RUN.q, RUN.v, 1.0, 1.0, a=RUN.a)
PATH = ld.PathFunction(lambda t, q, v, u: v @ v, lambda t, q, v, u: (0.0 * v, 2.0 * v, 0.0 * u))
MOTION = ld.optimize_motion(FIVE_BAR, HOME, HOME, duration=0.2, intervals=1, points=3, tolerance=None)

SWUNG = ld.random_configuration(PANDA, 0, 20)
MEASURED = dict(robot=PANDA, q=SWUNG, v=0.5 * SWUNG, a=0.3 * SWUNG, tau=ld.rnea(PANDA, SWUNG, 0.5 * SWUNG, 0.3 * SWUNG),
                include=["damping"], bodies=["panda_hand"], noise=0.1, consistent=False, distance="quadratic",
                prior_deviation=2.0)
IDENTIFIED = ld.identify(**MEASURED)

PLAN = ld.ddp(FIVE_BAR, HOME, REST, ld.Cost(), 2, 0.01)
REACHED = ld.PointTarget("panda_hand", (0.3, 0.3, 0.5))

CALLS = {
    "aba": dict(**STATE, tau=REST), "aba_derivatives": dict(**STATE, tau=REST),
    "body_jacobian": dict(robot=PANDA, q=ARM, body="panda_hand"),
    "body_jacobian_dot": dict(robot=PANDA, q=ARM, v=ARM, body="panda_hand"),
    "body_jacobian_ddot": dict(robot=PANDA, q=ARM, v=ARM, a=ARM, body="panda_hand"),
    "body_jacobian_dq": dict(robot=PANDA, q=ARM, body="panda_hand"),
    "centroidal_momentum_matrix": dict(robot=FIVE_BAR, q=HOME), "centroidal_momentum_matrix_dot": STATE,
    "bundled": {}, "center_of_mass": dict(robot=FIVE_BAR, q=HOME), "crba": dict(robot=FIVE_BAR, q=HOME),
    "difference": dict(robot=FIVE_BAR, q0=HOME, q1=HOME), "forward_kinematics": dict(robot=FIVE_BAR, q=HOME),
    "regressor": dict(**STATE, a=REST, include=["damping"], independent=["q1", "q2"], friction_width=1e-3),
    "base_parameters": dict(**STATE, a=REST, include=["damping"], tolerance=1e-6, seed=0),
    "excitation": dict(robot=PANDA, duration=5.0, harmonics=2, include=["damping"], samples=10, iterations=1, seed=0,
                       limits={"panda_joint1": (-1.0, 1.0)}, speed=1.0),
    "identify": MEASURED, "low_pass": dict(x=np.sin(np.arange(40.0)), period=0.1, cutoff=1.0, order=4),
    "measured_motion": dict(robot=FIVE_BAR, coordinates={"q1": np.full(30, HOME[0]), "q2": np.full(30, HOME[1])},
                            period=0.1, cutoff=1.0, guess=HOME),
    "dynamic_parameters": dict(robot=FIVE_BAR, include=["damping"]),
    "inertial_parameters": dict(robot=FIVE_BAR), "inertial_regressor": dict(**STATE, a=REST),
    "with_inertial_parameters": dict(robot=FIVE_BAR, pi=ld.inertial_parameters(FIVE_BAR)),
    "integrate": dict(robot=FIVE_BAR, q=HOME, dv=REST), "kinetic_energy": STATE, "momentum": STATE,
    "momentum_terms": STATE, "canonical_momenta": STATE,
    "velocity_from_momenta": dict(robot=FIVE_BAR, q=HOME, p=np.zeros(2)),
    "canonical_equations": dict(robot=FIVE_BAR, q=HOME, p=np.zeros(2), tau=REST),
    "neutral": dict(robot=FIVE_BAR), "pose": dict(robot=PANDA, q=ARM, body="panda_hand"),
    "potential_energy": dict(robot=FIVE_BAR, q=HOME), "random_configuration": dict(robot=FIVE_BAR, rng=0, size=2),
    "rnea": dict(**STATE, a=REST), "rnea_derivatives": dict(**STATE, a=REST), "total_mass": dict(robot=FIVE_BAR),
    "load": dict(source="five_bar"), "load_toml": None, "load_urdf": None, "load_sdf": None, "load_mjcf": None,
    "trim": dict(robot=FIVE_BAR, q=HOME, v=REST, u=np.zeros(4), hold={"q2": HOME[1]}, free=["force:q1", "force:q4"],
                 bounds={"force:q1": (-99.0, 99.0)}, tolerance=1e-9, iterations=50, rank_tolerance=1e-8),
    "continuation": dict(robot=FIVE_BAR, start=ld.trim(FIVE_BAR, HOME, free=["force:q1", "force:q4"]), parameter="q1",
                         span=(2.0, 2.2), free=["force:q1", "force:q4"], hold=["q2"], step=0.02, longest=0.1,
                         points=3, direction=1, rank_tolerance=1e-8),
    "optimize_motion": dict(
        robot=FIVE_BAR, start=HOME, goal=ld.close(FIVE_BAR, HOME, q1=HOME[0] + 0.1, q2=HOME[1]), duration=0.5,
        cost={"effort": 1.0}, bounds={"q1": (0.0, 3.0)}, path=[], via=[], intervals=2, points=3, tolerance=None,
        guess=None, solver=ld.NLPSolver(iterations=20), progress=False),
    "NLPSolver": dict(name="liedyn", iterations=20, feasibility=1e-8, optimality=1e-6, settings={"mu": 0.1}),
    "PathFunction": dict(f=lambda t, q, v, u: v @ v, df=lambda t, q, v, u: (0.0 * v, 2.0 * v, 0.0 * u), high=1.0),
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
    "ExtendedKalmanFilter": KALMAN, "OutputFeedback": OUTPUT_FEEDBACK,
    "to_control": dict(robot=FIVE_BAR, q=HOME, v=REST) if CONTROL else None,
    "from_control": dict(system=MODEL.to_control(), robot=FIVE_BAR, outputs=["q1", "q2", "q3", "q4"], period=0.01,
                         actuators=["q1", "q2"]) if CONTROL else None,
    "tvlqr": dict(robot=FIVE_BAR, t=RUN.t, q=RUN.q, v=RUN.v, Q=1.0, R=1.0, a=RUN.a),
    "gain_schedule": dict(robot=FIVE_BAR, grid={"q1": [0.0, 0.1], "q2": [0.0, 0.1]}, Q=1.0, R=1.0, q=HOME),
    "view": None, "export_html": None, "map_states": None, "map_parameters": None, "open_results": None,
    "modes": dict(ss=MODEL), "frequency_response": dict(ss=MODEL, omega=[1.0, 2.0]),
    "actuator_matrix": dict(robot=SPRUNG, q=HOME),
    "element_forces": dict(robot=SPRUNG, q=HOME, v=REST), "element_states": dict(robot=SPRUNG, q=HOME, v=REST),
    "from_pinocchio": dict(model=ld.to_pinocchio(PANDA)[0], reference="home") if find_spec("pinocchio") else None,
    "to_pinocchio": dict(robot=PANDA) if find_spec("pinocchio") else None,
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
    "HybridController": dict(motion=CONTROLLER, forces={"pin.vx": 0.0}, G_F=1.0, G_I=1.0, plant=FIVE_BAR),
    "PIDC": dict(robot=FIVE_BAR, trajectory=HOME[:2], G_P=25.0, G_D=10.0, G_I=1.0, independent=("q1", "q2"),
                 active=("q1", "q2"), metric=np.ones(4), rank_tolerance=1e-8),
    "controllability": dict(robot=FIVE_BAR, q=HOME, active=("q1",), metric=np.ones(4), rank_tolerance=1e-8),
    "inverse_dynamics": dict(**STATE, accelerations=np.zeros(2), independent=("q1", "q2"), active=("q1", "q2", "q3"),
                             metric=np.ones(4), rank_tolerance=1e-8),
    "forward_dynamics": dict(**STATE, tau=REST), "check_feedback": dict(**STATE, feedback=(feedback, derivative)),
    "discretize": dict(**STATE, tau=REST, h=1e-3), "linearize": dict(**STATE, tau=REST),
    "underlying": dict(**STATE, tau=REST), "specialize": dict(robot=ld.load("particle_on_circle")),
    "sensitivities": dict(**STATE, tau=REST, parameters=["mass:*"]),
    "simulate": dict(robot=FIVE_BAR, q0=HOME, v0=REST, t_final=0.002, progress=False),
    "differentiate_run": dict(robot=FIVE_BAR, q0=HOME, v0=REST, t_final=0.002, parameters=["mass:link1"]),
    "forward_dynamics_derivatives": dict(**STATE, tau=REST),
    "Event": dict(name="e", guard=lambda t, q, v: 1.0), "Adaptive": dict(name="RK45"), "Baumgarte": {},
    "GeneralizedAlpha": {}, "GasSpring": dict(force=1.0, column=1.0),
    "PolynomialSpring": dict(stiffness=1.0), "Motor": dict(stall_torque=1.0, no_load_speed=1.0),
    "step": dict(**STATE, tau=REST, dt=1e-3), "Stepper": STATE, "Sampled": dict(controller=REGULATOR, period=0.01),
    "VirtualCoupler": dict(robot=PANDA, body="panda_hand", placement=(0.0, 0.0, 0.1), stiffness=9.0, damping=1.0),
    "RealTimeLoop": dict(function=lambda: None, dt=1e-3),
}
FORMULATIONS = {"baumgarte": "svd", "sigma": "unified", "inertia": "projection", "metric": "projection",
                "scale": "projection", "condition_limit": "kane"}
COUPLER = ld.VirtualCoupler(PANDA, "panda_hand", None, 9.0, 1.0)
METHODS = {
    "Stepper.step": (ld.Stepper(**STATE).step, dict(tau=REST)),
    "Stepper.advance": (ld.Stepper(**STATE).advance, dict(steps=2, tau=REST)),
    "Stepper.reset": (ld.Stepper(**STATE).reset, dict(q=HOME, v=REST, t=0.5, start="check")),
    "Stepper.switch": (ld.Stepper(**STATE).switch, dict(name="pin", on=True)),
    "VirtualCoupler.tuned": (ld.VirtualCoupler.tuned, dict(
        robot=PANDA, body="panda_hand", placement=None, q=ARM, frequency=1.0, damping_ratio=0.7, turning=True)),
    "VirtualCoupler.move": (COUPLER.move, dict(pose=np.eye(4), twist=np.zeros(6))),
    "VirtualCoupler.force": (COUPLER.force, dict(q=ARM, v=ARM)),
    "VirtualCoupler.check": (COUPLER.check, dict(q=ARM, dt=1e-3)),
    "RealTimeLoop.run": (ld.RealTimeLoop(lambda: False, 1e-4).run, dict(duration=1e-3)),
    "Builder.body": (of_builder("body"), dict(name="b", **BOX)),
    "Builder.joint": (of_builder("joint"), dict(name="k", kind="revolute", parent="a", child="c")),
    "Builder.loop": (of_builder("loop"), dict(name="l", kind="revolute", parent="ground", child="a")),
    "Builder.constraint": (of_builder("constraint"), dict(name="c", kind="on_plane", parent="ground", child="a")),
    "Builder.stops": (of_builder("stops"), {}), "Builder.custom": (of_builder("custom"), dict(name="r", **ROWS)),
    "Builder.actuator": (of_builder("actuator"), dict(name="m", coordinate="j", gear=2.0)),
    "Builder.cylinder": (of_builder("cylinder"), dict(name="m", parent="ground", child="a")),
    "Builder.spring": (of_builder("spring"), dict(name="s", parent="ground", child="a", stiffness=2.0)),
    "Builder.coordinate_force": (of_builder("coordinate_force"), dict(name="s", coefficients={"j": 1.0}, damping=2.0)),
    "Builder.bushing": (of_builder("bushing"), dict(name="s", parent="ground", child="a", stiffness=[1.0] * 6)),
    "Builder.applied_force": (of_builder("applied_force"), dict(name="s", body="a", force=[1.0, 2.0, 3.0])),
    "Builder.friction": (of_builder("friction"), dict(name="s", coordinate="j", coulomb=1.0)),
    "Builder.of": (ld.Builder.of, dict(robot=PANDA)), "Builder.frame": (of_builder("frame"), dict(name="f", body="a")),
    "Builder.change": (change, dict(what="body", name="a", mass=2.0)),
    "Builder.remove": (of_builder("remove"), dict(what="body", name="a")),
    "Builder.attach": (of_builder("attach"), dict(robot=PANDA, to="a", prefix="p_", joint="revolute")),
    "Robot.at": (FIVE_BAR.at, dict(t=0.1)), "Robot.switched": (FIVE_BAR.switched, dict(states={"pin": True})),
    "Robot.with_target": (FIVE_BAR.with_target, dict(name="pin", target=still)),
    "Robot.body_index": (FIVE_BAR.body_index, dict(name=FIVE_BAR.body_names[0])),
    "Robot.joint_index": (FIVE_BAR.joint_index, dict(name="q1")),
    "Robot.constraint_index": (FIVE_BAR.constraint_index, dict(name="pin")),
    "PIDC.__call__": (CONTROLLER.__call__, dict(t=0.0, q=HOME, v=REST)),
    "PIDC.errors": (CONTROLLER.errors, dict(t=0.0, q=HOME, v=REST)),
    "HybridController.__call__": (ld.HybridController(CONTROLLER, {"pin.vx": 0.0}).__call__,
                                  dict(t=0.0, q=HOME, v=REST, lam=np.zeros(1))),
    "Regulator.__call__": (REGULATOR.__call__, dict(t=0.0, q=HOME, v=REST)),
    "Regulator.deviation": (REGULATOR.deviation, dict(q=HOME, v=REST)),
    "Regulator.derivative": (REGULATOR.derivative, dict(t=0.0, q=HOME, v=REST)),
    "Plan.__call__": (PLAN.__call__, dict(t=0.0, q=HOME, v=REST)),
    "MPC.__call__": (ld.MPC(FIVE_BAR, HOME, REST, ld.Cost(), 2, 0.01).__call__, dict(t=0.0, q=HOME, v=REST)),
    "KalmanBucyFilter.rate": (BUCY.rate, dict(x=REST, y=HOME[:2], u=REST)),
    "KalmanFilter.measure": (FILTER.measure, dict(q=HOME, v=REST, u=REST)),
    "KalmanFilter.innovation": (FILTER.innovation, dict(y=HOME[:2], x=REST, u=REST)),
    "KalmanFilter.disturbed": (FILTER.disturbed, dict(y=HOME[:2], noise=HOME[:2])),
    "KalmanFilter.reset": (FILTER.reset, dict(x=REST)), "KalmanFilter.predict": (FILTER.predict, dict(u=REST)),
    "KalmanFilter.update": (FILTER.update, dict(y=HOME[:2], u=REST)),
    "ExtendedKalmanFilter.measure": (EKF.measure, dict(q=HOME, v=REST, u=REST)),
    "ExtendedKalmanFilter.deviation": (EKF.deviation, dict(q=HOME, v=REST)),
    "ExtendedKalmanFilter.disturbed": (EKF.disturbed, dict(y=HOME[:2], noise=HOME[:2])),
    "ExtendedKalmanFilter.update": (EKF.update, dict(y=HOME[[0, 3]], u=REST)),
    "OutputFeedback.answer": (ld.OutputFeedback(**OUTPUT_FEEDBACK).answer, dict(t=0.0, y=HOME[:2])),
    "TrackingRegulator.__call__": (TRACKING.__call__, dict(t=0.0, q=HOME, v=REST)),
    "TrackingRegulator.reference": (TRACKING.reference, dict(t=0.0)),
    "TrackingRegulator.gain": (TRACKING.gain, dict(t=0.0)),
    "Sensitivity.index": (ld.sensitivities(FIVE_BAR, HOME, REST, REST).index, dict(parameter="mass:link1")),
    "Excitation.at": (ld.excitation(PANDA, 5.0, 2, samples=10, iterations=0).at, dict(t=[0.1, 0.2])),
    "Identification.interval": (IDENTIFIED.interval, dict(level=0.9)),
    "Identification.predict": (IDENTIFIED.predict, dict(q=ARM, v=ARM, a=ARM)),
    "LocalStateSpace.discretize": (MODEL.discretize, dict(h=1e-3)),
    "RunDerivatives.forward": (VARIED.forward, dict(q0=REST, v0=REST, inputs=REST, parameters=[1.0])),
    "RunDerivatives.adjoint": (VARIED.adjoint, dict(q=REST, v=REST, t=np.zeros(3))),
    "OptimalMotion.at": (MOTION.at, dict(t=0.1)),
    "PathFunction.check": (PATH.check, dict(robot=FIVE_BAR, q=HOME, v=REST, u=np.zeros(4))),
    "Trajectory.__getitem__": (RUN.__getitem__, dict(name="q1")),
    "Trajectories.__getitem__": (ld.simulate(FIVE_BAR, [HOME] * 2, REST, 0.002).__getitem__, dict(index=1)),
    "Trajectory.plot": (lambda names: RUN.plot(names), dict(names="q1")),
    "Trajectory.animate": (RUN.animate, dict(path="a.gif", robot=FIVE_BAR, rate=500.0, progress=False)),
    "LocalStateSpace.__getitem__": (MODELS.__getitem__, dict(index=1)),
}
RESULTS = {"BaseParameters", "Branch", "EventRecord", "Excitation", "ForwardDynamicsDerivatives", "GainSchedule",
           "Identification", "InverseKinematics", "KalmanBucyFilter", "KalmanFilter", "LargeResult", "OptimalMotion",
           "Plan", "Regulator", "Robot", "RunDerivatives", "RunGradient", "RunVariation", "Sensitivity",
           "SpecialPoint", "SystemFeedback", "TrackingRegulator", "Trajectories", "Trajectory", "Trim"}
"""What is not made by hand."""


def functions():
    """(name, function, arguments of a valid call) of all that is public."""
    for name, given in CALLS.items():
        if given is not None:  # files, pages and clusters have their own tests (test_io_toml, test_view, test_large)
            yield name, getattr(ld, name), given
    for name, (function, given) in METHODS.items():
        yield name, function, given


def parameters(function):
    kinds = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    return [each.name for each in inspect.signature(function).parameters.values() if each.kind not in kinds]


EVERY = [pytest.param(function, given, name, id=f"{what}-{name}") for what, function, given in functions()
         for name in parameters(function)]


def is_sound(result):
    """No number of it is NaN, as far as it consists of arrays."""
    if isinstance(result, np.ndarray):
        return result.dtype.kind != "f" or not np.isnan(result).any()
    if isinstance(result, (tuple, list)):
        return all(map(is_sound, result))
    if isinstance(result, dict):
        return all(map(is_sound, result.values()))
    if dataclasses.is_dataclass(result) and hasattr(result, "A"):
        return is_sound([result.A, result.B])
    if hasattr(result, "lam"):
        return is_sound([result.a, result.lam])
    return not isinstance(result, numbers.Real) or result == result


def test_every_public_function_is_tried():
    public = {name for name in ld.__all__ if not (inspect.isclass(x := getattr(ld, name)) and issubclass(x, Exception))}
    assert public - set(CALLS) == RESULTS


@pytest.mark.parametrize("function, given", [pytest.param(f, given, id=name) for name, f, given in functions()])
def test_the_calls_are_valid(function, given, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert is_sound(function(**given))


@pytest.mark.parametrize("function, given, name", EVERY)
def test_a_wrong_argument_is_refused_or_makes_sense(function, given, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if function is ld.forward_dynamics and name in FORMULATIONS:
        given = given | {"method": FORMULATIONS[name]}
    if function is ld.simulate and name == "sigma":
        given = given | {"formulation": "unified"}
    if name == "u":
        given = {key: value for key, value in given.items() if key != "tau"}
    bad = {}
    for what, wrong in WRONG.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                if not is_sound(function(**given | {name: wrong})):
                    bad[what] = "NaN"
            except ld.LiedynError as error:
                if len(str(error)) > 1200:
                    bad[what] = f"a message of {len(str(error))} characters"
            except Exception as error:
                bad[what] = f"{type(error).__name__}: {error}"[:150]
    assert not bad
