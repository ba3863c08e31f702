"""Examples of Spencer 2004 in motion, and the pendulum; states of the linkages are in test_reference.py.

Against `reference/thesis_checks_trajectories.json` (reduced equations, 50 digits) and `thesis_linearization.json`.
"""
import numpy as np
import pytest
from papers import MOTION, STATE, columns, motion, numbers, off, table
from tree_cases import bundled

import liedyn as ld

MOTIONS = numbers("thesis_checks_trajectories")
PENDULUM = numbers("thesis_linearization")["pendulum"]


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
