"""The examples of Aghili 2005 against independent numbers (tests/reference/aghili.json, see its notes)."""

import json
from pathlib import Path

import numpy as np
import pytest
from tree_cases import bundled

from liedyn.control import controllability, inverse_dynamics
from liedyn.dynamics import forward_dynamics
from liedyn.dynamics.terms import terms_kernel
from liedyn.errors import ControllabilityError, InputError

REFERENCE = json.loads((Path(__file__).parent / "reference" / "aghili.json").read_text())
SINGULAR = REFERENCE["slider_crank_singular"]
# the reference has 16 digits of numbers up to 40
TOLERANCE = 1e-12


def close(actual, expected, tolerance=TOLERANCE):
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)


def states_of(name):
    robot = bundled({"particle": "particle_on_circle", "slider_crank_states": "slider_crank"}[name])
    return [(robot, state) for state in REFERENCE[name]["states"]]


STATES = states_of("particle") + states_of("slider_crank_states")


@pytest.mark.parametrize("robot, state", STATES)
def test_states(robot, state):
    """The terms of the equations of motion, accelerations, constraint force and multiplier."""
    q, v = np.array(state["q"]), np.array(state["v"])
    M, h, G, residual, psi, gamma = terms_kernel(robot.ints, robot.floats, q, v, np.empty(0))
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
    r = forward_dynamics(robot, q, [0.0, 0.0], [1.0, 2.0], independent="auto")
    assert r.rank == 0
    close(r.a, np.linalg.solve(SINGULAR["M_c_all_forms"], [1.0, 2.0]))
    assert not r.lam.any()
    both = inverse_dynamics(robot, q, [0.0, 0.0], {"crank": 1.0, "rod": 2.0})
    close(both.tau, [1.0, 2.0])
    assert both.controllability
    with pytest.raises(InputError, match="2 degrees of freedom here"):
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
    from dataclasses import replace

    from liedyn.model.robot import build

    model = bundled("slider_crank").model
    return build(replace(model, gravity=np.array([0.0, -float(gravity.removeprefix("g")), 0.0])))


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
