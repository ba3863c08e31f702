"""Every public function of the tree turns bad input into an error that names it."""

import inspect
import re

import numpy as np
import pytest
from test_energy import springy_tree

from liedyn.machine.errors import InputError
from liedyn.machine.simd.registers import LARGEST
from liedyn.mechanics.tree.aba import aba
from liedyn.mechanics.tree.aba_derivatives import aba_derivatives
from liedyn.mechanics.tree.configuration import random_configuration
from liedyn.mechanics.tree.crba import crba
from liedyn.mechanics.tree.forward_kinematics import forward_kinematics, pose
from liedyn.mechanics.tree.jacobians import body_jacobian, body_jacobian_ddot, body_jacobian_dot, body_jacobian_dq
from liedyn.mechanics.tree.rnea import rnea
from liedyn.mechanics.tree.rnea_derivatives import rnea_derivatives
from liedyn.mechanics.tree.world_axes import world_acceleration, world_jacobian, world_jacobian_dot
from liedyn.model import Builder

FUNCTIONS = [
    aba, aba_derivatives, body_jacobian, body_jacobian_ddot, body_jacobian_dot, body_jacobian_dq, crba,
    forward_kinematics, pose, rnea, rnea_derivatives, world_acceleration, world_jacobian, world_jacobian_dot,
]
ARGUMENTS = {f: [name for name in inspect.signature(f).parameters if name not in ("robot", "f_ext", "out")]
             for f in FUNCTIONS}
VECTORS = [(f, name) for f in FUNCTIONS for name in ARGUMENTS[f] if name != "body"]
PUSHED = [f for f in FUNCTIONS if "f_ext" in inspect.signature(f).parameters]
vectors = pytest.mark.parametrize("function, name", VECTORS, ids=[f"{f.__name__}-{name}" for f, name in VECTORS])
pushed = pytest.mark.parametrize("function", PUSHED, ids=lambda f: f.__name__)


@pytest.fixture(scope="module")
def tree():
    return springy_tree(1)


def good(robot, function, lead=()):
    """Arguments that are as they should be, by name."""
    rng = np.random.default_rng(1)
    everything = {name: rng.normal(size=(*lead, robot.nv)) for name in ("v", "a", "tau")}
    everything |= {"q": random_configuration(robot, rng, lead), "body": robot.body_names[2]}
    return {name: everything[name] for name in ARGUMENTS[function]}


@vectors
@pytest.mark.parametrize("bad, why", [
    (np.nan, "not finite"), (np.inf, "not finite"), (-np.inf, "not finite"), (1.1 * LARGEST, "too large"),
    (-1e200, "too large"),
])
def test_not_usable(tree, function, name, bad, why):
    for lead, where in (((), (1,)), ((19,), (17, 1)), ((2, 3), (1, 2, 1))):
        args = good(tree, function, lead)
        args[name][where] = bad
        with pytest.raises(InputError, match=rf"^{name} is {why}.*: {name}\[1\] = {re.escape(str(bad))}"):
            function(tree, **args)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_the_largest_numbers_do_not_overflow(tree, function):
    """Quaternions are of length one; all else is as large as it may be."""
    for lead in ((), (19,)):
        args = good(tree, function, lead)
        args["q"][..., np.isin(tree.coordinate_names, tree.velocity_names)] = LARGEST
        for name in ("v", "a", "tau"):
            if name in args:
                args[name] = np.copysign(LARGEST, args[name])
        results = function(tree, **args)
        assert all(np.isfinite(x).all() for x in (results if isinstance(results, tuple) else (results,)))


@vectors
def test_wrong_size(tree, function, name):
    args = good(tree, function)
    size = len(args[name])
    for bad in (np.append(args[name], 0.0), args[name][:-1], np.empty(0), 1.0, np.ones((size, 1))):
        with pytest.raises(InputError, match=rf"^{name} must have shape \(\.\.\., {size}\)"):
            function(tree, **args | {name: bad})


@vectors
@pytest.mark.parametrize("bad", ["text", [[1.0], [1.0, 2.0]], None, {"a": 1}, 1j], ids=repr)
def test_not_numbers(tree, function, name, bad):
    with pytest.raises(InputError, match=f"^{name} must "):
        function(tree, **good(tree, function) | {name: bad})


@vectors
def test_leading_axes_that_do_not_fit(tree, function, name):
    args = good(tree, function, (3,))
    if len(args) - ("body" in args) > 1:
        args[name] = args[name][:2]
        with pytest.raises(InputError, match="do not broadcast"):
            function(tree, **args)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("factor, said", [
    (0.0, "0,"), (0.999, "0.999,"), (1.001, "1.001,"), (-2.0, "2,"), (1.0 + 6e-7, r"1 \+ 6e-07,"),
    (1.0 - 6e-7, "0.999999,"),
])
def test_quaternion_of_another_length(tree, function, factor, said):
    start = next(k for k, name in enumerate(tree.coordinate_names) if name.endswith(".qx"))
    joint = tree.coordinate_names[start].removesuffix(".qx")
    for lead, row in (((), ...), ((11,), 10)):
        args = good(tree, function, lead)
        args["q"][row][start:start + 4] *= factor
        with pytest.raises(InputError, match=f"joint {joint!r} has length {said} not 1"):
            function(tree, **args)


@pytest.mark.parametrize("function", [f for f in FUNCTIONS if "body" in ARGUMENTS[f]], ids=lambda f: f.__name__)
@pytest.mark.parametrize("bad", ["bodi2", "ground", "", 2, None, ["body2"]], ids=repr)
def test_unknown_body(tree, function, bad):
    with pytest.raises(InputError, match="unknown body"):
        function(tree, **good(tree, function) | {"body": bad})


@pushed
@pytest.mark.parametrize("bad, message", [
    ({"bodi2": np.zeros(6)}, "unknown body 'bodi2'.*body2"),
    ({"body2": np.zeros(5)}, r"f_ext\['body2'\] must have shape \(\.\.\., 6\), got \(5,\)"),
    ({"body2": "push"}, r"f_ext\['body2'\] must be numbers"),
    ({"body2": [0, 0, np.nan, 0, 0, 0]}, r"f_ext\['body2'\] is not finite"),
    ({"body2": np.zeros((4, 6))}, r"f_ext\['body2'\] \(4, 6\) does not broadcast"),
    (np.zeros(6), r"f_ext must have shape \(\.\.\., 9, 6\), got \(6,\)"),
    (np.zeros((8, 6)), r"f_ext must have shape \(\.\.\., 9, 6\)"),
    (np.full((9, 6), np.inf), "is not finite"),
    (np.zeros((4, 9, 6)), r"f_ext\['body0'\] \(4, 6\) does not broadcast"),
    ("push", "f_ext must be numbers"),
], ids=["name", "size", "text", "nan", "axes", "one", "bodies", "inf", "array axes", "array text"])
def test_bad_wrenches(tree, function, bad, message):
    with pytest.raises(InputError, match=message):
        function(tree, **good(tree, function), f_ext=bad)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_arguments_are_left_alone(tree, function):
    for lead in ((), (9,)):
        args = good(tree, function, lead)
        before = {name: np.copy(x) for name, x in args.items()}
        function(tree, **args)
        assert all(np.array_equal(x, before[name]) for name, x in args.items())


@pushed
def test_bad_wrench_on_a_body_that_cannot_move(function):
    b = Builder("post")
    b.body("post", 1.0)
    b.joint("bolt", "fixed", "ground", "post")
    post = b.build()
    with pytest.raises(InputError, match="'post'"):
        function(post, *np.empty((3, 0)), f_ext={"post": np.full(6, np.nan)})
