"""Programs of closed mechanisms beside the general kernels: the same numbers, or the same errors, at any state."""
import numpy as np
import pytest
from attacks import Vouching, along, attack, faults, off, outcome, same_outcomes, states
from c_programs import moving_states
from numba import njit
from processes import ROOT, process, with_kernels
from sprung_robots import of_users_law, sprung
from test_generate_c import ball, floating, geared
from tree_cases import bundled

import liedyn as ld
from liedyn.bridges.specialization import mechanism_programs, program_module
from liedyn.bridges.specialization.references import closed_rows
from liedyn.kernels import SCALAR
from liedyn.machine.program import llvm_lines
from liedyn.machine.program.evaluate import guards_hold
from liedyn.mechanics.dynamics.digits import ENOUGH
from liedyn.mechanics.dynamics.singular import ACCELERATIONS, LINEARIZATION, SUSPECT

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
    """The general kernels are needed at fewer than one in a thousand of the random states that have results."""
    robot, fast, _ = specialized
    rng = np.random.default_rng(5)
    spread = rng.uniform(0.0, 1.5, size=(4000, 1))
    q = closed_rows(robot, ld.integrate(robot, np.repeat(robot.home[None], 4000, axis=0),
                                        spread * rng.normal(size=(4000, robot.nv))))
    v, tau = along(robot, q, rng.normal(size=(len(q), robot.nv))), rng.normal(size=(len(q), robot.nv))
    for name, results in (("linearize", RESULTS), ("forward_dynamics", None)):
        held = np.zeros(len(q), bool)
        for trace in fast._programs.traces(name, results):
            held |= guards_hold(trace.program, {"q": q, "v": v, "tau": tau})
        left = np.flatnonzero(~held)
        assert len(left) < 0.05 * len(q)
        with_results = [b for b in left if not isinstance(
            outcome(fast._programs.general, name, results, q[b], v[b], tau[b]), type)]
        assert len(with_results) < 1e-3 * len(q), name


def test_one_state(specialized):
    robot, fast, spread = specialized
    q, v, tau = (x[0] for x in moving_states(robot, 1, spread, seed=2))
    A, B, f0 = fast.linearize(q, v, tau)
    expected = linearized(fast, q, v, tau)
    for x, y in zip((A, B, f0), (expected.A, expected.B, expected.f0)):
        assert x.shape == y.shape and off(x[None], y[None]).max() < 1e-10
    (B,) = fast.linearize(q.tolist(), v, tau, results=("B",))
    assert off(B[None], expected.B[None]).max() < 1e-10


def test_attacked(specialized):
    """Every result for which a program vouches is that of the general kernel (`attacks.py` has more states)."""
    robot, fast, _ = specialized
    for name, wrong, vouched, _ in attack(robot, None, 600, 3):
        assert not wrong, name
        assert vouched > 300
    assert not same_outcomes(robot, None, 15, 4)


def test_axes_in_one_plane():
    """There some motion has no inertia: no program vouches for numbers without digits."""
    robot = bundled("whipple_bicycle")
    rows = states(robot, robot.home, np.random.default_rng(0), 2000)
    wrong, vouched, _ = faults(Vouching(robot, None), "forward_dynamics", None, rows)
    assert not wrong and vouched > 1500


OUTPUTS = {
    "loader": ("bucket", "velocity:boom", "acceleration:boom", "pose:bucket", "twist_rate:bucket", "wrench:tilt_pin"),
    "arm_on_slider": None, "cartesian_pendulum": None,
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_outputs(name):
    """C and D of named outputs, of the robot's own, and of the coordinates themselves."""
    robot = bundled(name)
    fast, (q, v, tau) = ld.specialize(robot), moving_states(robot, 30, 0.3)
    y, w = fast._programs.choices()
    expected = ld.linearize(robot, q, v, tau, independent=y, outputs=OUTPUTS[name], speeds=None if y is w else w)
    C, D, A = fast.linearize(q, v, tau, results=("C", "D", "A"), outputs=OUTPUTS[name])
    assert C.shape == expected.C.shape and D.shape == expected.D.shape
    for x, other in ((C, expected.C), (D, expected.D), (A, expected.A)):
        assert off(x, other).max() < 1e-10
    with pytest.raises(ld.InputError, match="unknown"):
        fast.linearize(q, v, tau, results=("C",), outputs=("nothing:here",))
    with pytest.raises(ld.InputError, match="specialize has no output 'wrench:"):
        fast.linearize(q, v, tau, results=("C",), outputs=(f"wrench:{robot.model.joints[0].name}",))


@pytest.mark.parametrize("kind", ["on_cylinder", "on_circle", "on_sphere"])
def test_points_on_round_surfaces(kind):
    """Distances from axes are roots of two squares."""
    builder = ld.Builder("bead", gravity=(0.5, -1.0, -9.81), home={"bead": [1.2, 1.6, 0.0]})
    builder.body("bead", 2.0, (0.0, 0.0, 0.0), (0.1, 0.1, 0.1))
    builder.joint("bead", "translational", "ground", "bead", damping=0.2)
    builder.constraint("wall", kind, "ground", "bead", radius=2.0)
    robot = builder.build()
    fast, (q, v, tau) = ld.specialize(robot, at=robot.home), moving_states(robot, 9, 0.2)
    found, expected = fast.linearize(q, v, tau), linearized(fast, q, v, tau)
    assert off(found[0], expected.A).max() < 1e-10 and off(found[2], expected.f0).max() < 1e-10
    for name, wrong, vouched, _ in attack(robot, robot.home, 200, 3):
        assert not wrong and vouched > 50, name


def test_own_compiled_code():
    """A loop of the user's over states, one of which is off the loops."""
    robot = bundled("five_bar")
    kernels, (q, v, tau) = ld.specialize(robot).kernels, moving_states(robot, 20, 1.0)
    q[3, 0] += 0.1
    accelerations, model = kernels.forward_dynamics, kernels.linearize

    @njit
    def run(q, v, tau, A, B, f0, a, lam, good):
        condition = np.empty(1)
        for k in range(len(q)):
            model(SCALAR, q[k], v[k], tau[k], A[k], B[k], f0[k], condition, good[k])
            accelerations(SCALAR, q[k], v[k], tau[k], a[k], lam[k], condition, good[k, 1:])

    a, lam, good = np.empty((20, 4)), np.empty((20, 5)), np.empty((20, 2))
    A, B, f0 = np.empty((20, 4, 4)), np.empty((20, 4, len(robot.actuator_names))), np.empty((20, 4))
    run(q, v, tau, A, B, f0, a, lam, good)
    closed = np.arange(20) != 3
    assert good[closed].all() and not good[3, 0]
    expected = ld.linearize(robot, q[closed], v[closed], tau[closed])
    assert off(A[closed], expected.A).max() < 1e-10 and off(f0[closed], expected.f0).max() < 1e-10
    assert off(a[closed], ld.forward_dynamics(robot, q[closed], v[closed], tau[closed]).a).max() < 1e-10
    assert off(kernels_of_tree(robot, q, v), ld.rnea(robot, q, v, v)).max() < 1e-12


def kernels_of_tree(robot, q, v):
    rnea, tau = ld.specialize(robot).kernels.rnea, np.empty_like(v)
    for k in range(len(q)):
        rnea(SCALAR, q[k], v[k], v[k], tau[k])
    return tau


def test_states_that_need_no_closer_look():
    """Below `QUIET` no condition number makes a state try another reference, or lose digits."""
    least = SUSPECT * 10.0 ** ((ENOUGH - mechanism_programs.OF_REDUNDANT) / (1 + min(ACCELERATIONS, LINEARIZATION)))
    assert program_module.QUIET < min(least, mechanism_programs.POOR)


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


def test_programs_in_parts(monkeypatch):
    """A program in many functions, which hand on numbers to each other, for one state and for registers of them."""
    monkeypatch.setattr(llvm_lines, "LONGEST", 30)
    monkeypatch.setattr(program_module, "source_stamp", lambda origin: None)  # nothing from the cache
    robot = bundled("five_bar")
    fast, (q, v, tau) = ld.specialize(robot, at=robot.home), moving_states(robot, 20, 0.3)
    (trace,) = fast._programs.traces("linearize", ("A", "B", "f0"))
    assert program_module.program_text(trace).count("\npart\n") > 40
    expected, found = linearized(fast, q, v, tau), fast.linearize(q, v, tau)
    run, condition, good = fast.kernels.linearize, np.empty(1), np.empty(1)
    for name, x in zip(("A", "B", "f0"), found):
        assert off(x, getattr(expected, name)).max() < 1e-10, name
    one = [np.empty_like(x[0]) for x in found]
    run(SCALAR, q[7], v[7], tau[7], *one, condition, good)
    assert good[0] == 1.0 and all(off(x[None], y[7:8]).max() < 1e-12 for x, y in zip(one, found))
    run(SCALAR, q[7] + 0.1, v[7], tau[7], *one, condition, good)
    assert good[0] == 0.0


def test_large_mechanism():
    """40,000 operations, with nine digits; and a state off the loops, which the general kernel refuses."""
    robot = bundled("cassie_like")
    fast, (q, v, tau) = ld.specialize(robot, at=ld.close(robot, robot.home)), moving_states(robot, 100, 0.2)
    expected, found = linearized(fast, q, v, tau), fast.linearize(q, v, tau)
    for name, x in zip(("A", "B", "f0"), found):
        assert off(x, getattr(expected, name)).max() < 1e-9, name
    q[5, 3] += 1e-3
    with pytest.raises(ld.ClosureError, match="state 5"):
        fast.linearize(q, v, tau)


def test_given_references():
    robot = bundled("five_bar")
    q, v, tau = moving_states(robot, 50, 1.5)
    fast = ld.specialize(robot, at=q[:3])
    assert len(fast._programs.traces("linearize", ("A",))) == 3
    assert off(fast.linearize(q, v, tau)[0], linearized(fast, q, v, tau).A).max() < 1e-10
    with pytest.raises(ld.SingularConfigurationError, match="is singular"):
        ld.specialize(floating().build(), at=floating().build().home)


def test_refused():
    with pytest.raises(ld.InputError, match=r"'five_bar' has functions of users \('law of own'\)"):
        ld.specialize(of_users_law()).linearize(*[[0.0] * 4] * 3)
    fast = ld.specialize(bundled("five_bar"))
    for results in ((), ("A", "A"), ("E",)):
        with pytest.raises(ld.InputError, match="results must be of A, B, C, D, f0 and K"):
            fast.linearize(*[[0.0] * 4] * 3, results=results)
    with pytest.raises(ld.InputError, match="out must be a tuple of 3 arrays"):
        fast.linearize(*[bundled("five_bar").home] * 3, out=[np.empty(1)])


def test_large_trees(monkeypatch):
    """Beyond the size for which recursions are written in registers of columns, up to a longest program."""
    robot = bundled("solo12")
    fast, rng = ld.specialize(robot), np.random.default_rng(2)
    q, (v, a) = ld.random_configuration(robot, rng, 40), rng.normal(size=(2, 40, robot.nv))
    assert off(fast.rnea(q, v, a), ld.rnea(robot, q, v, a)).max() < 1e-12
    monkeypatch.setattr(mechanism_programs, "LONGEST", 10_000)
    with pytest.raises(ld.InputError, match="a program of [0-9]* operations, more than"):
        fast.aba_derivatives(q, v, a)


def test_force_elements():
    """Springs, friction, bushing, a cable, applied forces, a cylinder and a thruster: in the forces, in A, B, C, D."""
    robot, outputs = sprung(), ("pose:link2", "velocity:pin", "acceleration:q3", "wrench:pin")
    home = ld.close(robot, robot.home)
    fast, (q, v, tau) = ld.specialize(robot, at=home), moving_states(robot, 40, 0.5)
    results = ("A", "B", "C", "D", "f0")
    expected = ld.linearize(robot, q, v, tau, independent=fast._programs.choices()[0], outputs=outputs)
    for name, x in zip(results, fast.linearize(q, v, tau, results=results, outputs=outputs)):
        assert off(x, getattr(expected, name)).max() < 1e-10, name
    for name, wrong, vouched, _ in attack(robot, home, 300, 3):
        assert not wrong and vouched > 50, name


INTERPRETED = """
import sys
sys.path[:0] = {paths!r}
import numpy as np
import liedyn as ld
from attacks import off
from c_programs import moving_states
from liedyn.bridges.specialization.mechanism_programs import MechanismPrograms
from liedyn.kernels import SCALAR
from sprung_robots import sprung
from test_thrusters import decorated, quadrotor
general = MechanismPrograms.general
for robot in (sprung(), quadrotor(), decorated(), ld.load("squeezer"), ld.load("four_bar")):
    fast, (q, v, tau) = ld.specialize(robot, at=ld.close(robot, robot.home)), moving_states(robot, 3, 0.2)
    MechanismPrograms.general = None  # all by programs
    found, a = fast.linearize(q, v, tau), fast.forward_dynamics(q, v, tau)[0]
    one, good = [np.empty_like(x[0]) for x in found], np.empty(1)
    fast.kernels.linearize(SCALAR, q[0], v[0], tau[0], *one, np.empty(1), good) if robot.row_names else None
    MechanismPrograms.general = general
    y, w = fast._programs.choices()
    model = ld.linearize(robot, q, v, tau, independent=y, speeds=None if y is w else w)
    apart = [off(x, getattr(model, name)).max() for name, x in zip(("A", "B", "f0"), found)]
    apart.append(off(a, ld.forward_dynamics(robot, q, v, tau).a).max())
    if robot.row_names:
        apart += [off(x[None], y[:1]).max() for x, y in zip(one, found)] + [good[0] - 1.0]
    print(max(apart))
"""


def test_interpreted():
    """Programs where nothing may be compiled: the same numbers, with force elements of all kinds and without."""
    paths = [str(ROOT / "tests" / each) for each in ("bridges", "", "mechanics")]
    found = process(INTERPRETED.format(paths=paths), LIEDYN_COMPILE="never").stdout.split()
    assert len(found) == 5 and max(map(float, found)) < 1e-12, found


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
