"""Plans with exact second derivatives: those of costs and limits of states, and of errors of targets."""
import numpy as np
import pytest
from test_ddp import moved, sixth_order, start_of, top
from test_ddp_exact import FIVE_BAR, LOADER, PANDA, both_ways

import liedyn as ld
from liedyn.lie import so3_exp
from liedyn.machine.compiled.jit import kernel
from liedyn.tasks.planning.cost_curvature import weigh_costs
from liedyn.tasks.planning.exact_hessian import add_step_hessians
from liedyn.tasks.planning.expansion import expand_steps
from liedyn.tasks.planning.forward_pass import expand_costs
from liedyn.tasks.planning.solver import Division, Solver

TOP, UP, AIM = top(), (0.0, 0.0, 1.0), (0.4, 0.5, 0.6)
TURNED = so3_exp(np.array([0.3, -1.0, 0.8]))
POSE = np.block([[TURNED, np.array([[0.1], [0.2], [0.3]])], [np.zeros(3), 1.0]])


def final(*targets):
    return ld.Cost(terminal_targets=targets)


CASES = {
    "point": (PANDA, final(ld.PointTarget("panda_hand", (0.4, 0.2, 0.5), (0.1, 0.0, 0.2), weight=3.0)), None),
    "orientation": (PANDA, final(ld.OrientationTarget("panda_hand", TURNED, weight=(1.0, 2.0, 3.0))), None),
    "direction": (PANDA, final(ld.DirectionTarget("panda_hand", UP, AIM, weight=3.0)), None),
    "centre of mass": (PANDA, final(ld.CenterOfMassTarget(AIM, weight=3.0)), None),
    "deviation of balls": (TOP, ld.Cost(q=ld.integrate(TOP, TOP.neutral, np.random.default_rng(3).normal(size=9)),
                                        terminal_Q=2.0), None),
    "relative targets": (TOP, final(
        ld.PoseTarget("free", POSE, relative_to="top"), ld.DirectionTarget("top", UP, AIM, relative_to="free"),
        ld.PointTarget("top", AIM, (0.1, 0.2, 0.3), weight=2.0, relative_to="free"), ld.CenterOfMassTarget(AIM)), None),
    "dependent coordinates": (FIVE_BAR, ld.Cost(terminal_Q={name: 1.0 + k for k, name in enumerate((
        *FIVE_BAR.velocity_names, *(f"velocity:{name}" for name in FIVE_BAR.velocity_names)))}), None),
    "point of a loop": (FIVE_BAR, final(ld.PointTarget(FIVE_BAR.body_names[-1], AIM, weight=3.0)), None),
    "limits of a loop": (LOADER, ld.Cost(), ld.Limits(coordinates={LOADER.velocity_names[1]: (5.0, 6.0)}, speeds={
        LOADER.velocity_names[2]: (3.0, 4.0)})),
    "limits of places": (TOP, ld.Cost(), ld.Limits(coordinates={"base.x": (4.0, 5.0), "base.z": (4.0, 5.0)}, targets=[
        (ld.PointTarget("top", AIM, (0.1, 0.2, 0.3)), 3.0, 4.0)])),
}


@kernel
def bent(model, d, objective, rooms, path, x):
    expand_steps(model, d, rooms.stages, rooms.step, rooms.forward.dq, path, True, x)
    expand_costs(model, d, objective, rooms.cost, rooms.step, rooms.stages.found, path, x)
    weigh_costs(model, d, objective, rooms.cost, rooms.stages.found, rooms.curvature, path, x)
    return add_step_hessians(model, d, rooms.stages, rooms.step, rooms.curvature, path, x)


def derivatives(solver, q, v):
    """Gradient, Hessian and Gauss-Newton matrix of the cost of the last state."""
    solver.path.q[:], solver.path.v[:], x = q, v, solver.expansion
    assert bent(solver.model, solver.discretisation, solver.objective, solver.rooms, solver.path, x)
    n = x.lx.shape[1]
    return x.lx[-1].copy(), x.lxx[-1].copy(), solver.rooms.curvature.kept[-1, :n, :n].copy()


@pytest.mark.parametrize("case", CASES)
def test_second_derivatives_of_costs(case):
    """Along displacements at constant rates the cost has the second derivative that its Hessian says."""
    robot, cost, limits = CASES[case]
    solver = Solver(robot, robot.home, np.zeros(robot.nv), cost, limits, Division(1, 0.01, "midpoint", None, "exact"))
    solver.set_penalty(1.0)
    rng, p = np.random.default_rng(2), len(solver.places)
    q, v, _, _ = start_of(robot, rng)
    if not robot.row_names:
        q = moved(robot, solver, q, v, np.concatenate([rng.normal(size=p), np.zeros(p)]))[0]
    _, H, gauss_newton = derivatives(solver, q, v)
    size, missed = np.abs(H).max(), 0.0
    for z in rng.normal(size=(6, 2 * p)):
        found = sixth_order(lambda x, z=z: derivatives(solver, *moved(robot, solver, q, v, x))[0] @ z, z, 1e-3)
        assert abs(found - z @ H @ z) <= 1e-9 * size * (z @ z)
        missed = max(missed, abs(found - z @ gauss_newton @ z) / (size * (z @ z)))
    assert missed > 1e-3  # what Gauss and Newton leave out is not small


@pytest.mark.parametrize("goal", [(0.2, 0.6, 0.2), (-0.4, 0.3, 0.5)])
def test_a_hand_gets_to_a_point_in_fewer_iterations(goal):
    """With second derivatives of the steps alone it took more than without."""
    hold = np.tile(ld.rnea(PANDA, PANDA.home, np.zeros(7), np.zeros(7)), (25, 1))
    cost = ld.Cost(Q=1e-4, R=1e-5, q=PANDA.home, terminal_targets=ld.PointTarget("panda_hand", goal, weight=100.0))
    plain, exact = both_ways(PANDA, PANDA.home, cost, hold)
    assert plain.status == exact.status == "converged" and exact.cost == pytest.approx(plain.cost, rel=1e-7)
    assert exact.iterations < plain.iterations  # 12 and 15, 11 and 15
