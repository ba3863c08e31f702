"""The examples of Spencer 2004 against numbers derived independently, by symbolic equations and 60-digit derivatives.

`reference/*.json` holds a copy of those numbers. Relative 1e-12 is ten times the rounding seen; the issue asks for
1e-10.
"""
import json
from pathlib import Path

import numpy as np
import pytest
from comparison import relative
from papers import against_papers
from tree_cases import bundled

from liedyn.linear import linearize
from liedyn.mechanics.constraints import closure_error, constraint_jacobian
from liedyn.mechanics.dynamics import forward_dynamics
from liedyn.mechanics.tree.forward_kinematics import forward_kinematics

NUMBERS = Path(__file__).parents[1] / "reference"
# reference order of the loader's coordinates in ours: depth first, the boom's children before the cylinders
ORDERS = {"loader": [0, 4, 5, 1, 2, 3, 6, 7]}
FILES = {"par4": "parallel_four_bar", "fourbar": "four_bar", "fivebar": "five_bar", "loader": "loader"}


def cases():
    linkages = json.loads((NUMBERS / "thesis_linearization.json").read_text())
    linkages["loader"] = json.loads((NUMBERS / "thesis_loader.json").read_text())
    for name in FILES:
        for k, state in enumerate(linkages[name]["states"]):
            for case in state["cases"]:
                yield pytest.param(name, state, case, id=f"{name}-{k}-{case['independent_index_0based']}")


def off(actual, expected):
    return relative(actual, np.reshape(expected, np.shape(actual)))


def state_of(robot, order, state):
    """Reference vectors in our order."""
    vectors = []
    for key in ("q", "v", "tau"):
        vector = np.zeros(robot.nv)
        vector[order] = state.get(key, np.zeros(robot.nv))
        vectors.append(vector)
    return vectors


@against_papers("Spencer 2004: accelerations, forces, A and B, 60 digits",
                robots="four_bar, five_bar, parallel_four_bar, loader")
@pytest.mark.parametrize("name, state, case", list(cases()))
def test_thesis(name, state, case):
    robot = bundled(FILES[name])
    order = ORDERS.get(name, list(range(robot.nv)))
    q, v, tau = state_of(robot, order, state)
    assert np.abs(closure_error(robot, q)).max() < 1e-12
    assert np.abs(constraint_jacobian(robot, q) @ v).max() < 1e-12
    independent = [robot.velocity_names[order[k]] for k in case["independent_index_0based"]]

    r = forward_dynamics(robot, q, v, tau, independent=independent)
    assert off(r.a[order], state["qdd"]) < 1e-12
    # multipliers are the forces of the pins on the parent side, in world axes; ours are in the parent's cut frame
    poses = dict(zip(robot.body_names, forward_kinematics(robot, q)), ground=np.eye(4))
    forces = [poses[loop.parent][:3, :3] @ loop.parent_placement[:3, :3] @ -r.constraint_wrenches[loop.name][3:]
              for loop in robot.model.loops]
    assert off(np.ravel([force[:2] for force in forces]), state["lambda"]) < 1e-12

    ss = linearize(robot, q, v, tau, independent=independent)
    p = len(independent)
    B = np.linalg.lstsq(robot.actuator_matrix.T, ss.B[p:].T, rcond=None)[0].T if robot.model.actuators else ss.B[p:]
    assert off(ss.K[order], case["K"]) < 1e-12
    assert off(ss.A[p:, :p], case["A21"]) < 1e-12
    A22 = np.reshape(case["A22"], (p, p))
    assert np.abs(ss.A[p:, p:] - A22).max() < 1e-12 * max(1.0, np.abs(A22).max())
    if not robot.model.actuators:
        assert off(B[:, order], case["B_tau"]) < 1e-12
    else:
        cylinders = [order.index(int(np.flatnonzero(column)[0])) for column in robot.actuator_matrix.T]
        expected = np.reshape(case["B_tau"], (p, robot.nv))[:, cylinders] * robot.actuator_matrix.max(axis=0)
        assert off(ss.B[p:], expected) < 1e-12
    eigenvalues = np.array([complex(*x) for x in case["eig_Ahat"]]) if "eig_Ahat" in case else None
    if eigenvalues is not None:
        ours = ss.eigenvalues()
        # a double eigenvalue of a defective block moves by sqrt(eps)
        assert all(np.abs(ours - x).min() < 1e-7 * np.abs(eigenvalues).max() for x in eigenvalues)
