"""Derivatives of runs against complex-step derivatives of an independent program, and against differences of runs."""
import warnings

import numpy as np
import pytest
from comparison import off
from closed_chains import difference
from complex_five_bar import ComplexFiveBar

import liedyn as ld
from tests.perturbed_models import perturbed

H, STEPS, STEP = 5e-3, 60, 1e-30
ARM, REST = ld.load("five_bar"), np.zeros(4)


def allowed(robot, q, seed=0, size=0.1):
    """A velocity and a direction that the constraints allow at q."""
    S, rng = ld.linearize(robot, q, np.zeros(robot.nv), np.zeros(robot.nv)).S, np.random.default_rng(seed)
    return size * S @ rng.normal(size=S.shape[1]), S @ rng.normal(size=S.shape[1])


@pytest.mark.validation("derivatives of a run by start, inputs, masses, lengths", robots="five_bar",
                        oracle="Complex-step derivatives of an independent program")
def test_complex_step():
    rng = np.random.default_rng(0)
    v0, along = allowed(ARM, ARM.home)
    tau, d_tau = rng.normal(size=(STEPS, 4)), rng.normal(size=(STEPS, 4))
    names = ["mass:link1", "mass:link3", "com.x:link2", "placement.x:q2", "child_placement.x:pin",
             "parent_placement.x:pin"]
    run = ld.differentiate_run(ARM, ARM.home, v0, H * STEPS, tau=tau, dt=H, parameters=names)
    q0, plain = ARM.home.astype(complex), ComplexFiveBar()
    end = plain.run(q0, v0.astype(complex), tau, H, STEPS)
    np.testing.assert_allclose(np.r_[run.trajectory.q[-1], run.trajectory.v[-1]], end.real, rtol=0, atol=1e-11)

    def last(**varied):
        found = run.forward(**varied)
        return np.r_[found.q[-1], found.v[-1]]

    def compare(found, moved):
        assert off(found, moved.imag / STEP) < 1e-11

    compare(last(v0=along), plain.run(q0, v0 + 1j * STEP * along, tau, H, STEPS))
    compare(last(inputs=d_tau), plain.run(q0, v0.astype(complex), tau + 1j * STEP * d_tau, H, STEPS))
    # a displacement of the start takes its velocity along
    ss = ld.linearize(ARM, ARM.home, v0, REST)
    d_q = ss.K @ [0.3, -0.2]
    d_v = difference(lambda e: ld.complete_velocity(
        ARM, ld.close(ARM, ld.integrate(ARM, ARM.home, e * d_q)), {"q1": v0[0], "q2": v0[1]}), 1e-3)
    found = last(q0=d_q, v0=d_v)
    moved = plain.run(q0 + 1j * STEP * d_q, v0 + 1j * STEP * d_v, tau, H, STEPS)
    np.testing.assert_allclose(found, moved.imag / STEP, rtol=0, atol=1e-9)  # d_v is known to that only

    # parameters: the start is projected, as start="project" does
    changed = [dict(masses=(2.0 + 1j * STEP, 3, 3, 2)), dict(masses=(2, 3, 3.0 + 1j * STEP, 2)),
               dict(centres=(0.5, 0.75 + 1j * STEP, 0.75, 0.5)), dict(lengths=(1.0 + 1j * STEP, 1.5, 1.5, 1.0)),
               dict(lengths=(1.0, 1.5, 1.5, 1.0 + 1j * STEP)), dict(support=1.0 + 1j * STEP)]
    for k, given in enumerate(changed):
        other = ComplexFiveBar(**given)
        compare(last(parameters=np.eye(len(names))[k]),
                other.run(*other.project(q0, v0.astype(complex)), tau, H, STEPS))


@pytest.mark.parametrize("h", [0.03, 0.08])
def test_long_steps_that_leave_the_loop_open(h):
    """By up to 1e-4 and 1e-2: all of Newton's corrections count, in the metric of where they begin."""
    steps, names = 12, ["mass:link3", "placement.x:q2", "child_placement.x:pin"]
    v0, along = allowed(ARM, ARM.home, size=1.0)
    tau = np.array([35.0, 0.0, 0.0, -30.0])
    run = ld.differentiate_run(ARM, ARM.home, v0, h * steps, tau=tau, dt=h, parameters=names)
    q0, plain = ARM.home.astype(complex), ComplexFiveBar()
    end = plain.run(q0, v0.astype(complex), tau, h, steps)
    np.testing.assert_allclose(np.r_[run.trajectory.q[-1], run.trajectory.v[-1]], end.real, rtol=0, atol=1e-10)

    def compare(moved, **varied):
        found = run.forward(**varied)
        assert off(np.r_[found.q[-1], found.v[-1]], moved.imag / STEP) < 1e-10

    compare(plain.run(q0, v0 + 1j * STEP * along, tau, h, steps), v0=along)
    changed = [dict(masses=(2, 3, 3.0 + 1j * STEP, 2)), dict(lengths=(1.0 + 1j * STEP, 1.5, 1.5, 1.0)),
               dict(lengths=(1.0, 1.5, 1.5, 1.0 + 1j * STEP))]
    for k, given in enumerate(changed):
        other = ComplexFiveBar(**given)
        compare(other.run(*other.project(q0, v0.astype(complex)), tau, h, steps), parameters=np.eye(3)[k])


def test_start_that_is_projected_from_afar():
    """A start that is open by a tenth: how its projection moves with lengths and masses is exact, too."""
    q0, v0 = ARM.home + [0.05, -0.1, 0.03, 0.08], np.array([0.3, -0.2, 0.5, 0.1])
    names = ["mass:link3", "placement.x:q2", "child_placement.x:pin", "com.x:link2"]
    run = ld.differentiate_run(ARM, q0, v0, 0.02, start="project", parameters=names)

    def projected(name, e):
        tr = ld.simulate(perturbed(ARM, name, e), q0, v0, 0.02, start="project", progress=False)
        return np.r_[tr.q[0], tr.v[0], tr.q[-1], tr.v[-1]]

    for k, name in enumerate(names):
        found = run.forward(parameters=np.eye(4)[k])
        wanted = difference(lambda e, name=name: projected(name, e), 1e-3)
        np.testing.assert_allclose(np.r_[found.q[0], found.v[0], found.q[-1], found.v[-1]], wanted, rtol=0,
                                   atol=2e-9 * np.abs(wanted).max(), err_msg=name)  # of the differences


def test_balls_with_long_steps():
    """Displacements of balls and free bodies turn with corrections of any size."""
    robot = ld.load("stewart")
    v, along = allowed(robot, robot.home, size=1.0)
    given = dict(dt=0.05, progress=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = ld.differentiate_run(robot, robot.home, v, 0.2, dt=0.05)

        def last(e):
            tr = ld.simulate(robot, robot.home, v + e * along, 0.2, **given)
            return np.r_[ld.difference(robot, run.trajectory.q[-1], tr.q[-1]), tr.v[-1]]

        moved, wanted = run.forward(v0=along), difference(last, 1e-3)
    np.testing.assert_allclose(np.r_[moved.q[-1], moved.v[-1]], wanted, rtol=0, atol=1e-9 * np.abs(wanted).max())


@pytest.mark.filterwarnings("ignore:the step of 'five_bar'")  # the loop is closed at once, which moves energy
def test_start_as_given():
    """It stays where it is, open by what a length has changed, and the first step closes it."""
    name = "child_placement.x:pin"
    run = ld.differentiate_run(ARM, ARM.home, REST, 0.05, dt=5e-3, start="as given", parameters=[name])
    placement = ARM.model.loops[0].child_placement.copy()

    def longer(e):
        b, moved = ld.Builder.of(ARM), placement.copy()
        moved[0, 3] += e
        b.change("loop", "pin", child_placement=moved)
        return ld.simulate(b.build(), ARM.home, REST, 0.05, dt=5e-3, start="as given").q[-1]

    assert not run.start_by_parameters.any()
    np.testing.assert_allclose(run.forward(parameters=[1.0]).q[-1], difference(longer, 1e-4), rtol=0, atol=1e-8)


def test_adjoint_is_the_transpose():
    rng = np.random.default_rng(1)
    tau, names = rng.normal(size=(40, 4)), ["mass:link2", "placement.y:q3", "gravity"]
    run = ld.differentiate_run(ARM, ARM.home, REST, 0.1, tau=tau, dt=2.5e-3, parameters=names)
    q, v = rng.normal(size=(2, 41, 4))
    gradient = run.adjoint(q=q, v=v)
    varied = dict(q0=rng.normal(size=4), v0=rng.normal(size=4), inputs=rng.normal(size=tau.shape),
                  parameters=rng.normal(size=3))
    moved = run.forward(**varied)
    wanted = (q * moved.q).sum() + (v * moved.v).sum()
    found = sum((getattr(gradient, name) * x).sum() for name, x in varied.items())
    assert found == pytest.approx(wanted, rel=1e-12)


ROBOTS = ["loader", "panda", "stewart", "solo12", "whipple_bicycle", "arm_on_circle", "diagonal_spring", "slider_crank"]


@pytest.mark.parametrize("name", ROBOTS)
@pytest.mark.parametrize("stabilisation", ["projection", "none"])
def test_differences_of_runs(name, stabilisation):
    robot = ld.load(name)
    q = ld.neutral(robot) if robot.home is None else robot.home
    v, along = allowed(robot, q)
    force = 0.01 * np.random.default_rng(2).normal(size=robot.nv)
    given = dict(dt=5e-3, stabilisation=stabilisation)
    run = ld.differentiate_run(robot, q, v, 0.1, tau=force, **given)
    end = run.trajectory.q[-1]

    def last(v0, tau):
        tr = ld.simulate(robot, q, v0, 0.1, tau=tau, **given)
        return np.r_[ld.difference(robot, end, tr.q[-1]), tr.v[-1]]

    size = 1e-2 / max(1.0, np.abs(along).max())
    for varied, f, h in ((dict(v0=along), lambda e: last(v + e * along, force), size),
                         (dict(inputs=force), lambda e: last(v, (1.0 + e) * force), 1e-2)):
        moved = run.forward(**varied)
        found = np.r_[moved.q[-1], moved.v[-1]]
        # sixth-order differences of runs leave their rounding, 1e-13 by h
        np.testing.assert_allclose(found, difference(f, h), rtol=0, atol=2e-9 * max(1.0, np.abs(found).max()))


def test_feedback():
    spring = (lambda t, q, v: -3.0 * (q - ARM.home) ** 3 - v,
              lambda t, q, v: (-9.0 * np.diag((q - ARM.home) ** 2), -np.eye(4)))
    v, along = allowed(ARM, ARM.home, size=1.0)
    run = ld.differentiate_run(ARM, ARM.home, v, 0.1, tau=spring, dt=5e-3)
    found = run.forward(v0=along)
    wanted = difference(lambda e: ld.simulate(ARM, ARM.home, v + e * along, 0.1, tau=spring, dt=5e-3).v[-1], 1e-2)
    np.testing.assert_allclose(found.v[-1], wanted, rtol=0, atol=1e-9)
    # a constant added to the feedback
    assert run.adjoint(v=along).inputs.sum() == pytest.approx(difference(lambda e: along @ ld.simulate(
        ARM, ARM.home, v, 0.1, tau=(lambda t, q, v: spring[0](t, q, v) + e, spring[1]), dt=5e-3).v[-1], 1e-2), rel=1e-9)


def test_driven_cylinder():
    b = ld.Builder.of(ARM)
    b.actuator("second_motor", "pin")
    robot = b.build()
    run = ld.differentiate_run(robot, robot.home, REST, 0.1, u=[0.7], dt=5e-3)
    wanted = difference(lambda e: ld.simulate(robot, robot.home, REST, 0.1, u=[0.7 + e], dt=5e-3).q[-1], 1e-1)
    np.testing.assert_allclose(run.forward(inputs=[1.0]).q[-1], wanted, rtol=0, atol=1e-9)


def test_singular_passage():
    """Links in line: steps next to it are made in parts, or passed over."""
    run = ld.differentiate_run(ARM, ARM.home, REST, 0.8)
    tr = run.trajectory
    assert [event.name for event in tr.events] == ["singular passage"]
    energy = [ld.rnea(ARM, tr.q[k], REST, REST) for k in (0, -1)]  # slope of the potential energy
    _, along = allowed(ARM, ARM.home)
    moved = run.forward(v0=along)
    # the variation of the energy stays what it was: zero, as the run starts at rest
    change = energy[1] @ moved.q[-1] + tr.v[-1] @ ld.crba(ARM, tr.q[-1]) @ moved.v[-1]
    kinetic = 0.5 * tr.v[-1] @ (ld.rnea_derivatives(ARM, tr.q[-1], REST, tr.v[-1])[0]
                                - ld.rnea_derivatives(ARM, tr.q[-1], REST, REST)[0]) @ moved.q[-1]
    size = abs(energy[1] @ moved.q[-1])
    assert size > 0.1 and abs(change + kinetic) < 1e-5 * size


def test_wrong():
    with pytest.raises(ld.InputError, match="method 'gauss4' is not differentiated: take 'rk4'"):
        ld.differentiate_run(ARM, ARM.home, REST, 0.1, method="gauss4")
    with pytest.raises(ld.InputError, match="unknown stabilisation 'minimal', known: 'projection', 'none'"):
        ld.differentiate_run(ARM, ARM.home, REST, 0.1, stabilisation="minimal")
    with pytest.raises(ld.InputError, match="tau is a function without its derivative"):
        ld.differentiate_run(ARM, ARM.home, REST, 0.1, tau=lambda t, q, v: -v)
    with pytest.raises(ld.InputError, match="no parameter 'mass:link9'"):
        ld.differentiate_run(ARM, ARM.home, REST, 0.1, parameters=["mass:link9"])
    with pytest.raises(ld.InputError, match="'rkmk' is not differentiated"):
        solo = ld.load("solo12")
        ld.differentiate_run(solo, ld.neutral(solo), np.zeros(18), 0.1, method="rkmk")
    run = ld.differentiate_run(ARM, ARM.home, REST, 0.01)
    with pytest.raises(ld.InputError, match=r"v must have shape \(11, 4\), got \(3, 4\)"):
        run.adjoint(v=np.zeros((3, 4)))
    with pytest.raises(ld.InputError, match="q0 is not finite"):
        run.forward(q0=[np.nan, 0.0, 0.0, 0.0])
