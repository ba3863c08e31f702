"""Models of Pinocchio made robots, and robots made models of Pinocchio: the same dynamics on both sides."""

import warnings

import numpy as np
import pytest
from mechanisms import random_inertia, random_q, random_tree

import liedyn as ld
from liedyn.files import orderings
from liedyn.files.pinocchio_joints import KINDS
from liedyn.machine.errors import InputError, ModelError, ModelWarning
from liedyn.model.kinds import JOINT_KINDS

pin = pytest.importorskip("pinocchio")
pytestmark = pytest.mark.filterwarnings("ignore::liedyn.machine.errors.ModelWarning")

ALL_KINDS = ["free", *[kind for kind in JOINT_KINDS if kind != "free"] * 2]
AXIS = np.array([0.6, 0.0, 0.8])


@pytest.fixture(autouse=True)
def same_random_poses():
    pin.seed(0)


def tree_of_all_kinds():
    builder = random_tree(np.random.default_rng(0), ALL_KINDS)
    for joint in list(builder._joints):
        if joint.kind not in ("fixed", "planar"):
            builder.change("joint", joint.name, armature=0.3, damping=0.2)
    return builder.build()


def robot_of(name):
    return tree_of_all_kinds() if name == "tree" else ld.load(name)


def assert_same_dynamics(robot, model):
    """Of the tree: Pinocchio's algorithms leave damping and springs out, and its M is an upper triangle."""
    order, data, rng = orderings.pinocchio(robot, model), model.createData(), np.random.default_rng(1)
    q = random_q(rng, robot)
    v, a, tau = rng.normal(size=(3, robot.nv))
    T, rate, theirs = order.velocity_matrix(q), order.velocity_matrix_rate(q, v), order.to_theirs(q)
    passive = ld.rnea(robot, q, v, 0 * a) - ld.rnea(stripped(robot), q, v, 0 * a)  # of springs and dampers
    found = {
        "M": (T @ ld.crba(robot, q) @ T.T, full(pin.crba(model, data, theirs))),
        "rnea": (T @ (ld.rnea(robot, q, v, a) - passive), pin.rnea(model, data, theirs, T @ v, T @ a + rate @ v)),
        "aba": (T @ ld.aba(robot, q, v, tau + passive) + rate @ v, pin.aba(model, data, theirs, T @ v, T @ tau)),
    }
    for what, (ours, expected) in found.items():
        np.testing.assert_allclose(ours, expected, rtol=0.0, atol=1e-12 * np.abs(expected).max(), err_msg=what)


def stripped(robot):
    """Without springs and dampers in joints."""
    builder = ld.Builder.of(robot)
    for joint in robot.model.joints:
        builder.change("joint", joint.name, damping=None, stiffness=None)
    return builder.build()


def full(M):
    return np.triu(M) + np.triu(M, 1).T


@pytest.mark.parametrize("name", ["panda", "solo12", "talos", "cassie_like", "tree"])
def test_there_and_back(name):
    robot = robot_of(name)
    model, constraints = ld.to_pinocchio(robot)
    assert_same_dynamics(robot, model)
    again = ld.from_pinocchio(model, constraints)
    assert_same_dynamics(again, model)
    assert set(robot.body_names) | set(robot.frame_names) <= {*again.body_names, *again.frame_names}
    if name != "tree":  # in which one joint here is several there
        assert again.velocity_names == robot.velocity_names
        np.testing.assert_allclose(again.home, robot.home, atol=1e-15)
    q = random_q(np.random.default_rng(3), robot)
    order, back = orderings.pinocchio(robot, model), orderings.pinocchio(again, model)
    for body in robot.body_names:
        np.testing.assert_allclose(ld.pose(again, back.to_ours(order.to_theirs(q)), body), ld.pose(robot, q, body),
                                   atol=1e-12)


@pytest.mark.parametrize("name", ["cassie_like", "five_bar", "stewart"])
def test_constrained_accelerations(name):
    """Of our robot, of the one that comes back, and by Pinocchio's own proximal algorithm."""
    robot = ld.load(name)
    model, constraints = ld.to_pinocchio(robot)
    again = ld.from_pinocchio(model, constraints)
    rng = np.random.default_rng(0)
    v = ld.complete_velocity(robot, robot.home, dict.fromkeys(robot.independent, 0.3))
    tau = rng.normal(size=robot.nv)
    ours = ld.forward_dynamics(robot, robot.home, v, tau, method="svd").a
    assert again.velocity_names == robot.velocity_names
    back = ld.forward_dynamics(again, robot.home, v, tau, method="svd").a
    np.testing.assert_allclose(back, ours, rtol=0.0, atol=1e-12 * np.abs(ours).max())
    order, data = orderings.pinocchio(robot, model), model.createData()
    T, rate = order.velocity_matrix(robot.home), order.velocity_matrix_rate(robot.home, v)
    passive = ld.rnea(robot, robot.home, v, 0 * v) - ld.rnea(stripped(robot), robot.home, v, 0 * v)
    models = pin.StdVec_RigidConstraintModel()
    models.extend(constraints)
    datas = pin.StdVec_RigidConstraintData()
    datas.extend([each.createData() for each in constraints])
    pin.initConstraintDynamics(model, data, models, datas)
    a = pin.constraintDynamics(model, data, order.to_theirs(robot.home), T @ v, T @ (tau - passive), models, datas,
                               pin.ProximalSettings(1e-15, 1e-9, 100))
    np.testing.assert_allclose(T @ ours + rate @ v, a, rtol=0.0, atol=1e-9 * np.abs(a).max())


def add(model, parent, joint, name, rng):
    number = model.addJoint(parent, joint, pin.SE3.Random(), name)
    model.appendBodyToJoint(number, pin.Inertia(2.0, rng.normal(size=3), random_inertia(rng)), pin.SE3.Identity())
    return number


def model_of_all_joints():
    """A chain, so that every joint moves all behind it."""
    rng, model, number = np.random.default_rng(0), pin.Model(), 0
    composite = pin.JointModelComposite(pin.JointModelSpherical(), pin.SE3.Random())
    composite.addJoint(pin.JointModelRUBX(), pin.SE3.Random())
    composite.addJoint(pin.JointModelHelicalUnaligned(AXIS, 0.2), pin.SE3.Random())
    documented = pin.JointModelComposite(pin.JointModelTranslation(), pin.SE3.Random())  # as its documentation has it
    documented.addJoint(pin.JointModelSphericalZYX(), pin.SE3.Random())
    inner = pin.JointModelComposite(pin.JointModelUniversal(np.array([0.0, 1.0, 0.0]), AXIS), pin.SE3.Random())
    inner.addJoint(pin.JointModelUniversal(np.array([1.0, 0.0, 0.0]), AXIS), pin.SE3.Random())
    documented.addJoint(inner, pin.SE3.Random())
    joints = [
        pin.JointModelFreeFlyer(), pin.JointModelRX(), pin.JointModelRY(), pin.JointModelRevoluteUnaligned(AXIS),
        pin.JointModelRUBX(), pin.JointModelRUBZ(), pin.JointModelRevoluteUnboundedUnaligned(), pin.JointModelPX(),
        pin.JointModelPrismaticUnaligned(AXIS), pin.JointModelHX(0.3), pin.JointModelHelicalUnaligned(AXIS, -0.1),
        pin.JointModelSpherical(), pin.JointModelSphericalZYX(), pin.JointModelTranslation(), pin.JointModelPlanar(),
        pin.JointModelUniversal(np.array([0.0, 1.0, 0.0]), AXIS),
        pin.JointModelUniversal(np.array([1.0, 0.0, 0.0]), AXIS), composite, documented,
    ]
    for k, joint in enumerate(joints):
        number = add(model, number, joint, f"joint{k}", rng)
    model.armature = np.full(model.nv, 0.1)
    model.armature[model.joints[15].idx_v:][:2] = 0.0  # of the slides of the planar joint
    model.damping = np.full(model.nv, 0.2)
    return model


def test_every_joint():
    model = model_of_all_joints()
    robot = ld.from_pinocchio(model)
    assert robot.nv == model.nv and "joint16.2" in robot.velocity_names and "joint15.angle1" in robot.velocity_names
    assert_same_dynamics(robot, model)
    kinds = {joint.name: joint.kind for joint in robot.model.joints}
    assert set(KINDS.values()) <= set(kinds.values()) and kinds["joint17.3"] == "helical"
    assert [kinds[f"joint18.{k}"] for k in range(1, 8)] == ["translational", *["revolute"] * 3, "universal",
                                                             *["revolute"] * 2]


@pytest.mark.parametrize("leader", ["revolute", "unbounded"])
def test_mimics_are_couplings(leader):
    """Accelerations with the coupling are those by Pinocchio's M and rnea, which know of mimics; and back again."""
    rng, model = np.random.default_rng(0), pin.Model()
    one = add(model, 0, pin.JointModelRUBY() if leader == "unbounded" else pin.JointModelRY(), "one", rng)
    two = add(model, add(model, one, pin.JointModelRX(), "middle", rng),
              pin.JointModelPrismaticUnaligned(AXIS) if leader == "revolute" else pin.JointModelRUBX(), "two", rng)
    model = pin.transformJointIntoMimic(model, one, two, -0.7, 0.4)
    robot, data = ld.from_pinocchio(model), model.createData()
    order = orderings.pinocchio(robot, model)
    theirs = pin.integrate(model, pin.neutral(model), rng.normal(size=2))
    v, tau = rng.normal(size=(2, 2))
    q, T = order.to_ours(theirs), order.velocity_matrix(order.to_ours(theirs))
    np.testing.assert_allclose(order.to_theirs(q), theirs, atol=1e-15)
    assert np.abs(ld.closure_error(robot, q)).max() < 1e-15
    v_ours = ld.complete_velocity(robot, q, {"one": v[0], "middle": v[1]})
    a = ld.forward_dynamics(robot, q, v_ours, T.T @ tau).a
    expected = np.linalg.solve(full(pin.crba(model, data, theirs)), tau - pin.rnea(model, data, theirs, v, 0 * v))
    np.testing.assert_allclose(T @ a, expected, rtol=0.0, atol=1e-12 * np.abs(expected).max())
    if leader == "revolute":
        again, _ = ld.to_pinocchio(robot)
        np.testing.assert_allclose(pin.crba(again, again.createData(), theirs), pin.crba(model, data, theirs),
                                   atol=1e-12)


@pytest.mark.parametrize(("kind", "loop"), [("PointAnchor", "spherical"), ("FrameAnchor", "fixed")])
def test_anchors_are_loops(kind, loop):
    model, place = pin.Model(), pin.SE3.Random()
    number = add(model, 0, pin.JointModelRX(), "hinge", np.random.default_rng(0))
    anchor = getattr(pin, f"{kind}ConstraintModel")(model, number, place)
    anchor.name = "anchor"
    [found] = ld.from_pinocchio(model, [anchor]).model.loops
    assert (found.name, found.kind, found.parent, found.child) == ("anchor", loop, "hinge", "ground")
    np.testing.assert_allclose(found.parent_placement, place.homogeneous, rtol=0.0, atol=1e-15)


def test_numbers_of_joints_frames_and_home():
    model = pin.Model()
    number = model.addJoint(0, pin.JointModelRX(), pin.SE3.Identity(), "hinge")
    model.appendBodyToJoint(number, pin.Inertia.Random(), pin.SE3.Identity())
    ball = model.addJoint(number, pin.JointModelFreeFlyer(), pin.SE3.Random(), "kite")
    model.appendBodyToJoint(ball, pin.Inertia.Random(), pin.SE3.Identity())
    tip, tool = pin.SE3.Random(), pin.SE3.Random()
    model.addFrame(pin.Frame("arm", number, 0, pin.SE3.Identity(), pin.FrameType.BODY))
    model.addFrame(pin.Frame("tool", number, 0, tool, pin.FrameType.OP_FRAME))
    model.addFrame(pin.Frame("tip", ball, 0, tip, pin.FrameType.BODY))
    model.lowerPositionLimit = np.array([-1.0, *[-np.inf] * 7])
    model.velocityLimit = np.arange(1.0, 8.0)
    model.damping = np.arange(7.0)
    model.referenceConfigurations["rest"] = np.array([0.2, 1.0, 2.0, 3.0, 0.0, 0.0, 0.6, 0.8])
    robot = ld.from_pinocchio(model)
    hinge, kite = robot.model.joints
    assert robot.body_names == ("arm", "kite") and robot.frame_names == ("tool", "tip")
    np.testing.assert_array_equal(hinge.limits, [[-1.0, np.inf]])
    np.testing.assert_array_equal(kite.velocity_limit, [5.0, 6.0, 7.0, 2.0, 3.0, 4.0])
    np.testing.assert_array_equal(kite.damping, [4.0, 5.0, 6.0, 1.0, 2.0, 3.0])
    np.testing.assert_allclose(robot.home, [0.2, 0.0, 0.0, 0.6, 0.8, 1.0, 2.0, 3.0])
    np.testing.assert_allclose(robot.model.frames[1].placement, tip.homogeneous)
    again, _ = ld.to_pinocchio(robot)
    for key in ("lowerPositionLimit", "velocityLimit", "damping"):
        np.testing.assert_array_equal(getattr(again, key), np.maximum(getattr(model, key), -np.finfo(float).max))
    np.testing.assert_allclose(again.referenceConfigurations["home"], model.referenceConfigurations["rest"])


def test_what_robots_do_not_have_is_named():
    model = pin.Model()
    number = model.addJoint(0, pin.JointModelRX(), pin.SE3.Identity(), "hinge")
    model.appendBodyToJoint(number, pin.Inertia.Random(), pin.SE3.Identity())
    for kind in (pin.FrameType.OP_FRAME, pin.FrameType.BODY):
        model.addFrame(pin.Frame("tip", number, 0, pin.SE3.Random(), kind))
    model.friction = np.ones(1)
    contact = pin.RigidConstraintModel(pin.ContactType.CONTACT_3D, model, number)
    contact.m_baumgarte_parameters.Kp = 3.0
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        ld.from_pinocchio(model, [contact])
    text = " ".join(str(each.message) for each in found if each.category is ModelWarning)
    assert "dry friction of joints: 'hinge'" in text and "Baumgarte's terms: 'constraint1'" in text
    assert found[-1].filename == __file__, found[-1]
    contact.desired_contact_acceleration = pin.Motion.Random()
    with pytest.raises(ModelError, match="'constraint1': has a desired acceleration"):
        ld.from_pinocchio(model, [contact])
    with pytest.raises(InputError, match="RigidConstraintModels, got 'int'"):
        ld.from_pinocchio(model, [3])
    with pytest.raises(ModelError, match="no reference configuration 'rest'"):
        ld.from_pinocchio(model, reference="rest")
    model.addJoint(number, pin.JointModelEllipsoid(1.0, 2.0, 3.0), pin.SE3.Identity(), "egg")
    with pytest.raises(ModelError, match="joint 'egg': robots have no joint of kind 'JointModelEllipsoid'"):
        ld.from_pinocchio(model)


def test_what_pinocchio_does_not_have_is_named():
    with pytest.raises(ModelError, match="constraint 'rim': Pinocchio cannot hold the kind 'disk_on_plane'"):
        builder = ld.Builder("disk")
        builder.body("disk", 1.0, inertia=(1.0, 1.0, 2.0))
        builder.joint("free", "free", "ground", "disk")
        builder.constraint("rim", "disk_on_plane", "ground", "disk", radius=1.0, child_axis=(0.0, 0.0, 1.0))
        ld.to_pinocchio(builder.build())
    with pytest.raises(ModelError, match="loop 'pin': is switched off, which Pinocchio cannot hold"):
        ld.to_pinocchio(ld.load("five_bar").switched(pin=False))
    builder = ld.Builder.of(ld.load("panda"))
    builder.change("joint", "panda_joint1", stiffness=2.0)
    with pytest.warns(ModelWarning, match="panda: left out the springs of joints: 'panda_joint1'"):
        ld.to_pinocchio(builder.build())
