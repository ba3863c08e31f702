"""Implicit adaptive methods: their Jacobian against differences of the right side, long runs, a stiff benchmark."""
import numpy as np
import pytest
from closed_chains import moving_state
from numba import njit
from papers import numbers
from scipy.integrate import Radau
from tree_cases import bundled
from users import kept

import liedyn as ld
from liedyn.motion.simulation.integrators import adaptive

A05 = numbers("iftomm")["A05"]
STEP, STENCIL = 5e-4, ((1, 45 / 60), (2, -9 / 60), (3, 1 / 60))


def jacobian_of_run(robot, q, v, **options):
    """(J, differences of sixth order) of the right side where Radau's method has brought some |u| to a fifth."""
    found = []

    class Probe(Radau):
        def _step_impl(self):
            result = super()._step_impl()
            if np.abs(self.y[:robot.nv]).max() > 0.2:
                t, y = self.t, self.y
                J = self.jac(t, y, None)
                columns = [sum(c * (self.fun(t, y + k * e) - self.fun(t, y - k * e)) for k, c in STENCIL) / STEP
                           for e in STEP * np.eye(len(y))]
                found.extend([J, np.stack(columns, -1)])
                raise StopIteration
            return result

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(adaptive.SOLVERS, "Radau", Probe)
        with pytest.raises(ld.SimulationError, match="StopIteration"):
            ld.simulate(robot, q, v, 100.0, method=ld.Adaptive("Radau", 1e-10, 1e-10), tolerance=1e-13,
                        progress=False, **options)
    return found


def deviation(J, expected):
    return np.abs(J - expected).max() / max(1.0, np.abs(expected).max())


GOVERNOR = "A05 of the IFToMM benchmarks: K, C, REST of the spring-dampers, the height of the hinges, half a rod"
K, C, REST, HEIGHT, HALF = 8e5, 4e4, 0.5, 1.0, 0.5


def governor(springs=None):
    """The flyball governor: coordinates spin, s, and the angles of both rods below the horizontal.

    Without spring-dampers; or with force elements ("elements"); or with prismatic joints between bodies without mass
    ("carriers"), a case on the slider and a piston that is pinned to the rod: two loops, and a singular mass matrix.
    """
    builder = ld.Builder("governor", gravity=(0, 0, -9.81))
    along, across = 0.3e-4 / 6.0, 0.3 * 1.0001 / 12.0
    builder.body("shaft", 0.3, com=(0, 0, 0.5), inertia=(across, across, along))
    builder.body("slider", 3.0, inertia=(0.005, 0.005, 0.005))
    builder.joint("spin", "revolute", "ground", "shaft", axis=(0, 0, 1))
    builder.joint("s", "prismatic", "shaft", "slider", axis=(0, 0, 1))
    for name, side in (("left", -1.0), ("right", 1.0)):
        builder.body(name, 0.3, com=(side * HALF, 0, 0), inertia=(along, across, across))
        builder.body(name + "_ball", 5.0)
        builder.joint(name, "revolute", "shaft", name, placement=(side * 0.05, 0, HEIGHT), axis=(0, side, 0))
        builder.joint(name + "_end", "fixed", name, name + "_ball", placement=(side, 0, 0))
        if springs == "elements":
            builder.spring(name + "_spring", "slider", name, (side * 0.05, 0, 0), (side * HALF, 0, 0), REST, K, C)
        if springs == "carriers":
            case, piston, pin = f"{name}_case", f"{name}_piston", (side * HALF, 0, 0)
            builder.body(case)
            builder.body(piston)
            builder.joint(f"{name}_tilt", "revolute", "slider", case, placement=(side * 0.05, 0, 0), axis=(0, -side, 0))
            builder.joint(f"{name}_length", "prismatic", case, piston, axis=(side, 0, 0), stiffness=K, damping=C,
                          rest=REST)
            builder.loop(f"{name}_pin", "inline", name, piston, parent_placement=pin, axis=(0, 1, 0))
    return builder.build(), np.array([0.0, 0.5, np.pi / 6, np.pi / 6]), np.array([2.0 * np.pi, 0.0, 0.0, 0.0])


@kept
def length(s, angle):
    """Length of a spring-damper, its gradient and its second derivatives by (s, angle)."""
    D = np.array([HALF * np.cos(angle), HEIGHT - HALF * np.sin(angle) - s])
    by = np.array([[0.0, -1.0], [-HALF * np.sin(angle), -HALF * np.cos(angle)]])
    size = np.sqrt(D @ D)
    gradient = by @ D / size
    second = by @ by.T
    second[1, 1] += D @ np.array([-HALF * np.cos(angle), HALF * np.sin(angle)])
    return size, gradient, (second - np.outer(gradient, gradient)) / size


@kept
def spring_dampers(t, q, v):
    tau = np.zeros(4)
    for rod in (2, 3):
        size, gradient, _ = length(q[1], q[rod])
        force = K * (size - REST) + C * (gradient[0] * v[1] + gradient[1] * v[rod])
        tau[1] -= force * gradient[0]
        tau[rod] -= force * gradient[1]
    return tau


@kept
def spring_damper_derivatives(t, q, v):
    by_q, by_v = np.zeros((4, 4)), np.zeros((4, 4))
    for rod in (2, 3):
        size, gradient, second = length(q[1], q[rod])
        speeds = np.array([v[1], v[rod]])
        force = K * (size - REST) + C * (gradient @ speeds)
        stiffness = np.outer(gradient, K * gradient + C * (second @ speeds)) + force * second
        for i, row in enumerate((1, rod)):
            for j, column in enumerate((1, rod)):
                by_q[row, column] -= stiffness[i, j]
                by_v[row, column] -= C * gradient[i] * gradient[j]
    return by_q, by_v


def closed_state(robot):
    q = ld.close(robot, robot.home) if robot.loop_names else robot.home
    return q, moving_state(robot, q)[0] if robot.row_names else np.random.default_rng(0).normal(size=robot.nv)


@pytest.mark.parametrize(
    "name", ["panda", "five_bar", "loader", "stewart", "rolling_disk", "rolling_spheres", "solo12"])
@pytest.mark.parametrize("stabilisation", ["projection", "minimal", "none", "baumgarte"])
def test_jacobian(name, stabilisation):
    """One-dof, ball and free joints, redundant rows, rolling."""
    robot = bundled(name)
    if stabilisation != "projection" and not robot.row_names:
        pytest.skip("nothing to stabilise")
    J, expected = jacobian_of_run(robot, *closed_state(robot), stabilisation=stabilisation)
    # what the differences leave: 1e-13 of the projection by a step of 5e-4, times accelerations of ten
    assert deviation(J, expected) < 1e-8


def led():
    """Three links on springs and dampers; the end is led along a moving point, with one row more than that takes."""
    builder = ld.Builder("led")
    for name, parent in zip("abc", ("ground", "a", "b")):
        builder.body(name, 1.0, com=(0.2, 0.0, 0.0), inertia=(0.01, 0.02, 0.03))
        builder.joint(name, "revolute", parent, name, placement=(0.0 if name == "a" else 0.4, 0, 0), axis=(0, 1, 0),
                      stiffness=5.0, damping=0.3, rest=0.2, armature=0.01)
    builder.loop("point", "spherical", "ground", "c", child_placement=(0.4, 0, 0), target=lambda t: (
        [0.8 + 0.1 * np.sin(3 * t), 0, -0.2], [0.3 * np.cos(3 * t), 0, 0], [-0.9 * np.sin(3 * t), 0, 0]))
    robot = builder.build()
    q = ld.close(robot, [-0.5, 1.0, 0.5])
    return robot, q, ld.complete_velocity(robot, q, {"a": 0.4})


def spring(t, q, v):
    return np.array([-3.0 * q[0] * q[1] + t, 2.0 * np.sin(v[0]) - v[1] * np.cos(q[2]), -v[2] - 0.1 * v[2] ** 3])


def spring_derivatives(t, q, v):
    by_q, by_v = np.zeros((3, 3)), np.zeros((3, 3))
    by_q[0, 0], by_q[0, 1], by_q[1, 2] = -3.0 * q[1], -3.0 * q[0], v[1] * np.sin(q[2])
    by_v[1, 0], by_v[1, 1], by_v[2, 2] = 2.0 * np.cos(v[0]), -np.cos(q[2]), -1.0 - 0.3 * v[2] ** 2
    return by_q, by_v


WRENCH = {"b": [0.1, 0.2, -0.3, 1.0, 2.0, 3.0]}


@pytest.mark.parametrize("options", [
    {}, dict(f_ext=WRENCH), dict(tau=[1.0, 2.0, -1.0]), dict(tau=(spring, spring_derivatives)),
    dict(tau=(spring, spring_derivatives), f_ext=WRENCH, stabilisation="minimal"),
    dict(tau=(njit(spring), njit(spring_derivatives)), stabilisation="baumgarte"), dict(formulation="svd"),
    dict(formulation="multiplier"), dict(formulation="unified"), dict(energy=True, dt=0.1),
    dict(energy=True, dt=0.1, f_ext=WRENCH, tau=(spring, spring_derivatives)),
], ids=lambda options: "-".join(options) or "plain")
def test_jacobian_of_forces(options):
    """Springs, dampers, a moving target, wrenches, feedback, and the projection on the energy: the powers too."""
    J, expected = jacobian_of_run(*led(), **options)
    assert np.abs(expected[-2:]).max() > 0.1
    assert deviation(J, expected) < 1e-8


@pytest.mark.parametrize("options", [{}, dict(energy=True, dt=0.1, f_ext=WRENCH)], ids=("plain", "energy"))
def test_jacobian_of_force_elements(options):
    """Those that hold energy, whose power is none of the inputs', and those that do not."""
    robot, q, v = led()
    b = ld.Builder.of(robot)
    b.bushing("mount", "a", "c", (0.3, 0.0, 0.0), (0.1, 0.0, 0.0), [3.0, 4.0, 5.0, 30.0, 40.0, 50.0], 0.2)
    b.spring("strut", "ground", "b", (0.0, 0.0, 1.0), length=1.5, law=ld.GasSpring(5.0, 2.0, 1.4, 0.3))
    b.friction("rub", "c", coulomb=0.3, width=0.5)
    b.applied_force("wind", "b", (0.1, 0.0, 0.0), lambda t: np.array([t, 0.0, 1.0]), axes="body")
    b.coordinate_force("cubic", {"a": 1.0}, law=lambda x, w: (x ** 3, 3.0 * x * x, 0.0))
    J, expected = jacobian_of_run(b.build(), q, v, **options)
    assert np.abs(expected[-2:]).max() > 0.1
    assert deviation(J, expected) < 1e-8


def closed_governor():
    """That with carriers, at its start."""
    robot = governor("carriers")[0]
    q = dict.fromkeys(robot.coordinate_names, np.pi / 6) | {"spin": 0.0, "s": 0.5}
    q = np.array([REST if name.endswith("length") else x for name, x in q.items()])
    rest = {"s": 0.0, "left": 0.0, "right": 0.0}
    return robot, q, ld.complete_velocity(robot, q, {"spin": 2.0 * np.pi} | rest)


@pytest.mark.parametrize("method", ["Radau", "BDF"])
@pytest.mark.parametrize("model", ["derivative", "no derivative", "elements", "closed", "minimal", "baumgarte"])
def test_governor(method, model):
    """A05 (IFToMM): time constants from 1e-4 s to seconds; SciPy's differences overflowed here after 310 Jacobians."""
    robot, q, v = closed_governor() if model in ("closed", "minimal", "baumgarte") else governor(model)
    tau = {"derivative": (spring_dampers, spring_damper_derivatives), "no derivative": spring_dampers}.get(model)
    if model == "derivative":
        assert ld.check_feedback(robot, tau, q + [0.1, 0.02, 0.03, -0.02], v + 0.1).ok
    tr = ld.simulate(robot, q, v, 10.0, tau=tau, method=method, dt=1.0,
                     stabilisation=model if model in ("minimal", "baumgarte") else "projection")
    assert np.abs(tr["s"] - A05["s"]).max() < 1e-6
    assert max(abs(tr[name][-1] - A05["alpha_10"]) for name in ("left", "right")) < 1e-6


@pytest.mark.parametrize("method", ["implicit", "generalized_alpha"])
def test_newton_knows_the_feedback(method):
    """With the derivative, steps a hundred times the shortest time constant converge; without it they do not."""
    robot, q, v = governor()
    with pytest.raises(ld.SimulationError, match="does not converge|diverged"):
        ld.simulate(robot, q, v, 0.1, tau=spring_dampers, method=method, dt=1e-2)
    tr = ld.simulate(robot, q, v, 1.0, tau=(spring_dampers, spring_damper_derivatives), method=method, dt=1e-2)
    assert abs(tr["s"][-1] - A05["s"][1]) < {"implicit": 1e-6, "generalized_alpha": 1e-3}[method]


@kept
def shaken(t, q, v):
    return 5.0 * np.sin(2.0 * t) - 30.0 * v * (1.0 + v * v)


@kept
def shaken_derivatives(t, q, v):
    return np.zeros((v.size, v.size)), -30.0 * np.diag(1.0 + 3.0 * v * v)


@pytest.mark.parametrize("method", ["Radau", "BDF"])
@pytest.mark.parametrize("name", ["five_bar", "panda"])
def test_long_runs(name, method, monkeypatch):
    """Over 2,000 Jacobians, one at each step, of machines that are shaken and damped; energy and works balance."""
    robot, count = bundled(name), []

    class Fresh(adaptive.SOLVERS[method]):
        def _step_impl(self):
            self.J = self.jac(self.t, self.y, self.f) if method == "Radau" else self.jac(self.t, self.y)
            self.LU = self.LU_real = self.LU_complex = None
            count.append(np.isfinite(self.J).all())
            return super()._step_impl()

    monkeypatch.setitem(adaptive.SOLVERS, method, Fresh)
    tr = ld.simulate(robot, *closed_state(robot), 50.0, tau=(shaken, shaken_derivatives), method=method)
    assert len(count) > 2000 and all(count) and tr.t[-1] == 50.0
    assert np.abs(tr.energy_drift).max() < 1e-6 * np.ptp(tr.potential)  # 1e-8 is asked for in a step of each quantity
