"""What rounding costs: algorithms beside their own bodies on numbers with forty digits."""
import numpy as np
import pytest
from comparison import off
from exact_kernels import DIGITS, MP, Exact

import liedyn as ld
from liedyn.machine.simd.lanes import SCALAR
from liedyn.model.calls.recursion import RECURSIONS, arguments_of

EXACT = Exact()
ALGORITHMS = {"rnea": 1e-14, "crba": 1e-14, "aba": 1e-13, "rnea_derivatives": 1e-14, "aba_derivatives": 1e-13,
              "centroidal_momentum_matrix_dot": 1e-14, "body_jacobian_ddot": 1e-14, "momentum_terms": 1e-14,
              "coriolis_matrix": 1e-14}
"""Each with the error that is allowed: some hundred roundings, times the condition of M where it is inverted."""


def exact(name, robot, x):
    """Results of an algorithm with forty digits, flat."""
    declared, model = RECURSIONS[name], robot.packed
    sizes = {"nv": robot.nv, "nq": robot.nq, "nbodies": robot.nbodies}
    shapes = {**declared.scratch, **declared.results}
    rooms = {each: np.zeros(int(np.prod([sizes.get(s) or int(s) for s in shape]))) for each, shape in shapes.items()}
    given = {"lane": SCALAR, "model": model, "b": robot.nbodies - 1, "f_ext": np.empty(0), **x, **rooms}
    if declared.size is not None:
        given["work"] = np.zeros(declared.size(model))
    names = arguments_of(declared.kernel)
    found = dict(zip(names, EXACT.call(declared.kernel, *(given[each] for each in names)), strict=True))
    return [found[each] for each in declared.results]


def state(robot):
    rng = np.random.default_rng(len(robot.name))
    q = ld.integrate(robot, robot.home, rng.standard_normal(robot.nv))
    v, a, tau = rng.standard_normal((3, robot.nv))
    return {"q": q, "v": v, "a": a, "tau": tau}


@pytest.mark.parametrize("robot", ["panda", "ur5", "solo12"])
@pytest.mark.parametrize("name", ALGORITHMS)
def test_rounding(name, robot):
    robot = ld.load(robot)
    x = state(robot)
    inputs = [x.get(each, robot.body_names[-1]) for each in RECURSIONS[name].inputs if each != "f_ext"]
    mine = getattr(ld, name)(robot, *inputs)
    for found, right in zip(mine if isinstance(mine, tuple) else (mine,), exact(name, robot, x), strict=True):
        assert off(found.ravel(), right.astype(float)) < ALGORITHMS[name]


def test_digits():
    """The inertia matrix is symmetric to all digits but a few, and more than doubles hold."""
    robot = ld.load("panda")
    x = state(robot)
    columns = [exact("rnea", robot, x | {"a": e})[0] for e in np.eye(robot.nv)]
    M = np.array(columns) - exact("rnea", robot, x | {"a": np.zeros(robot.nv)})[0]
    assert np.abs(M - M.T).max() < MP.mpf(10) ** (5 - DIGITS) * np.abs(M).max()
    assert np.abs(M - M.astype(float)).max() > 1e-20 * np.abs(M).max()
    assert off(ld.crba(robot, x["q"]), M.astype(float)) < ALGORITHMS["crba"]
