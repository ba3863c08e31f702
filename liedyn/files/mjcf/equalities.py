"""Equalities of MJCF files, which are soft there, as constraints.

Couplings of two sums of coordinates by a polynomial, as rows of `Builder.custom`.

With p the polynomial and s = x - x0, the row is g = y - p(s) = 0, and its velocity is dy/dt - p'(s) dx/dt.
"""
from collections import defaultdict

import numpy as np

from liedyn.files.mjcf.reader import pose
from liedyn.files.mjcf.passive import fixed_tendon, is_fixed
from liedyn.machine.errors import shown
from liedyn.model import Builder


def polynomial_rows(robot, y, x, x0, a):
    """Functions of `Builder.custom` for y = a0 + a1 (x - x0) + a2 (x - x0)^2 + ...; y and x are sums of coordinates, as
    dicts of coefficients by name."""
    Y, X = np.zeros((2, robot.nv))
    for row, terms in ((Y, y), (X, x)):
        for name, value in terms.items():
            row[robot.velocity_index(name)] = value
    places = np.array([robot.coordinate_names.index(name) if name in robot.coordinate_names else 0
                       for name in robot.velocity_names])
    row = PolynomialRow(Y, X, places, x0, [np.polynomial.Polynomial(a).deriv(k) for k in range(4)])
    return {name: getattr(row, name) for name in (
        "residual", "jacobian", "bias", "derivatives", "force_derivative")}


class PolynomialRow:
    """The functions of one row, as methods, which unlike nested functions can be pickled.

    Parameters
    ----------
    Y, X : ndarray, shape (nv,)
        The two sums.
    places : ndarray of int, shape (nv,)
        Indices of the coordinates in q.
    x0 : float
    orders : list of Polynomial
        p and its derivatives.
    """

    def __init__(self, Y, X, places, x0, orders):
        self.Y, self.X, self.places, self.x0, self.orders = Y, X, places, x0, orders

    def _at(self, q):
        """Values of the polynomial and its derivatives at q."""
        return [p(self.X @ q[self.places] - self.x0) for p in self.orders]

    def residual(self, t, q):
        """The residual g."""
        return np.array([self.Y @ q[self.places] - self._at(q)[0]])

    def jacobian(self, t, q):
        """dg/dq."""
        return (self.Y - self._at(q)[1] * self.X)[None]

    def bias(self, t, q, v):
        """Rate of dg/dq along the motion, times v."""
        return np.array([-self._at(q)[2] * (self.X @ v) ** 2])

    def derivatives(self, t, q, v, a):
        """Derivatives of the row's velocity by q, and of its acceleration by q and by v."""
        X, (_, _, p2, p3) = self.X, self._at(q)
        rate, change = X @ v, X @ a
        return -p2 * rate * X[None], -(p2 * change + p3 * rate ** 2) * X[None], -2.0 * p2 * rate * X[None]

    def force_derivative(self, t, q, lam):
        """The derivative of G^T lam by q."""
        return -lam[0] * self._at(q)[2] * np.outer(self.X, self.X)


def declare(reader):
    """Declare all equalities that robots can have; returns polynomials of higher degree, for `with_polynomials`."""
    m, kinds, polynomials = reader.model, reader.mujoco.mjtEq, []
    is_off = reader.is_off("CONSTRAINT") or reader.is_off("EQUALITY")
    add = {int(kinds.mjEQ_CONNECT): connection, int(kinds.mjEQ_WELD): weld,
           int(kinds.mjEQ_JOINT): coupling, int(kinds.mjEQ_TENDON): tendon_coupling}
    for e in range(m.neq):
        name, declare_one = reader.name("equality", e), add.get(m.eq_type[e])
        if declare_one:
            own, active = reader.unused("joint", name, " equality"), bool(m.eq_active0[e]) and not is_off
            left = declare_one(reader, e, own, active)
            polynomials += [left] if left else []
        else:
            reader.missing["equalities of flexible parts, and distances of shapes"].append(name)
    return polynomials


def ends(reader, e):
    """(body, pose in it) of both ends of an equality between bodies or sites; poses None for bodies."""
    m = reader.model
    ids = int(m.eq_obj1id[e]), int(m.eq_obj2id[e])
    if m.eq_objtype[e] == int(reader.mujoco.mjtObj.mjOBJ_SITE):
        return [reader.site(k) for k in ids]
    return [(reader.bodies[k], None) for k in ids]


def connection(reader, e, name, active):
    """Two points that coincide."""
    (parent, A), (child, B) = ends(reader, e)
    data = reader.model.eq_data[e]
    reader.builder.loop(name, "spherical", parent, child, active=active,
                        parent_placement=pose(data[:3]) if A is None else A,
                        child_placement=pose(data[3:6]) if B is None else B)


def weld(reader, e, name, active):
    """Two frames that coincide; the second body's point comes first in the data. MuJoCo multiplies the rows of their
    turn by the last number, `torquescale`: with zero it leaves the turn free."""
    (parent, A), (child, B) = ends(reader, e)
    data = reader.model.eq_data[e]
    reader.builder.loop(name, "fixed" if data[10] else "spherical", parent, child, active=active,
                        parent_placement=pose(data[3:6], data[6:10]) if A is None else A,
                        child_placement=pose(data[:3]) if B is None else B)


def coupling(reader, e, name, active):
    """y - y0 = a polynomial in x - x0, for the coordinates of two joints."""
    m, owner = reader.model, f"equality {shown(name)}"
    terms = []
    for j in (int(m.eq_obj1id[e]), int(m.eq_obj2id[e])):
        terms.append(({}, 0.0) if j < 0 else ({reader.coordinate(j, owner): 1.0}, m.qpos0[m.jnt_qposadr[j]]))
    return polynomial(reader, e, name, active, *terms)


def tendon_coupling(reader, e, name, active):
    """The same for the lengths of two tendons."""
    m, terms = reader.model, []
    for t in (int(m.eq_obj1id[e]), int(m.eq_obj2id[e])):
        if t >= 0 and not is_fixed(reader, t):
            reader.missing["equalities of spatial tendons"].append(name)
            return None
        terms.append(({}, 0.0) if t < 0 else (fixed_tendon(reader, t), m.tendon_length0[t]))
    return polynomial(reader, e, name, active, *terms)


def polynomial(reader, e, name, active, of_y, of_x):
    """y - y0 = a0 + a1 (x - x0) + ... for sums of coordinates; a polynomial of higher degree is returned."""
    (y, y0), (x, x0), a = of_y, of_x, reader.model.eq_data[e][:5]
    if a[2:].any() and x:
        return name, active, y, x, x0, [a[0] + y0, *a[1:]]
    slope = a[1] if x else 0.0
    coefficients = defaultdict(float, y)
    for each, c in x.items():
        coefficients[each] -= slope * c
    reader.builder.constraint(name, "coupling", coefficients=dict(coefficients),
                              offset=y0 + a[0] - slope * x0, active=active)
    return None


def with_polynomials(builder, polynomials):
    """The built robot, with polynomials of higher degree, which depend on the indices of coordinates."""
    robot = builder.build()
    if polynomials:
        builder = Builder.of(robot)
        for name, active, *polynomial in polynomials:
            builder.custom(name, **polynomial_rows(robot, *polynomial), active=active)
        robot = builder.build()
    return robot
