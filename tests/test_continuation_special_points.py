"""Special points of branches: none is lost, none is invented, and each is told apart."""
import numpy as np
import pytest
from scipy.linalg import eigh

import liedyn as ld

FAR = 10.0
"""Height of the point from which columns are pulled down."""


def column(count):
    """Rods of length 1, one on the other, with torsion springs of 1 Nm/rad, that a cylinder from above pushes down."""
    b = ld.Builder("column", gravity=(0.0, 0.0, 0.0))
    below = "ground"
    for k in range(count):
        b.body(f"rod{k}", 1.0, (0.5, 0.0, 0.0), (0.0, 0.1, 0.1))
        b.joint(f"hinge{k}", "revolute", below, f"rod{k}", placement=(float(k > 0), 0.0, 0.0), stiffness=1.0)
        below = f"rod{k}"
    b.cylinder("load", "ground", below, (count + FAR, 0.0, 0.0), (1.0, 0.0, 0.0))
    return b.build()


def buckling_loads(count):
    """Of the energy K - load H: the length of the cylinder, to second order in absolute angles, is FAR + H / 2."""
    relative = np.eye(count) - np.eye(count, k=-1)
    H = np.eye(count) + np.ones((count, count)) / FAR
    return eigh(relative.T @ relative, H, eigvals_only=True)


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("span", [(-0.5, 5.0), (-500.0, 500.0)])
def test_no_buckling_load_is_lost(count, span):
    """Two of them within a step change the sign of the determinant twice."""
    robot = column(count)
    branch = ld.continuation(robot, ld.trim(robot, np.zeros(count)), "load", span)
    found = [each.parameter for each in branch.special if each.kind == "branch point"]
    assert np.allclose(found, buckling_loads(count), rtol=1e-9, atol=0.0)
    assert {each.kind for each in branch.special} == {"branch point"}  # oscillations without damping stay on the axis


def test_balances_are_chosen_again():
    """Without gravity a motor at the shoulder is not needed, however the elbow is bent; the elbow's acceleration by the
    shoulder's torque, the larger one of the stretched arm, vanishes on the way, and that is no branch point."""
    b = ld.Builder("arm", gravity=(0.0, 0.0, 0.0))
    b.body("upper", 1.0, (0.5, 0.0, 0.0), (0.0, 0.1, 0.1))
    b.body("lower", 1.0, (0.5, 0.0, 0.0), (0.0, 0.1, 0.1))
    b.joint("shoulder", "revolute", "ground", "upper")
    b.joint("elbow", "revolute", "upper", "lower", placement=(1.0, 0.0, 0.0))
    b.actuator("motor", "shoulder")
    robot = b.build()
    start = ld.trim(robot, [0.0, 0.0], free=["motor"])
    branch = ld.continuation(robot, start, "elbow", (-0.1, 3.2), free=["motor"])
    assert branch.special == [] and branch.ended == "span" and not branch.u.any()


@pytest.mark.parametrize("direction", [1, -1])
def test_branches_end_at_the_end_of_the_span(direction):
    robot = column(1)
    branch = ld.continuation(robot, ld.trim(robot, [0.0]), "load", (-0.7, 0.8), direction=direction)
    assert branch.ended == "span" and len(branch) > 2
    assert branch.parameter[-1] == pytest.approx(0.8 if direction > 0 else -0.7, rel=1e-12)
    assert branch.eigenvalues[-1] ** 2 == pytest.approx((branch.parameter[-1] * 1.1 - 1.0) / 0.35, rel=1e-9)
