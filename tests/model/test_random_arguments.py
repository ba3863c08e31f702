"""Property test: whatever comes as an array gives a finite result, or an error that names the argument."""
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import liedyn as ld

BAR, BALL = ld.load("five_bar"), ld.load("solo12")
FUNCTIONS = {
    "rnea": (ld.rnea, ("q", "v", "a")), "aba": (ld.aba, ("q", "v", "tau")), "crba": (ld.crba, ("q",)),
    "forward_kinematics": (ld.forward_kinematics, ("q",)), "kinetic_energy": (ld.kinetic_energy, ("q", "v")),
    "integrate": (ld.integrate, ("q", "dv")), "difference": (ld.difference, ("q0", "q1")),
    "closure_error": (ld.closure_error, ("q",)), "velocity_error": (ld.velocity_error, ("q", "v")),
    "forward_dynamics": (ld.forward_dynamics, ("q", "v", "tau")),
}
KINDS = ["f2", "f4", "f8", ">f8", "g", "i1", "i4", "i8", "u2", "c8", "c16", "?", "U4", "S4", "M8[s]", "m8[ms]", "O"]
VALUES = st.one_of(st.floats(-3.0, 3.0), st.integers(-3, 3), st.sampled_from([np.nan, np.inf, 0.0, 1.0]))
SCALARS = st.one_of(VALUES, st.text(max_size=3), st.none(), st.booleans(), st.complex_numbers(max_magnitude=2.0))
RAGGED = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=5), max_leaves=20)
FORMS = {
    "array": lambda x: x, "list": np.ndarray.tolist, "masked": lambda x: np.ma.array(x, mask=np.ones(x.shape, bool)),
    "reversed": lambda x: x[..., ::-1], "fortran": np.asfortranarray, "one more": lambda x: [*x.tolist(), [1.0]],
}


def made(kind, shape, values, form):
    """An array of some kind and shape, as somebody might pass it."""
    x = np.resize(np.array(values, dtype=float), shape)
    if kind[0] in "iu?Mm":
        x = np.nan_to_num(x, posinf=2.0).astype(np.int64)
    x = x.astype(kind)
    return FORMS[form](x) if x.ndim else x


def arrays(size):
    shapes = st.sampled_from([(size,)] * 4 + [(2, size), (3, 1, size), (0, size), (), (size, 2), (size - 1,), (1,)])
    values = st.one_of(st.lists(VALUES, min_size=1, max_size=5), st.lists(st.floats(-3.0, 3.0), min_size=1, max_size=5))
    forms = st.sampled_from([*FORMS])
    return st.one_of(st.none(), st.builds(made, st.sampled_from(KINDS), shapes, values, forms), RAGGED)


@pytest.mark.parametrize("name", FUNCTIONS)
@settings(max_examples=40, deadline=None, derandomize=True)
@given(data=st.data())
def test_any_array(name, data):
    robot = (BAR, BALL)[data.draw(st.integers(0, 1), "robot")]
    function, names = FUNCTIONS[name]
    arguments = {}
    for argument in names:
        usual = robot.home if argument.startswith("q") else np.zeros(robot.nv)
        drawn = data.draw(arrays(usual.size), argument)
        arguments[argument] = usual if drawn is None else drawn
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = function(robot, **arguments)
    except ld.InputError as error:
        assert any(f"{argument} " in str(error) or f"{argument}[" in str(error) for argument in names) or (
            "quaternion" in str(error) or "leading axes" in str(error) or "at least one state" in str(error))
        return
    except ld.SingularConfigurationError:
        return
    result = result.a if name == "forward_dynamics" else result
    assert np.isfinite(result).all()
    for x in arguments.values():  # what has been taken was numbers
        assert not np.ma.is_masked(x) and np.asarray(x).dtype.kind in "fiuO"
