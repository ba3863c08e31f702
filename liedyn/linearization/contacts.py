"""Linear models of robots with contacts that slide: what the friction adds, which varies with the normal force.

With closed contacts as equations, friction tau_f = -G_t^T lam_t is a force on the mechanism that depends on its state
and on the normal forces N = -side lam_n,

    lam_t = mu N s        s = psi_t / |psi_t|        psi_t = G_t v - b_t

so its variation is, with a displacement dq = N_y dy and a change of velocity dv = X (dy, dw),

    dtau_f    = -d(G_t^T lam_t)/dq dq - G_t^T dlam_t
    dlam_t    = mu s dN + mu N (1 - s s^T) / |psi_t| dpsi_t        dpsi_t = dpsi_t/dq dq + G_t dv

that is F (dy, dw) + E dN. The mechanism itself is linearized (`liedyn.linearization.local`) with tau_f as an input. The
balance of forces gives the multipliers of its rows, of least norm where rows are redundant (`output_rows`),

    G^T dlam = S_u du + dtau_f - M da - d(ID + G^T lam)/dq dq - dID/dv dv

so that dN = N_x (dy, dw) + N_u du + N_f dtau_f, and both together are solved for

    dN = (1 - N_f E)^-1 ((N_x + N_f F) (dy, dw) + N_u du)
"""
import numpy as np

from liedyn.constraints.loops import all_derivatives
from liedyn.contact.settled import tangential
from liedyn.contact.state import statuses
from liedyn.dynamics.terms import terms_kernel
from liedyn.jit import kernel
from liedyn.lie.lanes import SCALAR
from liedyn.linearization.output_rows import ACCELERATION, TREE, VELOCITY
from liedyn.model.packed import NV, ON
from liedyn.tree.rnea_derivatives import derivatives_size, rnea_derivatives_kernel


@kernel
def tree_derivatives(ints, floats, q, v, a, f_ext):
    """M, dID/dq, dID/dv (n, n) of the tree."""
    n = ints[NV]
    work, ignored = np.empty(derivatives_size(ints)), np.empty(n)
    M, by_q, by_v = np.empty((n, n)), np.empty((n, n)), np.empty((n, n))
    rnea_derivatives_kernel(SCALAR, ints, floats, q, v, a, f_ext, work, ignored, by_q, by_v, M)
    return M, by_q, by_v


class Friction:
    """The friction of the contacts that slide, at states that have the same ones.

    Attributes
    ----------
    contacts : Contacts
        The watched ones.
    settled : list of Settled
        One for each state.
    """

    def __init__(self, contacts, settled):
        self.contacts, self.settled, self.robot = contacts, settled, settled[0].robot
        self.rubs = bool(settled[0].sliding)

    @property
    def names(self):
        """Of the contacts that slide with friction."""
        return [self.robot.constraint_names[k] for k in self.contacts.index[self.settled[0].sliding]]

    def solve(self, solve, robot, lead, y, w, given, parts, rows, closure_tolerance, rank_tolerance):
        """Results of `solve`, which linearizes the mechanism without friction, with the same arguments, with it."""
        q, v, tau, forces, *choice, actuators = given
        n, nu = robot.nv, actuators.shape[1]
        every = [(TREE, rate, j, rows + n * (rate - VELOCITY) + j)  # for X and da
                 for rate in (VELOCITY, ACCELERATION) for j in range(n)]
        given = (q, v, tau + [each.force for each in self.settled], forces, *choice, np.hstack([actuators, np.eye(n)]))
        found = solve(robot, lead, y, w, given, np.vstack([parts, np.array(every, dtype=np.int64)]), rows + 2 * n,
                      closure_tolerance, rank_tolerance)
        A, B, C, D = found.A, found.B[..., :nu].copy(), found.C[:, :rows].copy(), found.D[:, :rows, :nu].copy()
        lam = found.lam.copy()
        for b, settled in enumerate(self.settled):
            X, da = found.C[b, rows:rows + n], np.hstack([found.C[b, rows + n:], found.D[b, rows + n:]])
            state = q[b], v[b], found.a[b], forces[b]
            by_x, by_u = self._variation(settled, state, found.lam[b], found.K[b], X, da, given[-1], rank_tolerance)
            A[b] += found.B[b, :, nu:] @ by_x
            B[b] += found.B[b, :, nu:] @ by_u
            C[b] += found.D[b, :rows, nu:] @ by_x
            D[b] += found.D[b, :rows, nu:] @ by_u
            lam[b] += settled.friction
        return found._replace(A=A, B=B, C=C, D=D, lam=lam)

    def _variation(self, settled, state, lam, N_y, X, da, inputs, tolerance):
        """dtau_f by (y, w) and by u, at one state; da by (y, w), u and tau_f."""
        contacts, sliding, robot = self.contacts, settled.sliding, self.robot
        q, v, a, f_ext = state
        all_rows = robot.ints.copy()  # with the tangential rows of what slides
        statuses(all_rows)[contacts.index[sliding]] = ON
        M, by_q, by_v = tree_derivatives(robot.ints, robot.floats, q, v, a, f_ext)
        psi_q, _, _, turned = all_derivatives(all_rows, robot.floats, q, v, a, settled.friction)
        _, _, G_all, _, psi, _ = terms_kernel(all_rows, robot.floats, q, v, f_ext)
        (n, x), nu = X.shape, inputs.shape[1] - len(X)
        dq = np.hstack([N_y, np.zeros((n, x - N_y.shape[1]))])
        balance = -M @ da
        balance[:, :x] -= (by_q + all_derivatives(robot.ints, robot.floats, q, v, a, lam)[3]) @ dq + by_v @ X
        balance[:, x:] += inputs
        dlam = least_norm_variation(robot, q, v, lam, dq, balance, tolerance)
        dN = -contacts.side[sliding, None] * dlam[contacts.first[sliding]]
        N_x, N_u, N_f = dN[:, :x], dN[:, x:x + nu], dN[:, x + nu:]
        F, E, dpsi = -turned @ dq, np.empty((n, len(sliding))), psi_q @ dq + G_all @ X
        for j, c in enumerate(sliding):
            rows, mu = tangential(contacts, c), contacts.friction[c]
            s, slip = settled.direction[j, :contacts.count[c] - 1], np.linalg.norm(psi[rows])
            size = np.linalg.norm(settled.friction[rows])  # mu N
            F -= size / slip * G_all[rows].T @ (dpsi[rows] - np.outer(s, s @ dpsi[rows]))
            E[:, j] = -mu * s @ G_all[rows]
        dN = np.linalg.solve(np.eye(len(sliding)) - N_f @ E, np.hstack([N_x + N_f @ F, N_u]))
        return F + E @ dN[:, :x], E @ dN[:, x:]


def least_norm_variation(robot, q, v, lam, dq, balance, tolerance):
    """dlam (m, columns) along displacements dq, for lam of least norm; G^T dlam = balance.

    lam = G x stays in the range of G as that turns, which gives its part outside: that of dG x (Golub, Pereyra 1973).
    """
    rest = np.zeros_like(v)
    G = terms_kernel(robot.ints, robot.floats, q, v, np.empty(0))[2]
    U, s, Vt = np.linalg.svd(G, full_matrices=False)
    rank = int((s > tolerance * max(s.max(initial=0.0), 1e-4)).sum())
    U, plus = U[:, :rank], Vt[:rank].T / s[:rank] @ U[:, :rank].T
    dlam = plus.T @ balance
    moved, still = (all_derivatives(robot.ints, robot.floats, q, x, rest, lam)[0] for x in (plus @ lam, rest))
    turned = (moved - still) @ dq  # dG x
    dlam[:, :dq.shape[1]] += turned - U @ (U.T @ turned)
    return dlam
