"""Drops of boxes, prisms, pyramids and stacks with any friction and restitution: does every run reach its end?

`python -m benchmarks.drops --count 400 --seed 1 --processes 2` makes each drop by the default method and by `moreau`,
prints those that stop or break a law, and how many of each shape there were.
"""
import argparse
import collections
import json
import multiprocessing
import os
import sys
import time
import warnings

import numpy as np

import liedyn as ld

SHAPES = ("box", "plate", "prism", "pyramid", "points", "stack of 2", "stack of 3")
T_FINAL, DT = 0.6, 2e-3
METHODS = {"default": {}, "moreau": {"method": "moreau"}}
DEPTH, GAIN = 1e-5, 1e-6
"""Largest penetration [m], as time-stepping leaves it, which may pass accumulations of a default run; and gain of
energy, relative to the largest change of it."""


def box(sides):
    """Corners (8, 3) of a box."""
    return 0.5 * np.array(sides) * np.array([[x, y, z] for x in (1, -1) for y in (1, -1) for z in (1, -1)])


def prism(corners, radius, height):
    """Corners (2 n, 3) of a prism over a regular polygon."""
    angles = 2.0 * np.pi * np.arange(corners) / corners
    return np.array([[radius * np.cos(a), radius * np.sin(a), z] for a in angles for z in (-height / 2, height / 2)])


def pyramid(corners, radius, height):
    """Corners (n + 1, 3) of a pyramid over a regular polygon."""
    return np.vstack([prism(corners, radius, 0.0)[::2], [[0.0, 0.0, height]]])


def corners_of(shape, rng):
    """Corners (n, 3) of a body of one of the first five shapes."""
    n = int(rng.integers(3, 9))
    if shape in ("box", "plate"):
        return box([*rng.uniform(0.1, 0.4, 2), 0.02 if shape == "plate" else rng.uniform(0.1, 0.4)])
    if shape == "points":
        return rng.normal(size=(n + 1, 3)) * 0.1
    return (prism if shape == "prism" else pyramid)(n, rng.uniform(0.05, 0.25), rng.uniform(0.05, 0.4))


def body(corners, restitution, friction, mass=2.0):
    """A free body whose corners may touch the floor."""
    corners = corners - corners.mean(axis=0)
    spread = 0.6 * mass / len(corners) * corners.T @ corners  # as of masses at the corners, drawn in a little
    b = ld.Builder("body")
    b.body("body", mass, inertia=np.trace(spread) * np.eye(3) - spread)
    b.joint("free", "free", "ground", "body")
    for k, corner in enumerate(corners):
        b.constraint(f"c{k}", "on_plane", "ground", "body", child_placement=corner, unilateral=True,
                     restitution=restitution, friction=friction)
    return b.build()


def stack(sides, masses, restitution, friction, corners=slice(None)):
    """Free boxes, corners of each above the upper face of the one below."""
    b = ld.Builder("stack")
    for k, (a, mass) in enumerate(zip(sides, masses)):
        below = ("ground", (0, 0, 0)) if k == 0 else (f"b{k - 1}", (0, 0, 0.5 * sides[k - 1][2]))
        x, y, z = np.square(a)
        b.body(f"b{k}", mass, inertia=mass / 12 * np.array([y + z, x + z, x + y]))
        b.joint(f"f{k}", "free", "ground", f"b{k}")
        for n, corner in enumerate(box(a)[corners]):
            b.constraint(f"c{k}_{n}", "on_plane", below[0], f"b{k}", parent_placement=below[1], child_placement=corner,
                         unilateral=True, restitution=restitution, friction=friction)
    return b.build()


def gaps(robot, q):
    """The gap of each contact."""
    every = robot.switched({record.name: "sticking" for record in robot.model.constraints if record.side})
    return ld.closure_error(every, q)[..., [k for k, name in enumerate(every.row_names) if name.endswith(".gap")]]


def above_floor(robot, tilt, height):
    """The configuration of a free body, turned, whose lowest corner is at a height."""
    q = ld.integrate(robot, robot.neutral, [*tilt, 0.0, 0.0, 0.0])
    q[6] += height - gaps(robot, q).min()
    return q


def drop(seed):
    """The shape, robot and state (q, v) of a drop, and its friction and restitution.

    Every shape falls flat, nearly flat, or tumbling; with and without speed, friction and restitution.
    """
    rng = np.random.default_rng([4711, seed])
    shape = SHAPES[seed % len(SHAPES)]
    friction = 0.0 if rng.random() < 0.15 else rng.uniform(0.0, 2.0)
    restitution = float(rng.choice([0.0, rng.uniform(), rng.uniform()]))
    tilt = (0.0, 0.02, 1.0)[rng.integers(3)]
    if not shape.startswith("stack"):
        robot = body(corners_of(shape, rng), restitution, friction, 10.0 ** rng.uniform(-1, 1))
        q = above_floor(robot, tilt * rng.normal(size=3), rng.uniform(0.005, 0.15))
        v = rng.normal(size=6) * rng.choice([0.0, 1.0])
        return shape, robot, q, v, friction, restitution
    count, some = int(shape[-1]), rng.random() < 0.5
    sides = rng.uniform(0.1, 0.4, (count, 3))
    robot = stack(sides, 10.0 ** rng.uniform(-1, 1, count), restitution, friction, slice(1, None, 2) if some else slice(
        None))
    q, height = robot.neutral, 0.0
    change = np.zeros((count, 6))
    for k, a in enumerate(sides):
        height += rng.uniform(0.005, 0.05)
        change[k] = [*(min(tilt, 0.02) * rng.normal(size=3)), *rng.uniform(-0.02, 0.02, 2), height + 0.5 * a[2]]
        height += a[2]
    q = ld.integrate(robot, robot.neutral, change.ravel())
    lowest = gaps(robot, q).min()
    q[6::7] += np.arange(1, count + 1) * (max(0.0, 0.005 - lowest))
    return shape, robot, q, rng.normal(size=robot.nv) * rng.choice([0.0, 0.3]), friction, restitution


def made(seed):
    """What happens in one drop, by each method: a list of records."""
    shape, robot, q, v, friction, restitution = drop(seed)
    records = []
    for name, options in METHODS.items():
        start, error = time.process_time(), ""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of restitutions that are lowered
            try:
                tr = ld.simulate(robot, q, v, T_FINAL, dt=DT, progress=False, **options)
            except ld.SimulationError as stopped:
                tr, error = stopped.trajectory, f"{type(stopped).__name__}: {stopped}"
        energy, deepest = tr.energy, max(0.0, -float(gaps(robot, tr.q).min()))
        gain = float((energy[1:] - np.maximum.accumulate(energy)[:-1]).max(initial=0.0))
        gain /= max(float(np.ptp(energy)), 1e-6)
        if not error and (deepest > DEPTH or gain > GAIN):
            error = f"law broken: {deepest:.2g} m deep, {gain:.2g} of the energy gained"
        records.append({"seed": seed, "method": name, "shape": shape, "friction": friction, "restitution": restitution,
                        "seconds": round(time.process_time() - start, 3), "depth": deepest, "gain": gain,
                        "rest": bool(np.abs(tr.v[-1]).max() < 1e-6), "error": error})
    return records


def main(arguments=None):
    """Run the command; returns the number of runs that failed, at most 100."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.drops", description=__doc__)
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0, help="seed of the first drop")
    parser.add_argument("--processes", type=int, default=max(1, (os.cpu_count() or 2) // 2))
    parser.add_argument("--json", metavar="F", help="also add one line for each run to a file")
    options = parser.parse_args(arguments)
    runs = []
    with multiprocessing.get_context("spawn").Pool(options.processes) as pool:
        for records in pool.imap_unordered(made, range(options.seed, options.seed + options.count)):
            runs += records
            for run in records:
                if run["error"]:
                    print(run, flush=True)
            if options.json:
                with open(options.json, "a") as file:
                    file.writelines(json.dumps(run) + "\n" for run in records)
    for method in METHODS:
        of_it = [run for run in runs if run["method"] == method]
        shapes = collections.Counter(run["shape"] for run in of_it)
        print(f"{method}: {len(of_it)} drops ({', '.join(f'{n} {shape}' for shape, n in sorted(shapes.items()))}), "
              f"{sum(bool(run['error']) for run in of_it)} failed, {sum(run['rest'] for run in of_it)} at rest in the "
              f"end, {sum(run['seconds'] for run in of_it):.0f} CPU s, the longest "
              f"{max(run['seconds'] for run in of_it):.1f}")
    return min(100, sum(bool(run["error"]) for run in runs))


if __name__ == "__main__":
    sys.exit(main())
