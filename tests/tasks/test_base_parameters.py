"""Base parameters: published counts, an exact rank, groupings by hand; the regressor of loops and of joints."""
import warnings

import numpy as np
import pinocchio as pin
import pytest
import sympy as sp
from comparison import off
from pinocchio_models import pin_model

import liedyn as ld
from liedyn.model.inertial_parameters import PARAMETERS
from liedyn.tasks.identification.base import random_states

LOOPS = ["five_bar", "loader", "four_bars", "parallel_five_bar", "slider_crank", "delta", "stewart", "cassie_like"]


def planar_arm(gravity):
    """Two links of one plane, joints about z, the second at x = 0.7."""
    b = ld.Builder("2R", gravity=gravity)
    b.body("one", 1.0, (0.3, 0.0, 0.0), (0.1, 0.1, 0.1))
    b.body("two", 1.0, (0.3, 0.0, 0.0), (0.1, 0.1, 0.1))
    b.joint("q1", "revolute", "ground", "one")
    b.joint("q2", "revolute", "one", "two", (0.7, 0.0, 0.0))
    return b.build()


def rx90():
    """Staubli RX-90 by Khalil and Dombre's modified parameters (alpha, d, r): d3 and r4 are the two lengths."""
    b, parent = ld.Builder("RX-90"), "ground"
    for k, (alpha, d, r) in enumerate([(0, 0, 0), (1, 0, 0), (0, 0.45, 0), (-1, 0, 0.45), (1, 0, 0), (-1, 0, 0)], 1):
        b.body(f"link{k}", 1.0, (0.1, 0.1, 0.1), (0.1, 0.1, 0.1))
        turn = np.array([[1, 0, 0, d], [0, 1 - abs(alpha), -alpha, -r * alpha], [0, alpha, 1 - abs(alpha),
                                                                                r * (1 - abs(alpha))], [0, 0, 0, 1.0]])
        b.joint(f"q{k}", "revolute", parent, f"link{k}", turn)
        parent = f"link{k}"
    return b.build()


PUBLISHED = {
    "panda: Gaz et al. 2019": (lambda: ld.load("panda"), (), 43),
    "ur5, 7 n - 6 of an arm on a vertical axis: Khalil and Dombre 2002, chapter 9": (lambda: ld.load("ur5"), (), 36),
    "RX-90 with rotors: github.com/symoro/symoro, Robots/RX90/RX90_regp.txt": (rx90, ["armature"], 40),
    "RX-90: the same without its IA3 to IA6": (rx90, (), 36),
    "2R in a vertical plane: Khalil and Dombre 2002": (lambda: planar_arm((0.0, -9.81, 0.0)), (), 6),
    "2R in a horizontal plane": (lambda: planar_arm((0.0, 0.0, -9.81)), (), 4),
}


@pytest.mark.validation("numbers of base parameters", robots="panda, ur5, RX-90, 2R",
                        oracle="Published benchmarks, exact solutions")
@pytest.mark.parametrize("source", PUBLISHED)
def test_published_counts(source):
    make, include, count = PUBLISHED[source]
    base = ld.base_parameters(make(), include)
    assert off(len(base), count) == 0.0
    # no column is near the limit of 1e-6 between the two
    assert base.gap[0] > 1e-3 and base.gap[1] < 1e-12


PANDA = """
J1zz + J2yy | J2xx - J2yy + J3yy + 2*c*h3z + c*c*m3 + (c*c + a*a)*(m4 + m5 + m6 + m7) | J2xy | J2xz | J2yz
J2zz + J3yy + 2*c*h3z + c*c*m3 + (c*c + a*a)*(m4 + m5 + m6 + m7) | J3xx - J3yy + J4yy - a*a*m4 | J3xy + a*h4z | J3xz
J3yz | J3zz + J4yy + a*a*m4 + 2*a*a*(m5 + m6 + m7) | J4xx - J4yy + J5yy + 2*d*h5z + (d*d - a*a)*(m5 + m6 + m7)
J4xy + a*h5z + a*d*(m5 + m6 + m7) | J4xz | J4yz | J4zz + J5yy + 2*d*h5z + (d*d + a*a)*(m5 + m6 + m7)
J5xx - J5yy + J6yy + e*e*m7 | J5xy | J5xz | J5yz | J5zz + J6yy + e*e*m7 | J6xx - J6yy + J7yy - e*e*m7 | J6xy + e*h7z
J6xz | J6yz | J6zz + J7yy + e*e*m7 | J7xx - J7yy | J7xy | J7xz | J7yz | J7zz | h2x
h2y - h3z - c*(m3 + m4 + m5 + m6 + m7) | h3x + a*(m4 + m5 + m6 + m7) | h3y - h4z | h4x - a*(m5 + m6 + m7)
h4y + h5z + d*(m5 + m6 + m7) | h5x | h5y - h6z | h6x + e*m7 | h6y - h7z | h7x | h7y"""
"""The dynamic coefficients that Gaz et al. identified, in first moments h and moments of inertia about the joints."""


RX90 = """
J1zz + J2yy + J3yy + d*d*(m3 + m4 + m5 + m6) + A1 | J2xx - J2yy - d*d*(m3 + m4 + m5 + m6) | J2xy | J2xz - d*h3z | J2yz
J2zz + d*d*(m3 + m4 + m5 + m6) + A2 | h2x + d*(m3 + m4 + m5 + m6) | h2y
J3xx - J3yy + J4yy + 2*r*h4z + r*r*(m4 + m5 + m6) | J3xy | J3xz | J3yz | J3zz + J4yy + 2*r*h4z + r*r*(m4 + m5 + m6)
h3x | h3y + h4z + r*(m4 + m5 + m6) | A3 | J4xx - J4yy + J5yy | J4xy | J4xz | J4yz | J4zz + J5yy | h4x | h4y - h5z | A4
J5xx - J5yy + J6yy | J5xy | J5xz | J5yz | J5zz + J6yy | h5x | h5y + h6z | A5
J6xx - J6yy | J6xy | J6xz | J6yz | J6zz | h6x | h6y | A6"""
"""Those that SYMORO prints for RX-90, with the rotors A (Robots/RX90/RX90_regp.txt of github.com/symoro/symoro)."""
GROUPINGS = {
    "panda": (lambda: ld.load("panda"), "panda_link{}", (), PANDA, {"a": 0.0825, "c": 0.316, "d": 0.384, "e": 0.088}),
    "RX-90": (rx90, "link{}", ["armature"], RX90, {"d": 0.45, "r": 0.45}),
}


@pytest.mark.validation("base parameters and their groupings (Gaz et al. 2019, their code; SYMORO)",
                        robots="panda, RX-90", oracle="Published benchmarks, exact solutions")
@pytest.mark.parametrize("name", GROUPINGS)
def test_published_groupings(name):
    """Theirs are as many combinations as ours, and vanish where ours do."""
    make, link, include, text, known = GROUPINGS[name]
    base, count = ld.base_parameters(make(), include), 7 if name == "panda" else 6
    letters = dict(zip(["m", "hx", "hy", "hz", "Jxx", "Jxy", "Jxz", "Jyy", "Jyz", "Jzz"], PARAMETERS))
    ours = {f"{letter[0]}{k}{letter[1:]}": f"{link.format(k)}.{word}"
            for k in range(1, count + 1) for letter, word in letters.items()}
    ours |= {f"A{k}": f"q{k}.armature" for k in range(1, count + 1)} if include else {}
    units = dict(zip(ours, np.eye(len(ours))))
    theirs = np.array([eval(term, {}, known | units) for term in text.strip().replace("\n", "|").split("|")])
    columns = [base.parameters.index(word) for word in ours.values()]
    assert len(theirs) == np.linalg.matrix_rank(theirs) == len(base)
    hidden = np.linalg.svd(base.coefficients[:, columns])[2][len(base):]
    assert off(theirs @ hidden.T, np.zeros((len(theirs), len(hidden)))) < 1e-12


@pytest.mark.validation("numbers of base parameters of floating bases, 10 + 7 n",
                        robots="solo12, talos", oracle="Pinocchio")
@pytest.mark.parametrize("name, joints", [("solo12", 12), ("talos", 32)])
def test_counts_of_floating_bases(name, joints):
    """Three of each body are masses on the axis of its joint, which its parent may carry as well; others are seen.

    That those are hidden is shown by the regressor, that no other is by the rank of Pinocchio's.
    """
    robot = ld.load(name)
    base, rng, hidden = ld.base_parameters(robot), np.random.default_rng(5), []
    for joint in robot.model.joints[1:]:  # behind the free one
        masses = np.outer([-1, 0, 1], joint.axes[0]) if joint.kind == "revolute" else rng.normal(size=(10, 3))
        for x in masses:  # of a body that is fixed anywhere
            row = np.zeros((robot.nbodies, 10))
            row[robot.body_names.index(joint.child)] = particle(x)
            row[robot.body_names.index(joint.parent)] = -particle(joint.placement[:3] @ [*x, 1.0])
            hidden.append(row.ravel())
    q, v, a = random_states(robot, 40, rng)
    Y = ld.regressor(robot, q, v, a)
    assert abs(Y @ np.transpose(hidden)).max() < 1e-10 * abs(Y).max()
    oracle = pin_model(robot)
    moving = sorted({oracle.model.frames[frame].parentJoint for frame in oracle.frames.values()} - {0})
    columns = (10 * (np.array(moving)[:, None] - 1) + np.arange(10)).ravel()
    theirs = np.concatenate([
        pin.computeJointTorqueRegressor(oracle.model, oracle.data, *oracle.to_pin(*state))[:, columns]
        for state in zip(q, v, a)])
    s = np.linalg.svd(theirs / np.linalg.norm(theirs, axis=0).clip(1e-300), compute_uv=False)
    rank = (s > 1e-9 * s[0]).sum()
    assert s[rank:].max() < 1e-13 * s[0]
    assert off([len(base), Y.shape[-1] - np.linalg.matrix_rank(hidden), rank], [10 + 7 * joints] * 3) == 0.0
    assert base.gap[0] > 1e-3 and base.gap[1] < 1e-12


def particle(x):
    """The ten parameters of a mass of 1 at x."""
    J = x @ x * np.eye(3) - np.outer(x, x)
    return np.concatenate([[1.0], x, J[np.triu_indices(3)]])


def test_groupings_by_hand():
    """Khalil and Dombre 2002, chapter 9: what a joint does not tell of a body goes to the one that carries it."""
    base = ld.base_parameters(planar_arm((0.0, -9.81, 0.0)), ["armature", "damping"])
    assert str(base).splitlines() == [
        "one.Jzz + 0.49 two.m + q1.armature", "one.mx + 0.7 two.m", "one.my", "two.Jzz", "two.mx", "two.my",
        "q2.armature", "q1.damping", "q2.damping"]
    assert "one.Jxx" in base.unidentifiable and "two.m" in base.grouped and "two.Jzz" in base.alone
    assert len(base.alone) + len(base.grouped) + len(base.unidentifiable) == len(base.parameters) == 24


def test_of_a_five_bar():
    """Two arms of six each that share the pin at the apex: a mass there belongs to both, which makes eleven."""
    base = ld.base_parameters(ld.load("five_bar"))
    assert len(base) == 11 and base.gap[0] > 1e-2 and base.gap[1] < 1e-11


@pytest.mark.validation("base parameters and their groupings", robots="skew arm of two joints",
                        oracle="Lagrange's equations by SymPy, in rational numbers")
def test_against_an_exact_rank():
    """Lagrange's equations of an arm with skew axes in symbols; their rank at rational sines is exact."""
    b = ld.Builder("skew", gravity=(0.0, 0.0, -9.81))
    turn = np.array([[1, 0, 0, 0.5], [0, 0.6, -0.8, 0.25], [0, 0.8, 0.6, 0.0], [0, 0, 0, 1.0]])
    for name, parent, place in (("one", "ground", turn), ("two", "one", turn)):
        b.body(name, 1.0, (0.1, 0.2, 0.3), (0.4, 0.4, 0.4))
        b.joint(f"q{name}", "revolute", parent, name, place)
    base = ld.base_parameters(b.build())
    W = exact_regressor(sp.Matrix(4, 4, [sp.Rational(str(float(x))) for x in turn.ravel()]))
    assert len(base) == W.rank()
    # the exact columns that are kept span all of them, with the same coefficients
    assert W[:, [int(k) for k in base.columns]].rank() == W.rank()
    whole, kept = np.array(W, dtype=float), np.array(W[:, [int(k) for k in base.columns]], dtype=float)
    assert off(kept @ base.coefficients, whole) < 1e-10  # solved by a triangle of condition 1e3


def exact_regressor(turn):
    """Twenty columns of rational numbers, those of two bodies, two rows for each of 15 states."""
    q, v, a = sp.symbols("q:2"), sp.symbols("v:2"), sp.symbols("a:2")
    pose, lagrangian = sp.eye(4), []
    for k in range(2):
        c, s = sp.cos(q[k]), sp.sin(q[k])
        pose = pose * turn * sp.Matrix([[c, -s, 0, 0], [s, c, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
        rate = sum((pose.diff(q[j]) * v[j] for j in range(2)), sp.zeros(4, 4))
        square = rate.T * rate  # kinetic energy tr(rate P rate^T) / 2 with the pseudo-inertia P
        height = sp.Rational(981, 100) * pose[2, :]
        for row in np.eye(10):
            P = pseudo_inertia([int(x) for x in row])
            lagrangian.append((square * P).trace() / 2 - sum(height[j] * P[j, 3] for j in range(4)))
    rows = [[sum(L.diff(v[i], q[j]) * v[j] + L.diff(v[i], v[j]) * a[j] for j in range(2)) - L.diff(q[i])
             for L in lagrangian] for i in range(2)]
    sines = [sp.Symbol(f"{f}{k}") for k in range(2) for f in "sc"]
    known = {f(q[k]): sines[2 * k + n] for k in range(2) for n, f in enumerate((sp.sin, sp.cos))}
    Y, rng = sp.Matrix(rows).subs(known), np.random.default_rng(0)
    states = []
    for _ in range(15):
        halves = [sp.Rational(int(x), 10) for x in rng.integers(-30, 30, size=2)]
        at = [f(t) for t in halves for f in (lambda t: 2 * t / (1 + t ** 2), lambda t: (1 - t ** 2) / (1 + t ** 2))]
        at += [sp.Rational(int(x), 10) for x in rng.integers(-30, 30, size=4)]
        states.append(Y.xreplace(dict(zip((*sines, *v, *a), at))))
    return sp.Matrix.vstack(*states)


def pseudo_inertia(pi):
    m, hx, hy, hz, xx, xy, xz, yy, yz, zz = map(sp.Rational, pi)
    half = (xx + yy + zz) / 2
    return sp.Matrix([[half - xx, -xy, -xz, hx], [-xy, half - yy, -yz, hy], [-xz, -yz, half - zz, hz], [hx, hy, hz, m]])


@pytest.mark.parametrize("name", LOOPS)
def test_the_regressor_of_loops_against_inverse_dynamics(name):
    """K^T tau of forces that produce the motion, K column by column from the velocities that the loops allow."""
    robot, rng = ld.load(name), np.random.default_rng(1)
    q, v, a = random_states(robot, 4, rng)
    parameters = np.array(list(ld.dynamic_parameters(robot, ["armature", "damping"]).values()))
    w = list(robot.independent) or list(ld.linearize(robot, q[0], v[0], tau=np.zeros(robot.nv)).independent)
    Y = ld.regressor(robot, q, v, a, ["armature", "damping"], independent=w)
    nothing = np.zeros_like(v)  # springs are no parameters: what they bear is taken away
    springs = ld.rnea(robot, q, nothing, nothing) - np.einsum(
        "sjbk,bk->sj", ld.inertial_regressor(robot, q, nothing, nothing), ld.inertial_parameters(robot))
    for k in range(len(q)):
        rates = a[k][[robot.velocity_index(x) for x in w]]
        tau = ld.inverse_dynamics(robot, q[k], v[k], rates, independent=w, active=robot.velocity_names).tau
        K = np.stack([ld.complete_velocity(robot, q[k], dict(zip(w, unit))) for unit in np.eye(len(w))], axis=1)
        K -= ld.complete_velocity(robot, q[k], dict.fromkeys(w, 0.0))[:, None]
        expected = K.T @ (tau - springs[k])
        # conditions of K up to a hundred on the walk from home
        assert abs(Y[k] @ parameters - expected).max() < 1e-10 * max(abs(K).max() * abs(tau).max(), 1.0)


@pytest.mark.parametrize("name", ["panda", "five_bar", "loader", "stewart", "solo12"])
def test_base_parameters_say_the_same(name):
    """On states that they were not found from."""
    robot = ld.load(name)
    base = ld.base_parameters(robot, ["damping"])
    q, v, a = random_states(robot, 6, np.random.default_rng(7))
    Y = ld.regressor(robot, q, v, a, ["damping"])
    rng = np.random.default_rng(8)
    for _ in range(3):
        pi = rng.normal(size=Y.shape[-1])
        # columns of which less than 1e-6 is independent are dropped: of stewart, whose dimensions have six digits
        assert off(Y[..., base.columns] @ (base.coefficients @ pi), Y @ pi) < (1e-5 if name == "stewart" else 1e-9)


def test_a_motion_that_excites_less():
    """Joint 2 alone moves, in the plane of both: of eight parameters of a 2R with damping five have a say."""
    arm = planar_arm((0.0, -9.81, 0.0))
    t = np.linspace(0.0, 5.0, 50)[:, None]
    q, v, a = (t * 0.0 + [0.3, 0.0]) + np.sin(t) * [0, 1], np.cos(t) * [0, 1], -np.sin(t) * [0, 1]
    base, whole = ld.base_parameters(arm, q=q, v=v, a=a), ld.base_parameters(arm)
    assert len(base) < len(whole) == 6
    with pytest.raises(ld.InputError, match="q, v and a"):
        ld.base_parameters(arm, q=q, v=v)


def test_a_rank_that_is_not_clear_is_told():
    """The dimensions of stewart have six digits: two combinations are independent by 4.0e-7 and 2.6e-7 of a column."""
    robot = ld.load("stewart")
    with pytest.warns(ld.IdentificationWarning, match="of 'stewart', 82, is not clear: .* 2.6e-07") as told:
        base = ld.base_parameters(robot, tolerance=3e-7)
    assert told[0].filename == __file__ and base.gap[0] < 2.0 * base.gap[1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [len(ld.base_parameters(robot, tolerance=limit)) for limit in (1e-6, 1e-7)] == [82, 83]


def test_results_are_the_same_again():
    one, two = (ld.base_parameters(ld.load("loader"), ["coulomb"], seed=3) for _ in range(2))
    assert one.expressions == two.expressions and (one.coefficients == two.coefficients).all()


def test_what_is_included_is_checked():
    panda = ld.load("panda")
    for include, what in ((["friction"], "unknown parameter of joints 'friction'"), (3, "include must be names"),
                          ({"damping": ["panda_joint9"]}, "no coordinate 'panda_joint9'")):
        with pytest.raises(ld.InputError, match=what):
            ld.dynamic_parameters(panda, include)
    b = ld.Builder.of(panda)
    b.friction("f", "panda_joint1", coulomb=2.0)
    b.friction("g", "panda_joint2", coulomb=2.0, static=3.0)
    rubbing = b.build()
    assert ld.dynamic_parameters(rubbing, {"coulomb": ["panda_joint1"]})["panda_joint1.coulomb"] == 2.0
    with pytest.raises(ld.ModelError, match="'g' has more than dry friction"):
        ld.dynamic_parameters(rubbing, ["coulomb"])
    assert len(ld.dynamic_parameters(ld.load("solo12"), ["damping"])) == 170 + 12  # none of its free base
