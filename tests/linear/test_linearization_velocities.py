"""Linearization where velocities have fewer dimensions than positions, where constraints move, and where some are off.

The exact A and B against Kane's equations linearized by SymPy, and against differences on the manifold for every kind.
"""
import numpy as np
import pytest
from closed_chains import difference, off, two_branches
from mechanisms import random_pose, random_q
from tree_cases import bundled

import liedyn as ld
from liedyn.linear.local import linearize_in_place, linearize_size
from liedyn.linear.space import Coordinates, LocalSpace
from liedyn.machine.errors import ClosureError, InputError
from liedyn.mechanics.constraints.independent import choose_positions, choose_speeds
from liedyn.mechanics.dynamics.nullspace import RANK_TOLERANCE
from liedyn.mechanics.dynamics.state import State

KANES = "Kane's equations, linearized by SymPy"
KANE = 1e-8
"""What the project promises; both sides are exact to rounding, which SymPy's expressions of some pages magnify."""


def differentiated(robot, q, v, tau, ss):
    """f0, A, B of x = (y, w), all of them one-dof coordinates of the tree, by differences on the manifold."""
    count = ss.K.shape[1]
    picks_y = [robot.velocity_names.index(name) for name in ss.states[:count]]
    picks_w = [robot.velocity_names.index(name.removeprefix("velocity:")) for name in ss.states[count:]]
    R_y, R_w = np.eye(robot.nv)[picks_y], np.eye(robot.nv)[picks_w]
    mask = np.array([robot.row_names[k] in positions_of(robot) for k in range(len(robot.row_names))])

    def rate(y, w, u):
        near = q + ss.K @ (y - q[picks_y])
        for _ in range(8):
            Z = np.vstack([ld.constraint_jacobian(robot, near)[mask], R_y])
            error = np.concatenate([-ld.closure_error(robot, near)[mask], y - near[picks_y]])
            near = near + np.linalg.lstsq(Z, error, rcond=1e-9)[0]
        Z = np.vstack([ld.constraint_jacobian(robot, near), R_w])
        right = np.concatenate([-ld.velocity_error(robot, near, 0.0 * v), w])
        speed = np.linalg.lstsq(Z, right, rcond=1e-9)[0]
        a = ld.forward_dynamics(robot, near, speed, tau + robot.actuator_matrix @ u, independent="tangent").a
        return np.concatenate([speed[picks_y], a[picks_w]])

    x, u = np.concatenate([q[picks_y], v[picks_w]]), np.zeros(len(robot.actuator_names))
    A = [difference(lambda s, e=e: rate(*np.split(x + s * e, [count]), u)) for e in np.eye(len(x))]
    B = [difference(lambda s, e=e: rate(*np.split(x, [count]), s * e), 1.0) for e in np.eye(len(u))]
    return rate(*np.split(x, [count]), u), np.stack(A, axis=-1), np.stack(B, axis=-1)


def positions_of(robot):
    from liedyn.mechanics.constraints.independent import holonomic

    return {name for name, counts in zip(robot.row_names, holonomic(robot)) if counts}


def consistent(robot, rng, q):
    """A state on the manifold near q."""
    for _ in range(60):
        step = -np.linalg.pinv(ld.constraint_jacobian(robot, q), rcond=1e-7) @ ld.closure_error(robot, q)
        q = ld.integrate(robot, q, step * min(1.0, 0.5 / np.abs(step).max(initial=1e-300)))
    v = rng.normal(size=robot.nv)
    v -= np.linalg.pinv(ld.constraint_jacobian(robot, q), rcond=1e-9) @ ld.velocity_error(robot, q, v)
    return q, v, rng.normal(size=robot.nv)


def sway(t):
    s, c = np.sin(2.0 * t), np.cos(2.0 * t)
    return [0.3 * s, 0.1 * t, 0.2 * t * t], [0.6 * c, 0.1, 0.4 * t], [-1.2 * s, 0.0, 0.4]


CONTACTS = {
    "distance": {"length": 0.7},
    "on_plane": {"axis": (0.3, -0.2, 0.9)},
    "on_cylinder": {"radius": 0.4, "axis": (0.1, 1.0, 0.2)},
    "on_circle": {"radius": 0.4, "axis": (1.0, 0.5, 0.2)},
    "knife_edge": {"child_axis": (0.2, 1.0, -0.3)},
    "disk_on_plane": {"radius": 0.3, "axis": (0.1, 0.2, 1.0), "child_axis": (0.3, 1.0, 0.4)},
    "sphere_on_plane": {"radius": 0.3},
    "sphere_on_sphere": {"radius": 0.2, "parent_radius": 0.5},
    "coupling": {},
}
CUTS = {"spherical": {}, "revolute": {"axis": (0.2, 0.3, 1.0)}}
ONE_DOF = {"kinds_a": ("universal", "prismatic"), "kinds_b": ("revolute", "cylindrical", "revolute")}


@pytest.mark.parametrize("target", [None, sway], ids=["fixed", "moving"])
@pytest.mark.parametrize("kind", [*CONTACTS, *CUTS])
def test_every_kind(kind, target):
    rng = np.random.default_rng([7, len(kind)])
    builder, (a, b) = two_branches(rng, **ONE_DOF)
    if kind in CUTS:
        open_robot = builder.build()
        q = random_q(rng, open_robot)
        poses = dict(zip(open_robot.body_names, ld.forward_kinematics(open_robot, q)))
        frame = random_pose(rng)
        place = np.linalg.inv(poses[b]) @ poses[a] @ frame
        builder.loop("tie", kind, a, b, parent_placement=frame, child_placement=place, target=target, **CUTS[kind])
    elif kind == "coupling":
        moved = None if target is None else (lambda t: (np.sin(t), np.cos(t), -np.sin(t)))
        builder.constraint("tie", kind, coefficients={"j_trunk": 1.5, "j_b0": -0.4}, offset=0.2, target=moved)
    else:
        builder.constraint("tie", kind, a, b, random_pose(rng), random_pose(rng), target=target, **CONTACTS[kind])
    builder.constraint("idle", "knife_edge", "ground", a, child_axis=(1.0, 0.0, 0.0), active=False)
    builder.constraint("edge", "knife_edge", "ground", b, child_axis=(0.3, 0.2, 1.0))
    robot = builder.build().at(0.2)
    q, v, tau = consistent(robot, rng, q if kind in CUTS else random_q(rng, robot.at(0.2)))
    ss = ld.linearize(robot, q, v, tau)
    expected = differentiated(robot, q, v, tau, ss)
    assert ss.K.shape[1] > ss.S.shape[1]
    # the step of 1e-3 leaves 1e-7 where contacts are close to the axis or centre of what they touch; a wrong or
    # missing term shows at 1e-3 and above
    for mine, other in zip((ss.f0, ss.A, ss.B), expected):
        assert off(mine, other) < 2e-7
    w = v[[robot.velocity_names.index(name.removeprefix("velocity:")) for name in ss.states[ss.K.shape[1]:]]]
    np.testing.assert_allclose(ss.S @ w + ss.drift, v, atol=1e-12)
    assert off(ld.constraint_jacobian(robot, q) @ ss.drift, -ld.velocity_error(robot, q, 0.0 * v)) < 1e-10
    assert (np.abs(ss.drift).max() > 1e-3) == (target is not None)


def test_workspace_is_large_enough():
    """Nothing is taken beyond the size, whatever the workspace held before: the cart has all that takes most."""
    robot = bundled("shopping_cart").switched(stick=False)
    q, v, tau = consistent(robot, np.random.default_rng(1), np.array([0.1, -0.2, 0.3, 0.4]))
    y = choose_positions(robot, q, None, RANK_TOLERANCE)
    w = choose_speeds(robot, q, y, None, RANK_TOLERANCE)
    nu = 4
    size = linearize_size(robot.packed, 4, 2, nu)
    work = np.full(size + 64, 1e300)
    n, m, x = 4, 3, 6
    space = LocalSpace(*(np.full(shape, np.nan) for shape in (
        (x, x), (x, nu), x, 2, n, m, m, m, (m, n), (n, 8), (n, 8), (n, 8), (n, 16), (n, 16))))
    found = linearize_in_place(
        robot.packed, State(q, v, tau, np.empty(0)), Coordinates(y.rows, y.virtual, w.rows, w.virtual),
        robot.actuator_matrix.copy(), RANK_TOLERANCE, work, space)
    assert found[0] == found[3] == 0 and work[0] <= size and (work[size:] == 1e300).all()
    # to rounding: what LLVM makes of the same kernel depends on what calls it
    np.testing.assert_allclose(space.A, ld.linearize(robot, q, v, tau).A, rtol=1e-12, atol=1e-12)


def test_switched_sets():
    """A switch changes the number of states; what is off does not count, whatever its rows would say."""
    cart = bundled("shopping_cart")
    q = np.array([0.1, -0.2, 0.3, 0.4])
    for switches, sizes in (({}, (4, 2)), ({"wheel": False}, (4, 3)), ({"wheel": False, "rear": False}, (4, 4))):
        robot = cart.switched(switches)
        _, v, tau = consistent(robot, np.random.default_rng(0), q)
        ss = ld.linearize(robot, q, v, tau)
        assert (ss.K.shape[1], ss.S.shape[1]) == sizes
        expected = differentiated(robot, q, v, tau, ss)
        assert off(ss.A, expected[1]) < 1e-8 and off(ss.B, expected[2]) < 1e-8


def test_broken_constraints_are_named():
    cart = bundled("shopping_cart")
    q, v = np.array([0.1, -0.2, 0.3, 0.4]), np.array([1.0, 0.0, 0.0, 0.0])
    with pytest.raises(InputError, match="constraint '(rear|wheel)'"):
        ld.linearize(cart, q, v, 0.0 * v)
    disk = bundled("rolling_disk")
    with pytest.raises(ClosureError, match="constraint 'rolls'"):
        ld.linearize(disk, disk.home + [0.0, 0.1, 0.0], np.zeros(3), np.zeros(3))
    rest = np.zeros(4)
    with pytest.raises(InputError, match="2 degrees of freedom"):
        ld.linearize(cart, q, rest, rest, speeds=("cart.x",))
    with pytest.raises(InputError, match="4 degrees of freedom"):
        ld.linearize(cart, q, rest, rest, independent=("cart.x", "cart.angle"), speeds=("cart.x", "cart.angle"))


# ---- Kane's equations, linearized by SymPy


def kane(robot, q, v, a, order_q, order_u, frames, fixed, rolling):
    """A and B of SymPy's KanesMethod.linearize, with the speeds qdot, forces on every coordinate, and numbers put in.

    `frames(q, u, tau)` gives the frame of the ground, the bodies, the loads and the parts that `fixed` (constraints on
    configurations) and `rolling` (on velocities) need. Orders list independent coordinates and speeds, then the rest.
    """
    sympy = pytest.importorskip("sympy")
    from sympy.physics import mechanics as me

    n = len(q)
    qs, us, taus = me.dynamicsymbols(f"q:{n}"), me.dynamicsymbols(f"u:{n}"), me.dynamicsymbols(f"tau:{n}")
    t = me.dynamicsymbols._t
    N, bodies, loads, parts = frames(qs, us, taus)
    (i_q, d_q), (i_u, d_u) = order_q, order_u
    configuration = sympy.Matrix(fixed(qs, parts))
    rates = configuration.diff(t).subs({x.diff(t): u for x, u in zip(qs, us)})
    speeds = sympy.Matrix([*rates, *rolling(qs, us, parts)])
    method = me.KanesMethod(
        N, [qs[k] for k in i_q], [us[k] for k in i_u], [u - x.diff(t) for x, u in zip(qs, us)],
        q_dependent=[qs[k] for k in d_q], configuration_constraints=list(configuration),
        u_dependent=[us[k] for k in d_u], velocity_constraints=list(speeds))
    method.kanes_equations(bodies, loads)
    point = {x.diff(t): value for x, value in zip(qs, v)} | {u.diff(t): value for u, value in zip(us, a)}
    point |= dict(zip(us, v)) | dict(zip(qs, q)) | dict.fromkeys(taus, 0.0)
    linearizer = method.to_linearizer()
    M, A, B = linearizer.linearize(op_point=point)
    r = list(linearizer.r)
    numbers = [np.array(X.subs(point).evalf(30).tolist(), dtype=float) for X in (M, A, B)]
    places = [r.index(x) for x in taus]
    pick = np.array(linearizer.perm_mat.tolist(), dtype=float).T
    return pick @ np.linalg.solve(numbers[0], numbers[1]), pick @ np.linalg.solve(numbers[0], numbers[2])[:, places]


def rolling_disk():
    """A thin disk on six one-dof joints: position, then yaw, lean and spin; it rolls on the ground."""
    builder = ld.Builder("disk", gravity=(0.0, 0.0, -9.81))
    steps = [("x", "prismatic", (1, 0, 0)), ("y", "prismatic", (0, 1, 0)), ("z", "prismatic", (0, 0, 1)),
             ("yaw", "revolute", (0, 0, 1)), ("lean", "revolute", (1, 0, 0)), ("spin", "revolute", (0, 1, 0))]
    parent = "ground"
    for name, kind, axis in steps:
        body = "disk" if name == "spin" else f"carrier_{name}"
        builder.body(body, *((2.0, (0, 0, 0), (0.05, 0.1, 0.05)) if body == "disk" else ()))
        builder.joint(name, kind, parent, body, axis=axis)
        parent = body
    builder.constraint("rolls", "disk_on_plane", "ground", "disk", radius=0.3, child_axis=(0, 1, 0))
    return builder.build()


@pytest.mark.validation("A and B of rolling", robots="rolling disk", oracle=KANES)
def test_rolling_disk_against_kane():
    sympy = pytest.importorskip("sympy")
    from sympy.physics import mechanics as me

    robot, r = rolling_disk(), 0.3
    lean = 0.3
    q = np.array([0.2, -0.1, r * np.cos(lean), 0.4, lean, 0.7])
    v = ld.complete_velocity(robot, q, {"yaw": 0.6, "lean": -0.3, "spin": 4.0})
    ss = ld.linearize(robot, q, v, np.zeros(6), independent=("x", "y", "yaw", "lean", "spin"),
                      speeds=("yaw", "lean", "spin"))

    def frames(qs, us, taus):
        x, y, z, yaw, lean, spin = qs
        N, O = me.ReferenceFrame("N"), me.Point("O")
        Y = N.orientnew("Y", "Axis", [yaw, N.z])
        L = Y.orientnew("L", "Axis", [lean, Y.x])
        D = L.orientnew("D", "Axis", [spin, L.y])
        Y.set_ang_vel(N, us[3] * N.z)
        L.set_ang_vel(Y, us[4] * Y.x)
        D.set_ang_vel(L, us[5] * L.y)
        O.set_vel(N, 0)
        C = O.locatenew("C", x * N.x + y * N.y + z * N.z)
        C.set_vel(N, us[0] * N.x + us[1] * N.y + us[2] * N.z)
        disk = me.RigidBody("disk", C, D, 2, (me.inertia(D, sympy.Rational(1, 20), sympy.Rational(1, 10),
                                                         sympy.Rational(1, 20)), C))
        force = taus[0] * N.x + taus[1] * N.y + taus[2] * N.z - sympy.Rational(981, 50) * N.z
        loads = [(C, force), (Y, taus[3] * N.z - taus[4] * Y.x), (L, taus[4] * Y.x - taus[5] * L.y),
                 (D, taus[5] * L.y)]
        contact = C.locatenew("P", -sympy.Rational(3, 10) * L.z)
        contact.v2pt_theory(C, N, D)
        return N, [disk], loads, (N, contact)

    def fixed(qs, parts):
        return [qs[2] - sympy.Rational(3, 10) * sympy.cos(qs[4])]

    def rolls(qs, us, parts):
        N, contact = parts
        return [contact.vel(N).dot(N.x), contact.vel(N).dot(N.y)]

    A, B = kane(robot, q, v, ss.a, ([0, 1, 3, 4, 5], [2]), ([3, 4, 5], [0, 1, 2]), frames, fixed, rolls)
    assert off(ss.A, A) < KANE and off(ss.B, B) < KANE


@pytest.mark.validation("A and B of a knife edge", robots="Chaplygin's sleigh", oracle=KANES)
def test_sleigh_against_kane():
    """Chaplygin's sleigh: an edge off the centre of mass, on three one-dof joints."""
    sympy = pytest.importorskip("sympy")
    from sympy.physics import mechanics as me

    builder = ld.Builder("sleigh", gravity=(0.0, 0.0, -9.81))
    parent = "ground"
    steps = ("x", "prismatic", (1, 0, 0)), ("y", "prismatic", (0, 1, 0)), ("turn", "revolute", (0, 0, 1))
    for name, kind, axis in steps:
        body = "sleigh" if name == "turn" else f"carrier_{name}"
        builder.body(body, *((3.0, (0.4, 0.1, 0.0), (0.3, 0.3, 0.5)) if body == "sleigh" else ()))
        builder.joint(name, kind, parent, body, axis=axis)
        parent = body
    builder.constraint("edge", "knife_edge", "ground", "sleigh", child_axis=(0, 1, 0))
    robot = builder.build()
    q = np.array([0.3, -0.2, 0.5])
    v = ld.complete_velocity(robot, q, {"x": 1.3, "turn": -0.8})
    ss = ld.linearize(robot, q, v, np.zeros(3), independent=("x", "y", "turn"), speeds=("x", "turn"))

    def frames(qs, us, taus):
        N, O = me.ReferenceFrame("N"), me.Point("O")
        S = N.orientnew("S", "Axis", [qs[2], N.z])
        S.set_ang_vel(N, us[2] * N.z)
        O.set_vel(N, 0)
        P = O.locatenew("P", qs[0] * N.x + qs[1] * N.y)
        P.set_vel(N, us[0] * N.x + us[1] * N.y)
        C = P.locatenew("C", sympy.Rational(2, 5) * S.x + sympy.Rational(1, 10) * S.y)
        C.v2pt_theory(P, N, S)
        half = sympy.Rational(1, 2)
        sleigh = me.RigidBody("sleigh", C, S, 3, (me.inertia(S, half, half, half), C))
        return N, [sleigh], [(P, taus[0] * N.x + taus[1] * N.y), (S, taus[2] * N.z)], (N, S, P)

    def edge(qs, us, parts):
        N, S, P = parts
        return [P.vel(N).dot(S.y)]

    A, B = kane(robot, q, v, ss.a, ([0, 1, 2], []), ([0, 2], [1]), frames, lambda qs, parts: [], edge)
    assert off(ss.A, A) < KANE and off(ss.B, B) < KANE
