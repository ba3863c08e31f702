"""Force elements and actuators on cut joints, and between points: the same machine with that joint in the tree.

A cut joint between frames A and B does what a joint of the same kind in the tree does, from A to a massless body that
is welded to B. There its coordinates are the tree's, and elements on them are those that other tests know.
"""
import warnings

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import liedyn as ld
from liedyn.machine.errors import ConditionWarning, InputError, ModelError, ModelWarning, SingularConfigurationError
from liedyn.mechanics.constraints.checking import central_difference
from liedyn.model.kinds import LOOP_KINDS

KINDS = {"revolute": {"axis": (1.0, 2.0, -0.5)}, "prismatic": {"axis": (0.3, -1.0, 0.4)}, "cylindrical": {},
         "helical": {"pitch": 0.2, "axis": (0.0, 1.0, 1.0)}, "universal": {"axis": (1.0, 0.0, 0.2), "axis2": (0, 1, 0)},
         "planar": {"axis": (0.2, 0.1, 1.0)}, "translational": {}}
FRAMES = ld.placement((0.2, -0.1, 0.1), (0.3, -0.2, 0.5)), ld.placement((0.0, 0.1, -0.2), (0.1, 0.4, -0.3))
FORMULATIONS = "nullspace", "multiplier", "svd", "projection", "udwadia_kalaba", "kane", "unified", "momenta"


def pair(kind, in_tree, add=lambda b, names: None):
    """Two bodies in space, joined by a joint "k" that is cut, or by one in the tree; the coordinates of "k"."""
    b = ld.Builder("pair", gravity=(0.3, -0.2, -9.81))
    b.body("a", 2.0, (0.1, 0.0, -0.05), (0.02, 0.03, 0.04))
    b.body("b", 1.2, (0.0, 0.2, 0.05), (0.03, 0.02, 0.015))
    b.joint("a", "free", "ground", "a")
    b.joint("b", "free", "ground", "b")
    A, B = FRAMES
    if in_tree:
        b.body("middle")
        b.joint("k", kind, "a", "middle", A, **KINDS.get(kind, {}))
        b.loop("weld", "fixed", "middle", "b", child_placement=B)
    else:
        b.loop("k", kind, "a", "b", A, B, **KINDS.get(kind, {}))
    names = ["k" + suffix for suffix in LOOP_KINDS[kind].velocities]
    b.change("robot", independent=tuple(f"a.{x}" for x in ("rx", "ry", "rz", "x", "y", "z")) + tuple(names))
    add(b, names)
    return b.build()


def states(cut, tree, seed=0):
    """A state of the first robot and the same of the second."""
    rng = np.random.default_rng(seed)
    q = ld.close(cut, ld.random_configuration(cut, rng=rng))
    N = np.linalg.svd(ld.constraint_jacobian(cut, q))[2][len(cut.row_names):].T
    v = N @ rng.normal(size=N.shape[1])
    by_name = dict(zip(cut.coordinate_names, q)) | dict(zip(cut.virtual_names, ld.virtual_coordinates(cut, q)))
    rates = dict(zip(cut.velocity_names, v)) | dict(zip(cut.virtual_names, ld.virtual_jacobian(cut, q) @ v))
    return (q, v), (np.array([by_name[name] for name in tree.coordinate_names]),
                    np.array([rates[name] for name in tree.velocity_names]))


def with_everything(b, names):
    """Springs, dampers, friction, a law of two coordinates, and an actuator of each."""
    for k, name in enumerate(names):
        b.coordinate_force(f"spring {name}", {name: 1.5 + k}, rest=0.3, stiffness=4.0, damping=0.3, preload=0.2)
        b.actuator(f"motor {name}", name, gear=2.0 - 3.0 * k)
    b.friction("rub", names[-1], coulomb=0.5, static=0.8, stribeck=0.5, width=0.3)
    b.coordinate_force("together", {name: 1.0 - 0.4 * k for k, name in enumerate(names)},
                       law=lambda x, w: (x ** 3 + w * x, 3.0 * x * x + w, x))
    b.actuator("both", dict.fromkeys(names, 0.7))


@pytest.mark.parametrize("kind", KINDS)
def test_same_as_in_the_tree(kind):
    cut, tree = (pair(kind, in_tree, with_everything) for in_tree in (False, True))
    (q, v), (q_tree, v_tree) = states(cut, tree)
    u = np.random.default_rng(1).normal(size=len(cut.actuator_names))
    found, expected = ld.linearize(cut, q, v, u=u), ld.linearize(tree, q_tree, v_tree, u=u)
    assert found.states == expected.states and found.inputs == expected.inputs
    for name in ("A", "B", "f0"):
        x, y = getattr(found, name), getattr(expected, name)
        assert np.allclose(x, y, rtol=0.0, atol=1e-10 * np.abs(y).max()), name
    common = [tree.velocity_index(name) for name in cut.velocity_names]
    tau = ld.actuator_matrix(cut, q) @ u
    a = ld.forward_dynamics(tree, q_tree, v_tree, tree.actuator_matrix @ u).a[common]
    assert np.allclose(ld.forward_dynamics(cut, q, v, tau).a, a, rtol=0.0, atol=1e-10 * np.abs(a).max())
    # what each element measures and does
    of_cut, of_tree = ld.element_states(cut, q, v), ld.element_states(tree, q_tree, v_tree)
    for name, values in of_tree.items():
        assert np.allclose(of_cut[name], values, rtol=1e-10, atol=1e-10), name


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_every_formulation(formulation):
    cut = pair("cylindrical", False, with_everything)
    (q, v), _ = states(cut, cut)
    expected = ld.forward_dynamics(cut, q, v, np.zeros(12)).a
    found = ld.forward_dynamics(cut, q, v, np.zeros(12), method=formulation).a
    assert np.allclose(found, expected, rtol=0.0, atol=1e-9 * np.abs(expected).max())


def feedback(robot, names):
    """u = K (z, zdot) by (f, df), of coordinates that all have names in the tree."""
    nu = len(robot.actuator_names)
    K, D = np.random.default_rng(3).normal(size=(2, nu, robot.nv))
    keep = np.isin(robot.velocity_names, names)
    K, D = K * keep, D * keep
    at = [robot.coordinate_names.index(name) if name in robot.coordinate_names else 0 for name in robot.velocity_names]
    return lambda t, q, v: K @ q[at] + D @ v, lambda t, q, v: (K, D)


def five_bars():
    """Two machines with a motor at the pin of a five-bar, which is cut, or in the tree with a link's own joint cut."""
    five_bar = ld.load("five_bar")
    b = ld.Builder.of(five_bar)
    b.actuator("shoulder", "q1", gear=3.0)
    b.actuator("elbow", {"pin": 2.0, "q2": -1.0})
    b.coordinate_force("spring", {"pin": 1.0}, rest=0.4, stiffness=2.0, damping=0.1)
    b.cylinder("ram", "ground", "link2", (0.0, 0.4, 0.0), (0.1, 0.0, 0.0), gear=5.0)
    return b.build()


def test_feedback_through_cut_joints():
    """Derivatives of a feedback of u: those of the equivalent feedback of tau, by differences."""
    robot = five_bars()
    q, v = robot.home, np.zeros(4)
    f, df = feedback(robot, robot.velocity_names)

    def of_tau(t, q, v):
        return ld.actuator_matrix(robot, q) @ f(t, q, v)

    def slopes(t, q, v):
        return (np.stack([central_difference(lambda s, e=e: of_tau(t, q + s * e, v)) for e in np.eye(4)], -1),
                np.stack([central_difference(lambda s, e=e: of_tau(t, q, v + s * e)) for e in np.eye(4)], -1))

    found, expected = ld.linearize(robot, q, v, u=(f, df)), ld.linearize(robot, q, v, (of_tau, slopes))
    # sixth-order differences
    assert np.allclose(found.A, expected.A, rtol=0.0, atol=1e-8 * np.abs(expected.A).max())
    assert np.allclose(found.B, expected.B, rtol=0.0, atol=1e-12 * np.abs(expected.B).max())
    one, other = ld.discretize(robot, q, v, u=(f, df), h=1e-3), ld.discretize(robot, q, v, (of_tau, slopes), 1e-3)
    assert np.allclose(one.A, other.A, rtol=0.0, atol=1e-9)
    assert np.allclose(one.B, other.B, rtol=0.0, atol=1e-12)
    runs = [ld.simulate(robot, q, v, 0.02, dt=2e-3, method=method, **given) for method in ("rk4", "implicit", "Radau")
            for given in ({"u": (f, df)}, {"tau": (of_tau, slopes)})]
    for one, other in zip(runs[::2], runs[1::2]):
        # Newton's method ends elsewhere with slopes by differences
        assert np.allclose(one.q[-1], other.q[-1], rtol=0.0, atol=1e-8)


def test_runs_keep_the_energy():
    b = ld.Builder.of(ld.load("five_bar"))
    b.coordinate_force("spring", {"pin": 1.0}, rest=0.4, stiffness=20.0)
    b.actuator("motor", "pin")
    robot = b.build()
    tr = ld.simulate(robot, robot.home, np.zeros(4), 1.0, dt=1e-3)
    # of rk4 with steps of 1 ms
    assert np.ptp(tr.energy) < 1e-9 * np.abs(tr.potential).max()
    driven = ld.simulate(robot, robot.home, np.zeros(4), 0.5, dt=1e-3, u=[0.3])
    z = [ld.virtual_coordinates(robot, q)[0] for q in driven.q[[0, -1]]]
    gained = np.diff(driven.energy[[0, -1]])
    assert gained == pytest.approx(0.3 * (z[1] - z[0]), abs=1e-9)  # work of a constant moment


def test_a_cylinder_pushes_its_points_apart():
    robot = five_bars()
    S = ld.actuator_matrix(robot, robot.home)
    b = ld.Builder.of(robot)
    b.spring("gauge", "ground", "link2", (0.0, 0.4, 0.0), (0.1, 0.0, 0.0), preload=-5.0)
    gauge = b.build()
    assert np.allclose(S[:, 2], ld.element_forces(gauge, robot.home, np.zeros(4))
                       - ld.element_forces(robot, robot.home, np.zeros(4)), rtol=0.0, atol=1e-13)
    batch = ld.actuator_matrix(robot, np.tile(robot.home, (2, 3, 1)))
    assert batch.shape == (2, 3, 4, 3) and np.array_equal(batch[1, 2], S)


def test_inverse_dynamics_and_control():
    """What inputs give a motion, and that they do."""
    b = ld.Builder.of(ld.load("five_bar"))
    b.actuator("shoulder", "q1")
    b.actuator("pin motor", "pin")
    robot = b.build()
    q, v = robot.home, np.zeros(4)
    names = ld.linearize(robot, q, v, u=[0.0, 0.0]).states[:2]
    found = ld.inverse_dynamics(robot, q, v, dict(zip(names, (1.5, -2.0))))
    a = ld.forward_dynamics(robot, q, v, ld.actuator_matrix(robot, q) @ found.u).a
    assert np.allclose(a[[robot.velocity_index(name) for name in names]], (1.5, -2.0), rtol=0.0, atol=1e-10)
    assert bool(ld.controllability(robot, q))
    start = [q[robot.coordinate_names.index(name)] for name in names]
    wanted = np.add(start, 0.1)
    controller = ld.PIDC(robot, wanted, G_P=100.0, G_D=20.0, independent=names)
    tr = ld.simulate(robot, q, v, 1.0, dt=2e-3, tau=controller)
    left = np.stack([tr[name][-1] for name in names]) - wanted
    assert np.allclose(left, -0.1 * 11.0 * np.exp(-10.0), rtol=0.0, atol=1e-7)  # two poles at -10


def test_where_tau_is_given_actuators_do_nothing():
    """Functions that take tau know nothing of actuators, wherever these are."""
    bare = ld.load("five_bar")
    b = ld.Builder.of(bare)
    b.actuator("pin motor", "pin")
    robot, q, v, tau = b.build(), bare.home, np.zeros(4), np.array([0.1, 0.0, 0.2, 0.0])
    assert np.array_equal(ld.underlying(robot, q, v, tau), ld.underlying(bare, q, v, tau))
    assert np.allclose(ld.forward_dynamics(robot, q, v, tau).a, ld.forward_dynamics(bare, q, v, tau).a, rtol=1e-13)
    assert np.allclose(ld.linearize(robot, q, v, tau).A, ld.linearize(bare, q, v, tau).A, rtol=0.0, atol=1e-11)
    runs = [ld.simulate(each, q, v, 0.05, tau=tau).q[-1] for each in (robot, bare)]
    assert np.allclose(*runs, rtol=0.0, atol=1e-13)
    assert ld.potential_energy(robot, q) == ld.potential_energy(bare, q)
    assert not ld.element_states(robot, q, v)


def test_files_and_editing(tmp_path):
    robot = five_bars()
    ld.save(robot, tmp_path / "five.toml")
    q = robot.home
    for other in (ld.load(tmp_path / "five.toml"), ld.Builder.of(robot).build()):
        assert other.actuator_names == robot.actuator_names
        assert np.array_equal(ld.actuator_matrix(other, q), ld.actuator_matrix(robot, q))
        assert np.array_equal(ld.element_forces(other, q, q), ld.element_forces(robot, q, q))
    b = ld.Builder.of(robot)
    b.change("actuator", "ram", gear=10.0)
    assert np.allclose(ld.actuator_matrix(b.build(), q)[:, 2], 2.0 * ld.actuator_matrix(robot, q)[:, 2])
    b.remove("loop", "pin")  # and what acts on it
    assert b.build().actuator_names == ("shoulder", "ram") and b.build().element_names == ()
    c = ld.Builder.of(ld.load("panda"))
    c.attach(robot, "panda_hand", "tool_")
    both = c.build()
    assert "tool_elbow" in both.actuator_names and both.element_names == ("tool_spring",)
    of_tool = ld.actuator_matrix(both, both.home)[-4:, -3:]
    # the ram now pushes against the hand, as the ground was there
    assert np.allclose(of_tool, ld.actuator_matrix(robot, both.home[-4:]), rtol=0.0, atol=1e-12)


def test_angles_count_from_rest_to_half_a_turn():
    """A spring that rests beyond half a turn is not wound up by the branch of the angle."""
    def spring(b, names):
        b.coordinate_force("spring", {"k": 2.0}, rest=2.0 * 3.0, stiffness=1.0)

    robot = pair("revolute", False, spring)
    (q, v), _ = states(robot, robot)
    q = ld.close(robot, q, k=-3.0)
    x = ld.element_states(robot, q, v)["spring"][0]
    assert x == pytest.approx(2.0 * (2.0 * np.pi - 6.0), abs=1e-9)


@pytest.mark.parametrize("declare, says", [
    (lambda b: b.coordinate_force("s", {"ball.rx": 1.0}, stiffness=1.0), "ball"),
    (lambda b: b.coordinate_force("s", {"nothing": 1.0}, stiffness=1.0), "nothing"),
    (lambda b: b.actuator("m", "nothing"), "nothing"),
])
def test_refused(declare, says):
    b = ld.Builder.of(pair("spherical", False))
    b.loop("ball", "spherical", "a", "b", active=True)
    declare(b)
    with pytest.raises(ModelError, match=says):
        b.build()


def test_what_cannot_be_is_said():
    robot = five_bars()
    with pytest.raises(InputError, match="'elbow'.*depends on the configuration"):
        robot.actuator_matrix  # noqa: B018
    with pytest.raises(InputError, match="cut joint 'pin' cannot be switched off"):
        robot.switched(pin=False)
    with pytest.raises(InputError, match="cut joint 'pin' cannot be moved"):
        robot.with_target("pin", lambda t: (np.zeros(3), np.zeros(3), np.zeros(3)))
    b = ld.Builder.of(robot)
    b.change("loop", "pin", active=False)
    with pytest.raises(ModelError, match="'pin' is switched off"):
        b.build()
    c = ld.Builder("rod")
    c.body("rod", 1.0)
    c.joint("slide", "prismatic", "ground", "rod")
    c.cylinder("ram", "ground", "rod")
    with pytest.raises(SingularConfigurationError, match="actuator 'ram' has no direction"):
        ld.actuator_matrix(c.build(), [0.0])
    with pytest.raises(SingularConfigurationError, match="'ram' has no direction"):
        ld.linearize(c.build(), [0.0], [0.0], u=[1.0])


def test_dampers_and_motors_on_a_ball():
    def add(b, names):
        b.coordinate_force("damper", dict(zip(names, (1.0, 0.5, -0.3))), damping=0.4)
        b.actuator("twist", names[2])

    cut = pair("spherical", False, add)
    bare = pair("spherical", True)  # of a ball in the tree no sums can be taken: the same by hand
    (q, v), (q_tree, v_tree) = _ball_states(cut, bare)
    c = np.array([1.0, 0.5, -0.3])
    z = [bare.velocity_index(name) for name in ("k.rx", "k.ry", "k.rz")]
    tau = np.zeros(bare.nv)
    tau[z] = -0.4 * c * (c @ v_tree[z])
    tau[z[2]] += 0.8
    a = ld.forward_dynamics(bare, q_tree, v_tree, tau).a[[bare.velocity_index(name) for name in cut.velocity_names]]
    found = ld.forward_dynamics(cut, q, v, ld.actuator_matrix(cut, q) @ [0.8]).a
    assert np.allclose(found, a, rtol=0.0, atol=1e-10 * np.abs(a).max())


def _ball_states(cut, tree):
    """As `states`, where the tree has a quaternion."""
    rng = np.random.default_rng(0)
    q = ld.close(cut, ld.random_configuration(cut, rng=rng))
    N = np.linalg.svd(ld.constraint_jacobian(cut, q))[2][len(cut.row_names):].T
    v = N @ rng.normal(size=N.shape[1])
    by_name = dict(zip(cut.coordinate_names, q))
    A, B = (ld.pose(cut, q, name)[:3, :3] @ frame[:3, :3] for name, frame in zip("ab", FRAMES))
    by_name |= dict(zip(("k.qx", "k.qy", "k.qz", "k.qw"), Rotation.from_matrix(A.T @ B).as_quat()))
    q_tree = np.array([by_name[name] for name in tree.coordinate_names])
    rates = dict(zip(cut.velocity_names, v)) | dict(zip(cut.virtual_names, ld.virtual_jacobian(cut, q) @ v))
    return (q, v), (q_tree, np.array([rates[name] for name in tree.velocity_names]))


@pytest.mark.parametrize("kind", [*KINDS, "spherical"])
def test_loops_take_what_joints_take(kind):
    """Springs and dampers of a cut joint are those of the joint in the tree; with armature it is one of the tree."""
    nv = LOOP_KINDS[kind].nv
    springs = {"damping": 0.3, "stiffness": 2.0, "rest": [0.0, 0.6, 0.0, 0.8] if kind == "spherical" else [0.4] * nv}

    def stiffen(b, names, **more):
        b.change("joint" if any(each.name == "k" for each in b._joints) else "loop", "k", **springs, **more)

    cut, tree = (pair(kind, in_tree, stiffen) for in_tree in (False, True))
    (q, v), (q_tree, v_tree) = (_ball_states if kind == "spherical" else states)(cut, tree)
    found, expected = ld.linearize(cut, q, v, np.zeros(12)), ld.linearize(tree, q_tree, v_tree, np.zeros(tree.nv))
    for name in ("A", "f0"):
        x, y = getattr(found, name), getattr(expected, name)
        assert np.allclose(x, y, rtol=0.0, atol=1e-10 * np.abs(y).max()), name
    heavy, heavy_tree = (pair(kind, in_tree, lambda b, names: stiffen(b, names, armature=0.2))
                         for in_tree in (False, True))
    assert heavy.velocity_names == tree.velocity_names and heavy.loop_names == ("k weld",)
    a = [ld.forward_dynamics(each, q_tree, v_tree, np.zeros(tree.nv)).a for each in (heavy, heavy_tree)]
    assert np.allclose(*a, rtol=0.0, atol=1e-11 * np.abs(a[1]).max())


def test_springs_of_a_loop_are_changed_with_it():
    b = ld.Builder.of(ld.load("five_bar"))
    b.change("loop", "pin", damping=1.0)
    b.change("loop", "pin", damping=2.0, stiffness=1.0)
    [spring] = b.build().model.elements
    assert spring.name == "pin spring" and spring.numbers == (1.0, 2.0, 0.0)
    with pytest.raises(ModelError, match="loop 'in', kind: what has armature must be a joint of the tree"):
        b.loop("in", "inline", "ground", "link1", armature=1.0)
    with pytest.raises(ModelError, match="damping: must be the same in all three"):
        b.loop("ball", "spherical", "ground", "link1", damping=[1.0, 2.0, 3.0])


def test_runs_warn_of_springs_that_are_wound_up():
    """A pin that turns and turns: its spring's force jumps at half a turn, that of a damper does not."""
    def turning(add):
        b = ld.Builder("wheel", gravity=(0.0, 0.0, 0.0))
        b.body("wheel", 1.0, inertia=(1.0, 1.0, 1.0))
        b.joint("wheel", "free", "ground", "wheel")
        b.loop("axle", "revolute", "ground", "wheel", **add)
        robot = b.build()
        return ld.simulate(robot, robot.home, [0.0, 0.0, 10.0, 0.0, 0.0, 0.0], 1.0, dt=1e-3)

    with (pytest.warns(ConditionWarning, match="changes the energy"),  # as the force jumps within a step
          pytest.warns(ModelWarning, match=r"'axle spring' of 'wheel' passes half a turn from rest before t = 0.31\d")):
        turning({"stiffness": 0.1})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tr = turning({"damping": 0.5})
    assert tr.v[-1][2] == pytest.approx(10.0 * np.exp(-0.5), rel=1e-9)


def test_forward_dynamics_takes_inputs():
    """u as linearize and simulate take it: actuators with gears, on cut joints and between points, in batches."""
    b = ld.Builder.of(ld.load("five_bar"))
    b.actuator("first", "q1", gear=3.0)
    b.actuator("second", "pin")
    b.cylinder("across", "link1", "link4", (0.1, 0.2, 0.0), (0.3, 0.0, 0.0))
    b.coordinate_force("coil", {"q2": 1.0}, stiffness=2.0, damping=0.3)
    robot, rng = b.build(), np.random.default_rng(4)
    q = ld.close(robot, robot.home, q1=robot.home[0] + np.array([0.0, 0.1, -0.1]))
    v, u = ld.complete_velocity(robot, q, rng.normal(size=(3, 2))), rng.normal(size=(3, 3))
    tau = (ld.actuator_matrix(robot, q) @ u[..., None])[..., 0]
    for given, same in ((u, tau), (u[0], (ld.actuator_matrix(robot, q) @ u[0]))):
        found, expected = ld.forward_dynamics(robot, q, v, u=given), ld.forward_dynamics(robot, q, v, same)
        assert np.array_equal(found.a, expected.a) and np.array_equal(found.lam, expected.lam)
    one = ld.forward_dynamics(robot, q[1], v[1], u=u[1].tolist(), method="svd")
    assert np.allclose(one.a, ld.forward_dynamics(robot, q[1], v[1], tau[1]).a, atol=1e-9)
    panda = ld.load("panda")
    rest = np.zeros(7)
    assert np.array_equal(ld.forward_dynamics(panda, panda.home, rest, u=np.ones(7)).a,
                          ld.forward_dynamics(panda, panda.home, rest, np.ones(7)).a)
    for wrong, message in ((dict(), "give tau"), (dict(tau=tau[0], u=u[0]), "give tau"), (dict(u=u[0, :2]), "shape"),
                           (dict(u=np.zeros((4, 3))), "do not broadcast")):
        with pytest.raises(InputError, match=message):
            ld.forward_dynamics(robot, q if "u" in wrong and len(wrong["u"]) == 4 else q[0],
                                v if "u" in wrong and len(wrong["u"]) == 4 else v[0], **wrong)
