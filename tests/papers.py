"""The papers' examples: their numbers (tests/reference, derived independently), and motions to compare with them."""
import functools
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from comparison import off  # noqa: F401

import liedyn as ld
from liedyn.model.build import build

STATE, MOTION = 1e-10, 1e-6
"""Relative errors that the project promises: of a state, and of a regular motion."""
against_papers = functools.partial(pytest.mark.validation, oracle="Papers' examples, from symbolic equations")


def numbers(name):
    return json.loads((Path(__file__).parent / "reference" / f"{name}.json").read_text())


def table(sheet):
    """Columns of a table by name."""
    return dict(zip(sheet["columns"], np.array(sheet["rows"], dtype=float).T))


def columns(sheet, *names):
    """Columns of a table side by side, one row for each time."""
    return np.stack([table(sheet)[name] for name in names], axis=-1)


def with_gravity(robot, *gravity):
    return build(replace(robot.model, gravity=np.array(gravity)))


def with_body(robot, name, **changes):
    """The same robot with other numbers in one body."""
    bodies = tuple(replace(body, **changes) if body.name == name else body for body in robot.model.bodies)
    return build(replace(robot.model, bodies=bodies))


def motion(robot, q, v, times, tau=None, **options):
    """The trajectory from time zero in steps of 1 ms, and its states (q, v) at some of these times."""
    run = ld.simulate(robot, q, v, times[-1], tau=tau, start="as given", **options)
    places = np.searchsorted(run.t, np.asarray(times) - 5e-4)  # the first of two rows where an event happens
    np.testing.assert_allclose(run.t[places], times, rtol=0.0, atol=1e-12)
    return run, run.q[places], run.v[places]
