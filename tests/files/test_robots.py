"""The bundled robots: they load, homes are closed, mobility is as their files say, trees agree with Pinocchio.

The numbers of the papers' robots are tested in test_papers.py.
"""

from pathlib import Path

import numpy as np
import pytest

import liedyn as ld
from liedyn.files import load_toml, save_toml
from liedyn.mechanics.constraints import close, closure_error, constraint_jacobian as constraint_rows, virtual_jacobian
from liedyn.mechanics.constraints.independent import by_name
from liedyn.mechanics.tree.crba import crba
from liedyn.mechanics.tree.forward_kinematics import forward_kinematics, pose
from liedyn.mechanics.tree.rnea import rnea
from liedyn.model import Builder
from liedyn.model.frames import joint_basis
from liedyn.model.kinds import JOINT_KINDS, LOOP_KINDS

FOLDER = Path(__file__).parents[2] / "robots"
FILES = {path.stem: path for path in sorted(FOLDER.glob("*.toml"))}
TREES = {"governor": 4, "panda": 7, "solo12": 18, "spherical_wrist": 3, "talos": 38, "ur5": 6}  # velocity coordinates
MACHINES = {  # velocity coordinates, rows, rank at home
    "bricard": (5, 5, 4),
    "cassie_like": (19, 12, 12),
    "clavel_delta": (21, 18, 18),
    "delta": (14, 18, 9),
    "diagonal_spring": (3, 2, 2),
    "five_bar": (4, 5, 2),
    "four_bar": (3, 5, 2),
    "four_bars": (5, 10, 4),
    "loader": (8, 15, 6),
    "parallel_five_bar": (6, 6, 3),
    "parallel_four_bar": (4, 5, 2),
    "squeezer": (7, 6, 6),
    "stewart": (24, 18, 18),
}
CONSTRAINED = {  # the same for robots with constraints other than cut joints, some of them switched off
    "arm_on_circle": (4, 3, 3),
    "arm_on_slider": (3, 4, 1),
    "cartesian_pendulum": (2, 1, 1),
    "particle_on_circle": (2, 1, 1),
    "rolling_disk": (3, 4, 2),
    "rolling_spheres": (6, 4, 3),
    "scara": (4, 4, 0),
    "shopping_cart": (4, 3, 2),
    "slider_crank": (2, 1, 1),
    "whipple_bicycle": (9, 6, 6),
}
TWIST = (".wx", ".wy", ".wz", ".vx", ".vy", ".vz")


@pytest.fixture(scope="module")
def robots():
    return {name: load_toml(path) for name, path in FILES.items()}


@pytest.fixture
def oracle():
    """From a robot to its Pinocchio model."""
    pytest.importorskip("pinocchio")
    from pinocchio_models import pin_model

    return pin_model


def cut_frames(loop, poses):
    """World poses of the two cut frames, turned so that the axis is z."""
    folding = np.eye(4)
    folding[:3, :3] = joint_basis(loop.axes)
    return (
        poses[loop.parent] @ loop.parent_placement @ folding,
        poses[loop.child] @ loop.child_placement @ folding,
    )


def poses_of(robot, q):
    return {"ground": np.eye(4), **dict(zip(robot.body_names, forward_kinematics(robot, q)))}


def gap(loop, poses):
    """How far the cut joint is from closed [m, rad], for the kinds that occur in the bundled robots."""
    A, B = cut_frames(loop, poses)
    T = np.linalg.inv(A) @ B
    turned = {"fixed": T[:3, :3] - np.eye(3), "revolute": T[:3, 2] - [0.0, 0.0, 1.0], "spherical": 0.0, "inline": 0.0}
    away = T[:2, 3] if loop.kind == "inline" else T[:3, 3]
    return max(np.abs(away).max(), np.abs(turned[loop.kind]).max())


def constraint_jacobian(robot, oracle, q):
    """Rows of all cut joints in frame A, from Pinocchio's body Jacobians; exact where the loops are closed."""
    poses, rows = poses_of(robot, q), []

    def world_jacobian(body, point):
        if body == "ground":
            return np.zeros((6, robot.nv))
        R, J = poses[body][:3, :3], oracle.body_jacobian(q, body)
        omega = R @ J[:3]
        return np.vstack([omega, R @ J[3:] + np.cross(omega, (point - poses[body][:3, 3])[:, np.newaxis], axis=0)])

    for loop in robot.model.loops:
        A, B = cut_frames(loop, poses)
        relative = world_jacobian(loop.child, B[:3, 3]) - world_jacobian(loop.parent, B[:3, 3])
        in_A = np.vstack([A[:3, :3].T @ relative[:3], A[:3, :3].T @ relative[3:]])
        rows.append(in_A[[TWIST.index(row) for row in LOOP_KINDS[loop.kind].rows]])
    return np.vstack(rows)


@pytest.mark.parametrize(("degrees", "position"), [
    ((0.0, 0.0, 0.0), (0.0, 0.0, -1.064)), ((10.0, 20.0, 30.0), (0.108, -0.180, -1.243)),
    ((-20.5, -20.5, -20.5), (0.0, 0.0, -0.9)), ((47.5, -11.6, 21.4), (0.3, 0.5, -1.1))])
def test_positions_of_a_clavel_delta(robots, degrees, position):
    """Its triangle of spheres about the elbows; the last two are Williams' examples of inverse kinematics."""
    robot = robots["clavel_delta"]
    motors = {f"motor{k + 1}": np.radians(x) for k, x in enumerate(degrees)}
    T = pose(robot, close(robot, robot.home, **motors), "platform")
    assert np.abs(T[:3, :3] - np.eye(3)).max() < 1e-12  # parallelograms keep it level
    assert np.abs(T[:3, 3] - position).max() < 7e-4
    for k, angle in enumerate(np.radians([-90.0, 30.0, 150.0])):
        out = 0.164 - 0.044 + 0.524 * np.cos(np.radians(degrees[k]))
        elbow = [out * np.cos(angle), out * np.sin(angle), -0.524 * np.sin(np.radians(degrees[k]))]
        assert abs(np.linalg.norm(T[:3, 3] - elbow) - 1.244) < 1e-12


def test_feet_of_solo12_and_strokes_of_the_loader(robots):
    b = Builder.of(robots["solo12"])
    b.ground_contacts(friction=0.6, height=-0.016)
    solo = b.build()
    assert solo.constraint_names == ("FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT")
    assert np.abs(closure_error(solo, solo.home)).max() < 1e-4  # standing: its feet touch
    loader = robots["loader"]
    k = loader.coordinate_index("lift_rod")
    assert (loader.lower[k], loader.upper[k]) == (-0.32, 0.70)
    low = pose(loader, close(loader, loader.home, boom=-0.6), "bucket")
    found = ld.inverse_kinematics(loader, ld.PoseTarget("bucket", low), unreached="ignore")
    assert not found.reached and found.q[k] > -0.32 - 1e-9  # too low for the cylinder


def test_every_file_is_covered():
    assert set(FILES) == set(TREES) | set(MACHINES) | set(CONSTRAINED)


@pytest.mark.parametrize("name", FILES)
def test_description(robots, name):
    robot = robots[name]
    assert robot.name == name
    assert robot.description and robot.source
    assert robot.singular_tree == ()
    assert np.all(robot.lower <= robot.home) and np.all(robot.home <= robot.upper)
    for output in robot.outputs:
        known = robot.coordinate_names + robot.virtual_names
        assert output in known or output.removeprefix("pose:") in robot.body_names
    assert bool(robot.independent) == (name not in TREES)


@pytest.mark.parametrize("name", FILES)
def test_saved_robots_load_again(robots, name, tmp_path):
    robot = robots[name]
    save_toml(robot, tmp_path / "robot.toml")
    again = load_toml(tmp_path / "robot.toml")
    np.testing.assert_array_equal(again.packed.ints, robot.packed.ints)
    np.testing.assert_allclose(again.packed.floats, robot.packed.floats, rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(again.home, robot.home, rtol=1e-15, atol=1e-15)
    assert again.coordinate_names == robot.coordinate_names and again.independent == robot.independent


@pytest.mark.parametrize("name", MACHINES)
def test_homes_are_closed(robots, name):
    robot = robots[name]
    poses = poses_of(robot, robot.home)
    for loop in robot.model.loops:
        assert gap(loop, poses) < 1e-14, loop.name


@pytest.mark.parametrize("name", MACHINES)
def test_mobility(robots, oracle, name):
    """The rank at home leaves no doubt, and the independent coordinates parametrise what it leaves free."""
    robot = robots[name]
    nv, n_rows, rank = MACHINES[name]
    G = constraint_jacobian(robot, oracle(robot), robot.home)
    assert (robot.nv, *G.shape) == (nv, n_rows, nv)
    assert len(robot.row_names) == n_rows
    _, values, Vt = np.linalg.svd(G)
    assert values[rank - 1] > 5e-4 * values[0]
    assert np.all(values[rank:] < 1e-14 * values[0])
    assert len(robot.independent) == nv - rank
    free = Vt[rank:] @ by_name(robot, robot.independent).matrix(virtual_jacobian(robot, robot.home)).T
    assert np.linalg.cond(free) < 10.0


@pytest.mark.parametrize("name", CONSTRAINED)
def test_constrained_robots(robots, name):
    """Home satisfies all constraints, also those that are off; coordinates fit those that are on."""
    robot = robots[name]
    everything = robot.switched(dict.fromkeys(robot.constraint_names, True))
    assert np.abs(closure_error(everything, robot.home)).max() < 1e-15
    nv, n_rows, rank = CONSTRAINED[name]
    G = constraint_rows(robot, robot.home)
    assert G.shape == (n_rows, nv)
    off = [owner not in robot.active for owner in robot.row_owners]
    assert not G[off].any() and np.linalg.norm(constraint_rows(everything, robot.home)[off], axis=1).all()
    _, values, Vt = np.linalg.svd(G)
    assert np.all(values[:rank] > 0.1) and np.all(values[rank:] < 1e-14)
    assert len(robot.independent) == nv - rank
    free = Vt[rank:] @ by_name(robot, robot.independent).matrix(virtual_jacobian(robot, robot.home)).T
    # a few percent of the spheres' turning is seen in their centre: rows of size r = 0.05
    assert np.linalg.cond(free) < 100.0


@pytest.mark.parametrize("name", MACHINES)
def test_mobility_does_not_depend_on_the_place(robots, oracle, name):
    """Redundant rows stay redundant away from home."""
    robot, rank = robots[name], MACHINES[name][2]
    tree = oracle(robot)
    rng, q = np.random.default_rng(8), robot.home
    for _ in range(3):
        _, _, Vt = np.linalg.svd(constraint_jacobian(robot, tree, q))
        q = tree.integrate(q, 0.02 * Vt[rank:].T @ rng.normal(size=robot.nv - rank))
        for _ in range(20):  # back to closed loops
            G = constraint_jacobian(robot, tree, q)
            q = tree.integrate(q, -np.linalg.pinv(G, rcond=1e-6) @ residual(robot, q))
        assert max(gap(loop, poses_of(robot, q)) for loop in robot.model.loops) < 1e-14
        values = np.linalg.svd(constraint_jacobian(robot, tree, q), compute_uv=False)
        assert values[rank - 1] > 1e-4 * values[0]
        assert np.all(values[rank:] < 1e-14 * values[0])


def residual(robot, q):
    """To first order what the rows of :func:`constraint_jacobian` must undo."""
    poses, rows = poses_of(robot, q), []
    for loop in robot.model.loops:
        A, B = cut_frames(loop, poses)
        T = np.linalg.inv(A) @ B
        if loop.kind == "revolute":  # leave out the turn about z
            turn = np.arctan2(T[1, 0], T[0, 0])
            c, s = np.cos(turn), np.sin(turn)
            T[:3, :3] = T[:3, :3] @ np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]])
        skew = (T[:3, :3] - T[:3, :3].T) / 2
        twist = np.concatenate([[skew[2, 1], skew[0, 2], skew[1, 0]], T[:3, 3]])
        rows.append(twist[[TWIST.index(row) for row in LOOP_KINDS[loop.kind].rows]])
    return np.concatenate(rows)


@pytest.mark.parametrize("name", FILES)
def test_trees_agree_with_pinocchio(robots, oracle, name):
    robot = robots[name]
    tree, rng = oracle(robot), np.random.default_rng(1)
    for _ in range(5):
        q, v, a = tree.random_configuration(rng), rng.normal(size=robot.nv), rng.normal(size=robot.nv)
        np.testing.assert_allclose(forward_kinematics(robot, q), tree.forward_kinematics(q), rtol=0.0, atol=1e-13)
        for ours, theirs in ((crba(robot, q), tree.crba(q)), (rnea(robot, q, v, a), tree.rnea(q, v, a))):
            np.testing.assert_allclose(ours, theirs, rtol=0.0, atol=1e-12 * np.abs(theirs).max())


@pytest.mark.parametrize("name", TREES)
def test_sizes_of_trees(robots, name):
    assert robots[name].nv == TREES[name]
    assert not robots[name].loop_names


@pytest.mark.parametrize("name, feet", [
    ("solo12", ("FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT")), ("talos", ("left_sole_link", "right_sole_link")),
])
def test_walkers_stand(robots, name, feet):
    """At home the feet are on the floor, and the centre of mass is above them."""
    robot = robots[name]
    poses = poses_of(robot, robot.home)
    ground = np.array([poses[foot][:3, 3] for foot in feet])
    assert np.abs(ground[:, 2]).max() < 1e-4
    masses = np.array([body.mass for body in robot.model.bodies])
    points = np.array([poses[body.name] @ [*body.com, 1.0] for body in robot.model.bodies])[:, :3]
    assert np.abs(masses @ points / masses.sum() - ground.mean(axis=0))[:2].max() < 0.02
    actuated = [joint.name for joint in robot.model.joints if JOINT_KINDS[joint.kind].nv == 1]
    assert list(robot.actuator_names) == actuated


def test_loader_reference(robots):
    """In the reference configuration the pins lie where the drawing has them."""
    robot = robots["loader"]
    assert np.all(robot.home == 0.0)
    assert robot.coordinate_names == (
        "boom", "bellcrank", "link", "bucket", "lift_barrel", "lift_rod", "tilt_barrel", "tilt_rod",
    )
    poses = poses_of(robot, robot.home)
    drawing = {
        "boom": (0.0, 0.0), "bucket": (2.75, -1.3), "lift_barrel": (-0.05, -0.8), "lift_rod": (1.4, -0.5),
        "bellcrank": (1.75, -0.35), "tilt_rod": (1.55, 0.45), "link": (2.05, -1.05), "tilt_barrel": (0.1, 0.2),
    }
    for body, point in drawing.items():
        np.testing.assert_allclose(poses[body][:2, 3], point, rtol=0.0, atol=1e-15)
        np.testing.assert_allclose(poses[body][:3, :3], np.eye(3), rtol=0.0, atol=1e-15)


def test_stewart_leg_lengths(robots):
    """A leg's coordinate is the distance from the centre of its universal joint to that of its ball."""
    robot = robots["stewart"]
    poses = poses_of(robot, robot.home)
    for k in range(1, 7):
        length = np.linalg.norm(poses[f"rod{k}"][:3, 3] - poses[f"barrel{k}"][:3, 3])
        assert length == pytest.approx(robot.home[robot.coordinate_index(f"leg{k}")], abs=1e-14)


@pytest.mark.parametrize("name", ["cassie_like", "delta", "parallel_five_bar"])
def test_borrowed_numbers_are_credited(robots, name):
    assert "LICENSE-parallel-machines" in robots[name].source
    assert "BSD 3-Clause" in (FOLDER / "LICENSE-parallel-machines").read_text()
