"""The condition number of a regressor, and its exact derivative by the motion.

With W = sum of sigma u v^T, the largest and the smallest singular value change by u^T dW v. That is the power on the
"velocities" u of the forces of a robot with the parameters v (which need not be physically consistent): so derivatives
of inverse dynamics of two such robots suffice, whatever the number of parameters.
"""
from dataclasses import replace

import numpy as np

from liedyn.mechanics.tree.rnea_derivatives import rnea_derivatives
from liedyn.model.packed import (
    BODIES_AT, BODY_F, BODY_FLOATS_AT, BODY_I, BODY_LINK, LINK_END, LINK_MASS, LINK_PITCH, LINK_SPREAD, dofs_of,
    links_of,
)
from liedyn.tasks.identification.dynamic_parameters import INERTIA
from liedyn.tasks.identification.physical import parameters_of, pseudo_inertia
from liedyn.tasks.identification.regression import tree_regressor

_TRIANGLE = np.triu_indices(3)


def log_condition(robot, motion, columns, kept, sizes, width):
    """log(sigma_max / sigma_min) of a tree's regressor, columns scaled by `sizes`; derivatives by q, v and a."""
    q, v, a = motion
    Y = tree_regressor(robot, q, v, a, columns, width)
    U, s, Vt = np.linalg.svd((Y[..., kept] / sizes).reshape(-1, len(kept)), full_matrices=False)
    by_q, by_v, by_a = np.zeros(v.shape), np.zeros(v.shape), np.zeros(v.shape)
    for k, sign in ((0, 1.0), (-1, -1.0)):
        pi, u = np.zeros(Y.shape[-1]), sign / s[k] * U[:, k].reshape(v.shape)
        pi[kept] = Vt[k] / sizes
        for total, derivative in zip((by_q, by_v, by_a), rnea_derivatives(of_parameters(robot, pi), q, v, a)):
            total += np.einsum("sj,sjk->sk", u, derivative)
        for (word, j), x in zip(columns, pi[INERTIA * robot.nbodies:]):
            if word == "armature":
                by_a[:, j] += u[:, j] * x
            elif word == "damping":
                by_v[:, j] += u[:, j] * x
            elif word == "coulomb":
                by_v[:, j] += u[:, j] * x / width / np.cosh(np.clip(v[:, j] / width, -300.0, 300.0)) ** 2
    return np.log(s[0] / s[-1]), (by_q, by_v, by_a)


def of_parameters(robot, pi):
    """The packed robot with arbitrary inertial parameters, and no springs, dampers or armatures in its joints."""
    floats, ints = robot.packed.floats.copy(), robot.packed.ints
    packed = robot.packed._replace(floats=floats)
    links, dofs = links_of(packed)[1], dofs_of(packed)[1]
    moments = np.zeros((len(links), 4, 4))
    for b, P in enumerate(pseudo_inertia(pi[:INERTIA * robot.nbodies].reshape(-1, INERTIA))):
        i, at = ints[ints[BODIES_AT] + BODY_I * b + BODY_LINK], ints[BODY_FLOATS_AT] + BODY_F * b
        if i >= 0:
            X = np.eye(4)
            X[:3, :3], X[:3, 3] = floats[at:at + 9].reshape(3, 3), floats[at + 9:at + BODY_F]
            moments[i] += X @ P @ X.T
    links[:, LINK_MASS:LINK_PITCH] = parameters_of(moments)
    links[:, LINK_SPREAD:LINK_END] = moments[(slice(None), *_TRIANGLE)]
    dofs[:, :3] = 0.0
    return replace(robot, packed=packed)
