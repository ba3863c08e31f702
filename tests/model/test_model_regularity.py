"""Trees with a singular mass matrix are refused by name; regular ones never are. The oracle is the packed model's M."""

import numpy as np
import pytest
from mechanisms import MOVING_KINDS, Unpacked, random_axes, random_joint, random_pose, random_q, random_tree

from liedyn.machine.errors import ModelError
from liedyn.model import Builder, regularity


@pytest.mark.parametrize("kind", MOVING_KINDS)
def test_massless_leaf_is_named(kind):
    rng = np.random.default_rng(0)
    builder = random_tree(rng, ["free", "revolute", "spherical"])
    builder.body("feather")
    builder.joint("stem", kind, "body1", "feather", **random_joint(rng, kind))
    with pytest.raises(ModelError, match="body 'feather'"):
        builder.build()


@pytest.mark.parametrize("kind", MOVING_KINDS)
def test_armature_makes_a_massless_leaf_regular(kind):
    rng = np.random.default_rng(0)
    builder = random_tree(rng, ["revolute"])
    builder.body("feather")
    builder.joint("stem", kind, "body0", "feather", armature=0.1, **random_joint(rng, kind))
    assert builder.build().singular_tree == ()


def test_massless_body_under_a_heavy_one():
    """A knuckle: massless between two hinges at right angles. Parallel hinges at one place leave it singular."""
    for axis, regular in (((1, 0, 0), True), ((0, 0, 1), False)):
        builder = Builder("knuckle")
        builder.body("knuckle")
        builder.body("arm", 1.0, (0, 0, 1.0), (0.1, 0.1, 0.1))
        builder.joint("first", "revolute", "ground", "knuckle", placement=random_pose(np.random.default_rng(0)))
        builder.joint("second", "revolute", "knuckle", "arm", axis=axis)
        if regular:
            builder.build()
        else:
            with pytest.raises(ModelError, match="'knuckle', 'arm'"):
                builder.build()


@pytest.mark.parametrize("seed", range(5))
def test_inertia_that_a_joint_cannot_feel(seed):
    """Anywhere in space: a point on the hinge's axis, a point held by a ball joint, a thin rod turning about itself."""
    rng = np.random.default_rng(seed)
    axis = random_axes(rng, "revolute")["axis"]
    direction = axis / np.linalg.norm(axis)
    rod = np.eye(3) - np.outer(direction, direction)
    cases = [
        ("revolute", {"mass": 2.0, "com": 3.0 * direction}, {"axis": axis}),
        ("spherical", {"mass": 2.0, "com": rng.normal(size=3)}, {}),
        ("revolute", {"mass": 2.0, "com": 0.3 * direction, "inertia": rod}, {"axis": axis}),
    ]
    for kind, inertia, arguments in cases:
        builder = random_tree(rng, ["free", "spherical"])
        builder.body("numb", **inertia)
        builder.joint("numb", kind, "body1", "numb", placement=random_pose(rng), **arguments)
        with pytest.raises(ModelError, match="body 'numb'"):
            builder.build()


def test_tiny_bodies_are_bodies():
    """A milligram at the end of a ton: badly scaled, not singular."""
    builder = Builder("crane")
    builder.body("jib", 1000.0, (5, 0, 0), (100, 5000, 5000))
    builder.body("fly", 1e-6, (1e-3, 0, 0))
    builder.joint("slew", "revolute", "ground", "jib")
    builder.joint("wing", "revolute", "jib", "fly", placement=(10, 0, 0))
    assert builder.build().singular_tree == ()


def test_no_inertia_is_too_small():
    """Numbers below the smallest normal one have no reciprocal; the chain resists all the same."""
    builder, parent = Builder("speck"), "ground"
    for k in range(3):
        builder.body(f"b{k}", 1e-310, (0.1, 0.2, 0.3), (1e-311, 1e-311, 1e-311))
        builder.joint(f"j{k}", "revolute", parent, f"b{k}", placement=(0.3, 0, 0.1), axis=np.eye(3)[k])
        parent = f"b{k}"
    with np.errstate(all="raise", under="ignore"):
        assert builder.build().singular_tree == ()


def test_planar_mechanisms_need_only_planar_inertia():
    """Mass and one moment: the dense check runs, and finds the arm regular."""
    builder = Builder("arm")
    parent = "ground"
    for k in range(3):
        builder.body(f"link{k}", 1.0, (0.5, 0, 0), (0, 0.1, 0.1))
        builder.joint(f"pin{k}", "revolute", parent, f"link{k}", placement=(1, 0, 0))
        parent = f"link{k}"
    assert builder.build().singular_tree == ()


def test_long_chain_of_point_masses():
    builder, parent = Builder("chain"), "ground"
    for k in range(200):
        builder.body(f"b{k}", 1.0, (0, 0, 0.5))
        builder.joint(f"j{k}", "revolute", parent, f"b{k}", placement=(0, 0, 1), axis=(1, 0, 0))
        parent = f"b{k}"
    assert builder.build().singular_tree == ()


@pytest.mark.parametrize("planar", [True, False])
def test_long_chains_need_no_dense_matrices(monkeypatch, planar):
    """Rods that resist in their plane only, or joints at right angles with massless knuckles between them."""
    monkeypatch.delattr(regularity, "_energy_root")
    builder, parent = Builder("chain"), "ground"
    for k in range(1000):
        rod = {"mass": 1.0, "com": (0.5, 0, 0), "inertia": (0, 0.1, 0.1)} if planar else {}
        if not planar and k % 2:
            rod = {"mass": 1.0, "inertia": (0.1, 0.1, 0.1)}
        builder.body(f"b{k}", **rod)
        axis = (0, 0, 1) if planar or k % 2 else (0, 1, 0)
        builder.joint(f"j{k}", "revolute", parent, f"b{k}", placement=(1, 0, 0), axis=axis)
        parent = f"b{k}"
    assert builder.build().singular_tree == ()


def test_loops_may_hold_massless_bodies():
    """A massless coupler held by a loop is no error, but reported; one beside it that no loop holds is."""
    builder = Builder("linkage")
    builder.body("crank", 1.0, (0.5, 0, 0), (0.1, 0.1, 0.1))
    builder.body("coupler")
    builder.joint("crank", "revolute", "ground", "crank")
    builder.joint("coupler", "revolute", "crank", "coupler", placement=(1, 0, 0))
    builder.loop("guide", "inline", "ground", "coupler", child_placement=(2, 0, 0))
    assert builder.build().singular_tree == ("coupler",)
    builder.body("tip", 1.0)
    builder.joint("weld", "fixed", "coupler", "tip")
    assert builder.build().singular_tree == ("coupler",)
    builder.body("flag")
    builder.joint("flag", "revolute", "crank", "flag")
    with pytest.raises(ModelError, match="motion of body 'flag'"):
        builder.build()


@pytest.mark.parametrize("seed", range(60))
def test_verdict_is_that_of_the_mass_matrix(seed):
    """Trees with massless bodies and point masses strewn in: refused if and only if M has no inverse."""
    rng = np.random.default_rng(seed)
    builder = random_tree(rng, ["spherical", "revolute"])
    parent = "body1"
    for k in range(rng.integers(1, 4)):
        mass, kind = rng.choice([0.0, 1.0]), rng.choice(["revolute", "prismatic", "universal", "spherical", "fixed"])
        builder.body(f"light{k}", mass, rng.normal(size=3))
        builder.joint(f"light{k}", str(kind), parent, f"light{k}", **random_joint(rng, kind))
        parent = f"light{k}"
    builder.loop("hold", "spherical", parent, "ground")  # holds every light body, so that the build goes through
    robot = builder.build()
    smallest = []
    for _ in range(3):
        M = Unpacked(robot).mass_matrix(random_q(rng, robot))
        scale = np.sqrt(np.maximum(np.diag(M), 1e-12))
        smallest.append(np.linalg.eigvalsh(M / np.outer(scale, scale))[0])
    assert (max(smallest) < 1e-10) == bool(robot.singular_tree)
