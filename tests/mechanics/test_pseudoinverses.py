"""At singular configurations the formulations by pseudoinverses are what their papers define, by LAPACK's."""
import numpy as np
import pytest
import scipy.linalg
from singular_mechanisms import double_four_bar, linkage
from tree_cases import bundled

import liedyn as ld
from liedyn.mechanics.dynamics.terms import terms_kernel

LINE = 0.0, 0.0, np.pi
"""A linkage of three rods on one line, folded at its last joint."""
CASES = {
    "slider_crank": (lambda: bundled("slider_crank"), (np.pi / 2, np.pi), (0.0, 0.0)),
    "five_bar": (lambda: bundled("five_bar"), (np.pi, -np.pi, 0.0, np.pi), bundled("five_bar").home),
    "four_bars": (double_four_bar, np.zeros(5), bundled("four_bars").home),
    "folded": (lambda: linkage(1.0, 1.5, 2.0, base=0.5).build(), LINE, (1.0, -0.5, 2.0)),
    "kite": (lambda: linkage(0.7, 1.1, 0.6, base=1.2).build(), LINE, (1.0, -1.5, -0.5)),
}
"""Mechanisms, singular configurations, and guesses of regular ones."""
CUTOFF = 1e-8


def answers(robot, q, v, tau):
    """Accelerations of each formulation, as printed, with pinv."""
    M, h, G, _, _, gamma = terms_kernel(robot.packed, q, v, np.empty(0))
    G = np.where(np.abs(G) > 1e-12, G, 0.0)  # sines and cosines of multiples of pi
    f, plus, one = tau - h, np.linalg.pinv(G, CUTOFF), np.eye(robot.nv)
    root_inverse = np.linalg.inv(scipy.linalg.sqrtm(M).real)
    free = np.linalg.solve(M, f)
    yield {"method": "udwadia_kalaba"}, free + root_inverse @ np.linalg.pinv(G @ root_inverse, CUTOFF) @ (
        gamma - G @ free)
    P, Cv = one - plus @ G, plus @ gamma
    s = np.linalg.norm(M) / np.linalg.norm(one)
    for form, M_c, C_cv in (("M_c", M + P @ M - M @ P, M @ Cv),
                            ("M_c'", P @ M @ P + (one - P) @ M @ (one - P), (one - 2 * P) @ M @ Cv),
                            ("M_c''", P @ M + s * (one - P), s * Cv)):
        yield {"method": "projection", "inertia": form}, np.linalg.solve(M_c, P @ f + C_cv)
    S = scipy.linalg.null_space(G, CUTOFF) if G.any() else one
    yield {"method": "unified"}, Cv + S @ np.linalg.solve(S.T @ M @ S, S.T @ (f - M @ Cv))


@pytest.mark.parametrize("name", CASES)
def test_as_printed(name):
    make, q, guess = CASES[name]
    robot, q, rng = make(), np.asarray(q, dtype=float), np.random.default_rng(len(name))
    assert np.abs(ld.closure_error(robot, q)).max() < 1e-15 * 10
    states = [(v, tau) for v, tau in rng.normal(size=(4, 2, robot.nv))]  # velocities of all kinds, allowed or not
    for v, tau in states:
        for options, a in answers(robot, q, v, tau):
            r = ld.forward_dynamics(robot, q, v, tau, **options)
            assert r.singular is True
            # rounding, times the squared condition number of what is left, which is below 1e3
            assert np.abs(r.a - a).max() <= 1e-10 * max(1.0, np.abs(a).max()), options
    # regular states in the same batch are as alone
    near = ld.close(robot, guess)
    (v, tau), still = states[0], np.zeros(robot.nv)
    for method in ("projection", "udwadia_kalaba", "unified"):
        both = ld.forward_dynamics(robot, [q, near], [v, still], [tau, tau], method=method)
        assert both.singular.tolist() == [True, False]
        assert np.abs(both.a[0] - ld.forward_dynamics(robot, q, v, tau, method=method).a).max() < 1e-12
    with pytest.raises(ld.SingularConfigurationError, match="singular configuration"):
        ld.forward_dynamics(robot, q, v, tau, method="kane")
