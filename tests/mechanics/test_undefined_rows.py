"""Places where a constraint has no direction: every function that uses its rows says so, and names it."""
import numpy as np
import pytest
from mechanisms import held
from tree_cases import bundled

import liedyn as ld
from liedyn.mechanics.dynamics import unified_velocity
from liedyn.mechanics.dynamics.forward import METHODS
from liedyn.mechanics.dynamics.projectors import cross_coupling, passive_joint_map


PLACES = {
    "rod": (lambda: held("distance", length=1.0), "'held' of 'distance' has no direction here: its two points"),
    "cylinder": (lambda: held("on_cylinder", radius=1.0), "'held' .* its point lies on the axis"),
    "circle": (lambda: held("on_circle", radius=1.0), "'held' .* its point lies on the axis"),
    "disk": (lambda: held("disk_on_plane", "free", radius=1.0, child_axis=(0.0, 0.0, 1.0)), "'held' .* disk lies flat"),
    "spheres": (lambda: bundled("rolling_spheres"), "has no direction here: the centres of its spheres coincide"),
    "particle": (lambda: bundled("particle_on_circle"), "'circle' .* its two points coincide"),
}
places = pytest.mark.parametrize("place", PLACES)

FUNCTIONS = {
    "constraint_jacobian": lambda r, q, z: ld.constraint_jacobian(r, q),
    "constraint_bias": ld.constraint_bias,
    "velocity_error": ld.constraints.velocity_error,
    "complete_velocity": lambda r, q, z: ld.complete_velocity(r, q, {r.velocity_names[0]: 1.0}),
    "constraint_wrenches": lambda r, q, z: ld.constraints.constraint_wrenches(r, q, np.ones(len(r.row_names))),
    "check_constraint": lambda r, q, z: ld.constraints.check_constraint(r, r.constraint_names[0], q, z),
    "linearize": lambda r, q, z: ld.linearize(r, q, z, z),
    "linearize by names": lambda r, q, z: ld.linearize(r, q, z, z, independent=r.velocity_names[1:]),
    "linearize pushed": lambda r, q, z: ld.linearize(r, q, z, z, f_ext={r.body_names[0]: [0.0] * 6}),
    "underlying": lambda r, q, z: ld.underlying(r, q, z, z),
    "discretize": lambda r, q, z: ld.discretize(r, q, z, z, 1e-3),
    "controllability": lambda r, q, z: ld.controllability(r, q),
    "inverse_dynamics": lambda r, q, z: ld.inverse_dynamics(r, q, z, {name: 0.0 for name in r.velocity_names[1:]}),
    "unified_velocity": lambda r, q, z: unified_velocity(r, q, z, 1.0),
    "cross_coupling": lambda r, q, z: cross_coupling(r, q),
    "passive_joint_map": lambda r, q, z: passive_joint_map(r, q),
    "simulate": lambda r, q, z: ld.simulate(r, q, z, 0.01, progress=False),
    "simulate projected": lambda r, q, z: ld.simulate(r, q, z, 0.01, start="project", progress=False),
    "simulate unified": lambda r, q, z: ld.simulate(
        r, q, z, 0.01, formulation="unified", stabilisation="none", start="project", progress=False),
}


def at(place):
    make, said = PLACES[place]
    robot = make()
    return robot, robot.neutral, np.zeros(robot.nv), said


@places
@pytest.mark.parametrize("function", FUNCTIONS)
def test_the_constraint_is_named(place, function):
    robot, q, rest, said = at(place)
    with pytest.raises(ld.SingularConfigurationError, match=said):
        FUNCTIONS[function](robot, q, rest)


@places
@pytest.mark.parametrize("method", METHODS)
def test_no_formulation_goes_on(place, method):
    robot, q, rest, said = at(place)
    for options in ({}, {"baumgarte": (1.0, 1.0)}, {"f_ext": {robot.body_names[0]: [0.0] * 6}}):
        if method != "unified" or "baumgarte" not in options:
            with pytest.raises(ld.SingularConfigurationError, match=said):
                ld.forward_dynamics(robot, q, rest, rest, method=method, **options)


@places
@pytest.mark.parametrize("way", [{}, {"independent": "auto"}, {"independent": "tangent"}], ids=str)
def test_batches_name_the_state(place, way):
    """Also where the first state is regular, so that coordinates are chosen there."""
    robot, q, _, said = at(place)
    aside = ld.integrate(robot, q, 0.1 * np.cos(np.arange(robot.nv)))
    for count in (3, 40):
        many = np.stack([aside] * count + [q])
        rest = np.zeros((count + 1, robot.nv))
        with pytest.raises(ld.SingularConfigurationError, match=rf"{said}.*state {count} of the batch"):
            ld.forward_dynamics(robot, many, rest, rest, **way)
        with pytest.raises(ld.SingularConfigurationError, match=rf"{said}.*state {count} of the batch"):
            ld.constraint_bias(robot, many, rest)


@places
def test_what_needs_no_direction_is_there(place):
    robot, q, _, _ = at(place)
    assert np.isfinite(ld.closure_error(robot, q)).all() and np.isfinite(ld.virtual_jacobian(robot, q)).all()
    closed = ld.close(robot, q)
    assert np.abs(ld.closure_error(robot, closed)).max() < 1e-12


def test_who_may_not_leave_the_centre_is_told_so():
    robot = bundled("rolling_spheres")
    with pytest.raises(ld.ClosureError, match="'contact' is left open by 0.6 m"):
        ld.close(robot, robot.neutral, {name: 0.0 for name in robot.coordinate_names[:3]})


@places
@pytest.mark.parametrize("options", [
    {"formulation": name} for name in ("nullspace", "svd", "multiplier", "unified")
] + [{"stabilisation": name} for name in ("none", "baumgarte", "minimal")
] + [{"method": name} for name in ("rkmk", "implicit", "generalized_alpha", "moreau", "RK45", "Radau")], ids=str)
def test_runs_from_there_stop(place, options):
    robot, q, rest, said = at(place)
    with pytest.raises(ld.SimulationError, match=rf"stopped at t = 0 s: .*{said}") as error:
        ld.simulate(robot, q, rest, 0.01, start="as given", progress=False, **options)
    assert np.array_equal(error.value.state[1], q)


def test_a_run_keeps_what_it_has():
    """A point that flies through the centre of its sphere with a quarter of a metre per step: nothing bends its way."""
    robot = held("distance", length=1.0)
    with pytest.raises(ld.SimulationError, match="stopped at t = 0.75 s: .*its two points coincide") as error:
        ld.simulate(robot, [1.0, 0.0, 0.0], [-1.0, 0.0, 0.0], 3.0, dt=0.25, stabilisation="none", start="as given",
                    progress=False)
    assert error.value.trajectory.q[-1, 0] == 0.25


# ---- contacts


def coin(friction=0.3):
    """A disk with a one-sided floor, which lies on it: its rim touches all round."""
    builder = ld.Builder("coin")
    builder.body("coin", 1.0, inertia=(1.0, 1.0, 2.0))
    builder.joint("move", "free", "ground", "coin")
    builder.constraint("floor", "disk_on_plane", "ground", "coin", radius=1.0, child_axis=(0.0, 0.0, 1.0),
                       unilateral=True, friction=friction)
    return builder.build()


def test_a_coin_that_lies_flat_touches_nowhere_in_particular():
    robot = coin()
    rest, said = np.zeros(6), "'floor' of 'coin' has no direction here: its disk lies flat"
    for function in (ld.forward_dynamics, ld.linearize):
        with pytest.raises(ld.SingularConfigurationError, match=said):
            function(robot, robot.neutral, rest, rest)
    for options in ({}, {"method": "moreau"}):
        with pytest.raises(ld.SimulationError, match=said):
            ld.simulate(robot, robot.neutral, rest, 0.1, progress=False, **options)
    above = robot.neutral + [0, 0, 0, 0, 0, 0, 0.5]  # where it falls it does not matter
    assert ld.forward_dynamics(robot, above, rest, rest).a[5] == pytest.approx(-9.81)
    with pytest.raises(ld.SimulationError, match=said) as error:
        ld.simulate(robot, above, rest, 1.0, progress=False)
    assert abs(error.value.trajectory.q[-1, 6]) < 1e-6  # the trajectory goes down to the floor
