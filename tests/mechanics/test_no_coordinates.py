"""Robots that cannot move: without bodies, with all of them fixed, or held by constraints.

Results are empty, or errors say so.
"""
import shutil
import subprocess

import numpy as np
import pytest

import liedyn as ld
from liedyn.mechanics.dynamics.forward import METHODS

NONE = np.zeros(0)


def nothing():
    return ld.Builder("nothing").build()


def welded():
    b = ld.Builder("welded")
    b.body("block", 1.0, (0.1, 0, 0), (0.1, 0.1, 0.1))
    b.joint("weld", "fixed", "ground", "block")
    return b.build()


@pytest.mark.parametrize("make", [nothing, welded])
def test_what_cannot_move_has_empty_results(make):
    robot = make()
    for method in METHODS:
        found = ld.forward_dynamics(robot, NONE, NONE, NONE, method=method)
        assert found.a.shape == (0,) and found.rank == 0 and not found.independent
    ss = ld.linearize(robot, NONE, NONE, NONE)
    assert ss.A.shape == (0, 0) and ss.states == ()
    many = np.zeros((3, 0))
    assert ld.linearize(robot, many, many, many).A.shape == (3, 0, 0)
    assert ld.trim(robot, NONE).q.shape == ld.complete_velocity(robot, NONE, {}).shape == (0,)
    assert ld.complete_velocity(robot, many, {}).shape == (3, 0)
    assert len(ld.simulate(robot, NONE, NONE, 0.01, progress=False)) == 11
    with pytest.raises(ld.InputError, match=f"'{robot.name}' has no coordinates: there is nothing to be driven"):
        ld.inverse_dynamics(robot, NONE, NONE, NONE)
    with pytest.raises(ld.InputError, match="nothing to be driven"):
        ld.lqr(robot, NONE, [], [])


def truss(mass=1.0, width=1.0):
    """Two rods with a pin between them: coordinates, but no freedom."""
    b = ld.Builder("truss", gravity=(0.0, -9.81, 0.0), home={"left": np.pi / 3.0, "right": 2.0 * np.pi / 3.0})
    for name, place, of in (("left", 0.0, mass), ("right", width, 1.0)):
        b.body(name, of, (0.5, 0.0, 0.0), (0.01, 0.1, 0.1))
        b.joint(name, "revolute", "ground", name, placement=(place, 0.0, 0.0))
    b.loop("pin", "revolute", "left", "right", (1.0, 0.0, 0.0), (1.0, 0.0, 0.0))
    return b.build()


def driven():
    """The same without actuators, and held by a coupling besides: no inputs either."""
    b = ld.Builder.of(truss())
    for name in ("left", "right"):
        b.change("joint", name, driven=False)
    b.constraint("held", "coupling", coefficients={"left": 1.0}, offset=np.pi / 3.0)
    return b.build()


@pytest.mark.parametrize("make", [truss, driven, welded])
def test_second_derivatives_without_states(make):
    robot = make()
    q, rest = robot.home, np.zeros(robot.nv)
    for lead in ((), (3,)):
        many = np.broadcast_to(q, (*lead, robot.nq)), *np.zeros((2, *lead, robot.nv))
        for second in (True, np.zeros((*lead, 0))):
            ss = ld.linearize(robot, *many, second=second)
            assert ss.second.a.shape == (*lead, robot.nv, ss.B.shape[-1], ss.B.shape[-1])
            assert not ss.second.f.any() and not ss.second.a.any()
    found = ld.sensitivities(robot, q, rest, rest, parameters=["gravity.y"], second=True)
    assert found.A_x.shape == (0, 0, ss.B.shape[-1]) and found.lam.shape == (len(robot.row_names), 1)


def test_forces_in_a_truss_vary_with_its_parameters():
    """Differences by the mass of a rod and by the place of a support, which turns both rods."""
    robot, h, rest = truss(), 1e-4, np.zeros(2)
    found = ld.sensitivities(robot, robot.home, rest, rest, parameters=["mass:left", "placement.x:right"])
    for k, name in enumerate(("mass", "width")):
        q, lam = [], []
        for x in (1.0 + h, 1.0 - h):
            other = truss(**{name: x})
            q.append(ld.close(other, robot.home))
            lam.append(ld.forward_dynamics(other, q[-1], rest, rest).lam)
        assert np.abs(found.lam[:, k] - (lam[0] - lam[1]) / (2.0 * h)).max() < 1e-6
        assert np.abs(found.q[:, k] - (q[0] - q[1]) / (2.0 * h)).max() < 1e-6
    assert np.abs(found.lam).max(axis=0).min() > 1.0


def test_what_needs_states_says_so(tmp_path):
    """A regulator and an FMU; a branch of equilibria needs none."""
    robot = truss()
    with pytest.raises(ld.InputError, match="no regulator: there is no state"):
        ld.lqr(robot, robot.home, 1.0, 1.0)
    with pytest.raises(ld.InputError, match="let nothing of 'truss' move"):
        ld.export_fmu(robot, tmp_path / "truss.fmu", binary=False)
    branch = ld.continuation(robot, ld.trim(robot, robot.home), "gravity.y", (-12.0, -5.0))  # it is held all the way
    assert branch.parameter[-1] == -5.0 and np.abs(branch.q - robot.home).max() < 1e-12


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
@pytest.mark.parametrize("make", [truss, driven])
def test_c_without_states(make, tmp_path):
    """Linear models of no numbers are functions without results."""
    header, source, example, _ = ld.generate_c(make(), tmp_path)
    flags = "-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic"
    subprocess.run(["gcc", *flags, source, example, "-o", tmp_path / "example", "-lm"], check=True)
    printed = subprocess.run([tmp_path / "example"], capture_output=True, text=True, check=True).stdout
    assert printed.startswith("code 0\n") and float(printed.split("= ")[1].split()[0]) == pytest.approx(np.pi / 3.0)
