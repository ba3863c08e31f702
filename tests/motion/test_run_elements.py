"""Derivatives of runs by parameters of force elements, and of what displaces them, against differences of runs."""
from functools import partial

import numpy as np
import pytest
from closed_chains import difference
from comparison import off
from perturbed_models import perturbed
from test_elements_at_cuts import five_bars
from test_sensitivities import rubbery_five_bar, springy_five_bar

import liedyn as ld
from liedyn.linear.sensitivity.model_parameters import chosen

REST = np.zeros(4)


def compare(robot, names, inputs, q=None, t_final=0.1, dt=5e-3, h=2e-3, most=2e-9):
    """Differences are of sixth order, h^6 by seventh derivatives; rounding of runs leaves 1e-13 / h."""
    q, rest = robot.home if q is None else q, np.zeros(robot.nv)
    given = dict(dt=dt, start="project", **inputs)  # the start moves with what would open the loop
    run = ld.differentiate_run(robot, q, rest, t_final, parameters=names, **given)

    def last(name, e):
        tr = ld.simulate(perturbed(robot, name, e), q, rest, t_final, **given)
        return np.r_[tr.q[-1], tr.v[-1], [event.t for event in tr.events]]

    happened = [np.flatnonzero(run.trajectory.t == event.t)[0] for event in run.trajectory.events]
    assert run.parameters == tuple(names)
    for name, direction in zip(names, np.eye(len(names))):
        moved = run.forward(parameters=direction)
        found = np.r_[moved.q[-1], moved.v[-1], moved.t[happened]]
        assert np.abs(found).max() > 1e-9, name  # what is zero would be met by anything
        assert off(found, difference(partial(last, name), h)) < most, name
    return run


@pytest.mark.validation("derivatives of a run by parameters of force elements", robots="five_bar with five laws",
                        oracle="Sixth-order differences of runs")
def test_every_law():
    robot = springy_five_bar()
    known = chosen(robot, ["strut", "gas", "bar", "motor", "rub"])
    names = [name for name in known if "placement" not in name and name != "rest:motor"]  # it does not know where it is
    assert len(names) == 21
    compare(robot, names, dict(tau=[1.0, 0.0, -2.0, 0.5]))


def test_places():
    """Of the ends of springs, and of links that carry them."""
    compare(springy_five_bar(), ["parent_placement.x:strut", "child_placement.y:gas", "placement.x:q2", "mass:link2",
                                 "child_placement.x:pin", "gravity"], dict(tau=[1.0, 0.0, -2.0, 0.5]))


def test_elements_at_cut_joints():
    """A motor and a spring at the pin, and a cylinder whose force turns with it, with inputs for each step."""
    robot = five_bars()
    u = 3.0 * np.random.default_rng(0).normal(size=(20, 3))
    run = compare(robot, ["stiffness:spring", "rest:spring", "damping:spring", "placement.x:q2",
                          "child_placement.y:pin", "parent_placement.x:pin", "mass:link3"], dict(u=u))
    du = np.random.default_rng(1).normal(size=u.shape)
    wanted = difference(lambda e: ld.simulate(robot, robot.home, REST, 0.1, u=u + e * du, dt=5e-3).q[-1], 1e-2)
    np.testing.assert_allclose(run.forward(inputs=du).q[-1], wanted, rtol=0, atol=1e-10)


def test_jump_off_a_spring():
    """A mass is thrown up by a spring until it pulls its foot from the floor; a cylinder pulls aslant."""
    b = ld.Builder("hopper")
    b.body("foot", mass=1.0)
    b.body("head", mass=2.0)
    b.joint("low", "prismatic", "ground", "foot")
    b.joint("leg", "prismatic", "foot", "head")
    b.constraint("floor", "on_plane", "ground", "foot", unilateral=True)
    b.spring("coil", "foot", "head", length=0.5, stiffness=400.0, damping=0.5)
    b.cylinder("ram", "foot", "head", (0.4, 0.0, 0.3), gear=-1.0)
    # short steps: the bound of the energy corrects the error of a step, and its correction counts as constant. Events
    # are located to 1e-12 s, which differences enlarge
    run = compare(b.build(), ["stiffness:coil", "damping:coil", "length:coil", "mass:head"],
                  dict(u=[6.0]), [0.0, 0.2], 0.25, 5e-4, 1e-2, 1e-8)
    assert [each.name for each in run.trajectory.events] == ["release floor"]


def test_users_law():
    """Its first slopes are enough for parameters of everything else."""
    b = ld.Builder.of(ld.load("five_bar"))
    b.spring("hard", "ground", "link2", (0.3, 0.5, 0.0), (0.1, 0.0, 0.0), length=0.3,
             law=lambda x, w: (40.0 * x + 90.0 * x ** 3 + w, 40.0 + 270.0 * x ** 2, 1.0))
    compare(b.build(), ["length:hard", "child_placement.x:hard", "placement.x:q3", "mass:link2"], {})


def test_bushings_and_wrenches_that_are_displaced():
    compare(rubbery_five_bar(), ["parent_placement.ry:rubber", "child_placement.x:rubber", "child_placement.y:wind",
                                 "child_placement.x:jet", "placement.x:q2", "mass:link2"], {})
