"""Rolling spheres and the two-link arm of Yun and Sarkar 1998, against `reference/yun_sarkar.json`.

The paper's coordinates of the spheres are polar, ours cartesian; and the paper's two misprinted forms of rolling, eq.
44 and 45, are written as symbolic constraints. The arm's three constraints C are written as in eq. 53.
"""
import numpy as np
import pytest
import sympy as sp
from papers import MOTION, STATE, against_papers, columns, motion, numbers, off, table, with_body
from tree_cases import bundled

import liedyn as ld
from liedyn import symbolic

DATA = numbers("yun_sarkar")
SPHERES, ARM = DATA["sphere_on_sphere"], DATA["two_link"]
POLAR = ("rho", "phi", "th")
EULER = ("al", "be", "ga")
UNIFIED = dict(formulation="unified", stabilisation="none")


# ---- polar coordinates of the centre


def frame(phi, theta):
    """Unit vectors along rho, phi and theta."""
    c, s, ct, st = np.cos(phi), np.sin(phi), np.cos(theta), np.sin(theta)
    return np.array([[c * ct, c * st, -s], [-s * ct, -s * st, -c], [-st, ct, 0.0]])


def to_cartesian(q, v):
    """Our q and v from those of the paper."""
    rho, phi, theta = q[:3]
    E = frame(phi, theta)
    speed = np.array([v[0], rho * v[1], rho * np.cos(phi) * v[2]])
    return np.concatenate([rho * E[0], q[3:]]), np.concatenate([speed @ E, v[3:]])


def to_polar(q, v):
    """The paper's q and v from ours."""
    rho = np.linalg.norm(q[:3])
    phi, theta = -np.arcsin(q[2] / rho), np.arctan2(q[1], q[0])
    along = frame(phi, theta) @ v[:3]
    rates = [along[0], along[1] / rho, along[2] / (rho * np.cos(phi))]
    return np.concatenate([[rho, phi, theta], q[3:]]), np.concatenate([rates, v[3:]])


def polar_acceleration(q, v, a):
    """Second rates of rho, phi, theta (spherical coordinates with the latitude downwards)."""
    (rho, phi, theta), (dr, dp, dt) = (x[:3] for x in to_polar(q, v))
    along = frame(phi, theta) @ a[:3]
    c, s = np.cos(phi), np.sin(phi)
    return np.concatenate([[
        along[0] + rho * dp ** 2 + rho * c ** 2 * dt ** 2,
        (along[1] - 2.0 * dr * dp - rho * c * s * dt ** 2) / rho,
        (along[2] - 2.0 * dr * c * dt + 2.0 * rho * s * dp * dt) / (rho * c),
    ], a[3:]])


# ---- spheres


@pytest.fixture(scope="module")
def variants():
    """True rolling, and eq. 44 and 45 with both signs of the last term: as in S(q), and as printed."""
    p = SPHERES["params"]
    r, L = p["r"], p["R"] + p["r"]
    b = ld.Builder.of(bundled("rolling_spheres"))
    b.constraint("gap", "distance", "ground", "sphere", length=L, active=False)
    x, y, z, al, be = symbolic.coordinates("centre.x", "centre.y", "centre.z", "alpha", "beta")
    dx, dy, dz, d_be, d_ga = symbolic.velocities("centre.x", "centre.y", "centre.z", "beta", "gamma")
    across = sp.sqrt(x ** 2 + y ** 2)
    d_theta = (x * dy - y * dx) / across ** 2
    d_phi = (z * (x * dx + y * dy) - across ** 2 * dz) / ((x ** 2 + y ** 2 + z ** 2) * across)
    slips = {"eq44": L * d_phi - r * (d_ga * sp.sin(be) * sp.cos(al) - d_be * sp.sin(al)),
             "as_S": L * d_theta - r * (d_ga * sp.sin(be) * sp.sin(al) + d_be * sp.cos(al)),
             "eq45": L * d_theta - r * (d_ga * sp.sin(be) * sp.sin(al) - d_be * sp.cos(al))}
    for name, expression in slips.items():
        symbolic.constraint(b, name, expression, velocity=True, active=False)
    robot = b.build()
    printed = robot.switched(contact=False, gap=True, eq44=True)
    return {"geometric": robot, "paper_S_signs": printed.switched(as_S=True),
            "paper_eq45_signs": printed.switched(eq45=True)}


@against_papers("Yun and Sarkar 1998: accelerations and forces", robots="rolling_spheres")
def test_a_state_off_the_sphere(variants):
    """The small sphere is 0.02 m away from the large one, and approaches it as sigma asks for."""
    state = {key: np.array(x) for key, x in SPHERES["states"][0].items() if key != "variant"}
    robot = variants["geometric"]
    q, v = to_cartesian(state["q"], state["qdot"])
    E, rho, phi = frame(*state["q"][1:3]), state["q"][0], state["q"][1]

    # the paper's rows, from ours: v = J (rates of the paper's coordinates), tangential rows along phi and theta
    J = np.eye(6)
    J[:3, :3] = E.T * [1.0, rho, rho * np.cos(phi)]
    G = ld.constraint_jacobian(robot, q)
    assert off(np.vstack([G[0], E[1:] @ G[1:4]]) @ J, state["A"]) < STATE
    assert abs(ld.closure_error(robot, q)[0] - 0.02) < STATE

    r = ld.forward_dynamics(robot, q, v, np.zeros(6), method="unified", sigma=float(state["sigma"]))
    assert off(polar_acceleration(q, v, r.a), state["qddot"]) < STATE
    assert off(np.append(-r.lam[0], -E[1:] @ r.lam[1:4]), state["lambda_[contact, phi, theta]"]) < STATE


@against_papers("Yun and Sarkar 1998: motions", robots="rolling_spheres")
@pytest.mark.parametrize("sim", SPHERES["sims"])
def test_rolling(variants, sim):
    sheet, sigma = SPHERES["sims"][sim], float(sim.rsplit("sigma", 1)[1])
    robot = variants[sim.rsplit("_", 1)[0]]
    q = columns(sheet, *POLAR, *EULER)
    v = columns(sheet, *(name + "d" for name in POLAR + EULER))
    _, *found = motion(robot, *to_cartesian(q[0], v[0]), table(sheet)["t"], **UNIFIED, sigma=sigma)
    ours = [to_polar(*state) for state in zip(*found)]
    assert off([each[0] for each in ours], q) < MOTION
    assert off([each[1] for each in ours], v) < MOTION


def test_rolling_is_not_slipping(variants):
    """The point that touches has no velocity; the printed equations let it slip."""
    eta, q = np.array([0.5, 2.0, 8.0]), np.array([0.6, 0.1, 0.2, 0.3, 1.2, 0.4])
    slip = {}
    for name, robot in variants.items():
        q_c = to_cartesian(q, np.zeros(6))[0]
        G = ld.constraint_jacobian(robot, q_c)
        v = np.concatenate([np.linalg.lstsq(G[:, :3], -G[:, 3:] @ eta, rcond=None)[0], eta])
        assert np.abs(G @ v).max() < 1e-13
        omega = ld.pose(robot, q_c, "sphere")[:3, :3] @ ld.body_jacobian(robot, q_c, "sphere")[:3] @ v
        slip[name] = np.linalg.norm(v[:3] + np.cross(omega, -SPHERES["params"]["r"] * q_c[:3] / 0.6))
    assert slip.pop("geometric") < 1e-14 and min(slip.values()) > 0.1


# ---- arm


@pytest.fixture(scope="module")
def arm():
    """The arm with the paper's own constraints."""
    p = ARM["params"]
    b = ld.Builder.of(bundled("arm_on_circle"))
    th1, x, y, th2 = symbolic.coordinates("th1", "link2.x", "link2.y", "link2.angle")
    symbolic.constraint(
        b, "C",
        x - p["lc2"] * sp.cos(th2) - p["l1"] * sp.cos(th1), y - p["lc2"] * sp.sin(th2) - p["l1"] * sp.sin(th1),
        p["l3"] ** 2 - p["l1"] ** 2 - p["l2"] ** 2 - 2.0 * p["l1"] * p["l2"] * sp.cos(th1 - th2))
    return b.build()


MIXED = dict(pin=False, circle=False)


@against_papers("Yun and Sarkar 1998: start that violates constraints", robots="arm_on_circle")
def test_arm_start(arm):
    """The start violates all three constraints; the velocity that lets them decay, of minimum norm (eq. 36)."""
    robot, given = arm.switched(MIXED), ARM["initial"]
    G, C = ld.constraint_jacobian(robot, given["q"])[-3:], ld.closure_error(robot, given["q"])[-3:]
    assert off(C, given["C"]) < STATE
    assert off(-np.linalg.pinv(G) @ (ARM["params"]["sigma"] * C), given["qdot_value"]) < STATE
    v = ld.dynamics.unified_velocity(robot, given["q"], np.zeros(4), sigma=ARM["params"]["sigma"])
    assert off(v, given["qdot_value"]) < STATE


@against_papers("Yun and Sarkar 1998: motions and forces", robots="arm_on_circle")
@pytest.mark.parametrize("sim, link1", [
    ("physical_I1_13", {}),
    # I1 = 3 about the pivot with m1 lc1 = 10 is no body: a heavier, shorter one has the same M and G
    ("literal_I1_3", {"mass": 40.0, "com": np.array([0.25, 0.0, 0.0]), "inertia": np.diag([0.0, 0.5, 0.5])}),
])
def test_arm_motion(arm, sim, link1):
    sheet, sigma = ARM["sims"][sim], ARM["params"]["sigma"]
    robot = with_body(arm, "link1", **link1).switched(MIXED)
    run, *found = motion(robot, ARM["initial"]["q"], ARM["initial"]["qdot_value"], table(sheet)["t"], **UNIFIED,
                         sigma=sigma)
    assert off(found[0], columns(sheet, "th1", "x2", "y2", "th2")) < MOTION
    assert off(found[1], columns(sheet, "th1d", "x2d", "y2d", "th2d")) < MOTION
    C = ld.closure_error(robot, found[0])[:, -3:]
    assert np.abs(C - columns(sheet, "C1", "C2", "C3")).max() < 1e-9
    r = ld.forward_dynamics(robot, *found, np.zeros_like(found[0]), method="unified", sigma=sigma)
    assert off(-r.lam[:, -3:], columns(sheet, "lam1", "lam2", "lam3")) < MOTION
    start = ld.forward_dynamics(robot, found[0][0], found[1][0], np.zeros(4), method="unified", sigma=sigma)
    assert off(-start.lam[-3:], columns(sheet, "lam1", "lam2", "lam3")[0]) < STATE


def test_arm_constraints_of_our_own(arm):
    """Where the constraints hold, a pin and a point on a circle are the same three equations."""
    q = arm.home
    exact = np.cos(q[0] - q[3])
    p = ARM["params"]
    assert abs(exact - (p["l3"] ** 2 - p["l1"] ** 2 - p["l2"] ** 2) / (2.0 * p["l1"] * p["l2"])) < STATE
    pinned, printed = arm.switched(C=False), arm.switched(MIXED)
    v = ld.complete_velocity(pinned, q, {"th1": 0.8})
    assert np.abs(ld.closure_error(arm, q)).max() < 1e-14
    assert np.abs(ld.constraint_jacobian(arm, q) @ v).max() < 1e-14
    a, b = (ld.forward_dynamics(robot, q, v, np.zeros(4)).a for robot in (pinned, printed))
    assert off(a, b) < STATE
