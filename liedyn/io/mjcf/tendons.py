"""Tendons of MJCF files: fixed ones are sums of coordinates, spatial ones run from site to site."""
from collections import defaultdict

from numba import njit

from liedyn.errors import shown


def is_fixed(reader, t):
    """Is the length of a tendon a sum of coordinates?"""
    m = reader.model
    return m.wrap_type[m.tendon_adr[t]] == int(reader.mujoco.mjtWrap.mjWRAP_JOINT)


def fixed_tendon(reader, t):
    """Its coefficients by coordinate."""
    m, found = reader.model, defaultdict(float)
    owner = f"tendon {shown(reader.name('tendon', t))}"
    for k in range(m.tendon_adr[t], m.tendon_adr[t] + m.tendon_num[t]):
        found[reader.coordinate(int(m.wrap_objid[k]), owner)] += m.wrap_prm[k]
    return dict(found)


def line(reader, t):
    """Bodies and placements of the two sites of a tendon; None if it goes over more, or pulleys and bodies."""
    m = reader.model
    first, is_site = m.tendon_adr[t], int(reader.mujoco.mjtWrap.mjWRAP_SITE)
    if m.tendon_num[t] != 2 or (m.wrap_type[first:first + 2] != is_site).any():
        return None
    (parent, A), (child, B) = (reader.site(int(m.wrap_objid[first + k])) for k in range(2))
    return parent, child, A, B


def declare(reader):
    """Springs and dampers of tendons, as force elements."""
    m = reader.model
    for t in range(m.ntendon):
        stiffness, damping = float(m.tendon_stiffness[t].flat[0]), float(m.tendon_damping[t].flat[0])
        name, (low, high) = reader.name("tendon", t), map(float, m.tendon_lengthspring[t])
        if not (stiffness or damping):
            continue
        if _is_nonlinear(m.tendon_stiffness[t]) or _is_nonlinear(m.tendon_damping[t]):
            reader.missing["springs and dampers of tendons that are not linear"].append(name)
            continue
        law = {"stiffness": stiffness, "damping": damping} if low == high else {
            "law": _with_slack(stiffness, damping, high - low)}
        if is_fixed(reader, t):
            reader.builder.coordinate_force(name, fixed_tendon(reader, t), rest=low, **law)
        elif line(reader, t):
            reader.builder.spring(name, *line(reader, t), length=low, **law)
        else:
            reader.missing["springs of tendons over more than two sites"].append(name)


def _is_nonlinear(coefficients):
    """Newer versions of MuJoCo have polynomials there."""
    return bool(coefficients.size > 1 and coefficients.flat[1:].any())


def _with_slack(stiffness, damping, slack):
    """A law that has no stiffness from zero to `slack`."""
    @njit
    def law(x, w):
        beyond = x if x < 0.0 else max(x - slack, 0.0)
        return stiffness * beyond + damping * w, stiffness * (beyond != 0.0), damping

    return law
