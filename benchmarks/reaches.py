"""Random reaches within tight limits of torque: how many plans of `ld.ddp` and of crocoddyl's BoxFDDP converge.

`python -m benchmarks --sections reaches`. LIEDYN_CROCODDYL may name the Python of an environment that has crocoddyl,
since its wheel needs a Pinocchio of its own; by default this one.
"""
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

import liedyn as ld
from benchmarks.errors import require_agreement
from benchmarks.peers import box_fddp
from benchmarks.tables import markdown, microseconds

TITLE = "Random reaches within tight limits of torque"
NAMES = ("liedyn", "crocoddyl")
ROBOTS = {"panda": "panda_hand_tcp", "ur5": "tool0"}
COUNT, QUICK_COUNT = 100, 6
STEPS, H, ITERATIONS = 50, 0.02, 500
WEIGHTS = {"running": 1.0, "final": 1e3, "state": 1e-2, "input": 1e-5}
"""As crocoddyl has them: of (1/2 |residual|^2), times the step but at the end."""
AGREE = 1e-6
"""Relative difference of the costs that both give to one plan."""
SAME = 1e-4
"""Costs that differ by less, relatively, are the same minimum."""

TEXT = """{count} random problems, half of them each of {robots}: from rest at a random configuration the hand reaches
for a random pose within {duration:g} s, {steps} semi-implicit Euler steps, with torques limited to 1.05 to 2 times what
holds start and goal. Costs of the hand's place and orientation, of the state and of the torques are the same for both,
and so are the first inputs; that both give liedyn's plans the same cost is checked. At most {most} iterations; liedyn
to 1e-9 of the cost, crocoddyl to its default tolerance. Time on the wall of a search: median (quartiles).
"""


def problem(number):
    """Problem of a number: a robot's name, its start, goal, holding torques and their limits."""
    rng, name = np.random.default_rng([22, number]), list(ROBOTS)[number % len(ROBOTS)]
    robot = ld.load(name)
    q = robot.home + rng.uniform(-1.0, 1.0, robot.nq)
    there, rest = q + rng.uniform(-0.8, 0.8, robot.nq), np.zeros(robot.nv)
    hold, after = (ld.rnea(robot, each, rest, rest) for each in (q, there))
    limit = rng.uniform(1.05, 2.0) * np.maximum(np.abs(hold), np.abs(after)) + rng.uniform(1.0, 4.0)
    return {"robot": name, "frame": ROBOTS[name], "steps": STEPS, "q": q.tolist(), "hold": hold.tolist(),
            "goal": ld.pose(robot, there, ROBOTS[name]).tolist(), "limit": limit.tolist()}


def own(each, start=None):
    """What `ld.ddp` finds from inputs, in the form of `box_fddp.plan`; those that hold the start by default."""
    robot, limit = ld.load(each["robot"]), np.array(each["limit"])
    # half of the step and of the weights, as there is neither a factor 1/2 nor a step in ours
    run, end = np.sqrt(0.5 * H * WEIGHTS["running"]), np.sqrt(0.5 * WEIGHTS["final"])
    cost = ld.Cost(Q=0.5 * H * WEIGHTS["state"], R=0.5 * H * WEIGHTS["input"], q=each["q"], u=each["hold"],
                   terminal_Q=0.5 * WEIGHTS["state"],
                   targets=ld.PoseTarget(each["frame"], each["goal"], weight=run, orientation_weight=run),
                   terminal_targets=ld.PoseTarget(each["frame"], each["goal"], weight=end, orientation_weight=end))
    start = np.clip(np.tile(each["hold"], (STEPS, 1)) if start is None else start, -limit, limit)
    begun = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of searches that have not converged: that is counted
        found = ld.ddp(robot, each["q"], np.zeros(robot.nv), cost, STEPS, H, limits=ld.Limits(inputs=(-limit, limit)),
                       method="euler", start=start, iterations=ITERATIONS)
    return {"converged": found.status == "converged", "iterations": found.iterations, "cost": float(found.cost),
            "torque": float(np.abs(found.u / limit).max()), "seconds": time.perf_counter() - begun,
            "inputs": found.u.tolist()}


def peers(problems):
    """Plans of BoxFDDP, or the reason why there are none."""
    python = os.environ.get("LIEDYN_CROCODDYL", sys.executable)
    there = subprocess.run([python, "-c", "import crocoddyl"], capture_output=True, check=False)
    if there.returncode:
        return "crocoddyl is not installed"
    with tempfile.TemporaryDirectory() as folder:
        models = {name: str(Path(folder) / f"{name}.urdf") for name in ROBOTS}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # URDF has no home
            for name, path in models.items():
                ld.save(ld.load(name), path)
        job = {"models": models, "weights": WEIGHTS, "h": H, "iterations": ITERATIONS, "problems": problems}
        clean = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        done = subprocess.run([python, box_fddp.__file__], input=json.dumps(job), capture_output=True, text=True,
                              env=clean, check=False)
    if done.returncode:
        return f"crocoddyl ends with {(done.stderr.strip().splitlines() or [f'status {done.returncode}'])[-1]}"
    return json.loads(done.stdout)


def measure(effort, progress):
    """Plan each problem with both.

    Returns
    -------
    dict
        "plans": number, robot, and plan of each; "timings" of a search; "missing": why there are none of the peer, or
        "".
    """
    problems = [problem(number) for number in range(QUICK_COUNT if effort.quick else COUNT)]
    plans = []
    for number, each in enumerate(problems):
        if number % 10 == 0:
            progress(f"liedyn, problem {number}")
        plans.append({"number": number, "robot": each["robot"], "liedyn": own(each)})
        each["inputs"] = plans[-1]["liedyn"].pop("inputs")
    progress("crocoddyl")
    theirs = peers(problems)
    if isinstance(theirs, str):
        return {"plans": plans, "missing": theirs, "timings": {"liedyn": _quartiles(plans, "liedyn")}}
    for mine, plan in zip(plans, theirs):
        require_agreement(f"costs of one plan, problem {mine['number']}", mine["liedyn"]["cost"], plan["same"], AGREE)
    progress("liedyn, from the plans of crocoddyl")
    for each, plan, their in zip(problems, plans, theirs):
        plan["onward"] = {"liedyn": own(each, their.pop("inputs"))["cost"], "crocoddyl": their.pop("onward")}
        plan["crocoddyl"] = their
    return {"plans": plans, "missing": "", "timings": {name: _quartiles(plans, name) for name in NAMES}}


def _quartiles(plans, name):
    return list(np.percentile([each[name]["seconds"] for each in plans], (50, 25, 75)))


def report(results):
    """The section in Markdown."""
    plans, rows = results["plans"], []
    for name in NAMES:
        found = [each[name] for each in plans if name in each]
        if not found:
            rows.append([name, results["missing"], "", "", ""])
            continue
        ended = [each for each in found if each["converged"]]
        rows.append([name, f"{len(ended)} of {len(found)}", f"{np.median([each['iterations'] for each in found]):.0f}",
                     str(max(each["iterations"] for each in found)),
                     microseconds(results["timings"][name])])
    lines = [TEXT.format(count=len(plans), robots=" and ".join(ROBOTS), duration=STEPS * H, steps=STEPS,
                         most=ITERATIONS),
             markdown(["solver", "converged", "iterations, median", "most", "search [us]"], rows)]
    if not results["missing"]:
        lines += _comparison(plans)
    return "\n\n".join(lines) + "\n"


def _comparison(plans):
    """Sentences about the costs of both, and about what each solver makes of the other's plan where they differ."""
    ratio = np.array([each["liedyn"]["cost"] / each["crocoddyl"]["cost"] for each in plans])
    higher = [each for each, r in zip(plans, ratio) if r > 1 + SAME]
    lower = [each for each, r in zip(plans, ratio) if r < 1 - SAME]
    alike = sum(abs(each["onward"]["liedyn"] / each["liedyn"]["cost"] - 1) <= SAME for each in lower)
    falls = len(lower) - sum(_stays(each, "liedyn") for each in lower)
    lines = [f"Costs, liedyn's divided by crocoddyl's: the same to {SAME:g} in {len(plans) - len(higher) - len(lower)} "
             f"problems, lower in {len(lower)}, higher in {len(higher)}; from {ratio.min():.4f} to {ratio.max():.4f}.",
             "Where costs differ, each solver goes on from the other's plan; a plan where the other solver stays to "
             f"{SAME:g} of the cost is a minimum. Where liedyn's cost is lower, crocoddyl stays at "
             f"{sum(_stays(each, 'crocoddyl') for each in lower)} of {len(lower)} plans; liedyn comes from {alike} of "
             f"crocoddyl's to its own cost again and from {len(lower) - alike} to other minima, {falls} times by more "
             "than that."]
    return lines + [_where_higher(each) for each in higher]


def _stays(each, solver):
    """Does a solver that starts from the other's plan find no lower cost?"""
    other = NAMES[1 - NAMES.index(solver)]
    return each["onward"][solver] >= (1 - SAME) * each[other]["cost"]


def _where_higher(each):
    """One sentence about a problem where liedyn's cost is higher: is it another minimum?"""
    from_theirs, from_ours = (each["onward"][name] for name in NAMES)
    minimum = "another local minimum" if _stays(each, "crocoddyl") else "above a minimum"
    return (f"Problem {each['number']} ({each['robot']}): liedyn {each['liedyn']['cost']:.6g}, crocoddyl "
            f"{each['crocoddyl']['cost']:.6g}; from crocoddyl's plan liedyn comes to {from_theirs:.6g}, from liedyn's "
            f"crocoddyl comes to {from_ours:.6g}: liedyn's plan is {minimum}.")
