"""Bushings, applied forces and laws by name: closed forms, the energy that they hold, files and editing."""
import warnings

import numpy as np
import pytest

import liedyn as ld
from liedyn.machine.errors import InputError, ModelError
from liedyn.mechanics.constraints.checking import central_difference
from liedyn.mechanics.elements import generalized

STATE = np.random.default_rng(15)
DRAWN = STATE.normal(size=(6, 6))
STIFF, DAMP = DRAWN @ DRAWN.T + np.eye(6), STATE.normal(size=(6, 6))


def block(gravity=(0.0, 0.0, 0.0), joint="free", **more):
    """A block of 2 kg, with its frame in the centre of mass."""
    b = ld.Builder("block", gravity=gravity)
    b.body("block", mass=2.0, inertia=(0.05, 0.06, 0.07))
    b.joint("float", joint, "ground", "block", **more)
    return b


def arm(*, known=True):
    """An arm with every element that holds energy, and the others unless only what is known is wanted."""
    b, names = ld.Builder.of(ld.load("ur5")), ld.load("ur5").body_names
    turned = np.array([[0.0, 1.0, 0.0, 0.2], [0.0, 0.0, 1.0, 0.3], [1.0, 0.0, 0.0, 0.1], [0.0, 0.0, 0.0, 1.0]])
    b.bushing("between", names[2], names[-1], (0.1, 0.02, 0.3), turned, STIFF, DAMP, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    b.bushing("held", "ground", names[-1], (0.1, 0.02, 0.3), None, STIFF)
    b.spring("strut", "ground", names[-1], (1.0, 0.0, 0.5), length=2.0, law=ld.GasSpring(100.0, 3.0, 1.4, 2.0))
    b.spring("slow", names[1], names[-1], (1.0, 0.0, 0.5), length=2.0, law=ld.GasSpring(40.0, 2.5))
    b.spring("rope", "ground", names[-1], (1.0, 0.0, 0.5), length=0.4,
             law=ld.PolynomialSpring(100.0, -30.0, 20.0, 2.0, 1.0, 0.5, slack=0.1))
    if not known:
        b.applied_force("wind", names[-1], (0.1, 0.0, 0.0), (1.0, 2.0, 3.0), (4.0, 5.0, 6.0))
        b.applied_force("jet", names[-2], (0.1, 0.0, 0.0), (1.0, 2.0, 3.0), (4.0, 5.0, 6.0), axes="body")
        b.applied_force("gust", names[-1], turned, lambda t: np.array([t, 2.0 * t, 1.0]),
                        torque=lambda t: np.array([0.0, t, -t]), axes="body")
        b.coordinate_force("motor", {ld.load("ur5").velocity_names[0]: 1.0}, law=ld.Motor(3.0, 20.0, supply=0.5))
    return b.build()


def test_a_bushing_is_what_the_springs_of_a_free_joint_are():
    """With the same stiffness in all directions: forces, derivatives and energy, at any displacement."""
    own = block((0.0, 0.0, -9.81), stiffness=[3.0] * 3 + [200.0] * 3).build()
    b = block((0.0, 0.0, -9.81))
    b.bushing("mount", "ground", "block", stiffness=[3.0] * 3 + [200.0] * 3)
    robot = b.build()
    q, v, rest = ld.random_configuration(own, rng=STATE), STATE.normal(size=6), np.zeros(6)
    expected, found = (ld.forward_dynamics(each, q, v, rest).a for each in (own, robot))
    assert np.allclose(found, expected, rtol=0.0, atol=1e-13 * np.abs(expected).max())
    expected, found = (ld.linearize(each, q, v, rest).A for each in (own, robot))
    assert np.allclose(found, expected, rtol=0.0, atol=1e-13 * np.abs(expected).max())
    expected, found = (ld.potential_energy(each, [[q], [robot.home]]) for each in (own, robot))
    assert np.allclose(found, expected, rtol=1e-14, atol=0.0) and found.shape == (2, 1)


def test_derivatives_of_all_laws():
    robot, t = arm(known=False), 0.7
    q, v = ld.random_configuration(robot, rng=STATE), STATE.normal(size=6)
    tau, by_q, by_v = (x[0] for x in generalized.forces_and_derivatives(robot, t, q[None], v[None]))
    then = robot.at(t)
    assert np.array_equal(tau, ld.element_forces(then, q, v))
    assert not np.allclose(tau, ld.element_forces(robot, q, v), rtol=1e-3)  # functions of time are called with it
    expected_q = [central_difference(lambda s, e=e: ld.element_forces(then, ld.integrate(then, q, s * e), v))
                  for e in np.eye(6)]
    expected_v = [central_difference(lambda s, e=e: ld.element_forces(then, q, v + s * e)) for e in np.eye(6)]
    # sixth-order differences leave 1e-10 or so
    assert np.allclose(by_q, np.transpose(expected_q), rtol=0.0, atol=1e-9 * np.abs(by_q).max())
    assert np.allclose(by_v, np.transpose(expected_v), rtol=0.0, atol=1e-9 * np.abs(by_v).max())


def test_forces_are_the_slope_of_the_energy():
    robot, rest = arm(), np.zeros(6)
    q = ld.random_configuration(robot, rng=STATE)

    def along(e, f):
        return central_difference(lambda s: f(ld.integrate(robot, q, s * e)))

    slope = np.array([along(e, lambda q: ld.potential_energy(robot, q)) for e in np.eye(6)])
    expected = ld.rnea(robot, q, rest, rest) - ld.element_forces(robot, q, rest)
    assert np.allclose(slope, expected, rtol=0.0, atol=1e-9 * np.abs(expected).max())
    held, by_q = generalized.energy_slope(robot, q)
    assert np.allclose(held, -ld.element_forces(robot, q, rest), rtol=0.0, atol=1e-13 * np.abs(held).max())
    expected = np.transpose([along(e, lambda q: generalized.energy_slope(robot, q)[0]) for e in np.eye(6)])
    assert np.allclose(by_q, expected, rtol=0.0, atol=1e-9 * np.abs(by_q).max())
    # what holds nothing changes none of it
    more = arm(known=False)
    assert ld.potential_energy(more, q) == ld.potential_energy(robot, q)
    assert np.allclose(generalized.energy_slope(more, q)[1], by_q, rtol=0.0, atol=1e-13 * np.abs(by_q).max())


@pytest.mark.parametrize("method", ["rk4", "implicit", "Radau"])
def test_a_mass_on_a_bushing_swings(method):
    """Along an axis and about one, each for itself: cosines of any amplitude below half a turn."""
    b = block()
    b.bushing("mount", "ground", "block", stiffness=[1.0, 2.0, 0.7, 50.0, 80.0, 20.0])
    q, about = b.build().home.copy(), 2.0
    q[:4], q[4:] = [0.0, np.sin(0.5 * about), 0.0, np.cos(0.5 * about)], [0.3, 0.0, -0.1]
    tr = ld.simulate(b.build(), q, np.zeros(6), 2.0, dt=2e-3, method=method)
    x = 0.3 * np.cos(5.0 * tr.t), 0.0 * tr.t, -0.1 * np.cos(np.sqrt(10.0) * tr.t)
    angle = 2.0 * np.arctan2(tr.q[:, 1], tr.q[:, 3])
    assert np.allclose(tr.q[:, 4:], np.transpose(x), rtol=0.0, atol=1e-8)  # the error of the steps
    assert np.allclose(angle, about * np.cos(np.sqrt(2.0 / 0.06) * tr.t), rtol=0.0, atol=1e-6)
    assert np.abs(tr.energy - tr.energy[0]).max() < 1e-7 * tr.kinetic.max()


@pytest.mark.parametrize("options", [{}, {"energy": True}, {"method": "Radau", "energy": True}], ids=str)
def test_energy_and_work_balance(options):
    """With all laws at once; nothing is counted twice, and projection brings what is due."""
    b = block((0.0, 0.0, -9.81))
    b.bushing("mount", "ground", "block", (0.2, 0.0, 0.0), (0.1, 0.0, 0.0), 20.0 * STIFF, 0.5,
              [0.1, 0.2, 0.3, 1.0, 2.0, 3.0])
    b.spring("strut", "ground", "block", (0.0, 0.0, 1.0), (0.0, 0.05, 0.05), 0.5, law=ld.GasSpring(20.0, 2.0))
    b.applied_force("shaker", "block", force=lambda t: np.array([3.0 * np.sin(5.0 * t), 0.0, 0.0]))
    tr = ld.simulate(b.build(), b.build().home, np.zeros(6), 0.5, dt=2e-3, **options)
    assert np.ptp(tr.energy) > 0.1 and abs(tr.input_work[-1]) > 0.1
    assert np.abs(tr.energy_drift).max() < (1e-10 if "energy" in options else 1e-6)


def test_steps_that_are_too_long_for_a_spring_are_warned_of():
    """The watch on the energy is on where all elements give back what they take, and off where one does not."""
    for damping, warned in ((0.0, True), (1e-9, False)):
        b = block(joint="prismatic")
        b.spring("stiff", "ground", "block", (0.0, 0.0, -1.0), length=1.0, stiffness=2e5, damping=damping)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            ld.simulate(b.build(), [0.1], [0.0], 0.1, dt=1e-2)
        assert [each.category for each in caught] == [ld.ConditionWarning] * warned


def test_a_ball_bounces_on_the_ground_under_a_spring():
    """Impacts, and the time-stepping that takes over, know of the energy of springs."""
    b = ld.Builder("ball", gravity=(0.0, 0.0, -9.81))
    b.body("ball", mass=1.0, inertia=(0.01, 0.01, 0.01))
    b.joint("z", "prismatic", "ground", "ball")
    b.spring("rope", "ground", "ball", (0.0, 0.0, 2.0), stiffness=2.0)
    b.constraint("floor", "sphere_on_plane", "ground", "ball", radius=0.1, unilateral=True, restitution=0.5)
    tr = ld.simulate(b.build(), [1.0], [0.0], 3.0, dt=1e-3)
    assert len(tr.events) > 5 and sum(event.energy_loss for event in tr.events) > 0.5
    # at rest on the floor after infinitely many bounces, of which the smallest are stepped over
    assert tr.q[-1, 0] == pytest.approx(0.1, abs=1e-9) and np.abs(tr.energy_drift).max() < 1e-3


def test_a_rope_with_slack_pulls_by_a_polynomial():
    """Within its slack it only damps, beyond and before it is a cubic; its energy is the integral of that."""
    law = ld.PolynomialSpring(stiffness=3.0, quadratic=-2.0, cubic=5.0, damping=0.1, quadratic_damping=0.2,
                              cubic_damping=0.3, slack=0.5)
    b = block(joint="prismatic")
    b.coordinate_force("rope", {"float": 2.0}, rest=0.4, law=law)
    robot, w = b.build(), -1.5
    drag = 0.1 * w - 0.2 * w * w + 0.3 * w ** 3
    for x, y in ((-0.3, -0.3), (0.2, 0.0), (0.9, 0.4)):
        q = [(x + 0.4) / 2.0]
        held = 3.0 * y - 2.0 * y * y + 5.0 * y ** 3
        assert np.isclose(ld.element_forces(robot, q, [w / 2.0])[0], -2.0 * (held + drag), rtol=1e-13, atol=0.0)
        energy = 1.5 * y * y - 2.0 / 3.0 * y ** 3 + 1.25 * y ** 4
        assert np.isclose(ld.potential_energy(robot, q), energy, rtol=1e-13, atol=1e-15)
    with pytest.raises(ModelError, match="slack: must not be negative, got -0.5"):
        b.coordinate_force("other", {"float": 2.0}, law=ld.PolynomialSpring(slack=-0.5))


def test_a_mass_on_a_gas_spring():
    """One degree of freedom: the speed at any height is what the energy of an isothermal gas says."""
    b = block((0.0, 0.0, -9.81), "prismatic")
    b.spring("strut", "ground", "block", (0.0, 0.0, -1.0), length=1.0, law=ld.GasSpring(force=10.0, column=0.8))
    tr = ld.simulate(b.build(), [0.0], [0.0], 0.5, dt=1e-3)
    height = tr["float"]
    held = -10.0 * 0.8 * np.log(1.0 + height / 0.8)  # pressure times volume is constant
    assert np.allclose(tr.kinetic, -2.0 * 9.81 * height - held, rtol=0.0, atol=1e-9) and height.min() < -0.3
    assert ld.element_states(b.build(), [-0.4], [0.0])["strut"][2] == pytest.approx(-20.0)
    with pytest.raises(InputError, match="overflow"):
        ld.element_forces(b.build(), [-0.9], [0.0])


def test_a_motor_runs_up_to_its_speed():
    b = block(joint="revolute")
    b.coordinate_force("motor", {"float": 1.0}, law=ld.Motor(stall_torque=0.7, no_load_speed=5.0))
    tr = ld.simulate(b.build(), [0.0], [0.0], 1.0, dt=1e-3)
    assert np.allclose(tr.v[:, 0], 5.0 * (1.0 - np.exp(-tr.t * 0.7 / 5.0 / 0.07)), rtol=0.0, atol=1e-9)


def test_applied_forces_in_axes_of_the_world_and_of_the_body():
    """A block that spins about z, pushed in its centre: impulses in closed form."""
    w, spin = 3.0, [0.0, 0.0, 3.0, 0.0, 0.0, 0.0]
    for axes, expected in (("world", lambda t: [t / 2.0, 0.0 * t]),
                           ("body", lambda t: [np.sin(w * t) / (2.0 * w), (1.0 - np.cos(w * t)) / (2.0 * w)])):
        b = block()
        b.applied_force("push", "block", force=(1.0, 0.0, 0.0), axes=axes)
        robot = b.build()
        tr = ld.simulate(robot, robot.home, spin, 1.0, dt=2e-3)
        v = np.einsum("tij,tj->ti", ld.pose(robot, tr.q, "block")[:, :3, :3], tr.v[:, 3:])
        assert np.allclose(v[:, :2], np.transpose(expected(tr.t)), rtol=0.0, atol=1e-9)
    b = block(joint="prismatic")
    b.applied_force("push", "block", force=lambda t: np.array([0.0, 0.0, np.sin(4.0 * t)]), torque=(1.0, 2.0, 3.0))
    tr = ld.simulate(b.build(), [0.0], [0.0], 1.0, dt=2e-3)
    assert np.allclose(tr.v[:, 0], (1.0 - np.cos(4.0 * tr.t)) / 8.0, rtol=0.0, atol=1e-9)


def test_laws_in_sympy():
    sp = pytest.importorskip("sympy")
    x, w = sp.symbols("x w")
    found = []
    for law in (40.0 * sp.sinh(x) + (1 + x) * w + 0.3 * sp.Abs(x), lambda x, w: (
            40.0 * np.sinh(x) + (1.0 + x) * w + 0.3 * abs(x), 40.0 * np.cosh(x) + w + 0.3 * np.sign(x), 1.0 + x)):
        b = ld.Builder.of(ld.load("five_bar"))
        b.coordinate_force("soft", {"q1": 1.0}, law=law)
        robot = b.build()
        found.append(ld.linearize(robot, robot.home, [0.0] * 4, [0.0] * 4).A)
    assert np.allclose(*found, rtol=0.0, atol=1e-13 * np.abs(found[0]).max())
    b = ld.Builder.of(ld.load("five_bar"))
    with pytest.raises(InputError, match="force element 's', law: unknown symbol 'y', expected x"):
        b.coordinate_force("s", {"q1": 1.0}, law=sp.Symbol("y") + x)
    with pytest.raises(InputError, match="law: expected an expression, got Matrix"):
        b.coordinate_force("s", {"q1": 1.0}, law=sp.Matrix([x, w]))


def test_in_files(tmp_path):
    b = ld.Builder.of(arm(known=False))
    with pytest.raises(ModelError, match="force element 'gust', force: a function cannot be written"):
        ld.save_toml(b.build(), tmp_path / "arm.toml")
    b.remove("element", "gust")
    robot = b.build()
    ld.save_toml(robot, tmp_path / "arm.toml")
    again = ld.load(tmp_path / "arm.toml")
    q, v = ld.random_configuration(robot, rng=STATE), STATE.normal(size=6)
    expected, found = (ld.element_states(each, q, v) for each in (robot, again))
    assert found.keys() == expected.keys()
    for name, states in expected.items():
        assert np.allclose(np.ravel(found[name]), np.ravel(states), rtol=1e-12, atol=1e-12), name
    (tmp_path / "bad.toml").write_text((tmp_path / "arm.toml").read_text().replace('"gas_spring"', '"gas"'))
    with pytest.raises(ModelError, match="springs.*law: unknown kind of law 'gas'"):
        ld.load(tmp_path / "bad.toml")


def test_editing():
    """They change, keep their laws under a prefix, and stay with a subtree unless they lead out of it."""
    b, q, rest = ld.Builder.of(arm(known=False)), ld.random_configuration(arm(), rng=STATE), np.zeros(6)
    b.change("element", "held", damping=2.0)
    b.change("element", "jet", axes=None)
    robot = b.build()
    assert ld.element_states(robot, q, rest)["jet"][2] == pytest.approx([4.0, 5.0, 6.0, 1.0, 2.0, 3.0])
    assert ld.element_states(robot, q, rest + 1.0)["held"][2] == pytest.approx(
        ld.element_states(arm(), q, rest + 1.0)["held"][2] + 2.0 * ld.element_states(arm(), q, rest + 1.0)["held"][1])
    both = ld.Builder.of(ld.load("five_bar"))
    both.attach(robot, "ground", "arm_")
    found = ld.element_forces(both.build(), [*rest[:4], *q], [*rest[:4], *rest])
    expected = ld.element_forces(robot, q, rest)
    assert np.allclose(found[4:], expected, rtol=0.0, atol=1e-13 * np.abs(expected).max()) and not found[:4].any()
    part = ld.subtree(robot, robot.body_names[-3])
    assert part.element_names == ("wind", "jet", "gust")
    locked = ld.reduced(robot, {robot.velocity_names[1]: q[1]})
    left = [0, 2, 3, 4, 5]
    found = ld.element_forces(locked, q[left], rest[left])
    assert np.allclose(found, expected[left], rtol=0.0, atol=1e-12 * np.abs(expected).max())


@pytest.mark.parametrize("declare, said", [
    (lambda b: b.bushing("s", "ground", "link9"), "force element 's', child: unknown 'link9'"),
    (lambda b: b.bushing("s", "link1", "link1"), "joins 'link1' to itself"),
    (lambda b: b.bushing("s", "ground", "link1", stiffness=DAMP), "stiffness: must be symmetric"),
    (lambda b: b.bushing("s", "ground", "link1", stiffness=[1.0] * 5), "stiffness: expected 6 numbers"),
    (lambda b: b.applied_force("s", "ground"), "'s', body: nothing moves the ground"),
    (lambda b: b.applied_force("s", "link1", axes="mine"), "axes: unknown 'mine'"),
    (lambda b: b.applied_force("s", "link1", force=3.0), "force: expected 3 numbers, got 3.0"),
    (lambda b: b.applied_force("s", "link1", force=lambda t: t), "force of force element 's'"),
    (lambda b: b.spring("s", "ground", "link1", law=ld.GasSpring(1.0, 0.0)), "law, column: must be positive, got 0.0"),
    (lambda b: b.spring("s", "ground", "link1", law=ld.Motor("a", 1.0)), "law, stall_torque: expected"),
    (lambda b: b.spring("s", "ground", "link1", stiffness=2.0, law=ld.GasSpring(1.0, 1.0)), "stiffness or a law"),
])
def test_bad_declarations(declare, said):
    b = ld.Builder.of(ld.load("five_bar"))
    with pytest.raises((ModelError, InputError), match=said):
        declare(b)
        b.build()
