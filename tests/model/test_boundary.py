"""The way from Python into the kernels: any array in, results where they are wanted, nothing compiled twice."""

import gc
import pickle
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
from test_energy import springy_tree

import liedyn as ld
from liedyn.machine.compiled import jit, objects
from liedyn.machine.errors import InputError
from liedyn.model.calls.recursion import RECURSIONS
from liedyn.model.packed import PackedModel

FUNCTIONS = [declared.function for declared in RECURSIONS.values()]
ARGUMENTS = {each.function: [name for name in each.inputs if name != "f_ext"] for each in RECURSIONS.values()}
CONFIGURATIONS = ("q", "q0", "q1")
each = pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)


@pytest.fixture(scope="module")
def tree():
    return springy_tree(1)


def good(robot, function, lead=(), seed=1):
    """Arguments that are as they should be, by name."""
    rng = np.random.default_rng(seed)
    made = {}
    for name in ARGUMENTS[function]:
        made[name] = robot.body_names[2] if name == "body" else (
            ld.random_configuration(robot, rng, lead) if name in CONFIGURATIONS else rng.normal(size=(*lead, robot.nv)))
    return made


def several(result):
    """A result as a tuple of arrays."""
    return result if isinstance(result, tuple) else (result,)


def equal(a, b, **tolerance):
    assert len(several(a)) == len(several(b))
    for x, y in zip(several(a), several(b)):
        np.testing.assert_allclose(x, y, **({"rtol": 1e-13, "atol": 1e-12} | tolerance))


def room(result):
    """Arrays for results of the same shapes, none of them right yet."""
    made = tuple(np.full(np.shape(x), np.nan) for x in several(result))
    return made if isinstance(result, tuple) else made[0]


# ---- out


@each
@pytest.mark.parametrize("lead", [(), (1,), (19,), (2, 3), (0,)], ids=repr)
def test_results_go_where_they_are_wanted(tree, function, lead):
    args = good(tree, function, lead)
    expected = function(tree, **args)
    out = room(expected)
    assert function(tree, **args, out=out) is out or isinstance(out, tuple)
    equal(out, expected, rtol=0, atol=0)
    for given, returned in zip(several(out), several(function(tree, **args, out=out))):
        assert returned is given


@pytest.mark.parametrize("function", [ld.rnea_derivatives, ld.aba_derivatives], ids=lambda f: f.__name__)
@pytest.mark.parametrize("lead", [(), (9,)], ids=repr)
def test_three_results_in_a_list(tree, function, lead):
    args = good(tree, function, lead)
    expected = function(tree, **args)
    out = list(room(expected))
    returned = function(tree, **args, out=out)
    assert isinstance(returned, tuple) and all(x is y for x, y in zip(returned, out))
    equal(tuple(out), expected, rtol=0, atol=0)


def unaligned(shape):
    size = int(np.prod(shape))
    return np.zeros(8 * size + 1, dtype=np.int8)[1:].view(np.float64).reshape(shape)


def read_only(shape):
    x = np.zeros(shape)
    x.flags.writeable = False
    return x


BAD_OUT = {
    "float32": lambda s: np.zeros(s, dtype=np.float32),
    "integers": lambda s: np.zeros(s, dtype=np.int64),
    "complex": lambda s: np.zeros(s, dtype=complex),
    "swapped": lambda s: np.zeros(s, dtype=np.dtype(float).newbyteorder()),
    "read-only": read_only,
    "unaligned": unaligned,
    "strided": lambda s: np.zeros((*s, 2))[..., 0],
    "larger": lambda s: np.zeros((*s[:-1], s[-1] + 1)),
    "smaller": lambda s: np.zeros((*s[:-1], s[-1] - 1)),
    "axes": lambda s: np.zeros((1, *s)),
    "list": lambda s: np.zeros(s).tolist(),
    "number": lambda s: 1.0,
    "type": lambda s: np.ndarray,
}


@each
@pytest.mark.parametrize("bad", BAD_OUT)
@pytest.mark.parametrize("lead", [(), (3,)], ids=repr)
def test_bad_out(tree, function, bad, lead):
    args = good(tree, function, lead)
    expected = function(tree, **args)
    shape = np.shape(several(expected)[0])
    if not shape:
        return
    wrong = BAD_OUT[bad](shape)
    before = np.copy(wrong) if isinstance(wrong, np.ndarray) else None
    with pytest.raises(InputError, match=r"out.* must be "):
        function(tree, **args, out=wrong)
    if isinstance(expected, tuple):
        rest = room(expected)[1:]
        for out in ((wrong, *rest), (*rest, wrong), rest, (*rest, rest[0], wrong), ()):
            with pytest.raises(InputError, match=r"out.* must be "):
                function(tree, **args, out=out)
    if before is not None:
        np.testing.assert_array_equal(wrong, before)


def test_energies_into_arrays_of_no_axis(tree):
    for function in (ld.kinetic_energy, ld.potential_energy):
        args = good(tree, function)
        assert type(function(tree, **args)) is float
        for out in (np.float64(1.0), np.zeros(1), 1.0):
            with pytest.raises(InputError, match="out must be"):
                function(tree, **args, out=out)


@pytest.mark.parametrize("function", [ld.rnea_derivatives, ld.aba_derivatives], ids=lambda f: f.__name__)
@pytest.mark.parametrize("lead", [(), (3,)], ids=repr)
def test_results_on_top_of_each_other(tree, function, lead):
    args = good(tree, function, lead)
    n = tree.nv * tree.nv * max(1, *lead, 1)
    shape, whole = np.shape(function(tree, **args)[0]), np.zeros(4 * n)
    x, y, z = (whole[k * n:(k + 1) * n].reshape(shape) for k in range(3))
    near = whole[1:n + 1].reshape(shape)
    for out in ((x, x, y), (x, y, x), (y, x, x), (x, y, near), (x, near, z)):
        with pytest.raises(InputError, match="overlaps another array of out"):
            function(tree, **args, out=out)
    equal(function(tree, **args, out=(x, y, z)), function(tree, **args), rtol=0, atol=0)


@pytest.mark.parametrize("lead", [(), (19,)], ids=repr)
@pytest.mark.parametrize("shift", [0, 1, -1])
@pytest.mark.parametrize("function", [ld.rnea, ld.aba, ld.integrate, ld.difference], ids=lambda f: f.__name__)
def test_out_may_overlap_an_input(tree, function, lead, shift):
    args = good(tree, function, lead)
    expected = function(tree, **args)
    for name, x in args.items():
        whole = np.zeros(expected.size + x.size + 2)
        moved = whole[1:1 + x.size].reshape(x.shape)
        moved[...] = x
        out = whole[1 + shift:1 + shift + expected.size].reshape(expected.shape)
        assert function(tree, **args | {name: moved}, out=out) is out
        equal(out, expected, rtol=0, atol=0)


# ---- arrays of every kind


class Own(np.ndarray):
    pass


def swapped(x):
    return x.astype(x.dtype.newbyteorder())


def strided(x):
    return np.repeat(x, 2, axis=-1)[..., ::2]


def frozen(x):
    x = x.copy()
    x.flags.writeable = False
    return x


def off_by_a_byte(x):
    y = unaligned(x.shape)
    y[...] = x
    return y


KINDS = {
    "list": np.ndarray.tolist, "tuple": lambda x: tuple(x.tolist()), "fortran": np.asfortranarray, "strided": strided,
    "read-only": frozen, "subclass": lambda x: x.view(Own), "swapped": swapped, "unaligned": off_by_a_byte,
    "reversed": lambda x: x[..., ::-1].copy()[..., ::-1], "longdouble": lambda x: x.astype(np.longdouble),
    "object": lambda x: x.astype(object), "float32": lambda x: x.astype(np.float32),
    "masked": np.ma.masked_array, "own descriptor": lambda x: x.view(np.dtype(np.float64, metadata={"unit": "rad"})),
    "unpickled": lambda x: pickle.loads(pickle.dumps(x)), "memory": lambda x: memoryview(x),
}


def compilations():
    """Every signature that has been compiled so far."""
    return {(kernel.py_func.__name__, signature) for kernel in jit.KERNELS for signature in kernel.overloads}


@each
def test_nothing_is_compiled_twice(tree, function):
    """Not for any kind of array, however unusual; and the result is the same."""
    plain = {lead: good(tree, function, lead) for lead in ((), (3,))}
    wanted = {lead: function(tree, **args) for lead, args in plain.items()}
    before = compilations()
    for lead, args in plain.items():
        for kind, change in KINDS.items():
            changed = {name: x if name == "body" else change(x) for name, x in args.items()}
            accuracy = {"rtol": 1e-3, "atol": 1e-3} if kind == "float32" else {}
            equal(function(tree, **changed), wanted[lead], **accuracy)
            function(tree, **changed, out=room(wanted[lead]))
        for name in set(args) - {"body"}:
            for bad in (1.0, np.float64(1.0), np.array(1.0), 1, True, None, "q", np.zeros(0), object(), np.ndarray, {}):
                with pytest.raises(InputError):
                    function(tree, **args | {name: bad})
    assert compilations() == before


@each
def test_mixed_leading_axes(tree, function):
    args = good(tree, function, (3,))
    for name in set(args) - {"body"}:
        one = args | {name: args[name][1]}
        same = args | {name: np.broadcast_to(args[name][1], args[name].shape)}
        if len(args) - ("body" in args) > 1:
            equal(function(tree, **one), function(tree, **same))


# ---- robots


def test_copies_of_a_robot():
    five_bar = ld.load("five_bar")
    q, v = five_bar.home, np.ones(five_bar.nv)
    wanted = ld.rnea(five_bar, q, v, v)
    for robot in (five_bar.at(0.5), five_bar.switched(pin=False), pickle.loads(pickle.dumps(five_bar))):
        np.testing.assert_array_equal(ld.rnea(robot, q, v, v), wanted)
        assert robot.body_index(robot.body_names[-1]) == len(robot.body_names) - 1


class Pretender:
    """Something else than a robot, with the same attributes."""

    def __init__(self, robot, **other):
        self.robot, self.other = robot, other

    def __getattr__(self, name):
        return self.__dict__["other"].get(name, getattr(self.__dict__["robot"], name))


@pytest.mark.parametrize("model", [
    None, 5, (np.zeros(3, np.int64), np.zeros(3)),
    *(PackedModel(*each) for each in [(None, None), ([1, 2], [1.0]), (np.zeros(3, np.int32), None), (5, "a"),
                                      (None, np.zeros((3, 3)))]),
], ids=repr)
def test_a_model_of_the_wrong_kind_is_never_read(tree, model):
    args = good(tree, ld.rnea)
    other = Pretender(tree, packed=model)
    assert sys.modules["liedyn.mechanics.tree.rnea"].rnea_direct(other.packed, *args.values(), None) is None


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("body", ["limb", ["post"], 3, None, {}], ids=repr)
def test_a_body_that_is_none(tree, body):
    with pytest.raises(InputError, match="unknown body"):
        ld.body_jacobian(tree, tree.neutral, body)
    with pytest.raises(InputError, match="unknown body"):
        ld.pose(tree, tree.neutral, body)


@pytest.mark.parametrize("count", [0, 1, 4, 6, 11])
def test_a_builtin_function_counts_its_arguments(tree, count):
    ld.rnea(tree, tree.neutral, np.zeros(tree.nv), np.zeros(tree.nv))
    with pytest.raises(TypeError, match="number of arguments"):
        sys.modules["liedyn.mechanics.tree.rnea"].rnea_direct(*(tree.packed.floats,) * count)


def test_no_degrees_of_freedom():
    b = ld.Builder("post")
    b.body("post", 1.0)
    b.joint("bolt", "fixed", "ground", "post")
    post, none = b.build(), np.empty(0)
    assert ld.rnea(post, none, none, none).shape == ld.aba(post, none, none, none).shape == (0,)
    assert ld.crba(post, none).shape == (0, 0) and ld.body_jacobian(post, none, "post").shape == (6, 0)
    assert ld.kinetic_energy(post, none, none) == 0.0
    assert ld.rnea(post, none, none, none, out=none) is none


def test_a_workspace_too_large_for_the_stack():
    """Bodies of a long chain: the general way serves it."""
    b = ld.Builder("chain")
    for k in range(objects.STACK // 48 + 2):
        b.body(f"link{k}", 1.0, inertia=np.eye(3))
        b.joint(f"joint{k}", "revolute", f"link{k - 1}" if k else "ground", f"link{k}")
    chain = b.build()
    rng = np.random.default_rng(1)
    q, v = rng.normal(size=(2, chain.nv))
    a = ld.aba(chain, q, v, 0 * v)
    np.testing.assert_allclose(ld.crba(chain, q) @ a + ld.rnea(chain, q, v, 0 * v), 0.0, atol=1e-6)
    assert sys.modules["liedyn.mechanics.tree.crba"].crba_direct(chain.packed, q, None) is None


# ---- memory


@each
def test_results_own_themselves_and_references_balance(tree, function):
    args = good(tree, function)
    plain = {name: x if name == "body" else x.tolist() for name, x in args.items()}
    bad = args | {ARGUMENTS[function][0]: np.zeros(3)}
    out = room(function(tree, **args))
    kept = [*args.values(), *several(out), out, None, np.ndarray, tree.packed.ints, tree.packed.floats]
    made = several(function(tree, **args))
    assert [sys.getrefcount(x) for x in made] == [sys.getrefcount(x) for x in [1e-9 * x for x in made]]
    assert all(isinstance(x, float) or x.flags.owndata for x in made)

    def use():
        for _ in range(50):
            function(tree, **args)
            function(tree, **args, out=out)
            function(tree, **plain)
            with pytest.raises(InputError):
                function(tree, **bad)

    use()
    gc.collect()
    before = [sys.getrefcount(x) for x in kept]
    use()
    gc.collect()
    after = [sys.getrefcount(x) for x in kept]
    assert max(abs(x - y) for x, y in zip(before, after)) < 40  # of None, others hold and let go a few


@each
def test_no_memory_is_lost(tree, function):
    args = good(tree, function)
    out = room(function(tree, **args))
    tracemalloc.start()
    try:
        for k in range(2000):
            function(tree, **args)
            function(tree, **args, out=out)
            if k == 100:
                start = tracemalloc.get_traced_memory()[0]
        # an object lost at every call has 32 bytes or more, 60 kB in all; threads of the test runner allocate meanwhile
        assert tracemalloc.get_traced_memory()[0] - start < 40_000
    finally:
        tracemalloc.stop()


UNKNOWN = """
import liedyn.model.calls.direct
liedyn.model.calls.direct.layout_is_known = lambda: {known}
import liedyn as ld
import numpy as np
robot = ld.load("solo12")
q, v = robot.neutral, np.linspace(-1.0, 1.0, robot.nv)
results = ld.rnea(robot, q, v, v), ld.crba(robot, q), ld.aba_derivatives(robot, q, v, v)[0]
print(*(float(np.sum(np.cos(x))) for x in results))
"""


def test_an_interpreter_whose_arrays_look_different():
    """Every call goes the general way, and gives the same."""
    values = []
    for known in (True, False):
        code = UNKNOWN.format(known=known)
        result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert result.returncode == 0, result.stderr
        values.append(np.array(result.stdout.split(), dtype=float))
    np.testing.assert_allclose(*values, rtol=1e-12)


def test_the_layout_is_verified(monkeypatch):
    assert objects.layout_is_known()
    for name, wrong in (("DATA", 24), ("NDIM", 28), ("DIMENSIONS", 40), ("FLAGS", 24), ("TYPE_NUMBER", 24),
                        ("BYTE_ORDER", 24), ("DESCR", 48), ("TYPE", 0)):
        with monkeypatch.context() as patch:
            patch.setattr(objects, name, wrong)
            assert not objects.layout_is_known(), name
