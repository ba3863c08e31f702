"""Dry friction of joints that really sticks: analytic motions, laws beside contacts and in loops, files, and errors."""
import itertools

import numpy as np
import pytest
from contact_laws import check_laws
from scipy.optimize import minimize

import liedyn as ld
from benchmarks.drops import box
from liedyn.mechanics.contact.complementarity import SOLVED, Coulomb, solve_coulomb

METHODS = [{}, {"method": "moreau"}]


def slider(**law):
    """A mass of 2 kg on rails."""
    b = ld.Builder("slider", gravity=(0.0, 0.0, 0.0))
    b.body("m", 2.0, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
    b.joint("x", "prismatic", "ground", "m", axis=(1.0, 0.0, 0.0))
    b.actuator("push", "x")
    b.friction("rub", "x", width=0.0, **law)
    return b.build()


def arm(coulomb=(8.0, 1.5), static=(9.0, 2.5), stribeck=0.1):
    """Two links under gravity."""
    b = ld.Builder("arm")
    for name in "ab":
        b.body(name, 1.0, (0.2, 0.0, 0.0), (0.02, 0.02, 0.02))
    b.joint("a", "revolute", "ground", "a", axis=(0.0, 1.0, 0.0))
    b.joint("b", "revolute", "a", "b", axis=(0.0, 1.0, 0.0), placement=(0.4, 0.0, 0.0))
    for k, name in enumerate("ab"):
        b.friction(f"rub {name}", name, coulomb[k], static[k], stribeck, width=0.0)
    return b.build()


# ---- the problem of forces


def test_forces_of_joints_and_contacts_together():
    """Friction with given limits, without contacts: the quadratic program it is. With contacts: every condition."""
    rng = np.random.default_rng(4)
    for case in range(60):
        dry, corners = int(rng.integers(1, 5)), int(rng.integers(0, 4)) * (case % 2)
        rows = [2] * dry + [3] * corners
        order = rng.permutation(len(rows))
        count = np.array(rows)[order]
        first, k = np.cumsum(count) - count, int(count.sum())
        Y, b = rng.normal(size=(k, k + 3 - 2 * (case % 3))), rng.normal(size=k)
        is_dry = count == 2
        Y[first[is_dry]] = b[first[is_dry]] = 0.0
        limit = np.where(is_dry, rng.choice([0.0, 0.1, 1.0, 1e6], len(count)), -1.0)
        mu, P = np.where(is_dry, 1.0, 0.4), np.zeros(k)
        problem = Coulomb(Y, b, first, count, mu, np.zeros(len(count), bool), np.zeros((len(count), 3)), limit)
        assert solve_coulomb(problem, 0.0, P)[0] == SOLVED, case
        u = Y @ (Y.T @ P) + b
        for c, i in enumerate(first):
            N, t = P[i], slice(i + 1, i + count[c])
            assert N == limit[c] if is_dry[c] else min(N, u[i]) > -1e-8 and abs(N * u[i]) < 1e-7
            assert np.linalg.norm(P[t]) <= mu[c] * N + 1e-8
            assert mu[c] * N * np.linalg.norm(u[t]) + P[t] @ u[t] == pytest.approx(0.0, abs=1e-7 * max(1.0, N))
        if not corners:
            free = first + 1
            D, b, best = Y[free] @ Y[free].T, b[free], P[free]
            found = minimize(lambda x, D=D, b=b: 0.5 * x @ D @ x + x @ b, 0.0 * best, bounds=list(zip(-limit, limit)),
                             jac=lambda x, D=D, b=b: D @ x + b, method="L-BFGS-B")
            assert 0.5 * best @ D @ best + best @ b <= found.fun + 1e-9


# ---- one state


def test_modes_of_one_joint():
    robot = slider(coulomb=3.0, static=5.0, stribeck=0.2, viscous=0.1)

    def F(w):
        return 3.0 + 2.0 * np.exp(-(w / 0.2) ** 2) + 0.1 * abs(w)

    for w, push in ((0.0, 4.0), (0.0, -4.9), (0.0, 6.0), (0.5, 0.0), (-0.15, 1.0)):
        found = ld.forward_dynamics(robot, [0.0], [w], [push])
        sticks = w == 0.0 and abs(push) <= 5.0
        s = np.sign(w or push)
        assert found.contacts == {"rub": "sticking" if sticks else "sliding"}
        assert found.a == pytest.approx([0.0 if sticks else 0.5 * (push - s * F(w))], abs=1e-12)
        assert found.lam == pytest.approx([-5.0 if sticks else -F(w), push if sticks else s * F(w)], abs=1e-12)


def test_accelerations_of_two_joints():
    """All nine combinations of modes: one agrees with all conditions, and that is it."""
    robot, rng = arm(), np.random.default_rng(8)
    for _ in range(25):
        q, v = rng.uniform(-2, 2, 2), rng.normal(size=2) * rng.integers(0, 2, 2)
        tau = rng.normal(size=2) * [15.0, 4.0]
        M, h = ld.crba(robot, q), ld.rnea(robot, q, v, np.zeros(2))
        F, static = np.array([8.0, 1.5]) + np.array([1.0, 1.0]) * np.exp(-(v / 0.1) ** 2), np.array([9.0, 2.5])
        agree = []
        for modes in itertools.product((-1, 0, 1), repeat=2):
            s = np.where(v == 0.0, modes, np.sign(v))
            a, holds = np.zeros(2), s == 0
            free = np.flatnonzero(~holds)
            a[free] = np.linalg.solve(M[np.ix_(free, free)], (tau - h - F * s)[free]) if len(free) else []
            load = tau - h - M @ a
            fine = np.where(holds, np.abs(load) <= static, (v != 0.0) | (a * s > 0.0))
            if fine.all() and (s == np.where(v == 0.0, modes, s)).all():
                agree.append(a)
        assert ld.forward_dynamics(robot, q, v, tau).a == pytest.approx(agree[0], abs=1e-9)


def test_linear_models_of_joints_that_slide_and_stick():
    robot, rng = arm(), np.random.default_rng(9)
    for v in ([0.3, -0.2], [0.0, 0.15], [0.05, 0.0]):
        q, v, tau = rng.uniform(-1, 1, 2), np.array(v), np.array([0.5, 0.2])
        lin, sticks = ld.linearize(robot, q, v, tau), v == 0.0
        assert ("sticking" in ld.forward_dynamics(robot, q, v, tau).contacts.values()) == sticks.any()
        moving = np.flatnonzero(~sticks)
        h, x = 1e-6, np.r_[q, v]
        for k, j in enumerate(moving):
            row = lin.A[len(lin.A) - len(moving) + k]
            for l, name in enumerate(lin.states):
                at = robot.velocity_names.index(name.removeprefix("velocity:"))
                at += 2 * name.startswith("velocity:")
                step = h * (np.arange(4) == at)
                ends = [ld.forward_dynamics(robot, *np.split(x + s * step, 2), tau).a[j] for s in (1, -1)]
                assert row[l] == pytest.approx((ends[0] - ends[1]) / (2 * h), rel=1e-6, abs=1e-6)


# ---- runs


def belt(static=3.0, coulomb=2.0, stribeck=0.0, speed=0.1):
    """A mass of 1.5 kg, held by a spring of 40 N/m, on a belt."""
    b = ld.Builder("belt", gravity=(0.0, 0.0, 0.0))
    for name, stiffness in (("x", 40.0), ("belt", 0.0)):
        b.body(f"body {name}", 1.5, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
        b.joint(name, "prismatic", "ground", f"body {name}", axis=(1.0, 0.0, 0.0), stiffness=stiffness)
    b.constraint("drive", "coupling", coefficients={"belt": 1.0}, target=lambda t: np.array([speed * t, speed, 0.0]))
    b.friction("rub", {"x": 1.0, "belt": -1.0}, coulomb, static, stribeck, width=0.0)
    return b.build()


def test_stick_slip_on_a_belt():
    """The period in closed form: sticking at the belt's speed, then a part of a harmonic about the sliding friction."""
    robot, omega, way = belt(), np.sqrt(40.0 / 1.5), (3.0 - 2.0) / 40.0
    period = 2.0 / omega * (np.pi - np.arctan(way * omega / 0.1)) + 2.0 * way / 0.1
    tr = ld.simulate(robot, [0.0, 0.0], [0.1, 0.1], 8.0, dt=5e-3, progress=False)
    slips = [event.t for event in tr.events if event.name == "slip rub"]
    assert slips[0] == pytest.approx(3.0 / 40.0 / 0.1, abs=1e-9) and len(slips) >= 5
    assert np.diff(slips) == pytest.approx(period, abs=1e-8)
    stepped = ld.simulate(robot, [0.0, 0.0], [0.1, 0.1], 8.0, dt=1e-3, method="moreau", progress=False)
    sticks = stepped.status[:, 1] == 1
    begins = stepped.t[1:][sticks[:-1] & ~sticks[1:]]
    assert np.diff(begins) == pytest.approx(period, abs=4e-3)
    assert np.abs(stepped.q[-1] - tr.q[-1]).max() < 2e-3


def test_a_joint_stays_for_an_hour():
    robot, q = arm(), np.array([0.1, 0.2])
    for options in METHODS:
        tr = ld.simulate(robot, q, [0.0, 0.0], 3600.0, dt=0.5, progress=False, **options)
        assert np.abs(tr.q - q).max() < 1e-9 and np.abs(tr.v).max() < 1e-12 and not tr.events
        hold = ld.rnea(robot, q, np.zeros(2), np.zeros(2))
        assert [tr["rub a.force"][-1], tr["rub b.force"][-1]] == pytest.approx(-hold)


def test_energy_that_friction_takes():
    robot, ends = arm(), []
    for options, bound in zip(METHODS, (1e-5, 1e-2)):
        tr = ld.simulate(robot, [0.1, 0.2], [3.0, -6.0], 2.0, dt=1e-3, progress=False, **options)
        power = sum(tr[f"rub {name}.force"] * tr[f"velocity:{name}"] for name in "ab")
        lost = np.sum(0.5 * (power[1:] + power[:-1]) * np.diff(tr.t))
        assert lost > 3.0 and tr.energy[0] - tr.energy[-1] == pytest.approx(lost, abs=bound * lost)
        check_laws(robot, tr, stepping=True)
        ends.append(tr.q[-1])
        assert np.abs(tr.v[-1]).max() < 1e-9
    assert ends[1] == pytest.approx(ends[0], abs=5e-3)


@pytest.mark.parametrize("options", METHODS, ids=str)
def test_friction_in_loops(options):
    """More frictions than degrees of freedom: how they share a load is not determined, whether they hold it is."""
    plain = ld.load("four_bar")
    b = ld.Builder.of(plain)
    for name in plain.velocity_names:
        b.friction(f"rub {name}", name, coulomb=2.0, static=3.0, stribeck=0.05, width=0.0)
    robot = b.build()
    q = ld.close(robot, robot.home)
    v = ld.complete_velocity(robot, q, {plain.velocity_names[0]: 3.0})
    tr = ld.simulate(robot, q, v, 3.0, dt=2e-3, progress=False, **options)
    assert (np.diff(tr.energy) < 1e-9).all() and np.abs(tr.v[-1]).max() < 1e-9
    later = ld.simulate(robot, tr.q[-1], 0.0 * v, 5.0, dt=2e-2, progress=False, **options)
    assert np.abs(later.q - tr.q[-1]).max() < 1e-9


@pytest.mark.parametrize("options", METHODS, ids=str)
def test_friction_beside_contacts(options):
    """A box with an arm falls on the floor."""
    b = ld.Builder("box with arm")
    b.body("box", 2.0, (0.0, 0.0, 0.0), (0.02, 0.02, 0.02))
    b.body("arm", 1.0, (0.2, 0.0, 0.0), (0.01, 0.02, 0.02))
    b.joint("free", "free", "ground", "box")
    b.joint("hinge", "revolute", "box", "arm", axis=(0.0, 1.0, 0.0), placement=(0.0, 0.0, 0.1))
    for k, corner in enumerate(box([0.3, 0.3, 0.2])):
        b.constraint(f"c{k}", "on_plane", "ground", "box", child_placement=corner, unilateral=True, friction=0.5,
                     restitution=0.3)
    b.friction("rub", "hinge", coulomb=2.5, static=3.0, width=0.0)
    robot = b.build()
    q, v = robot.neutral.copy(), np.r_[np.zeros(6), 5.0]
    q[6] = 0.15
    tr = ld.simulate(robot, q, v, 1.5, dt=2e-3, progress=False, **options)
    assert (np.diff(tr.energy) < 1e-9).all() and np.abs(tr.v[-1]).max() < 1e-6
    weight = sum(-tr[f"c{k}.gap"][-1] for k in range(8))
    assert weight == pytest.approx(3.0 * 9.81, rel=1e-6) and abs(tr["rub.force"][-1]) <= 3.0
    assert ld.forward_dynamics(robot, tr.q[-1], 0.0 * v, 0.0 * v).contacts["rub"] == "sticking"


def test_stepper_steps_alike():
    robot = arm()
    stepper = ld.Stepper(robot, [0.1, 0.2], [3.0, -6.0], dt=1e-3, method="moreau")
    stepper.advance(700)
    tr = ld.simulate(robot, [0.1, 0.2], [3.0, -6.0], 0.7, dt=1e-3, method="moreau", progress=False)
    # a run bounds its energy at each step, a stepper does not
    assert stepper.q == pytest.approx(tr.q[-1], abs=1e-7) and stepper.v == pytest.approx(tr.v[-1], abs=1e-6)


def test_switches():
    robot = slider(coulomb=3.0)
    held, free = robot.switched(rub="sticking"), robot.switched(rub=False)
    assert ld.forward_dynamics(held, [0.0], [0.0], [50.0]).a == pytest.approx([0.0], abs=1e-12)
    assert ld.forward_dynamics(free, [0.0], [1.0], [50.0]).a == pytest.approx([25.0])


def test_locked_joints_lose_their_friction():
    b = ld.Builder.of(arm())
    b.friction("geared", {"a": 1.0, "b": -2.0}, 1.0, width=0.0)
    left = ld.reduced(b.build(), {"a": 0.3})
    assert left.constraint_names == ("rub b", "geared")
    assert left.model.constraints[1].coefficients == {"b": -2.0}
    changed = ld.Builder.of(left)
    changed.change("constraint", "geared", coulomb=7.0)
    changed.change("constraint", "rub b", width=0.01)
    robot = changed.build()
    assert robot.element_names == ("rub b",) and robot.constraint_names == ("geared",)
    assert ld.forward_dynamics(robot, [1.5], [0.0], [13.0]).contacts == {"geared": "sticking"}


# ---- files and errors


URDF = """<robot name="r"><link name="a"/><link name="b"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"
ixy="0" ixz="0" iyz="0"/></inertial></link><joint name="j" type="continuous"><parent link="a"/><child link="b"/>
<axis xyz="0 0 1"/><dynamics damping="0.1" friction="0.7"/></joint></robot>"""
MJCF = """<mujoco><worldbody><body name="b"><joint name="j" axis="0 0 1" frictionloss="0.7" damping="0.1"/>
<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/></body></worldbody></mujoco>"""


@pytest.mark.parametrize("suffix", [".urdf", ".xml"])
def test_friction_of_files(tmp_path, suffix):
    if suffix == ".xml":
        pytest.importorskip("mujoco")
    path = tmp_path / f"r{suffix}"
    path.write_text(URDF if suffix == ".urdf" else MJCF)
    robot = ld.load(path, friction=0.0)
    for _ in range(2):  # as read, and as written and read
        assert robot.contacts == {"j friction": "open"} and robot.element_names == ()
        found = ld.forward_dynamics(robot, [0.0], [0.5], [0.0])
        assert found.a == pytest.approx([-0.75]) and found.contacts == {"j friction": "sliding"}
        ld.save(robot, path)
        robot = ld.load(path, friction=0.0)


def test_friction_in_toml(tmp_path):
    b = ld.Builder.of(arm())
    b.friction("geared", {"a": 1.0, "b": -2.0}, 1.0, 2.0, 0.0, 0.5, width=0.0, active="sticking")
    robot = b.build()
    ld.save(robot, tmp_path / "arm.toml")
    again = ld.load(tmp_path / "arm.toml")
    assert again.contacts == robot.contacts and again.contacts["geared"] == "sticking"
    for before, after in zip(robot.packed, again.packed):
        np.testing.assert_array_equal(before, after)


def test_errors():
    b = ld.Builder.of(slider(coulomb=1.0))
    for wrong, words in (({"coulomb": 0.0}, "must have a limit"), ({"coulomb": 1.0, "static": 0.5}, "static"),
                         ({"coulomb": 1.0, "stribeck": -1.0}, "stribeck"),
                         ({"coulomb": 1.0, "active": "stuck"}, "stuck")):
        with pytest.raises(ld.ModelError, match=words):
            b.friction("more", "x", width=0.0, **wrong)
    with pytest.raises(ld.ModelError, match="width=0"):
        b.friction("more", "x", 1.0, active=False)
    with pytest.raises(ld.ModelError, match="dry_friction"):
        b.constraint("more", "dry_friction", coefficients={"x": 1.0})
    robot = slider(coulomb=1.0)
    said = r"dry friction of joints that sticks, 'rub': declare it smooth instead, Builder.friction\(..., width=1e-3\)"
    with pytest.raises(ld.InputError, match=said):
        ld.differentiate_run(robot, [0.0], [1.0], 0.1, dt=0.01)
    with pytest.raises(ld.InputError, match=said):
        ld.ddp(robot, [0.0], [1.0], ld.Cost(Q=1.0, R=1.0), 10, 0.01)
    with pytest.raises(ld.InputError, match=said):
        ld.optimize_motion(robot, [0.0], [1.0], duration=1.0)
    with pytest.raises(ld.InputError, match="rub"):
        ld.sensitivities(robot, [0.0], [1.0], [0.0], parameters=["mass:m"])
    with pytest.raises(ld.InputError, match="about to slip"):
        ld.linearize(robot, [0.0], [0.0], [1.0])
