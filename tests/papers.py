"""The papers' examples: their numbers (tests/reference, derived independently), and motions to compare with them."""
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.integrate import solve_ivp

import liedyn as ld
from liedyn.model.build import build

STATE, MOTION = 1e-10, 1e-6
"""Relative errors that the project promises: of a state, and of a regular motion."""


def numbers(name):
    return json.loads((Path(__file__).parent / "reference" / f"{name}.json").read_text())


def table(sheet):
    """Columns of a table by name."""
    return dict(zip(sheet["columns"], np.array(sheet["rows"], dtype=float).T))


def columns(sheet, *names):
    """Columns of a table side by side, one row for each time."""
    return np.stack([table(sheet)[name] for name in names], axis=-1)


def off(actual, expected):
    """Largest difference, relative to the largest number, or to one."""
    assert np.shape(actual) == np.shape(expected)
    return np.abs(np.subtract(actual, expected)).max() / max(np.abs(expected).max(), 1.0)


def with_gravity(robot, *gravity):
    return build(replace(robot.model, gravity=np.array(gravity)))


def with_body(robot, name, **changes):
    """The same robot with other numbers in one body."""
    bodies = tuple(replace(body, **changes) if body.name == name else body for body in robot.model.bodies)
    return build(replace(robot.model, bodies=bodies))


def motion(robot, q, v, times, tau=None, **options):
    """q and v at some times, by `forward_dynamics` and SciPy's 8th-order Runge-Kutta: no simulator of ours."""
    n = robot.nv
    moves = bool(robot.functions)

    def rate(t, x):
        now = robot.at(t) if moves else robot
        load = np.zeros(n) if tau is None else tau(t, x[:n], x[n:])
        return np.concatenate([x[n:], ld.forward_dynamics(now, x[:n], x[n:], load, **options).a])

    solution = solve_ivp(rate, (times[0], times[-1]), np.concatenate([q, v]), "DOP853", t_eval=times, rtol=1e-10,
                         atol=1e-11)
    assert solution.success
    return solution.y[:n].T, solution.y[n:].T
