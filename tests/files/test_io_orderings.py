"""Coordinates in the orderings of Pinocchio and MuJoCo: their mass matrix at their q is ours, transformed."""

import numpy as np
import pytest
from mechanisms import Unpacked, random_inertia, random_q, random_tree
from scipy.spatial.transform import Rotation

from liedyn.files import orderings
from liedyn.machine.errors import InputError
from liedyn.model import Builder

INERTIA = np.array([[1.2, 0.1, -0.2], [0.1, 1.5, 0.3], [-0.2, 0.3, 1.9]])


@pytest.fixture
def pin():
    return pytest.importorskip("pinocchio")


def robot_of(*kinds):
    """Each kind once, the first on the ground, the others on the first."""
    builder = Builder("robot")
    for kind in kinds:
        builder.body(kind, 2.0, (0.1, 0.2, 0.3), INERTIA)
        root = kind == kinds[0]
        builder.joint(kind, kind, "ground" if root else kinds[0], kind, placement=None if root else (1.0, 0.5, 0.0))
    return builder.build()


def pinocchio_model(pin, robot, continuous=()):
    """The same robot, its branches declared in reverse, so that joints are numbered otherwise."""
    joints = {
        "free": pin.JointModelFreeFlyer, "planar": pin.JointModelPlanar, "spherical": pin.JointModelSpherical,
        "revolute": pin.JointModelRZ, "prismatic": pin.JointModelPZ, "translational": pin.JointModelTranslation,
    }
    model = pin.Model()
    (root, trunk), *others = zip(robot.model.joints, robot.model.bodies)
    for joint, body in [(root, trunk), *reversed(others)]:
        kind = pin.JointModelRUBZ if joint.name in continuous else joints[joint.kind]
        parent = 0 if joint is root else model.getJointId(root.name)
        number = model.addJoint(parent, kind(), pin.SE3(joint.placement), joint.name)
        model.appendBodyToJoint(number, pin.Inertia(body.mass, body.com, body.inertia), pin.SE3.Identity())
    return model


@pytest.mark.parametrize("root", ["free", "planar"])
def test_pinocchio_mass_matrix(pin, root):
    robot = robot_of(root, "revolute", "spherical", "prismatic", "translational")
    model = pinocchio_model(pin, robot, continuous=["revolute"])
    order = orderings.pinocchio(robot, model)
    assert (order.nq, order.nv) == (model.nq, model.nv)
    for seed in range(5):
        q = random_q(np.random.default_rng(seed), robot)
        T = order.velocity_matrix(q)
        M = np.triu(pin.crba(model, model.createData(), order.to_theirs(q)))
        np.testing.assert_allclose(np.triu(T @ Unpacked(robot).mass_matrix(q) @ T.T), M, atol=1e-12)
        np.testing.assert_allclose(order.to_ours(order.to_theirs(q)), q, atol=1e-15)


def test_mujoco_mass_matrix():
    mujoco = pytest.importorskip("mujoco")
    builder = Builder("robot")
    rng = np.random.default_rng(0)
    for name in ("arm", "hand", "trunk"):
        builder.body(name, 2.0, rng.normal(size=3), random_inertia(rng))
    builder.joint("arm", "universal", "trunk", "arm", placement=(0.3, 0.2, 0.1))
    builder.joint("hand", "spherical", "arm", "hand", placement=(0.3, 0.2, 0.1))
    builder.joint("trunk", "free", "ground", "trunk")
    robot = builder.build()
    arm, hand, trunk = map(_inertial, robot.model.bodies)
    model = mujoco.MjModel.from_xml_string(f"""<mujoco><worldbody>
      <body name="trunk"><freejoint name="trunk"/>{trunk}
        <body name="arm" pos="0.3 0.2 0.1">{arm}
          <joint name="arm.angle1" type="hinge" axis="1 0 0"/><joint name="arm.angle2" type="hinge" axis="0 1 0"/>
          <body name="hand" pos="0.3 0.2 0.1"><joint name="hand" type="ball"/>{hand}</body>
        </body>
      </body></worldbody></mujoco>""")
    order = orderings.mujoco(robot, model)
    data = mujoco.MjData(model)
    for _ in range(5):
        q = random_q(rng, robot)
        data.qpos[:] = order.to_theirs(q)
        mujoco.mj_forward(model, data)
        M = np.zeros((model.nv, model.nv))
        for column, unit in zip(M, np.eye(model.nv)):
            mujoco.mj_mulM(model, data, column, unit)
        T = order.velocity_matrix(q)
        np.testing.assert_allclose(T @ Unpacked(robot).mass_matrix(q) @ T.T, M, atol=1e-12)
        np.testing.assert_allclose(order.to_ours(order.to_theirs(q)), q, atol=1e-15)


def test_joints_without_names_in_mujoco():
    """They are called as `load_mjcf` calls them."""
    mujoco = pytest.importorskip("mujoco")
    model = mujoco.MjModel.from_xml_string("""<mujoco><worldbody><body name="trunk"><freejoint/><geom size="1"/>
      <body name="arm"><joint/><joint type="slide"/><geom size="1"/><body><joint/><geom size="1"/></body></body></body>
      </worldbody></mujoco>""")
    builder = Builder("robot")
    for name in ("trunk", "arm", "part", "body3"):
        builder.body(name, 1.0, inertia=(1.0, 1.0, 1.0))
    builder.joint("arm.1", "revolute", "trunk", "part")
    builder.joint("arm.2", "prismatic", "part", "arm")
    builder.joint("trunk", "free", "ground", "trunk")
    builder.joint("body3", "revolute", "arm", "body3")
    q = random_q(np.random.default_rng(0), robot := builder.build())
    assert orderings.mujoco(robot, model).to_theirs(q)[7:].tolist() == q[7:].tolist()


def _inertial(body):
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = body.inertia
    com, moments = (" ".join(map(repr, map(float, numbers))) for numbers in (body.com, (xx, yy, zz, xy, xz, yz)))
    return f'<inertial mass="{body.mass}" pos="{com}" fullinertia="{moments}"/>'


def moved(robot, q, v, time):
    """The configuration after a short time at constant v: body twists for balls and free joints, else plain sums."""
    after, k, j = q.copy(), 0, 0
    while k < robot.nq:
        if robot.coordinate_names[k].endswith(".qx"):
            R = Rotation.from_quat(q[k : k + 4])
            after[k : k + 4] = (R * Rotation.from_rotvec(v[j : j + 3] * time)).as_quat()
            if robot.coordinate_names[k + 4 : k + 5] == (robot.coordinate_names[k][:-3] + ".x",):
                after[k + 4 : k + 7] += R.apply(v[j + 3 : j + 6]) * time
                k, j = k + 3, j + 3
            k, j = k + 4, j + 3
        else:
            after[k] += v[j] * time
            k, j = k + 1, j + 1
    return after


class MujocoJoint:
    """What the converter reads of a MuJoCo joint."""

    def __init__(self, name, kind, q, v):
        self.name, self.type, self.qposadr, self.dofadr = name, [kind], [q], [v]


class MujocoModel:
    """A ball, a slide and a free body, as MuJoCo would number them: enough to test all but MuJoCo itself without it."""

    njnt, nv = 3, 10
    joints = [MujocoJoint("spherical", 1, 0, 0), MujocoJoint("prismatic", 2, 4, 3), MujocoJoint("free", 0, 5, 4)]

    def joint(self, key):
        return self.joints[key] if isinstance(key, int) else {joint.name: joint for joint in self.joints}[key]


def orders(pin):
    """Every ordering that we know, with a robot for it."""
    robot = robot_of("free", "planar", "spherical", "revolute")
    robot_of_mujoco = robot_of("free", "spherical", "prismatic")
    model = pin.Model()
    for joint in (pin.JointModelRUBZ(), pin.JointModelSpherical(), pin.JointModelPlanar(), pin.JointModelFreeFlyer()):
        kinds = {"RUBZ": "revolute", "Spherical": "spherical", "Planar": "planar", "FreeFlyer": "free"}
        model.addJoint(0, joint, pin.SE3.Identity(), kinds[joint.shortname().removeprefix("JointModel")])
    return [
        (robot, orderings.pinocchio(robot, model)),
        (robot_of_mujoco, orderings.mujoco(robot_of_mujoco, MujocoModel())),
    ]


def test_velocity_matrices_are_orthogonal_and_their_rates_are_rates(pin):
    for robot, order in orders(pin):
        rng = np.random.default_rng(0)
        q, v, step = random_q(rng, robot), rng.normal(size=robot.nv), 1e-5
        T = order.velocity_matrix(q)
        np.testing.assert_allclose(T @ T.T, np.eye(robot.nv), atol=1e-14)
        after, before = (order.velocity_matrix(moved(robot, q, v, time)) for time in (step, -step))
        np.testing.assert_allclose(order.velocity_matrix_rate(q, v), (after - before) / (2 * step), atol=1e-9)


def test_pinocchio_integrates_as_we_do(pin):
    """T is the tangent of the map of configurations: small motions of ours are their small motions."""
    (robot, order), _ = orders(pin)
    model = pinocchio_model(pin, robot, continuous=["revolute"])
    order = orderings.pinocchio(robot, model)
    rng = np.random.default_rng(1)
    q, v, step = random_q(rng, robot), rng.normal(size=robot.nv), 1e-5
    after, before = (order.to_theirs(moved(robot, q, v, time)) for time in (step, -step))
    np.testing.assert_allclose(
        pin.difference(model, before, after) / (2 * step), order.velocity_matrix(q) @ v, atol=1e-9
    )


def test_batches(pin):
    """Any leading axes; each entry as if it were alone."""
    for robot, order in orders(pin):
        rng = np.random.default_rng(0)
        q = np.array([[random_q(rng, robot) for _ in range(3)] for _ in range(2)])
        v = rng.normal(size=(2, 3, robot.nv))
        theirs, T, rate = order.to_theirs(q), order.velocity_matrix(q), order.velocity_matrix_rate(q, v)
        for i in np.ndindex(2, 3):
            assert np.array_equal(theirs[i], order.to_theirs(q[i]))
            assert np.array_equal(T[i], order.velocity_matrix(q[i]))
            np.testing.assert_allclose(rate[i], order.velocity_matrix_rate(q[i], v[i]), atol=1e-15)
        np.testing.assert_allclose(order.to_ours(theirs), q, atol=1e-14)


def test_mismatches_are_named(pin):
    robot = robot_of("planar", "revolute")
    model = pinocchio_model(pin, robot)
    with pytest.raises(InputError, match="joint 'planar': .* no joint 'plane', did you mean 'planar'"):
        orderings.pinocchio(robot, model, names={"planar": "plane"})
    with pytest.raises(InputError, match="joint 'planar': planar here, JointModelRZ there"):
        orderings.pinocchio(robot, model, names={"planar": "revolute"})
    with pytest.raises(InputError, match="4 degrees of freedom, robot 'tree' has 0"):
        orderings.pinocchio(random_tree(np.random.default_rng(0), []).build(), model)
    with pytest.raises(InputError, match=r"q must have shape \(..., 4\), got \(3,\)"):
        orderings.pinocchio(robot, model).to_theirs(np.zeros(3))
    with pytest.raises(InputError, match="joint 'free': another kind"):
        orderings.mujoco(robot_of("free", "spherical", "prismatic"), MujocoModel(), names={"free": "prismatic"})
    with pytest.raises(InputError, match="joint 'free': .* placement"):
        orderings.mujoco(robot_of("spherical", "free", "prismatic"), MujocoModel())
