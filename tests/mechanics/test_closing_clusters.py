"""Closing many loops: side by side each as if it were alone, coupled ones along the chain; time grows gently."""
import time

import numpy as np
import pytest

import liedyn as ld
from benchmarks.robots import four_bars
from liedyn.model.packed import SPARSE

GUESS = {"bar": (0.9, -0.5, -1.8), "crank": (0.7, -1.1, 1.4)}


def side_by_side(kinds):
    """Four-bars ("bar") and slider-cranks ("crank") on the ground, every one 4 m from the last."""
    b = ld.Builder("side by side", gravity=(0.0, -9.81, 0.0))
    inertia = (1e-3, 0.1, 0.1)
    for k, kind in enumerate(kinds):
        at = 4.0 * k
        parent = "ground"
        for name, x in (("a", at), ("b", 1.0), *((("c", 1.2),) if kind == "bar" else ())):
            b.body(f"{name}{k}", 1.0, (0.5, 0.0, 0.0), inertia)
            b.joint(f"{name}{k}", "revolute", parent, f"{name}{k}", placement=(x, 0.0, 0.0))
            parent = f"{name}{k}"
        if kind == "bar":
            b.loop(f"pin{k}", "revolute", "ground", parent, parent_placement=(at + 1.5, 0.0, 0.0),
                   child_placement=(1.1, 0.0, 0.0))
        else:
            b.body(f"s{k}", 1.0, inertia=inertia)
            b.joint(f"s{k}", "prismatic", "ground", f"s{k}", placement=(at, 0.1, 0.0), axis=(1.0, 0.0, 0.0))
            b.loop(f"pin{k}", "revolute", f"s{k}", parent, child_placement=(1.5, 0.0, 0.0))
    return b.build()


def guess(kinds, seed=0):
    noise = np.random.default_rng(seed).normal(size=3 * len(kinds))
    return np.concatenate([GUESS[kind] for kind in kinds]) + 0.1 * noise


def test_each_as_if_it_were_alone():
    kinds = ["bar", "crank"] * 6
    robot, q = side_by_side(kinds), guess(kinds)
    q[3 * 4:3 * 5] = 0.0  # stretched on one line: where Newton's method comes to a halt
    q[3 * 7:3 * 8] += 1.0
    held = {"a0": 0.7, "a3": 0.5, "pin6": -1.1, "s9": 2.0}
    closed = ld.close(robot, q, held)
    assert np.abs(ld.closure_error(robot, closed)).max() < 1e-12
    assert ld.virtual_coordinates(robot, closed)[6] == pytest.approx(-1.1, abs=1e-12)
    assert [closed[robot.coordinate_index(name)] for name in ("a0", "a3", "s9")] == [0.7, 0.5, 2.0]
    free = ld.close(robot, q)
    for k, kind in enumerate(kinds):
        one, own = side_by_side([kind]), q[3 * k:3 * k + 3]
        assert np.abs(ld.close(one, own) - free[3 * k:3 * k + 3]).max() < 1e-11
        mine = {name[:-1] + "0": x for name, x in held.items() if int(name[-1]) == k}
        assert np.abs(ld.close(one, own, mine) - closed[3 * k:3 * k + 3]).max() < 1e-11


def test_the_one_that_cannot_be_closed_is_named():
    kinds = ["bar"] * 40
    with pytest.raises(ld.ClosureError, match="with a30 = 0, b30 = 0: loop 'pin30' is left open by 0.4 m"):
        ld.close(side_by_side(kinds), guess(kinds), a30=0.0, b30=0.0)


def seconds(call):
    """Least of a few times that a call took."""
    found = []
    for _ in range(3):
        start = time.process_time()
        call()
        found.append(time.process_time() - start)
    return min(found)


def grows_gently(times, factor):
    """Not more than as the power 1.5 of the number, and as much again for caches that are too small."""
    assert times[1] < 2.0 * factor ** 1.5 * times[0], times


def test_time_of_loops_side_by_side():
    times = []
    for count in (40, 320):
        kinds = ["bar", "crank"] * (count // 2)
        robot, q = side_by_side(kinds), guess(kinds)
        times.append(seconds(lambda: ld.close(robot, q)))  # noqa: B023
        assert np.abs(ld.closure_error(robot, ld.close(robot, q))).max() < 1e-11
    grows_gently(times, 8)


@pytest.mark.parametrize("hold", ["nothing", "a coordinate", "an angle of a cut"])
def test_time_of_coupled_loops(hold):
    """The four-bars of benchmark A02: one motion, one cluster."""
    times = []
    for count in (40, 320):
        robot = four_bars(count)
        q = robot.home + 0.05 * np.random.default_rng(count).normal(size=robot.nv)
        angle = float(ld.virtual_coordinates(robot, ld.close(robot, q))[count // 2])
        held = {"nothing": {}, "a coordinate": {f"V{count // 3}": 1.3}, "an angle of a cut": {
            f"tip{count // 2}": angle + 0.2}}[hold]
        times.append(seconds(lambda: ld.close(robot, q, held)))  # noqa: B023
        closed = ld.close(robot, q, held)
        assert np.abs(ld.closure_error(robot, closed)).max() < 1e-12
        V = closed[[name[0] == "V" for name in robot.coordinate_names]]
        assert np.ptp(V) < 1e-10  # parallelograms: all cranks turn alike
        if hold == "a coordinate":
            assert V[count // 3] == 1.3
        elif held:
            assert ld.virtual_coordinates(robot, closed)[count // 2] == pytest.approx(angle + 0.2, abs=1e-12)
    grows_gently(times, 8)


def test_the_step_is_the_shortest():
    """A chain is closed where Newton's method with pseudoinverses closes it."""
    robot = four_bars(12)
    assert robot.packed.ints[SPARSE] > 0  # it counts as long
    q = robot.home + 0.05 * np.random.default_rng(3).normal(size=robot.nv)
    here = q.copy()
    for _ in range(20):
        here -= np.linalg.pinv(ld.constraint_jacobian(robot, here), 1e-9) @ ld.closure_error(robot, here)
    assert np.abs(ld.close(robot, q) - here).max() < 1e-11
