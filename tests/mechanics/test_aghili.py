"""The examples of Aghili 2005 against independent numbers (tests/reference/aghili.json, see its notes)."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from papers import against_papers, off
from tree_cases import bundled

import liedyn as ld
from liedyn.control.constrained import PIDC, HybridController, controllability, inverse_dynamics
from liedyn.machine.errors import ControllabilityError, SingularConfigurationError
from liedyn.mechanics.dynamics import forward_dynamics, passive_joint_map, projector
from liedyn.mechanics.dynamics.terms import terms_kernel
from liedyn.model.build import build
from liedyn.motion.simulation import simulate

REFERENCE = json.loads((Path(__file__).parents[1] / "reference" / "aghili.json").read_text())
SINGULAR = REFERENCE["slider_crank_singular"]
# the reference has 16 digits of numbers up to 40
TOLERANCE = 1e-12


def close(actual, expected, tolerance=TOLERANCE):
    assert off(actual, expected) < tolerance


def states_of(name):
    robot = bundled({"particle": "particle_on_circle", "slider_crank_states": "slider_crank"}[name])
    return [(robot, state) for state in REFERENCE[name]["states"]]


STATES = states_of("particle") + states_of("slider_crank_states")


@against_papers("Aghili 2005: terms, accelerations, forces", robots="particle_on_circle, slider_crank")
@pytest.mark.parametrize("robot, state", STATES)
def test_states(robot, state):
    """The terms of the equations of motion, accelerations, constraint force and multiplier."""
    q, v = np.array(state["q"]), np.array(state["v"])
    M, h, G, residual, psi, gamma = terms_kernel(robot.packed, q, v, np.empty(0))
    if "M" in state:
        close(M, state["M"])
        close(h, state["h"])
        close(G, state["A"])
    assert abs(residual).max() < 1e-15 and abs(psi).max() < 1e-15
    close(np.linalg.pinv(G) @ gamma, state["C_qdot"])
    r = forward_dynamics(robot, q, v, state["f"])
    close(r.a, state["qdd"])
    close(r.lam, [state["lambda"]])
    close(G.T @ r.lam, state["constraint_force_F"])


@against_papers("Aghili 2005: inverse dynamics", robots="particle_on_circle, slider_crank")
@pytest.mark.parametrize("robot, state", STATES)
def test_inverse_dynamics_gives_back_the_force_that_moves(robot, state):
    """Of the force that made the reference acceleration, P f alone is needed (eq. 43)."""
    q, v = state["q"], state["v"]
    k = robot.velocity_index(robot.independent[0])
    r = inverse_dynamics(robot, q, v, [state["qdd"][k]])
    close(r.a, state["qdd"])
    close(r.tau, np.array(state["P"]) @ state["f"])


def test_singular_configuration():
    """Both links in one line: the constraint's row vanishes, there are two degrees of freedom, and M is all that is."""
    robot, q = bundled("slider_crank"), SINGULAR["q"]
    for form in (None, "M_c", "M_c'", "M_c''"):
        r = forward_dynamics(robot, q, [0.0, 0.0], [1.0, 2.0], method="projection" if form else "svd", inertia=form)
        assert r.rank == 0 and r.singular
        close(r.a, np.linalg.solve(SINGULAR["M_c_all_forms"], [1.0, 2.0]))
        assert not r.lam.any()
    both = inverse_dynamics(robot, q, [0.0, 0.0], {"crank": 1.0, "rod": 2.0})
    close(both.tau, [1.0, 2.0])
    assert both.controllability
    with pytest.raises(SingularConfigurationError, match="crank do not determine the motion"):
        inverse_dynamics(robot, q, [0.0, 0.0], {"crank": 1.0})


def test_one_motor_is_not_enough_at_the_singular_configuration():
    """Section VIII-B.2: with P = I, (62) does not hold."""
    robot, q = bundled("slider_crank"), SINGULAR["q"]
    answer = controllability(robot, q, active="crank")
    assert not answer and (answer.freedom, answer.driven) == (2, 1)
    assert answer.undriven == ({"rod": 1.0},)
    with pytest.raises(ControllabilityError, match="rod 1") as error:
        inverse_dynamics(robot, q, [0.0, 0.0], {"crank": 1.0, "rod": 2.0}, active="crank")
    assert error.value.controllability.undriven == answer.undriven


def control_rows(gravity):
    table = REFERENCE["control"]["tables"][gravity]
    return [dict(zip(table["columns"], row)) for row in table["rows"]]


def slider_crank(gravity):
    """The robot, with the gravity of a table."""
    model = bundled("slider_crank").model
    return build(replace(model, gravity=np.array([0.0, -float(gravity.removeprefix("g")), 0.0])))


@against_papers("Aghili 2005: forces of three controllers", robots="slider_crank")
@pytest.mark.parametrize("gravity", REFERENCE["control"]["tables"])
def test_control_forces_along_the_reference_motion(gravity):
    """Table of the three controllers: two motors, one motor, and no constraint force, at given accelerations."""
    robot = slider_crank(gravity)
    for row in control_rows(gravity):
        q, v = [row["theta"], 2.0 * np.pi - 2.0 * row["theta"]], [row["theta_dot"], -2.0 * row["theta_dot"]]
        wanted = {"crank": row["theta_ddot"]}
        two = inverse_dynamics(robot, q, v, wanted)
        close(two.tau, [row["f1_pidc"], row["f2_pidc"]])
        close(two.lam, [row["lambda_pidc"]])
        one = inverse_dynamics(robot, q, v, wanted, active=["crank"])
        close(one.tau, [row["f1_one_active"], 0.0])
        close(one.lam, [row["lambda_one_active"]])
        hybrid = inverse_dynamics(robot, q, v, wanted, multipliers={"slider": 0.0})
        close(hybrid.tau, [row["f1_hybrid"], row["f2_hybrid"]])
        close(hybrid.lam, [0.0])
        for r in (two, one, hybrid):
            close(r.a, [row["theta_ddot"], -2.0 * row["theta_ddot"]])


# ---- direct dynamics

# step of 1 ms for Runge-Kutta of fourth order, and a closure of 1e-11 after each step
MOTIONS = {name: REFERENCE[name] for name in REFERENCE if name.startswith("direct_dynamics")}


def simulated(robot, motion, **options):
    q0, v0 = motion["rows"][0][1:3], motion["rows"][0][3:5]
    end = motion["rows"][-1][0]
    return simulate(robot, q0, v0, end, tau=motion["params"]["f"], **options)


@against_papers("Aghili 2005: motions", robots="slider_crank")
@pytest.mark.parametrize("name", MOTIONS)
@pytest.mark.parametrize("formulation", ["nullspace", "svd"])
def test_direct_dynamics(name, formulation):
    """Fig. 4: trajectories from rest, with and without gravity, and fast through the singular configuration."""
    motion = MOTIONS[name]
    robot = slider_crank(f"g{motion['params']['g']}")
    tr = simulated(robot, motion, formulation=formulation)
    for row in motion["rows"]:
        expected = dict(zip(motion["columns"], row))
        k = int(np.argmin(abs(tr.t - expected["t"])))
        assert abs(tr.t[k] - expected["t"]) < 1e-12
        close(np.concatenate([tr.q[k], tr.v[k]]), row[1:5], 1e-6)
        if "lambda" in expected:
            close(tr.lam[k], [expected["lambda"]], 1e-6)
            G = terms_kernel(robot.packed, tr.q[k].copy(), tr.v[k].copy(), np.empty(0))[2]
            close(G.T @ tr.lam[k], [expected["F1"], expected["F2"]], 1e-6)


@pytest.mark.parametrize("name", [name for name in MOTIONS if "singularity_crossings_deg_time" in MOTIONS[name]])
def test_the_crank_goes_through_the_singular_configurations(name):
    """The first crossing on time, on the branch q2 = 2 pi - 2 q1; energy is the work of the motor."""
    motion = MOTIONS[name]
    robot = slider_crank(f"g{motion['params']['g']}")
    angle, crossing = motion["singularity_crossings_deg_time"][0]
    q0, v0 = motion["rows"][0][1:3], motion["rows"][0][3:5]
    tr = simulate(robot, q0, v0, crossing + 0.2, tau=motion["params"]["f"])
    found = np.interp(np.deg2rad(angle), tr["crank"], tr.t)
    assert abs(found - crossing) < 1e-6  # interpolated within 1 ms: (1e-3)^2 / 8 times the acceleration over speed
    np.testing.assert_allclose(tr["rod"], 2.0 * np.pi - 2.0 * tr["crank"], atol=1e-9)
    energy = tr.kinetic + tr.potential
    np.testing.assert_allclose(energy - energy[0], tr["crank"] - tr["crank"][0], atol=1e-8)


# ---- controllers


def wanted_motion(t, control=REFERENCE["control"]):
    """e = e_0 (1 + 5 t) exp(-5 t)."""
    e0 = control["theta_d"] - control["theta0"]
    return control["theta_d"] - e0 * (1.0 + 5.0 * t) * np.exp(-5.0 * t)


def controllers(robot):
    control = REFERENCE["control"]
    gains = {"G_P": control["gains"]["G_P"], "G_D": control["gains"]["G_D"]}
    target = [control["theta_d"]]
    two = PIDC(robot, target, **gains)
    force = {"G_F": control["gains"]["G_F"], "G_I": control["gains"]["G_I"]}
    return {"pidc": two, "one_active": PIDC(robot, target, active=["crank"], **gains),
            "hybrid": HybridController(two, {"slider": 0.0}, **force)}


@against_papers("Aghili 2005: controlled motions and forces", robots="slider_crank")
@pytest.mark.parametrize("gravity", REFERENCE["control"]["tables"])
@pytest.mark.parametrize("name", ["pidc", "one_active", "hybrid"])
def test_controlled_motion(gravity, name):
    """Fig. 5 and 6: closed loops in simulation against the reference's table and exact error."""
    robot = slider_crank(gravity)
    controller = controllers(robot)[name]
    start = REFERENCE["control"]["theta0"]
    tr = simulate(robot, [start, 2.0 * np.pi - 2.0 * start], [0.0, 0.0], 0.25, tau=controller)
    np.testing.assert_allclose(tr["crank"], wanted_motion(tr.t), atol=1e-9)
    for row in control_rows(gravity):
        k = int(np.argmin(abs(tr.t - row["t"])))
        close([tr.q[k, 0], tr.v[k, 0], tr.a[k, 0]], [row["theta"], row["theta_dot"], row["theta_ddot"]], 1e-6)
        close(tr.tau[k], [row[f"f1_{name}"], row.get(f"f2_{name}", 0.0)], 1e-6)
        close(tr.lam[k], [row.get(f"lambda_{name}", 0.0)], 1e-6)


@pytest.mark.parametrize("row", REFERENCE["table_I"]["rows"])
def test_table_I(row):
    """RMS of the forces, by the exact trajectory: what the text of the paper gives, which is not what it prints."""
    columns = dict(zip(REFERENCE["table_I"]["columns"], row))
    robot = slider_crank(f"g{columns['g']}")
    # Gauss-Legendre of 40 points is exact to rounding for these analytic forces
    nodes, weights = np.polynomial.legendre.leggauss(40)
    times = 0.5 * columns["T"] * (nodes + 1.0)
    for name, controller in controllers(robot).items():
        forces = [controller(t, *exact_state(t)) for t in times]
        rms = np.sqrt(0.5 * weights @ np.sum(np.square(forces), axis=1))
        close(rms, columns[name], 1e-9)
    close(columns["one_active"] / columns["pidc"], np.sqrt(5.0), 1e-9)


def exact_state(t, control=REFERENCE["control"]):
    e0 = control["theta_d"] - control["theta0"]
    theta, rate = wanted_motion(t), e0 * 25.0 * t * np.exp(-5.0 * t)
    return [theta, 2.0 * np.pi - 2.0 * theta], [rate, -2.0 * rate]


def test_passive_joint_map():
    """Eq. 74: H of the slider-crank with one motor, away from the singular configuration."""
    robot = bundled("slider_crank")
    H, controllable = passive_joint_map(robot, robot.home, active=["crank"])
    assert controllable
    P = projector(robot, robot.home)
    close((np.eye(2) + H) @ P, (np.eye(2) + [[0.0, -2.0], [0.0, -1.0]]) @ P)


def test_the_arm_on_a_slider():
    """Section IX: PIDC is the shortest, hybrid control has no force; feedback divides what friction does by 1 + G_F.

    The motion's own error is that of holding torques for a sample: h / 2 of jerk times G_P^-1, a few micrometres.
    """
    arm = bundled("arm_on_slider")

    def wanted(t):
        phase = np.pi * t + np.pi / 9
        return [-0.075 + 0.225 * np.sin(phase), 0.0], [0.225 * np.pi * np.cos(phase), 0.0], [
            -0.225 * np.pi**2 * np.sin(phase), 0.0]

    pidc = ld.PIDC(arm, wanted, G_P=480.0, G_D=45.0)
    hybrid = ld.HybridController(pidc, {"slider": 0.0}, G_F=3.0, G_I=0.1)
    x = wanted(0.0)
    v = ld.complete_velocity(arm, arm.home, {"end.x": x[1][0], "end.angle": 0.0})
    assert abs(ld.virtual_coordinates(arm, arm.home)[[0, 2]] - x[0]).max() < 1e-12
    tr = ld.simulate(arm, arm.home, v, 0.5, dt=1e-3, tau=ld.Sampled(pidc, 1e-3))
    end = ld.virtual_coordinates(arm, tr.q)
    assert np.abs(end[:, [0, 2]] - [wanted(t)[0] for t in tr.t]).max() < 2e-5
    G = ld.constraint_jacobian(arm, tr.q)
    for k in range(0, 500, 50):
        short, long = pidc(tr.t[k], tr.q[k], tr.v[k]), hybrid(tr.t[k], tr.q[k], tr.v[k])
        # what is added moves nothing: it is a force of the rail, at right angles to the shortest torques
        assert abs((long - short) @ short) < 1e-10 and np.linalg.norm(long - short) > 1e-3
        assert np.linalg.matrix_rank(np.vstack([G[k, -1], long - short]), tol=1e-10) == 1
        lam = ld.forward_dynamics(arm, tr.q[k], tr.v[k], long).lam
        assert abs(lam[arm.row_names.index("slider.gap")]) < 1e-10
    b = ld.Builder.of(arm)
    b.friction("gear", "elbow", coulomb=0.25)
    plant = b.build()
    felt = [ld.HybridController(pidc, {"slider": 0.0}, G_F=G_F, plant=plant)(0.0, arm.home, v) for G_F in (0.0, 3.0)]
    lam = [ld.forward_dynamics(plant, arm.home, v, tau).lam[-1] for tau in felt]
    assert abs(lam[0]) > 0.01 and lam[1] == pytest.approx(lam[0] / 4.0, rel=1e-9)
