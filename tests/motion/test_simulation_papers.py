"""The papers' motions by `simulate` itself, against trajectories derived independently (tests/reference)."""
import numpy as np
import pytest
from papers import MOTION, columns, numbers, off, table
from tree_cases import bundled
from users import kept

import liedyn as ld


def rows_at(tr, times):
    """Rows of a trajectory at times of its grid, the last one of each time."""
    k = np.searchsorted(tr.t, times + 1e-9, side="right") - 1
    assert np.abs(tr.t[k] - times).max() < 1e-9
    return k


# ---- Spencer, chapter 3

FIVE_BAR = numbers("thesis_fivebar_sim")


def test_example_1_from_rest_at_the_singular_configuration():
    """It falls off by rounding alone, turns where the exact motion turns, and comes back."""
    tr = ld.simulate(bundled("five_bar"), [np.pi, -np.pi, 0.0, np.pi], [0.0] * 4, 5.0, formulation="svd")
    beta = tr["q1"] - np.pi
    away = np.linalg.norm(ld.difference(bundled("five_bar"), tr.q[0], tr.q), axis=1)
    exact = FIVE_BAR["ex1_branch_A"]
    assert np.abs(beta).max() == pytest.approx(exact["turning_beta"], abs=1e-3)
    later = tr.t > 2.0
    back = tr.t[later][away[later].argmin()]
    assert back == pytest.approx(exact["return_time"], abs=0.03)
    assert np.abs(tr.energy_drift).max() < 1e-3 and tr.position_residual.max() < 1e-10


def test_example_1_along_the_exact_motion():
    sheet = FIVE_BAR["ex1_exact_symmetric"]
    tr = ld.simulate(bundled("five_bar"), [np.pi, -np.pi, 0.0, np.pi], [0.0] * 4, 0.5, formulation="svd")
    k = rows_at(tr, table(sheet)["t"])
    # which way it falls, and when exactly it leaves, is rounding: 1e-3 over half a second
    assert np.abs(np.abs(tr["q1"][k] - np.pi) - table(sheet)["beta"]).max() < 1e-2


def test_example_2_through_the_singular_configuration():
    """Projection with the energy keeps it to 1e-3 J, where Baumgarte's feedback does not."""
    robot = bundled("five_bar")
    start = FIVE_BAR["ex2_initial"]["q_relative"]
    kept = ld.simulate(robot, start, [0.0] * 4, 5.0, formulation="svd", energy=True)
    assert np.abs(kept.energy_drift).max() < 1e-3 and kept.position_residual.max() < 1e-10
    assert kept.energy[0] == pytest.approx(FIVE_BAR["ex2_exact_symmetric"]["energy"], abs=1e-9)
    crossing = FIVE_BAR["ex2_exact_symmetric"]["node_crossing_times_beta0"][0]
    before = kept.t < crossing
    assert (kept["q1"][before] < np.pi).all() and kept["q1"][rows_at(kept, np.array([0.652]))[0]] > np.pi
    exact = FIVE_BAR["ex2_exact_symmetric"]
    k = rows_at(kept, table(exact)["t"])
    assert np.abs(kept["q1"][k] - np.pi - table(exact)["beta"]).max() < MOTION
    lost = ld.simulate(robot, start, [0.0] * 4, 5.0, formulation="multiplier", stabilisation="baumgarte")
    assert np.abs(lost.energy_drift).max() > 1.0


# ---- Gillespie


def test_wrist():
    sheet = numbers("gillespie")["wrist"]["simulation_no_load"]
    wrist, q = bundled("spherical_wrist"), columns(sheet, "q1", "q2", "q3")
    v0 = np.linalg.solve(ld.body_jacobian(wrist, q[0], "C")[:3], columns(sheet, "u1", "u2", "u3")[0])
    tr = ld.simulate(wrist, q[0], v0, 0.5)
    assert off(tr.q[rows_at(tr, table(sheet)["t"])], q) < MOTION
    assert np.abs(tr.energy_drift).max() < 1e-6


CART = numbers("gillespie")["cart"]["simulation"]


def speeds(q, v):
    c, s = np.cos(q[..., 2]), np.sin(q[..., 2])
    return np.stack([c * v[..., 0] + s * v[..., 1], v[..., 2], v[..., 2] + v[..., 3]], axis=-1)


def test_cart_with_a_caster_that_sticks():
    """The caster sticks at 0.3 s with an impulse, and comes loose at 2 s without one."""
    q3, q4, u1, u2 = CART["initial"][2:]
    p = numbers("gillespie")["cart"]["params"]
    u3 = (p["L2"] * np.cos(q4) * u2 - np.sin(q4) * u1) / p["L3"]
    q0, v0 = [0.0, 0.0, q3, q4], [u1 * np.cos(q3), u1 * np.sin(q3), u2, u3 - u2]
    F = 12.0  # N along the cart: -3 once the caster sticks, 4 when it is free again

    def push(t, q, v):
        return F * np.cos(q[2]), F * np.sin(q[2]), 1.5 * np.sin(2.0 * t), 0.0

    def switch_force(t, q, v):
        nonlocal F
        F = -3.0 if t < 1.0 else 4.0

    events = [ld.Event("sticks", lambda t, q, v: t - 0.3, direction=1, on="stick", action=switch_force),
              ld.Event("loose", lambda t, q, v: t - 2.0, direction=1, off="stick", action=switch_force)]
    tr = ld.simulate(bundled("shopping_cart"), q0, v0, 2.5, tau=push, events=events)
    k = rows_at(tr, table(CART)["t"])
    assert off(tr.q[k], columns(CART, "q1", "q2", "q3", "q4")) < MOTION
    assert off(speeds(tr.q, tr.v)[k], columns(CART, "u1", "u2", "u3")) < MOTION
    sticks, loose = tr.events
    expected = CART["events"][0]
    assert off(speeds(sticks.q_before, sticks.v_before), expected["u_before"]) < MOTION
    assert off(speeds(sticks.q_after, sticks.v_after), expected["u_after"]) < MOTION
    assert sticks.energy_loss > 0.01 and not loose.impulse.any() and loose.off == ("stick",)
    between = (tr.t > 0.3) & (tr.t < 2.0)
    assert np.abs(tr["velocity:caster"][between]).max() < 1e-12 and tr.active[between][:, -1].all()
    assert np.abs(tr.energy_drift).max() < 1e-6 and tr.velocity_residual.max() < 1e-10


# ---- Xu and Liu

RATE = 0.4 * np.pi


@kept
def path(t):
    c, s = np.cos(RATE * t), np.sin(RATE * t)
    return (np.array([0.05 * s, 0.05 * c - 0.05, 0.02 * t]), np.array([0.05 * RATE * c, -0.05 * RATE * s, 0.02]),
            np.array([-0.05 * RATE ** 2 * s, -0.05 * RATE ** 2 * c, 0.0]))


@pytest.fixture(scope="module")
def scara():
    return bundled("scara").with_target("tool", path).switched(tool=True, level=True)


@pytest.mark.parametrize("which, options", [
    ("plain", dict(stabilisation="none", start="as given")),
    ("baumgarte", dict(stabilisation=ld.Baumgarte(0.25, np.sqrt(200.0)))),
])
def test_scara_off_its_path(scara, which, options):
    """The printed start violates the constraints: the error stays, or dies out as e'' + 0.5 e' + 200 e = 0."""
    given = numbers("scara")["printed_initial_state"]
    sheet = given[which]
    tr = ld.simulate(scara, given["q0"], given["v0"], 2.5, **options)
    k = rows_at(tr, table(sheet)["t"])
    assert off(tr.q[k], columns(sheet, "q1", "q2", "q3", "q4")) < MOTION
    assert off(tr.v[k], columns(sheet, "q1d", "q2d", "q3d", "q4d")) < MOTION


@pytest.mark.parametrize("method", ["rk4", "implicit", "DOP853"])
def test_scara_on_its_path(scara, method):
    """No freedom is left: the target moves everything, and its power is accounted for."""
    given = numbers("scara")["consistent_initial_state"]
    sheet = given["plain"]
    tr = ld.simulate(scara, given["q0"], given["v0"], 2.5, method=method, dt=1e-2)
    k = rows_at(tr, table(sheet)["t"])
    assert off(tr.q[k], columns(sheet, "q1", "q2", "q3", "q4")) < MOTION
    assert tr.position_residual.max() < 1e-10 and np.abs(tr.other_work).max() > 0.1
    assert np.abs(tr.energy_drift).max() < 1e-5


def test_inconsistent_start(scara):
    given = numbers("scara")["printed_initial_state"]
    with pytest.raises(ld.ClosureError, match="inconsistent start.*(tool|level)"):
        ld.simulate(scara, given["q0"], given["v0"], 1.0)
    tr = ld.simulate(scara, given["q0"], given["v0"], 0.1, start="project")
    assert tr.position_residual.max() < 1e-10


# ---- Yun and Sarkar


@pytest.mark.parametrize("sigma", [0, 10])
def test_rolling_spheres(sigma):
    """From contact, and from 20 mm above it: the gap decays as exp(-sigma t)."""
    data = numbers("yun_sarkar")["sphere_on_sphere"]
    sheet, robot = data["sims"][f"geometric_sigma{sigma}"], bundled("rolling_spheres")
    q, v = (columns(sheet, *(name + d for name in ("rho", "phi", "th", "al", "be", "ga"))) for d in ("", "d"))
    times = table(sheet)["t"]

    def centre(q):
        rho, phi, th = q[..., 0], q[..., 1], q[..., 2]
        c = np.cos(phi)
        return np.stack([rho * c * np.cos(th), rho * c * np.sin(th), -rho * np.sin(phi)], axis=-1)

    (r, p, t), (dr, dp, dt) = q[0][:3], v[0][:3]
    c, s = np.cos(p), np.sin(p)
    speed = (dr * np.array([c * np.cos(t), c * np.sin(t), -s]) + r * dp * np.array(
        [-s * np.cos(t), -s * np.sin(t), -c]) + r * c * dt * np.array([-np.sin(t), np.cos(t), 0.0]))
    tr = ld.simulate(robot, np.append(centre(q[0]), q[0][3:]), np.append(speed, v[0][3:]), times[-1],
                     formulation="unified", sigma=sigma, stabilisation="none")
    k = rows_at(tr, times)
    assert off(tr.q[k], np.hstack([centre(q), q[:, 3:]])) < MOTION
    if sigma:
        with pytest.raises(ld.InputError, match="inconsistent start: v0 does not satisfy A v = b - sigma C"):
            ld.simulate(robot, tr.q[0], 0.0 * tr.v[0], 1.0, formulation="unified", sigma=sigma, stabilisation="none")
        gap = np.linalg.norm(tr.q[:, :3], axis=1) - 0.6
        assert np.abs(gap - 0.02 * np.exp(-10 * tr.t)).max() < 1e-9
