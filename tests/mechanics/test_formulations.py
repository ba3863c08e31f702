"""Eight formulations, one answer: against 40-digit solutions, on every mechanism, and by the laws of mechanics."""
import numpy as np
import pytest
from closed_chains import closed_mechanism, moving_state, off, two_branches
from constrained_oracle import solve
from mechanisms import random_pose, random_q
from test_constraint_rows import swing
from tree_cases import bundled

import liedyn as ld
from liedyn.mechanics.dynamics.forward import AT_SINGULAR, METHODS
from liedyn.mechanics.dynamics.terms import terms_kernel
from liedyn.model.kinds import LOOP_KINDS

MACHINES = ["four_bar", "parallel_four_bar", "five_bar", "loader", "stewart", "parallel_five_bar", "delta",
            "cassie_like"]
VARIANTS = [
    ("nullspace", {"independent": "auto"}),
    ("nullspace", {"independent": "tangent"}),
    ("multiplier", {}),
    ("svd", {}),
    ("projection", {}),
    ("projection", {"inertia": "M_c'"}),
    ("projection", {"inertia": "M_c''"}),
    ("projection", {"inertia": "M_c''", "scale": 0.3}),
    ("projection", {"metric": "inertia"}),
    ("udwadia_kalaba", {}),
    ("kane", {"independent": "auto"}),
    ("kane", {"condition_limit": 0.0}),
    ("unified", {}),
    ("momenta", {"independent": "auto"}),
    ("momenta", {"independent": "tangent"}),
]
NAMES = [" ".join([method, *map(str, options.values())]) for method, options in VARIANTS]
each_variant = pytest.mark.parametrize("method, options", VARIANTS, ids=NAMES)
# the worst is delta: 1e-11 of a body's inertia beside that of the platform
AGREE = 1e-9
DIGITS = "Equations of motion with multipliers, solved in 40 digits"


def moving(name):
    if name in LOOP_KINDS:
        robot, q = closed_mechanism(name)
    else:
        robot = bundled(name)
        q = robot.home
    return robot, q, *moving_state(robot, q)


def terms(robot, q, v):
    return terms_kernel(robot.packed, np.array(q), np.array(v), np.empty(0))


def exact(robot, q, v, tau, alpha=0.0, beta=0.0):
    M, h, G, residual, psi, gamma = terms(robot, q, v)
    return solve(M, h, G, gamma - 2 * alpha * psi - beta ** 2 * residual, tau)


SOLVED = {}


@pytest.mark.validation("accelerations and multipliers of all formulations", oracle=DIGITS,
                        robots="machines with loops, and one for every cut joint")
@pytest.mark.parametrize("name", MACHINES + list(LOOP_KINDS))
@each_variant
def test_all_agree(name, method, options):
    robot, q, v, tau = moving(name)
    if name not in SOLVED:
        SOLVED[name] = exact(robot, q, v, tau)
    a, lam = SOLVED[name]
    r = ld.forward_dynamics(robot, q, v, tau, method=method, **options)
    assert off(r.a, a) < AGREE
    assert off(r.lam, lam) < AGREE
    G = ld.constraint_jacobian(robot, q)
    assert r.rank == np.linalg.matrix_rank(G, tol=1e-8 * np.linalg.norm(G, 2))
    assert len(r.redundant_rows) == len(robot.row_names) - r.rank
    assert r.condition >= 1.0
    assert off(r.constraint_force, G.T @ lam) < AGREE
    # ideal constraints do no work on motions that they admit
    assert abs(r.constraint_force @ v) < 1e-9 * np.abs(r.constraint_force * v).sum() + 1e-12


def everything(seed=2):
    """Holonomic, nonholonomic and moving constraints at once, none of them satisfied."""
    rng = np.random.default_rng(seed)
    builder, (a, b) = two_branches(rng, kinds_a=("universal", "spherical", "revolute"), kinds_b=("free", "prismatic"))
    builder.constraint("rod", "distance", a, b, length=0.7)
    builder.constraint("blade", "knife_edge", a, "ground", random_pose(rng), child_axis=(0.2, 1.0, -0.3))
    builder.constraint("guide", "on_plane", "ground", b, axis=(0.3, -0.2, 0.9), target=swing)
    builder.constraint("gear", "coupling", coefficients={"j_trunk": 1.5, "j_b1": -0.4}, offset=0.2)
    builder.constraint("ball", "sphere_on_plane", "trunk", b, random_pose(rng), radius=0.3)
    robot = builder.build().at(0.4)
    return robot, random_q(rng, robot), rng.normal(size=robot.nv), 3.0 * rng.normal(size=robot.nv)


@each_variant
def test_every_constraint_at_once(method, options):
    """Off the constraints, too, as a simulation meets them; rows are independent here, so all ask for the same."""
    robot, q, v, tau = everything()
    M, h, G, residual, psi, gamma = terms(robot, q, v)
    if method == "unified":
        r = ld.forward_dynamics(robot, q, v, tau, method=method, sigma=6.0)
        a, lam = solve(M, h, G, gamma - 6.0 * psi, tau)
        assert off(G @ r.a - gamma, -6.0 * psi) < 1e-11  # psi' = -sigma psi in every row
    else:
        r = ld.forward_dynamics(robot, q, v, tau, method=method, baumgarte=(3.0, 4.0), **options)
        a, lam = exact(robot, q, v, tau, 3.0, 4.0)
    assert r.rank == len(robot.row_names) and r.redundant_rows == ()
    assert off(r.a, a) < 1e-10
    assert off(r.lam, lam) < 1e-10
    assert {name: len(rows) for name, rows in r.multipliers.items()} == {
        "rod": 1, "blade": 1, "guide": 1, "gear": 1, "ball": 3}
    assert np.array_equal(np.concatenate(list(r.multipliers.values())), r.lam)


@each_variant
def test_switched_off(method, options):
    """All off: the open tree. Some off: as if they had never been there."""
    robot, q, v, tau = everything()
    free = robot.switched({name: False for name in robot.constraint_names})
    r = ld.forward_dynamics(free, q, v, tau, method=method, **options)
    assert off(r.a, ld.aba(robot, q, v, tau)) < 1e-11
    assert r.rank == 0 and r.redundant_rows == () and not r.lam.any() and r.condition >= 1.0
    some = robot.switched(rod=False, ball=False)
    r = ld.forward_dynamics(some, q, v, tau, method=method, **options)
    M, h, G, _, _, gamma = terms(some, q, v)
    assert off(r.a, solve(M, h, G, gamma, tau)[0]) < 1e-10
    assert not r.multipliers["rod"].any() and not r.multipliers["ball"].any() and r.multipliers["gear"].all()


@each_variant
def test_batches_and_wrenches(method, options):
    robot, q, _, _ = moving("five_bar")
    states = [moving_state(robot, q, seed) for seed in range(6)]
    v, tau = (np.array(x).reshape(2, 3, 4) for x in zip(*states))
    push = {"link2": [0.0, 0.0, 1.0, 2.0, -3.0, 0.0]} if "link2" in robot.body_names else {
        robot.body_names[1]: [0.0, 0.0, 1.0, 2.0, -3.0, 0.0]}
    r = ld.forward_dynamics(robot, q, v, tau, method=method, f_ext=push, **options)
    assert r.a.shape == (2, 3, 4) and r.lam.shape == (2, 3, 5) and r.rank.shape == r.condition.shape == (2, 3)
    assert r.constraint_force.shape == (2, 3, 4) and r.constraint_wrenches["pin"].shape == (2, 3, 6)
    for k in np.ndindex(2, 3):
        one = ld.forward_dynamics(robot, q, v[k], tau[k], method=method, f_ext=push, **options)
        assert off(r.a[k], one.a) < 1e-13 and off(r.lam[k], one.lam) < 1e-13
    without = ld.forward_dynamics(robot, q, v, tau, method=method, **options)
    assert np.abs(without.a - r.a).max() > 0.01


@pytest.mark.parametrize("name", MACHINES)
def test_principle_of_gauss(name):
    """Of all accelerations that fit the constraints, the true one has the least constraint (a - a_f)^T M (a - a_f)."""
    robot, q, v, tau = moving(name)
    M, h, G, _, _, gamma = terms(robot, q, v)
    a = ld.forward_dynamics(robot, q, v, tau, method="udwadia_kalaba").a
    impressed = tau - h - M @ a  # M (a_f - a)
    _, s, Vt = np.linalg.svd(G)
    K = Vt[(s > 1e-8 * s[0]).sum():].T
    assert np.abs(K.T @ impressed).max() < 1e-10 * max(1.0, np.abs(impressed).max())
    assert off(G @ a, gamma) < 1e-10


SINGULAR = np.array([np.pi, -np.pi, 0.0, np.pi])


@each_variant
def test_singular_configuration(method, options):
    """Five-bar, all links on one line (Spencer 2004, example 1): pseudoinverses have one more motion there."""
    robot = bundled("five_bar")
    G = ld.constraint_jacobian(robot, SINGULAR)
    assert np.abs(ld.closure_error(robot, SINGULAR)).max() < 1e-12
    v, tau = np.linalg.svd(G)[2][-1], np.array([1.0, -2.0, 0.5, 3.0])
    if method not in AT_SINGULAR:
        with pytest.raises(ld.SingularConfigurationError, match="rank of its constraints is 1 here") as error:
            ld.forward_dynamics(robot, SINGULAR, v, tau, method=method, **options)
        assert error.value.singular_values[1] < 1e-14
        return
    r = ld.forward_dynamics(robot, SINGULAR, v, tau, method=method, **options)
    M, h, G, _, _, gamma = terms(robot, SINGULAR, v)
    assert r.rank == 1 and r.singular is True
    # rows that are left contradict each other by what G has lost: pseudoinverse where it is one, a row elsewhere
    K = np.linalg.svd(G)[2][1:].T
    assert np.abs(K.T @ (M @ r.a + h - tau)).max() < 1e-10


def test_singular_values_and_indicator():
    robot = bundled("five_bar")
    regular = ld.forward_dynamics(robot, robot.home, np.zeros(4), np.zeros(4), method="svd")
    s = np.linalg.svd(ld.constraint_jacobian(robot, robot.home), compute_uv=False)
    assert off(regular.singular_values[:4], s) < 1e-13 and not regular.indicator.any()
    v = np.linalg.svd(ld.constraint_jacobian(robot, SINGULAR))[2][-1]
    r = ld.forward_dynamics(robot, SINGULAR, v, np.zeros(4), method="svd")
    gamma = terms(robot, SINGULAR, v)[5]
    U, s, _ = np.linalg.svd(ld.constraint_jacobian(robot, SINGULAR))
    assert r.singular_values[1] < 1e-14 and off(r.singular_values[:1], s[:1]) < 1e-13
    assert abs(r.indicator[1] - np.linalg.norm(gamma - U[:, 0] * (U[:, 0] @ gamma))) < 1e-12
    for method in set(METHODS) - {"svd"}:
        other = ld.forward_dynamics(robot, robot.home, v, np.zeros(4), method=method)
        assert other.singular_values is None and other.indicator is None


def test_named_coordinates_at_a_singular_configuration():
    robot = bundled("five_bar")
    with pytest.raises(ld.SingularConfigurationError, match="q1, q2 do not determine") as error:
        ld.forward_dynamics(robot, SINGULAR, np.zeros(4), np.zeros(4), independent=("q1", "q2"))
    assert error.value.singular_values[3] < 1e-12
    with pytest.raises(ld.InputError, match="3 independent coordinates were given"):
        ld.forward_dynamics(robot, robot.home, np.zeros(4), np.zeros(4), independent=("q1", "q2", "q3"))


@pytest.mark.parametrize("method", METHODS)
def test_declared_coordinates_are_a_default_and_no_demand(method):
    """Where the robot's own choice does not fit, because of a switch or of the place, pivoting chooses."""
    robot = bundled("five_bar")
    tau = np.array([1.0, -2.0, 0.5, 3.0])
    in_line = ld.close(robot, robot.home, q4=0.0)  # q1 and q2 do not tell where the last two links go
    for here, q, p in ((robot.switched(pin=False), robot.home, 4), (robot, in_line, 2)):
        r = ld.forward_dynamics(here, q, np.zeros(4), tau, method=method)
        assert off(r.a, exact(here, q, np.zeros(4), tau)[0]) < 1e-11
        assert len(r.independent) == (p if method in ("nullspace", "kane", "momenta") else 0)


def test_kane_chooses_again():
    """Speeds given are kept where they serve, and given up where they do not."""
    robot = bundled("five_bar")
    v, tau = moving_state(robot, robot.home)
    given = ("q1", "q2")
    r = ld.forward_dynamics(robot, robot.home, v, tau, method="kane", independent=given)
    assert r.independent == given
    limit = 0.9 * r.condition
    again = ld.forward_dynamics(robot, robot.home, v, tau, method="kane", independent=given, condition_limit=limit)
    assert again.independent != given and again.condition < limit
    assert off(again.a, r.a) < 1e-12
    in_line = ld.close(robot, robot.home, q4=0.0)
    r = ld.forward_dynamics(robot, in_line, np.zeros(4), tau, method="kane", independent=given)
    assert len(r.independent) == 2 and r.independent != given
    with pytest.raises(ld.InputError, match="not of cut joints: pin"):
        ld.forward_dynamics(robot, robot.home, v, tau, method="kane", independent=("q1", "pin"))


def massless_tree():
    """A slider on a massless rod that a second pin holds: only the loop gives the rod's angle an inertia."""
    b = ld.Builder("massless", gravity=(0.0, -9.81, 0.0))
    b.body("crank", 1.0, (0.5, 0, 0), (0.1, 0.1, 0.1))
    b.body("rod", 0.0, (0, 0, 0), (0, 0, 0))
    b.body("slider", 2.0, (0, 0, 0), (0.1, 0.1, 0.1))
    b.joint("crank", "revolute", "ground", "crank")
    b.joint("rod", "revolute", "crank", "rod", placement=(1, 0, 0))
    b.joint("slider", "prismatic", "ground", "slider", axis=(1, 0, 0))
    b.loop("pin", "revolute", "rod", "slider", parent_placement=(2, 0, 0))
    return b.build()


@each_variant
def test_massless_bodies(method, options):
    robot = massless_tree()
    assert robot.singular_tree == ("rod",)
    q = ld.close(robot, [0.7, -1.1, 2.5], crank=0.7)
    v = ld.complete_velocity(robot, q, {"crank": 1.3})
    tau = np.array([2.0, 0.0, -1.0])
    inverts_M = method == "projection" and ("metric" in options or options.get("inertia") != "M_c''")
    if method in ("multiplier", "udwadia_kalaba") or inverts_M:
        with pytest.raises(ld.SingularConfigurationError, match="motion of rod, which only .* use 'nullspace', 'svd'"):
            ld.forward_dynamics(robot, q, v, tau, method=method, **options)
        return
    r = ld.forward_dynamics(robot, q, v, tau, method=method, **options)
    a, lam = exact(robot, q, v, tau)
    assert off(r.a, a) < 1e-11 and off(r.lam, lam) < 1e-11


@pytest.mark.parametrize("options, message", [
    ({"method": "xyz"}, "unknown method 'xyz', known: 'nullspace', 'multiplier'"),
    ({"method": ["svd"]}, r"unknown method \['svd'\]"),
    ({"rank_tolerance": -1.0}, "rank_tolerance must be finite and not negative, got -1.0"),
    ({"method": "nulspace"}, "did you mean 'nullspace'"),
    ({"method": "svd", "sigma": 1.0}, "'svd' takes no option 'sigma': it takes baumgarte; 'sigma' is for 'unified'"),
    ({"method": "unified", "baumgarte": (1, 1)}, "'unified' takes no option 'baumgarte'"),
    ({"method": "svd", "independent": "auto"}, "'independent' is for 'nullspace', 'kane'"),
    ({"baumgarte": 3.0}, r"baumgarte must be two numbers \(alpha, beta\), got 3.0"),
    ({"method": "svd", "baumgarte": (1, 2, 3)}, "baumgarte must be two numbers"),
    ({"method": "multiplier", "baumgarte": (-1.0, 2.0)}, "baumgarte alpha must be finite and not negative, got -1.0"),
    ({"method": "unified", "sigma": np.nan}, "sigma must be finite"),
    ({"method": "unified", "sigma": "fast"}, "sigma must be a number, got 'fast'"),
    ({"method": "projection", "inertia": "M_d"}, "unknown constraint inertia matrix 'M_d', did you mean"),
    ({"method": "projection", "inertia": "M_c''", "scale": 0.0}, "scale must be positive and finite, got 0.0"),
    ({"method": "projection", "metric": [1.0, 2.0]}, r"metric must have shape \(4,\) or \(4, 4\), got \(2,\)"),
    ({"method": "projection", "metric": [1.0, 2.0, -1.0, 1.0]}, "metric must be symmetric and positive definite"),
    ({"method": "projection", "metric": "mass"}, "unknown metric 'mass'; there is 'inertia'"),
    ({"method": "kane", "condition_limit": -1.0}, "condition_limit must be finite and not negative, got -1.0"),
])
def test_bad_options(options, message):
    robot = bundled("five_bar")
    with pytest.raises(ld.InputError, match=message):
        ld.forward_dynamics(robot, robot.home, np.zeros(4), np.zeros(4), **options)


@pytest.mark.parametrize("method", METHODS)
def test_bad_states(method):
    robot = bundled("five_bar")
    with pytest.raises(ld.InputError, match=r"tau is not finite: tau\[2\] = nan"):
        ld.forward_dynamics(robot, robot.home, np.zeros(4), [0.0, 0.0, np.nan, 0.0], method=method)
    with pytest.raises(ld.InputError, match="at least one state"):
        ld.forward_dynamics(robot, np.zeros((0, 4)), np.zeros((0, 4)), np.zeros((0, 4)), method=method)


@pytest.mark.parametrize("method", METHODS)
def test_no_constraints_at_all(method):
    robot = bundled("panda")
    rng = np.random.default_rng(1)
    v, tau = rng.normal(size=(2, 7))
    r = ld.forward_dynamics(robot, robot.home, v, tau, method=method)
    assert off(r.a, ld.aba(robot, robot.home, v, tau)) < 1e-11
    assert r.lam.shape == (0,) and r.rank == 0 and r.constraint_wrenches == {} and r.multipliers == {}
