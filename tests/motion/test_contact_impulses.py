"""Impulses of contacts that depend on each other: they are found wherever there are any, and bodies come to rest."""
import numpy as np
import pytest
from contact_laws import check_laws, one_sided
from scipy.optimize import nnls

import liedyn as ld
from benchmarks.drops import SHAPES, above_floor, body, box, corners_of, gaps, stack
from liedyn.mechanics.contact.complementarity import NOT_SOLVED, SOLVED, Coulomb, solve_coulomb

G = 9.81


def random_corners(rng):
    """Corners (n, 3) of a box, a plate, a prism or a pyramid."""
    return corners_of(SHAPES[rng.integers(4)], rng)


# ---- the problem itself


def touching(rng):
    """H (k, 6) of 1 to 8 corners in a plane or not, their inertia, and how many rows each has."""
    count, rows = int(rng.integers(1, 9)), (1, 3)[rng.integers(2)]
    corners = rng.uniform(-0.3, 0.3, (count, 3))
    if rng.random() < 0.7:
        corners[:, 2] = -0.1  # on the floor with a whole face
    H = []
    for p in corners:
        skew = np.array([[0, -p[2], p[1]], [p[2], 0, -p[0]], [-p[1], p[0], 0]])
        H += list(np.hstack([-skew, np.eye(3)])[[2, 0, 1]][:rows])
    return np.array(H), np.r_[rng.uniform(0.01, 0.1, 3), [rng.uniform(0.5, 2.0)] * 3], rows


def stacked(rng):
    """Y, b and mu of one to three bodies on each other, each with 1 to 8 contacts in a plane, or nearly so."""
    bodies, H, mu, com = int(rng.integers(1, 4)), [], rng.uniform(0, 2), np.zeros(3)
    M = np.zeros((6 * bodies, 6 * bodies))
    for k in range(bodies):
        size, m = rng.uniform(0.05, 0.4, 3), 10.0 ** rng.uniform(-1, 1)
        x, y, z = np.square(size)
        inertia = m / 12 * np.array([y + z, x + z, x + y]) * rng.uniform(0.3, 1, 1)
        n = np.array([0, 0, 1.0]) + min(k, 1) * rng.normal(size=3) * rng.choice([0, 1e-9, 1e-3, 0.3])
        n /= np.linalg.norm(n)
        t = np.cross(n, [1.0, 0, 0]) / np.linalg.norm(np.cross(n, [1.0, 0, 0]))
        F, count = np.array([n, t, np.cross(n, t)]), int(rng.choice([1, 2, 3, 4, 4, 4, 5, 8]))
        corners = np.column_stack([rng.choice([-0.5, 0.5], count) * size[0], rng.choice([-0.5, 0.5], count) * size[1],
                                   np.zeros(count)])
        if rng.random() < 0.6:
            corners = np.array([[x, y, 0] for x in (0.5, -0.5) for y in (0.5, -0.5)])[:min(4, count)] * size
        elif rng.random() < 0.5:
            corners = rng.uniform(-0.3, 0.3, (count, 3)) * [1, 1, 0]
        center, R = com + min(k, 1) * 0.5 * size[2] * n, F[[1, 2, 0]].T
        above = center + 0.5 * size[2] * n + rng.normal(size=3) * 0.02 * rng.choice([0, 1])
        own = slice(6 * k, 6 * k + 6)
        M[own, own] = np.block([[R @ np.diag(inertia) @ R.T, np.zeros((3, 3))], [np.zeros((3, 3)), m * np.eye(3)]])
        for p in center + corners @ R.T:
            row = np.zeros((3, 6 * bodies))
            row[:, own] = np.hstack([np.cross(p - above, F), F])
            if k:
                row[:, 6 * k - 6:6 * k] = -np.hstack([np.cross(p - com, F), F])
            H.append(row)
        com = above
    H, v = np.vstack(H), rng.normal(size=6 * bodies) * rng.choice([0, 1e-6, 1e-3, 1.0])
    if rng.random() < 0.5:
        v = v + np.tile([0, 0, 0, 0, 0, -9.81 * 2e-3], bodies)
    b = H @ (v + np.tile([0, 0, 0, *rng.normal(size=2), -1.0], bodies) * rng.choice([0, 1.0]))
    if rng.random() < 0.5:
        b[::3] *= 1 + rng.uniform() * (b[::3] < 0)
    noise = 10.0 ** rng.uniform(-15, -8) * rng.normal(size=len(b))
    b += np.where(np.arange(len(b)) % 3 == 0, noise, 0.0) * rng.integers(2)
    return np.linalg.solve(np.linalg.cholesky(M), H.T).T, b, mu


def approach(rng, H, rows):
    """b (k): velocities of the corners, those along the normals each with a restitution or a rounding of its own."""
    b = H @ np.r_[rng.normal(size=3) * rng.choice([0.0, 1e-6, 1.0]), rng.normal(size=2) * rng.choice([0.0, 1.0]), -1.0]
    if rng.random() < 0.5:
        b[::rows] *= 1.0 + rng.uniform(0.0, 1.0) * (b[::rows] < 0.0)
    return b + np.where(np.arange(len(b)) % rows == 0, 10.0 ** rng.uniform(-15, -8) * rng.normal(size=len(b)), 0.0)


def solved(Y, b, rows, mu):
    """Impulses, and the status, of contacts with as many rows each."""
    count = len(b) // rows
    Y = np.ascontiguousarray(Y)  # the kind of array for which it is compiled already
    problem = Coulomb(Y, b, rows * np.arange(count), np.full(count, rows), np.full(count, mu), np.zeros(count, bool),
                      np.zeros((count, 3)), np.full(count, -1.0))
    P = np.zeros(len(b))
    return P, solve_coulomb(problem, 0.0, P)[0]


def off(Y, b, rows, mu, P):
    """The largest violation of a condition, relative to impulses and motions; of complementarity the products."""
    u, largest, unit = Y @ (Y.T @ P) + b, max(P.max(), 1.0), np.abs(b).max()
    P, u = P.reshape(-1, rows) / largest, u.reshape(-1, rows) / unit
    friction, slip = np.linalg.norm(P[:, 1:], axis=1), np.linalg.norm(u[:, 1:], axis=1)
    power = mu * P[:, 0] * slip + (P[:, 1:] * u[:, 1:]).sum(axis=1)
    return max(-P[:, 0].min(), -u[:, 0].min(), np.abs(P[:, 0] * u[:, 0]).max(), (friction - mu * P[:, 0]).max()
               if rows > 1 else 0.0, np.abs(power).max() if rows > 1 else 0.0)


def test_impulses_of_dependent_contacts():
    """Every condition holds; without friction the motion is that of the quadratic program."""
    rng, left = np.random.default_rng(3), []
    for case in range(400):
        H, inertia, rows = touching(rng)
        Y, b, mu = H / np.sqrt(inertia), approach(rng, H, rows), rng.uniform(0.0, 2.0)
        P, status = solved(Y, b, rows, mu)
        left.append(off(Y, b, rows, mu, P))
        assert status == SOLVED, case
        z = np.linalg.lstsq(Y, -b, rcond=None)[0]
        if rows == 1 and np.abs(Y @ z + b).max() < 1e-12:  # b is in the range of Y: nonnegative least squares
            np.testing.assert_allclose(Y.T @ P, Y.T @ nnls(Y.T, z)[0], rtol=0.0, atol=1e-9 * np.abs(b).max())
    # where contacts contradict each other by 1e-8 the path of some ends as near as that
    assert max(left) < 1e-7 and np.mean(np.array(left) < 1e-10) > 0.98


HARD = (196, 1673, 2812, 8506, 12296, 14236, 18209, 20285, 24212, 36842, 39080, 42700, 46875, 52298, 53299, 59425)
"""Stacks, of sixty thousand, whose paths end early, or which have too many contacts by 1e-9."""


def test_impulses_in_stacks():
    """Friction makes the conditions hard: some contacts open by next to nothing, and paths turn back."""
    for seed in (*range(200), *HARD):
        Y, b, mu = stacked(np.random.default_rng(seed))
        P, status = solved(Y, b, 3, mu)
        assert status == SOLVED, seed
        assert not P.any() or off(Y, b, 3, mu, P) < 1e-6, seed


def test_squeezed_contacts_have_no_impulses():
    """Two walls that close in on a body from both sides: no motion has both gaps open, and that is said."""
    Y = np.array([[1.0, 0.0], [-1.0, 0.0]])
    assert solved(Y, np.array([-1.0, -0.5]), 1, 0.0)[1] == NOT_SOLVED
    P, status = solved(Y, np.array([-1.0, 1.5]), 1, 0.0)
    assert status == SOLVED and P == pytest.approx([1.0, 0.0])


def test_loads_are_shared_evenly():
    """A flat impact on the corners of a square and of a hexagon."""
    for n in (4, 6):
        angles = 2.0 * np.pi * np.arange(n) / n
        H = np.column_stack([0.2 * np.sin(angles), -0.2 * np.cos(angles), np.zeros((n, 3)), np.ones(n)])
        P, status = solved(H / np.sqrt([0.02, 0.02, 0.03, 1, 1, 1]), -np.ones(n), 1, 0.0)
        assert status == SOLVED and P == pytest.approx(np.full(n, 1.0 / n), rel=1e-12)


# ---- runs


@pytest.mark.parametrize("options", [{}, {"method": "moreau"}], ids=str)
def test_bodies_that_fall_on_faces(options):
    """Any shape, friction and restitution, flat, nearly flat or tumbling: nothing stops, no law is broken."""
    for seed in range(24):
        rng = np.random.default_rng(1000 + seed)
        friction = rng.uniform(0.0, 2.0) if seed % 3 else 0.0
        robot = body(random_corners(rng), rng.choice([0.0, rng.uniform(), 0.5]), friction, 10.0 ** rng.uniform(-1, 1))
        tilt = (np.zeros(3), rng.normal(size=3) * 0.02, rng.uniform(-2, 2, 3))[seed % 4 % 3]
        q = above_floor(robot, tilt, rng.uniform(0.005, 0.1))
        v = rng.normal(size=6) if seed % 2 else np.zeros(6)
        tr = ld.simulate(robot, q, v, 0.6, dt=2e-3, **options)
        assert tr.t[-1] == 0.6, seed
        check_laws(robot, tr, stepping=True)


def test_boxes_come_to_rest_on_faces():
    """The default call."""
    sides = np.array([0.3, 0.2, 0.1])
    for seed, friction in enumerate((0.4, 0.8, 0.4)):
        robot, rng = body(box(sides), 0.3, friction), np.random.default_rng(seed)
        tr = ld.simulate(robot, above_floor(robot, rng.normal(size=3), 0.1), np.zeros(6), 2.5, dt=2e-3)
        assert np.abs(tr.v[-1]).max() < 1e-6 and np.abs(tr.q[-1, 6] - 0.5 * sides).min() < 1e-5
        push = sum(-tr[f"c{k}.gap"][-1] for k in range(8))
        assert push == pytest.approx(2.0 * G, rel=1e-6)


@pytest.mark.parametrize("method", ["RK45", "DOP853"])
def test_adaptive_methods_shorten_steps_that_cannot_be_made(method):
    """Free fall lets steps grow beyond what a contact allows: the motion is the same for any end of the run."""
    corners = np.array([[x, y, 0.0] for x in (-0.5, 0.5) for y in (-0.4, 0.4)])
    for friction in (0.0, 0.6):
        robot, ends = body(corners, 0.0, friction), []
        q = above_floor(robot, [0.04, 0.01, 0.0], 0.2)
        for t_final in (0.5, 1.0, 4.0):
            tr = ld.simulate(robot, q, np.zeros(6), t_final, method=method)
            assert tr.t[-1] == t_final and np.abs(gaps(robot, tr.q[-1])).max() < 1e-9
            ends.append([event.t for event in tr.events][:4])
            check_laws(robot, tr)
        np.testing.assert_allclose(ends, [ends[0]] * 3, rtol=0.0, atol=1e-7)  # the tolerance is 1e-8 of the motion


def test_flat_drop_stays_flat():
    """A symmetric drop: the motion is unique, and has no reason to turn."""
    for friction in (0.0, 0.5):
        robot = body(box([0.3, 0.2, 0.1]), 0.5, friction)
        tr = ld.simulate(robot, above_floor(robot, np.zeros(3), 0.2), np.zeros(6), 1.0, dt=2e-3)
        assert np.abs(tr.v[:, :5]).max() < 1e-9 and np.abs(tr.q[:, :3]).max() < 1e-10


def test_stack_of_boxes():
    """Corners on the face of the box below, which may move: it stands in the end, and the floor carries all of it."""
    sides, masses = ([0.3, 0.3, 0.1], [0.2, 0.25, 0.15], [0.15, 0.15, 0.1]), (2.0, 1.0, 0.5)
    robot, height, places = stack(sides, masses, 0.0, 0.6, slice(1, None, 2)), 0.0, []
    for k, a in enumerate(sides):
        places += [0.01 * k, -0.02 * k, 0.0, 0.0, 0.0, height + 0.5 * a[2] + 0.02 * (k + 1)]
        height += a[2]
    q = ld.integrate(robot, robot.neutral, places)
    for options in ({}, {"method": "moreau"}):
        tr = ld.simulate(robot, q, np.zeros(18), 0.8, dt=2e-3, **options)
        assert tr.t[-1] == 0.8 and np.abs(tr.v[-1]).max() < 1e-6
        assert gaps(robot, tr.q).min() > -1e-5 and len(one_sided(robot)) == 12
        assert sum(-tr[f"c0_{n}.gap"][-1] for n in range(4)) == pytest.approx(3.5 * G, rel=1e-6)


def test_more_corners_than_can_rest():
    """In one step of time-stepping five corners, no four in a plane, have been let down: not all of them can stay."""
    corners = np.array([
        [-0.1983805336970591, -0.06848702572941276, -0.09340272271013775],
        [-0.12712331399434854, -0.023668710243213677, -0.18150656029124324],
        [0.13585009279705829, 0.02186767779657803, 0.03311982260442918],
        [-0.012837780349436459, 0.028595089335848086, 0.046275010259645394],
        [-0.03807414631697782, -0.15909652501975477, 0.05566341839783456],
        [-0.054376646123966796, 0.02741801613416474, -0.0001631642934930705],
        [-0.028449618651154238, 0.07974778155461672, 0.07608404022860285],
        [0.207816803195586, 0.030847843183369843, 0.09575389421428998],
        [0.11557514314029871, 0.0627758529878038, -0.031823738409927985]])
    robot = body(corners, 0.0, 0.3635993047924199, 3.273042313973998)
    q = [0.008144456405949645, 0.0, 0.0, 0.999966833364913, 0.0, 0.0, 0.26083757411880726]
    v = [0.22429351471795123, 2.8044239360080336, 1.6004184432714048,
         -0.5314323069093001, -0.282522054517065, 0.09532475741632296]
    tr = ld.simulate(robot, q, v, 1.5, dt=2e-3, method="moreau", progress=False)
    assert gaps(robot, tr.q).min() > -1e-5 and np.abs(tr.v[-1]).max() < 1e-9
    assert (np.diff(tr.energy) < 1e-9).all()
