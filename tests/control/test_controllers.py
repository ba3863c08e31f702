"""PIDC and hybrid control: laws of the errors in simulation, integral action, force loops, and mistakes."""

import numpy as np
import pytest
from closed_chains import moving_state
from scipy.linalg import expm
from scipy.spatial.transform import Rotation
from tree_cases import bundled

import liedyn as ld
from liedyn.control.constrained.integral import Integral
from liedyn.machine.errors import ControllabilityError, InputError, SimulationError

# Runge-Kutta with 1 ms on errors with rates of up to 20 / s: 1e-3 ^ 4 * 20 ^ 5 / 120
TRACKS = 1e-7


def slider_crank(mass=1.0):
    b = ld.Builder("slider-crank", gravity=(0.0, -9.81, 0.0), independent=("crank",))
    for name in ("crank", "rod"):
        b.body(name, mass, (1.0, 0.0, 0.0))
    b.joint("crank", "revolute", "ground", "crank")
    b.joint("rod", "revolute", "crank", "rod", placement=(1.0, 0.0, 0.0))
    b.constraint("slider", "on_plane", "ground", "rod", child_placement=(1.0, 0.0, 0.0), axis=(0.0, 1.0, 0.0))
    return b.build()


def on_branch(q1, rate=0.0):
    return np.array([q1, 2.0 * np.pi - 2.0 * q1]), np.array([rate, -2.0 * rate])


def circle(t):
    """A motion of two coordinates, with its derivatives."""
    c, s = np.cos(3.0 * t), np.sin(3.0 * t)
    return np.array([2.0 + 0.1 * s, -1.2 + 0.2 * c]), np.array([0.3 * c, -0.6 * s]), np.array([-0.9 * s, -1.8 * c])


def linear(gains, e, e_dot, t, disturbance=0.0):
    """Solution of e'' + G_D e' + G_P e (+ G_I integral of e) = disturbance."""
    e, e_dot = np.atleast_1d(e), np.atleast_1d(e_dot)
    p, I = len(e), np.eye(len(e))
    G_P, G_D, G_I = (np.diag(np.broadcast_to(gains.get(k, 0.0), p)) for k in ("G_P", "G_D", "G_I"))
    A = np.block([[0 * I, I, 0 * I, 0 * I], [0 * I, 0 * I, I, 0 * I], [-G_I, -G_P, -G_D, I], [0 * I] * 4])
    x = np.concatenate([0 * e, e, e_dot, disturbance + 0 * e])
    return np.array([(expm(A * each) @ x)[p:2 * p] for each in t])


@pytest.mark.parametrize("active", [None, ["q1", "q4"]])
def test_tracking_on_a_closed_loop(active):
    """A moving target from a wrong start, different gains for each coordinate, two motors or four."""
    robot = bundled("five_bar")
    gains = {"G_P": [100.0, 225.0], "G_D": [20.0, 15.0]}
    controller = ld.PIDC(robot, circle, active=active, **gains)
    v0, _ = moving_state(robot, robot.home)
    e, e_dot = controller.errors(0.0, robot.home, v0)
    np.testing.assert_allclose(e, circle(0.0)[0] - robot.home[:2], rtol=1e-14)
    tr = ld.simulate(robot, robot.home, v0, 0.6, tau=controller, record=20)
    wanted = np.array([circle(t)[0] for t in tr.t])
    np.testing.assert_allclose(wanted - tr.q[:, :2], linear(gains, e, e_dot, tr.t), atol=TRACKS)
    if active:
        assert not tr.tau[:, 1:3].any()


def test_tracking_with_a_moving_constraint():
    """The ground pin of a five-bar shakes; the model knows (b and bdot of the rows)."""
    def shake(t):
        s, c = 0.05 * np.sin(5.0 * t), 0.25 * np.cos(5.0 * t)
        return [s, 0.0, 0.0], [c, 0.0, 0.0], [-25.0 * s, 0.0, 0.0]

    robot = bundled("five_bar").with_target("pin", shake)
    controller = ld.PIDC(robot, robot.home[:2] + [0.1, 0.0], G_P=100.0, G_D=20.0, active=["q1", "q4"])
    G, psi = ld.constraint_jacobian(robot, robot.home), ld.constraints.velocity_error(robot, robot.home, np.zeros(4))
    v0 = -np.linalg.pinv(G, rcond=1e-9) @ psi
    e, e_dot = controller.errors(0.0, robot.home, v0)
    tr = ld.simulate(robot, robot.home, v0, 0.3, tau=controller, record=20)
    error = robot.home[:2] + [0.1, 0.0] - tr.q[:, :2]
    np.testing.assert_allclose(error, linear({"G_P": 100.0, "G_D": 20.0}, e, e_dot, tr.t), atol=TRACKS)


def test_platform_of_a_parallel_machine():
    """All of a free joint is controlled, by six legs: position and orientation go where they should."""
    robot = bundled("stewart")
    places = [k for k, name in enumerate(robot.coordinate_names) if name.startswith("platform.")]
    goal = robot.home[places]
    turn = Rotation.from_rotvec([0.05, -0.1, 0.2])
    goal[:4] = (Rotation.from_quat(goal[:4]) * turn).as_quat()
    goal[4:] += [0.02, -0.03, 0.05]
    controller = ld.PIDC(robot, goal, G_P=100.0, G_D=20.0, independent="platform")
    e, _ = controller.errors(0.0, robot.home, np.zeros(robot.nv))
    np.testing.assert_allclose(e[:3], turn.as_rotvec(), rtol=1e-9)
    tau = controller(0.0, robot.home, np.zeros(robot.nv))
    legs = [name.startswith("leg") for name in robot.velocity_names]
    assert not tau[~np.array(legs)].any()
    tr = ld.simulate(robot, robot.home, np.zeros(robot.nv), 1.5, tau=controller, dt=5e-3, record=300)
    # (1 + 10 t) exp(-10 t) = 5e-6 of it is left
    np.testing.assert_allclose(tr.q[-1, places] * np.sign(tr.q[-1, places[3]] * goal[3]), goal, atol=2e-5)


def test_virtual_coordinate_of_a_cut():
    """The angle at the five-bar's cut pin is held by its own loop."""
    robot = bundled("five_bar")
    z0 = ld.virtual_coordinates(robot, robot.home)
    controller = ld.PIDC(robot, [robot.home[0], z0[0] + 0.2], G_P=100.0, G_D=20.0, independent=["q1", "pin"])
    tr = ld.simulate(robot, robot.home, np.zeros(4), 0.5, tau=controller, record=100)
    z = ld.virtual_coordinates(robot, tr.q)[:, 0]
    np.testing.assert_allclose(z0 + 0.2 - z, linear({"G_P": 100.0, "G_D": 20.0}, 0.2, 0.0, tr.t)[:, 0], atol=TRACKS)


def test_open_tree():
    """Without constraints it is computed torque control of all joints."""
    robot = bundled("ur5")
    goal = robot.home + 0.1 * np.arange(6.0)
    controller = ld.PIDC(robot, goal, G_P=100.0, G_D=20.0)
    tau = controller(0.0, robot.home, np.zeros(6))
    np.testing.assert_allclose(tau, ld.rnea(robot, robot.home, np.zeros(6), 10.0 * np.arange(6.0)), atol=1e-9)


def test_integral_action_removes_a_constant_disturbance():
    """A force that the model does not know of: e'' + G_D e' + G_P e + G_I int e = constant."""
    b = ld.Builder("carriage", gravity=(0.0, 0.0, 0.0))
    b.body("carriage", 2.0)
    b.joint("slide", "prismatic", "ground", "carriage", axis=(1.0, 0.0, 0.0))
    robot = b.build()
    gains = {"G_P": 100.0, "G_D": 20.0, "G_I": 300.0}
    controller = ld.PIDC(robot, [0.1], **gains)
    push = {"carriage": [0.0, 0.0, 0.0, 6.0, 0.0, 0.0]}
    for _ in range(2):  # a second run starts anew by itself
        tr = ld.simulate(robot, [0.0], [0.0], 2.0, tau=controller, f_ext=push)
        expected = linear(gains, 0.1, 0.0, tr.t[::100], -6.0 / 2.0)
        # the trapezoidal rule over half steps of 0.5 ms is of second order
        np.testing.assert_allclose(0.1 - tr.q[::100], expected, atol=1e-6)
    controller.reset()
    assert controller(5.0, [0.0], [0.0]) == pytest.approx(2.0 * 100.0 * 0.1)


def test_integral_forgets_what_is_repeated():
    """Stages at (t, t + h/2, t + h/2, t + h), a step that is taken back, and a new run."""
    integral, h = Integral(1), 0.1
    for k in range(10):
        for t in (k * h, (k + 0.5) * h, (k + 0.5) * h, (k + 1) * h):
            total = integral.add(t, np.array([np.exp(t)]))
    # trapezoidal rule with steps of h / 2: error (h/2)^2 / 12 of the change of the derivative
    assert total == pytest.approx(np.e - 1.0, abs=(h / 2) ** 2 / 12 * (np.e - 1.0) * 1.1)
    before = integral.add(0.5, np.array([np.exp(0.5)]))
    assert before == pytest.approx(np.exp(0.5) - 1.0, abs=1e-3)
    assert integral.add(0.0, np.array([7.0])) == 0.0


# ---- forces in constraints


@pytest.mark.parametrize("gains", [{}, {"G_F": 3.0}, {"G_F": 1.0, "G_I": 20.0}])
def test_force_loop_is_solved_exactly(gains):
    """The force that is felt is the plant's own, under the very forces that the controller returns."""
    model, plant = slider_crank(), slider_crank(1.2)
    motion = ld.PIDC(model, [1.2], G_P=25.0, G_D=10.0)
    controller = ld.HybridController(motion, {"slider.gap": lambda t: 5.0 + t}, plant=plant, **gains)
    q, v = on_branch(0.6, 0.8)
    total, last = 0.0, None
    for t in (0.0, 0.01, 0.02):
        tau = controller(t, q, v)
        e = 5.0 + t - ld.forward_dynamics(plant, q, v, tau).lam[0]
        if last is not None:
            total += 0.005 * (e + last)
        last = e
        u = motion(t, q, v)
        model_lam = ld.forward_dynamics(model, q, v, tau).lam[0]
        command = 5.0 + t + gains.get("G_F", 0.0) * e + gains.get("G_I", 0.0) * total
        assert model_lam == pytest.approx(command, abs=1e-10)
        assert ld.forward_dynamics(model, q, v, u).a == pytest.approx(ld.forward_dynamics(model, q, v, tau).a)
        assert abs(e) > 0.1  # 20 % of the weight are not nothing


def test_force_error_dies_out():
    """(1 + G_F) e' + G_I e = 0 for a mechanism at rest whose masses are not those of the model."""
    model, plant = slider_crank(), slider_crank(1.2)
    q, v = on_branch(1.0)
    motion = ld.PIDC(model, [1.0], G_P=25.0, G_D=10.0)
    controller = ld.HybridController(motion, {"slider": 4.0}, G_F=1.0, G_I=20.0, plant=plant)
    times = np.linspace(0.0, 0.5, 501)
    e = np.array([4.0 - ld.forward_dynamics(plant, q, v, controller(t, q, v)).lam[0] for t in times])
    np.testing.assert_allclose(e, e[0] * np.exp(-10.0 * times), atol=1e-4 * abs(e[0]))  # trapezoidal rule: (0.01)^2


def test_measured_forces():
    """A sensor's multipliers take the place of the plant's."""
    model = slider_crank()
    motion = ld.PIDC(model, [1.0], G_P=25.0, G_D=10.0)
    controller = ld.HybridController(motion, {"slider": 4.0}, G_F=0.5)
    q, v = on_branch(0.9)
    tau = controller(0.0, q, v, lam=[1.0])
    assert ld.forward_dynamics(model, q, v, tau).lam[0] == pytest.approx(4.0 + 0.5 * 3.0)
    with pytest.raises(InputError, match="lam"):
        controller(0.1, q, v, lam=[1.0, 2.0])


def test_hybrid_control_of_a_closed_loop_keeps_motion_and_force_apart():
    """Force commands do not disturb the motion, also where rows are redundant (five rows of rank two)."""
    robot = bundled("five_bar")
    motion = ld.PIDC(robot, circle, G_P=100.0, G_D=20.0)
    forces = {"pin.vx": lambda t: 10.0 * np.sin(20.0 * t), "pin.vy": -30.0}
    controller = ld.HybridController(motion, forces, G_F=1.0, G_I=20.0)
    assert controller.rows == ("pin.vx", "pin.vy")
    tr = ld.simulate(robot, robot.home, np.zeros(4), 0.2, tau=controller)
    np.testing.assert_allclose(tr["pin.vx"], 10.0 * np.sin(20.0 * tr.t), atol=1e-7)
    np.testing.assert_allclose(tr["pin.vy"], -30.0, atol=1e-7)
    plain = ld.simulate(robot, robot.home, np.zeros(4), 0.2, tau=motion)
    np.testing.assert_allclose(tr.q, plain.q, atol=1e-8)


def test_forces_of_a_constraint_that_is_off():
    """A second guide of the slider, redundant: off, it neither carries a force nor winds up its integral."""
    b = ld.Builder.of(slider_crank())
    b.constraint("guide", "on_plane", "ground", "rod", child_placement=(1.0, 0.0, 0.0), axis=(0.0, 1.0, 0.0))
    robot = b.build()
    q, v = on_branch(1.0)
    motion = ld.PIDC(robot, [1.0], G_P=25.0, G_D=10.0)
    both = ld.HybridController(motion, {"slider": 3.0, "guide": 5.0}, G_I=20.0)
    lam = ld.forward_dynamics(robot, q, v, both(0.0, q, v)).lam
    np.testing.assert_allclose(lam, [4.0, 4.0], atol=1e-12)  # together they make the force that was asked for
    motion.robot = robot.switched(guide=False)
    for t in (0.0, 0.1, 0.2):
        lam = ld.forward_dynamics(motion.robot, q, v, both(t, q, v)).lam
        np.testing.assert_allclose(lam, [3.0, 0.0], atol=1e-12)
    motion.robot = robot
    lam = ld.forward_dynamics(robot, q, v, both(0.3, q, v)).lam
    np.testing.assert_allclose(lam, [4.0, 4.0], atol=1e-12)


# ---- switching, and what cannot be done


def test_the_robot_may_be_exchanged():
    """The law is the same when a constraint comes or goes (here for an arm that opens its loop: four freedoms)."""
    robot = bundled("five_bar").switched(pin=False)
    q = robot.home
    controller = ld.PIDC(robot, q, G_P=25.0, G_D=10.0, independent=["q1", "q2", "q3", "q4"])
    np.testing.assert_allclose(controller(0.0, q, np.zeros(4)), ld.rnea(robot, q, np.zeros(4), np.zeros(4)), atol=1e-10)
    controller.robot = robot.switched(pin=True)
    with pytest.raises(InputError, match="2 degrees of freedom"):
        controller(0.0, q, np.zeros(4))


def test_an_uncontrollable_start_stops_the_simulation():
    robot = slider_crank()
    controller = ld.PIDC(robot, [1.0, 2.0], G_P=25.0, G_D=10.0, independent=["crank", "rod"], active=["crank"])
    with pytest.raises(ControllabilityError, match="rod 1"):
        controller(0.0, [np.pi / 2, np.pi], [0.0, 0.0])
    machine = bundled("parallel_five_bar")
    goal = [machine.home[machine.coordinate_index(name)] + 0.1 for name in machine.independent]
    controller = ld.PIDC(machine, goal, G_P=25.0, G_D=10.0)
    with pytest.raises((SimulationError, InputError), match="closedloop1_A 1, closedloop1_B 1"):
        ld.simulate(machine, machine.home, np.zeros(machine.nv), 0.1, tau=controller)


def no_finite_numbers(t):
    return [1.0, np.nan], [0.0, 0.0], [0.0, 0.0]


@pytest.mark.parametrize("options, text", [
    ({"G_P": [1.0, 2.0, 3.0]}, r"G_P must be a number or have shape \(2,\) or \(2, 2\), got \(3,\)"),
    ({"G_P": np.inf}, "G_P is not finite"),
    ({"G_P": "stiff"}, "G_P must be numbers"),
    ({"G_P": -1.0}, "G_P = .* are not stable"),
    ({"G_D": 0.0}, "not stable"),
    ({"G_P": [25.0, 0.0]}, "not stable"),
    ({"G_I": 251.0}, "G_I = .* are not stable"),  # Hurwitz: G_D G_P > G_I
    ({"trajectory": [1.0]}, r"trajectory must have arrays of shape \(2,\), \(2,\), \(2,\)"),
    ({"trajectory": lambda t: [1.0, 2.0]}, "must return 3 arrays"),
    ({"trajectory": lambda t: 1.0}, "must return 3 arrays .* got 1 at t = 0"),
    ({"trajectory": no_finite_numbers}, "trajectory is not finite at t = 0"),
    ({"independent": ["q1", "qq"]}, "unknown independent coordinate 'qq'"),
    ({"active": "motor"}, "unknown active joint 'motor'"),
    ({"metric": -np.ones(4)}, "positive definite"),
])
def test_mistakes_are_named(options, text):
    robot = bundled("five_bar")
    with pytest.raises(InputError, match=text):
        ld.PIDC(robot, **{"trajectory": [2.0, -1.0], "G_P": 25.0, "G_D": 10.0, **options})


def test_a_ball_joint_comes_whole():
    b = ld.Builder("ball", gravity=(0.0, 0.0, -9.81))
    b.body("ball", 1.0, (0.0, 0.0, 0.1), (0.1, 0.1, 0.1))
    b.joint("socket", "spherical", "ground", "ball")
    robot = b.build()
    with pytest.raises(InputError, match="with all of joint 'socket'"):
        ld.PIDC(robot, [0.0], G_P=1.0, G_D=1.0, independent=["socket.rx"])
    controller = ld.PIDC(robot, Rotation.from_rotvec([0.0, 0.3, 0.0]).as_quat(), G_P=25.0, G_D=10.0)
    e, _ = controller.errors(0.0, robot.home, np.zeros(3))
    np.testing.assert_allclose(e, [0.0, 0.3, 0.0], atol=1e-12)


@pytest.mark.parametrize("forces, options, text", [
    ({}, {}, "no row is named"),
    ({"pin.vx": 1.0, "pin": np.ones(5)}, {}, "name a row twice"),
    ({"pin": 1.0}, {}, r"forces\['pin'\] must have arrays of shape \(5,\)"),
    ({"pim": 1.0}, {}, "did you mean 'pin'"),
    ({"pin.vx": 1.0}, {"G_F": -1.0}, "G_F must be .* not negative"),
    ({"pin.vx": 1.0}, {"G_I": [1.0, 2.0]}, "G_I must be a number"),
    ({"pin.vx": 1.0}, {"plant": slider_crank()}, "plant 'slider-crank' must have the coordinates"),
])
def test_mistakes_in_hybrid_control_are_named(forces, options, text):
    motion = ld.PIDC(bundled("five_bar"), [2.0, -1.0], G_P=25.0, G_D=10.0)
    with pytest.raises(InputError, match=text):
        ld.HybridController(motion, forces, **options)
