"""Tendons of MJCF files: fixed ones are sums of coordinates, spatial ones run from site to site."""
from collections import defaultdict

import numpy as np

from liedyn.files.mjcf.passive import law
from liedyn.machine.errors import shown


def is_fixed(reader, t):
    """True if the length of a tendon is a sum of coordinates."""
    m = reader.model
    return m.wrap_type[m.tendon_adr[t]] == int(reader.mujoco.mjtWrap.mjWRAP_JOINT)


def fixed_tendon(reader, t):
    """Coefficients of a fixed tendon by coordinate."""
    m, found = reader.model, defaultdict(float)
    owner = f"tendon {shown(reader.name('tendon', t))}"
    for k in range(m.tendon_adr[t], m.tendon_adr[t] + m.tendon_num[t]):
        found[reader.coordinate(int(m.wrap_objid[k]), owner)] += m.wrap_prm[k]
    return dict(found)


def line(reader, t):
    """Bodies and placements of the two sites of a tendon; None if it has more sites, or pulleys or wrapped bodies."""
    m = reader.model
    first, is_site = m.tendon_adr[t], int(reader.mujoco.mjtWrap.mjWRAP_SITE)
    if m.tendon_num[t] != 2 or (m.wrap_type[first:first + 2] != is_site).any():
        return None
    (parent, A), (child, B) = (reader.site(int(m.wrap_objid[first + k])) for k in range(2))
    return parent, child, A, B


def add_rotors(reader, armature):
    """Add armatures of tendons over one joint to `armature` of joints, times the square of the coefficient."""
    m = reader.model
    for t in np.flatnonzero(reader.of_tendons.armature):
        first = m.tendon_adr[t]
        if is_fixed(reader, t) and m.tendon_num[t] == 1:
            armature[m.wrap_objid[first]] += m.wrap_prm[first] ** 2 * reader.of_tendons.armature[t]
        else:
            name = f"{reader.name('tendon', int(t))} ({reader.of_tendons.armature[t]:g})"
            reader.missing["the armature of tendons that are not over one joint"].append(name)


def declare(reader):
    """Declare springs and dampers of tendons as force elements."""
    m, numbers = reader.model, reader.of_tendons
    for t in range(m.ntendon):
        stiffness, damping = numbers.stiffness[t], numbers.damping[t]
        (low, high), name = map(float, m.tendon_lengthspring[t]), reader.name("tendon", t)
        if not (stiffness.any() or damping.any()):
            continue
        given = law(stiffness, damping, high - low)
        if is_fixed(reader, t):
            reader.builder.coordinate_force(reader.unused("element", name), fixed_tendon(reader, t), rest=low, **given)
        elif line(reader, t):
            reader.builder.spring(reader.unused("element", name), *line(reader, t), length=low, **given)
        else:
            reader.missing["springs and dampers of tendons over more than two sites"].append(name)
