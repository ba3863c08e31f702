"""At and next to singular configurations: what is refused, what is flagged, how many digits are said to be left.

The double four-bar A02 of the IFToMM benchmark moves as a parallelogram: its angle is that of a pendulum with an
inertia of 3 / 3 + 2 = 3 kg m^2 and 3.5 kg at 1 m. It is singular where all rods lie on one line.
"""
import re
import warnings

import numpy as np
import pytest
from singular_mechanisms import double_four_bar, vertical_slider_crank
from tree_cases import bundled

import liedyn as ld
from liedyn.mechanics.dynamics.forward import AT_SINGULAR, METHODS

SIGNS = np.array([1.0, -1.0, 1.0, -1.0, 1.0])
G = 9.81
WAYS = [{"independent": ("V0",)}, {"independent": "auto"}, {"independent": "tangent"}]
OTHERS = sorted(set(METHODS) - {"nullspace"})


def exact(theta):
    """Acceleration of V0, and its derivative by the angle."""
    return -3.5 * G * np.cos(theta) / 3.0, 3.5 * G * np.sin(theta) / 3.0


def closed_states(robot, angle, speed, count=20):
    """States as users have them, closed to rounding, next to an angle; with the angles."""
    rng = np.random.default_rng(0)
    angles = angle * (1.0 + 0.3 * rng.random(count))
    guess = SIGNS * angles[:, None] + 0.05 * angle * rng.normal(size=(count, 5))
    q = ld.close(robot, guess, V0=angles)
    v = np.array([ld.complete_velocity(robot, x, {"V0": speed}, tolerance=1e-12) for x in q])
    return angles, q, v


def digits_said(function, *arguments, **options):
    """The result, and the number in the warning; None if there is no warning."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = function(*arguments, **options)
    said = [int(re.search(r"about (\d+) digits are left", str(each.message))[1]) for each in caught
            if each.category is ld.errors.ConditionWarning]
    assert len(said) == len(caught) <= 1 and all(each.filename == __file__ for each in caught)
    return result, (said[0] if said else None)


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("speed", [0.0, 1.0, 10.0])
@pytest.mark.parametrize("angle", [1e-1, 1e-2, 1e-3, 1e-4])
def test_digits_that_are_left(way, speed, angle):
    """As many as are said, give or take one and a half, where powers of ten of the angle cost two to four digits.

    What is said is rounded down, and silence has to mean six digits, less one.
    """
    robot = double_four_bar(home=1.0)
    angles, q, v = closed_states(robot, angle, speed)
    a, A21 = exact(angles)
    tau = np.zeros_like(q)
    r, said = digits_said(ld.forward_dynamics, robot, q, v, tau, **way)
    left = -np.log10(np.abs(r.a[:, 0] / a - 1.0).max())
    assert (abs(left - said - 0.5) < 1.5 + (said == 0)) if said is not None else left > 5.0, (left, said)
    worst, least = 0.0, None
    for state in zip(q, v, tau, A21):  # a tangent basis that turns, and pivots that change, are not one batch
        ss, said = digits_said(ld.linearize, robot, *state[:3], **way)
        worst = max(worst, abs(ss.A[1, 0] - state[3]) / max(1.0, np.abs(ss.A).max()))
        least = said if least is None else min(least, 9 if said is None else said)
    left = max(0.0, -np.log10(worst))
    assert (abs(left - least - 0.5) < 1.5 + (least == 0)) if least is not None and least < 9 else left > 5.0, (
        left, least)


@pytest.mark.parametrize("method", OTHERS)
def test_every_formulation_says_how_many_digits_are_left(method):
    robot = double_four_bar(home=1.0)
    state = closed_states(robot, 1e-4, 1.0)[1:]
    _, said = digits_said(ld.forward_dynamics, robot, *state, np.zeros(5), method=method)
    assert said is not None and said <= 4
    state = closed_states(robot, 0.3, 1.0)[1:]
    assert digits_said(ld.forward_dynamics, robot, *state, np.zeros(5), method=method)[1] is None


def test_at_a_millionth_of_a_radian():
    """A21 is off by up to 1e-2 there even in states that are exact."""
    robot = double_four_bar()
    for way in ({}, *WAYS):
        ss, said = digits_said(ld.linearize, robot, SIGNS * 1e-6, -SIGNS, np.zeros(5), **way)
        assert said is not None and said <= 2
    pair = np.stack([SIGNS, SIGNS * 1e-6])
    assert digits_said(ld.linearize, robot, pair, -SIGNS, np.zeros(5))[1] is not None
    assert digits_said(ld.forward_dynamics, robot, pair, -SIGNS, np.zeros(5))[1] is not None


def test_rows_that_vanish_together():
    """Aghili's slider-crank has one row, and that is zero where both links lie in one line across the rail."""
    robot = bundled("slider_crank")
    for method in METHODS:
        for crank, few in ((np.pi / 2 - 0.3, False), (np.pi / 2 - 1e-5, True)):
            q = ld.close(robot, [crank, np.pi - 2 * crank], crank=crank)
            v = ld.complete_velocity(robot, q, {"crank": 1.0})
            _, said = digits_said(ld.forward_dynamics, robot, q, v, [0.0, 0.0], method=method)
            assert (said is not None) == few


@pytest.mark.parametrize("name", ld.bundled())
def test_no_alarm_at_home(name):
    robot = bundled(name)
    rest = np.zeros(robot.nv)
    v = rest + 1.0
    if robot.row_names:
        v -= np.linalg.pinv(ld.constraint_jacobian(robot, robot.home), rcond=1e-9) @ ld.constraint_jacobian(
            robot, robot.home) @ v
    for speed in (rest, v):
        assert digits_said(ld.linearize, robot, robot.home, speed, rest)[1] is None
        for method in ("nullspace", "svd"):
            r, said = digits_said(ld.forward_dynamics, robot, robot.home, speed, rest, method=method)
            assert said is None and not r.singular


# ---- exactly at one


@pytest.mark.parametrize("method", METHODS)
def test_pseudoinverses_go_on(method):
    """A02 is singular at its very home: nothing but the places next to it tells so."""
    for home in (0.0, 1.0):
        robot, q, rest = double_four_bar(home), np.zeros(5), np.zeros(5)
        batch = np.stack([SIGNS, q])
        if method in AT_SINGULAR:
            r = ld.forward_dynamics(robot, q, rest, rest, method=method)
            assert r.singular is True and r.rank == 2
            assert ld.forward_dynamics(robot, batch, rest, rest, method=method).singular.tolist() == [False, True]
            continue
        with pytest.raises(ld.SingularConfigurationError, match="rank of its constraints is 2 here and") as error:
            ld.forward_dynamics(robot, q, rest, rest, method=method)
        assert error.value.singular_values[2] < 1e-14
        with pytest.raises(ld.SingularConfigurationError, match="state 1 of the batch"):
            ld.forward_dynamics(robot, batch, rest, rest, method=method)


@pytest.mark.parametrize("way", [{}, *WAYS, {"independent": ("V0", "V1", "V2")}], ids=str)
def test_no_coordinates_linearize_there(way):
    robot, rest = double_four_bar(), np.zeros(5)
    for function in (ld.linearize, ld.underlying, ld.forward_dynamics):
        if function is not ld.forward_dynamics and not way:
            continue  # pivoting chooses three coordinates at home
        with pytest.raises((ld.SingularConfigurationError, ld.InputError)):
            function(robot, np.zeros(5), rest, rest, **way)


@pytest.mark.parametrize("name", [name for name in ld.bundled() if bundled(name).row_names])
def test_redundant_rows_are_not_singular(name):
    """A planar loop closed by a spatial pin has 5 rows of rank 2 everywhere, a delta 18 of rank 9."""
    robot = bundled(name)
    rest = np.zeros(robot.nv)
    for method in METHODS if not robot.singular_tree else ("nullspace", "svd"):
        assert ld.forward_dynamics(robot, robot.home, rest, rest, method=method).singular is False


def test_a_slider_crank_at_its_dead_centre_is_regular():
    """Crank and rod in one line along the slide: the slider does not tell where the crank goes."""
    robot = vertical_slider_crank("revolute")
    q = np.array([np.pi / 2, 0.0, 3.0])
    assert np.abs(ld.closure_error(robot, q)).max() < 1e-15
    r = ld.forward_dynamics(robot, q, np.zeros(3), np.zeros(3), independent=("crank",))
    assert r.rank == 2 and not r.singular
    with pytest.raises(ld.SingularConfigurationError, match="slider do not determine"):
        ld.forward_dynamics(robot, q, np.zeros(3), np.zeros(3), independent=("slider",))
