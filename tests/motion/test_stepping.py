"""One step, the stepper, and steps in users' compiled loops: the steps of `simulate`, and what happens between them."""
import copy
import pickle
import threading
import warnings

import numpy as np
import pytest
from users import kept

import liedyn as ld
from liedyn import kernels

FIVE_BAR = ld.load("five_bar")
DT = 1e-3
REST = np.zeros(4)
TAU = np.array([3.0, -2.0, 0.5, 1.0])
WAYS = [{}, {"method": "rkmk"}, {"stabilisation": "minimal"}, {"stabilisation": ld.Baumgarte(20.0, 20.0)},
        {"stabilisation": "none", "formulation": "unified"}, {"formulation": "svd"}, {"formulation": "multiplier"},
        {"method": "implicit"}, {"method": ld.GeneralizedAlpha(0.6)}, {"method": "moreau"}]


def ids(way):
    return "-".join(x if isinstance(x, str) else type(x).__name__ for x in way.values()) or "rk4"


@pytest.mark.parametrize("way", WAYS, ids=ids)
def test_a_stepper_makes_the_steps_of_simulate(way):
    tr = ld.simulate(FIVE_BAR, FIVE_BAR.home, REST, 20 * DT, tau=TAU, dt=DT, **way)
    stepper = ld.Stepper(FIVE_BAR, FIVE_BAR.home, REST, DT, **way)
    stepper.step(TAU)
    for _ in range(3):
        stepper.step()
    stepper.advance(16)
    assert stepper.t == pytest.approx(tr.t[-1], abs=1e-15)
    np.testing.assert_allclose(stepper.q, tr.q[-1], rtol=1e-13)
    np.testing.assert_allclose(stepper.v, tr.v[-1], rtol=1e-12)
    np.testing.assert_allclose(stepper.a, tr.a[-1], rtol=1e-10)
    np.testing.assert_allclose(stepper.lam, tr.lam[-1], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("way", WAYS, ids=ids)
def test_one_step_is_that_of_a_stepper(way):
    """Whatever was stepped before: the second call goes on from elsewhere, the third is the first once more."""
    stepper = ld.Stepper(FIVE_BAR, FIVE_BAR.home, REST, DT, **way)
    stepper.step(TAU)
    first = ld.step(FIVE_BAR, FIVE_BAR.home, REST, TAU, DT, **way)
    ld.step(FIVE_BAR, *first, list(-TAU), 2 * DT, **way)
    for q, v in (first, ld.step(FIVE_BAR, FIVE_BAR.home, REST, TAU, DT, **way)):
        np.testing.assert_array_equal(q, stepper.q)
        np.testing.assert_array_equal(v, stepper.v)


def test_inputs_that_change_from_step_to_step():
    tau = np.random.default_rng(5).normal(size=(30, 4))
    tr = ld.simulate(FIVE_BAR, FIVE_BAR.home, REST, 30 * DT, tau=tau, dt=DT)
    stepper, (q, v) = ld.Stepper(FIVE_BAR, FIVE_BAR.home, REST, DT), (FIVE_BAR.home, REST)
    for row in tau:
        stepper.step(row)
        q, v = ld.step(FIVE_BAR, q, v, row, DT)
    for state in ((stepper.q, stepper.v), (q, v)):
        np.testing.assert_allclose(state[0], tr.q[-1], rtol=1e-12)
        np.testing.assert_allclose(state[1], tr.v[-1], rtol=1e-11)


@kept
def swing(stepping, q, v, tau, dt):
    """Steps with a table of inputs; how many went well."""
    for k in range(len(tau)):
        if kernels.step(stepping, k * dt, dt, q, v, tau[k]) != kernels.OK:
            return k
    return len(tau)


@pytest.mark.parametrize("way", [{}, {"method": "generalized_alpha"}], ids=ids)
def test_a_compiled_loop_of_ones_own(way):
    tau = np.repeat(np.random.default_rng(6).normal(size=(5, 4)), 4, axis=0)
    tr = ld.simulate(FIVE_BAR, FIVE_BAR.home, REST, len(tau) * DT, tau=tau, dt=DT, **way)
    q, v, stepping = FIVE_BAR.home.copy(), np.zeros(4), kernels.stepping(FIVE_BAR, **way)
    assert swing(stepping, q, v, tau, DT) == len(tau)
    # the generalised-alpha method carries accelerations on, of which `simulate` knows the next input already
    tolerance = 1e-11 if not way else 1e-5
    np.testing.assert_allclose(q, tr.q[-1], rtol=tolerance)
    last = q.copy(), v.copy()
    tau[2:] = np.nan
    assert swing(stepping, q, v, tau, DT) == 2  # and the state is that of the last step that went well
    assert np.isfinite(q).all() and np.isfinite(v).all() and not np.array_equal(q, last[0])


def test_steps_in_several_threads():
    """Each takes scratch space of its own."""
    starts = [(FIVE_BAR.home, ld.complete_velocity(FIVE_BAR, FIVE_BAR.home, {"q1": w, "q2": -w})) for w in (0.0, 1.0)]
    alone, found = [], {}

    def run(start):
        q, v = start
        for _ in range(300):
            q, v = ld.step(FIVE_BAR, q, v, TAU, 1e-4)
        return q

    alone = [run(start) for start in starts]
    threads = [threading.Thread(target=lambda k=k: found.update({k: run(starts[k])})) for k in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k in range(2):
        np.testing.assert_array_equal(found[k], alone[k])


def after_ten_steps(robot):
    stepper = ld.Stepper(robot, robot.home, REST)
    stepper.advance(10, TAU)
    return np.hstack([stepper.q, stepper.v])


def test_copies_of_robots_and_couplers():
    """What steps is made anew for a copy; a coupler's copy pulls for itself."""
    robot = ld.load("five_bar")
    first = ld.step(robot, robot.home, REST, TAU, DT)
    coupler = ld.VirtualCoupler(robot, "link2", None, 100.0, 10.0)
    coupler.move([1.0, 1.0, 0.0])
    force = coupler.force(robot.home, REST)
    for copied in (copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))):
        np.testing.assert_array_equal(ld.step(copied(robot), robot.home, REST, TAU, DT), first)
        other = copied(coupler)
        other.move([-1.0, 1.0, 0.0])
        assert not np.allclose(other.force(robot.home, REST), force)
        np.testing.assert_array_equal(coupler.force(robot.home, REST), force)
    stepper = ld.Stepper(robot, robot.home, REST)
    stepper.advance(5, TAU)
    for other in (copy.deepcopy(stepper), pickle.loads(pickle.dumps(stepper))):
        other.advance(5)
        assert other.t > stepper.t and stepper.t == 5 * stepper.dt
        np.testing.assert_array_equal(np.hstack([other.q, other.v]), after_ten_steps(robot))


def test_a_target_that_moves():
    robot = FIVE_BAR.with_target("pin", lambda t: ([0.2 * t, 0.0, 0.0], [0.2, 0.0, 0.0], [0.0, 0.0, 0.0]))
    v0 = ld.complete_velocity(robot, robot.home, {"q1": 0.0, "q2": 0.0})
    tr = ld.simulate(robot, robot.home, v0, 0.02, dt=DT)
    stepper = ld.Stepper(robot, robot.home, v0, DT)
    stepper.advance(19)
    q, v = ld.step(robot, stepper.q, stepper.v, REST, DT, t=stepper.t)
    np.testing.assert_allclose(q, tr.q[-1], rtol=1e-12)
    stepper.step()
    np.testing.assert_allclose(stepper.v, tr.v[-1], rtol=1e-11)


def ball():
    builder = ld.Builder("ball")
    builder.body("ball", 2.0)
    builder.joint("z", "prismatic", "ground", "ball", axis=(0.0, 0.0, 1.0))
    builder.constraint("floor", "on_plane", "ground", "ball", axis=(0.0, 0.0, 1.0), unilateral=True)
    return builder.build()


def test_contacts_with_moreau_only():
    robot = ball()
    for call in (lambda **way: ld.step(robot, [0.1], [0.0], [0.0], DT, **way),
                 lambda **way: ld.Stepper(robot, [0.1], [0.0], DT, **way)):
        with pytest.raises(ld.InputError, match=r"one-sided constraints.*'floor'.*moreau"):
            call()
    stepper = ld.Stepper(robot, [0.1], [0.0], DT, method="moreau")
    assert stepper.active == ("floor",)
    stepper.advance(300)  # it falls for 0.143 s
    assert stepper.q[0] == pytest.approx(0.0, abs=1e-9) and stepper.v[0] == pytest.approx(0.0, abs=1e-9)
    assert stepper.lam[0] == pytest.approx(-2.0 * 9.81, rel=1e-9)  # the floor carries it
    stepper.switch("floor", False)
    stepper.step()
    assert stepper.v[0] == pytest.approx(-9.81 * DT)
    free = ld.Stepper(robot.switched(floor=False), [0.1], [0.0], DT)  # off, it is nobody's concern
    with pytest.raises(ld.InputError, match="floor"):
        free.switch("floor", True)


@pytest.mark.parametrize("given, error, match", [
    (dict(method="RK45"), ld.InputError, "chooses its own steps"),
    (dict(method="rk5"), ld.InputError, "unknown method"),
    (dict(method=["rk4"]), ld.InputError, "unknown method"),
    (dict(stabilisation="baumgarte", method="implicit"), ld.InputError, "keeps the constraints itself"),
    (dict(q=[0.0] * 4), ld.ClosureError, "'pin'.*open"),
    (dict(v=[1.0, 0.0, 0.0, 0.0]), ld.InputError, "v0 violates"),
    (dict(q=np.zeros((2, 4))), ld.InputError, "leading axes"),
    (dict(tau=[np.nan] * 4), ld.InputError, "tau is not finite"),
    (dict(dt=0.0), ld.InputError, "dt must be positive"),
])
def test_what_a_step_refuses(given, error, match):
    with pytest.raises(error, match=match):
        ld.step(**dict(robot=FIVE_BAR, q=FIVE_BAR.home, v=REST, tau=TAU, dt=DT) | given)


def test_errors_leave_the_last_good_state():
    stepper = ld.Stepper(FIVE_BAR, FIVE_BAR.home, REST, DT)
    stepper.advance(5, TAU)
    twin = ld.Stepper(FIVE_BAR, stepper.q, stepper.v, DT, t=stepper.t)
    before = stepper.t, stepper.q, stepper.v, stepper.tau
    for wrong in ([np.inf] * 4, [0.0] * 3, np.zeros((1, 4)), "none"):
        with pytest.raises(ld.InputError):
            stepper.step(wrong)
    with pytest.raises(ld.SimulationError, match="stopped at t = ") as caught:
        stepper.advance(10, [1e12, 0.0, 0.0, 0.0])
    assert caught.value.state[0] == stepper.t
    np.testing.assert_array_equal(caught.value.state[1], stepper.q)
    assert np.isfinite([*stepper.q, *stepper.v]).all() and np.abs(ld.closure_error(FIVE_BAR, stepper.q)).max() < 1e-10
    with pytest.raises(ld.ClosureError):
        stepper.reset(np.zeros(4), REST)
    stepper.reset(before[1], before[2], before[0])
    for each in (stepper, twin):
        each.advance(5, before[3])
    np.testing.assert_array_equal(stepper.q, twin.q)
    np.testing.assert_array_equal(stepper.v, twin.v)


def test_a_function_that_fails():
    def target(t):
        if t > 0.0055:
            raise RuntimeError("no more path")
        return [0.0] * 3, [0.0] * 3, [0.0] * 3

    stepper = ld.Stepper(FIVE_BAR.with_target("pin", target), FIVE_BAR.home, REST, DT)
    with pytest.raises(ld.InputError, match="no more path"):
        stepper.advance(10)
    assert stepper.t == pytest.approx(0.005)
    stepper.reset()
    stepper.advance(5)
    assert np.isfinite(stepper.a).all()


# ---- switches


def cart(angle=0.0):
    robot = ld.load("shopping_cart")
    q = robot.home.copy()
    q[robot.coordinate_index("caster")] = angle
    return robot, q


@pytest.mark.parametrize("way", [{}, {"stabilisation": "minimal"}, {"method": "generalized_alpha"}], ids=ids)
def test_a_switch_is_what_an_event_does(way):
    """The caster sticks while it turns: the same impulse, and the same motion after it."""
    robot, q = cart(0.6)
    v = ld.complete_velocity(robot, q, {"cart.x": 1.0, "cart.angle": 0.3})
    push = np.array([5.0, 0.0, 1.0, 0.0])
    when = ld.Event("stick now", lambda t, q, v: t - 0.01, direction=1, on="stick")
    tr = ld.simulate(robot, q, v, 0.02, tau=push, events=when, dt=DT, **way)
    stepper = ld.Stepper(robot, q, v, DT, **way)
    stepper.advance(10, push)
    impulse = stepper.switch("stick", True)
    event, = tr.events
    np.testing.assert_allclose(impulse, event.impulse, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(stepper.v, event.v_after, rtol=1e-8)
    assert np.abs(impulse).max() > 1e-3 and stepper.active == ("rear", "wheel", "stick")
    assert not stepper.switch("stick", True).any()  # it does already
    stepper.advance(10)
    np.testing.assert_allclose(stepper.q, tr.q[-1], rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(stepper.v, tr.v[-1], rtol=1e-7, atol=1e-10)
    caster = stepper.q[3]
    stepper.switch("stick", False)
    stepper.advance(10)
    assert abs(stepper.q[3] - caster) > 1e-5 and stepper.active == ("rear", "wheel")


def test_a_switch_that_cannot_be():
    stepper = ld.Stepper(FIVE_BAR.switched(pin=False), FIVE_BAR.home, REST, DT)
    stepper.advance(50)
    before = stepper.q, stepper.v, stepper.a
    with pytest.raises(ld.SimulationError, match=r"cannot close.*pin.*open by"):
        stepper.switch("pin", True)
    assert stepper.active == ()
    for old, new in zip(before, (stepper.q, stepper.v, stepper.a)):
        np.testing.assert_array_equal(old, new)
    with pytest.raises(ld.InputError, match="unknown constraint"):
        stepper.switch("pine", True)
    stepper.step()
    assert stepper.t == pytest.approx(51 * DT)


def test_a_disk_that_slides_and_grips():
    """Each grip takes the slip away at once, and energy with it."""
    disk = ld.load("rolling_disk")
    stepper = ld.Stepper(disk, disk.home, np.zeros(3), DT)
    for on in (False, True) * 3:
        stepper.switch("slides", True)
        stepper.switch("rolls", on)
        stepper.switch("slides", not on)
        stepper.advance(100, [0.0, 0.0, 0.0])
        energy = ld.kinetic_energy(disk, stepper.q, stepper.v) + ld.potential_energy(disk, stepper.q)
        assert energy <= ld.potential_energy(disk, disk.home) + 1e-9
        slip = stepper.v[0] + 0.25 * stepper.v[2]
        assert (abs(slip) < 1e-12) == on, slip
        assert abs(stepper.q[1] - 0.25) < 1e-12


# ---- real time


def test_a_loop_counts_what_is_late():
    import time

    slow = iter([0.0, 0.03, 0.0, 0.0, 0.0, 0.0])
    loop = ld.RealTimeLoop(lambda: time.sleep(next(slow)), 0.01)
    loop.run(0.06)
    assert loop.calls == 6 and loop.late >= 2 and loop.worst >= 0.019  # the second one, and those that make up for it
    never = ld.RealTimeLoop(lambda: time.sleep(0.02), 0.005, patience=0.02)
    never.run(0.05)
    assert never.late == never.calls == 10 and never.factor < 0.5
    with pytest.raises(ld.InputError, match="running in a thread"):
        loop = ld.RealTimeLoop(lambda: None, 0.001)
        loop.start()
        try:
            loop.run(0.1)
        finally:
            loop.stop()
    ends = ld.RealTimeLoop(lambda: False, 0.001)
    ends.run(10.0)
    assert ends.calls == 1


def test_a_stepper_in_real_time():
    """How exactly time is kept depends on what else the machine does: 0.9999 on an idle one."""
    stepper = ld.Stepper(FIVE_BAR, FIVE_BAR.home, REST, DT)
    loop = ld.RealTimeLoop(lambda: stepper.advance(16, -5.0 * stepper.v), 16 * DT)
    loop.run(0.48)
    assert loop.calls == 30 and stepper.t == pytest.approx(0.48)
    assert 0.5 < loop.factor <= 1.001


def test_switches_do_not_warn_without_couplers():
    robot, q = cart()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ld.Stepper(robot, q, np.zeros(4)).switch("stick", True)


def test_forces_of_actuators_instead_of_all():
    robot = ld.load("loader")
    assert robot.actuator_matrix.shape == (robot.nv, 2)
    u, rest = np.array([900.0, -300.0]), np.zeros(robot.nv)
    tau = robot.actuator_matrix @ u
    one, other = (ld.Stepper(robot, robot.home, rest) for _ in range(2))
    one.step(u=u)
    one.advance(3, u=list(2 * u))
    other.step(tau)
    other.advance(3, 2 * tau)
    np.testing.assert_array_equal(one.q, other.q)
    np.testing.assert_array_equal(ld.step(robot, robot.home, rest, u=u)[1], ld.step(robot, robot.home, rest, tau)[1])
    for bad, message in ((dict(tau=tau, u=u), "give tau or u"), (dict(u=tau), r"u must have shape \(\.\.\., 2\)"),
                         (dict(u=[u]), r"u must have shape \(2,\)"), (dict(u=[np.nan, 0.0]), "u")):
        for function in (one.step, lambda **given: ld.step(robot, robot.home, rest, **given)):
            with pytest.raises(ld.InputError, match=message):
                function(**bad)
    with pytest.raises(ld.InputError, match="give tau or u"):
        ld.step(robot, robot.home, rest)
