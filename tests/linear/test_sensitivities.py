"""Derivatives of accelerations, multipliers and linear models by parameters, against robots that were built anew.

Differences are of fourth order with steps of 1e-4: their error is of the order of 1e-16 times fifth derivatives and of
rounding, 1e-12 times the size of what is differentiated. `test_sensitivities_exact` has the digits.
"""
import warnings

import numpy as np
import pytest
from comparison import off

import liedyn as ld
from liedyn.machine.errors import ClosureError, InputError
from liedyn.mechanics.constraints.independent import Independent, by_name
from liedyn.mechanics.constraints.loops import virtual_jacobian
from tests.perturbed_models import perturbed

STEP = 1e-4
MOST = 2e-7
"""Error accepted, of the largest entry or of 1."""


def springy_five_bar():
    """A five-bar with every law of force elements, and springs and dampers in its joints."""
    b = ld.Builder.of(ld.load("five_bar"))
    b.spring("strut", "ground", "link2", (0.3, 0.5, 0.02), (0.1, 0.02, 0.03), length=0.3, stiffness=40.0, damping=2.0,
             preload=1.5)
    gas = ld.GasSpring(force=20.0, column=0.9, exponent=1.3, damping=0.4)
    b.spring("gas", "link1", "link4", (0.1, 0.0, 0.0), (0.1, 0.2, 0.01), law=gas)
    b.coordinate_force("bar", {"q1": 1.0, "q2": -1.0}, rest=0.2, stiffness=3.0, damping=0.1)
    b.coordinate_force("motor", {"q1": 1.0}, law=ld.Motor(stall_torque=3.0, no_load_speed=20.0, supply=0.3))
    b.coordinate_force("bumper", {"q2": 1.0}, rest=0.1, law=ld.PolynomialSpring(2.0, -0.7, 0.9, 0.3, 0.2, 0.1, 0.05))
    b.friction("rub", "q2", coulomb=1.2, static=1.9, stribeck=0.9, viscous=0.3, width=0.7)
    b.change("joint", "q1", stiffness=0.7, rest=0.1, damping=0.2)
    return b.build()


def hanging_chain():
    """A free body on a cut universal joint that carries one on a ball, held by a rod."""
    b = ld.Builder("chain")
    b.body("hull", mass=2.0, com=(0.1, -0.2, 0.05), inertia=np.diag([0.3, 0.4, 0.5]))
    b.body("fin", mass=0.7, com=(0.0, 0.1, 0.2), inertia=np.diag([0.02, 0.03, 0.04]))
    b.body("bob", mass=0.5, com=(0.05, 0.0, -0.3), inertia=np.diag([0.01, 0.02, 0.02]))
    b.joint("floating", "free", "ground", "hull")
    b.joint("weld", "fixed", "hull", "fin", placement=ld.placement((0.3, 0.1, 0.0), rpy=(0.2, 0.1, -0.3)))
    b.joint("ball", "spherical", "fin", "bob", placement=ld.placement((0.0, 0.2, 0.1), rpy=(0.1, 0.0, 0.4)),
            damping=0.3)
    b.constraint("rod", "distance", "ground", "bob", parent_placement=(0.5, 1.0, 0.4), child_placement=(0.1, 0.0, 0.2),
                 length=0.9)
    b.loop("hook", "universal", "ground", "hull", axis=(1.0, 0.0, 0.0), axis2=(0.0, 1.0, 0.0),
           parent_placement=(0.2, 0.0, 0.0))
    return b.build()


def rubbery_five_bar():
    """A five-bar with a bushing of all stiffnesses and dampings between two links, and wrenches on a third.

    The bushing is turned by about a radian: at half a turn it jumps.
    """
    b, rng = ld.Builder.of(ld.load("five_bar")), np.random.default_rng(3)
    K, D = rng.normal(size=(2, 6, 6))
    b.bushing("rubber", "link1", "link3", ld.placement((0.3, 0.1, 0.2), rpy=(0.3, 0.1, -2.0)),
              ld.placement((0.1, 0.0, -0.2), rpy=(-0.3, 0.2, 0.1)), stiffness=K @ K.T + np.eye(6),
              damping=0.3 * D @ D.T, preload=(0.1, 0.2, 0.3, -1.0, 0.5, 0.4))
    b.applied_force("wind", "link4", (0.2, 0.1, 0.0), (2.0, -1.0, 0.0), (0.0, 0.3, 0.5))
    b.applied_force("jet", "link4", (0.4, 0.2, 0.0), (0.5, 2.0, 0.1), axes="body")
    return b.build()


def resting_bar():
    """A bar with one end on the floor, from which it may lift off, and a pendulum at the other."""
    b = ld.Builder("bar", gravity=(0.0, 0.0, -9.81))
    b.body("bar", mass=2.0, com=(0.5, 0.0, 0.0), inertia=(0.1, 0.2, 0.2))
    b.body("bob", mass=1.0, com=(0.0, 0.0, -0.3), inertia=(0.01, 0.02, 0.01))
    b.joint("plane", "planar", "ground", "bar", placement=ld.placement(rpy=(np.pi / 2, 0.0, 0.0)))
    b.joint("pin", "revolute", "bar", "bob", axis=(0.0, 1.0, 0.0), placement=(1.0, 0.0, 0.0), damping=0.1)
    b.constraint("foot", "on_plane", "ground", "bar", axis=(0.0, 0.0, 1.0), unilateral=True)
    return b.build()


ROBOTS = {"springy_five_bar": springy_five_bar, "rubbery_five_bar": rubbery_five_bar,
          "hanging_chain": hanging_chain}


def moving_state(robot, seed=2):
    """A state off home that closes the loops, and forces."""
    rng = np.random.default_rng(seed)
    q = ld.integrate(robot, robot.home, 0.05 * rng.normal(size=robot.nv))
    q = ld.close(robot, q) if robot.row_names else q
    v = rng.normal(size=robot.nv)
    if robot.row_names:
        G = ld.constraint_jacobian(robot, q)
        v = v - np.linalg.pinv(G, rcond=1e-9) @ (G @ v)
    return q, v, rng.normal(size=robot.nv)


def choices(s, robot, independent):
    """The coordinates and velocities of a result, tangent bases as rows."""
    p = s.model.K.shape[1]
    if independent == "tangent":
        y = Independent(s.model.states[:p], s.model.K.T.copy(), np.full(p, -1))
        return y, y
    return by_name(robot, s.model.states[:p]), by_name(robot, [x.removeprefix("velocity:") for x in s.model.states[p:]])


def rebuilt(robot, state, s, name, h, independent, by="tau", outputs=(), closed=None):
    """All results for the robot with parameter `name` larger by h, assembled again with y and w held.

    Contacts that are `closed`, by name how, are so while it is assembled.
    """
    (q, v, forces), watched, k = state, perturbed(robot, name, h), s.index(name)
    robot, r = robot.switched(closed), watched.switched(closed)
    y, w = choices(s, robot, independent)
    z = ld.virtual_coordinates(robot, q) if (y.virtual >= 0).any() else np.zeros(0)
    E, moved = virtual_jacobian(robot, q), ld.integrate(r, q, h * s.q[:, k])
    for _ in range(8):
        R = y.matrix(virtual_jacobian(r, moved))
        held = y.rows @ ld.difference(r, moved, q)
        if z.size:
            held = np.where(y.virtual >= 0, (z - ld.virtual_coordinates(r, moved))[y.virtual], held)
        Z = np.vstack([ld.constraint_jacobian(r, moved)[r.holonomic], R])
        left = np.concatenate([-ld.closure_error(r, moved)[r.holonomic], held])
        moved = ld.integrate(r, moved, np.linalg.lstsq(Z, left, rcond=1e-12)[0])
    Z = np.vstack([ld.constraint_jacobian(r, moved), w.matrix(virtual_jacobian(r, moved))])
    speeds = np.concatenate([np.zeros(len(r.row_names)), w.matrix(E) @ v])
    u = np.linalg.lstsq(Z, speeds, rcond=1e-12)[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ld.linearize(watched, moved, u, **{by: forces}, independent=y, speeds=w, outputs=outputs)
    found = {key: getattr(model, key) for key in ("a", "lam", "A", "B", "C", "D", "f0")}
    return {"q": ld.difference(r, q, moved), "v": u} | found


def compare(robot, parameters, independent=None, speeds=None, state=None, by="tau", outputs=(), closed=None):
    state = moving_state(robot) if state is None else state
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        s = ld.sensitivities(robot, *state[:2], **{by: state[2]}, parameters=parameters, independent=independent,
                             speeds=speeds, outputs=outputs)
    for k, name in enumerate(s.parameters):
        sides = [rebuilt(robot, state, s, name, i * STEP, independent, by, outputs, closed) for i in (-2, -1, 1, 2)]
        for key in sides[0]:
            a, b, c, d = (side[key] for side in sides)
            reference = (a - 8 * b + 8 * c - d) / (12 * STEP)
            error = off(getattr(s, key)[..., k], reference)
            assert error < MOST, (name, key, error)
    return s


@pytest.mark.parametrize("name, parameters", [
    ("panda", ["mass:panda_link3", "com.x:panda_link5", "inertia.xy:panda_link4", "placement.*:panda_joint4",
               "gravity.x", "damping:panda_joint2", "rest:panda_joint2", "stiffness:panda_joint2",
               "armature:panda_joint2"]),
    ("five_bar", ["mass:*", "com.y:*", "placement.x:*", "placement.rz:*", "child_placement.x:pin", "armature:q1"]),
    ("loader", ["mass:bucket", "com.y:boom", "placement.x:boom", "placement.y:bucket", "child_placement.y:*"]),
    ("stewart", ["mass:platform", "placement.rx:gimbal2", "placement.x:leg3", "child_placement.rz:ball1"]),
    ("whipple_bicycle", ["mass:frame", "com.x:frame", "radius:*", "placement.x:steer", "placement.ry:steer",
                         "gravity"]),
    ("rolling_spheres", ["mass:*", "placement.*:alpha", "radius:*", "parent_radius:*"]),
    ("shopping_cart", ["mass:*", "placement.x:caster", "child_placement.rz:*"]),
    ("springy_five_bar", ["strut", "gas", "bar", "motor", "rub", "placement.x:q2", "stiffness:q1", "rest:q1"]),
    ("rubbery_five_bar", ["mass:link2", "placement.x:q2", "child_placement.x:pin", "parent_placement.x:rubber",
                          "child_placement.rz:rubber", "parent_placement.rx:rubber", "child_placement.y:wind",
                          "child_placement.x:jet"]),
    ("hanging_chain", ["mass:*", "placement.*:weld", "placement.x:ball", "rod", "parent_placement.*:hook"]),
])
def test_sensitivities_are_those_of_robots_built_anew(name, parameters):
    compare(ROBOTS[name]() if name in ROBOTS else ld.load(name), parameters)


@pytest.mark.parametrize("name, independent, parameters", [
    ("five_bar", "tangent", ["mass:link2", "placement.x:q3"]),
    ("hanging_chain", "tangent", ["mass:bob", "placement.ry:weld", "length:rod"]),
    ("hanging_chain", ("hook", "ball.rx", "ball.ry"), ["mass:bob", "placement.ry:weld", "parent_placement.x:hook"]),
    ("loader", ("lift_pin", "bucket"), ["mass:boom", "placement.y:bucket"]),
])
def test_any_coordinates_are_held(name, independent, parameters):
    compare(ROBOTS[name]() if name in ROBOTS else ld.load(name), parameters, independent)


@pytest.mark.parametrize("name, independent, parameters, outputs", [
    ("five_bar", None, ["mass:link2", "placement.x:q3", "child_placement.x:pin", "inertia.zz:link4", "gravity"],
     ["q3", "velocity:q4", "acceleration:q2", "pin", "velocity:pin", "acceleration:pin", "pose:link3", "twist:link3",
      "twist_rate:link2", "wrench:pin"]),
    ("hanging_chain", None, ["mass:bob", "placement.*:weld", "placement.rx:ball", "length:rod", "gravity.x",
                             "parent_placement.ry:hook", "damping:ball.ry"],
     ["pose:fin", "twist:fin", "twist_rate:fin", "twist_rate:bob", "ball", "velocity:ball", "acceleration:floating",
      "wrench:hook", "wrench:rod", "hook", "velocity:hook", "acceleration:hook"]),
    ("rolling_spheres", None, ["mass:centre", "radius:contact", "placement.x:alpha"],
     ["wrench:contact", "acceleration:alpha"]),
    ("whipple_bicycle", None, ["mass:frame", "radius:front_contact", "placement.ry:steer"],
     ["twist:frame", "twist_rate:frame", "wrench:front_contact", "wrench:rear_contact"]),
    ("springy_five_bar", None, ["stiffness:strut", "placement.x:q2", "coulomb:rub"],
     ["twist_rate:link4", "acceleration:q4", "wrench:pin"]),
    ("panda", None, ["mass:panda_link4", "com.y:panda_link5", "placement.rx:panda_joint3", "armature:panda_joint2"],
     ["pose:panda_hand", "twist:panda_hand", "twist_rate:panda_hand", "acceleration:panda_joint7"]),
])
def test_outputs_are_those_of_robots_built_anew(name, independent, parameters, outputs):
    s = compare(ROBOTS[name]() if name in ROBOTS else ld.load(name), parameters, independent, outputs=outputs)
    assert s.C.shape[:2] == s.model.C.shape and s.D.shape[:2] == s.model.D.shape and np.abs(s.C).max() > 1e-3


def test_cylinders_between_points_turn_with_them():
    b = ld.Builder.of(springy_five_bar())
    b.cylinder("jack", "ground", "link2", (0.1, 0.6, 0.0), (0.1, -0.02, 0.0), gear=2.0)
    b.actuator("drive", "q2")
    robot = b.build()
    q, v, _ = moving_state(robot)
    s = compare(robot, ["mass:link2", "placement.x:q2", "child_placement.x:pin", "strut"],
                state=(q, v, np.array([3.0, -1.0])), by="u")
    batch = ld.sensitivities(robot, np.tile(q, (2, 3, 1)), v, u=(3.0, -1.0), parameters=["strut"])
    assert np.allclose(batch.A[1, 2], s.A[..., [s.index(name) for name in batch.parameters]], rtol=1e-9, atol=1e-9)
    assert s.B.shape[1] == 2 and np.abs(s.B[2:, :, s.index("placement.x:q2")]).min() > 1e-3


def test_a_contact_that_carries_is_a_constraint():
    robot, state = resting_bar(), (np.array([0.1, 0.0, 0.0, 0.5]), np.array([0.3, 0.0, 0.2, -0.4]), np.zeros(4))
    names = ["mass:*", "placement.x:pin", "child_placement.z:foot", "gravity"]
    closed = compare(robot.switched(foot="sliding"), names, state=state)
    found = ld.sensitivities(robot, *state, parameters=names)
    assert np.array_equal(found.A, closed.A) and np.array_equal(found.lam, closed.lam) and found.lam.any()


def sled(feet=((0.0, 0.0, 0.0),), friction=0.3):
    """A sled on a slope, free to move in all ways, on feet that may slide, with a bob on it and a spring to the ground.
    """
    b = ld.Builder("sled", gravity=(1.0, 0.5, -9.81))
    b.body("sled", mass=2.0, com=(0.02, 0.03, 0.4), inertia=np.diag([0.3, 0.4, 0.5]))
    b.body("bob", mass=0.3, com=(0.1, 0.0, -0.2), inertia=np.diag([0.01, 0.02, 0.01]))
    b.joint("floating", "free", "ground", "sled")
    b.joint("swing", "revolute", "sled", "bob", axis=(0.0, 1.0, 0.0), placement=(0.1, 0.0, 0.5), damping=0.1)
    b.spring("spring", "ground", "sled", (0.5, 1.5, 0.3), (0.1, 0.1, 0.3), length=1.0, stiffness=5.0, damping=0.4)
    for k, foot in enumerate(feet):
        b.constraint(f"foot{k}", "on_plane", "ground", "sled", axis=(0.0, 0.0, 1.0), child_placement=foot,
                     unilateral=True, friction=friction)
    return b.build()


@pytest.mark.parametrize("feet, parameters", [
    ([(0.3, 0.2, 0.0), (0.3, -0.2, 0.0), (-0.3, 0.0, 0.0)],
     ["mass:*", "com.z:sled", "friction:*", "stiffness:spring", "placement.z:swing", "child_placement.x:foot1",
      "child_placement.z:foot0", "gravity"]),
    ([(0.3, 0.2, 0.0), (0.3, -0.2, 0.0), (-0.3, 0.2, 0.0), (-0.3, -0.2, 0.0)],  # one foot too many
     ["mass:*", "com.z:sled", "friction:foot1", "stiffness:spring", "child_placement.x:foot1", "gravity.x"]),
])
def test_contacts_that_slide(feet, parameters):
    robot = sled(feet)
    q, v = ld.neutral(robot), np.array([0.0, 0.0, 0.4, 0.7, -0.3, 0.0, 0.5])
    s = compare(robot, parameters, state=(q, v, np.zeros(7)), closed={f"foot{k}": "sliding" for k in range(len(feet))},
                outputs=["floating", "twist_rate:bob", "acceleration:swing", "wrench:foot1"])
    assert np.abs(s.A[..., s.index("friction:foot1")]).max() > 0.1 and s.D.any()


def test_a_bar_that_slides_on_its_end():
    b = ld.Builder.of(resting_bar())
    b.change("constraint", "foot", friction=0.4)
    state = np.array([0.1, 0.0, 0.0, 0.5]), np.array([0.3, 0.0, 0.2, -0.4]), np.zeros(4)
    compare(b.build(), ["mass:*", "friction:foot", "placement.x:pin", "com.x:bar"], state=state,
            closed={"foot": "sliding"}, outputs=["wrench:foot", "acceleration:pin"])


def test_a_batch_is_its_states():
    robot = ld.load("five_bar")
    states = [np.stack(x) for x in zip(*(moving_state(robot, seed) for seed in range(6)))]
    states = [x.reshape(2, 3, -1) for x in states]
    together = ld.sensitivities(robot, *states, parameters=["mass:*", "placement.x:q2"], independent=("q1", "q2"))
    assert together.A.shape == (2, 3, 4, 4, 5) and together.lam.shape == (2, 3, len(robot.row_names), 5)
    one = ld.sensitivities(robot, *(x[1, 2] for x in states), parameters=["mass:*", "placement.x:q2"],
                           independent=("q1", "q2"))
    for key in ("a", "lam", "A", "B", "f0", "q", "v"):
        assert np.allclose(getattr(together, key)[1, 2], getattr(one, key), rtol=1e-9, atol=1e-9)


def test_eigenvalues_move_as_those_of_robots_built_anew():
    robot = springy_five_bar()
    state = moving_state(robot)
    s = ld.sensitivities(robot, *state, parameters=["mass:link2", "stiffness:strut"])
    for k, name in enumerate(s.parameters):
        low, high = (np.sort_complex(np.linalg.eigvals(rebuilt(robot, state, s, name, h, None)["A"]))
                     for h in (-STEP, STEP))
        assert np.allclose(s.eigenvalues()[:, k], (high - low) / (2 * STEP), rtol=1e-5, atol=1e-5)


def test_redundant_rows_that_cannot_follow_are_named():
    robot = ld.load("five_bar")
    q, v, tau = moving_state(robot)
    with pytest.raises(ClosureError, match="placement.z:q2") as error:
        ld.sensitivities(robot, q, v, tau, parameters=["placement.z:q2", "mass:*"])
    assert error.value.loop == "pin" and "mass" not in str(error.value)
    with pytest.raises(InputError, match="mass:link9"):
        ld.sensitivities(robot, q, v, tau, parameters="mass:link9")
    with pytest.raises(InputError, match="not a feedback"):
        ld.sensitivities(robot, q, v, (lambda t, q, v: tau, lambda t, q, v: None))
    with pytest.raises(InputError, match="were not asked for"):
        ld.sensitivities(robot, q, v, tau, parameters="mass:*").index("gravity")


def test_springs_of_balls_and_free_joints():
    b = ld.Builder.of(hanging_chain())
    b.change("joint", "ball", stiffness=1.7)
    b.change("joint", "floating", stiffness=(5.0, 5.0, 5.0, 30.0, 30.0, 30.0))
    compare(b.build(), ["mass:*", "placement.rx:weld", "placement.x:ball", "rod"])


def test_users_laws_and_rows():
    """Parameters that displace nothing need first derivatives alone."""
    law = lambda x, w: (40.0 * x + 2.0 * w + 3.0 * x ** 3, 40.0 + 9.0 * x * x, 2.0)  # noqa: E731
    b = ld.Builder.of(springy_five_bar())
    b.spring("own", "ground", "link2", (0.3, 0.5, 0.0), length=0.1, law=law)
    names = ["mass:link2", "com.x:link3", "stiffness:strut", "gravity", "damping:q1"]
    compare(b.build(), names, outputs=["wrench:pin", "acceleration:q2"])
    with pytest.raises(InputError, match="by 'placement.x:q2' would need second derivatives of force element 'own'"):
        ld.sensitivities(b.build(), *moving_state(b.build()), parameters=["placement.x:q2", "mass:*"])


def test_users_rows():
    from test_custom_constraints import LENGTH, bias, cart, derivatives, force_derivative, jacobian, residual

    b = cart()
    b.change("joint", "x", damping=0.3)
    b.custom("rod", jacobian, bias, derivatives, force_derivative, residual)
    robot = b.build()
    q = LENGTH * np.array([0.6, -0.8])
    state = q, np.array([0.8, 0.6]) * 1.3, np.array([0.5, 0.2])
    compare(robot, ["mass:mass", "damping:x", "gravity"], state=state, outputs=["acceleration:y"])
    with pytest.raises(InputError, match="by 'placement.x:x' would need second derivatives of custom constraint 'rod'"):
        ld.sensitivities(robot, *state, parameters=["placement.x:x"])
