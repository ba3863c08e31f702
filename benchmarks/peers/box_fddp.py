"""Plans of arms within limits of torque by crocoddyl's BoxFDDP: JSON with problems in, JSON with plans out.

Runs in an environment that has crocoddyl, and the Pinocchio that its wheel was built with; nothing of liedyn is needed.
"""
import json
import sys
import time


def plan(model, problem, weights, h, iterations):
    """What BoxFDDP finds: whether it has converged, iterations, cost, largest torque relative to its limit, seconds.

    "same" is the cost here of the inputs in problem["inputs"], which another solver has found, and "onward" the cost of
    what BoxFDDP finds when it starts from them.
    """
    import crocoddyl
    import numpy as np
    import pinocchio

    state = crocoddyl.StateMultibody(model)
    actuation, frame = crocoddyl.ActuationModelFull(state), model.getFrameId(problem["frame"])
    goal, hold = pinocchio.SE3(np.array(problem["goal"])), np.array(problem["hold"])
    limit, x = np.array(problem["limit"]), np.concatenate([problem["q"], np.zeros(model.nv)])

    def costs(reach):
        total = crocoddyl.CostModelSum(state)
        for name, residual, weight in (
                ("place", crocoddyl.ResidualModelFrameTranslation(state, frame, goal.translation), reach),
                ("turn", crocoddyl.ResidualModelFrameRotation(state, frame, goal.rotation), reach),
                ("state", crocoddyl.ResidualModelState(state, x), weights["state"]),
                ("input", crocoddyl.ResidualModelControl(state, hold), weights["input"])):
            total.addCost(name, crocoddyl.CostModelResidual(state, residual), weight)
        return total

    run, end = (crocoddyl.IntegratedActionModelEuler(crocoddyl.DifferentialActionModelFreeFwdDynamics(
        state, actuation, costs(reach)), step) for reach, step in ((weights["running"], h), (weights["final"], 0.0)))
    run.u_lb, run.u_ub = -limit, limit
    shooting = crocoddyl.ShootingProblem(x, [run] * problem["steps"], end)
    shooting.nthreads = 1
    theirs = list(np.array(problem["inputs"]))
    same = shooting.calc(shooting.rollout(theirs), theirs)
    solver, inputs = crocoddyl.SolverBoxFDDP(shooting), [np.clip(hold, -limit, limit)] * problem["steps"]
    begun = time.perf_counter()
    converged = solver.solve(shooting.rollout(inputs), inputs, iterations, True)
    return {"converged": bool(converged), "iterations": solver.iter + 1, "cost": float(solver.cost),
            "torque": float(np.abs(np.array(solver.us) / limit).max()), "seconds": time.perf_counter() - begun,
            "inputs": np.array(solver.us).tolist(), "same": float(same),
            "onward": _onward(shooting, theirs, iterations)}


def _onward(shooting, inputs, iterations):
    """The cost that BoxFDDP reaches from the given inputs."""
    import crocoddyl

    solver = crocoddyl.SolverBoxFDDP(shooting)
    solver.solve(shooting.rollout(inputs), inputs, iterations, True)
    return float(solver.cost)


def main():
    """Read the job from stdin, write the plans to stdout."""
    import pinocchio

    job = json.load(sys.stdin)
    models = {name: pinocchio.buildModelFromUrdf(path) for name, path in job["models"].items()}
    json.dump([plan(models[each["robot"]], each, job["weights"], job["h"], job["iterations"])
               for each in job["problems"]], sys.stdout)


if __name__ == "__main__":
    main()
