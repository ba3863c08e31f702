"""Contact in mechanisms: rocking, Painleve, redundant feet, ropes, surfaces, stops, loops, round trips."""
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import brentq
from contact_laws import check_laws, gaps
from papers import numbers
from test_contact import rod
from tolerances import tight
from tree_cases import bundled

import liedyn as ld

G = 9.81


def test_rocking_block():
    """Housner 1963: a rectangular block keeps 1 - 1.5 sin^2 alpha of its rate at each impact; friction holds it."""
    alpha, R = 0.2, 1.0
    b = ld.Builder("block", gravity=(0, -G, 0))
    b.body("block", mass=1.0, inertia=(R * R / 3,) * 3, com=(R * np.sin(alpha), R * np.cos(alpha), 0))
    b.joint("p", "planar", "ground", "block")
    for k, x in enumerate((0.0, 2 * R * np.sin(alpha))):
        b.constraint(f"c{k}", "on_plane", "ground", "block", child_placement=(x, 0, 0), axis=(0, 1, 0),
                     unilateral=True, friction=5.0)
    robot, tilt = b.build(), -0.1
    tr = ld.simulate(robot, [0, -2 * R * np.sin(alpha) * np.sin(tilt), tilt], [0, 0, 0], 1.5)
    hits = [event for event in tr.events if event.name.startswith("contact")]
    assert [event.name for event in hits] == ["contact c0", "contact c1"]
    for event in hits:
        assert event.v_after[2] / event.v_before[2] == pytest.approx(1 - 1.5 * np.sin(alpha) ** 2, abs=1e-9)
    check_laws(robot, tr)


@pytest.mark.parametrize("inertia", [(0.17, 0.17, 0.3), (0.05, 0.05, 0.1)])
@pytest.mark.parametrize("tilt, friction, method", [(0.0, 0.0, "rk4"), (0.05, 0.0, "DOP853"), (0.05, 0.5, "rk4")])
def test_table_drops_on_four_feet(inertia, tilt, friction, method):
    b = ld.Builder("table")
    b.body("top", mass=1.0, inertia=inertia)
    b.joint("free", "free", "ground", "top")
    for k, p in enumerate([(x, y, 0) for x in (-0.5, 0.5) for y in (-0.5, 0.5)]):
        b.constraint(f"c{k}", "on_plane", "ground", "top", child_placement=p, unilateral=True, friction=friction)
    robot = b.build()
    q = ld.integrate(robot, robot.neutral, np.r_[tilt, 0, 0, 0, 0, 0.2])
    tr = ld.simulate(robot, q, np.zeros(6), 0.5, method=method)
    normal = [robot.row_names.index(f"c{k}.gap") for k in range(4)]
    np.testing.assert_allclose(tr.lam[-1, normal], -G / 4, rtol=1e-6)
    assert np.abs(gaps(robot, tr)[-1]).max() < 1e-9 and tr.active[-1].all()
    check_laws(robot, tr)


@pytest.mark.parametrize("x, rests", [(0.3, True), (0.45, True), (0.55, False), (0.8, False)])
def test_redundant_feet_with_a_load_off_centre(x, rests):
    """The forces of smallest norm would pull at a foot; others push, as long as the load is between the feet."""
    b = ld.Builder("table")
    b.body("top", mass=1.0, inertia=(0.2, 0.2, 0.3), com=(x, 0.1, 0.1))
    b.joint("free", "free", "ground", "top")
    for k, p in enumerate([(x, y, 0) for x in (-0.5, 0.5) for y in (-0.5, 0.5)]):
        b.constraint(f"c{k}", "on_plane", "ground", "top", child_placement=p, unilateral=True, friction=0.6)
    robot = b.build()
    tr = ld.simulate(robot, robot.neutral, np.zeros(6), 0.3)
    assert (np.abs(tr.q[-1] - robot.neutral).max() < 1e-9) == rests and tr.active[-1].all() == rests
    if rests:  # force and moments balance
        push = -tr.lam[-1, [robot.row_names.index(f"c{k}.gap") for k in range(4)]]
        assert push.sum() == pytest.approx(G) and (push >= -1e-9).all()
        assert push @ [-0.5, -0.5, 0.5, 0.5] == pytest.approx(x * G)
        assert push @ [-0.5, 0.5, -0.5, 0.5] == pytest.approx(0.1 * G)
    check_laws(robot, tr)


def mass_point(name, kind, **kw):
    b = ld.Builder(name)
    b.body("m", mass=1.0)
    b.joint("p", "translational", "ground", "m")
    b.constraint("s", kind, "ground", "m", **kw)
    return b.build()


def test_rope():
    """Slack where v^2 / l + g cos a = 0; a parabola; taut again, with the speed along the rope taken."""
    robot, v0 = mass_point("rope", "distance", length=1.0, unilateral="below"), np.sqrt(3.5 * G)
    tr = ld.simulate(robot, [0, 0, -1.0], [v0, 0, 0], 2.0)
    slack, taut = tr.events[:2]
    assert (slack.name, taut.name) == ("release s", "contact s")
    assert -slack.q_before[2] == pytest.approx((2 * G - v0 ** 2) / (3 * G), abs=1e-9)
    flown = taut.t - slack.t
    np.testing.assert_allclose(taut.q_before, slack.q_after + slack.v_after * flown + [0, 0, -G / 2 * flown ** 2],
                               atol=1e-9)
    out = taut.q_after / np.linalg.norm(taut.q_after)
    np.testing.assert_allclose(taut.v_after, taut.v_before - out * (out @ taut.v_before), atol=1e-8)
    check_laws(robot, tr)


@pytest.mark.parametrize("kind", ["on_sphere", "on_cylinder"])
def test_outside_of_a_round_surface(kind):
    """Without friction it leaves where cos = 2/3 of the height it started from (from rest near the top)."""
    more = {"axis": (0, 1, 0)} if kind == "on_cylinder" else {}
    robot, start = mass_point("dome", kind, radius=1.0, unilateral=True, **more), 0.3
    tr = ld.simulate(robot, [np.sin(start), 0, np.cos(start)], [0, 0, 0], 1.2)
    event, = tr.events
    assert event.name == "release s" and event.q_before[2] == pytest.approx(2 / 3 * np.cos(start), abs=1e-9)
    check_laws(robot, tr)


@pytest.mark.parametrize("kind", ["on_sphere", "on_cylinder"])
def test_inside_of_a_round_surface(kind):
    """Down the wall of a bowl with friction: energy lost is the work of the friction; it sticks below arctan mu."""
    more = {"axis": (0, 1, 0)} if kind == "on_cylinder" else {}
    robot = mass_point("bowl", kind, radius=1.0, unilateral="below", friction=0.4, **more)
    tr = ld.simulate(robot, [0.9, 0, -np.sqrt(1 - 0.81)], [0, 0, 0], 3.0)
    # d(v^2)/da + 2 mu v^2 = 2 g (cos a - mu sin a), a from the horizontal: the first turn in closed form by quadrature
    stick = [event for event in tr.events if event.name == "stick s"][-1]
    angle = np.arctan2(abs(stick.q_after[0]), -stick.q_after[2])
    assert angle < np.arctan(0.4) and np.abs(tr.v[-1]).max() < 1e-9
    a0 = np.arctan2(np.sqrt(1 - 0.81), 0.9)
    found = solve_ivp(lambda a, y: [-0.8 * y[0] + 2 * G * (np.cos(a) - 0.4 * np.sin(a))], (a0, np.pi), [0.0],
                      rtol=1e-11, atol=1e-12, dense_output=True)
    k = np.flatnonzero(tr.v[:, 0] < -0.5)[-1]
    a = np.arctan2(-tr.q[k, 2], tr.q[k, 0])
    assert tr.v[k] @ tr.v[k] == pytest.approx(found.sol(a)[0], rel=1e-7)
    check_laws(robot, tr)


def painleve(friction):
    b = ld.Builder("rod", gravity=(0, -G, 0))
    b.body("rod", mass=1.0, inertia=(1 / 12,) * 3)
    b.joint("p", "planar", "ground", "rod")
    b.constraint("tip", "on_plane", "ground", "rod", child_placement=(0.5, 0, 0), axis=(0, 1, 0), unilateral=True,
                 friction=friction)
    return b.build()


@pytest.mark.parametrize("friction, jams", [(0.5, False), (1.5, True), (3.0, True)])
def test_painleve(friction, jams):
    """Accelerations contradict each other where 1 + 3 cos^2 - 3 mu sin cos < 0: there the tip is stopped at once.

    At 1 rad that is mu > 1.375.
    """
    robot, angle = painleve(friction), -1.0
    tr = ld.simulate(robot, [0, -0.5 * np.sin(angle), angle], [2.0, 0, 0], 0.2)
    assert (tr.events[:1] != () and tr.events[0].name == "jam tip") == jams
    if jams:
        tip = tr.events[0].v_after[:2] + tr.events[0].v_after[2] * 0.5 * np.array([-np.sin(angle), np.cos(angle)])
        assert np.abs(tip).max() < 1e-9 and tr.events[0].energy_loss > 0.0
    # pushed the other way friction only loosens it
    assert ld.simulate(robot, [0, -0.5 * np.sin(angle), angle], [-2.0, 0, 0], 0.2).events == ()


@pytest.mark.parametrize("method", ["rk4", "DOP853", "RK45"])
def test_moving_floor(method):
    """A floor that shakes: it throws the ball where its acceleration passes -g, and catches it where paths meet."""
    w, A = 12.0, 0.1
    b = ld.Builder("ball")
    b.body("ball", mass=1.0)
    b.joint("z", "prismatic", "ground", "ball")
    b.constraint("floor", "on_plane", "ground", "ball", unilateral=True, target=lambda t: (
        [0, 0, A * np.sin(w * t)], [0, 0, A * w * np.cos(w * t)], [0, 0, -A * w * w * np.sin(w * t)]))
    robot = b.build()
    tr = ld.simulate(robot, [0.0], [A * w], 1.0, method=tight(method))
    off = np.arcsin(G / A / w ** 2) / w
    z, rate = A * np.sin(w * off), A * w * np.cos(w * off)
    back = brentq(lambda t: z + rate * (t - off) - G / 2 * (t - off) ** 2 - A * np.sin(w * t), off + 0.2, off + 0.4)
    first, second = tr.events[:2]
    assert first.name == "release floor" and first.t == pytest.approx(off, abs=1e-8)
    assert second.name == "contact floor" and second.t == pytest.approx(back, abs=1e-8)
    check_laws(robot, tr, inputs=True)


def test_disk_slides_and_grips_without_switches():
    """Gillespie 2003: on a slope that is too steep for rolling friction slides; on a flatter one the disk grips."""
    disk = numbers("gillespie")["disk"]["params"]
    m, r, inertia = disk["m"], disk["r"], bundled("rolling_disk").model.bodies[0].inertia[2, 2]
    slope, mu = 0.3, 0.2
    b = ld.Builder("disk", gravity=(G * np.sin(slope), -G * np.cos(slope), 0))
    b.body("disk", mass=m, inertia=(inertia,) * 3)
    b.joint("p", "planar", "ground", "disk")
    b.constraint("floor", "disk_on_plane", "ground", "disk", radius=r, axis=(0, 1, 0), child_axis=(0, 0, 1),
                 unilateral=True, friction=mu)
    robot, v0 = b.build(), 3.0
    tr = ld.simulate(robot, [0, r, 0], [v0, 0, 0], 2.0)
    # slides with a = g sin - mu g cos, alpha = -mu m g cos r / I, until v + r omega = 0 (omega < 0 rolls downhill)
    a, turn = G * (np.sin(slope) - mu * np.cos(slope)), mu * m * G * np.cos(slope) * r / inertia
    grips = v0 / (r * turn - a)
    event, = tr.events
    assert event.name == "stick floor" and event.t == pytest.approx(grips, abs=1e-8)
    rolls = G * np.sin(slope) / (1 + inertia / m / r ** 2)
    assert tr.v[-1, 0] == pytest.approx(v0 + a * grips + rolls * (2.0 - grips), abs=1e-8)
    check_laws(robot, tr)


def test_restitution_that_would_gain_energy():
    """Kane's paradox: a slanted rod whose end hits with sliding; Newton's e = 1 gains energy with friction."""
    robot = rod(mu=0.8, e=1.0)
    lost = []
    with pytest.warns(ld.ContactWarning, match="restitution 1 would gain .* J of kinetic energy"):
        for angle in np.linspace(0.3, 1.2, 10):
            for vx in (-3.0, -1.0, 1.0, 3.0):
                tr = ld.simulate(robot, [0, 0.5 * np.sin(angle) + 1e-3, angle], [vx, -1.0, 0], 0.01)
                lost += [event.energy_loss for event in tr.events]
                check_laws(robot, tr)
    assert min(lost) > -1e-9


# ---- stops, loops, several bodies


def test_five_bar_against_a_stop():
    """A coupling as an end stop of one crank, in a closed loop: it hits, and goes on with e times the rate."""
    bar = ld.load("five_bar")
    free = ld.simulate(bar, bar.home, np.zeros(4), 0.3)
    down = free["q1"][-1] < free["q1"][0]
    b = ld.Builder.of(bar)
    b.constraint("stop", "coupling", coefficients={"q1": 1.0}, offset=float(free["q1"][200]),
                 unilateral="above" if down else "below", restitution=0.3)
    robot = b.build()
    tr = ld.simulate(robot, bar.home, np.zeros(4), 0.4)
    hit = tr.events[0]
    assert hit.name == "contact stop" and hit.t == pytest.approx(0.2, abs=1e-9)
    assert hit.v_after[0] == pytest.approx(-0.3 * hit.v_before[0], rel=1e-9)
    G_pin = ld.constraint_jacobian(bar, hit.q_after)
    assert np.abs(G_pin @ hit.v_after).max() < 1e-9 and tr.position_residual.max() < 1e-9
    dv = hit.v_after - hit.v_before  # M dv + G^T impulse = 0
    G = ld.constraint_jacobian(robot.switched(stop="sticking"), hit.q_after)
    np.testing.assert_allclose(ld.crba(robot, hit.q_after) @ dv, -G.T @ hit.impulse, atol=1e-9)
    check_laws(robot, tr)


def test_four_bar_whose_coupler_lands():
    """A point of a closed loop's coupler comes down on a floor and stays: one impact, no motion behind it."""
    bar = ld.load("four_bar")
    at = ld.pose(bar, bar.home, "coupler")
    free = ld.simulate(bar, bar.home, np.zeros(bar.nv), 0.5)
    height = np.array([(ld.pose(bar, q, "coupler") @ [0.1, 0, 0, 1])[1] for q in free.q])
    lands = int(np.flatnonzero(height < height[0] - 0.02)[0])
    b = ld.Builder.of(bar)
    b.constraint("floor", "on_plane", "ground", "coupler", parent_placement=(at[0, 3], height[lands], 0),
                 child_placement=(0.1, 0, 0), axis=(0, 1, 0), unilateral=True)
    robot = b.build()
    tr = ld.simulate(robot, bar.home, np.zeros(bar.nv), 0.5)
    hit, = [event for event in tr.events if event.name == "contact floor"]
    assert hit.t == pytest.approx(free.t[lands], abs=1e-8) and np.abs(hit.v_after).max() < 1e-9
    assert np.abs(tr.v[tr.t > hit.t]).max() < 1e-9 and tr.position_residual.max() < 1e-9
    check_laws(robot, tr)


@pytest.mark.parametrize("restitution", [0.0, 0.5])
def test_joint_limits_as_stops(restitution):
    """A pendulum between its limits: it hits at the speed that energy gives it."""
    b = ld.Builder("pendulum", gravity=(0, -G, 0))
    b.body("rod", mass=1.0, com=(0.5, 0, 0), inertia=(0.1, 0.1, 0.1))
    b.joint("hinge", "revolute", "ground", "rod", limits=(-2.0, 1.0))
    b.stops(restitution=restitution)
    robot = b.build()
    assert robot.constraint_names == ("hinge.lower", "hinge.upper")
    tr = ld.simulate(robot, [0.5], [0.0], 0.8)
    hit = tr.events[0]
    rate = np.sqrt(2 * 0.5 * G * (np.sin(0.5) - np.sin(-2.0)) / 0.35)
    assert hit.name == "contact hinge.lower" and hit.v_before[0] == pytest.approx(-rate, rel=1e-8)
    assert hit.v_after[0] == pytest.approx(restitution * rate, abs=1e-8)
    check_laws(robot, tr)


def test_round_trips(tmp_path):
    """Files and builders keep sides, restitution and friction: the same motion, to the last digit."""
    b = ld.Builder("m")
    b.body("m", mass=1.0)
    b.joint("p", "translational", "ground", "m")
    b.constraint("floor", "on_plane", "ground", "m", unilateral=True, restitution=0.25, friction=0.5)
    b.constraint("rope", "distance", "ground", "m", length=2.0, unilateral="below")
    robot = b.build()
    ld.save_toml(robot, tmp_path / "m.toml")
    runs = [ld.simulate(each, [0, 0, 0.5], [1, 0, 0], 0.5) for each in (
        robot, ld.load_toml(tmp_path / "m.toml"), ld.Builder.of(robot).build())]
    assert len(runs[0].events) > 0
    for run in runs[1:]:
        assert (run.q == runs[0].q).all() and [e.name for e in run.events] == [e.name for e in runs[0].events]


@pytest.mark.parametrize("arguments, text", [
    (dict(unilateral="up"), "unilateral: .*'up'"),
    (dict(restitution=0.5), "restitution.*unilateral"),
    (dict(friction=0.5), "friction.*unilateral"),
    (dict(unilateral=True, restitution=1.5), "restitution.*1.5"),
    (dict(unilateral=True, friction=-0.1), "friction.*-0.1"),
])
def test_wrong_arguments(arguments, text):
    b = ld.Builder("m")
    b.body("m", mass=1.0)
    b.joint("p", "translational", "ground", "m")
    with pytest.raises(ld.ModelError, match=text):
        b.constraint("floor", "on_plane", "ground", "m", **arguments)


def test_wrong_arguments_of_runs():
    robot = mass_point("m", "on_plane", unilateral=True)
    with pytest.raises(ld.InputError, match="stabilisation 'none' lets gaps drift"):
        ld.simulate(robot, [0, 0, 1], [0, 0, 0], 0.1, stabilisation="none")
    with pytest.raises(ld.InputError, match="accumulation"):
        ld.simulate(robot, [0, 0, 1], [0, 0, 0], 0.1, accumulation="stop")
    with pytest.raises(ld.LiedynError, match="'s' is 0.1 deep"):
        ld.simulate(robot, [0, 0, -0.1], [0, 0, 0], 0.1)
