"""Force elements: laws they must obey, and the same forces written by hand."""
import numpy as np
import pytest
from numba import njit

import liedyn as ld
from liedyn.machine.errors import InputError, ModelError, SingularConfigurationError
from liedyn.mechanics.constraints.checking import central_difference

STATE = np.random.default_rng(5)


def arm_with_springs(name="ur5"):
    """An arm with a spring between two of its links, one to the ground, and a tendon over three joints."""
    b = ld.Builder.of(ld.load(name))
    first, second = ld.load(name).body_names[2], ld.load(name).body_names[-1]
    b.spring("across", first, second, (0.1, 0.02, 0.0), (0.0, 0.05, 0.03), length=0.2, stiffness=30.0, damping=2.0,
             preload=1.5)
    b.spring("held", "ground", second, (1.0, 0.3, 0.4), (0.0, 0.0, 0.1), length=0.5, stiffness=12.0)
    joints = ld.load(name).velocity_names
    b.coordinate_force("tendon", {joints[0]: 1.0, joints[2]: -0.5, joints[3]: 2.0}, rest=0.3, stiffness=4.0,
                       damping=0.7)
    return b.build()


def point(robot, body, q, p):
    """Where a point of a body is in the world."""
    return np.array(p) if body == "ground" else (ld.pose(robot, q, body) @ [*p, 1.0])[:3]


def stored(robot, q):
    """Energy stored in the springs of `arm_with_springs`, from positions alone."""
    names, joints = robot.body_names, robot.velocity_names
    tip = names[-1]
    x = np.linalg.norm(point(robot, names[2], q, (0.1, 0.02, 0.0)) - point(robot, tip, q, (0.0, 0.05, 0.03))) - 0.2
    y = np.linalg.norm(point(robot, "ground", q, (1.0, 0.3, 0.4)) - point(robot, tip, q, (0.0, 0.0, 0.1))) - 0.5
    k = [robot.velocity_index(joints[j]) for j in (0, 2, 3)]
    z = q[k] @ [1.0, -0.5, 2.0] - 0.3
    return 15.0 * x * x + 1.5 * x + 6.0 * y * y + 2.0 * z * z


def test_forces_are_what_the_stored_energy_gives_back():
    robot = arm_with_springs()
    for _ in range(3):
        q = ld.random_configuration(robot, rng=STATE)
        tau = ld.element_forces(robot, q, np.zeros(robot.nv))
        slope = [central_difference(lambda s, q=q, e=e: stored(robot, q + s * e)) for e in np.eye(robot.nv)]
        # sixth-order differences leave 1e-10 or so
        assert np.allclose(tau, -np.array(slope), rtol=0.0, atol=1e-8 * np.abs(tau).max())


def test_dampers_take_power_away():
    robot = arm_with_springs()
    q, v = ld.random_configuration(robot, rng=STATE), STATE.normal(size=robot.nv)
    states, rest = ld.element_states(robot, q, v), ld.element_forces(robot, q, np.zeros(robot.nv))
    power = (ld.element_forces(robot, q, v) - rest) @ v
    expected = -2.0 * states["across"][1] ** 2 - 0.7 * states["tendon"][1] ** 2
    assert power == pytest.approx(expected, rel=1e-12) and power < 0.0
    along = central_difference(lambda s: ld.element_states(robot, ld.integrate(robot, q, s * v), v)["across"][0])
    assert states["across"][1] == pytest.approx(along, abs=1e-8)


def feedback_of(robot, bare):
    """The same forces as a feedback of the user's, with differences as derivatives."""
    def f(t, q, v):
        return ld.element_forces(robot, q, v)

    def df(t, q, v):
        by_q = [central_difference(lambda s, e=e: f(t, ld.integrate(bare, q, s * e), v)) for e in np.eye(bare.nv)]
        by_v = [central_difference(lambda s, e=e: f(t, q, v + s * e)) for e in np.eye(bare.nv)]
        return np.stack(by_q, -1), np.stack(by_v, -1)

    return f, df


def machines():
    """(robot with elements, without, state): a tree, a free base, closed loops."""
    five_bar = ld.load("five_bar")
    b = ld.Builder.of(five_bar)
    ends = five_bar.body_names
    b.spring("spring", ends[0], ends[-1], (0.05, 0.1, 0.02), (0.02, 0.0, 0.03), length=0.3, stiffness=80.0, damping=1.0)
    b.friction("rub", "q2", coulomb=0.4, static=0.6, stribeck=0.5, viscous=0.2, width=0.2)
    b.coordinate_force("hard", {"q1": 1.0, "q3": -1.0},
                       law=njit(lambda x, w: (x ** 3 + 0.1 * w * abs(w), 3.0 * x * x, 0.2 * abs(w))))
    b.bushing("mount", ends[0], ends[-1], (0.1, 0.0, 0.0), (0.0, 0.1, 0.0), [3.0, 4.0, 5.0, 30.0, 40.0, 50.0], 0.2)
    b.applied_force("wind", ends[1], (0.1, 0.0, 0.0), force=(1.0, -2.0, 0.5), torque=(0.0, 0.1, 0.2))
    b.applied_force("jet", ends[2], (0.1, 0.0, 0.0), force=(1.0, 2.0, 0.0), axes="body")
    solo = ld.load("solo12")
    c = ld.Builder.of(solo)
    c.spring("leash", "ground", solo.body_names[-1], (2.0, 0.0, 1.0), (0.0, 0.0, 0.1), 0.5, 20.0, 3.0)
    for base, builder in ((five_bar, b), (solo, c)):
        q = base.home if base.loop_names else ld.random_configuration(base, rng=np.random.default_rng(2))
        G = ld.constraint_jacobian(base, q)
        v = np.linalg.svd(G)[2][np.linalg.matrix_rank(G):].T if len(G) else np.eye(base.nv)
        v = v @ np.random.default_rng(3).normal(size=v.shape[1])
        yield builder.build(), base, (q, v, np.random.default_rng(4).normal(size=base.nv))


@pytest.mark.parametrize("robot, bare, state", list(machines()), ids=["five_bar", "solo12"])
class TestSameAsFeedback:
    def test_forward_dynamics(self, robot, bare, state):
        q, v, tau = state
        expected = ld.forward_dynamics(bare, q, v, tau + ld.element_forces(robot, q, v)).a
        for method in ("nullspace", "multiplier", "svd", "projection", "udwadia_kalaba", "kane", "unified"):
            if bare.loop_names or method == "nullspace":
                found = ld.forward_dynamics(robot, q, v, tau, method=method)
                assert np.allclose(found.a, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())
        batch = ld.forward_dynamics(robot, *(np.tile(x, (3, 1)) for x in state))
        assert np.allclose(batch.a, expected, rtol=1e-10, atol=1e-10 * np.abs(expected).max())

    def test_linearization(self, robot, bare, state):
        q, v, tau = state
        f, df = feedback_of(robot, bare)
        expected = ld.linearize(bare, q, v, (lambda t, q, v: tau + f(t, q, v), df))
        found = ld.linearize(robot, q, v, tau)
        # sixth-order differences of the forces, of which some are far larger than others
        for name in ("A", "B", "C", "D", "f0"):
            x, y = getattr(found, name), getattr(expected, name)
            assert np.allclose(x, y, rtol=0.0, atol=1e-7 * max(1.0, np.abs(y).max())), name
        assert np.array_equal(found.inputs, expected.inputs)
        assert np.array_equal(found.tau, tau)  # what was given, which gives the same model again
        assert np.array_equal(ld.linearize(robot, found.q, found.v, found.tau).A, found.A)
        batch = ld.linearize(robot, *(np.tile(x, (3, 1)) for x in state))
        assert np.allclose(batch.A, found.A, rtol=0.0, atol=1e-9 * np.abs(found.A).max())

    def test_with_feedback_besides(self, robot, bare, state):
        q, v, tau = state
        f, df = feedback_of(robot, bare)
        K, D = np.random.default_rng(6).normal(size=(2, bare.nv, bare.nv))

        def own(t, q, v):
            return tau + D @ v + K @ ld.difference(bare, bare.neutral, q)

        def own_df(t, q, v):
            columns = [central_difference(lambda s, e=e: own(t, ld.integrate(bare, q, s * e), v))
                       for e in np.eye(bare.nv)]
            return np.stack(columns, -1), D

        both = (lambda t, q, v: own(t, q, v) + f(t, q, v),
                lambda t, q, v: tuple(x + y for x, y in zip(own_df(t, q, v), df(t, q, v))))
        found, expected = ld.linearize(robot, q, v, (own, own_df)), ld.linearize(bare, q, v, both)
        assert np.allclose(found.A, expected.A, rtol=0.0, atol=1e-7 * np.abs(expected.A).max())

    def test_discretization(self, robot, bare, state):
        q, v, tau = state
        f, df = feedback_of(robot, bare)
        expected = ld.discretize(bare, q, v, (lambda t, q, v: tau + f(t, q, v), df), 1e-3)
        found = ld.discretize(robot, q, v, tau, 1e-3)
        assert np.allclose(found.A, expected.A, rtol=0.0, atol=1e-8 * np.abs(expected.A).max())
        assert np.allclose(found.B, expected.B, rtol=0.0, atol=1e-8 * np.abs(expected.B).max())
        assert np.array_equal(found.tau, tau)

    @pytest.mark.parametrize("method", ["rk4", "implicit", "Radau", "generalized_alpha"])
    def test_motion(self, robot, bare, state, method):
        """All integrators, those that use derivatives too, against the same forces as a function of the user's."""
        q, v, tau = state
        f, df = feedback_of(robot, bare)
        end = 0.02
        found = ld.simulate(robot, q, v, end, tau=tau, dt=1e-3, method=method)
        expected = ld.simulate(bare, q, v, end, tau=(lambda t, q, v: tau + f(t, q, v), df), dt=1e-3, method=method)
        assert np.allclose(found.q[-1], expected.q[-1], rtol=0.0, atol=1e-8)
        assert np.allclose(found.v[-1], expected.v[-1], rtol=0.0, atol=1e-7 * max(1.0, np.abs(expected.v).max()))


def test_energy_stays_in_a_machine_with_springs():
    """Kinetic and potential energy together, to the accuracy of the method; what the spring holds is in the second."""
    robot = arm_with_springs()
    b = ld.Builder.of(robot)
    b._elements = [each for each in b._elements if each.name == "held"]
    robot = b.build()
    q, v = ld.random_configuration(robot, rng=np.random.default_rng(8)), np.zeros(robot.nv)
    run = ld.simulate(robot, q, v, 0.5, dt=5e-4)
    x = np.array([ld.element_states(robot, *each)["held"][0] for each in zip(run.q, run.v)])
    assert np.allclose(run.potential - ld.potential_energy(ld.load("ur5"), run.q), 6.0 * x * x, rtol=0.0, atol=1e-12)
    assert np.allclose(run.potential, ld.potential_energy(robot, run.q), rtol=0.0, atol=1e-12)
    assert np.abs(run.energy - run.energy[0]).max() < 1e-6 * run.kinetic.max()
    assert np.ptp(6.0 * x * x) > 0.01 * run.kinetic.max() and not run.input_work.any()


def block(**friction):
    """A block of 2 kg on a rail at 30 degrees."""
    b = ld.Builder("block", gravity=(9.81 * np.sin(np.pi / 6), 0.0, -9.81 * np.cos(np.pi / 6)))
    b.body("block", mass=2.0)
    b.joint("rail", "prismatic", "ground", "block", axis=(1, 0, 0))
    b.friction("rub", "rail", **friction)
    return b.build()


def test_dry_friction_slides_as_coulomb_says():
    robot = block(coulomb=4.0, width=1e-3)
    run = ld.simulate(robot, [0.0], [3.0], 0.4, dt=1e-3)
    # far from rest tanh is 1 to rounding
    assert run.v[-1, 0] == pytest.approx(3.0 + (9.81 * 0.5 - 2.0) * 0.4, abs=1e-10)


def test_dry_friction_holds_but_for_creep():
    """Where the load is below friction the block creeps at the rate at which both are equal, and no faster."""
    robot = block(coulomb=15.0, width=1e-3)
    run = ld.simulate(robot, [0.0], [0.0], 0.2, dt=1e-3, method="Radau")
    assert run.v[-1, 0] == pytest.approx(1e-3 * np.arctanh(9.81 / 15.0), rel=1e-6)


def test_static_friction_is_above_sliding_friction():
    robot = block(coulomb=8.0, static=12.0, stribeck=0.05, width=1e-3)
    forces = [ld.element_states(robot, [0.0], [w])["rub"][2] for w in (0.005, 0.05, 1.0)]
    assert forces == pytest.approx([8.0 + 4.0 * np.exp(-0.01) * 1.0, 8.0 + 4.0 / np.e, 8.0], rel=1e-3)


def test_python_laws_are_compiled_ones():
    def law(x, w):
        return 5.0 * np.tanh(x) + w, 5.0 / np.cosh(x) ** 2, 1.0

    found = []
    for each in (law, njit(law)):
        b = ld.Builder.of(ld.load("five_bar"))
        b.coordinate_force("soft", {"q1": 1.0}, law=each)
        robot = b.build()
        found.append(ld.linearize(robot, robot.home, [0.0] * 4, [0.0] * 4).A)
    assert np.array_equal(*found)


def spring_to_itself():
    b = ld.Builder("ball")
    b.body("ball", mass=1.0, inertia=(1.0, 1.0, 1.0))
    b.joint("slide", "prismatic", "ground", "ball", axis=(1, 0, 0))
    b.spring("band", "ground", "ball", stiffness=10.0)
    return b.build()


def test_a_spring_without_a_direction_is_an_error():
    robot = spring_to_itself()
    for call in (lambda: ld.element_forces(robot, [0.0], [0.0]), lambda: ld.linearize(robot, [0.0], [0.0], [0.0]),
                 lambda: ld.forward_dynamics(robot, [0.0], [0.0], [0.0])):
        with pytest.raises(SingularConfigurationError, match="force element 'band' has no direction here: its points"):
            call()
    with pytest.raises(SingularConfigurationError, match="state 1"):
        ld.element_forces(robot, [[0.1], [0.0]], [[0.0], [0.0]])


@pytest.mark.parametrize("declare, said", [
    (lambda b: b.spring("s", "ground", "link9"), "force element 's', child: unknown 'link9'"),
    (lambda b: b.spring("s", "ground", "link1", length=-1.0), "'s', length: must not be negative, got -1.0"),
    (lambda b: b.spring("s", "ground", "link1", stiffness=1.0, law=lambda x, w: (x, 1.0, 0.0)),
     "give stiffness or a law, not both"),
    (lambda b: b.spring("s", "ground", "link1", law=3.0), "law: expected a function, got 3.0"),
    (lambda b: b.spring("s", "ground", "link1", law=lambda x, w: x), "law of force element 's'"),
    (lambda b: b.coordinate_force("s", {"q7": 1.0}), "unknown 'q7'"),
    (lambda b: b.friction("s", "q1", coulomb=-1.0), "coulomb: must be positive, got -1.0"),
    (lambda b: b.friction("s", "q1", coulomb=1.0, static=0.5), "static: must not be below coulomb, 1.0, got 0.5"),
    (lambda b: b.friction("s", "q1", coulomb=1.0, width=-1.0), "width: must be positive, got -1.0"),
])
def test_bad_declarations(declare, said):
    b = ld.Builder.of(ld.load("five_bar"))
    with pytest.raises((ModelError, InputError), match=said):
        declare(b)
        b.build()


def test_a_law_without_rate_needs_a_direction_too():
    b = ld.Builder.of(spring_to_itself())
    b.remove("element", "band")
    b.spring("band", "ground", "ball", law=lambda x, w: (1.0, 0.0, 0.0))
    with pytest.raises(SingularConfigurationError, match="force element 'band' has no direction"):
        ld.element_forces(b.build(), [0.0], [0.0])


def test_forces_that_overflow_are_named():
    b = ld.Builder.of(ld.load("five_bar"))
    b.coordinate_force("other", {"q1": 1.0}, law=njit(lambda x, w: (1e308 * (1.0 + x * x), 0.0, 0.0)))
    with pytest.raises(InputError, match="overflow|not finite"):
        ld.element_forces(b.build(), [20.0, 0.0, 0.0, 0.0], [0.0] * 4)


def test_shapes_that_do_not_fit_are_named():
    robot = arm_with_springs()
    q, tau = np.zeros((2, robot.nv)), np.zeros((3, robot.nv))
    with pytest.raises(InputError, match="leading axes do not broadcast: q .2, 6., v .2, 6., tau .3, 6."):
        ld.forward_dynamics(robot, q, q, tau)


def test_what_does_not_know_of_elements_says_so():
    robot, _, (q, v, tau) = next(machines())
    with pytest.raises(InputError, match="underlying takes no force elements, as 'spring' is one"):
        ld.underlying(robot, q, v, tau)


def test_a_law_that_fails_is_named():
    def law(x, w):
        if x > 1.0:
            raise ValueError("too long")
        return x, 1.0, 0.0

    b = ld.Builder.of(ld.load("five_bar"))
    b.coordinate_force("band", {"q1": 1.0}, law=law)
    robot = b.build()
    assert ld.element_forces(robot, [0.5, 0, 0, 0], [0.0] * 4)[0] == -0.5
    with pytest.raises(InputError, match="law of force element 'band': fails with ValueError: too long"):
        ld.element_forces(robot, [1.5, 0, 0, 0], [0.0] * 4)


def test_elements_stay_with_a_robot():
    robot = arm_with_springs()
    assert robot.element_names == ("across", "held", "tendon")
    again = ld.Builder.of(robot.at(0.5)).build()
    q, v = ld.random_configuration(robot, rng=STATE), STATE.normal(size=robot.nv)
    assert np.array_equal(ld.element_forces(again, q, v), ld.element_forces(robot, q, v))
    assert not ld.element_forces(ld.load("ur5"), q, v).any()


def test_inverse_dynamics_knows_the_elements():
    """Its forces, with those of the springs, give back the motion that was asked for."""
    robot, bare, (q, v, _) = next(machines())
    independent = ("q1", "q2")
    found = ld.inverse_dynamics(robot, q, v, [1.0, -2.0], independent=independent)
    again = ld.forward_dynamics(robot, q, v, found.tau)
    assert np.allclose(again.a, found.a, rtol=0.0, atol=1e-9 * np.abs(found.a).max())
    plain = ld.inverse_dynamics(bare, q, v, [1.0, -2.0], independent=independent)
    assert not np.allclose(plain.tau, found.tau, rtol=1e-3)


def test_elements_in_files(tmp_path):
    robot = arm_with_springs()
    b = ld.Builder.of(robot)
    b.friction("rub", robot.velocity_names[1], coulomb=1.5, static=2.0, viscous=0.1)
    robot = b.build()
    ld.save_toml(robot, tmp_path / "arm.toml")
    again = ld.load(tmp_path / "arm.toml")
    q, v = ld.random_configuration(robot, rng=STATE), STATE.normal(size=robot.nv)
    assert again.element_names == robot.element_names
    assert np.allclose(ld.element_forces(again, q, v), ld.element_forces(robot, q, v), rtol=1e-13, atol=0.0)
    b.coordinate_force("own", {robot.velocity_names[0]: 1.0}, law=lambda x, w: (x, 1.0, 0.0))
    with pytest.raises(ModelError, match="force element 'own', law: a function cannot be written"):
        ld.save_toml(b.build(), tmp_path / "own.toml")


def test_editing_keeps_elements_right():
    """They change, go with what they are on, take constants of locked joints, and come along under a prefix."""
    robot = arm_with_springs()
    joints, q = robot.velocity_names, ld.random_configuration(robot, rng=np.random.default_rng(9))
    rest = np.zeros(robot.nv)
    b = ld.Builder.of(robot)
    b.change("element", "held", stiffness=24.0)
    stiffer = ld.element_states(b.build(), q, rest)["held"]
    assert stiffer[2] == pytest.approx(2.0 * ld.element_states(robot, q, rest)["held"][2], rel=1e-14)
    b.remove("element", "across")
    b.remove("body", robot.body_names[-1])
    assert b.build().element_names == ("tendon",)
    locked = ld.reduced(robot, {joints[2]: q[2], joints[0]: q[0]})
    left = [k for k in range(robot.nv) if k not in (0, 2)]
    assert np.allclose(ld.element_forces(locked, q[left], rest[left]), ld.element_forces(robot, q, rest)[left],
                       rtol=0.0, atol=1e-12 * 100.0)
    both = ld.Builder.of(ld.load("five_bar"))
    both.attach(robot, "ground", "arm_")
    whole = both.build()
    assert whole.element_names == ("arm_across", "arm_held", "arm_tendon")
    assert np.allclose(ld.element_forces(whole, [*rest[:4], *q], [*rest[:4], *rest])[4:],
                       ld.element_forces(robot, q, rest), rtol=0.0, atol=1e-12 * 100.0)


def test_an_element_may_be_called_as_a_joint_is():
    b = ld.Builder.of(ld.load("five_bar"))
    b.coordinate_force("q1", {"q1": 1.0}, stiffness=2.0)
    b.bushing("pin", "ground", "link1", stiffness=1.0)
    assert ld.element_states(b.build(), [0.5, 0.0, 0.0, 0.0], [0.0] * 4)["q1"][2] == 1.0


def test_springs_between_frames():
    b = ld.Builder.of(ld.load("five_bar"))
    b.frame("hook", "link1", (0.1, 0.0, 0.0))
    b.spring("band", "ground", "hook", (0.0, 1.0, 0.0), length=0.5, stiffness=10.0)
    c = ld.Builder.of(ld.load("five_bar"))
    c.spring("band", "ground", "link1", (0.0, 1.0, 0.0), (0.1, 0.0, 0.0), length=0.5, stiffness=10.0)
    forces = [ld.element_forces(each.build(), [0.3, 0.2, 0.1, 0.4], [0.0] * 4) for each in (b, c)]
    assert np.allclose(*forces, rtol=0.0, atol=1e-14)


@pytest.mark.filterwarnings("ignore::liedyn.machine.errors.ModelWarning")
def test_elements_and_frames_in_other_files(tmp_path):
    """MJCF has linear springs as tendons, and motors on several joints; URDF leaves them out, and says so."""
    pytest.importorskip("mujoco", reason="MJCF files are read by MuJoCo")
    robot = arm_with_springs()
    b, joints = ld.Builder.of(robot), robot.velocity_names
    b.frame("tool", robot.body_names[-1], (0.0, 0.0, 0.1))
    b.spring("band", "ground", "tool", (0.0, 1.0, 0.3), length=0.4, stiffness=5.0)
    b.actuator("winch", {joints[0]: 2.0, joints[1]: -1.0})
    robot = b.build()
    ld.save(robot, tmp_path / "arm.xml")
    again = ld.load(tmp_path / "arm.xml")
    q, v = ld.random_configuration(robot, rng=STATE), STATE.normal(size=robot.nv)
    assert again.velocity_names == joints and np.array_equal(again.actuator_matrix, robot.actuator_matrix)
    for name in robot.element_names:
        found, expected = (ld.element_states(each, q, v)[name][2] for each in (again, robot))
        assert found == pytest.approx(expected, rel=1e-12), name
    assert np.allclose(ld.element_forces(again, q, v), ld.element_forces(robot, q, v), rtol=0.0, atol=1e-11)
    with pytest.warns(ld.ModelWarning, match="left out force elements: 'across', 'held', 'tendon', 'band'"):
        ld.save(robot, tmp_path / "arm.urdf")
    assert np.allclose(ld.pose(ld.load(tmp_path / "arm.urdf"), q, "tool"), ld.pose(robot, q, "tool"), atol=1e-14)
