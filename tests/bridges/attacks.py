"""``python tests/bridges/attacks.py --count 7000 --seed 0 [ROBOT ...]``: attacks on the programs of `ld.specialize`,
on the processor or, with ``--device cuda``, on a GPU.

Random states, many of them bad ones: off the loops, singular and next to it, on other branches, fast, with rows that
are redundant here and not there, and numbers that are none. Wherever a program says that its result is valid, the
general kernel has to have the same one, without an error and without a warning. At all other states the general kernel
itself computes the result, or raises the error.
"""
import argparse
import sys
import warnings
from pathlib import Path

import numpy as np

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[k] / name) for k, name in ((0, ""), (1, ""), (1, "mechanics"))]

from random_mechanisms import Plan, built
from test_generate_c import ball, floating, geared
from tree_cases import bundled

import liedyn as ld
from liedyn.bridges.specialization.mechanism_programs import MechanismPrograms
from liedyn.bridges.specialization.references import closed_rows
from liedyn.machine.errors import ConditionWarning
from liedyn.model.kinds import JOINT_KINDS

BUNDLED = ("five_bar", "four_bar", "four_bars", "loader", "bricard", "parallel_five_bar", "rolling_disk",
           "shopping_cart", "rolling_spheres", "arm_on_slider", "slider_crank", "cassie_like", "stewart", "delta")
OWN = {"ball": ball, "floating": floating, "geared": geared}
RANDOM = 6
"""Random mechanisms of the command, besides those above."""
LIMIT = 1e-10
"""Largest difference, relative to the largest number of a result, or of what cancels there: the forces and the square
of the velocity."""
FUNCTIONS = {"linearize": ("A", "B", "f0", "K"), "forward_dynamics": None}


def random_robot(seed):
    """A random closed mechanism that moves, and a closed configuration; the next one if a seed has none."""
    while True:
        rng = np.random.default_rng(seed)
        kinds = [kind for kind in JOINT_KINDS if kind not in ("fixed", "free")]
        count = rng.integers(3, 6)
        joints = tuple((str(rng.choice(kinds)), int(rng.integers(-1, k))) for k in range(count))
        ties = tuple((str(rng.choice(("revolute", "spherical", "distance", "on_plane", "coupling", "universal"))),
                      int(rng.integers(-1, k)), int(k), bool(rng.integers(2)))
                     for k in rng.choice(np.arange(1, count), size=rng.integers(1, 3), replace=False))
        robot, q, _ = built(Plan(joints, ties, springs=bool(rng.integers(2)), seed=seed))
        if robot.row_names and robot.nv <= 9 and np.linalg.matrix_rank(ld.constraint_jacobian(robot, q)) < robot.nv:
            return robot, q
        seed += 1000


def mechanisms(seed):
    """Robots, with configurations for `at` or None, by name."""
    made = {name: (bundled(name), None) for name in BUNDLED}
    made |= {name: (builder().build(), None) for name, builder in OWN.items()}
    return made | {f"random {seed + k}": random_robot(seed + k) for k in range(RANDOM)}


# ---- states


def sizes(rng, count, low, high):
    """A column of numbers between powers of ten."""
    return 10.0 ** rng.uniform(low, high, size=(count, 1))


def along(robot, q, v):
    """The part of v that keeps loops closed."""
    G = ld.constraint_jacobian(robot, q)
    return v - (np.linalg.pinv(G, rcond=1e-8) @ (G @ v[..., None]))[..., 0]


def anywhere(robot, center, rng, count):
    """Closed configurations, near the centre and far from it, on whatever branch."""
    spread = rng.uniform(0.0, 2.0, size=(count, 1))
    return closed_rows(robot, ld.integrate(robot, np.repeat(center[None], count, 0),
                                      spread * rng.normal(size=(count, robot.nv))))


def folded(robot, center, rng, count):
    """Configurations with right angles, closed: mechanisms are singular in line."""
    q = np.repeat(center[None], count, 0)
    if robot.nq == robot.nv:
        chosen = rng.random(q.shape) < 0.7
        q = np.where(chosen, rng.integers(-2, 3, size=q.shape) * (np.pi / 2), q)
    return closed_rows(robot, ld.integrate(robot, q, rng.choice([0.0, 1e-9, 1e-6, 1e-3], size=(count, 1))
                                      * rng.normal(size=(count, robot.nv))))


def towards_singular(robot, q, rng):
    """Closed configurations on the way to singular ones: the smallest singular value that counts becomes smaller."""
    if not robot.row_names or not len(q):
        return q

    def smallest(q):
        s = np.linalg.svd(ld.constraint_jacobian(robot, q), compute_uv=False)
        rank = int((s > 1e-7 * s[:, :1]).sum(1).max())
        return s[:, max(rank, 1) - 1] / np.maximum(s[:, 0], 1e-300)

    found, best = [], smallest(q)
    for size in np.repeat([0.3, 0.1, 3e-2, 1e-2, 3e-3, 1e-3, 1e-4, 1e-5, 1e-6], 4):
        trial = ld.integrate(robot, q, size * rng.normal(size=(len(q), robot.nv)))
        if len(closed_rows(robot, trial)) == len(q):
            trial = closed_rows(robot, trial)
            value = smallest(trial)
            better = value < best
            q, best = np.where(better[:, None], trial, q), np.where(better, value, best)
        else:  # one at a time is too slow: the others go on
            continue
        found.append(q)
    return np.vstack(found) if found else q


def states(robot, center, rng, count):
    """Rows of q, v and tau, all finite, in random order."""
    each = max(count // 6, 2)
    q = anywhere(robot, center, rng, each)
    groups = [q, anywhere(robot, center, rng, each), folded(robot, center, rng, each),
              towards_singular(robot, q[:max(len(q) // 10, 1)], rng)[-2 * each:]]
    q = np.vstack(groups)
    q = q[rng.integers(len(q), size=count)]
    v = along(robot, q, rng.normal(size=(count, robot.nv))) * sizes(rng, count, -2, 3) * rng.integers(
        0, 4, size=(count, 1)).clip(0, 1)
    tau = rng.normal(size=v.shape) * sizes(rng, count, -2, 4)
    way = rng.integers(0, 10, size=(count, 1))
    off = sizes(rng, count, -15, 0) * rng.normal(size=v.shape)
    q = ld.integrate(robot, q, np.where(way == 0, off, 0.0))
    v = v + np.where(way == 1, off, 0.0)
    turns = 2.0 * np.pi * rng.integers(-10, 11, size=v.shape) * 10 ** rng.integers(0, 8, size=(count, 1))
    if robot.nq == robot.nv:
        q = q + np.where((way == 2) & [name in angles(robot) for name in robot.coordinate_names], turns, 0.0)
    v[way[:, 0] == 3] *= 1e8
    return q, v, tau


def angles(robot):
    """Names of the coordinates that are angles of revolute joints."""
    return [joint.name for joint in robot.model.joints if joint.kind == "revolute"]


def wrong_states(robot, center, rng):
    """Single states with numbers that are none, infinite or huge, and quaternions of another length."""
    q = closed_rows(robot, center[None])[0]
    for bad in (np.nan, np.inf, -np.inf, 1e60, 1e300, 5e-324):
        for k in range(3):
            state = [q.copy(), np.zeros(robot.nv), np.zeros(robot.nv)]
            state[k][rng.integers(len(state[k]))] = bad
            yield tuple(state)
    if robot.nq > robot.nv:
        yield 1.001 * q, np.zeros(robot.nv), np.zeros(robot.nv)


# ---- judgement


class Vouching(MechanismPrograms):
    """`MechanismPrograms` without the general kernels: results of states where no guard holds are not numbers."""

    def _general(self, name, results, lead, left, rows, made, outputs):
        for x in made:
            x[left] = np.nan
        self.left = left

    def vouched(self, name, results, rows):
        """Results, and a mask of the states for which a program vouches."""
        self.left = np.empty(0, np.int64)
        found = self.run(name, dict(zip(("q", "v", "tau"), rows)), results, None)
        good = np.ones(len(rows[0]), bool)
        good[self.left] = False
        return found, good


class VouchingGpu:
    """The same for programs on a GPU, which do not warn next to singular configurations."""

    def __init__(self, robot, at):
        self.robot, self.gpu = robot, ld.specialize(robot, at=at, device="cuda")

    def vouched(self, name, results, rows):
        *found, ok = getattr(self.gpu, name)(*rows, fallback="nan")
        return found, ok

    def general(self, name, results, *rows):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConditionWarning)
            return self.gpu._general(name, dict(zip(("q", "v", "tau"), rows)))


def off(found, expected, size=1.0):
    """Largest difference of each row, relative to its largest number, or its size."""
    found, expected = (np.reshape(x, (len(expected), -1)) for x in (found, expected))
    if not expected.shape[1]:
        return np.zeros(len(expected))
    apart = np.abs(found - expected).max(1) / np.maximum(size, np.abs(expected).max(1))
    return np.where(np.isnan(apart), np.inf, apart)


def outcome(function, *arguments):
    """The results of a call, or the type of its error."""
    try:
        with np.errstate(all="ignore"):
            return function(*arguments)
    except ld.LiedynError as error:
        return type(error)


def faults(programs, name, results, rows):
    """For each vouched state that the general kernel does not confirm: its place, and what that says; and how many
    states were vouched for."""
    found, good = programs.vouched(name, results, rows)
    places = np.flatnonzero(good)
    wrong = []

    def compare(places):
        given = [x[places] for x in rows]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", ConditionWarning)
                expected = programs.general(name, results, *given)
        except (ld.LiedynError, ConditionWarning) as error:
            if len(places) == 1:
                wrong.append((int(places[0]), error))
                return
            for part in np.array_split(places, 2):
                compare(part)
            return
        size = np.maximum(1.0, np.maximum(np.square(given[1]).max(1), np.abs(given[2]).max(1)))
        sizes_of = [size] * len(found)
        if name == "forward_dynamics":  # multipliers are what is left of forces
            M = ld.crba(programs.robot, given[0])
            sizes_of[1] = np.maximum(size, (np.abs(M) @ np.abs(expected[0])[..., None]).max((1, 2)))
        apart = np.max([off(x[places], y, z) for x, y, z in zip(found, expected, sizes_of)], axis=0)
        wrong.extend((int(b), x) for b, x in zip(places, apart) if not x < LIMIT)
        worst[0] = max(worst[0], apart.max(initial=0.0))

    worst = [0.0]
    for part in np.array_split(places, max(len(places) // 500, 1)):
        if len(part):
            compare(part)
    return wrong, len(places), worst[0]


def attack(robot, at, count, seed, kind=Vouching):
    """Attacks all functions of a robot.

    Yields
    ------
    name : str
    wrong : list
        As of `faults`, with the state at the end of each.
    vouched : int
    worst : float
    """
    rng = np.random.default_rng(seed)
    programs, center = kind(robot, None if at is None else at[None]), robot.home if at is None else at
    rows = states(robot, center, rng, count)
    for name, results in FUNCTIONS.items():
        wrong, vouched, worst = faults(programs, name, results, rows)
        yield name, [(error, *(x[b] for x in rows)) for b, error in wrong], vouched, worst


def same_outcomes(robot, at, count, seed):
    """Public calls with single states, wrong ones among them: the states at which the outcomes differ in kind."""
    rng, fast = np.random.default_rng(seed), ld.specialize(robot, at)
    center = robot.home if at is None else at
    rows = states(robot, center, rng, count)
    different = []
    for state in (*zip(*rows), *wrong_states(robot, center, rng)):
        for name, results in FUNCTIONS.items():
            expected = outcome(fast._programs.general, name, results, *state)
            found = outcome(getattr(fast, name), *state)
            if (found is not expected) if isinstance(expected, type) else isinstance(found, type):
                different.append((name, found, expected, state))
    return different


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("robots", nargs="*", help="names of some of them")
    parser.add_argument("--count", type=int, default=7000, help="states of each robot")
    parser.add_argument("--single", type=int, default=50, help="of them by single public calls, besides")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    given, total, found = parser.parse_args(), 0, 0
    for name, (robot, at) in mechanisms(given.seed).items():
        if given.robots and name not in given.robots:
            continue
        kind = Vouching if given.device == "cpu" else VouchingGpu
        for function, wrong, vouched, worst in attack(robot, at, given.count, given.seed, kind):
            total, found = total + given.count, found + len(wrong)
            print(f"{name:>18} {function:>17}: {vouched:6} of {given.count} by programs, largest difference "
                  f"{worst:.1e}, {len(wrong)} wrong", flush=True)
            for error, *state in wrong[:3]:
                print("    ", error if isinstance(error, float) else f"{type(error).__name__}: {error}"[:200],
                      *(x.tolist() for x in state), flush=True)
        single = same_outcomes(robot, at, given.single, given.seed + 1) if given.device == "cpu" else ()
        for function, *difference in single:
            found += 1
            print(f"{name:>18} {function:>17}: other outcome {difference}", flush=True)
    print(f"{total} results, {found} wrong")
    return found > 0


if __name__ == "__main__":
    sys.exit(main())
