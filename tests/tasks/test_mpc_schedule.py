"""Model-predictive control along a schedule of contacts: what lies ahead, what is carried along, hops and a trot."""
import warnings

import numpy as np
import pytest
from comparison import off
from test_ddp_phases import CROUCH, H, HOLD, REST, ROBOT, foot, solo_on_its_feet

import liedyn as ld
from liedyn.tasks.planning.phase_schedule import NOW, carry, phases_ahead, steps_and_touches

GAIT = [ld.Phase(["foot"], 20), ld.Phase([], 12)]


def moving_cost(t, speed=0.3):
    q = CROUCH + np.array([speed * t, 0.0, 0.0, 0.0])
    weights = {"x": 1.0, "z": 1.0, "hip": 0.2, "knee": 0.2, "velocity:x": 0.02, "velocity:hip": 1e-3,
               "velocity:knee": 1e-3}
    final = {name: 50.0 * weights[name] for name in weights} | {"velocity:z": 1.0}
    return ld.Cost(Q=weights, R=1e-4, q=q, v=[speed, 0.0, 0.0, 0.0], u=HOLD, terminal_Q=final)


def controller(cost=moving_cost, **more):
    return ld.MPC(ROBOT, CROUCH, REST, cost, 48, H, method="midpoint", schedule=GAIT,
                  limits=ld.Limits(inputs=(-60.0, 60.0)), **more)


@pytest.fixture(scope="module")
def mpc():
    return controller()


@pytest.mark.parametrize("first", [0, 1, 19, 20, 31, 32, 100])
@pytest.mark.parametrize("steps", [1, 12, 70])
def test_phases_ahead_are_those_of_the_schedule(first, steps):
    begin, *ahead = phases_ahead(GAIT, first, steps)
    assert begin == ld.Phase((), 0)
    closed = [each.closed for each in ahead for _ in range(each.steps)]
    wanted = [each.closed for each in GAIT for _ in range(each.steps)]
    assert closed == [wanted[(first + k) % 32] for k in range(steps)]


def test_phases_that_are_the_same_are_one():
    assert phases_ahead([ld.Phase(["foot"], 3)], 1, 10) == [ld.Phase((), 0), ld.Phase(["foot"], 10)]


def test_what_is_carried_along_belongs_to_the_same_knots(mpc):
    """Each knot and step of both plans, by the step's number and the touch: numbers that say where they come from."""
    old, new = mpc._solver_at(3, 0.0), mpc._solver_at(15, 0.0)
    n, behind, touches = (np.array(x) for x in steps_and_touches(old, 3))
    old.path.q[:, 0], old.path.v[:, 0] = n, behind
    old.path.u[:, 0], old.expansion.K[:, 0, 0] = n[:-1], touches
    old.discretisation.phases.cones.lam[:, 0] = n[:-1]
    carry(old, 3, new, 15)
    n, behind, touches = (np.array(x) for x in steps_and_touches(new, 15))
    assert n[NOW] == 15 and n[-1] == 15 + 48 and n[np.flatnonzero(behind)].tolist() == [15, 20, 32, 52]
    shared = np.arange(len(n)) >= NOW
    shared[n > 3 + 48] = False
    assert np.array_equal(new.path.q[shared, 0], n[shared]) and (new.path.q[~shared][NOW:, 0] == 3 + 48).all()
    ordinary = shared & (np.arange(len(n)) > NOW)  # behind the touch at once is a knot that was none before
    ordinary[n == 51] = False
    assert np.array_equal(new.path.v[ordinary, 0], behind[ordinary])
    steps = shared[:-1] & (n[:-1] < 51)
    assert np.array_equal(new.path.u[steps, 0], n[:-1][steps]) and not new.path.u[~steps][NOW:, 0].any()
    assert np.array_equal(new.expansion.K[steps, 0, 0], touches[steps])
    assert np.array_equal(new.discretisation.phases.cones.lam[steps, 0], n[:-1][steps])


def test_the_first_plan_is_that_of_ddp(mpc):
    mpc.reset()
    u = mpc(0.0, CROUCH, REST)
    assert mpc.status == "converged" and mpc.plan.phase.tolist()[:3] == [0, 1, 1]
    plan = ld.ddp(ROBOT, CROUCH, REST, moving_cost(0.0), phases_ahead(GAIT, 0, 48), H, limits=ld.Limits((-60.0, 60.0)),
                  start=(mpc.plan.q, mpc.plan.v), tolerance=1e-9)
    assert plan.status == "converged" and abs(plan.cost / mpc.plan.cost - 1.0) < 1e-3
    assert off(u, plan.u[1]) < 0.05  # limits are held to 1e-4 there and to 1e-6 here


def test_a_hopper_hops_along_its_schedule(mpc):
    """In a simulation that knows contacts and no schedule the foot leaves and touches as it says, and never slips."""
    mpc.reset()
    tr = ld.simulate(ROBOT, CROUCH, REST, 1.3, dt=1e-3, u=ld.Sampled(mpc, H), progress=False)
    assert [event.name for event in tr.events] == ["release foot", "contact foot"] * 4
    assert np.abs([event.t for event in tr.events] - np.array([20, 32, 52, 64, 84, 96, 116, 128]) * H).max() < 2e-3
    assert tr.q[-1, 0] > 0.2 and np.abs(tr.q[:, 1] - CROUCH[1]).max() < 0.05
    assert max(foot(q)[2] for q in tr.q) > 0.01


def test_a_state_that_does_not_touch_is_planned_from(mpc):
    mpc.reset()
    mpc(0.0, CROUCH, REST)
    above = CROUCH + np.array([0.0, 5e-3, 0.0, 0.0])
    u = mpc(H, above, np.array([0.0, -0.1, 0.0, 0.0]))
    plan = mpc.plan
    assert np.isfinite(u).all() and mpc.status in ("converged", "no iteration is left")
    assert foot(plan.q[0])[2] > 4e-3 and abs(foot(plan.q[1])[2]) < 1e-12  # moved to the ground at once


def test_the_plan_before_goes_on_where_a_knot_cannot_be_closed(mpc, monkeypatch):
    def out_of_reach(solver):
        raise ld.PlanError("the foot does not reach the ground", 3, CROUCH, REST)

    mpc.reset()
    mpc(0.0, CROUCH, REST)
    planned = mpc.plan.u[2]
    with monkeypatch.context() as context, pytest.warns(ld.PlanWarning, match="the plan before goes on"):
        context.setattr("liedyn.tasks.planning.mpc.close", out_of_reach)
        u = mpc(H, CROUCH, REST)
    assert off(u, planned) < 1.0  # with its feedback
    assert mpc.status == "as planned before"
    mpc(2.0 * H, CROUCH, REST)
    assert mpc.status != "as planned before"


def test_reset_forgets(mpc):
    mpc.reset()
    first = [mpc(k * H, CROUCH, REST) for k in range(3)]
    mpc.reset()
    assert np.array_equal(first, [mpc(k * H, CROUCH, REST) for k in range(3)])


def test_what_is_refused(mpc):
    mpc.reset()
    mpc(0.0, CROUCH, REST)
    with pytest.raises(ld.InputError, match="multiples of h = 0.01 s, got 0.014"):
        mpc(0.014, CROUCH, REST)
    after = mpc(H, CROUCH, REST)  # nothing that is known of the plan before is lost
    mpc.reset()
    mpc(0.0, CROUCH, REST)
    assert np.array_equal(mpc(H, CROUCH, REST), after)
    for schedule in ([], 3, [3], "foot"):
        with pytest.raises(ld.InputError, match="schedule must be phases"):
            ld.MPC(ROBOT, CROUCH, REST, moving_cost, 10, H, schedule=schedule)
    with pytest.raises(ld.InputError, match="euler.*midpoint"):
        ld.MPC(ROBOT, CROUCH, REST, moving_cost, 30, H, schedule=GAIT)
    with pytest.raises(ld.InputError, match="unknown constraint 'hand'"):
        ld.MPC(ROBOT, CROUCH, REST, moving_cost, 30, H, method="midpoint", schedule=[ld.Phase(["hand"], 5)])
    with pytest.raises(ld.InputError, match="steps of a phase"):
        ld.MPC(ROBOT, CROUCH, REST, moving_cost, 30, H, method="midpoint", schedule=[ld.Phase(["foot"], 0)])


def test_a_quadruped_trots():
    """A floating base on four feet, two of which are lifted at a time; half a cycle in a simulation with contacts."""
    solo, q, feet, hold = solo_on_its_feet()
    names = solo.velocity_names
    weights = {name: 2e-2 for name in names[6:]} | {name: 1.0 for name in names[:6]}
    weights |= {f"velocity:{name}": 1e-3 if name in names[6:] else 0.05 for name in names}

    def cost(t):
        goal, v = q.copy(), np.zeros(18)
        goal[4], v[4] = 0.2 * t, 0.2
        return ld.Cost(Q=weights, R=1e-3, q=goal, v=v, u=hold, terminal_Q={k: 10.0 * w for k, w in weights.items()})

    gait = [ld.Phase(feet, 6), ld.Phase(feet[::3], 14), ld.Phase(feet, 6), ld.Phase(feet[1:3], 14)]
    mpc = ld.MPC(solo, q, np.zeros(18), cost, 30, 0.01, method="midpoint", schedule=gait, iterations=3,
                 limits=ld.Limits(inputs=(-3.0, 3.0)))
    with warnings.catch_warnings():
        warnings.simplefilter("error", ld.PlanWarning)
        tr = ld.simulate(solo, q, np.zeros(18), 0.3, dt=2e-3, u=ld.Sampled(mpc, 0.01), progress=False)
    lifted = {event.name for event in tr.events if event.name.startswith("release") and event.t < 0.1}
    assert lifted == {"release fr_foot", "release hl_foot"}
    assert tr.q[-1, 4] > 3e-3 and abs(tr.q[-1, 6] - q[6]) < 0.01 and tr.q[-1, 3] > 0.999
