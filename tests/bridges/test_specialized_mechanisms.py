"""Programs of closed mechanisms beside the general kernels: the same numbers, or the same errors, at any state."""
import numpy as np
import pytest
from c_programs import moving_states
from processes import process, with_kernels
from test_generate_c import ball, floating, geared
from tree_cases import bundled

import liedyn as ld
from liedyn.machine.program.evaluate import guards_hold

ROBOTS = {
    "five_bar": (lambda: bundled("five_bar"), 1.5), "four_bar": (lambda: bundled("four_bar"), 1.5),
    "loader": (lambda: bundled("loader"), 0.5), "bricard": (lambda: bundled("bricard"), 0.5),
    "rolling_disk": (lambda: bundled("rolling_disk"), 0.5), "shopping_cart": (lambda: bundled("shopping_cart"), 0.5),
    "geared": (lambda: geared().build(), 0.7), "ball": (lambda: ball().build(), 0.5),
}
RESULTS = ("A", "B", "f0", "K")


@pytest.fixture(scope="module", params=ROBOTS)
def specialized(request):
    build, spread = ROBOTS[request.param]
    robot = build()
    return robot, ld.specialize(robot), spread


def linearized(fast, q, v, tau):
    """`ld.linearize` in the coordinates of the programs."""
    y, w = fast._programs.choices()
    speeds = None if y is w else w
    return ld.linearize(fast.robot, q, v, tau, independent=y, speeds=speeds)


def off(found, expected):
    """Largest difference of each row, relative to its largest number."""
    found, expected = (np.reshape(x, (len(expected), -1)) for x in (found, expected))
    return np.abs(found - expected).max(1) / np.maximum(1.0, np.abs(expected).max(1))


def test_batches(specialized):
    robot, fast, spread = specialized
    q, v, tau = moving_states(robot, 300, spread)
    expected = linearized(fast, q, v, tau)
    out = tuple(np.empty_like(getattr(expected, x)) for x in RESULTS)
    found = fast.linearize(q, v, tau, results=RESULTS, out=out)
    assert all(x is y for x, y in zip(found, out))
    for name, x in zip(RESULTS, found):
        assert off(x, getattr(expected, name)).max() < 1e-10, name
    expected, (a, lam) = ld.forward_dynamics(robot, q, v, tau), fast.forward_dynamics(q, v, tau)
    assert off(a, expected.a).max() < 1e-10 and off(lam, expected.lam).max() < 1e-9


def test_guards_hold_nearly_everywhere(specialized):
    """The general kernels are needed at fewer than one state in a hundred, near home at none."""
    robot, fast, spread = specialized
    q, v, tau = moving_states(robot, 300, spread, seed=5)
    for name, results in (("linearize", ("A", "B", "f0")), ("forward_dynamics", None)):
        held = np.zeros(len(q), bool)
        for trace in fast._programs.traces(name, results):
            held |= guards_hold(trace.program, {"q": q, "v": v, "tau": tau})
        assert held.mean() > 0.99


def test_one_state(specialized):
    robot, fast, spread = specialized
    q, v, tau = (x[0] for x in moving_states(robot, 1, spread, seed=2))
    A, B, f0 = fast.linearize(q, v, tau)
    expected = linearized(fast, q, v, tau)
    for x, y in zip((A, B, f0), (expected.A, expected.B, expected.f0)):
        assert x.shape == y.shape and off(x[None], y[None]).max() < 1e-10
    (B,) = fast.linearize(q.tolist(), v, tau, results=("B",))
    assert off(B[None], expected.B[None]).max() < 1e-10


def outcome(function, *arguments):
    """The results of a call, or the type of its error."""
    try:
        with np.errstate(all="ignore"):
            return function(*arguments)
    except ld.LiedynError as error:
        return type(error)


def attacks(robot, spread):
    """States off the loops, more and less; with velocities that open them; at home, which may be singular; next to it;
    of rows that are not finite."""
    rng = np.random.default_rng(3)
    q, v, tau = moving_states(robot, 12, spread, seed=3)
    for size in (1e-13, 1e-10, 1e-8, 3e-8, 1e-5, 1e-3, 0.3):
        yield ld.integrate(robot, q, size * rng.normal(size=v.shape)), v, tau
        yield q, v + size * rng.normal(size=v.shape), tau
    home = np.repeat(robot.home[None], 6, axis=0)
    for size in (0.0, 1e-12, 1e-9, 1e-6, 1e-3):
        near = ld.integrate(robot, home, size * rng.normal(size=(6, robot.nv)))
        yield near, np.zeros((6, robot.nv)), tau[:6]
    for bad in (np.nan, np.inf, 1e60):
        wrong = tau.copy()
        wrong[:, -1] = bad
        yield q, v, wrong
        wrong = q.copy()
        wrong[:, 0] = bad
        yield wrong, v, tau


def test_attacked(specialized):
    """Every result is that of the general kernel, or both raise the same error."""
    robot, fast, spread = specialized
    compared = refused = 0
    for rows in attacks(robot, spread):
        for state in zip(*rows):
            expected, found = outcome(linearized, fast, *state), outcome(fast.linearize, *state)
            if isinstance(expected, type):
                assert found is expected
                refused += 1
            else:
                limit = max(1e-10, 1e-15 * expected.condition ** 2)
                assert off(found[0][None], expected.A[None]).max() < limit
                compared += 1
    assert compared > 50 and (refused > 50 or not robot.row_names)


def test_an_error_names_the_state():
    robot = bundled("five_bar")
    fast = ld.specialize(robot)
    q, v, tau = moving_states(robot, 20, 0.5)
    q[7, 0] += 0.1
    with pytest.raises(ld.ClosureError, match="state 7"):
        fast.linearize(q, v, tau)
    v[3, 0] = np.nan
    with pytest.raises(ld.InputError, match=r"^v is not finite"):
        fast.forward_dynamics(q, v, tau)


def test_given_references():
    robot = bundled("five_bar")
    q, v, tau = moving_states(robot, 50, 1.5)
    fast = ld.specialize(robot, at=q[:3])
    assert len(fast._programs.traces("linearize", ("A",))) == 3
    assert off(fast.linearize(q, v, tau)[0], linearized(fast, q, v, tau).A).max() < 1e-10
    with pytest.raises(ld.SingularConfigurationError, match="is singular"):
        ld.specialize(floating().build(), at=floating().build().home)


def test_refused():
    fast = ld.specialize(bundled("squeezer"))
    with pytest.raises(ld.InputError, match="'squeezer' has force elements"):
        fast.linearize(*[[0.0] * 7] * 3)
    fast = ld.specialize(bundled("five_bar"))
    for results in ((), ("A", "A"), ("C",)):
        with pytest.raises(ld.InputError, match="results must be of A, B, f0 and K"):
            fast.linearize(*[[0.0] * 4] * 3, results=results)
    with pytest.raises(ld.InputError, match="out must be a tuple of 3 arrays"):
        fast.linearize(*[bundled("five_bar").home] * 3, out=[np.empty(1)])


def test_large_trees():
    """Beyond the size for which recursions are written in registers of columns, up to a longest program."""
    robot = bundled("solo12")
    fast, rng = ld.specialize(robot), np.random.default_rng(2)
    q, (v, a) = ld.random_configuration(robot, rng, 40), rng.normal(size=(2, 40, robot.nv))
    assert off(fast.rnea(q, v, a), ld.rnea(robot, q, v, a)).max() < 1e-12
    with pytest.raises(ld.InputError, match="a program of [0-9]* operations, more than"):
        ld.specialize(bundled("talos")).aba_derivatives(*[np.zeros(38)] * 3)


SECOND = """
import liedyn as ld
fast = ld.specialize(ld.load("four_bar"))
A, _, _ = fast.linearize(fast.robot.home, [0.0] * 3, [0.0] * 3)
print(repr(A.tolist()), fast._programs.module("linearize", ("A", "B", "f0")).__file__)
"""


def test_kept_for_other_processes(tmp_path):
    environment = with_kernels(cache=tmp_path)
    first = process(SECOND, **environment).stdout
    files = sorted(tmp_path.rglob("*.nb?"))
    assert process(SECOND, **environment).stdout == first
    assert sorted(tmp_path.rglob("*.nb?")) == files
