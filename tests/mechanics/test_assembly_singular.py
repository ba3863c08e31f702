"""Assembly from singular guesses, of batches of held values, and of what cannot be assembled.

Oracles are the closed forms of planar linkages. Closed configurations are at rounding, 1e-14 for lengths of some
metres; near a singular one an angle is as exact as the square root of that, but the examples end away from them.
"""
import numpy as np
import pytest
from singular_mechanisms import linkage, vertical_slider_crank
from tree_cases import bundled

from liedyn.machine.errors import ClosureError, InputError
from liedyn.mechanics.constraints import close, closure_error, virtual_coordinates
from liedyn.model import Builder

EXACT = 1e-12


def closed(robot, q):
    return np.abs(closure_error(robot, q)).max() < EXACT


@pytest.mark.parametrize("cut", ["inline", "revolute"])
@pytest.mark.parametrize("crank", [-1.0, 0.0, 1.0, 2.5])
def test_slider_crank_from_all_zeros(cut, crank):
    """All lies along x, across the slider: no motion of first order brings the tip of the rod to x = 0."""
    robot = vertical_slider_crank(cut)
    q = close(robot, robot.neutral, crank=crank)
    assert closed(robot, q) and q[0] == crank
    assert abs(np.cos(crank) + 2.0 * np.cos(crank + q[1])) < EXACT  # the tip is on the y axis
    if cut == "revolute":
        assert abs(np.sin(crank) + 2.0 * np.sin(crank + q[1]) - q[2]) < EXACT
    assert (close(robot, robot.neutral, crank=crank) == q).all()  # nothing is random


FLAT = {"parallelogram": [0.0, np.pi, np.pi], "along": [0.0, 0.0, -np.pi], "stretched": [0.0, 0.0, 0.0]}


@pytest.mark.parametrize("guess", FLAT.values(), ids=FLAT)
@pytest.mark.parametrize("angle", [None, 0.5, -1.0, 2.0])
def test_flat_parallel_four_bar(guess, angle):
    """Both motions of a rhombus meet where it is flat; any of them is an assembly."""
    robot = linkage(1.0, 1.0, 1.0, base=1.0).build()
    held = {} if angle is None else {"l1": angle}
    q = close(robot, guess, held)
    assert closed(robot, q) and (angle is None or q[0] == angle)
    first, second, third = np.cumsum(q)
    corner = np.exp(1j * first) + np.exp(1j * second) + np.exp(1j * third)
    assert abs(corner - 1.0) < EXACT


@pytest.mark.parametrize("held", [{}, {"l1": 0.5}, {"l1": -0.4}, {"l1": 0.5, "l2": -0.8}], ids=str)
def test_stretched_five_bar(held):
    robot = linkage(1.0, 2.0, 2.0, 1.0, base=4.0).build()
    q = close(robot, robot.neutral, held)  # 2 m too long where it lies
    assert closed(robot, q)
    assert all(q[robot.coordinate_index(name)] == value for name, value in held.items())


def test_five_bar_leaves_its_singular_configuration():
    robot, line = bundled("five_bar"), np.array([np.pi, -np.pi, 0.0, np.pi])
    assert (close(robot, line) == line).all()  # closed as it is
    for q1 in (np.pi - 1.0, np.pi + 0.3):
        q = close(robot, line, q1=q1)
        assert closed(robot, q) and q[0] == q1


def test_a_guess_where_rows_are_not_defined():
    """One sphere in the centre of the other: no direction leads out, and every one does."""
    robot = bundled("rolling_spheres")
    q = close(robot, robot.neutral)
    assert abs(np.linalg.norm(q[:3]) - 0.6) < EXACT


# ---- batches


def test_held_values_are_batches():
    robot = bundled("loader")
    boom, bucket = np.linspace(-0.2, 0.5, 7)[:, None], np.linspace(-0.4, 0.3, 5)
    q = close(robot, robot.home, boom=boom, bucket=bucket)
    assert q.shape == (7, 5, robot.nq) and closed(robot, q)
    for i, j in ((0, 0), (3, 2), (6, 4)):
        alone = close(robot, robot.home, boom=boom[i, 0], bucket=bucket[j])
        assert (alone == q[i, j]).all()
    assert (q[..., robot.coordinate_index("boom")] == boom).all()
    guesses = np.stack([robot.home, q[3, 2], q[6, 4]])
    assert np.abs(close(robot, guesses, boom=0.1, bucket=[-0.1, -0.1, -0.1])
                  - close(robot, robot.home, boom=0.1, bucket=-0.1)).max() < EXACT


def test_virtual_coordinates_are_batches():
    robot = bundled("five_bar")
    pin = virtual_coordinates(robot, robot.home)[0] + np.linspace(-0.3, 0.4, 6)
    q = close(robot, robot.home, {"pin": pin, "q1": 2.0})
    assert closed(robot, q) and np.abs(virtual_coordinates(robot, q)[:, 0] - pin).max() < EXACT


def test_joints_with_several_coordinates_are_batches():
    b = Builder("arm")
    b.body("ball", 1.0, inertia=(1.0, 1.0, 1.0))
    b.body("tip", 1.0, inertia=(1.0, 1.0, 1.0))
    b.joint("ball", "spherical", "ground", "ball")
    b.joint("tip", "translational", "ball", "tip")
    b.constraint("floor", "on_plane", "ground", "tip", parent_placement=(0.0, 0.0, 0.3))
    robot = b.build()
    half = np.linspace(-0.4, 0.4, 5)
    turns = np.stack([np.sin(half), 0 * half, 0 * half, np.cos(half)], axis=-1)
    q = close(robot, robot.neutral, ball=turns)
    assert (q[:, :4] == turns).all() and closed(robot, q)
    with pytest.raises(InputError, match="quaternion"):
        close(robot, robot.neutral, ball=[0.0, 0.0, 1.0, 1.0])


def test_bad_batches():
    robot = bundled("four_bar")
    with pytest.raises(InputError, match="do not broadcast"):
        close(robot, [robot.home] * 3, crank=[0.1, 0.2])
    with pytest.raises(InputError, match="finite"):
        close(robot, robot.home, crank=[0.1, np.inf])
    with pytest.raises(InputError, match="numbers"):
        close(robot, robot.home, crank="up")
    with pytest.raises(ClosureError, match=r"rocker = 3: loop 'pin' .* \(state 2 of the batch\)"):
        close(robot, robot.home, rocker=robot.home[2] + np.array([0.0, 0.1, 3.0 - robot.home[2], 0.0]))
    assert close(robot, np.empty((0, 3))).shape == (0, 3)


# ---- what cannot be closed


def test_two_pins_four_centimetres_apart():
    builder = linkage(0.4, 1.0, 0.8, base=1.1)
    builder.loop("second", "revolute", "ground", "l3", parent_placement=(1.14, 0.0, 0.0),
                 child_placement=(0.8, 0.0, 0.0))
    builder.constraint("innocent", "on_plane", "ground", "l1", axis=(0.0, 0.0, 1.0))
    robot = builder.build()
    for held in ({}, {"l1": 0.9}):
        with pytest.raises(ClosureError, match="loop 'pin' and loop 'second' contradict each other") as error:
            close(robot, [0.9, -0.9, -1.2], held)
        assert "innocent" not in str(error.value) and "0.02 m" in str(error.value)
        assert abs(error.value.residual - 0.02) < 1e-6 and error.value.loop in ("pin", "second")


def test_two_welds_four_centimetres_apart():
    """Both ends of a bar are welded to their neighbours, and the neighbours to each other, 4 cm too far."""
    builder = Builder("frame")
    for name in ("left", "bar"):
        builder.body(name, 1.0, inertia=(1.0, 1.0, 1.0))
        builder.joint(name, "planar", "ground", name)
    builder.loop("at zero", "fixed", "ground", "left")
    builder.loop("first weld", "fixed", "left", "bar", parent_placement=(1.0, 0.0, 0.0))
    builder.loop("second weld", "fixed", "ground", "bar", parent_placement=(1.04, 0.0, 0.0))
    with pytest.raises(ClosureError, match="loop 'at zero', loop 'first weld' and loop 'second weld'") as error:
        close(builder.build(), np.array([0.1, 0.2, 0.1, 1.0, 0.2, -0.1]))
    assert abs(error.value.residual - 0.04 / 3.0) < 1e-6  # the least squares share it


def test_triangle_of_rods_too_short():
    with pytest.raises(ClosureError, match="loop 'pin' is left open by 1 m") as error:
        close(linkage(1.0, 1.0, base=3.0).build(), [0.3, 0.4])
    assert abs(error.value.residual - 1.0) < 1e-9
    builder = Builder("triangle")
    for name in "AB":
        builder.body(name, 1.0, inertia=(1.0, 1.0, 1.0))
        builder.joint(name, "translational", "ground", name)
    for name, parent, child, place, length in (
            ("left", "ground", "A", 0.0, 1.0), ("middle", "A", "B", 0.0, 0.5), ("right", "ground", "B", 3.0, 1.0)):
        builder.constraint(name, "distance", parent, child, parent_placement=(place, 0.0, 0.0), length=length)
    builder.constraint("floor", "on_plane", "ground", "A")
    with pytest.raises(ClosureError, match="'left', constraint 'middle' and constraint 'right' contradict") as error:
        close(builder.build(), [0.3, 0.2, 0.1, 2.0, 0.1, 0.1])
    assert "floor" not in str(error.value) and abs(error.value.residual - 0.5 / 3.0) < 1e-6


def test_no_error_speaks_of_gaps_of_the_size_of_rounding():
    """A slider-crank cannot come past its dead centre to the slider's other side: nothing is open there."""
    robot = vertical_slider_crank("revolute")
    start = close(robot, robot.neutral, crank=1.0)
    with pytest.raises(ClosureError, match="no path leads") as error:
        close(robot, start, slider=-2.0)
    assert "e-1" not in str(error.value)
    assert abs(error.value.q[2] - 1.0) < 2e-2 and closed(robot, error.value.q)
    with pytest.raises(ClosureError, match="it ends where coordinates would have to jump"):  # none is held
        close(robot, start + [0.0, 0.0, 100.0])
    with pytest.raises(ClosureError, match="left open by 0.5 m"):
        close(robot, start, slider=3.5)
