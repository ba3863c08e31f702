"""What the public functions make of shapes at the edge, and of quaternions that are none."""

import numpy as np
import pytest

import liedyn as ld


@pytest.fixture(scope="module")
def bolted():
    """A robot without coordinates: one body, fixed to the ground."""
    builder = ld.Builder("bolted")
    builder.body("block", 2.0, (0.0, 0.0, 0.5), (1.0, 1.0, 1.0))
    builder.joint("bolts", "fixed", "ground", "block")
    return builder.build()


@pytest.mark.parametrize("lead", [(), (3,), (2, 3)])
def test_no_coordinates(bolted, lead):
    nothing = np.zeros(lead + (0,))
    assert ld.rnea(bolted, nothing, nothing, nothing).shape == lead + (0,)
    assert ld.aba(bolted, nothing, nothing, nothing).shape == lead + (0,)
    assert ld.crba(bolted, nothing).shape == lead + (0, 0)
    assert ld.forward_kinematics(bolted, nothing).shape == lead + (1, 4, 4)
    assert ld.body_jacobian(bolted, nothing, "block").shape == lead + (6, 0)
    assert ld.difference(bolted, nothing, nothing).shape == lead + (0,)


def test_no_states():
    panda = ld.load("panda")
    none = np.zeros((0, 7))
    assert ld.rnea(panda, none, none, none).shape == (0, 7)
    assert ld.crba(panda, none).shape == (0, 7, 7)


@pytest.mark.parametrize("which", [0, 1])
def test_difference_refuses_raw_quaternions(which):
    solo = ld.load("solo12")
    qs = [solo.neutral.copy(), solo.neutral.copy()]
    qs[which][solo.coordinate_names.index(next(n for n in solo.coordinate_names if n.endswith(".qw")))] = 2.0
    with pytest.raises(ld.InputError, match="quaternion"):
        ld.difference(solo, *qs)
