"""A family of constraints, added: "cubic", gears whose law is a sum of cubic polynomials of coordinates.

Written as `liedyn.constraints.families.coupling`, which it extends by the terms of higher order.
"""

EDITS = [
    ("model/kinds.py", '    "custom": ConstraintKind(', '''\
    "cubic": ConstraintKind((".sum",), 1, one_sided=True, family="cubic", coefficients=3),
    "custom": ConstraintKind('''),
    ("constraints/rows.py", "from liedyn.constraints.families import contact, coupling, custom\n",
     "from liedyn.constraints.families import contact, coupling, cubic, custom\n"),
    ("constraints/rows.py", "TABLE = (contact, coupling, custom)", "TABLE = (contact, coupling, cubic, custom)"),
    ("model/builder.py", "sum of `coefficients` times coordinates is `offset`).",
     "sum of `coefficients` times coordinates is `offset`), cubic (the same with\n"
     "            three coefficients for each coordinate: of itself, its square and its cube)."),
]
FILES = {"constraints/families/cubic.py": '''
"""Gears with a cubic law: sum of a_j q_j + b_j q_j^2 + c_j q_j^3 = offset + x(t)."""
from liedyn.constraints.records import loop_at, loop_integer, loop_rows
from liedyn.jit import inline
from liedyn.lie.lanes import LANES, WIDTH, load, store
from liedyn.model.packed import LOOP_COEFFICIENTS, LOOP_LENGTH, LOOP_MOTION, LOOP_RATE, LOOP_TWIST
from liedyn.tree.records import dof_link, dof_total, first_q


@inline
def law(model, l, j, q):
    """The term of degree of freedom j, and its first three derivatives."""
    at, n = loop_integer(model, l, LOOP_COEFFICIENTS) + j, dof_total(model)
    a, b, c = model.floats[at], model.floats[at + n], model.floats[at + 2 * n]
    if a == 0.0 and b == 0.0 and c == 0.0:
        return 0.0, 0.0, 0.0, 0.0
    x = q[first_q(model, dof_link(model, j))]
    return x * (a + x * (b + x * c)), a + x * (2.0 * b + x * 3.0 * c), 2.0 * b + 6.0 * c * x, 6.0 * c


@inline
def residual(model, l, q, work, g):
    total = -model.floats[loop_at(model, l, LOOP_LENGTH)] - model.floats[loop_at(model, l, LOOP_MOTION)]
    for j in range(dof_total(model)):
        total += law(model, l, j, q)[0]
    g[loop_rows(model, l)[0]] = total


@inline
def jacobian(model, l, q, work, G):
    for j in range(dof_total(model)):
        G[loop_rows(model, l)[0], j] = law(model, l, j, q)[1]


@inline
def velocity(model, l, q, v, work, psi):
    total = -model.floats[loop_at(model, l, LOOP_TWIST)]
    for j in range(dof_total(model)):
        total += law(model, l, j, q)[1] * v[j]
    psi[loop_rows(model, l)[0]] = total


@inline
def bias(model, l, q, v, work, phi):
    total = -model.floats[loop_at(model, l, LOOP_RATE)]
    for j in range(dof_total(model)):
        total += law(model, l, j, q)[2] * v[j] * v[j]
    phi[loop_rows(model, l)[0]] = total


@inline
def by_state(model, l, j, q, v, a):
    """dpsi/dq_j, dphi/dq_j, dphi/dv_j."""
    _, _, second, third = law(model, l, j, q)
    return second * v[j], second * a[j] + third * v[j] * v[j], 2.0 * second * v[j]


@inline
def derivatives(model, l, q, v, a, work, psi_q, phi_q, phi_v):
    row = loop_rows(model, l)[0]
    for j in range(dof_total(model)):
        psi_q[row, j], phi_q[row, j], phi_v[row, j] = by_state(model, l, j, q, v, a)


@inline
def force_derivative(model, l, q, work, lam, D):
    for j in range(dof_total(model)):
        D[j, j] += lam[loop_rows(model, l)[0]] * law(model, l, j, q)[2]


@inline
def add_multiple(x, A, i, b, out, k):
    """out[k, block b] += x A[i, block b]."""
    at = out.shape[1] // WIDTH * k + b
    store(LANES, out, at, load(LANES, out, at) + x * load(LANES, A, A.shape[1] // WIDTH * i + b))


@inline
def vary_rows(model, l, q, v, a, work, variations, N, X, part, b, out):
    row = loop_rows(model, l)[0]
    for j in range(dof_total(model)):
        psi_q, phi_q, phi_v = by_state(model, l, j, q, v, a)
        add_multiple(psi_q if part == 2 else phi_q, N, j, b, out, row)
        if part == 3:
            add_multiple(phi_v, X, j, b, out, row)


@inline
def vary_forces(model, l, q, lam, N, b, balance):
    for j in range(dof_total(model)):
        add_multiple(-lam[loop_rows(model, l)[0]] * law(model, l, j, q)[2], N, j, b, balance, j)
'''}


def check():
    """Runs in the copy."""
    import tempfile

    import numpy as np

    import liedyn as ld
    from liedyn.cli.verification import central_differences

    b = ld.Builder("gear")
    for k, parent in enumerate(["ground", "b0", "b0"]):
        b.body(f"b{k}", 1.0 + k, (0.1, 0.3 * k, 0.2), (0.1, 0.2, 0.3))
        b.joint(f"j{k}", "revolute", parent, f"b{k}", (0.3, 0.1 * k, 0.0), axis=(0.2 * k, 1.0, 0.3))
    b.constraint("law", "cubic", coefficients={"j1": (1.0, 0.0, -0.4), "j2": (-1.5, 0.3, 0.0)}, offset=0.1)
    robot = b.build()
    assert robot.row_names == ("law.sum",)
    q = ld.close(robot, [0.3, 0.2, 0.1])
    np.testing.assert_allclose(q[1] - 0.4 * q[1]**3 - 1.5 * q[2] + 0.3 * q[2]**2, 0.1, atol=1e-13)
    v = ld.complete_velocity(robot, q, {"j0": 0.7, "j1": -1.1})
    found = ld.check_constraint(robot, "law", q, v)
    assert found.ok, found
    tau = [0.3, -0.2, 0.5]
    dynamics = ld.forward_dynamics(robot, q, v, tau)
    np.testing.assert_allclose(  # the multiplier works through the row; the row is kept
        ld.rnea(robot, q, v, dynamics.a), tau - ld.constraint_jacobian(robot, q).T @ dynamics.lam, atol=1e-12)
    np.testing.assert_allclose(
        ld.constraint_jacobian(robot, q) @ dynamics.a - ld.constraint_bias(robot, q, v), 0.0, atol=1e-12)
    ss = ld.linearize(robot, q, v, tau, independent=("j0", "j1"))
    A, B = central_differences(robot, ss, ("j0", "j1"))
    assert abs(A - ss.A).max() < 1e-8 * abs(ss.A).max() and abs(B - ss.B).max() < 1e-8 * abs(ss.B).max()
    with tempfile.TemporaryDirectory() as folder:
        ld.save_toml(robot, f"{folder}/gear.toml")
        assert ld.load(f"{folder}/gear.toml").model.constraints[0].coefficients == {
            "j1": [1.0, 0.0, -0.4], "j2": [-1.5, 0.3, 0.0]}
