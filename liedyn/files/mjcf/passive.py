"""Springs, dampers and armatures of joints and tendons, including those of actuators.

MuJoCo's springs and dampers are polynomials, -(a x + b x^2 + c x^3) and -(a v + b v |v| + c v^3).

Tendons of MJCF files: fixed ones are sums of coordinates, spatial ones run from site to site.
"""
from collections import defaultdict
from typing import NamedTuple

import numpy as np

from liedyn.machine.errors import shown
from liedyn.model.cables import Pulley
from liedyn.model.laws import PolynomialSpring


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


def path(reader, t):
    """Points and pulleys of a tendon, as `Builder.cable` takes them.

    None if it has pulleys that divide its force, or side sites within what it goes round, so that it touches that from
    inside, or on other bodies.
    """
    m, wrap, found = reader.model, reader.mujoco.mjtWrap, []
    for k in range(m.tendon_adr[t], m.tendon_adr[t] + m.tendon_num[t]):
        kind, number = m.wrap_type[k], int(m.wrap_objid[k])
        if kind == int(wrap.mjWRAP_SITE):
            found.append(reader.site(number))
            continue
        shape = {int(wrap.mjWRAP_SPHERE): "sphere", int(wrap.mjWRAP_CYLINDER): "cylinder"}.get(int(kind))
        if shape is None:
            return None
        frame, radius = reader.pose(m.geom_pos[number], m.geom_quat[number]), float(m.geom_size[number, 0])
        side, body = None, m.geom_bodyid[number]
        if m.wrap_prm[k] >= 0.0:
            site = int(m.wrap_prm[k])
            side = frame[:3, :3].T @ (reader.site(site)[1][:3, 3] - frame[:3, 3])
            if m.site_bodyid[site] != body or np.linalg.norm(side) < radius:
                return None
        found.append(Pulley(reader.bodies[body], frame, radius, side=side, shape=shape))
    return found


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


def declare_tendons(reader):
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
        elif path(reader, t):
            reader.builder.cable(reader.unused("element", name), path(reader, t), length=low, **given, pushes=True)
        else:
            reader.missing["springs and dampers of tendons with pulleys, or side sites within geoms"].append(name)


def declare_limits(reader):
    """Declare upper limits of tendons over sites as cables that do not stretch; other limits of tendons are told."""
    m = reader.model
    for t in np.flatnonzero(m.tendon_limited) if not reader.has_no_limits() else ():
        (low, high), name = map(float, m.tendon_range[t]), reader.name("tendon", int(t))
        way = None if is_fixed(reader, t) else path(reader, t)
        if way and m.tendon_length0[t] <= high:
            reader.builder.cable(reader.unused("joint", name), way, length=high, stiffness=np.inf)
        if not way or m.tendon_length0[t] > high or low > 0.0:
            reader.missing["the limits of tendons, except upper ones of tendons over sites that hold in the drawing"
                           ].append(name)


DEGREES = 3


class Passive(NamedTuple):
    """Coefficients of all joints, or of all tendons."""

    stiffness: np.ndarray  # (n, 3): a, b, c
    damping: np.ndarray  # (n, 3)
    armature: np.ndarray  # (n,)


def of_joints(reader):
    """Springs, dampers and armatures of joints, including those of tendons over one joint."""
    m, trn = reader.model, reader.mujoco.mjtTrn
    first = np.asarray(m.jnt_dofadr, int)
    found = Passive(_polynomials(reader, "joint", "jnt_stiffness"), _polynomials(reader, "joint", "dof_damping", first),
                    np.array(m.dof_armature[first], float))
    _add_actuators(reader, found, (int(trn.mjTRN_JOINT), int(trn.mjTRN_JOINTINPARENT)))
    return _switched(reader, found)


def of_tendons(reader):
    """Springs, dampers and armatures of tendons."""
    m = reader.model
    found = Passive(_polynomials(reader, "tendon", "tendon_stiffness"),
                    _polynomials(reader, "tendon", "tendon_damping"),
                    np.array(getattr(m, "tendon_armature", np.zeros(m.ntendon)), float))
    _add_actuators(reader, found, (int(reader.mujoco.mjtTrn.mjTRN_TENDON),))
    return _switched(reader, found)


def _polynomials(reader, kind, field, places=slice(None)):
    """Coefficients of all joints or tendons; those of a degree above three are reported."""
    m = reader.model
    parts = [np.asarray(x, float) for x in (getattr(m, field, None), getattr(m, field + "poly", None)) if x is not None]
    rows = [np.atleast_2d(x.T).T[places] for x in parts]
    found = np.hstack([*rows, np.zeros((len(rows[0]), DEGREES))])
    for k in np.flatnonzero(found[:, DEGREES:].any(axis=1)):
        reader.missing[f"degrees above {DEGREES} of springs and dampers"].append(reader.name(kind, int(k)))
    return found[:, :DEGREES].copy()


def _add_actuators(reader, found, transmissions):
    """Add dampers and armatures of actuators, active or not: gear squared times their own."""
    m = reader.model
    if not hasattr(m, "actuator_armature"):
        return
    damping = _polynomials(reader, "actuator", "actuator_damping")
    for k in reader.actuators:
        if m.actuator_trntype[k] in transmissions:
            target, square = int(m.actuator_trnid[k, 0]), reader.gear(k)[0] ** 2
            found.damping[target] += square * damping[k]
            found.armature[target] += square * m.actuator_armature[k]


def _switched(reader, found):
    """Coefficients without those switched off in the file."""
    for switch, numbers in (("SPRING", found.stiffness), ("DAMPER", found.damping)):
        if reader.is_off(switch):
            numbers[:] = 0.0
    return found


def law(stiffness, damping, slack=0.0):
    """Arguments of `Builder.spring` and `Builder.coordinate_force`: numbers, or a law if these are not sufficient."""
    if slack or stiffness[1:].any() or damping[1:].any():
        return {"law": PolynomialSpring(*stiffness.tolist(), *damping.tolist(), slack)}
    return {"stiffness": float(stiffness[0]), "damping": float(damping[0])}


def split(coefficients):
    """The part that a joint can have, a number that is not negative, and the remaining coefficients."""
    own = max(float(coefficients[0]), 0.0)
    return own, coefficients - [own, 0.0, 0.0]


def shown_as(coefficients):
    """Coefficients as text for messages."""
    return " ".join(f"{x:g}" for x in coefficients)
