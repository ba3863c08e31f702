"""Special points of branches: none is lost, none is invented, and each is told apart."""
import numpy as np
import pytest
from scipy.linalg import eigh
from scipy.optimize import brentq

import liedyn as ld

FAR = 10.0
"""Height of the point from which columns are pulled down."""


def column(count):
    """Rods of length 1, one on the other, with torsion springs of 1 Nm/rad, that a cylinder from above pushes down."""
    b = ld.Builder("column", gravity=(0.0, 0.0, 0.0))
    below = "ground"
    for k in range(count):
        b.body(f"rod{k}", 1.0, (0.5, 0.0, 0.0), (0.0, 0.1, 0.1))
        b.joint(f"hinge{k}", "revolute", below, f"rod{k}", placement=(float(k > 0), 0.0, 0.0), stiffness=1.0)
        below = f"rod{k}"
    b.cylinder("load", "ground", below, (count + FAR, 0.0, 0.0), (1.0, 0.0, 0.0))
    return b.build()


def buckling_loads(count):
    """Of the energy K - load H: the length of the cylinder, to second order in absolute angles, is FAR + H / 2."""
    relative = np.eye(count) - np.eye(count, k=-1)
    H = np.eye(count) + np.ones((count, count)) / FAR
    return eigh(relative.T @ relative, H, eigvals_only=True)


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("span", [(-0.5, 5.0), (-500.0, 500.0)])
def test_no_buckling_load_is_lost(count, span):
    """Two of them within a step change the sign of the determinant twice."""
    robot = column(count)
    branch = ld.continuation(robot, ld.trim(robot, np.zeros(count)), "load", span)
    found = [each.parameter for each in branch.special if each.kind == "branch point"]
    assert np.allclose(found, buckling_loads(count), rtol=1e-9, atol=0.0)
    assert {each.kind for each in branch.special} == {"branch point"}  # oscillations without damping stay on the axis


def test_balances_are_chosen_again():
    """Without gravity a motor at the shoulder is not needed, however the elbow is bent; the elbow's acceleration by the
    shoulder's torque, the larger one of the stretched arm, vanishes on the way, and that is no branch point."""
    b = ld.Builder("arm", gravity=(0.0, 0.0, 0.0))
    b.body("upper", 1.0, (0.5, 0.0, 0.0), (0.0, 0.1, 0.1))
    b.body("lower", 1.0, (0.5, 0.0, 0.0), (0.0, 0.1, 0.1))
    b.joint("shoulder", "revolute", "ground", "upper")
    b.joint("elbow", "revolute", "upper", "lower", placement=(1.0, 0.0, 0.0))
    b.actuator("motor", "shoulder")
    robot = b.build()
    start = ld.trim(robot, [0.0, 0.0], free=["motor"])
    branch = ld.continuation(robot, start, "elbow", (-0.1, 3.2), free=["motor"])
    assert branch.special == [] and branch.ended == "span" and not branch.u.any()


@pytest.mark.parametrize("direction", [1, -1])
def test_branches_end_at_the_end_of_the_span(direction):
    robot = column(1)
    branch = ld.continuation(robot, ld.trim(robot, [0.0]), "load", (-0.7, 0.8), direction=direction)
    assert branch.ended == "span" and len(branch) > 2
    assert branch.parameter[-1] == pytest.approx(0.8 if direction > 0 else -0.7, rel=1e-12)
    assert branch.eigenvalues[-1] ** 2 == pytest.approx((branch.parameter[-1] * 1.1 - 1.0) / 0.35, rel=1e-9)


def test_forks_are_followed_both_ways():
    """The buckled column, load = x / (length by x): from the straight branch to it, back through the fork, and on."""
    robot = column(1)
    [fork] = ld.continuation(robot, ld.trim(robot, [0.0]), "load", (-0.5, 5.0)).special
    assert (fork.form, fork.unstable) == ("pitchfork", (0, 1))
    bent = ld.continuation(robot, fork.crossing, "load", (-0.5, 5.0))
    x = bent.q[:, 0]
    assert bent.ended == "span" and abs(x[-1]) > 1.0
    length = np.sqrt(121.0 + 1.0 - 22.0 * np.cos(x))
    assert np.allclose(bent.parameter * 11.0 * np.sin(x), x * length, rtol=0.0, atol=1e-10)
    back = ld.continuation(robot, fork.crossing, "load", (-0.5, 5.0), direction=-1)
    [again] = [each for each in back.special if each.kind == "branch point"]
    assert again.form == "pitchfork" and again.parameter == pytest.approx(1.0 / 1.1, rel=1e-9)
    assert back.q[-1, 0] * x[-1] < 0.0


def rod(law=None, stiffness=0.0, damping=0.0):
    """A rod with a point mass at 1 m that stands, with gravity and a motor at its foot."""
    b = ld.Builder("rod", gravity=(-9.81, 0.0, 0.0))
    b.body("rod", 1.0, (1.0, 0.0, 0.0))
    b.joint("hinge", "revolute", "ground", "rod", stiffness=stiffness, damping=damping)
    b.actuator("motor", "hinge")
    if law:
        b.coordinate_force("law", {"hinge": 1.0}, law=law)
    return b.build()


def test_branches_that_cross_without_a_fork():
    """A moment k x + 4 x^2 against gravity: x = 0, and k = (9.81 sin x - 4 x^2) / x."""
    robot = rod(law=lambda x, w: (4.0 * x ** 2, 8.0 * x, 0.0), stiffness=20.0)
    branch = ld.continuation(robot, ld.trim(robot, [0.0]), "stiffness:hinge", (2.0, 20.0), direction=-1)
    [point] = branch.special
    assert (point.kind, point.form, point.unstable) == ("branch point", "transcritical", (0, 1))
    assert point.parameter == pytest.approx(9.81, rel=1e-9)
    other = ld.continuation(robot, point.crossing, "stiffness:hinge", (2.0, 20.0))
    x = other.q[:, 0]
    assert np.allclose(other.parameter * x, 9.81 * np.sin(x) - 4.0 * x ** 2, rtol=0.0, atol=1e-9)


@pytest.mark.parametrize("damping", [0.0, 0.3])
def test_divergence(damping):
    """The motor is free, not the angle: nothing turns or crosses where the rod ceases to stand by itself."""
    robot = rod(stiffness=20.0, damping=damping)
    start = ld.trim(robot, [0.0], free=["motor"])
    branch = ld.continuation(robot, start, "stiffness:hinge", (2.0, 20.0), free=["motor"], direction=-1)
    [point] = branch.special
    assert (point.kind, point.unstable, point.frequency) == ("divergence", (0, 1), 0.0)
    assert point.parameter == pytest.approx(9.81, rel=1e-9)


@pytest.mark.parametrize("span", [(0.0, 4.0), (0.0, 16.0)])
def test_a_step_that_ends_at_a_branch_point(span):
    """From 1 on in steps of 1 m/s^2 the rod buckles at 3, exactly at the end of a step."""
    b = ld.Builder("rod", gravity=(-1.0, 0.0, 0.0))
    b.body("rod", 1.0, (1.0, 0.0, 0.0))
    b.joint("hinge", "revolute", "ground", "rod", stiffness=3.0)
    robot = b.build()
    step = 1.0 / (span[1] - span[0])
    branch = ld.continuation(robot, ld.trim(robot, [0.0]), "gravity", span, step=step, longest=step)
    assert [each.form for each in branch.special] == ["pitchfork"] and branch.special[0].unstable == (0, 1)
    assert branch.special[0].parameter == pytest.approx(3.0, rel=1e-9)


def test_two_branches_cross_at_the_same_point():
    b = ld.Builder("pair", gravity=(-1.0, 0.0, 0.0))
    for k in range(2):
        b.body(f"rod{k}", 1.0 + k, (1.0, 0.0, 0.0))
        b.joint(f"hinge{k}", "revolute", "ground", f"rod{k}", placement=(0.0, k, 0.0), stiffness=3.0 + 3.0 * k)
    robot = b.build()
    branch = ld.continuation(robot, ld.trim(robot, [0.0, 0.0]), "gravity", (0.5, 5.0))
    [point] = branch.special
    assert (point.kind, point.form, point.unstable) == ("branch point", "multiple", (0, 2))
    assert point.parameter == pytest.approx(3.0, rel=1e-9)


def ziegler(damping):
    """Two rods of 1 m with masses of 2 and 1 kg, and 2 N that follow the upper one (Ziegler 1952)."""
    b = ld.Builder("ziegler", gravity=(0.0, 0.0, 0.0))
    b.body("lower", 2.0, (1.0, 0.0, 0.0))
    b.body("upper", 1.0, (1.0, 0.0, 0.0))
    b.joint("foot", "revolute", "ground", "lower", stiffness=1.0, damping=damping)
    b.joint("knee", "revolute", "lower", "upper", placement=(1.0, 0.0, 0.0), stiffness=2.0, damping=damping)
    b.applied_force("load", "upper", (1.0, 0.0, 0.0), force=(-2.0, 0.0, 0.0), axes="body")
    return b.build()


def test_flutter():
    """In absolute angles M = [[3, 1], [1, 1]], K = [[1 + k - P, P - k], [-k, k]]: frequencies meet where
    (1 + 6 k - 2 P)^2 = 8 k."""
    robot = ziegler(0.0)
    branch = ld.continuation(robot, ld.trim(robot, [0.0, 0.0]), "stiffness:knee", (0.05, 2.0), direction=-1)
    k = np.roots([36.0, -36.0 - 8.0, 9.0]).max()  # at the other root all are real, and as many to the right
    [point] = branch.special
    assert (point.kind, point.unstable) == ("flutter", (0, 2))
    # where eigenvalues meet they change with the root of the parameter: (1e-6)^2 of it is their real part that counts
    assert point.parameter == pytest.approx(k, rel=1e-9)
    assert point.frequency ** 2 == pytest.approx((1.0 + 6.0 * k - 4.0) / 4.0, rel=1e-5)


def test_hopf_points_by_routh_and_hurwitz():
    d = 0.05
    robot = ziegler(d)
    branch = ld.continuation(robot, ld.trim(robot, [0.0, 0.0]), "stiffness:knee", (0.5, 3.0), direction=-1)
    found = [each for each in branch.special if each.kind == "hopf"]

    def hurwitz(k):
        M, D, P = np.array([[3.0, 1.0], [1.0, 1.0]]), d * np.array([[2.0, -1.0], [-1.0, 1.0]]), 2.0
        K = np.array([[1.0 + k - P, P - k], [-k, k]])
        entries = [[np.array([M[i, j], D[i, j], K[i, j]]) for j in range(2)] for i in range(2)]
        a = np.polymul(entries[0][0], entries[1][1]) - np.polymul(entries[0][1], entries[1][0])
        return a[1] * a[2] * a[3] - a[0] * a[3] ** 2 - a[1] ** 2 * a[4]

    [point] = found
    assert point.unstable == (0, 2)
    assert point.parameter == pytest.approx(brentq(hurwitz, 1.0, 3.0, xtol=1e-14), rel=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_laws_of_branches(seed):
    """Chains of rods with springs at random: what is conservative has neither flutter nor Hopf points, static special
    points have a singular stiffness, and the eigenvalues that cross the axis at special points are all that do."""
    rng = np.random.default_rng(seed)
    b, below = ld.Builder("chain", gravity=(0.3 * rng.normal(), -1.0, 0.0)), "ground"
    for k in range(2):
        b.body(f"rod{k}", rng.uniform(0.5, 2.0), (0.5, 0.05, 0.0), (0.0, 0.05, 0.05))
        b.joint(f"joint{k}", "revolute", below, f"rod{k}", placement=(float(k > 0), 0.0, 0.0),
                stiffness=rng.uniform(0.2, 1.0), rest=rng.uniform(-2.5, 2.5))
        below = f"rod{k}"
    b.spring("spring", "ground", below, (*rng.uniform(-1.0, 2.0, 2), 0.0), (0.8, 0.0, 0.0), length=0.5,
             stiffness=rng.uniform(2.0, 20.0))
    robot = b.build()
    start = ld.trim(robot, rng.uniform(-2.0, 2.0, 2))
    branch = ld.continuation(robot, start, "rest:joint0", (-9.0, 9.0), points=80)
    assert len(branch) == 80 or branch.ended in ("span", "closed", "lost")
    unstable = (branch.eigenvalues.real > 1e-6 * np.abs(branch.eigenvalues).max()).sum(axis=1)
    assert unstable[-1] - unstable[0] == sum(each.unstable[1] - each.unstable[0] for each in branch.special)
    for each in branch.special:
        assert each.kind == "turning point"  # nothing is symmetric
        b.change("joint", "joint0", rest=each.parameter)
        stiffness = ld.linearize(b.build(), each.q, each.v, [0.0, 0.0]).A[2:, :2]
        assert np.linalg.svd(stiffness, compute_uv=False)[-1] < 1e-8 * np.linalg.norm(stiffness)
