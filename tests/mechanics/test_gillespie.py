"""Rolling disk, spherical wrist and shopping cart of Gillespie 2003, against `reference/gillespie.json`."""
import numpy as np
import pytest
from papers import MOTION, STATE, against_papers, columns, motion, numbers, off, table, with_gravity
from scipy.spatial.transform import Rotation
from tree_cases import bundled

import liedyn as ld

DATA = numbers("gillespie")


# ---- rolling disk


@against_papers("Gillespie 2003: accelerations and forces", robots="rolling_disk")
@pytest.mark.parametrize("case", DATA["disk"]["cases"], ids=lambda case: f"{case['phi']}-{case['F_f_given']}")
def test_disk(case):
    slope, friction, r = case["phi"], case["F_f_given"], DATA["disk"]["params"]["r"]
    disk = with_gravity(bundled("rolling_disk"), -9.81 * np.sin(slope), -9.81 * np.cos(slope), 0.0)
    q, v = disk.home, np.zeros(3)

    rolling = ld.forward_dynamics(disk, q, v, [0.0, 0.0, 0.0])
    assert off([rolling.a[0], r * rolling.a[2]], [case["roll_u1dot"], case["roll_u2dot"]]) < STATE
    # the contact force is -F_f a1 + N a2
    assert off(rolling.constraint_force[:2] * [1.0, -1.0], [case["roll_friction_Ff"], case["normal_N"]]) < STATE

    sliding = disk.switched(rolls=False, slides=True)
    r_s = ld.forward_dynamics(sliding, q, v, [-friction, 0.0, -r * friction], independent=("disk.x", "disk.angle"))
    assert off([r_s.a[0], r * r_s.a[2]], [case["slide_u1dot"], case["slide_u2dot"]]) < STATE
    assert off(-r_s.constraint_force[1], case["normal_N"]) < STATE


# ---- spherical wrist


def wrist_with_ball():
    """The same hand on a ball joint: its speeds are the angular velocity in body axes, the paper's u."""
    wrist = bundled("spherical_wrist")
    b = ld.Builder("hand", gravity=wrist.gravity)
    hand = wrist.model.bodies[-1]
    b.body("C", hand.mass, hand.com, hand.inertia)
    b.joint("wrist", "spherical", "ground", "C")
    return b.build()


def angular_velocity(wrist, q, v):
    return ld.body_jacobian(wrist, q, "C")[:3] @ v


@against_papers("Gillespie 2003: accelerations", robots="spherical_wrist")
def test_wrist():
    state = {key: np.array(x) for key, x in DATA["wrist"]["states"][0].items()}
    wrist = bundled("spherical_wrist")
    assert off(angular_velocity(wrist, state["q"], state["qdot"]), state["u"]) < STATE
    a = ld.aba(wrist, state["q"], state["qdot"], np.zeros(3))
    assert off(a, state["qddot"]) < STATE
    J, Jd = ld.body_jacobian(wrist, state["q"], "C"), ld.body_jacobian_dot(wrist, state["q"], state["qdot"], "C")
    assert off((J @ a + Jd @ state["qdot"])[:3], state["udot"]) < STATE

    ball = wrist_with_ball()
    q = Rotation.from_matrix(ld.pose(wrist, state["q"], "C")[:3, :3]).as_quat()
    assert off(ld.aba(ball, q, state["u"], np.zeros(3)), state["udot"]) < STATE
    G = DATA["wrist"]["params"]
    inertia = np.diag([G["I1"] + G["M"] * G["L"] ** 2, G["I2"] + G["M"] * G["L"] ** 2, G["I3"]])
    assert off(ld.crba(ball, q), inertia) < STATE  # constant and diagonal: what makes eq. 49 short


@against_papers("Gillespie 2003: motion", robots="spherical_wrist")
def test_wrist_motion():
    sheet = DATA["wrist"]["simulation_no_load"]
    wrist, times = bundled("spherical_wrist"), table(sheet)["t"]
    q, u = columns(sheet, "q1", "q2", "q3"), columns(sheet, "u1", "u2", "u3")
    v0 = np.linalg.solve(ld.body_jacobian(wrist, q[0], "C")[:3], u[0])
    run, found, v = motion(wrist, q[0], v0, times)
    assert off(found, q) < MOTION
    assert off([angular_velocity(wrist, *state) for state in zip(found, v)], u) < MOTION
    assert np.abs(run.energy - sheet["energy"]).max() < 1e-8


# ---- shopping cart


def cart_state(q3, q4, u1, u2, u3):
    """q and v of the paper's angles and generalised speeds (eq. 57), P1 at the origin."""
    return np.array([0.0, 0.0, q3, q4]), np.array([u1 * np.cos(q3), u1 * np.sin(q3), u2, u3 - u2])


def speeds(q, v):
    """u1, u2, u3 of eq. 51 to 53."""
    c, s = np.cos(q[..., 2]), np.sin(q[..., 2])
    return np.stack([c * v[..., 0] + s * v[..., 1], v[..., 2], v[..., 2] + v[..., 3]], axis=-1)


def push(q, F, tau):
    """Generalised forces of F along b1 at P1 and of the moment tau on the basket."""
    return np.array([F * np.cos(q[2]), F * np.sin(q[2]), tau, 0.0])


def speed_rates(q, v, a):
    c, s = np.cos(q[2]), np.sin(q[2])
    return np.array([c * a[0] + s * a[1] + v[2] * (c * v[1] - s * v[0]), a[2], a[2] + a[3]])


@pytest.fixture(scope="module")
def cart():
    return bundled("shopping_cart")


@against_papers("Gillespie 2003: accelerations and forces", robots="shopping_cart")
def test_cart(cart):
    state = DATA["cart"]["states"][0]
    q, v = cart_state(*(state[key] for key in ("q3", "q4", "u1", "u2", "u3")))
    assert np.abs(ld.constraint_jacobian(cart, q) @ v).max() < 1e-14  # eq. 59
    expected = state["free"]
    r = ld.forward_dynamics(cart, q, v, push(q, state["F"], state["tau"]))
    assert off(speed_rates(q, v, r.a), [expected[key] for key in ("u1dot", "u2dot", "u3dot")]) < STATE
    sides = "multipliers_[P1 side, P3 side"
    assert off(r.lam[:2], expected[sides + "]"]) < STATE


@against_papers("Gillespie 2003: accelerations and forces while it sticks", robots="shopping_cart")
def test_sticking_cart(cart):
    """The multiplier of `stick` is the moment in the caster; the printed eq. 67 has a wrong sign."""
    state = DATA["cart"]["states"][0]
    expected, robot = state["sticking"], cart.switched(stick=True)
    turn = expected["u2_over_u1"] * state["u1"]
    q, v = cart_state(state["q3"], state["q4"], state["u1"], turn, turn)
    assert np.abs(ld.constraint_jacobian(robot, q) @ v).max() < 1e-14  # eq. 65
    r = ld.forward_dynamics(robot, q, v, push(q, state["F"], state["tau"]), independent=("cart.x",))
    found = speed_rates(q, v, r.a)
    assert off(found[:2], [expected["u1dot"], expected["u2dot"]]) < STATE
    assert abs(found[0] - expected["u1dot_from_printed_eq67"]) > 0.2
    assert off(r.lam, expected["multipliers_[P1 side, P3 side, stick moment]"]) < STATE


def test_sudden_sticking(cart):
    state = DATA["cart"]["states"][0]
    q, v = cart_state(*(state[key] for key in ("q3", "q4", "u1", "u2", "u3")))
    event = ld.Event("sticks", lambda t, q, v: 1.0 if t > 0.0 else -1.0, on="stick")
    # it happens within rounding of the start
    hit = ld.simulate(cart, q, v, 1e-9, events=event).events[0]
    assert hit.t < 1e-9
    assert off(speeds(hit.q_after, hit.v_after), state["sudden_stick_post_impact_u"]) < 1e-8
    before, after = state["kinetic_energy_before_after"]
    assert abs(hit.energy_loss - (before - after)) < 1e-8
    moment = hit.impulse[cart.row_names.index("stick.slip")]
    G = ld.constraint_jacobian(cart.switched(stick=True), hit.q_after)
    jump = ld.crba(cart, hit.q_after) @ (hit.v_after - hit.v_before)
    assert off(jump, -G.T @ hit.impulse) < STATE and moment < 0.0


@against_papers("Gillespie 2003: motion with an impact", robots="shopping_cart")
def test_cart_motion(cart):
    """0.3 s with a free caster, then it sticks."""
    given = DATA["cart"]["simulation"]
    times = np.append(table(given)["t"], 0.3)
    q3, q4, u1, u2 = given["initial"][2:]
    p = DATA["cart"]["params"]
    u3 = (p["L2"] * np.cos(q4) * u2 - np.sin(q4) * u1) / p["L3"]  # eq. 60
    sticks = ld.Event("sticks", lambda t, q, v: t - 0.3, on="stick")
    run, q, v = motion(cart, *cart_state(q3, q4, u1, u2, u3), times, events=sticks,
                       tau=lambda t, q, v: push(q, 12.0, 1.5 * np.sin(2.0 * t)))
    assert off(q[:-1], columns(given, "q1", "q2", "q3", "q4")) < MOTION
    assert off(speeds(q, v)[:-1], columns(given, "u1", "u2", "u3")) < MOTION
    event, hit = given["events"][0], run.events[0]
    assert abs(hit.t - 0.3) < 1e-12 and hit.on == ("stick",)
    assert off(speeds(hit.q_before, hit.v_before), event["u_before"]) < MOTION
    assert off(speeds(hit.q_after, hit.v_after), event["u_after"]) < MOTION
    assert np.abs(run.energy_drift).max() < 1e-8
