"""Springs, dampers and armatures of joints and tendons, including those of actuators.

MuJoCo's springs and dampers are polynomials, -(a x + b x^2 + c x^3) and -(a v + b v |v| + c v^3).
"""
from typing import NamedTuple

import numpy as np

from liedyn.model.laws import PolynomialSpring

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
