"""Long chains of coupled loops: eliminated as sparse rows, they have to give what the dense elimination gives.

Oracles: the same robot with the dense elimination; formulations that share no code with either (singular values,
multipliers); the motion of A02 as a parallelogram, a pendulum whose equation is known; sixth-order differences.
"""
import time

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import liedyn as ld
from benchmarks.robots import four_bars
from liedyn import kernels
from liedyn.lie.so3 import so3_exp
from liedyn.mechanics.dynamics.nullspace import acceleration_size
from liedyn.model import clusters
from liedyn.model.packed import SPARSE

COUNT = 12


def tip(length):
    pose = np.eye(4)
    pose[0, 3] = length
    return pose


def row_of_loops(kind="uneven", count=COUNT, seed=0):
    """Rods on the ground, side by side, each coupled to the next one by a rod or by two.

    "uneven": all lengths differ; "tilted": in a plane that is no plane of coordinates; "shuffled": declared in any
    order; "double": each pair of rods is coupled twice, so that a row of each loop depends on others; "elbows":
    couplers of two rods, a degree of freedom for each loop; "spatial": the tips are balls, couplers have universal
    joints.
    """
    rng = np.random.default_rng(seed)
    angles = rng.uniform(1.0, 1.3, count + 1)
    V, ground = rng.uniform(0.8, 1.2, count + 1), np.cumsum(rng.uniform(0.9, 1.3, count + 1))
    if kind == "double":
        angles[:], V[:], ground = 1.1, 1.0, np.arange(count + 1.0)
    plane = np.eye(4)
    if kind == "tilted":
        plane[:3, :3] = so3_exp([0.3, -0.5, 0.8])
    home, order = {f"V{k}": angle for k, angle in enumerate(angles)}, list(range(count))
    builder = ld.Builder(kind, gravity=(0.0, -9.81, 0.0))
    if kind == "shuffled":
        rng.shuffle(order)
    foot = np.column_stack([ground, np.zeros(count + 1)])
    ends = foot + V[:, None] * np.column_stack([np.cos(angles), np.sin(angles)])
    for k in range(count + 1):
        builder.body(f"V{k}", 1.0 + 0.1 * k, (0.4, 0.02, 0.0), (0.01, 0.1, 0.1))
        at = np.eye(4)
        at[:3, 3] = (*foot[k], 0.0)
        builder.joint(f"V{k}", "revolute", "ground", f"V{k}", placement=plane @ at)
    for k in order:
        for copy in range(2 if kind == "double" else 1):
            coupler(builder, kind, k, copy, V, angles, ends, home)
    robot = builder.build()
    q = robot.neutral.copy()
    for name, angle in home.items():
        q[robot.coordinate_index(name)] = angle
    return robot, ld.close(robot, q)


def dense(monkeypatch, *arguments, **keywords):
    """The same robot with the dense elimination."""
    with monkeypatch.context() as patched:
        patched.setattr(clusters, "LONG", np.inf)
        return row_of_loops(*arguments, **keywords)[0]


def moving(robot, q, seed=1):
    """A closed configuration next to q, a velocity that keeps it closed, and forces."""
    rng = np.random.default_rng(seed)
    q = ld.close(robot, ld.integrate(robot, q, 0.03 * rng.normal(size=robot.nv)))
    G = ld.constraint_jacobian(robot, q)
    v = rng.normal(size=robot.nv)
    return q, v - np.linalg.pinv(G, rcond=1e-8) @ (G @ v), rng.normal(size=robot.nv)


KINDS = "uneven", "tilted", "shuffled", "double", "elbows", "spatial"


@pytest.mark.parametrize("kind", KINDS)
def test_sparse_is_dense(kind, monkeypatch):
    """Accelerations, multipliers of minimum norm and the state space are those of the dense elimination."""
    robot, q = row_of_loops(kind)
    other = dense(monkeypatch, kind)
    assert robot.packed.ints[SPARSE] > 0 and other.packed.ints[SPARSE] == 0
    q, v, tau = moving(robot, q)
    found, wanted = (ld.forward_dynamics(each, q, v, tau) for each in (robot, other))
    assert found.rank == wanted.rank
    for name in "a", "lam", "constraint_force":
        x, y = getattr(found, name), getattr(wanted, name)
        assert abs(x - y).max() < 1e-11 * max(1.0, abs(y).max()), name  # rounding times a condition number of 100
    names = found.independent
    found, wanted = (ld.linearize(each, q, v, tau, independent=names) for each in (robot, other))
    for name in "A", "B", "f0", "K", "S", "a", "lam":
        x, y = getattr(found, name), getattr(wanted, name)
        assert abs(x - y).max() < 1e-11 * max(1.0, abs(y).max()), name
    # a lower bound, that is usually reached; where rows depend on others it belongs to those that are chosen
    assert 0.3 * wanted.condition < found.condition < wanted.condition * (2.0 if kind == "double" else 1.0 + 1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", ("svd", "multiplier"))
def test_other_formulations(kind, method):
    robot, q = row_of_loops(kind)
    q, v, tau = moving(robot, q)
    found, wanted = ld.forward_dynamics(robot, q, v, tau), ld.forward_dynamics(robot, q, v, tau, method=method)
    assert abs(found.a - wanted.a).max() < 1e-9 * abs(wanted.a).max()
    assert abs(found.lam - wanted.lam).max() < 1e-9 * abs(wanted.lam).max()


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_read_that_was_not_written(kind):
    """Off their patterns G and M hold rubbish: not-a-numbers in the workspace must not show."""
    robot, q = row_of_loops(kind)
    q, v, tau = moving(robot, q)
    results = []
    for rubbish in (np.nan, 0.0):
        a, lam = np.empty(robot.nv), np.empty(len(robot.row_names))
        work = np.full(acceleration_size(robot.packed), rubbish)
        kernels.forward_dynamics(robot.packed, q, v, tau, np.empty(0), 1e-8, work, a, lam)
        results.append(np.concatenate([a, lam]))
    assert np.array_equal(*results)


@pytest.mark.parametrize("kind", KINDS)
def test_switched_off(kind, monkeypatch):
    """A cut that is off has no rows; what its loop held moves by itself."""
    robot, q = row_of_loops(kind)
    off = {name: False for name in robot.loop_names[3:5]}
    robot, other = robot.switched(off), dense(monkeypatch, kind).switched(off)
    q, v, tau = moving(robot, q)
    found, wanted = (ld.forward_dynamics(each, q, v, tau) for each in (robot, other))
    assert abs(found.a - wanted.a).max() < 1e-11 * max(1.0, abs(wanted.a).max())
    assert abs(found.lam - wanted.lam).max() < 1e-11 * max(1.0, abs(wanted.lam).max())


@pytest.mark.parametrize("kind", ("uneven", "double", "elbows"))
def test_outputs_and_results(kind, monkeypatch):
    """Outputs that read multipliers and accelerations, and what a linearization tells besides."""
    robot, q = row_of_loops(kind)
    other = dense(monkeypatch, kind)
    q, v, tau = moving(robot, q)
    names = ld.forward_dynamics(robot, q, v, tau).independent
    outputs = [f"acceleration:V{COUNT}", f"wrench:{robot.loop_names[0]}", f"velocity:V{COUNT}"]
    found, wanted = (ld.linearize(each, q, v, tau, independent=names, outputs=outputs) for each in (robot, other))
    for name in "C", "D":
        x, y = getattr(found, name), getattr(wanted, name)
        assert abs(x - y).max() < 1e-10 * max(1.0, abs(y).max()), name


def test_tangent_space_and_left_coordinates(monkeypatch):
    """Coordinates that the elimination chooses itself: the eigenvalues do not depend on them."""
    robot, q = row_of_loops("elbows")
    other = dense(monkeypatch, "elbows")
    rest = np.zeros(robot.nv)
    tau = ld.rnea(robot, q, rest, rest)  # elsewhere than in equilibrium eigenvalues belong to the coordinates
    for independent in ("auto", "tangent"):
        x, y = (np.sort_complex(np.linalg.eigvals(ld.linearize(each, q, rest, tau, independent=independent).A))
                for each in (robot, other))
        assert abs(x - y).max() < 1e-6 * abs(y).max()  # roots of pairs that nearly coincide


def pendulum(count, t, start, speed):
    """Angle of A02, all rods alike: (count + 1) rods turn, as many couplers as loops go with their tips."""
    inertia, weight = (count + 1) / 3.0 + count, 9.81 * ((count + 1) / 2.0 + count)
    found = solve_ivp(lambda t, x: (x[1], -weight * np.cos(x[0]) / inertia), (0.0, t), (start, speed),
                      method="DOP853", rtol=1e-13, atol=1e-13)
    return found.y[:, -1]


@pytest.mark.parametrize("count", (10, 40))
def test_motion_of_a_row_of_four_bars(count):
    robot, t = four_bars(count), 0.3
    v = ld.complete_velocity(robot, robot.home, {"V0": -1.0})
    tr = ld.simulate(robot, robot.home, v, t, dt=1e-3)
    exact = pendulum(count, t, 0.5 * np.pi, -1.0)
    last = robot.coordinate_index(f"V{count}")
    # of RK4 with steps of 1 ms
    assert abs(tr.q[-1, [0, last]] - exact[0]).max() < 1e-9 and abs(tr.v[-1, 0] - exact[1]) < 1e-9
    assert abs(ld.closure_error(robot, tr.q)).max() < 1e-12


def test_singular_position():
    """With all rods in one line the motion is open, and next to it few digits are left: as of small mechanisms."""
    robot = four_bars(COUNT)
    q = np.zeros(robot.nq)
    with pytest.raises(ld.SingularConfigurationError):
        ld.forward_dynamics(robot, q, np.zeros(robot.nv), np.zeros(robot.nv))
    for k in range(COUNT + 1):
        q[robot.coordinate_index(f"V{k}")] = 1e-5
    for k in range(COUNT):
        q[robot.coordinate_index(f"H{k}")] = -1e-5
    with pytest.warns(ld.ConditionWarning, match="next to a singular configuration"):
        ld.forward_dynamics(robot, q, np.zeros(robot.nv), np.zeros(robot.nv))


def test_exact_beside_differences():
    robot, q = row_of_loops("uneven")
    q, v, tau = moving(robot, q)
    space = ld.linearize(robot, q, v, tau, independent=["V0"])
    step, weights = 2e-3, {1: 45.0, 2: -9.0, 3: 1.0}

    def acceleration(dy):
        moved = ld.close(robot, q, V0=q[robot.coordinate_index("V0")] + dy)
        rates = ld.complete_velocity(robot, moved, {"V0": v[robot.velocity_index("V0")]})
        return ld.forward_dynamics(robot, moved, rates, tau).a[robot.velocity_index("V0")]

    slope = sum(c * (acceleration(k * step) - acceleration(-k * step)) for k, c in weights.items()) / (60.0 * step)
    assert abs(space.A[1, 0] - slope) < 1e-8 * max(1.0, abs(slope))  # of the differences


def test_time_grows_as_length():
    """Four times the loops take about four times as long, where the dense elimination took fifty times as long."""
    def seconds(count):
        robot = four_bars(count)
        a, lam = np.empty(robot.nv), np.empty(len(robot.row_names))
        work, v = np.empty(acceleration_size(robot.packed)), np.zeros(robot.nv)
        q = robot.home + np.where(np.char.startswith(robot.coordinate_names, "V"), -0.3, 0.3)
        arguments = robot.packed, q, v, v, np.empty(0), 1e-8, work, a, lam
        kernels.forward_dynamics(*arguments)
        taken = []
        for _ in range(15):
            begin = time.perf_counter()
            for _ in range(20):
                kernels.forward_dynamics(*arguments)
            taken.append(time.perf_counter() - begin)
        return min(taken)

    assert seconds(160) < 8.0 * seconds(40)  # exponent 1.5, on machines that others work on too


def coupler(builder, kind, k, copy, V, angles, ends, home):
    """From rod k to the next one."""
    on_first, on_next = (0.5, 0.5) if copy else (V[k], V[k + 1])
    between = ends[k + 1] - ends[k]
    length, heading, name = np.hypot(*between), np.arctan2(between[1], between[0]), f"H{k}" + "b" * copy
    if kind == "elbows":
        half = 0.6 * length
        lift = np.arccos(0.5 * length / half)
        builder.body(name, 0.7, (0.3, 0.01, 0.0), (0.01, 0.05, 0.05))
        builder.body(name + "x", 0.6, (0.3, 0.0, 0.0), (0.01, 0.05, 0.05))
        builder.joint(name, "revolute", f"V{k}", name, placement=tip(on_first))
        builder.joint(name + "x", "revolute", name, name + "x", placement=tip(half))
        home |= {name: heading - angles[k] + lift, name + "x": -2.0 * lift}
        last, length = name + "x", half
    else:
        builder.body(name, 0.7, (0.45, 0.01, 0.0), (0.01, 0.05, 0.05))
        joint = "universal" if kind == "spatial" else "revolute"
        axes = {"axis": (0.0, 0.0, 1.0), "axis2": (0.0, 1.0, 0.0)} if kind == "spatial" else {}
        builder.joint(name, joint, f"V{k}", name, placement=tip(on_first), **axes)
        home[f"{name}.angle1" if kind == "spatial" else name] = heading - angles[k]
        last = name
    builder.loop(f"tip{k}" + "b" * copy, "spherical" if kind == "spatial" else "revolute", f"V{k + 1}", last,
                 parent_placement=tip(on_next), child_placement=tip(length))
