"""A call of every public function, on robots as they come: in which process must not matter."""
import contextlib
import os
import tempfile
import warnings
import zipfile

import numpy as np

import liedyn as ld

PLAIN = ("AccumulationError CacheWarning ClosureError ConditionWarning ContactWarning ControllabilityError "
         "IdentificationError IdentificationWarning InfeasibleError InputError LiedynError ModelError ModelWarning "
         "MotionWarning OptimizationError PlanError PlanWarning ReachError ReachWarning SimulationError "
         "SingularConfigurationError TrimError").split()
"""Errors and warnings: nothing to call."""
MADE = {
    "Branch": "continuation", "SpecialPoint": "continuation", "Trim": "trim", "Plan": "ddp",
    "OptimalMotion": "optimize_motion", "InverseKinematics": "inverse_kinematics", "GainSchedule": "gain_schedule",
    "Regulator": "lqr", "TrackingRegulator": "tvlqr", "KalmanBucyFilter": "kalman", "KalmanFilter": "dkalman",
    "ForwardDynamicsDerivatives": "forward_dynamics_derivatives", "RunDerivatives": "differentiate_run",
    "RunGradient": "differentiate_run", "RunVariation": "differentiate_run", "BaseParameters": "base_parameters",
    "Excitation": "excitation", "Identification": "identify", "LargeResult": "map_states",
    "Sensitivity": "sensitivities", "EventRecord": "Event", "Trajectory": "simulate", "Trajectories": "many runs",
    "MovingHorizonEstimator": "moving_horizon", "SystemFeedback": "from_control", "Robot": "load",
    "NLPSolver": "optimize_motion", "Target": "PoseTarget", "Curvature": "curvature",
}
"""Classes of what functions return: by which call, below."""
HOME = ld.load("five_bar").home
REST, PUSH = np.zeros(4), np.array([0.3, 0.0, 0.0, -0.2])
SWING = np.array([0.1, -0.2, 0.3, 0.1])


def loop(name, *arguments, **options):
    """A call with the five-bar."""
    return lambda robots: getattr(ld, name)(robots["loop"], *arguments, **options)


def tree(name, *arguments, **options):
    """A call with the arm."""
    return lambda robots: getattr(ld, name)(robots["tree"], *arguments, **options)


def folder(name):
    return os.path.join(tempfile.mkdtemp(), name)


def simulated(robots, **options):
    return ld.simulate(robots["loop"], HOME, REST, 0.02, progress=False, **options)


def saved(robots):
    return ld.load(ld.save(robots["loop"], folder("robot.toml")) or folder("robot.toml"))


def save_and_load(name, load, **options):
    def call(robots):
        path = folder(name)
        ld.save(robots["tree"], path)
        return ld.rnea(getattr(ld, load)(path, **options), *np.ones((3, 2)))

    return call


def constant(t, q, v):
    return PUSH


def no_slopes(t, q, v):
    return np.zeros((4, 4)), np.zeros((4, 4))


def first_angle(t, q, v):
    return q[0] - HOME[0] - 1e-3


def as_wanted(t):
    return HOME[:2], np.zeros(2), np.zeros(2)


def power(t, q, v, u):
    return u @ v


def slopes_of_power(t, q, v, u):
    return np.zeros(2), u, v


def cleared(robots):
    return ld.clearance(robots["tree"], "B", (3.0, 0.0, 0.0), 0.1).f(0.0, np.ones(2), np.zeros(2), np.zeros(2))


def solid(robots):
    b = ld.Builder.of(robots["tree"])
    b.shape("ball", "B", "sphere", size=0.1, role="collision")
    b.shape("wall", "ground", "box", (3.0, 0.0, 0.0), (0.1, 1.0, 1.0), role="collision")
    return b.build()


def hung(robots):
    b = ld.Builder.of(robots["tree"])
    path = [("ground", (0.0, 0.0, 5.0)), ld.Pulley("A", (0.0, 2.0, 0.0)), ("B", (0.0, 0.0, 0.1))]
    b.cable("rope", path, stiffness=9.0)
    return ld.element_forces(b.build(), np.ones(2), np.ones(2))


def apart(robots):
    return ld.distances(solid(robots), np.ones(2)).distance


def twice(x):
    return 2.0 * x


def run_derivatives(robots):
    run = ld.differentiate_run(robots["loop"], HOME, REST, 0.01, tau=PUSH, parameters=["mass:link1"])
    return run.forward(q0=np.ones(4)), run.adjoint(q=np.ones(4))


def stepped(robots):
    stepper = ld.Stepper(robots["loop"], HOME, REST)
    stepper.advance(100, PUSH)
    return stepper.q


def coupled(robots):
    coupler = ld.VirtualCoupler(robots["loop"], "link2", None, 100.0, 10.0)
    coupler.move([1.0, 1.0, 0.0])
    return coupler.force(HOME, SWING)


def planned(robots):
    return ld.ddp(robots["loop"], HOME, REST, ld.Cost(Q=1.0, R=1e-2), 5, 0.01).u


def receding(robots):
    return ld.MPC(robots["loop"], HOME, REST, ld.Cost(Q=1.0, R=1e-2), 5, 0.01)(0.0, HOME, REST)


def phased(robots):
    return ld.ddp(robots["loop"], HOME, REST, ld.Cost(Q=1.0, R=1e-2), [ld.Phase([], 3)], 0.01).u


def reached(*targets):
    return lambda robots: ld.inverse_kinematics(robots["tree"], list(targets), unreached="ignore").q


def branch(robots):
    robot = robots["tree"]
    forces = ["force:a", "force:b"]
    start = ld.trim(robot, [-1.0, 0.3], free=forces)
    return ld.continuation(robot, start, "a", (-1.05, -0.95), free=forces, points=5).q


def scheduled(robots):
    robot = robots["tree"]
    return ld.gain_schedule(robot, {"a": [-1.0, 0.0], "b": [0.0, 1.0]}, 1.0, 1.0).at(a=-0.5, b=0.5).K


def tracked(robots):
    t, q, rest = np.linspace(0.0, 0.1, 11), np.full((11, 2), 0.2), np.zeros((11, 2))
    return ld.tvlqr(robots["tree"], t, q, rest, 1.0, 1.0, a=rest)(0.05, q[0] + 0.1, rest[0])


def identified(robots):
    rng = np.random.default_rng(0)
    q, v, a = rng.standard_normal((3, 40, 2))
    return ld.identify(robots["tree"], q, v, a, ld.rnea(robots["tree"], q, v, a), consistent=False).condition


def measured(robots):
    t = np.arange(200) * 1e-3
    return ld.measured_motion(robots["tree"], {"a": np.sin(t), "b": np.cos(t)}, 1e-3)


def filtered(name, *arguments):
    def call(robots):
        made = getattr(ld, name)(robots["loop"], HOME, *arguments, Q=1.0, R=1e-3, outputs=["q1", "q2"])
        return made.measure(HOME, REST)

    return call


def output_feedback(robots):
    robot = robots["loop"]
    feedback = ld.OutputFeedback(ld.dlqr(robot, HOME, 0.01, 1.0, 1.0),
                                 ld.dkalman(robot, HOME, 0.01, 1.0, 1e-3, outputs=["q1", "q2"]))
    return ld.simulate(robot, HOME, REST, 0.02, u=feedback.sampled, progress=False)


def extended(robots):
    made = ld.ExtendedKalmanFilter(robots["loop"], HOME, REST, 0.01, 1.0, 1.0, 1e-3, ["q1", "q2"])
    return made.measure(HOME, REST)


def windowed(robots):
    made = ld.moving_horizon(robots["loop"], HOME, REST, 0.01, 1.0, 1.0, 1e-3, ["q1", "q2"], horizon=2)
    made.predict([0.0] * len(robots["loop"].actuator_names))
    made.update(HOME[:2])
    return made.q


def by_control(robots):
    control = __import__("control")
    feedback = ld.from_control(control.tf([1.0], [1.0, 1.0]), robots["loop"], ["q1"], HOME[:1], actuators=["q1"],
                               period=1e-3)
    return ld.simulate(robots["loop"], HOME, REST, 0.01, u=feedback.sampled, progress=False)


def to_control(robots):
    return ld.to_control(robots["loop"]).dynamics(0.0, np.zeros(4), PUSH)


def in_real_time(robots):
    stepper = ld.Stepper(robots["loop"], HOME, REST)
    made = ld.RealTimeLoop(lambda: stepper.advance(16), 0.016)
    made.run(0.032)
    return stepper.q


def page(robots):
    path = folder("page.html")
    ld.export_html(robots["loop"], simulated(robots), path, progress=False)
    return os.path.exists(path)


def viewed(robots):
    made = ld.view(robots["loop"], port=0)
    made.close()


@contextlib.contextmanager
def workers():
    """Threads of this process."""
    with __import__("distributed").Client(processes=False, dashboard_address=None, set_as_default=False) as client:
        yield {"client": client, "progress": False}


def mapped(robots, **options):
    with workers() as here:
        return ld.map_states("forward_dynamics", robots["loop"], {
            "q": HOME[None], "v": REST[None], "tau": PUSH[None]}, keep=["a"], **here, **options)["a"]


def parameters(robots):
    with workers() as here:
        return ld.map_parameters(twice, np.ones(3), **here)["result"]


def kept_results(robots):
    path = folder("results")
    mapped(robots, save=path)
    return np.asarray(ld.open_results(path)["a"])


def mjcf(robots):
    path = folder("robot.xml")
    with open(path, "w") as file:
        file.write("<mujoco><worldbody><body><joint axis='0 1 0'/><geom size='0.1' mass='1'/></body></worldbody>"
                   "</mujoco>")
    return ld.crba(ld.load_mjcf(path), [0.1])


def sdf(robots):
    path = folder("robot.sdf")
    with open(path, "w") as file:
        file.write("<sdf version='1.9'><model name='m'><link name='a'><inertial><mass>1</mass></inertial></link>"
                   "</model></sdf>")
    return ld.crba(ld.load_sdf(path), ld.load_sdf(path).home)


def many_runs(robots):
    return ld.simulate(robots["loop"], np.tile(HOME, (9, 1)), REST, 0.01, progress=False)


def motion(robots):
    return ld.optimize_motion(robots["tree"], [0.0, 0.1], [0.3, 0.2], intervals=2,
                              path=[ld.PathFunction(power, slopes_of_power, high=1e6)]).u


CALLS = {
    "Builder": lambda robots: ld.rnea(ld.Builder.of(robots["tree"]).build(), *np.ones((3, 2))),
    "GasSpring": lambda robots: ld.element_forces(robots["sprung"], HOME, SWING),
    "Motor": lambda robots: ld.element_states(robots["sprung"], HOME, SWING),
    "PolynomialSpring": lambda robots: ld.element_forces(robots["sprung"], HOME + 0.1, SWING),
    "bundled": lambda robots: len(ld.bundled()), "inertial_parameters": tree("inertial_parameters"),
    "load": lambda robots: ld.load("five_bar").home,
    "load_mjcf": mjcf, "load_sdf": sdf, "load_toml": save_and_load("robot.toml", "load_toml"),
    "load_urdf": save_and_load("robot.urdf", "load_urdf"), "neutral": loop("neutral"),
    "placement": lambda robots: ld.placement((1, 0, 0)),
    "random_configuration": loop("random_configuration", rng=0, size=3),
    "reduced": lambda robots: ld.crba(ld.reduced(robots["tree"], {"b": 0.3}), [0.1]),
    "save": save_and_load("robot.toml", "load"),
    "save_toml": lambda robots: ld.save_toml(robots["loop"], folder("robot.toml")) and None,
    "subtree": lambda robots: ld.crba(ld.subtree(robots["tree"], "B"), np.zeros(0)),
    "total_mass": loop("total_mass"),
    "with_inertial_parameters": lambda robots: ld.rnea(ld.with_inertial_parameters(
        robots["tree"], ld.inertial_parameters(robots["tree"])), *np.ones((3, 2))),
    "aba": loop("aba", HOME, SWING, PUSH), "crba": loop("crba", HOME), "rnea": loop("rnea", HOME, SWING, PUSH),
    "rnea_derivatives": loop("rnea_derivatives", HOME, SWING, PUSH),
    "rnea_second_derivatives": loop("rnea_second_derivatives", HOME, SWING, PUSH, weights=PUSH),
    "aba_derivatives": loop("aba_derivatives", HOME, SWING, PUSH),
    "aba_second_derivatives": loop("aba_second_derivatives", HOME, SWING, PUSH, weights=PUSH),
    "kinetic_energy": loop("kinetic_energy", HOME, SWING), "potential_energy": loop("potential_energy", HOME),
    "center_of_mass": loop("center_of_mass", HOME), "momentum": loop("momentum", HOME, SWING),
    "centroidal_momentum_matrix": loop("centroidal_momentum_matrix", HOME),
    "coriolis_matrix": loop("coriolis_matrix", HOME, SWING),
    "centroidal_momentum_matrix_dot": loop("centroidal_momentum_matrix_dot", HOME, SWING),
    "integrate": loop("integrate", HOME, SWING), "difference": loop("difference", HOME, HOME + SWING),
    "forward_kinematics": loop("forward_kinematics", HOME), "pose": loop("pose", HOME, "link2"),
    "body_jacobian": loop("body_jacobian", HOME, "link2"),
    "body_jacobian_dot": loop("body_jacobian_dot", HOME, SWING, "link2"),
    "body_jacobian_ddot": loop("body_jacobian_ddot", HOME, SWING, PUSH, "link2"),
    "body_jacobian_dq": loop("body_jacobian_dq", HOME, "link2"), "momentum_terms": loop("momentum_terms", HOME, SWING),
    "inertial_regressor": loop("inertial_regressor", HOME, SWING, PUSH),
    "world_jacobian": loop("world_jacobian", HOME, "link2"),
    "world_jacobian_dot": loop("world_jacobian_dot", HOME, SWING, "link2"),
    "world_acceleration": loop("world_acceleration", HOME, SWING, PUSH, "link2"),
    "check_constraint": loop("check_constraint", "pin", HOME, SWING),
    "close": loop("close", HOME), "closure_error": loop("closure_error", HOME),
    "complete_velocity": loop("complete_velocity", HOME, {"q1": 0.1, "q2": 0.2}),
    "constraint_bias": loop("constraint_bias", HOME, SWING), "constraint_jacobian": loop("constraint_jacobian", HOME),
    "constraint_wrenches": loop("constraint_wrenches", HOME, np.ones(5)),
    "velocity_error": loop("velocity_error", HOME, SWING), "virtual_coordinates": loop("virtual_coordinates", HOME),
    "virtual_jacobian": loop("virtual_jacobian", HOME),
    "world_constraint_wrenches": loop("world_constraint_wrenches", HOME, np.ones(5)),
    "HybridController": lambda robots: ld.HybridController(ld.PIDC(
        robots["loop"], as_wanted, 25.0, 10.0, independent=("q1", "q2")), {"pin.vx": 0.0}, G_F=1.0)(0.0, HOME, REST),
    "PIDC": lambda robots: ld.PIDC(robots["loop"], as_wanted, 25.0, 10.0, independent=("q1", "q2"))(0.0, HOME, REST),
    "controllability": loop("controllability", HOME),
    "inverse_dynamics": lambda robots: ld.inverse_dynamics(robots["loop"], HOME, REST, [0.1, 0.2]).tau,
    "canonical_equations": loop("canonical_equations", HOME, np.zeros(2), PUSH),
    "canonical_momenta": loop("canonical_momenta", HOME, REST),
    "joint_wrenches": lambda robots: ld.joint_wrenches(robots["loop"], HOME, REST, PUSH)["q2"],
    "world_joint_wrenches": lambda robots: ld.world_joint_wrenches(robots["loop"], HOME, {"q2": np.ones(6)})["q2"],
    "forward_dynamics": lambda robots: ld.forward_dynamics(robots["loop"], HOME, REST, PUSH).a,
    "velocity_from_momenta": loop("velocity_from_momenta", HOME, np.zeros(2)),
    "Cost": planned, "Limits": lambda robots: ld.ddp(
        robots["loop"], HOME, REST, ld.Cost(Q=1.0, R=1e-2), 5, 0.01, limits=ld.Limits(inputs=(-9.0, 9.0))).u,
    "MPC": receding, "Phase": phased, "ddp": planned,
    "continuation": branch,
    "trim": lambda robots: ld.trim(robots["loop"], HOME, free=["force:q1", "force:q2"]).u,
    "PathFunction": motion, "clearance": cleared, "optimize_motion": motion,
    "separation": lambda robots: ld.separation(solid(robots), at_least=0.1).f(0.0, np.ones(2), None, None),
    "distances": apart, "Distances": apart,
    "DistanceTarget": lambda robots: ld.inverse_kinematics(solid(robots), ld.DistanceTarget(at_least=0.1)).q,
    "CenterOfMassTarget": reached(ld.CenterOfMassTarget([0.5, 0.0, 0.5])),
    "DirectionTarget": reached(ld.DirectionTarget("B", (1.0, 0.0, 0.0), (0.0, 0.0, 1.0))),
    "OrientationTarget": reached(ld.OrientationTarget("B", np.eye(3))),
    "PointTarget": reached(ld.PointTarget("B", (0.5, 0.0, 0.5))), "PoseTarget": reached(ld.PoseTarget("B", np.eye(4))),
    "differential_inverse_kinematics": tree("differential_inverse_kinematics", np.full(2, 0.3), ld.PointTarget(
        "B", (0.5, 0.0, 0.5)), 0.01),
    "inverse_kinematics": reached(ld.PointTarget("B", (0.5, 0.0, 0.5))),
    "dlqr": lambda robots: ld.dlqr(robots["loop"], HOME, 0.01, 1.0, 1.0).K,
    "gain_schedule": scheduled, "lqr": lambda robots: ld.lqr(robots["loop"], HOME, 1.0, 1.0).K, "tvlqr": tracked,
    "actuator_matrix": loop("actuator_matrix", HOME),
    "tensions": lambda robots: ld.tensions(robots["tree"], np.ones(2), low=-np.inf), "Pulley": hung,
    "cable_lengths": lambda robots: ld.cable_lengths(robots["sprung"], HOME),
    "element_forces": lambda robots: ld.element_forces(robots["sprung"], HOME, SWING),
    "element_states": lambda robots: ld.element_states(robots["sprung"], HOME, SWING),
    "ExtendedKalmanFilter": extended, "moving_horizon": windowed, "OutputFeedback": output_feedback,
    "dkalman": filtered("dkalman", 0.01),
    "kalman": filtered("kalman"), "check_feedback": loop("check_feedback", (constant, no_slopes), HOME, SWING),
    "differentiate_run": run_derivatives,
    "forward_dynamics_derivatives":
        lambda robots: ld.forward_dynamics_derivatives(robots["loop"], HOME, REST, PUSH).a_q,
    "base_parameters": lambda robots: ld.base_parameters(robots["tree"]).coefficients,
    "dynamic_parameters": tree("dynamic_parameters"),
    "excitation": lambda robots: ld.excitation(robots["tree"], speed=4.0, iterations=2).q,
    "identify": identified, "low_pass": lambda robots: ld.low_pass(np.arange(100.0), 1e-3, 100.0),
    "measured_motion": measured, "regressor": tree("regressor", *np.ones((3, 2))),
    "from_pinocchio": lambda robots: ld.crba(ld.from_pinocchio(ld.to_pinocchio(robots["tree"])[0]), np.ones(2)),
    "to_pinocchio": lambda robots: ld.to_pinocchio(robots["tree"]) and None,
    "map_parameters": parameters, "map_states": mapped,
    "open_results": kept_results,
    "discretize": lambda robots: ld.discretize(robots["loop"], HOME, REST, PUSH, 1e-3).A,
    "frequency_response": lambda robots: ld.frequency_response(ld.linearize(robots["loop"], HOME, REST, REST), [1.0]),
    "linearize": lambda robots: ld.linearize(robots["loop"], HOME, REST, PUSH).A,
    "curvature": lambda robots: ld.curvature(robots["loop"], HOME, ("q1", "q2")).second,
    "modes": lambda robots: ld.modes(ld.linearize(robots["loop"], HOME, REST, REST)),
    "underlying": loop("underlying", HOME, REST, PUSH),
    "sensitivities": lambda robots: ld.sensitivities(robots["loop"], HOME, REST, REST, parameters=["mass:*"]),
    "Adaptive": lambda robots: simulated(robots, method="DOP853").q,
    "Baumgarte": lambda robots: simulated(robots, stabilisation=ld.Baumgarte(1.0, 1.0)).q,
    "Event": lambda robots: simulated(robots, events=ld.Event("here", first_angle)).events,
    "GeneralizedAlpha": lambda robots: simulated(robots, method=ld.GeneralizedAlpha(0.8)).q,
    "RealTimeLoop": in_real_time, "Sampled": lambda robots: simulated(robots, tau=ld.Sampled(constant, 0.01)).q,
    "Stepper": stepped, "VirtualCoupler": coupled, "simulate": lambda robots: simulated(robots, tau=constant).q,
    "step": loop("step", HOME, REST, PUSH), "specialize": lambda robots: ld.specialize(robots["tree"]).rnea(
        *np.ones((3, 2))),
    "generate_c": lambda robots: [open(file).read() for file in ld.generate_c(
        robots["loop"], folder("c"), functions=("rnea", "close"))],
    "export_fmu": lambda robots: zipfile.ZipFile(ld.export_fmu(
        robots["loop"], folder("fmu"), binary=False)).read("modelDescription.xml"),
    "from_control": by_control, "to_control": to_control, "export_html": page, "view": viewed, "many runs": many_runs,
}


def robots():
    """The five-bar, an arm of two joints, the five-bar with springs and a motor; small, as they are many times used."""
    arm = ld.Builder("arm", gravity=(0.0, 0.0, -9.81))
    for name, parent, place in (("A", "ground", (0, 0, 0)), ("B", "A", (1, 0, 0))):
        arm.body(name, 1.0, (0.5, 0.0, 0.0), (0.1, 0.1, 0.1))
        arm.joint(name.lower(), "revolute", parent, name, placement=place, axis=(0, 1, 0), limits=(-2.0, 2.0))
    sprung = ld.Builder.of(ld.load("five_bar"))
    sprung.coordinate_force("strut", {"q1": 1.0}, law=ld.GasSpring(100.0, 3.0, 1.4, 2.0))
    sprung.coordinate_force("motor", {"q4": 1.0}, law=ld.Motor(3.0, 20.0, supply=0.5))
    sprung.coordinate_force("bumper", {"q2": 1.0}, law=ld.PolynomialSpring(2.0, cubic=0.5, damping=0.1))
    return {"loop": ld.load("five_bar"), "tree": arm.build(), "sprung": sprung.build()}


def outcomes(robots, names=None):
    """What each call returns, or the error that it raises, as text of few digits."""
    found = {}
    with warnings.catch_warnings(), np.printoptions(precision=6, suppress=True):
        warnings.simplefilter("ignore")
        for name in names or CALLS:
            try:
                found[name] = repr(CALLS[name](robots))
            except Exception as error:
                found[name] = f"{type(error).__name__}: {error}"
    return found
