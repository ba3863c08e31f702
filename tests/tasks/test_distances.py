"""Distances between shapes: closed forms, differences, and motions that keep them."""
import builtins

import numpy as np
import pytest
from closed_chains import difference
from comparison import off

import liedyn as ld
from liedyn.machine.errors import InputError, LiedynError

pytest.importorskip("coal", reason="distances between shapes are those of coal")


def loose(kind, size, other="sphere", other_size=0.3, role="collision"):
    """A shape that floats, and another one fixed in the world, aside and turned."""
    b = ld.Builder("two")
    b.body("a", 1.0, (0, 0, 0), (0.1, 0.1, 0.1))
    b.joint("j", "free", "ground", "a")
    b.shape("mine", "a", kind, ld.placement((0.05, 0.1, -0.02), rpy=(0.3, 0.2, 0.1)), size, role=role)
    b.shape("theirs", "ground", other, ld.placement((0.2, -0.1, 0.3), rpy=(0.1, -0.4, 0.2)), other_size, role=role)
    return b.build()


SOLIDS = {"box": (0.2, 0.3, 0.4), "sphere": 0.2, "cylinder": (0.1, 0.4), "capsule": (0.1, 0.4),
          "ellipsoid": (0.1, 0.2, 0.3)}
OTHERS = {"sphere": 0.3, "plane": (), "capsule": (0.2, 0.5)}


@pytest.mark.parametrize("kind", SOLIDS)
@pytest.mark.parametrize("other", OTHERS)
def test_derivatives_are_those_of_differences(kind, other):
    robot, rng = loose(kind, SOLIDS[kind], other, OTHERS[other]), np.random.default_rng(1)
    for _ in range(3):
        q = ld.random_configuration(robot, rng)
        q[4:] = [1.0, 0.4, 1.5]
        found = ld.distances(robot, q)
        expected = [difference(lambda s, e=e, q=q: ld.distances(robot, ld.integrate(robot, q, s * e)).distance, 1e-4)[0]
                    for e in np.eye(6)]
        # differences of numbers that are exact to 1e-12 m
        assert np.abs(found.jacobian[0] - expected).max() < 1e-5
        (a, b), n = found.points[0], found.normal[0]
        assert abs(n @ (b - a) - found.distance[0]) < 1e-8 and abs(n @ n - 1.0) < 1e-12


def test_spheres_and_planes_in_closed_form():
    robot = loose("sphere", 0.2)
    q = np.array([0.0, 0, 0, 1, 1.0, 2.0, 3.0])
    center = np.array([1.05, 2.1, 2.98]) - [0.2, -0.1, 0.3]
    far = ld.distances(robot, q)
    assert abs(far.distance[0] - (np.linalg.norm(center) - 0.5)) < 1e-12
    q[4:] = [0.2, -0.2, 0.3]  # overlapping: minus the depth
    center = q[4:] + [0.05, 0.1, -0.02] - [0.2, -0.1, 0.3]
    assert abs(ld.distances(robot, q).distance[0] - (np.linalg.norm(center) - 0.5)) < 1e-9
    floor = loose("box", (0.2, 0.2, 0.2), "plane", ())
    batch = ld.distances(floor, np.tile(q, (2, 3, 1)))
    assert batch.distance.shape == (2, 3, 1) and batch.jacobian.shape == (2, 3, 1, 6)


def arm(post=True):
    b = ld.Builder.of(ld.load("panda"))
    b.shape("fist", "panda_hand", "sphere", size=0.08, role="collision")
    b.shape("elbow", "panda_link4", "sphere", size=0.08, role="collision")
    b.shape("upper", "panda_link3", "sphere", size=0.02, role="collision")
    if post:
        b.shape("post", "ground", "cylinder", (0.45, 0.0, 0.5), (0.05, 1.0), role="collision")
    return b.build()


def test_pairs():
    panda = arm()
    found = ld.distances(panda, panda.home)
    # the elbow is joined to the upper arm
    assert set(found.pairs) == {("fist", "elbow"), ("fist", "upper"), ("fist", "post"), ("elbow", "post"),
                                ("upper", "post")}
    named = ld.distances(panda, panda.home, [("panda_link4", "ground"), ("elbow", "upper")])
    assert named.pairs == (("elbow", "post"), ("elbow", "upper"))
    J, rng = named.jacobian, np.random.default_rng(2)
    v = rng.normal(size=7)
    rate = difference(lambda s: ld.distances(panda, ld.integrate(panda, panda.home, s * v),
                                             [("panda_link4", "ground"), ("elbow", "upper")]).distance, 1e-2)
    assert np.abs(J @ v - rate).max() < 1e-6
    with pytest.raises(InputError, match="no shape or body with shapes for collision is called 'fits', did you mean"):
        ld.distances(panda, panda.home, [("fits", "post")])
    with pytest.raises(InputError, match="has no distance from itself"):
        ld.distances(panda, panda.home, [("post", "post")])
    with pytest.raises(InputError, match="has no two shapes for collision"):
        ld.distances(ld.load("panda"), panda.home)


def test_without_coal(monkeypatch):
    real = builtins.__import__

    def missing(name, *rest, **more):
        if name == "coal":
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(LiedynError, match=r"need coal: pip install 'liedyn\[collision\]'"):
        ld.distances(arm(), ld.load("panda").home)


def test_a_mesh_counts_as_its_hull(tmp_path):
    corners = [(x, y, z) for x in (0, 1) for y in (0, 1) for z in (0, 1)]
    faces = "1 2 4;1 4 3;5 7 8;5 8 6;1 5 6;1 6 2;3 4 8;3 8 7;1 3 7;1 7 5;2 6 8;2 8 4"
    path = tmp_path / "cube.obj"
    path.write_text("".join(f"v {x} {y} {z}\n" for x, y, z in corners) + "".join(f"f {f}\n" for f in faces.split(";")))
    b = ld.Builder("mesh")
    b.body("a", 1.0, (0, 0, 0), (0.1, 0.1, 0.1))
    b.joint("j", "prismatic", "ground", "a", axis=(1, 0, 0))
    b.shape("cube", "a", "mesh", mesh=str(path), scale=0.5, role="collision")
    b.shape("ball", "ground", "sphere", (2.0, 0.25, 0.25), 0.5, role="collision")
    found = ld.distances(b.build(), [0.3])
    assert abs(found.distance[0] - (2.0 - 0.5 - 0.8)) < 1e-8 and abs(found.jacobian[0, 0] + 1.0) < 1e-9
    b.shape("lost", "a", "mesh", mesh=str(tmp_path / "no.obj"), role="collision")
    with pytest.raises(LiedynError, match="coal cannot read mesh"):
        ld.distances(b.build(), [0.3])


def test_inverse_kinematics_keeps_away():
    panda = arm()
    goal = ld.PointTarget("panda_hand", (0.40, 0.02, 0.5))
    near = ld.inverse_kinematics(panda, goal)
    assert ld.distances(panda, near.q, [("fist", "post")]).distance[0] < 0.0
    kept = ld.DistanceTarget(at_least=0.02, name="apart")
    free = ld.PointTarget("panda_hand", (0.30, 0.1, 0.5), tolerance=1e-5)
    found = ld.inverse_kinematics(panda, [kept, free])
    assert found.reached and ld.distances(panda, found.q).distance.min() > 0.02 - 2e-6
    assert np.linalg.norm(ld.pose(panda, found.q, "panda_hand")[:3, 3] - [0.30, 0.1, 0.5]) < 2e-5
    # a goal inside the post: as near as the distance permits, and held coordinates stay
    last = ld.inverse_kinematics(panda, [kept, ld.PointTarget("panda_hand", (0.40, 0.02, 0.5), priority=1)],
                                 q0=found.q, hold=["panda_joint7"])
    assert last.reached and ld.distances(panda, last.q).distance.min() > 0.02 - 2e-6
    assert last.q[6] == found.q[6]


def test_closed_loops_keep_away():
    b = ld.Builder.of(ld.load("five_bar"))
    b.frame("tip", "link2", (0.3, 0.0, 0.0))
    b.shape("joint", "tip", "sphere", size=0.05, role="collision")
    b.shape("wall", "ground", "sphere", (0.1, 0.6, 0.0), 0.2, role="collision")
    robot = b.build()
    target = ld.DistanceTarget([("joint", "wall")], at_least=0.05)
    found = ld.inverse_kinematics(robot, target, unreached="ignore")
    assert abs(ld.closure_error(robot, found.q)).max() < 1e-9
    d = ld.distances(robot, found.q, [("joint", "wall")]).distance[0]
    assert d > 0.05 - 2e-6
    assert off(ld.separation(robot, [("joint", "wall")]).f(0.0, found.q, None, None), [d]) < 1e-12


def slider():
    """A body that slides in a plane past a pole."""
    b = ld.Builder("puck", gravity=(0, 0, 0))
    for name, axis, parent in (("x", (1, 0, 0), "ground"), ("y", (0, 1, 0), "x")):
        b.body(name, 0.5, (0, 0, 0), (0.01, 0.01, 0.01))
        b.joint(f"j{name}", "prismatic", parent, name, axis=axis)
    b.shape("puck", "y", "sphere", size=0.1, role="collision")
    b.shape("pole", "ground", "cylinder", (0.5, 0.01, 0.0), (0.1, 1.0), role="collision")
    return b.build()


def test_a_plan_keeps_away():
    robot = slider()
    steps, goal = 30, np.array([1.0, 0.0])
    cost = ld.Cost(Q=0.0, R=1e-3, terminal_Q={"jx": 50.0, "jy": 50.0, "velocity:jx": 5.0, "velocity:jy": 5.0}, q=goal)
    apart = ld.DistanceTarget(one_sided=False)
    plan = ld.ddp(robot, [0.0, 0.0], [0.0, 0.0], cost, steps, 0.05, limits=ld.Limits(targets=[(apart, 0.05, np.inf)]))
    d = ld.distances(robot, plan.q).distance[:, 0]
    assert d.min() > 0.05 - 1e-4 and np.abs(plan.q[-1] - goal).max() < 0.05
    straight = ld.ddp(robot, [0.0, 0.0], [0.0, 0.0], cost, steps, 0.05)
    assert ld.distances(robot, straight.q).distance.min() < 0.0


def test_an_optimal_motion_keeps_away():
    robot = slider()
    found = ld.optimize_motion(robot, start=[0.0, 0.05], goal=[1.0, 0.05], duration=1.0,
                               path=[ld.separation(robot, at_least=0.05)])
    d = ld.distances(robot, found.q).distance[:, 0]
    assert d.min() > 0.05 - 1e-4
