"""Derivatives of runs in which contacts slide, stick and begin to slip: closed forms, and differences of runs."""
import numpy as np
import pytest
from closed_chains import difference

import liedyn as ld
from tests.perturbed_models import perturbed

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


def test_coefficient_of_friction():
    """A block that slides and stops, from closed form: x = v^2 / (2 mu m g / (m + m_slide))."""
    robot, speed = block(), 1.2
    run = ld.differentiate_run(robot, [0.0, 0.0], [speed, 0.0], 1.0, dt=2e-3, parameters=["friction:floor"])
    moved = run.forward(parameters=[1.0])
    a = MU * 2.0 * G / 2.1
    assert moved.q[-1, 0] == pytest.approx(-speed ** 2 / (2.0 * a * MU), rel=1e-9)
    assert run.adjoint(q=[1.0, 0.0]).parameters[0] == pytest.approx(moved.q[-1, 0], rel=1e-12)


def test_coefficient_at_which_a_carriage_begins_to_pull():
    """The block sticks until the spring of the carriage is stronger than friction, and slips from there."""
    q, v, end = np.array([0.0, 0.0, 0.02]), np.array([0.0, 0.0, 0.8]), 0.2

    def made(mu):
        b = ld.Builder.of(block(carriage=True))
        b.change("constraint", "floor", friction=mu)
        return b.build()

    def last(e):
        tr = ld.simulate(made(MU + e), q, v, end, dt=2e-3)
        return np.r_[tr.q[-1], tr.v[-1]]

    run = ld.differentiate_run(made(MU), q, v, end, dt=2e-3, parameters=["friction:floor"])
    assert [each.name for each in run.trajectory.events] == ["slip floor"]
    moved = run.forward(parameters=[1.0])
    np.testing.assert_allclose(np.r_[moved.q[-1], moved.v[-1]], difference(last, 1e-4), rtol=0, atol=1e-9)


def thrown(mu=0.25, e=0.4):
    """A body that is thrown on the floor, with a corner far from its centre of mass."""
    b = ld.Builder("thrown")
    b.body("body", mass=2.0, com=(0.05, 0.02, 0.3), inertia=np.diag([0.1, 0.15, 0.2]))
    b.joint("floating", "free", "ground", "body")
    b.constraint("corner", "on_plane", "ground", "body", unilateral=True, friction=mu, restitution=e)
    return b.build()


def test_impact_that_slips():
    """A corner hits the floor obliquely and slips there: in closed form its tangential impulse is mu times the normal
    one, against the slip that is left, and both turn with all that comes before."""
    q, v = np.array([0.1, 0.2, -0.1, np.sqrt(1.0 - 0.06), 0.0, 0.0, 0.1]), np.array([0.3, -0.5, 0.2, 3.0, 1.0, -1.0])
    given = dict(dt=1e-3)
    names = ["friction:corner", "mass:body", "com.x:body", "inertia.xx:body", "child_placement.y:corner", "gravity"]
    run = ld.differentiate_run(thrown(), q, v, 0.12, start="as given", parameters=names, **given)
    assert [each.name for each in run.trajectory.events] == ["contact corner"]
    row = np.flatnonzero(np.diff(run.trajectory.t) == 0.0)[0]
    normal, *rub = run.trajectory.events[0].impulse
    assert np.linalg.norm(rub) == pytest.approx(0.25 * abs(normal), rel=1e-9)

    def last(robot, q, v):
        tr = ld.simulate(robot, q, v, 0.12, start="as given", **given)
        return np.r_[ld.difference(robot, run.trajectory.q[-1], tr.q[-1]), tr.v[-1]]

    along = np.random.default_rng(1).normal(size=(2, 6))
    for varied, f in ((dict(v0=along[0]), lambda e: last(thrown(), q, v + e * along[0])),
                      (dict(q0=along[1]), lambda e: last(thrown(), ld.integrate(thrown(), q, e * along[1]), v))):
        moved = run.forward(**varied)
        np.testing.assert_allclose(np.r_[moved.q[-1], moved.v[-1]], difference(f, 1e-4), rtol=0, atol=1e-8)
    for k, name in enumerate(names):
        moved = run.forward(parameters=np.eye(len(names))[k])
        wanted = difference(lambda e, name=name: last(perturbed(thrown(), name, e), q, v), 1e-4)
        np.testing.assert_allclose(np.r_[moved.q[-1], moved.v[-1]], wanted, rtol=0, atol=1e-8, err_msg=name)
    assert row > 10 and abs(run.forward(parameters=np.eye(6)[0]).v[-1]).max() > 0.1


def test_impact_whose_restitution_is_lowered_is_refused():
    """Newton's law would gain energy (Kane and Levinson 1985); how much less is taken varies with the start."""
    turn = np.array([0.07, -0.27, -0.61])
    q, v = np.r_[turn, np.sqrt(1.0 - turn @ turn), 0.0, 0.0, 0.05], np.array([-0.7, 0.25, 0.49, -0.66, -4.3, -1.5])
    with pytest.warns(ld.ContactWarning, match="is lowered to"), pytest.raises(
            ld.SimulationError, match="the restitution 1 of 'corner' is lowered to 0.98"):
        ld.differentiate_run(thrown(mu=0.3, e=1.0), q, v, 0.05, start="as given", dt=1e-3)
