"""Ranks do not depend on units, on where a mechanism stands, on masses, nor on rounding of rows that say nothing."""
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import liedyn as ld
from liedyn.mechanics.constraints.cluster_weights import ranks, weights_of
from liedyn.mechanics.dynamics.forward import METHODS

UNITS = [(1.0, 0.0, 1.0), (1e3, 0.0, 1.0), (2e4, 20.0, 1e-3), (1e-3, 0.0, 1e6), (1.0, 300.0, 1e-7), (1.0, 1e5, 1.0)]
"""Units of length in a metre, metres from the origin, and masses."""


def pose(rng, unit, distance=0.0):
    T = np.eye(4)
    T[:3, :3] = Rotation.random(random_state=rng).as_matrix()
    T[:3, 3] = rng.normal(size=3) * unit + distance * unit * T[:3, 2]
    return T


def arm(kind, closed, unit, distance, mass, seed=0):
    """An arm that keeps to a plane, a line or a point anyway, and with `closed` a constraint that says so again."""
    rng = np.random.default_rng(seed)
    P, link = pose(rng, unit, distance), (0.4 * unit, 0.1 * unit, 0.0)
    b = ld.Builder("arm", gravity=4.0 * unit * rng.normal(size=3))

    def body(name, joint, parent, placement):
        b.body(name, mass, 0.2 * unit * rng.normal(size=3), mass * unit ** 2 * np.array([0.1, 0.12, 0.15]))
        b.joint(name, joint, parent, name, placement=placement)

    if kind == "planar":
        body("a", "planar", "ground", P)
        body("b", "revolute", "a", link)
        again = "planar", "b"
    elif kind == "pins":
        body("a", "revolute", "ground", P)
        body("b", "revolute", "a", link)
        body("c", "revolute", "b", link)
        again = "planar", "c"
    elif kind == "slider":
        body("a", "cylindrical", "ground", P)
        body("b", "revolute", "a", (0.0, 0.3 * unit, 0.0))
        again = "cylindrical", "a"
    else:
        body("a", "spherical", "ground", P)
        body("b", "revolute", "a", pose(rng, 0.3 * unit))
        again = "spherical", "a"
    if closed:
        b.loop("again", again[0], "ground", again[1], parent_placement=P)
    return b.build()


def state(robot, unit, mass, seed=1, far=3.0):
    """A configuration far from home, velocities and forces, and the sizes of the latter."""
    rng, lengths = np.random.default_rng(seed), ld.model.size.velocity_sizes(robot) != 1.0
    sizes = np.where(lengths, unit, 1.0)
    q = ld.integrate(robot, robot.neutral, far * sizes * rng.normal(size=robot.nv))
    return q, sizes * rng.normal(size=robot.nv), mass * unit ** 2 / sizes * rng.normal(size=robot.nv), sizes


@pytest.mark.parametrize("unit, distance, mass", UNITS)
@pytest.mark.parametrize("kind", ["planar", "pins", "slider", "ball"])
def test_constraints_that_are_satisfied_anyway(kind, unit, distance, mass):
    """Rows that are rounding have rank 0; all is as for the open tree."""
    free, robot = (arm(kind, closed, unit, distance, mass) for closed in (False, True))
    q, v, tau, sizes = state(robot, unit, mass)
    a, G = ld.forward_dynamics(free, q, v, tau).a / sizes, ld.constraint_jacobian(robot, q)
    assert ranks(robot, G[None], 1e-8)[0].tolist() == [0]
    for method in METHODS:
        r = ld.forward_dynamics(robot, q, v, tau, method=method)
        assert r.rank == 0 and r.redundant_rows == robot.row_names and not r.singular
        assert np.abs(r.a / sizes - a).max() <= 1e-9 * np.abs(a).max(), method
    batch = ld.forward_dynamics(robot, np.tile(q, (9, 1)), np.tile(v, (9, 1)), np.tile(tau, (9, 1)))
    assert np.abs(batch.a / sizes - a).max() <= 1e-9 * np.abs(a).max()
    A, A_free = (ld.linearize(each, q, v, tau).A for each in (robot, free))
    assert A.shape == A_free.shape and np.abs(A - A_free).max() <= 1e-8 * np.abs(A_free).max()
    assert np.abs(ld.close(robot, q) - q).max() <= 1e-9 * unit


@pytest.mark.parametrize("options", [{}, {"stabilisation": "minimal"}, {"formulation": "svd"}], ids=str)
def test_simulation_of_constraints_that_are_satisfied_anyway(options):
    for kind, (unit, distance, mass) in zip(("planar", "pins", "slider", "ball"), UNITS):
        free, robot = (arm(kind, closed, unit, distance, mass) for closed in (False, True))
        q, v, tau, sizes = state(robot, unit, mass)
        end, wanted = (ld.simulate(each, q, v, 0.1, dt=2e-3, tau=tau, progress=False, **options).q[-1]
                       for each in (robot, free))
        assert np.abs(ld.difference(robot, end, wanted) / sizes).max() < 1e-9


def machine(kind, unit, seed, mass=1.0):
    """Turning and sliding joints in one loop, closed at a random configuration; q and sizes of velocities."""
    rng = np.random.default_rng(seed)
    b = ld.Builder("machine", gravity=(0.0, 0.0, -9.81 * unit))
    for name, joint, parent in (("a", "cylindrical", "ground"), ("b", "revolute", "a"), ("c", "prismatic", "ground"),
                                ("d", "universal", "c")):
        b.body(name, mass, 0.1 * unit * rng.normal(size=3), mass * unit ** 2 * np.array([0.1, 0.12, 0.15]))
        b.joint(name, joint, parent, name, placement=pose(rng, unit))
    sizes, tree = np.array([1.0, unit, 1.0, unit, 1.0, 1.0]), b.build()
    q, A = rng.normal(size=6) * sizes, pose(rng, unit)
    b.loop("loop", kind, "b", "d", parent_placement=A,
           child_placement=np.linalg.inv(ld.pose(tree, q, "d")) @ ld.pose(tree, q, "b") @ A)
    return b.build(), q, sizes


@pytest.mark.parametrize("kind", ["prismatic", "revolute", "spherical", "universal"])
def test_units(kind):
    """The same machine in metres, in millimetres times ten, and in kilometres; LAPACK's rank in metres."""
    tried = 0
    for seed in range(12):
        robot, q, _ = machine(kind, 1.0, seed)
        G = ld.constraint_jacobian(robot, q)
        s = np.linalg.svd(G, compute_uv=False)
        rank = int((s > 1e-8 * s[0]).sum())
        if s[0] > 300.0 * s[rank - 1] or rank == 6:
            continue
        tried += 1
        v = np.linalg.svd(G)[2][-1]
        a = ld.forward_dynamics(robot, q, v, np.zeros(6)).a
        start = v / np.abs(v).max()
        for unit in (1e4, 3e4, 1e-3):
            other, q_other, sizes = machine(kind, unit, seed)
            for method in METHODS:
                r = ld.forward_dynamics(other, q_other, v * sizes, np.zeros(6), method=method)
                # the condition of the unweighed equations is up to unit^2 times that in metres
                assert r.rank == rank and np.abs(r.a / sizes - a).max() <= 1e-6 * np.abs(a).max(), (unit, method)
            states = np.tile(q_other, (9, 1)), np.tile(v * sizes, (9, 1)), np.zeros((9, 6))
            assert (ld.forward_dynamics(other, *states).rank == rank).all()
            guess = q_other + 0.02 * sizes * start
            closed = ld.close(other, guess)
            assert np.abs(ld.closure_error(other, closed)).max() <= 1e-11 * max(1.0, unit)
            assert np.abs((closed - q_other) / sizes).max() < 0.2
    assert tried >= 1 or kind == "prismatic"


def test_light_bodies_beside_heavy_ones():
    """In the metric of the kinetic energy rows of light bodies are 1e8 times longer; they all count."""
    b = ld.Builder("beam", gravity=(0.0, -9.81, 0.0))
    for name, parent, at, mass in (("a", "ground", 0.0, 1e6), ("b", "a", 1.0, 1e-9), ("c", "b", 1.5, 1e-9)):
        b.body(name, mass, (0.4, 0.0, 0.0), mass * np.array([0.01, 0.2, 0.2]))
        b.joint(name, "revolute", parent, name, placement=(at, 0.0, 0.0))
    b.loop("pin", "revolute", "ground", "c", parent_placement=(1.2, 0.3, 0.0), child_placement=(1.1, 0.0, 0.0))
    robot = b.build()
    q = ld.close(robot, [0.4, 1.2, -2.0])
    tr = ld.simulate(robot, q, np.zeros(3), 0.3, dt=1e-3, progress=False)
    assert np.abs(ld.closure_error(robot, tr.q)).max() < 1e-12
    energy = tr.energy
    assert np.ptp(energy) < 1e-7 * np.abs(energy).max()


@pytest.mark.parametrize("name", ld.bundled())
def test_common_machines_are_not_weighed(name):
    assert all((x == 1.0).all() for x in weights_of(ld.load(name)))


@pytest.mark.parametrize("rounding", [0.0, 1e-17, -3e-16])
def test_rounding_of_positions_is_no_length(rounding):
    """Joints of a file that stand at one place, but for what reading their frames has rounded."""
    b = ld.Builder("wrist")
    b.body("a", 1.0, (0.0, 0.1, 0.0), (0.1, 0.1, 0.1))
    b.body("b", 1.0, (0.0, 0.1, 0.0), (0.1, 0.1, 0.1))
    b.joint("ja", "revolute", "ground", "a", placement=(0.1, 0.0, 0.5))
    b.joint("jb", "spherical", "a", "b", placement=(0.0, rounding, rounding))
    b.loop("again", "spherical", "ground", "b", parent_placement=(0.1, 0.0, 0.5))
    robot = b.build()
    assert [x.tolist() for x in ld.model.size.weights(robot)] == [[1.0] * 3, [1.0] * 4]
