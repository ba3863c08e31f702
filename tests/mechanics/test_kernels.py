"""Kernels in users' own compiled code, unchecked and checked."""
import inspect
import re

import numpy as np
import pytest
from mechanisms import MOVING_KINDS, random_tree
from processes import python
from users import kept

import liedyn as ld
from liedyn import kernels
from liedyn.machine.simd.lanes import LANES, SCALAR
from liedyn.mechanics.constraints.independent import choose
from liedyn.model.calls.checked import SHAPES, check
from liedyn.model.calls.recursion import RECURSIONS


@pytest.fixture(scope="module")
def tree():
    return random_tree(np.random.default_rng(3), [*MOVING_KINDS, "revolute"]).build()


@pytest.fixture(scope="module")
def state(tree):
    rng = np.random.default_rng(4)
    return ld.random_configuration(tree, rng, 5), *rng.normal(size=(2, 5, tree.nv))


@kept
def trajectory(model, q, v, x, work, tau, a, M):
    none = np.empty(0)
    for t in range(len(q)):
        kernels.rnea(SCALAR, model, q[t], v[t], x[t], none, work, tau[t])
        kernels.aba(SCALAR, model, q[t], v[t], x[t], none, work, a[t])
        kernels.crba(SCALAR, model, q[t], work, M[t])

NO_KERNELS = {"OK", "RANK_TOLERANCE", "SCALAR", "driving", "inverse_dynamics", "step", "stepping", "workspace"}
"""What is no kernel whose arguments are checked (`inverse_dynamics` is tested with the public function)."""


def test_a_loop_of_ones_own(tree, state):
    q, v, x = state
    tau, a, M = np.empty_like(v), np.empty_like(v), np.empty((len(v), tree.nv, tree.nv))
    trajectory(tree.packed, q, v, x, kernels.workspace(tree), tau, a, M)
    np.testing.assert_allclose(tau, ld.rnea(tree, q, v, x), rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(a, ld.aba(tree, q, v, x), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(M, ld.crba(tree, q), rtol=1e-13, atol=1e-13)


def calls(tree, q, v, x, work):
    """Arguments after `ints, floats`, sizes of the results, and what the public function says, for every kernel."""
    n, none, b = tree.nv, np.empty(0), tree.nbodies - 1
    body = tree.body_names[b]
    poses = ld.forward_kinematics(tree, q)
    numbers = np.concatenate([poses[:, :3, :3].reshape(-1, 9), poses[:, :3, 3]], axis=1)
    yield "rnea", (q, v, x, none, work), [n], [ld.rnea(tree, q, v, x)]
    yield "aba", (q, v, x, none, work), [n], [ld.aba(tree, q, v, x)]
    yield "crba", (q, work), [n * n], [ld.crba(tree, q)]
    yield ("rnea_derivatives", (q, v, x, none, work), [n] + 3 * [n * n],
           [None, *ld.rnea_derivatives(tree, q, v, x)])
    yield ("aba_derivatives", (q, v, x, none, work), [n] + 4 * [n * n],
           [ld.aba(tree, q, v, x), None, *ld.aba_derivatives(tree, q, v, x)])
    yield ("rnea_derivatives_nonzeros", (q, v, x, none, work), [n] + 3 * [n * n],
           [None, *ld.rnea_derivatives(tree, q, v, x)])
    yield ("aba_derivatives_nonzeros", (q, v, x, none, work), [n] + 4 * [n * n],
           [ld.aba(tree, q, v, x), None, *ld.aba_derivatives(tree, q, v, x)])
    for ending in ("", "_nonzeros"):
        yield (f"rnea_second_derivatives{ending}", (q, v, x, none, work), 4 * [n**3],
               [*ld.rnea_second_derivatives(tree, q, v, x)])
        yield (f"rnea_hessian{ending}", (q, v, x, v, none, work), 4 * [n * n],
               [*ld.rnea_second_derivatives(tree, q, v, x, weights=v)])
    yield ("aba_second_derivatives", (q, v, x, none, work), 4 * [n**3], [*ld.aba_second_derivatives(tree, q, v, x)])
    yield ("aba_hessian", (q, v, x, v, none, work), 4 * [n * n],
           [*ld.aba_second_derivatives(tree, q, v, x, weights=v)])
    yield "inertial_regressor", (q, v, x, work), [n * tree.nbodies * 10], [ld.inertial_regressor(tree, q, v, x)]
    yield "forward_kinematics", (q, work), [12 * tree.nbodies], [numbers]
    yield "body_jacobian", (q, b), [6 * n], [ld.body_jacobian(tree, q, body)]
    yield "body_jacobian_dot", (q, v, b), [6 * n], [ld.body_jacobian_dot(tree, q, v, body)]
    yield "body_jacobian_ddot", (q, v, x, b), [6 * n], [ld.body_jacobian_ddot(tree, q, v, x, body)]
    yield "body_jacobian_dq", (q, b, work), [6 * n * n], [ld.body_jacobian_dq(tree, q, body)]
    yield "kinetic_energy", (q, v, work), [1], [ld.kinetic_energy(tree, q, v)]
    yield "potential_energy", (q, work), [1], [ld.potential_energy(tree, q)]
    yield "center_of_mass", (q, work), [3], [ld.center_of_mass(tree, q)]
    yield "momentum", (q, v, work), [6], [ld.momentum(tree, q, v)]
    yield "momentum_terms", (q, v, none, work), [n, n], [*ld.momentum_terms(tree, q, v)]
    yield "coriolis_matrix", (q, v, work), [n * n], [ld.coriolis_matrix(tree, q, v)]
    yield "pose", (q, b), [16], [ld.pose(tree, q, body)]
    yield "world_jacobian", (q, b), [6 * n], [ld.world_jacobian(tree, q, body)]
    yield "world_jacobian_dot", (q, v, b), [6 * n], [ld.world_jacobian_dot(tree, q, v, body)]
    yield "world_acceleration", (q, v, x, b), [6], [ld.world_acceleration(tree, q, v, x, body)]
    yield "centroidal_momentum_matrix", (q, work), [6 * n], [ld.centroidal_momentum_matrix(tree, q)]
    yield "centroidal_momentum_matrix_dot", (q, v, work), [6 * n], [ld.centroidal_momentum_matrix_dot(tree, q, v)]
    yield "forward_dynamics", (q, v, x, none, kernels.RANK_TOLERANCE, work), [n, 0], [ld.aba(tree, q, v, x), None]
    yield "integrate", (q, v), [tree.nq], [ld.integrate(tree, q, v)]
    yield "difference", (q, ld.integrate(tree, q, 0.1 * v)), [n], [0.1 * v]


def test_every_kernel_as_its_docstring_says(tree, state):
    """Called with a workspace that ends in a guard: `workspace` is large enough for all."""
    q, v, x = (row[0] for row in state)
    size = len(kernels.workspace(tree))
    work = np.full(size + 64, np.pi)
    seen = set()
    for name, arguments, sizes, expected in calls(tree, q, v, x, work):
        lane = () if name in ("integrate", "difference", "forward_dynamics") else (SCALAR,)
        results = [np.full(k, 0.0 if name.endswith("_nonzeros") else np.nan) for k in sizes]
        getattr(kernels, name)(*lane, tree.packed, *arguments, *results)
        for result, right in zip(results, expected):
            if right is not None:
                np.testing.assert_allclose(result, np.ravel(right), rtol=1e-9, atol=1e-10, err_msg=name)
        assert (work[size:] == np.pi).all(), name
        seen.add(name)
    # those that return tuples instead have tests of their own
    assert seen | NO_KERNELS == set(kernels.__all__) - {"linearize", "nullspace_dynamics"}


def trees_and_branches():
    """Two trees: a free body with three legs of different lengths, and a chain on the ground."""
    builder = ld.Builder("trees and branches")
    for name, kind, parent in (
            ("base", "free", "ground"), *((f"leg{k}", "revolute", "base" if k in (0, 4, 6) else f"leg{k - 1}")
                                          for k in range(13)),
            *((f"arm{k}", "spherical" if k == 4 else "revolute", f"arm{k - 1}" if k else "ground")
              for k in range(7))):
        builder.body(name, 1.0, (0.05, 0.01, -0.02), (0.002, 0.003, 0.0025))
        builder.joint(f"to {name}", kind, parent, name, placement=(0.1, 0.2, 0.0), axis=(0.0, 0.6, 0.8)
                      if kind == "revolute" else None)
    return builder.build()


@pytest.mark.parametrize("name", ["rnea_derivatives", "aba_derivatives"])
def test_zeros_are_left_where_they_are(name):
    """Two states, one after the other, into matrices that were zeroed once; the zeros of two trees are not written."""
    robot = trees_and_branches()
    rng, n, none, work = np.random.default_rng(6), robot.nv, np.empty(0), kernels.workspace(robot)
    vectors = [np.empty(n)] if name == "rnea_derivatives" else [np.empty(n), np.empty(n * n)]
    kept, blank = np.zeros((3, n * n)), np.full((3, n * n), np.nan)
    for q in ld.random_configuration(robot, rng, 2):
        v, x = rng.normal(size=(2, n))
        fresh = np.full((3, n * n), np.nan)
        getattr(kernels, name)(SCALAR, robot.packed, q, v, x, none, work, *vectors, *fresh)
        for matrices in (kept, blank):
            getattr(kernels, f"{name}_nonzeros")(SCALAR, robot.packed, q, v, x, none, work, *vectors, *matrices)
        np.testing.assert_array_equal(kept, fresh)
    untouched = np.isnan(blank)
    assert untouched.sum() > 3 * n and (fresh[untouched] == 0.0).all()


@kept
def simulate(model, q, v, tau, steps, h, work, a, lam):
    """Semi-implicit Euler steps of a closed mechanism; the status of the last that went well."""
    none = np.empty(0)
    for _ in range(steps):
        status, rank, _ = kernels.forward_dynamics(model, q, v, tau, none, kernels.RANK_TOLERANCE, work, a, lam)
        if status != kernels.OK:
            return status, rank
        v += h * a
        q += h * v
    return kernels.OK, rank


def test_a_simulation_of_ones_own():
    robot = ld.load("five_bar")
    q, v, tau = robot.home.copy(), np.zeros(robot.nv), np.full(robot.nv, 0.3)
    given = ld.forward_dynamics(robot, q, v, tau)
    a, lam, work = np.empty(robot.nv), np.empty(len(given.lam)), kernels.workspace(robot)
    assert simulate(robot.packed, q, v, tau, 1, 1e-4, work, a, lam) == (kernels.OK, given.rank)
    np.testing.assert_allclose(a, given.a, rtol=1e-11)
    np.testing.assert_allclose(lam, given.lam, rtol=1e-9, atol=1e-12)
    simulate(robot.packed, q, v, tau, 100, 1e-4, work, a, lam)
    assert 1e-4 < np.abs(q - robot.home).max()
    assert np.abs(ld.closure_error(robot, q)).max() < 1e-6  # what the integrator leaves after 0.01 s


# ---- LIEDYN_CHECK=1


def arguments_of_every_kernel(tree, state):
    """Names and right arguments, also of the kernels that return tuples."""
    q, v, x = (row[0] for row in state)
    work, none, tolerance = kernels.workspace(tree), np.empty(0), kernels.RANK_TOLERANCE
    for name, arguments, sizes, _ in calls(tree, q, v, x, work):
        lane = () if name in ("integrate", "difference", "forward_dynamics") else (SCALAR,)
        yield name, (*lane, tree.packed, *arguments, *map(np.zeros, sizes))
    chosen = choose(tree, q, None, tolerance)
    rows, state = (chosen.rows, chosen.virtual), (tree.packed, q, v, x, none)
    yield "nullspace_dynamics", (*state, *rows, tolerance)
    yield "linearize", (*state, *rows, *rows, np.eye(tree.nv), tolerance)


def unfit(argument, x, tree):
    """Values that an argument must not have, for one that it may have."""
    if argument in ("lane", "b", "tolerance"):
        return {"lane": [LANES, 1.0], "b": [-1, tree.nbodies], "tolerance": []}[argument]
    if argument == "model":
        return [None, tuple(x), *(x._replace(**{part: other}) for part, array in x._asdict().items()
                                  for other in unfit(part, array, tree))]
    flat = np.zeros_like(x).ravel()
    if argument in ("ints", "floats"):
        return [list(flat), flat.astype(np.int32), flat[::2], flat[:10]]
    if argument == "work":
        return [list(flat), flat.astype(np.int64), flat[::2], flat[:-1]]
    longer = np.append(flat, flat[:1] if flat.size else 1.0)
    return [longer, list(longer), longer.astype(np.float32), longer[::-1], *([flat[:-1]] if flat.size > 1 else [])]


def test_checked_kernels_refuse_what_does_not_fit(tree, state):
    """Every argument of every kernel: a number more or less, another type of number, strides, a list."""
    checked = set()
    for name, arguments in arguments_of_every_kernel(tree, state):
        given = dict(zip(inspect.signature(getattr(kernels, name).py_func).parameters, arguments, strict=True))
        check(name, kernels.workspace_size, **given)
        for argument, x in given.items():
            for other in unfit(argument, x, tree):
                with pytest.raises(ld.InputError, match=f"^{name}: .*{'SCALAR' if argument == 'lane' else argument}"):
                    check(name, kernels.workspace_size, **given | {argument: other})
        checked.add(name)
    assert checked == set(kernels.__all__) - NO_KERNELS


def test_the_docstring_and_the_check_agree():
    """Names of arguments in the table of the module's text are those of the kernels, and so are sizes."""
    rows = re.findall(r"^`(\w+)`  +(.*?) \| (.*)$", kernels.__doc__, re.M)
    assert len(rows) == len(RECURSIONS) + 1  # and the constrained dynamics
    for name, arguments, results in rows:
        results = re.split("[;:]| of body", results)[0].replace("rows of G", "rows")
        names = re.findall(r"\w+", f"{arguments}, {re.sub('[(].*?[)]', '', results)}")
        parameters = list(inspect.signature(getattr(kernels, name).py_func).parameters)
        assert names == [each for each in parameters if each not in ("lane", "model")], name
        for listed, shape in re.findall(r"([\w, ]+) \((.*?)\)", results):
            for result in listed.strip(", ").split(", "):
                assert SHAPES[result] == shape.replace(",", ""), (name, result)


CHECKED = """
import numpy as np
from numba import njit
import liedyn as ld
from liedyn import kernels

robot = ld.load("particle_on_circle")
@njit(nogil=True)
def energies(model, q, v, work, energy):
    for k in range(len(q)):
        kernels.kinetic_energy(kernels.SCALAR, model, q[k], v[k], work, energy[k])
q, v = np.zeros((2, 3, robot.nq))
model, work, energy = robot.packed, kernels.workspace(robot), np.full((3, 1), np.nan)
energies(model, q, v, work, energy)
print((energy == 0.0).all())
for call in (lambda: energies(model, q, v, work[1:], energy),
             lambda: kernels.kinetic_energy(kernels.SCALAR, model, q[0], v[0], work[1:], energy[0])):
    try:
        call()
    except ld.InputError as error:
        print(str(error).split()[1])
print(ld.kernels.kinetic_energy.__name__)
"""


def test_the_switch_works_in_compiled_code_and_in_python():
    assert python(CHECKED, LIEDYN_CHECK="1") == ["True", "work", "work", "kinetic_energy_kernel"]
