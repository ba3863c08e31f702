"""Robots written to files: what is read back moves in the same way, and MuJoCo finds the same numbers."""

import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.linalg
from mechanisms import held, random_inertia, random_q, random_tree

import liedyn as ld
from liedyn.files.orderings import mujoco as mujoco_ordering
from liedyn.machine.errors import InputError, ModelError, ModelWarning
from liedyn.model.kinds import JOINT_KINDS

PLUS = Path(__file__).parents[1] / "reference" / "urdf_plus"
TREES = ["panda", "solo12", "spherical_wrist", "talos", "ur5"]
MACHINES = ["bricard", "delta", "five_bar", "four_bar", "four_bars", "loader", "parallel_five_bar", "stewart"]
CHAINS = ["revolute", "prismatic", "cylindrical", "universal", "planar", "translational", "fixed"]  # in URDF too

pytestmark = pytest.mark.filterwarnings("ignore::liedyn.machine.errors.ModelWarning")


def robot_of(name):
    if name == "chains":
        builder = random_tree(np.random.default_rng(0), CHAINS * 2)
        builder.body("kite", 2.0, (0.1, 0.2, 0.3), random_inertia(np.random.default_rng(1)))
        builder.joint("kite", "free", "body0", "kite", placement=(1.0, 2.0, 3.0), damping=0.3)
        builder.body("disk", 1.0, inertia=(1.0, 1.0, 1.0))
        builder.joint("disk", "revolute", "ground", "disk", damping=0.2, limits=(-1.0, np.inf), effort_limit=3.0)
        builder.constraint("gear", "coupling", coefficients={"disk": 2.0, "joint0": -3.0}, offset=0.5)
        return builder.build()
    return ld.load(PLUS / f"{name}.urdf") if (PLUS / f"{name}.urdf").exists() else ld.load(name)


def same_dynamics(one, two):
    """At random states of the tree and at home. The rows of couplings that became <mimic> have another scale."""
    assert one.coordinate_names == two.coordinate_names and one.velocity_names == two.velocity_names
    rng = np.random.default_rng(2)
    G, other = (ld.constraint_jacobian(robot, one.home) for robot in (one, two))
    factors = np.ones(len(G))
    for k, row in enumerate(G):
        if k >= len(G) - len(one.model.constraints):
            j = np.argmax(np.abs(row))
            factors[k] = row[j] / other[k, j]
    for q in (random_q(rng, one), one.home):
        v, a = rng.normal(size=(2, one.nv))
        for function, arguments in ((ld.crba, (q,)), (ld.rnea, (q, v, a)), (ld.constraint_jacobian, (q,)),
                                    (ld.closure_error, (q,)), (ld.constraint_bias, (q, v))):
            expected, found = function(one, *arguments), function(two, *arguments)
            if function not in (ld.crba, ld.rnea):
                found = (factors * found.T).T
            scale = np.abs(expected).max(initial=1.0)
            np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-12 * scale)


@pytest.mark.parametrize("name", [*TREES, *MACHINES, "chains", "mini_cheetah", "planar_leg_linkage"])
def test_round_trips(tmp_path, name):
    robot = robot_of(name)
    path = tmp_path / "robot"
    ld.save(robot, path.with_suffix(".toml"))
    same_dynamics(robot, ld.load(path.with_suffix(".toml")))
    ld.save(robot, path.with_suffix(".urdf"))
    same_dynamics(robot, ld.load(path.with_suffix(".urdf"), gravity=robot.gravity))


def test_accelerations_of_a_machine_that_was_written_as_urdf(tmp_path):
    robot = ld.load("loader")
    ld.save(robot, tmp_path / "loader.urdf")
    again = ld.load(tmp_path / "loader.urdf", gravity=robot.gravity)
    assert again.model.independent == robot.model.independent and again.loop_names == robot.loop_names
    q, rng = robot.home, np.random.default_rng(0)
    v = scipy.linalg.null_space(ld.constraint_jacobian(robot, q), rcond=1e-9) @ rng.normal(size=2)
    tau = rng.normal(size=robot.nv)
    a = ld.forward_dynamics(robot, q, v, tau).a
    np.testing.assert_allclose(ld.forward_dynamics(again, q, v, tau).a, a, rtol=0.0, atol=1e-12 * np.abs(a).max())


def test_limits_go_through_urdf(tmp_path):
    robot = robot_of("chains")
    ld.save(robot, tmp_path / "x.urdf")
    again = ld.load(tmp_path / "x.urdf")
    for key in ("lower", "upper", "velocity_limit", "effort_limit"):
        np.testing.assert_array_equal(getattr(again, key), getattr(robot, key))


# ---- MJCF ----

@pytest.fixture(scope="module")
def mujoco():
    return pytest.importorskip("mujoco", reason="MuJoCo is the oracle")


def in_mujoco(mujoco, tmp_path, robot):
    ld.save(robot, tmp_path / "robot.xml")
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "robot.xml"))
    model.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
    return model, mujoco.MjData(model)


def every_kind():
    rng = np.random.default_rng(3)
    builder = random_tree(rng, [kind for kind in JOINT_KINDS if kind not in ("free", "helical")])
    for kind in ("revolute", "spherical"):
        builder.body(kind, 1.0, rng.normal(size=3), random_inertia(rng))
        builder.joint(kind, kind, "body0", kind, armature=0.3, damping=0.2, stiffness=2.0,
                      rest=0.4 if kind == "revolute" else None)
    return builder.build()


@pytest.mark.parametrize("name", ["every kind", *TREES, *MACHINES, "revolute_rotor_chain"])
def test_mujoco_computes_the_same(tmp_path, mujoco, name):
    """M, bias with springs and dampers, gravity; T turns a velocity into theirs, whose acceleration is zero here."""
    robot = every_kind() if name == "every kind" else robot_of(name)
    model, data = in_mujoco(mujoco, tmp_path, robot)
    order, rng = mujoco_ordering(robot, model), np.random.default_rng(0)
    for _ in range(3):
        q, v = random_q(rng, robot), rng.normal(size=robot.nv)
        T = order.velocity_matrix(q)
        for speed in (v, 0.0 * v):
            data.qpos[:], data.qvel[:] = order.to_theirs(q), T @ speed
            mujoco.mj_forward(model, data)
            M = np.zeros((model.nv, model.nv))
            mujoco.mj_fullM(model, data, M)
            expected = T @ ld.crba(robot, q) @ T.T
            np.testing.assert_allclose(M, expected, rtol=0.0, atol=1e-10 * np.abs(expected).max())
            a = -T.T @ order.velocity_matrix_rate(q, speed) @ speed
            expected = T @ ld.rnea(robot, q, speed, a)
            scale = max(np.abs(expected).max(), 1.0)
            np.testing.assert_allclose(data.qfrc_bias - data.qfrc_passive, expected, rtol=0.0, atol=1e-10 * scale)


@pytest.mark.parametrize("name", ["five_bar", "four_bar", "loader", "parallel_five_bar", "stewart",
                                  "revolute_rotor_chain"])
def test_loops_in_mujoco(tmp_path, mujoco, name):
    """At home all is closed, and the rows leave the same velocities."""
    robot = robot_of(name)
    model, data = in_mujoco(mujoco, tmp_path, robot)
    order = mujoco_ordering(robot, model)
    data.qpos[:] = order.to_theirs(robot.home)
    if model.nkey:
        np.testing.assert_allclose(model.key("home").qpos, data.qpos, atol=1e-15)
    mujoco.mj_forward(model, data)
    equations = data.efc_type == mujoco.mjtConstraint.mjCNSTR_EQUALITY
    J, N = data.efc_J.reshape(data.nefc, model.nv)[equations], scipy.linalg.null_space(
        ld.constraint_jacobian(robot, robot.home) @ order.velocity_matrix(robot.home).T, rcond=1e-9)
    np.testing.assert_allclose(data.efc_pos[equations], 0.0, atol=1e-10)
    np.testing.assert_allclose(J @ N, 0.0, atol=1e-9)
    assert np.linalg.matrix_rank(J, tol=1e-9) == model.nv - N.shape[1]


def test_a_coupling_keeps_its_offset_in_mujoco(tmp_path, mujoco):
    builder = random_tree(np.random.default_rng(0), ["revolute", "prismatic", "revolute"])
    weights = {"joint0": 2.0, "joint1": -3.0, "joint2": 0.5}
    builder.constraint("sum", "coupling", coefficients=weights, offset=0.7)
    robot = builder.build()
    model, data = in_mujoco(mujoco, tmp_path, robot)
    q = np.array([0.3, -0.2, 0.9])
    data.qpos[:] = mujoco_ordering(robot, model).to_theirs(q)
    mujoco.mj_forward(model, data)
    assert data.efc_pos[0] == pytest.approx(ld.closure_error(robot, q)[0], abs=1e-12)


def test_a_free_joint_elsewhere_is_slides_and_a_ball(tmp_path, mujoco):
    rng = np.random.default_rng(1)
    builder = random_tree(rng, ["revolute"])
    builder.body("kite", 1.0, (0.1, 0.2, 0.3), random_inertia(rng))
    builder.joint("string", "free", "body0", "kite", placement=ld.placement((1.0, 2.0, 3.0), (0.3, 0.2, 0.1)))
    robot = builder.build()
    model, data = in_mujoco(mujoco, tmp_path, robot)
    q = random_q(rng, robot)
    ours = dict(zip(robot.coordinate_names, q))
    for joint, names in (("joint0", [""]), ("string.x", [""]), ("string.y", [""]), ("string.z", [""]),
                         ("string", [".qw", ".qx", ".qy", ".qz"])):
        data.joint(joint).qpos[:] = [ours[joint + name] for name in names]
    mujoco.mj_forward(model, data)
    pose = ld.pose(robot, q, "kite")
    np.testing.assert_allclose(data.body("kite").xpos, pose[:3, 3], atol=1e-12)
    np.testing.assert_allclose(data.body("kite").xmat.reshape(3, 3), pose[:3, :3], atol=1e-12)


def test_motors_and_limits_in_mujoco(tmp_path, mujoco):
    builder = random_tree(np.random.default_rng(1), ["spherical", "revolute"])
    builder.body("disk", 1.0, inertia=(1.0, 1.0, 1.0))
    builder.joint("disk", "revolute", "ground", "disk", limits=(-1.0, np.inf), effort_limit=9.0)
    builder.actuator("motor", "disk", gear=4.0)
    model, data = in_mujoco(mujoco, tmp_path, builder.build())
    data.ctrl[:] = 2.0
    mujoco.mj_forward(model, data)
    assert data.joint("disk").qfrc_actuator[0] == pytest.approx(8.0)
    k = model.joint("disk").id
    assert (*model.jnt_range[k], *model.jnt_actfrcrange[k]) == (-1.0, 1e10, -9.0, 9.0)


# ---- what a file cannot hold ----

def lone(kind, **joint):
    builder = ld.Builder("lone", home=joint.pop("home", None), gravity=joint.pop("gravity", (0.0, 0.0, -9.81)))
    builder.body("body", 1.0, inertia=(1.0, 1.0, 1.0))
    builder.joint("move", kind, "ground", "body", **joint)
    return builder


def with_loop(kind="fixed", **more):
    builder = lone("free")
    builder.loop("held", kind, "ground", "body", **more)
    return builder


def with_coupling(coefficients, **more):
    builder = random_tree(np.random.default_rng(0), ["revolute", "revolute", "revolute"])
    builder.constraint("held", "coupling", coefficients=coefficients, **more)
    return builder


def standing(kind, **more):
    """A ball of 1 kg above a surface of the ground."""
    builder = lone("free")
    builder.constraint("floor", kind, "ground", "body", unilateral=True, **more)
    return builder


def with_inertia(moments):
    builder = ld.Builder("lone")
    builder.body("body", 1.0, inertia=moments)
    builder.joint("move", "free", "ground", "body")
    return builder


def with_motor():
    builder = lone("free")
    builder.actuator("motor", "move.x")
    return builder


@pytest.mark.parametrize(("suffix", "builder", "words"), [
    (".urdf", lone("spherical"), ["'move'", "spherical"]), (".urdf", lone("helical", pitch=0.1), ["'move'", "helical"]),
    (".xml", lone("helical", pitch=0.1), ["'move'", "helical"]),
    (".xml", lone("free", damping=[1, 1, 2, 0, 0, 0]), ["'move'", "damping", "2.0"]),
    (".xml", lone("spherical", stiffness=1.0, rest=[1, 0, 0, 0]), ["'move'", "rest"]),
    (".urdf", with_loop(active=False), ["'held'", "switched off"]),
    (".urdf", with_loop(target=lambda t: (np.zeros(3),) * 3), ["'held'", "function"]),
    (".xml", with_loop("prismatic"), ["'held'", "'prismatic'"]),
    (".urdf", with_coupling({"joint0": 1.0}), ["'held'", "'coupling'"]),
    (".urdf", with_coupling({"joint0": 1.0, "joint1": 1.0, "joint2": 1.0}), ["'held'", "'coupling'"]),
    (".xml", held("distance", length=1.0), ["'held'", "'distance'"]),
    (".urdf", with_coupling({"joint0": 1.0, "joint1": 1.0}, unilateral=True), ["'held'", "one-sided"]),
    (".xml", standing("on_plane", extent=(1.0, 2.0)), ["'floor'", "ends"]),
    (".xml", standing("on_plane", active="sticking"), ["'floor'", "closed"]),
    (".xml", standing("sphere_on_plane", radius=0.1, active=False), ["'floor'", "switched off"]),
    (".xml", standing("sphere_on_sphere", radius=0.1, parent_radius=0.4, inside=True), ["'floor'", "outside"]),
    (".xml", standing("on_cylinder", radius=0.1), ["'floor'", "one-sided"]),
    (".xml", with_inertia((1.0, 2.0, 3.002)), ["'body'", "inertia", "3.002"]), (".xml", ld.Builder("a\x01b"), ["XML"]),
])
def test_refused(tmp_path, suffix, builder, words):
    path = tmp_path / f"robot{suffix}"
    with pytest.raises(ModelError) as caught:
        ld.save(builder if isinstance(builder, ld.Robot) else builder.build(), path)
    assert not path.exists()
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(("suffix", "builder", "words"), [
    (".urdf", lone("revolute", armature=1.0), "armatures of joints: 'move'"),
    (".urdf", lone("revolute", stiffness=1.0), "springs of joints: 'move'"),
    (".urdf", lone("revolute", home={"move": 1.0}), "the home configuration: 'move'"),
    (".urdf", lone("revolute", gravity=(0, 0, 0)), "gravity"), (".urdf", with_motor(), "actuators: 'motor'"),
    (".urdf", lone("free", effort_limit=1.0), "limits of free joints: 'move'"),
    (".urdf", lone("free", damping=[1, 1, 2, 0, 0, 0]), "damping that differs from axis to axis: 'move'"),
    (".xml", with_motor(), "actuators of balls, free joints and cut joints: 'motor'"),
    (".xml", lone("revolute", velocity_limit=1.0), "limits of velocities: 'move'"),
    (".xml", lone("spherical", effort_limit=1.0), "limits of balls and free joints: 'move'"),
])
def test_left_out(tmp_path, suffix, builder, words):
    with pytest.warns(ModelWarning, match=f"robot{suffix}: left out {words}") as caught:
        ld.save(builder.build(), tmp_path / f"robot{suffix}")
    assert len(caught) == 1 and caught[0].filename == __file__


@pytest.mark.parametrize("suffix", [".toml", ".urdf", ".xml"])
def test_nothing_is_left_out_of_what_a_file_can_hold(tmp_path, suffix):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ld.save(lone("revolute", damping=0.1, limits=(-1, 1), effort_limit=2.0).build(), tmp_path / f"x{suffix}")


@pytest.mark.parametrize("path", ["robot", "robot.docx", Path("robot.json")])
def test_unknown_kinds_of_files(path):
    with pytest.raises(InputError, match="no kind of file that is written, .*'.toml', '.urdf', '.xml'"):
        ld.save(lone("revolute").build(), path)


@pytest.mark.parametrize("robot", [None, "panda"])
def test_what_is_no_robot_is_not_written(tmp_path, robot):
    with pytest.raises(InputError):
        ld.save(robot, tmp_path / "x.urdf")


def test_bodies_nested_too_deeply(tmp_path):
    builder, parent = ld.Builder("chain"), "ground"
    for k in range(1200):
        builder.body(f"b{k}", 1.0, inertia=(1.0, 1.0, 1.0))
        builder.joint(f"j{k}", "revolute", parent, f"b{k}")
        parent = f"b{k}"
    robot = builder.build()
    with pytest.raises(ModelError, match="nested too deeply"):
        ld.save(robot, tmp_path / "chain.xml")
    ld.save(robot, tmp_path / "chain.urdf")
    assert ld.load(tmp_path / "chain.urdf").nv == 1200


@pytest.mark.parametrize(("kind", "options", "height"), [
    ("on_plane", {}, 0.0), ("sphere_on_plane", {"radius": 0.1}, 0.1),
    ("on_plane", {"axis": (0.0, 0.0, -1.0), "unilateral": "below"}, 0.0),
    ("sphere_on_sphere", {"radius": 0.1, "parent_radius": 0.3}, 0.4)])
def test_contacts_are_pairs_of_geoms(tmp_path, kind, options, height):
    """MuJoCo lets the ball lie where it touches here; friction slows it as Coulomb does."""
    mujoco = pytest.importorskip("mujoco")
    builder = ld.Builder("ball")
    builder.body("body", 1.0, inertia=(0.004, 0.004, 0.004))
    builder.joint("move", "translational", "ground", "body")
    builder.constraint("floor", kind, "ground", "body", **{"unilateral": True, "friction": 0.4} | options)
    ld.save(builder.build(), tmp_path / "ball.xml")
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "ball.xml"))
    data = mujoco.MjData(model)
    data.qpos[2] = height
    mujoco.mj_step(model, data, 1000)
    assert data.qpos[2] == pytest.approx(height, abs=1e-3) and data.ncon == 1
    assert data.contact[0].dim == 3 and data.contact[0].friction[:2].tolist() == [0.4, 0.4]
    if kind != "sphere_on_sphere":  # from which it would fall
        data.qvel[0] = 1.0
        mujoco.mj_step(model, data, 100)
        assert (1.0 - data.qvel[0]) / (100 * model.opt.timestep) == pytest.approx(0.4 * 9.81, rel=0.05)


def test_what_contacts_of_mujoco_lack_is_told(tmp_path):
    robot = standing("on_plane", friction=np.inf, restitution=0.5).build()
    with pytest.warns(ModelWarning) as told:
        ld.save(robot, tmp_path / "ball.xml")
    said = " ".join(str(each.message) for each in told)
    assert "restitution of contacts: 'floor'" in said and "never slip, whose friction is 1000: 'floor'" in said
