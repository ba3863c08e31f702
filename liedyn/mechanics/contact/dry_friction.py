"""Dry friction of joints: Coulomb's with Stribeck's curve, set-valued at rest (`Builder.friction` with ``width=0``).

It is friction of a contact that never opens and has a given normal force: with w the rate of the joint,

    |P| <= static where w = 0        P = -F(|w|) w / |w| elsewhere
    F(x) = coulomb + (static - coulomb) exp(-(x / stribeck)^2) + viscous x

(Armstrong-Helouvry, Dupont and Canudas de Wit 1994), so that a joint begins to move with the friction that has held it;
with stribeck = 0 friction drops to coulomb as soon as it moves. The record of such a constraint has two rows: an empty
one, which has the limit as its normal force, and that of the rate; so contacts and joints stick and slide by the same
rules.
"""
import math

import numpy as np

from liedyn.machine.compiled.jit import inline, kernel_in_place
from liedyn.model.constraint_records import loop_at, loop_kind
from liedyn.model.kinds import DRY_FRICTION
from liedyn.model.packed import LOOP_LIMIT


@inline
def is_dry(model, l):
    """True if constraint l is the dry friction of a joint."""
    return loop_kind(model, l) == DRY_FRICTION


@kernel_in_place
def friction_limit(model, l, x, slides):
    """F at the rate x along the direction of motion, smooth beyond its reversal, at negative rates; or that at rest."""
    at = loop_at(model, l, LOOP_LIMIT)
    coulomb, static, stribeck = model.floats[at], model.floats[at + 1], model.floats[at + 2]
    if not slides:
        return static
    excess = (static - coulomb) * math.exp(-(x / stribeck) ** 2) if stribeck > 0.0 else 0.0
    return coulomb + excess + model.floats[at + 3] * x


def limits(numbers, x):
    """F and dF/dx of rows of (coulomb, static, stribeck, viscous) that slide, at the rates x."""
    coulomb, static, stribeck, viscous = np.moveaxis(np.asarray(numbers), -1, 0)
    inverse = np.divide(1.0, stribeck, out=np.zeros_like(stribeck), where=stribeck > 0.0)
    excess = np.where(stribeck > 0.0, static - coulomb, 0.0) * np.exp(-np.square(x * inverse))
    return coulomb + excess + viscous * x, viscous - 2.0 * x * np.square(inverse) * excess
