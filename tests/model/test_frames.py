"""Named frames: what is said of a body can be said of them; and motions, forces and Jacobians in world axes."""

import numpy as np
import pinocchio as pin
import pytest
from comparison import off as apart
from comparison import relative as off
from mechanisms import Ad, assert_declared_alike, random_pose
from pinocchio_models import SWAP, against_pinocchio, pin_model
from random_mechanisms import between
from tree_cases import TREES, mixed_tree, rate

import liedyn as ld
from liedyn.look.cli.info import print_info
from liedyn.look.drawing import points_of
from liedyn.look.planes import poses_of
from liedyn.machine.errors import InputError, ModelError
from liedyn.machine.simd.lanes import SCALAR
from liedyn.model.calls.checked import check
from liedyn.model.kinds import CONSTRAINT_KINDS, LOOP_KINDS

STATES = 10
PAIRS = [kind for kind in (*LOOP_KINDS, *CONSTRAINT_KINDS)
         if kind not in ("coupling", "custom", "dry_friction", "cable")]
BODY_FUNCTIONS = {"pose": "q", "body_jacobian": "q", "body_jacobian_dot": "qv", "body_jacobian_ddot": "qva",
                  "body_jacobian_dq": "q", "world_jacobian": "q", "world_jacobian_dot": "qv",
                  "world_acceleration": "qva"}


@pytest.fixture
def rng():
    return np.random.default_rng(16)


def framed(robot, rng, as_bodies=False):
    """The robot with a frame in the ground and on some bodies, and two in frames; or massless bodies instead."""
    b, poses = ld.Builder.of(robot), {}
    for k, body in enumerate(["ground", *robot.body_names[::4], "frame0", "frame1"]):
        name, placement = f"frame{k}", random_pose(rng)
        poses[name] = body, placement
        if as_bodies:
            b.body(name)
            b.joint(f"hold{k}", "fixed", body, name, placement)
        else:
            b.frame(name, body, placement)
    return b, poses


def random_states(robot, rng):
    return ld.random_configuration(robot, rng, STATES), *rng.normal(size=(2, STATES, robot.nv))


@pytest.mark.parametrize("name", TREES)
def test_a_frame_moves_with_its_body(name, rng):
    """Pose and Jacobian by hand, from those of the body."""
    b, placements = framed(TREES[name](), rng)
    robot = b.build()
    assert robot.frame_names == tuple(placements) and robot.nbodies == len(TREES[name]().body_names)
    q, _, _ = random_states(robot, rng)
    for frame, (body, X) in placements.items():
        T = np.tile(np.eye(4), (STATES, 1, 1)) if body == "ground" else ld.pose(robot, q, body)
        J = np.zeros((STATES, 6, robot.nv)) if body == "ground" else ld.body_jacobian(robot, q, body)
        assert off(ld.pose(robot, q, frame), T @ X) < 1e-14
        assert off(ld.body_jacobian(robot, q, frame), Ad(np.linalg.inv(X)) @ J) < 1e-13


def test_frames_are_where_massless_bodies_would_be(rng):
    """All functions of one body, wrenches, and a joint, a loop and a constraint that hang on frames."""
    made = []
    for as_bodies in (False, True):
        b, names = framed(mixed_tree(), np.random.default_rng(1), as_bodies)
        b.body("tip", 1.0, (0.1, 0.0, 0.2), (1.0, 1.0, 1.0))
        b.joint("hinge", "revolute", "frame4", "tip", (0.1, 0.2, 0.3), (1, 1, 0))
        b.loop("ball", "spherical", "frame2", "tip", (0.5, 0.0, 0.0))
        b.constraint("rod", "distance", "frame0", "frame6", length=0.3)
        made.append(b.build())
    one, two = made
    assert one.coordinate_names == two.coordinate_names and one.nbodies == two.nbodies - len(names)
    q, v, a = random_states(one, rng)
    state = {"q": q, "v": v, "a": a}
    for function, arguments in BODY_FUNCTIONS.items():
        for name in names:
            mine, other = (getattr(ld, function)(x, *(state[k] for k in arguments), name) for x in made)
            assert np.array_equal(mine, other), (function, name)
    F = {name: rng.normal(size=(STATES, 6)) for name in (*names, "tip")}
    assert np.array_equal(ld.rnea(one, q, v, a, F), ld.rnea(two, q, v, a, F))
    assert np.array_equal(ld.constraint_jacobian(one, q), ld.constraint_jacobian(two, q))
    outputs = [f"{kind}:{name}" for name in names for kind in ("pose", "twist", "twist_rate")]
    closed = ld.close(one, q[0])
    G = ld.constraint_jacobian(one, closed)
    allowed = v[0] - np.linalg.pinv(G, rcond=1e-9) @ (G @ v[0])
    mine, other = (ld.linearize(x, closed, allowed, a[0], outputs=outputs) for x in made)
    assert np.array_equal(mine.C, other.C) and np.array_equal(mine.D, other.D)
    assert mine.outputs == other.outputs


def test_arrays_of_all_bodies_know_no_frames(rng):
    plain = mixed_tree()
    robot = framed(plain, rng)[0].build()
    q, v, a = random_states(plain, rng)
    F = rng.normal(size=(STATES, plain.nbodies, 6))
    assert np.array_equal(ld.forward_kinematics(robot, q), ld.forward_kinematics(plain, q))
    assert np.array_equal(ld.rnea(robot, q, v, a, F), ld.rnea(plain, q, v, a, F))
    assert "frames" not in repr(plain) and robot.body_names == plain.body_names


def test_file_and_builder_keep_frames(tmp_path, rng):
    robot = framed(ld.load("five_bar"), rng)[0].build()
    ld.save_toml(robot, tmp_path / "a.toml")
    again = ld.load(tmp_path / "a.toml")
    assert_declared_alike(again.model, robot.model)
    assert ld.Builder.of(robot).build().frame_names == robot.frame_names
    (tmp_path / "b.toml").write_text('name = "x"\n[frames.tool]\nbodi = "a"\n')
    with pytest.raises(ModelError, match=r"\[frames.tool\].*unknown key 'bodi', did you mean 'body'"):
        ld.load(tmp_path / "b.toml")


@pytest.mark.parametrize(("declare", "message"), [
    (lambda b: b.frame("tool", "amr"), "frame 'tool', body: unknown 'amr', did you mean 'arm'"),
    (lambda b: b.frame("arm", "ground"), "'arm': declared twice"),
    (lambda b: b.frame("ground", "arm"), "reserved"),
    (lambda b: b.frame("tool", "tool"), "cycle: tool -> tool"),
    (lambda b: (b.frame("a", "b"), b.frame("b", "a")), "cycle"),
    (lambda b: b.frame("tool", "arm", (1.0, 2.0)), "frame 'tool', placement"),
    (lambda b: b.frame("", "arm"), "frame, name"),
    (lambda b: b.frame("tool", 3), "frame 'tool', body: expected a name"),
    (lambda b: (b.frame("tool", "arm"), b.joint("j2", "fixed", "ground", "tool")), "joint 'j2', child: unknown 'tool'"),
])
def test_bad_frames(declare, message):
    b = ld.Builder("robot")
    b.body("arm", 1.0, inertia=(1, 1, 1))
    b.joint("j", "revolute", "ground", "arm")
    with pytest.raises(ModelError, match=message):
        declare(b)
        b.build()


def test_names_and_numbers_of_frames(rng):
    robot = framed(ld.load("panda"), rng)[0].build()
    with pytest.raises(InputError, match="unknown body 'frame9', did you mean .*frame"):
        ld.pose(robot, robot.home, "frame9")
    last = robot.body_index(robot.frame_names[-1])
    check("pose", None, lane=SCALAR, model=robot.packed, q=robot.home, b=last, T=np.empty((4, 4)))
    with pytest.raises(InputError, match=f"number of a body or frame, 0 to {last}, got {last + 1}"):
        check("pose", None, lane=SCALAR, model=robot.packed, q=robot.home, b=last + 1, T=np.empty((4, 4)))


def test_a_loop_holds_bodies_without_inertia_by_frames():
    """As it does without: the tree is singular, the mechanism is not."""
    b = ld.Builder("slider")
    b.body("crank", 1.0, inertia=(1, 1, 1))
    b.body("rod")
    b.joint("turn", "revolute", "ground", "crank")
    b.joint("pin", "revolute", "crank", "rod", (1, 0, 0))
    b.frame("end", "rod", (2, 0, 0))
    with pytest.raises(ModelError, match="rod.*has no inertia"):
        b.build()
    b.loop("guide", "inline", "ground", "end", axis=(1, 0, 0))
    assert b.build().singular_tree == ("rod",)


def test_frames_in_words_and_pictures(tmp_path, capsys):
    """A body that hangs on a frame is drawn from the body that holds it."""
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    b = ld.Builder.of(ld.load("five_bar"))
    b.frame("tip", "link1", (0.0, 3.0, 0.0))
    b.body("bob", 1.0, (0.0, 0.1, 0.0), (1, 1, 1))
    b.joint("swing", "revolute", "tip", "bob")
    robot = b.build()
    ld.save_toml(robot, tmp_path / "a.toml")
    print_info(tmp_path / "a.toml")
    assert "frames (1)\n  tip  in link1" in capsys.readouterr().out
    place = ld.pose(robot, robot.home, "tip")[:3, 3]
    drawn, _ = points_of(robot, poses_of(robot, robot.home))["link1"]
    assert abs(drawn - place).max(axis=1).min() < 1e-15


# ---- world axes


@against_pinocchio("Jacobians and accelerations in world axes")
@pytest.mark.parametrize("name", TREES)
def test_world_axes_against_pinocchio(name, rng):
    robot = TREES[name]()
    oracle = pin_model(robot)
    q, v, a = random_states(robot, rng)
    for body in robot.body_names[::3]:
        J, J_dot = ld.world_jacobian(robot, q, body), ld.world_jacobian_dot(robot, q, v, body)
        acceleration, frame = ld.world_acceleration(robot, q, v, a, body), oracle.frames[body]
        for k in range(STATES):
            model, data, axes = oracle.model, oracle.data, pin.LOCAL_WORLD_ALIGNED
            pin.forwardKinematics(model, data, *oracle.to_pin(q[k], v[k], a[k]))
            pin.computeJointJacobiansTimeVariation(model, data, *oracle.to_pin(q[k], v[k]))
            pin.updateFramePlacements(model, data)
            expected = oracle._columns(pin.getFrameJacobian(model, data, frame, axes)[SWAP])
            size = 1 + abs(expected).max()  # Pinocchio's go by way of the world, ten metres off
            assert apart(J[k], expected, size) < 1e-13
            rates = oracle._columns(pin.getFrameJacobianTimeVariation(model, data, frame, axes)[SWAP])
            assert apart(J_dot[k], rates, abs(v).max() * size**2) < 1e-13
            classical = pin.getFrameClassicalAcceleration(model, data, frame, axes).vector[SWAP]
            assert apart(acceleration[k], classical, 1 + abs(acceleration[k]).max()) < 1e-12


@pytest.mark.parametrize("name", ["floating, springs", "mixed"])
def test_a_frame_in_world_axes_is_where_it_goes(name, rng):
    """The acceleration of its origin is the second derivative of its place; J v and its rate, of batches too."""
    robot = framed(TREES[name](), rng)[0].build()
    q, v, a = random_states(robot, rng)

    def at(t):
        return ld.integrate(robot, q, t * v), v + t * a

    for frame in robot.frame_names:
        def place(t, frame=frame):
            return ld.pose(robot, at(t)[0], frame)[:, :3, 3]

        def motion(t, frame=frame):
            q, v = at(t)
            return np.einsum("bij,bj->bi", ld.world_jacobian(robot, q, frame), v)

        J_dot = ld.world_jacobian_dot(robot, q, v, frame)
        acceleration = ld.world_acceleration(robot, q, v, a, frame)
        scale = 1 + abs(acceleration).max()
        # h^8 / 630 = 1.6e-19 times the ninth derivative, of frequencies up to |v| times the depth, 30 rad/s
        assert abs(rate(place) - motion(0.0)[:, 3:]).max() < 1e-8 * scale
        assert abs(rate(motion) - acceleration).max() < 1e-8 * scale
        by_hand = np.einsum("bij,bj->bi", ld.world_jacobian(robot, q, frame), a) + np.einsum("bij,bj->bi", J_dot, v)
        assert abs(acceleration - by_hand).max() < 1e-13 * scale


@pytest.mark.parametrize("kind", PAIRS)
def test_constraint_wrenches_in_world_axes(kind, rng):
    """Virtual power: -G^T lam of a constraint is its wrench on the child, and the opposite one on the parent."""
    tree = mixed_tree()
    q, size = ld.random_configuration(tree, rng), len(tree.body_names)
    poses = {"ground": np.eye(4)} | dict(zip(tree.body_names, ld.forward_kinematics(tree, q)))
    first, second = (tree.body_names[k] for k in (size // 3, 2 * size // 3))
    b = ld.Builder.of(tree)
    ends = between(rng, kind, poses, first, second)
    (b.loop if kind in LOOP_KINDS else b.constraint)("tie", kind, **ends)
    b.frame("B", second, ends["child_placement"])
    b.frame("A at B", first, np.linalg.inv(poses[first]) @ poses[second] @ ends["child_placement"])
    robot = b.build()
    lam = rng.normal(size=(STATES, len(robot.row_names)))
    F = ld.world_constraint_wrenches(robot, np.tile(q, (STATES, 1)), lam)["tie"]
    J = ld.world_jacobian(robot, q, "B") - ld.world_jacobian(robot, q, "A at B")
    G = ld.constraint_jacobian(robot, q)
    assert (abs(G).max(axis=1) > 1e-3).all()
    assert off(F @ J, -lam @ G) < 1e-12
    own = ld.constraint_wrenches(robot, q, lam[0])["tie"]  # turned only, or about another point
    assert off(np.linalg.norm(F[0, 3:]), np.linalg.norm(own[3:])) < 1e-13
