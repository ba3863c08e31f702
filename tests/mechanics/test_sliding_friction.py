"""Sliding friction as one small system, and its variations to second order."""
import numpy as np

from liedyn.machine.linalg.dense import solve_square
from liedyn.mechanics.contact.contact_state import Contacts
from liedyn.mechanics.contact.sliding_friction import SlidingFriction


def test_variations_of_sliding_friction():
    """lambda_t = mu N s along two directions, against differences; unit normal forces give mu s."""
    rng = np.random.default_rng(3)
    contacts = Contacts(np.array(["a", "b"], dtype=object), np.array([4, 1]), np.array([1, 4]), np.array([3, 4]),
                        np.array([1, -1]), np.zeros(2), np.array([0.3, 0.8]), np.zeros(2, bool), np.zeros((2, 4)),
                        np.zeros(2, bool))
    numbers = [rng.standard_normal((2, 8)) for _ in range(4)]  # slip and multipliers: at 0, along 1, along 2, mixed
    mu_2 = np.array([[0.4], [-0.2]])[[0, 0, 1, 1, 1]]

    def friction(e_1, e_2):
        slip, lam = numbers[0] + e_1 * numbers[1] + e_2 * numbers[2] + e_1 * e_2 * numbers[3]
        at = SlidingFriction(contacts, slip, lam)
        return ((at.of_unit + e_2 * mu_2 * at.s * (at.of_unit != 0.0)) @ at.normals(lam[:, None]))[:, 0]

    at, (slip, lam) = SlidingFriction(contacts, *numbers[0]), zip(*((x[0][:, None], x[1][:, None]) for x in numbers))
    rows, h = at.rows, 1e-3
    assert rows.tolist() == [2, 3, 5, 6, 7]
    np.testing.assert_allclose(friction(0.0, 0.0), (at.mu * at.N * at.s)[:, 0], rtol=1e-14)
    one = at.known(slip[1][rows], 0.0) + at.of_unit @ at.normals(lam[1])
    two = at.known(slip[2][rows], mu_2) + at.of_unit @ at.normals(lam[2])
    both = at.known_mixed((slip[1][rows], lam[1]), (slip[2][rows], lam[2]), slip[3][rows], mu_2)
    both = both + at.of_unit @ at.normals(lam[3])
    steps = np.array([1.0, -8.0, 8.0, -1.0]) / (12.0 * h)
    places = h * np.array([-2.0, -1.0, 1.0, 2.0])
    np.testing.assert_allclose(one[:, 0], sum(c * friction(e, 0.0) for c, e in zip(steps, places)), atol=1e-8)
    np.testing.assert_allclose(two[:, 0], sum(c * friction(0.0, e) for c, e in zip(steps, places)), atol=1e-8)
    np.testing.assert_allclose(both[:, 0], sum(c * d * friction(e, f) for c, e in zip(steps, places)
                                               for d, f in zip(steps, places)), atol=1e-7)


def test_normal_forces_of_sliding_contacts_are_one_small_system():
    """With partial pivoting, and with pivots in their order, of which one that is too small refuses the system."""
    rng = np.random.default_rng(4)
    for n in range(5):
        A, b = np.eye(n) + 0.3 * rng.standard_normal((n, n)), rng.standard_normal(n)
        for least in (-1.0, 1e-3):
            x = b.copy()
            assert solve_square(A.copy(), x, n, least)
            np.testing.assert_allclose(x, np.linalg.solve(A, b), rtol=1e-12)
    swapped, x = np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([2.0, 3.0])
    assert not solve_square(swapped.copy(), x.copy(), 2, 1e-3) and solve_square(swapped, x, 2)
    assert x.tolist() == [3.0, 2.0]
    assert not solve_square(np.ones((2, 2)), np.ones(2), 2) and not solve_square(-np.eye(1), np.ones(1), 1, 0.0)
