"""Linear models of robots with sliding contacts: the friction, which varies with the normal force.

With closed contacts as equations, friction tau_f = -G_t^T lam_t is a force on the mechanism that depends on its state
and on the normal forces N (`liedyn.mechanics.contact.sliding_friction`). Its variation is, with a displacement
dq = N_y dy and a change of velocity dv = X (dy, dw),

    dtau_f    = -d(G_t^T lam_t)/dq dq - G_t^T dlam_t        dpsi_t = dpsi_t/dq dq + G_t dv

that is F (dy, dw) + E dN. The mechanism itself is linearized (`liedyn.linear.local`) with tau_f as an input. The
balance of forces gives the multipliers of its rows, of least norm if rows are redundant (`output_rows`),

    G^T dlam = S_u du + dtau_f - M da - d(ID + G^T lam)/dq dq - dID/dv dv

so that dN = N_x (dy, dw) + N_u du + N_f dtau_f, and the two equations together give

    dN = (1 - N_f E)^-1 ((N_x + N_f F) (dy, dw) + N_u du)
"""
import numpy as np

from liedyn.linear.output_rows import ACCELERATION, TREE, VELOCITY
from liedyn.machine.compiled.jit import kernel
from liedyn.machine.errors import InputError, of_the_batch
from liedyn.machine.simd.lanes import SCALAR
from liedyn.mechanics.constraints.cluster_weights import rank_of_rows
from liedyn.mechanics.constraints.constraint_wrenches import contact_wrench_derivatives
from liedyn.mechanics.constraints.loops import all_derivatives
from liedyn.mechanics.contact.contact_modes import contact_modes, watched
from liedyn.mechanics.contact.contact_state import statuses
from liedyn.mechanics.contact.sliding_friction import SlidingFriction
from liedyn.mechanics.contact.watching import watches
from liedyn.mechanics.dynamics.terms import terms_kernel
from liedyn.mechanics.tree.rnea_derivatives import derivatives_size, rnea_derivatives_kernel
from liedyn.model.packed import NV, ON


@kernel
def tree_derivatives(model, q, v, a, f_ext):
    """M, dID/dq, dID/dv (n, n) of the tree."""
    n = model.ints[NV]
    work, ignored = np.empty(derivatives_size(model)), np.empty(n)
    M, by_q, by_v = np.empty((n, n)), np.empty((n, n)), np.empty((n, n))
    rnea_derivatives_kernel(SCALAR, model, q, v, a, f_ext, work, ignored, by_q, by_v, M)
    return M, by_q, by_v


class Friction:
    """The friction of the contacts that slide, at states with the same contact modes; and the wrenches of contacts.

    Attributes
    ----------
    contacts : Contacts
        The one-sided contacts of the robot before their modes were fixed.
    settled : list of Settled
        One for each state; empty if the contact modes do not depend on the state.
    rubs : bool
        True if some sliding contact has friction.
    least_norm : bool
        True if the multipliers of the contacts are those of least norm at all states.
    joints : JointRows or None
        Outputs that are wrenches of joints of the tree.
    """

    joints = None

    def __init__(self, robot, settled):
        self.contacts, self.settled = watched(robot), settled
        self.robot = settled[0].robot if settled else robot
        self.rubs = bool(settled) and bool(settled[0].sliding)
        self.least_norm = all(each.least_norm for each in settled)

    @property
    def names(self):
        """Names of the contacts that slide with friction."""
        return [self.robot.constraint_names[k] for k in self.contacts.index[self.settled[0].sliding]]

    def solve(self, solve, wrenches, asked, given, parts, rows, tolerances):
        """Results of `solve`, which linearizes the mechanism without friction, completed by the friction.

        The arguments after `wrenches` are those of `solve`.

        `wrenches` has (number of the constraint, first row of C and D), as in an `OutputPlan`.
        """
        if (wrenches or self.joints) and not self.least_norm:
            raise InputError("how the contacts share the load is not determined, as multipliers of least norm pull "
                             "or slip: their wrenches have no derivative")
        q, v, tau, forces = given.state
        actuators = given.actuators
        n, nu = asked.robot.nv, actuators.shape[1]
        every = [(TREE, rate, j, rows + n * (rate - VELOCITY) + j)  # for X and da
                 for rate in (VELOCITY, ACCELERATION) for j in range(n)]
        settled = self.settled or [None] * len(q)
        rubbed = tau + [each.force for each in self.settled] if self.settled else tau
        given = given._replace(state=given.state._replace(tau=rubbed), actuators=np.hstack([actuators, np.eye(n)]))
        parts = np.vstack([parts, np.array(every, dtype=np.int64)])
        found = solve(asked, given, parts, rows + 2 * n, tolerances)
        A, B, C, D = found.A, found.B[..., :nu].copy(), found.C[:, :rows].copy(), found.D[:, :rows, :nu].copy()
        lam = found.lam.copy()
        for b, each in enumerate(settled):
            X, da = found.C[b, rows:rows + n], np.hstack([found.C[b, rows + n:], found.D[b, rows + n:]])
            state = q[b], v[b], found.a[b], forces[b]
            by_x, by_u, dlam = self._variation(
                each, state, found.lam[b], (found.K[b], X, da), given.actuators, tolerances.rank)
            A[b] += found.B[b, :, nu:] @ by_x
            B[b] += found.B[b, :, nu:] @ by_u
            C[b] += found.D[b, :rows, nu:] @ by_x
            D[b] += found.D[b, :rows, nu:] @ by_u
            if each is not None:
                lam[b] = lam[b] + each.friction if each.least_norm else each.lam
            for number, row in wrenches:
                dF = self._wrench(number, q[b], lam[b], found.K[b], dlam)
                C[b, row:row + 6], D[b, row:row + 6] = dF[:, :len(A[b])], dF[:, len(A[b]):]
            if self.joints:
                x = X.shape[1]
                of_u = da[:, :x + nu] + da[:, x + nu:] @ np.hstack([by_x, by_u])
                dF = self.joints.of_mechanism(b, state[:3], lam[b], found.K[b], X, of_u, dlam)
                self.joints.put(dF[..., :x], C[b])
                self.joints.put(dF[..., x:], D[b])
        return found._replace(A=A, B=B, C=C, D=D, lam=lam)

    def _variation(self, settled, state, lam, motions, inputs, tolerance):
        """Derivatives of tau_f by (y, w) and by u, and of lam by (y, w, u), at one state; da by (y, w), u and tau_f."""
        robot, (q, v, a, f_ext), (N_y, X, da) = self.robot, state, motions
        M, by_q, by_v = tree_derivatives(robot.packed, q, v, a, f_ext)
        (n, x), nu = X.shape, inputs.shape[1] - len(X)
        dq = np.hstack([N_y, np.zeros((n, x - N_y.shape[1]))])
        balance = -M @ da
        balance[:, :x] -= (by_q + all_derivatives(robot.packed, q, v, a, lam)[3]) @ dq + by_v @ X
        balance[:, x:] += inputs
        dlam = least_norm_variation(robot, q, v, lam, dq, balance, tolerance)
        if not self.rubs:
            return np.zeros((n, x)), np.zeros((n, nu)), dlam[:, :x + nu]
        contacts, sliding = self.contacts, settled.sliding
        # with the tangential rows of the sliding contacts
        all_rows = robot.packed._replace(ints=robot.packed.ints.copy())
        statuses(all_rows)[contacts.index[sliding]] = ON
        psi_q, _, _, turned = all_derivatives(all_rows, q, v, a, settled.friction)
        _, _, G_all, _, psi, _ = terms_kernel(all_rows, q, v, f_ext)
        rub = SlidingFriction(contacts.some(sliding), psi, settled.lam)
        N_x, N_u, N_f = np.split(rub.normals(dlam), [x, x + nu], axis=1)
        du = (psi_q @ dq + G_all @ X)[rub.rows]
        G_t, turns = G_all[rub.rows], rub.known(du, 0.0)  # dlam_t at constant N
        N_x = N_x + rub.of_speed(du)
        F, E = -turned @ dq - G_t.T @ turns, -G_t.T @ rub.of_unit
        dN = rub.balanced(np.hstack([N_x + N_f @ F, N_u]), N_f @ E)
        by_x, by_u = F + E @ dN[:, :x], E @ dN[:, x:]
        found = dlam[:, :x + nu] + dlam[:, x + nu:] @ np.hstack([by_x, by_u])
        found[rub.rows] = rub.of_unit @ dN
        found[rub.contacts.first[rub.contacts.dry]] = -(rub.contacts.side[:, None] * dN)[rub.contacts.dry]
        found[rub.rows, :x] += turns
        return by_x, by_u, found

    def _wrench(self, number, q, lam, N_y, dlam):
        """Derivative of the wrench of a constraint by (y, w, u)."""
        robot = self.robot
        rows = np.flatnonzero(np.array(robot.row_owners) == robot.constraint_names[number])
        by_lam, by_q = np.zeros((6, len(rows))), np.zeros((6, robot.nv))
        # the contact is open, perhaps at a place where it has no normal
        if not lam[rows].any() and not dlam[rows].any():
            return np.zeros((6, dlam.shape[1]))
        contact_wrench_derivatives(robot.packed, q, lam, number, by_lam, by_q)
        out = by_lam @ dlam[rows]
        out[:, :N_y.shape[1]] += by_q @ N_y
        return out


def settled_in_contact(robot, lead, q, v, tau, forces, tolerance):
    """The robot with the contacts in the modes of these states, and the friction of those that slide.

    Raises InputError if a contact is at a transition, or contact modes differ between states.
    """
    settled = []
    for b, state in enumerate(zip(q, v, tau, forces)):
        with of_the_batch(lead, b):
            settled.append(contact_modes(robot, *state, tolerance))
            settled[b].require_no_transition()
            if settled[b].robot is not settled[0].robot:
                raise InputError(f"contacts are {settled[0].names} at the first state, {settled[b].names} here: "
                                 "linearize such states apart")
    return settled[0].robot, Friction(robot, settled)


def settled_without_friction(robot, q, v, tau, forces, tolerance, what):
    """The robot with the contacts in the modes of this state; InputError if one slides with friction."""
    if not watches(robot):
        return robot
    switched, friction = settled_in_contact(robot, (), q[None], v[None], tau[None], forces[None], tolerance)
    if friction.rubs:
        raise InputError(f"{what} is not available while contacts slide with friction, as "
                         f"{', '.join(map(repr, friction.names))} here; linearize() is")
    return switched


def least_norm_variation(robot, q, v, lam, dq, balance, tolerance):
    """dlam (m, columns) along displacements dq, for lam of least norm; G^T dlam = balance.

    lam = G x stays in the range of G as G varies; its part outside the range at q is that of dG x (Golub, Pereyra
    1973).
    """
    rest = np.zeros_like(v)
    G = terms_kernel(robot.packed, q, v, np.empty(0))[2]
    U, s, Vt = np.linalg.svd(G, full_matrices=False)
    rank = rank_of_rows(robot, G, tolerance)
    U, plus = U[:, :rank], Vt[:rank].T / s[:rank] @ U[:, :rank].T
    dlam = plus.T @ balance
    moved, still = (all_derivatives(robot.packed, q, x, rest, lam)[0] for x in (plus @ lam, rest))
    turned = (moved - still) @ dq  # dG x
    dlam[:, :dq.shape[1]] += turned - U @ (U.T @ turned)
    return dlam
