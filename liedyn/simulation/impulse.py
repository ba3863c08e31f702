"""The impulse that makes velocities consistent when constraints change: nearest in the kinetic-energy metric.

    M (v+ - v-) + G^T Lambda = 0        G v+ = c,  c = b, or b - e (G v- - b) in rows that bounce

The ideal inelastic impact (Gillespie 2003, section 4; Pfeiffer and Glocker 1996, 8.1): with e = 0 and b = 0 the loss of
kinetic energy is that of the lost velocity, (v+ - v-)^T M (v+ - v-) / 2.
"""
import numpy as np

from liedyn.errors import SingularConfigurationError

RANK_TOLERANCE = 1e-8


def consistent_jump(M, G, v, target, row_names):
    """v+ and Lambda of minimum norm; target is c.

    Raises
    ------
    SingularConfigurationError
        The constraints contradict each other: no velocity satisfies all of them.
    """
    if not len(G):
        return v.copy(), np.zeros(0)
    U, sizes, Vt = np.linalg.svd(G)
    rank = int((sizes > RANK_TOLERANCE * sizes[0]).sum()) if sizes[0] > 0.0 else 0
    sharp = Vt[:rank].T / sizes[:rank] @ U[:, :rank].T
    particular = sharp @ target
    left = np.abs(G @ particular - target)
    # rounding, amplified by what the smallest singular value that counts may amplify
    if left.max() > 1e-7 * max(1.0, np.abs(target).max()):
        raise SingularConfigurationError(
            f"no velocity satisfies all constraints: they leave {left.max():.3g} in {row_names[left.argmax()]}", sizes)
    K = Vt[rank:].T
    after = particular
    if K.shape[1]:
        after = particular + K @ np.linalg.solve(K.T @ M @ K, K.T @ M @ (v - particular))
    return after, -sharp.T @ M @ (after - v)
