"""The field's published benchmarks: motions, forces and linear models of bundled robots against exact solutions.

The IFToMM library's A01 to A05 and its linearization benchmark, Andrews' squeezer of the test set for initial value
problems, and Whipple's bicycle. `reference/iftomm.json` and `reference/bicycle.json` state sources and how the exact
numbers were found; the parameters are in the robots' files. Bounds are about ten times the error seen.
"""
import functools

import numpy as np
import pytest
from comparison import off, relative
from papers import numbers
from tree_cases import bundled

import liedyn as ld

IFTOMM, BICYCLE = numbers("iftomm"), numbers("bicycle")
published = functools.partial(pytest.mark.validation, oracle="Published benchmarks, exact solutions")
ADAPTIVE = {"method": ld.Adaptive("DOP853", rtol=1e-12, atol=1e-13), "dt": 1.0}


def at(tr, times):
    """Rows of a trajectory at times of its grid."""
    k = np.searchsorted(tr.t, np.asarray(times) - 1e-6)
    np.testing.assert_allclose(tr.t[k], times, rtol=0.0, atol=1e-9)
    return k


def numbered(sheet):
    """Times and values of a table that has the times as keys."""
    return np.array([float(t) for t in sheet]), np.array(list(sheet.values()))


# ---- IFToMM A01 to A05


@published("IFToMM A01: motion for 10 s", robots="pendulum")
@pytest.mark.parametrize("options, bound", [({"dt": 1e-3}, 2e-10), (ADAPTIVE, 1e-11)], ids=str)
def test_simple_pendulum(options, bound):
    """A01: a point mass that starts level, at -x."""
    builder = ld.Builder("pendulum", gravity=(0.0, -9.81, 0.0))
    builder.body("mass", 1.0, com=(1.0, 0.0, 0.0))
    builder.joint("angle", "revolute", "ground", "mass")
    tr = ld.simulate(builder.build(), [-np.pi], [0.0], 10.0, **options)
    times, exact = numbered(IFTOMM["A01"]["angle_from_down"])
    assert off(-tr["angle"][at(tr, times)] - np.pi / 2, exact) < bound
    assert np.abs(tr.energy_drift).max() < 2e-10  # of a kinetic energy up to 9.8 J


@published("IFToMM A02: motion through ten singular configurations", robots="four_bars")
def test_two_four_bars():
    """A02, through ten singular configurations: better than a published solution with steps of an eighth."""
    robot = bundled("four_bars")
    exact, others = IFTOMM["A02"]["exact"], IFTOMM["A02"]["exudyn_B0"]["0.000125"]
    start = ld.complete_velocity(robot, robot.home, {"V0": -1.0})
    tr = ld.simulate(robot, robot.home, start, IFTOMM["A02"]["t"])
    angle, rate = tr["V0"][-1], tr["velocity:V0"][-1]
    B0 = np.array([np.cos(angle), np.sin(angle)])
    assert off(angle, exact["theta"]) < 2e-10
    assert off(B0, exact["B0"]) < 2e-10 < 1e-3 * np.abs(np.subtract(others, exact["B0"])).max()
    assert off(rate * np.array([-B0[1], B0[0]]), exact["B0_velocity"]) < 4e-10
    assert [event.name for event in tr.events] == ["singular passage"] * 10
    assert np.abs(tr.energy_drift).max() < 1e-9  # of up to 69 J


A03 = IFTOMM["A03"]
TIPS = ("tip_K3", "tip_K4", "tip_K6")


def squeezer_forces(robot, q, v):
    """Accelerations in the order of the test set, and its multipliers: the forces of K2 on its partners, in x and y."""
    r = ld.forward_dynamics(robot, q, v, robot.actuator_matrix @ [0.033])
    world = ld.pose(robot, q, "K2")[:3, :3]
    forces = [(world @ r.constraint_wrenches[tip][3:])[:2] for tip in TIPS]
    return r.a[squeezer_order(robot)], np.ravel(forces)


def squeezer_order(robot):
    return [robot.velocity_index(name) for name in A03["names"]]


@published("IFToMM A03: accelerations and multipliers at the start", robots="squeezer")
def test_squeezer_at_its_start():
    robot = bundled("squeezer")
    np.testing.assert_array_equal(robot.home[squeezer_order(robot)], A03["q0"])
    a, multipliers = squeezer_forces(robot, robot.home, np.zeros(robot.nv))
    # of the sixteen digits of a0 and lambda0 some are lost: the inertia felt at the crank is a difference
    assert relative(a, A03["a0"]) < 1e-13 and relative(multipliers, A03["lambda0"]) < 1e-13


@published("IFToMM A03: q, v, a and multipliers at the end, in 80 bits", robots="squeezer")
@pytest.mark.parametrize("options", [{"dt": 2e-6}, ADAPTIVE | {"dt": None}], ids=str)
def test_squeezer_against_80_bits(options):
    """A03, two and a half turns within 0.03 s: closer to the 80-bit solution than the published one is."""
    robot, exact = bundled("squeezer"), A03["solution_80bit"]
    tr = ld.simulate(robot, robot.home, np.zeros(robot.nv), A03["t"], u=[0.033], record=100, **options)
    order = squeezer_order(robot)
    a, multipliers = squeezer_forces(robot, tr.q[-1], tr.v[-1])
    for key, found in (("q", tr.q[-1][order]), ("v", tr.v[-1][order]), ("a", a), ("lambda", multipliers)):
        others = np.abs(np.subtract(A03["published"][key], exact[key])).max() / np.abs(exact[key]).max()
        # steps of 2 us leave 2e-12; what the test set publishes is off by 7e-11 to 1e-7
        assert relative(found, exact[key]) < 2e-11 < others, key
    assert np.abs(tr.energy_drift).max() < 1e-11  # of up to 1.5 J


@published("IFToMM A04: motion for 10 s", robots="bricard")
@pytest.mark.parametrize("options", [{"dt": 1e-3}, ADAPTIVE], ids=str)
def test_bricard(options):
    """A04: mobile although overconstrained, a row of its cut is redundant all the way."""
    robot = bundled("bricard")
    turns = ld.Event("turns", lambda t, q, v: v[0], direction=1)
    tr = ld.simulate(robot, robot.home, np.zeros(robot.nv), 10.0, events=turns, **options)
    times, exact = numbered(IFTOMM["A04"]["theta_P3"])
    k = at(tr, times)
    P3 = ld.forward_kinematics(robot, tr.q[k])[:, robot.body_names.index("rod2")] @ [0.0, -1.0, 0.0, 1.0]
    assert off(tr["hinge1"][k], exact[:, 0]) < 3e-11
    assert off(P3[:, :3], exact[:, 1:]) < 3e-11
    back = [event.t for event in tr.events if event.t > 0.0]
    # where the speed vanishes, to the error of the speed by the acceleration there
    np.testing.assert_allclose(back, IFTOMM["A04"]["period"] * np.arange(1, len(back) + 1), rtol=0.0, atol=1e-10)
    assert len(back) == 2 and np.abs(tr.energy_drift).max() < 1e-10  # of up to 4.6 J


@published("IFToMM A05: motion for 10 s, steps of 10 and 2 ms", robots="governor")
@pytest.mark.parametrize("dt, bound", [(1e-2, 1e-6), (2e-3, 5e-8)])
def test_governor(dt, bound):
    """A05: very stiff springs and dampers; adaptive methods are in test_stiff.py."""
    robot, exact = bundled("governor"), IFTOMM["A05"]
    tr = ld.simulate(robot, robot.home, [2.0 * np.pi, 0.0, 0.0, 0.0], 10.0, method="implicit", dt=dt)
    # bounds of steps: in the angles of the rods the stiff diagonals are less linear than they were in lengths of their
    # own; the same forces written by hand as tau leave the same 4e-9 at 2 ms
    assert off(tr["s"][at(tr, np.arange(11.0))], exact["s"]) < bound
    assert max(off(tr[rod][-1], exact["alpha_10"]) for rod in ("left", "right")) < bound
    # of 32 J, with the work of the dampers: its quadrature sees time constants of 1e-4 s through steps of 10 ms
    assert np.abs(tr.energy_drift).max() < 5e-4


# ---- IFToMM, linearization


@published("IFToMM, linearization: eigenvalues in closed form", robots="diagonal_spring")
def test_diagonal_spring():
    """Equilibrium and eigenvalues of the rhombus, in closed form."""
    given, robot = IFTOMM["diagonal_spring"], bundled("diagonal_spring")
    rest = np.zeros(robot.nv)
    assert robot.home[robot.coordinate_index("crank")] == pytest.approx(given["published_phi"], abs=1e-10)
    # rounding of 1e-15 in the lengths, times the stiffness of 25 N/m
    assert np.abs(ld.forward_dynamics(robot, robot.home, rest, rest).a).max() < 1e-13
    found = ld.linearize(robot, robot.home, rest, rest).eigenvalues()
    exact = complex(*given["eigenvalue"])
    assert off(np.sort_complex(found), [exact.conjugate(), exact]) < 1e-13


# ---- Whipple's bicycle

POSITIONS = ("hub.x", "hub.y", "yaw", "lean", "steer", "rear_wheel", "front_wheel")
LEAN_AND_STEER = [POSITIONS.index("lean"), POSITIONS.index("steer"), 7, 8]  # in the state: angles, then rates


def straight_ahead(speed):
    """Linear model of the bicycle that rolls upright and straight ahead [m/s]."""
    robot = bundled("whipple_bicycle")
    v = ld.complete_velocity(robot, robot.home, {"rear_wheel": -speed / 0.3, "lean": 0.0, "steer": 0.0})
    return ld.linearize(robot, robot.home, v, 0.0 * v, independent=POSITIONS, speeds=("lean", "steer", "rear_wheel"))


@published("eigenvalues of weave, capsize and castering at 0 to 10 m/s", robots="whipple_bicycle")
@pytest.mark.parametrize("speed", range(11))
def test_eigenvalues_of_the_bicycle(speed):
    """Weave, capsize and castering to the fourteen published decimals."""
    exact = np.array([complex(*x) for x in BICYCLE["eigenvalues"][str(speed)]])
    A = straight_ahead(speed).A[LEAN_AND_STEER]
    assert np.abs(np.delete(A, LEAN_AND_STEER, axis=1)).max() < 1e-12  # whatever place, heading and speed are
    ours = np.linalg.eigvals(A[:, LEAN_AND_STEER])
    distance = np.abs(ours[:, None] - exact)
    nearest = distance.argmin(axis=0)
    assert len(set(nearest)) == len(exact)
    # half a unit of the last decimal, and rounding times the condition of eigenvalues up to 25 / s
    assert distance.min(axis=0).max() < 1e-12 and off(ours[nearest], exact) < 1e-12


@pytest.mark.parametrize("speed", [0, 1, 5, 10])
def test_matrices_of_the_bicycle(speed):
    """M q'' + v C1 q' + (g K0 + v^2 K2) q = 0 for lean and steer, eq. 5.3 of Meijaard et al."""
    M, K0, K2, C1 = (np.array(BICYCLE[key]) for key in ("M", "K0", "K2", "C1"))
    A = straight_ahead(speed).A[np.ix_(LEAN_AND_STEER[2:], LEAN_AND_STEER)]
    expected = -np.linalg.solve(M, np.hstack([9.81 * K0 + speed**2 * K2, speed * C1]))
    # the published matrices have fourteen decimals, and M a condition number of 349
    np.testing.assert_allclose(A, expected, rtol=0.0, atol=2e-13 * np.abs(expected).max())


@pytest.mark.parametrize("which", ["weave_speed", "capsize_speed"])
def test_stability_of_the_bicycle_changes_at(which):
    """An eigenvalue crosses the imaginary axis at the published speed."""
    speed, real, imaginary = BICYCLE[which]
    eigenvalues = np.linalg.eigvals(straight_ahead(speed).A[np.ix_(LEAN_AND_STEER, LEAN_AND_STEER)])
    # the speed's last decimal is 1e-14 m/s, and rounding comes to 1e-13
    assert np.abs(eigenvalues - complex(real, imaginary)).min() < 1e-12


BASU_MANDAL = {  # their coordinates, and ours: z down, x the other way, and 0 where the wheels stand upright and level
    "x": "hub.x", "y": "hub.y", "z": "hub.z", "theta": "yaw", "psi": "lean", "phi": "pitch", "psif": "steer",
    "betar": "rear_wheel", "betaf": "front_wheel"}


def in_our_coordinates(robot, values, zero=None):
    """Values by name in coordinates that all run against ours but y: ours = zero - theirs."""
    zero, vector = zero or {}, np.zeros(robot.nv)
    for name, value in values.items():
        vector[robot.velocity_index(BASU_MANDAL[name])] = value if name == "y" else zero.get(name, 0.0) - value
    return vector


@published("nonlinear accelerations, all formulations (Basu-Mandal et al. 2007)", robots="whipple_bicycle")
def test_nonlinear_accelerations_of_the_bicycle():
    """Table 1 of Basu-Mandal, Chatterjee and Papadopoulos 2007: leaning by 36 degrees, steering, turning."""
    robot, given = bundled("whipple_bicycle"), BICYCLE["basu_mandal"]
    q = in_our_coordinates(robot, given["q"], {"psi": np.pi / 2, "phi": np.pi})
    v, a = (in_our_coordinates(robot, given[key]) for key in ("v", "a"))
    # the table has thirteen decimals
    assert np.abs(ld.closure_error(robot, q)).max() < 1e-12 and np.abs(ld.velocity_error(robot, q, v)).max() < 1e-12
    for method in ("nullspace", "svd", "multiplier", "udwadia_kalaba", "kane", "unified"):
        assert off(ld.forward_dynamics(robot, q, v, 0.0 * v, method=method).a, a) < 1e-11
