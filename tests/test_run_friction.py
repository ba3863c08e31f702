"""Derivatives of runs in which contacts slide, stick and begin to slip: closed forms, and differences of runs."""
import numpy as np
import pytest
from closed_chains import difference

import liedyn as ld

G, MU = 9.81, 0.3


def block(directions="x", stiffness=0.0, carriage=False):
    """A block on the floor, on slides; with a spring across, or behind a carriage that pulls it by a spring."""
    b = ld.Builder("block")
    parent = "ground"
    for axis in directions:
        b.body(f"slide {axis}", mass=0.1)
        b.joint(axis, "prismatic", parent, f"slide {axis}", axis={"x": (1, 0, 0), "y": (0, 1, 0)}[axis],
                stiffness=stiffness if axis == "y" else 0.0)
        parent = f"slide {axis}"
    b.body("block", mass=2.0)
    b.joint("z", "prismatic", parent, "block")
    b.constraint("floor", "on_plane", "ground", "block", unilateral=True, friction=MU)
    if carriage:
        b.body("carriage", mass=1.0)
        b.joint("c", "prismatic", "ground", "carriage", axis=(1, 0, 0))
        b.coordinate_force("spring", {"c": 1.0, "x": -1.0}, stiffness=60.0)
    return b.build()


def test_braking_distance():
    """x = v^2 / (2 a) with a = mu m g / (m + m_slide), reached after v / a."""
    robot, speed = block(), 1.2
    run = ld.differentiate_run(robot, [0.0, 0.0], [speed, 0.0], 1.0, dt=2e-3, parameters=["gravity"])
    assert [each.name for each in run.trajectory.events] == ["stick floor"]
    a = MU * 2.0 * G / 2.1
    moved = run.forward(v0=[1.0, 0.0])
    row = np.flatnonzero(np.diff(run.trajectory.t) == 0.0)[0]
    assert moved.q[-1, 0] == pytest.approx(speed / a, rel=1e-9)
    assert moved.t[row] == pytest.approx(1.0 / a, rel=1e-9)
    assert abs(moved.v[-1]).max() < 1e-9
    assert run.forward(parameters=[1.0]).q[-1, 0] == pytest.approx(-speed ** 2 / (2.0 * a * G), rel=1e-9)
    assert run.adjoint(q=[1.0, 0.0]).v0[0] == pytest.approx(speed / a, rel=1e-9)


def test_slip_that_turns():
    """In the plane, a spring across bends the way: the direction of friction turns with the slip."""
    robot, v = block("xy", stiffness=30.0), np.array([1.5, 0.4, 0.0])
    q, along = np.array([0.0, 0.1, 0.0]), np.array([0.3, -0.7, 0.0])
    given = dict(dt=2e-3)
    run = ld.differentiate_run(robot, q, v, 0.25, **given, parameters=["mass:block", "stiffness:y"])
    assert not run.trajectory.events and (run.trajectory.status == 2).all()

    def last(q, v, robot=robot):
        tr = ld.simulate(robot, q, v, 0.25, **given)
        return np.r_[tr.q[-1], tr.v[-1]]

    for varied, f in ((dict(v0=along), lambda e: last(q, v + e * along)),
                      (dict(q0=along), lambda e: last(q + e * along, v))):
        moved = run.forward(**varied)
        np.testing.assert_allclose(np.r_[moved.q[-1], moved.v[-1]], difference(f, 1e-3), rtol=0, atol=1e-9)

    def heavier(e):
        b = ld.Builder.of(robot)
        b.change("body", "block", mass=2.0 + e)
        return last(q, v, b.build())

    moved = run.forward(parameters=[1.0, 0.0])
    np.testing.assert_allclose(np.r_[moved.q[-1], moved.v[-1]], difference(heavier, 1e-2), rtol=0, atol=1e-9)


def test_stick_and_slip():
    """A carriage draws the block by a spring: it begins to slip where the spring overcomes friction."""
    robot = block(carriage=True)
    q, v, along = np.zeros(3), np.array([0.0, 0.0, 0.9]), np.array([0.0, 0.0, 1.0])
    run = ld.differentiate_run(robot, q, v, 0.8, dt=2e-3)
    assert [each.name for each in run.trajectory.events] == ["slip floor", "stick floor"] * 2

    def last(e):
        tr = ld.simulate(robot, q, v + e * along, 0.8, dt=2e-3)
        return np.r_[tr.q[-1], tr.v[-1]]

    moved, wanted = run.forward(v0=along), difference(last, 1e-4)
    found = np.r_[moved.q[-1], moved.v[-1]]
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-9 * np.abs(wanted).max())
