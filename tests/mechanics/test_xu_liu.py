"""The SCARA robot of Xu and Liu 2017, led along a trajectory, with and without Baumgarte's stabilisation.

Against `reference/scara.json`, which follows from the corrected equations of the paper. The trajectory is a moving
target here, not an equation: M, C, A and b come from the robot's file.
"""
import numpy as np
import pytest
from papers import MOTION, STATE, against_papers, columns, motion, numbers, off, table
from tree_cases import bundled
from users import kept

import liedyn as ld

DATA = numbers("scara")
ROWS = [0, 1, 3, 2]  # the paper's phi 1 to 4 (x, y, angle, z) among the rows tool.vx, tool.vy, tool.vz, level.sum
RATE = 0.4 * np.pi
# eq. 52: alpha = 0.5, beta = 200; here g'' + 2 alpha g' + beta^2 g = 0
GAINS = (0.25, np.sqrt(200.0))
STARTS = ("printed_initial_state", "consistent_initial_state", "consistent_positions_printed_velocities")


@kept
def path(t):
    """Of the tool, from its place at t = 0 (eq. 47): position, velocity, acceleration."""
    c, s = np.cos(RATE * t), np.sin(RATE * t)
    return (np.array([0.05 * s, 0.05 * c - 0.05, 0.02 * t]), np.array([0.05 * RATE * c, -0.05 * RATE * s, 0.02]),
            np.array([-0.05 * RATE ** 2 * s, -0.05 * RATE ** 2 * c, 0.0]))


@pytest.fixture(scope="module")
def scara():
    return bundled("scara").with_target("tool", path).switched(tool=True, level=True)


@pytest.fixture(scope="module")
def state():
    return {key: np.array(value) for key, value in DATA["states"][0].items()}


@against_papers("Xu and Liu 2017: inertia matrix and forces", robots="scara")
def test_equations_of_motion(scara, state):
    q, v = state["q"], state["v"]
    assert off(ld.crba(scara, q), state["M"]) < STATE
    gravity = ld.rnea(scara, q, 0 * v, 0 * v)
    assert off(gravity, state["G"]) < STATE
    assert off(ld.rnea(scara, q, v, 0 * v) - gravity, state["Cv"]) < STATE


@against_papers("Xu and Liu 2017: constraints, Jacobian and bias", robots="scara")
def test_constraints(scara, state):
    robot, q, v = scara.at(state["t"]), state["q"], state["v"]
    assert off(ld.constraint_jacobian(robot, q)[ROWS], state["A"]) < STATE
    assert off(ld.constraint_bias(robot, q, v)[ROWS], state["b"]) < STATE
    assert off(ld.closure_error(robot, q)[ROWS], state["Phi"]) < STATE
    assert off(ld.constraints.velocity_error(robot, q, v)[ROWS], state["Phidot"]) < STATE


@against_papers("Xu and Liu 2017: accelerations and forces", robots="scara")
@pytest.mark.parametrize("gains, which", [(None, ""), (GAINS, "_baumgarte")])
@pytest.mark.parametrize("options", [{"independent": ()}, {"method": "udwadia_kalaba"}], ids=["default", "paper"])
def test_accelerations_and_forces(scara, state, options, gains, which):
    robot, q, v = scara.at(state["t"]), state["q"], state["v"]
    r = ld.forward_dynamics(robot, q, v, [0.0] * 4, baumgarte=gains, **options)
    assert off(r.a, state["qdd" + (which or "_constrained")]) < STATE
    assert off(-r.constraint_force, state["Qc" + which]) < STATE  # Q_c is what the constraints add to the forces


@against_papers("Xu and Liu 2017: motions", robots="scara")
@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("gains, which", [(None, "plain"), (GAINS, "baumgarte")])
def test_motion(scara, start, gains, which):
    """2.5 s against the table; then the errors of the constraints at 20 s, which grow without stabilisation."""
    given = DATA[start]
    sheet = given[which]
    times = np.append(table(sheet)["t"], 20.0)
    stabilisation = "none" if gains is None else ld.Baumgarte(*gains)
    _, q, v = motion(scara, given["q0"], given["v0"], times, stabilisation=stabilisation)
    expected = columns(sheet, "q1", "q2", "q3", "q4")
    assert off(q[:-1], expected) < MOTION
    assert off(v[:-1], columns(sheet, "q1d", "q2d", "q3d", "q4d")) < MOTION
    errors, forces = [], []
    for t, qk, vk in zip(times, q, v):
        robot = scara.at(t)
        r = ld.forward_dynamics(robot, qk, vk, [0.0] * 4, independent=(), baumgarte=gains)
        errors.append(ld.closure_error(robot, qk)[ROWS])
        forces.append(-r.constraint_force)
    assert off(forces[:-1], columns(sheet, "Qc1", "Qc2", "Qc3", "Qc4")) < MOTION
    assert np.abs(errors[:-1] - columns(sheet, "phi1", "phi2", "phi3", "phi4")).max() < 1e-9
    assert np.abs(errors[-1] - np.array(sheet["phi_at_20s"])).max() < 1e-8
