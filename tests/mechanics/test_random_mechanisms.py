"""Laws that every mechanism obeys, on mechanisms that hypothesis draws: trees, loops, rolling, springs, contacts.

LIEDYN_EXAMPLES=1000 runs each on so many new ones (`random_mechanisms.laws`).
"""
import numpy as np
import pytest
from closed_chains import difference, off, onto_manifold
from constrained_oracle import solve
from contact_laws import check_laws
from hypothesis import example, given, note, reject
from hypothesis import strategies as st
from random_mechanisms import Plan, built, laws, moving, plans
from scipy.linalg import null_space
from test_formulations import DIGITS, VARIANTS, terms
from tree_cases import rate

import liedyn as ld
from liedyn.mechanics.constraints.independent import choose_positions, choose_speeds
from liedyn.mechanics.dynamics.nullspace import RANK_TOLERANCE
from liedyn.model.kinds import JOINT_KINDS
from liedyn.motion.simulation.singular_passages import NEAR


def fastest(robot, q, v, a):
    """The largest rate [1/s] at which the motion changes; differences and steps are small beside its inverse."""
    return max(1.0, np.abs(v).max(initial=0.0), np.sqrt(np.abs(a).max(initial=0.0)))


def power(robot, v, tau):
    """Of the applied forces, less what dampers take."""
    damping = {joint.name + suffix: damping for joint in robot.model.joints
               for suffix, damping in zip(JOINT_KINDS[joint.kind].velocities, joint.damping)}
    return v @ tau - sum(damping[name] * speed**2 for name, speed in zip(robot.velocity_names, v))


@laws(40)
@given(plans())
def test_the_rate_of_the_energy_is_the_power_of_applied_forces(plan):
    robot, q, rng = built(plan)
    v, tau = moving(robot, q, rng)
    a = ld.forward_dynamics(robot, q, v, tau).a
    slow = 1.0 / fastest(robot, q, v, a)

    def energy(s):
        near = ld.integrate(robot, q, s * slow * v)
        return ld.kinetic_energy(robot, near, v + s * slow * a) + ld.potential_energy(robot, near)

    size = ld.kinetic_energy(robot, q, v) + abs(ld.potential_energy(robot, q)) + slow * np.abs(v * tau).sum()
    # eighth order in steps of 1e-2: rounding, EPS / 1e-2, is what is left
    assert abs(rate(energy) - slow * power(robot, v, tau)) < 1e-11 * max(size, 1.0)


@laws(30)
@given(plans(root="free"))
def test_internal_forces_change_no_momentum(plan):
    """Whatever springs, dampers, motors and ties inside do: only the weight does."""
    robot, q, rng = built(plan)
    v, tau = moving(robot, q, rng)
    tau[:6] = 0.0
    assert robot.velocity_names[:6] == tuple(f"joint0{s}" for s in (".rx", ".ry", ".rz", ".x", ".y", ".z"))
    a = ld.forward_dynamics(robot, q, v, tau).a
    slow = 1.0 / fastest(robot, q, v, a)
    change = rate(lambda s: ld.momentum(robot, ld.integrate(robot, q, s * slow * v), v + s * slow * a))
    weight = slow * ld.total_mass(robot) * np.array(robot.gravity)
    # as for the power
    assert np.abs(change - np.append(np.zeros(3), weight)).max() < 1e-11 * max(
        1.0, np.abs(ld.momentum(robot, q, v)).max())


@laws(25)
@given(plans(dampers=False))
@pytest.mark.filterwarnings("ignore::liedyn.ConditionWarning")  # steps are long
def test_runs_keep_energy_to_the_order_of_the_method_and_closure_to_rounding(plan):
    robot, q, rng = built(plan)
    v, _ = moving(robot, q, rng)
    a = ld.forward_dynamics(robot, q, v, np.zeros(robot.nv)).a
    dt = 0.1 / fastest(robot, q, v, a)
    drifts = []
    for step in (dt, dt / 2, dt / 16):
        tr = ld.simulate(robot, q, v, 4 * dt, dt=step)
        assert tr.position_residual.max() < 1e-12 and tr.velocity_residual.max() < 1e-11 * max(1.0, np.abs(tr.v).max())
        drifts.append(np.abs(tr.energy_drift).max())
    note(f"drifts {drifts}")
    # near singular configurations steps are made in parts until they balance to 1e-11, and no further
    left = 1e-13 if tr.condition.max() < NEAR else 1e-10
    # fourth order, 16^4, with room for errors of several orders that cancel; third order is 16^3
    assert drifts[2] < max(drifts[0], 16 * drifts[1]) / 16**3.25 + left * max(
        tr.kinetic.max() + np.abs(tr.potential).max(), 1.0)


@pytest.mark.validation("accelerations and multipliers of all formulations", robots="random", oracle=DIGITS)
@laws(25)
@given(plans())
def test_all_formulations_agree_with_forty_digits(plan):
    robot, q, rng = built(plan)
    v, tau = moving(robot, q, rng)
    M, h, G, _, _, gamma = terms(robot, q, v)
    a, lam = solve(M, h, G, gamma, tau)
    for method, options in VARIANTS:
        r = ld.forward_dynamics(robot, q, v, tau, method=method, **options)
        note(f"{method} {options}: a {off(r.a, a):.1e} lam {off(r.lam, lam):.1e} condition {r.condition:.1e}")
        assert off(r.a, a) < 1e-9 and off(r.lam, lam) < 1e-9


@laws(30)
@given(plans())
def test_forward_dynamics_inverts_inverse_dynamics(plan):
    robot, q, rng = built(plan)
    v, tau = moving(robot, q, rng)
    r = ld.forward_dynamics(robot, q, v, tau)
    G = ld.constraint_jacobian(robot, q)
    size = np.abs(ld.crba(robot, q)).max() * max(1.0, np.abs(r.a).max()) + np.abs(r.constraint_force).max()
    assert np.abs(ld.rnea(robot, q, v, r.a) + G.T @ r.lam - tau).max() < 1e-12 * size
    wanted = rng.normal(size=len(r.independent))
    inverse = ld.inverse_dynamics(robot, q, v, wanted, independent=r.independent)
    again = ld.forward_dynamics(robot, q, v, inverse.tau)
    assert off(again.a, inverse.a) < 1e-10 and off(again.lam, inverse.lam) < 1e-10
    picked = [robot.velocity_names.index(name) for name in r.independent]
    assert off(again.a[picked], wanted) < 1e-10


# positions have no freedom left, and velocities none either
@laws(20)
@example(Plan((("revolute", -1),), (("disk_on_plane", -1, 0, False),)))
@given(plans(bodies=4))
def test_linearization_is_the_derivative_along_the_constraints(plan):
    robot, q, rng = built(plan)
    v, tau = moving(robot, q, rng)
    ss = ld.linearize(robot, q, v, tau, outputs=[f"acceleration:{name}" for name in robot.velocity_names])
    y = choose_positions(robot, q, None, RANK_TOLERANCE)
    R = choose_speeds(robot, q, y, None, RANK_TOLERANCE).rows

    def accelerations(displacement, w, forces):
        near = onto_manifold(robot, ld.integrate(robot, q, displacement))
        G = ld.constraint_jacobian(robot, near)
        speed = np.linalg.lstsq(np.vstack([G, R]), np.concatenate([np.zeros(len(G)), w]), rcond=1e-9)[0]
        return ld.forward_dynamics(robot, near, speed, forces, method="svd").a

    w = R @ v
    columns = [difference(lambda s, k=k: accelerations(s * k, w, tau)) for k in ss.K.T]
    columns += [difference(lambda s, e=e: accelerations(0.0 * v, w + s * e, tau)) for e in np.eye(len(w))]
    columns += [difference(lambda s, u=u: accelerations(0.0 * v, w, tau + s * u), 1.0) for u in robot.actuator_matrix.T]
    expected = np.stack(columns, axis=-1).reshape(robot.nv, -1)
    # sixth order in steps of 1e-3, as in test_linearization.py
    assert off(np.hstack([ss.C, ss.D]), expected) < 2e-8


def stiffness(rows, M, G, psi, mu):
    """Of a sliding contact: acceleration by its normal force with the friction, relative to that without."""
    others = np.delete(G, rows, axis=0)
    K = null_space(others, rcond=1e-9) if others.size else np.eye(len(M))
    W = K @ np.linalg.solve(K.T @ M @ K, K.T)
    normal, slip = G[rows[0]], psi[rows[1:]]
    return normal @ W @ (normal - mu * slip @ G[rows[1:]] / np.linalg.norm(slip)) / (normal @ W @ normal)


# forces between contact 0's three parallel rows grew for ever, as contact 1 can be neither open nor closed
JAMMED = Plan((("revolute", -1), ("prismatic", -1), ("revolute", 0), ("revolute", 0)),
              contacts=(("on_cylinder", 0, 2, 0.3), ("distance", 0, 1, 0.1)), seed=221)


# the tie leaves contact 2 no motion but rounding, by which forces were divided
BLOCKED = Plan((("planar", -1), ("fixed", 0), ("revolute", -1), ("fixed", 0)), (("disk_on_plane", 2, 0, False),),
               (("distance", 0, 1, 0.0), ("distance", -1, 0, 0.0), ("on_plane", -1, 2, 0.0)), seed=153)


@laws(40)
@example(JAMMED, True)
@example(BLOCKED, False)
@given(plans(bodies=4, ties=1, contacts=3), st.booleans())
def test_contacts_obey_signorini_and_coulomb(plan, sliding):
    """At a state in which all touch: forces push only, on what does not come apart, and friction stays in its disk."""
    robot, q, rng = built(plan)
    names = [name for name in robot.constraint_names if name.startswith("contact")]
    closed = robot.switched({name: "sliding" if sliding else "sticking" for name in names})
    v, tau = moving(closed, q, rng)
    every = robot.switched(dict.fromkeys(names, "sticking"))
    M, h, G, _, psi, gamma = terms(every, q, v)
    try:
        found = ld.forward_dynamics(robot, q, v, tau)
    except ld.SingularConfigurationError as error:
        assert sliding and "contradict each other" in str(error)
        if len(names) == 1:
            rows = np.flatnonzero(np.array(robot.row_owners) == names[0])
            assert stiffness(rows, M, G, psi, plan.contacts[0][3]) < 1e-3
        reject()
    u = G @ found.a - gamma
    force, motion = max(1.0, np.abs(found.lam).max(initial=0.0)), max(1.0, np.abs(u).max())
    note(f"{found.contacts} lam {found.lam} u {u}")
    assert np.abs(M @ found.a + h + G.T @ found.lam - tau).max() < 1e-9 * max(force, np.abs(M @ found.a).max())
    for name in robot.constraint_names:
        rows = [k for k, owner in enumerate(robot.row_owners) if owner == name]
        if name not in names:
            assert np.abs(u[rows]).max() < 1e-9 * motion
            continue
        N, away, mu = -found.lam[rows[0]], u[rows[0]], plan.contacts[names.index(name)][3]
        rub, slip, creep = found.lam[rows[1:]], psi[rows[1:]], u[rows[1:]]
        assert N > -1e-9 * force and away > -1e-9 * motion and min(N / force, away / motion) < 1e-9
        assert np.linalg.norm(rub) < mu * N + 1e-9 * force
        if sliding and len(rub):
            assert np.linalg.norm(slip) < 1e-6 or off(rub, mu * N * slip / np.linalg.norm(slip)) < 1e-9 * force
        elif found.contacts[name] == "sticking":
            assert np.abs(creep).max(initial=0.0) < 1e-8 * motion
        elif found.contacts[name] == "sliding" and len(rub):
            assert rub @ creep > -1e-9 * force * motion
            assert off(np.linalg.norm(rub), mu * N) < 1e-6 * force


# a tie whose rows are rounding hid that an impact gained energy
GAINS = Plan((("revolute", -1), ("planar", 0)), (("on_plane", 0, 1, False),),
             (("distance", -1, 0, 0.0), ("disk_on_plane", -1, 1, 0.6), ("distance", -1, 0, 0.0)), seed=131071)
# friction holds what restitution should let bounce
SPRAG = Plan((("revolute", -1), ("helical", 0), ("helical", 0)), contacts=(("distance", -1, 0, 0.6),), seed=25)
# the row at another contact's impact had forces of least norm, outside the friction disk
WEDGED = Plan((("revolute", -1), ("revolute", -1), ("revolute", 1)), contacts=(
    ("disk_on_plane", 0, 2, 0.0), ("sphere_on_sphere", -1, 1, 0.1), ("distance", 0, 1, 0.0)), seed=12779079)


@laws(15)
@example(GAINS)
@example(SPRAG)
@example(WEDGED)
@given(plans(bodies=3, ties=1, contacts=3))
@pytest.mark.filterwarnings("ignore::liedyn.ContactWarning")  # restitution that is lowered
def test_runs_with_contacts_obey_all_laws(plan):
    robot, q, rng = built(plan, gap=0.05)
    v, _ = moving(robot, q, rng)
    try:
        tr, stepping = ld.simulate(robot, q, v, 0.2, accumulation="error"), False
    except ld.SimulationError:  # impacts accumulate, contacts chatter or jam: with the wider bounds of time-stepping
        tr, stepping = ld.simulate(robot, q, v, 0.2), True
    check_laws(robot, tr, stepping=stepping)
