"""Examples of Spencer 2004 in motion, and the pendulum; states of the linkages are in test_reference.py.

Against `reference/thesis_checks_trajectories.json` (reduced equations, 50 digits) and `thesis_linearization.json`.
"""
import numpy as np
import pytest
from papers import MOTION, STATE, against_papers, columns, motion, numbers, off, table
from tree_cases import bundled

import liedyn as ld

MOTIONS = numbers("thesis_checks_trajectories")
SINGULAR = numbers("thesis_fivebar_sim")
PENDULUM = numbers("thesis_linearization")["pendulum"]


@against_papers("Spencer 2004: accelerations, forces, A and B", robots="cartesian_pendulum")
@pytest.mark.parametrize("state", PENDULUM["states"], ids=lambda state: f"{state['theta_from_down']}")
def test_pendulum(state):
    """The residual is the gap in the rod, half of the thesis' g where it vanishes: multipliers are twice its."""
    pendulum = bundled("cartesian_pendulum")
    r = ld.forward_dynamics(pendulum, state["q"], state["v"], [0.0, 0.0])
    assert off(r.a, state["qdd"]) < STATE
    assert off(r.lam, 2.0 * np.array(state["lambda"])) < STATE
    for case in state["cases"]:
        name = pendulum.velocity_names[case["independent_index_0based"][0]]
        ss = ld.linearize(pendulum, state["q"], state["v"], [0.0, 0.0], independent=(name,))
        assert off(ss.K.ravel(), case["K"]) < STATE
        assert off(ss.f0[1:], case["ydd"]) < STATE
        assert off(ss.A[1, :1], case["A21"]) < STATE and off(ss.A[1, 1:], case["A22"]) < STATE
        assert off(ss.B[1:], case["B_tau"]) < STATE


def test_pendulum_has_no_single_coordinate():
    """Fig. 2.3: where the rod is level, q1 does not determine the motion."""
    pendulum = bundled("cartesian_pendulum")
    with pytest.raises(ld.SingularConfigurationError):
        ld.forward_dynamics(pendulum, [1.0, 0.0], [0.0, 0.0], [0.0, 0.0], independent=("q1",))


@against_papers("Spencer 2004: motion", robots="cartesian_pendulum")
def test_pendulum_motion():
    sheet = MOTIONS["trajectories"]["pendulum"]
    pendulum, x = bundled("cartesian_pendulum"), table(sheet)
    lam = sheet["columns"][-1]
    _, q, v = motion(pendulum, [np.sin(2.0), -np.cos(2.0)], [0.0, 0.0], x["t"])
    assert off(q, columns(sheet, "q1", "q2")) < MOTION
    speed = q[:, 1] * v[:, 0] - q[:, 0] * v[:, 1]
    assert off(-speed, x["theta_dot"]) < MOTION
    r = ld.forward_dynamics(pendulum, q, v, np.zeros_like(q), independent="auto")
    assert off(r.lam[:, 0], 2.0 * x[lam]) < MOTION


LINKAGES = [("fivebar", "five_bar"), ("fourbar", "four_bar"), ("par4", "parallel_four_bar")]


@against_papers("Spencer 2004: motions", robots="five_bar, four_bar, parallel_four_bar")
@pytest.mark.parametrize("name, robot", LINKAGES)
def test_linkage_motion(name, robot):
    sheet = MOTIONS["trajectories"][name]
    robot, times = bundled(robot), table(sheet)["t"]
    names = sheet["columns"][1:]
    half = len(names) // 2
    expected = columns(sheet, *names[:half]), columns(sheet, *names[half:])
    q0, v0 = expected[0][0], expected[1][0]
    if name == "par4":  # the thesis' closed form, eq. 2.48
        q0 = np.array([q0[0], q0[1], q0[0] - q0[1], q0[1] - q0[0] - np.pi])
        v0 = np.array([v0[0], v0[1], v0[0] - v0[1], v0[1] - v0[0]])
    run, q, v = motion(robot, q0, v0, times)
    assert off(q[:, :half], expected[0]) < MOTION
    assert off(v[:, :half], expected[1]) < MOTION
    assert abs(run.energy[0] - sheet["energy"]) < 1e-9 * abs(sheet["energy"])
    assert np.abs(run.energy_drift).max() < 1e-8 * abs(sheet["energy"])


# ---- through the singular configuration (section 3.2)


def folded(beta, theta):
    """Our coordinates of the symmetric five-bar: link 1 at pi + beta, link 2 at -theta, link 3 at theta."""
    return np.stack([np.pi + beta, -np.pi - beta - theta, 2.0 * theta, np.pi - beta - theta], axis=-1)


def test_five_bar_falls_from_its_singular_configuration():
    """Example 1. Rest is no unique initial value problem there; on the way down the linkage stays symmetric."""
    robot, line = bundled("five_bar"), np.array([np.pi, -np.pi, 0.0, np.pi])
    run, q, _ = motion(robot, line, np.zeros(4), [0.0, 5.0], formulation="svd")
    late = (run.t > 2.0) & (run.t < 3.5)
    back = run.t[late][np.abs(run.q[late] - line).max(axis=1).argmin()]
    assert abs(back - SINGULAR["ex1_branch_A"]["return_time"]) < 0.03
    assert np.abs(run.energy_drift).max() < 1e-3
    assert run.position_residual.max() < 1e-10
    lowest = run.q[run.t < back, 0].max() - np.pi
    assert abs(lowest - SINGULAR["ex1_branch_A"]["turning_beta"]) < 1e-3
    # the exact motion passes the same states, at times that the start leaves open by milliseconds
    x = table(SINGULAR["ex1_exact_symmetric"])
    beta = run.q[run.t < 1.0, 0] - np.pi
    theta = np.interp(x["beta"][1:], beta, run.q[run.t < 1.0, 2] / 2.0)
    assert np.abs(theta - x["theta"][1:]).max() < 1e-4


def test_five_bar_passes_its_singular_configuration():
    """Example 2: before the first crossing the motion is regular, after it energy and closure remain."""
    robot, rest = bundled("five_bar"), np.zeros(4)
    x = table(SINGULAR["ex2_exact_symmetric"])
    run, q, _ = motion(robot, robot.home, rest, x["t"], formulation="svd", energy=True)
    apart = q - folded(x["beta"], x["theta"])
    assert np.abs(np.angle(np.exp(1j * apart))).max() < MOTION  # up to whole turns
    run = ld.simulate(robot, robot.home, rest, 5.0, formulation="svd", energy=True)
    assert abs(run.energy[0] - SINGULAR["ex2_exact_symmetric"]["energy"]) < 1e-9
    crossing = SINGULAR["ex2_exact_symmetric"]["node_crossing_times_beta0"][0]
    assert abs(run.t[np.argmax(run.q[:, 0] > np.pi)] - crossing) < 1.1e-3
    assert np.abs(run.energy_drift).max() < 1e-3 and run.position_residual.max() < 1e-10
    plain = ld.simulate(robot, robot.home, rest, 5.0, formulation="multiplier", stabilisation="baumgarte")
    assert np.abs(plain.energy_drift).max() > 1.0
