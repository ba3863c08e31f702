"""Addresses of users' functions, and coefficients, in the packed records of constraints."""

import numpy as np
from numba import njit
from numba.core.registry import CPUDispatcher

from liedyn.machine.compiled.user_functions import POSES, Function
from liedyn.machine.errors import shown
from liedyn.model import validation
from liedyn.model.kinds import CONSTRAINT_KINDS
from liedyn.model.packed import (
    LOOP_BIAS, LOOP_COEFFICIENTS, LOOP_DERIVATIVES, LOOP_DRIFT, LOOP_FORCE, LOOP_JACOBIAN, LOOP_RESIDUAL, LOOP_TARGET,
    LOOP_TARGET_SIZE,
)


def _target_name(each):
    return f"target of constraint {each.name!r}"


def target_of(functions, each):
    """The target function of a constraint of a robot with these `functions`; None if it has none."""
    moving = functions.get(_target_name(each))
    return moving and moving.function


def attach_target(ints, record, functions, each, target):
    """Set the function that moves frame A of a record, or the sum of a coupling; None makes it constant."""
    what = _target_name(each)
    functions.pop(what, None)
    ints[record + LOOP_TARGET] = 0
    if target is not None:
        returns = [((), (), ())] if is_coupling(each) else [((3,), (3,), (3,)), POSES]
        functions[what] = Function(what, target, {"t": 0.0}, *returns)
        ints[record + LOOP_TARGET] = functions[what].address
        ints[record + LOOP_TARGET_SIZE] = functions[what].size


def attach_functions(ints, record, functions, each, q, nv):
    """Store the functions of custom rows; each is called once as a check."""
    rows, v = len(each.rows), np.ones(nv)
    state = {"t": 0.0, "q": q}
    samples = {
        "residual": (LOOP_RESIDUAL, state, (rows,)),
        "jacobian": (LOOP_JACOBIAN, state, (rows, nv)),
        "drift": (LOOP_DRIFT, state, (rows,)),
        "bias": (LOOP_BIAS, state | {"v": v}, (rows,)),
        "derivatives": (LOOP_DERIVATIVES, state | {"v": v, "a": v}, (rows, nv), (rows, nv), (rows, nv)),
        "force_derivative": (LOOP_FORCE, state | {"lam": np.ones(rows)}, (nv, nv)),
    }
    for key, function in each.functions.items():
        place, sample, *returns = samples[key]
        what = f"{key} of constraint {each.name!r}"
        functions[what] = Function(what, function, sample, tuple(returns))
        ints[record + place] = functions[what].address


def is_coupling(each):
    """True if a constraint acts on coordinates rather than between bodies."""
    return each.kind in CONSTRAINT_KINDS and CONSTRAINT_KINDS[each.kind].coefficients > 0


def fill_coefficients(ints, floats, record, each, joints, places):
    """Store the coefficients of coordinates, nv for each row; ball and free joints have no coordinates to couple."""
    single = {joint.name + suffix: None for joint, kind in joints if kind.nq == kind.nv for suffix in kind.velocities}
    for name, value in each.coefficients.items():
        validation.choice(f"constraint {shown(each.name)}", "coefficients", name, single)
        start = ints[record + LOOP_COEFFICIENTS] + places[name]
        floats[start:start + np.size(value) * len(places):len(places)] = value


def element_functions(element):
    """The user's functions of a force element as C functions, by argument name."""
    return {key: _law_function(element.name, function) if key == "law" else Function(
        f"{key} of force element {element.name!r}", function, {"t": 0.0}, ((3,),))
        for key, function in element.functions.items()}


def _law_function(name, law):
    """A law f(x, w) as a C function of one length and one rate."""
    if isinstance(law, CPUDispatcher):
        entry = njit(lambda t, x, w: law(x[0], w[0]))
    else:
        def entry(t, x, w):
            return law(float(x[0]), float(w[0]))
    sample = {"t": 0.0, "q": np.full(1, 0.01), "v": np.full(1, 0.01)}
    return Function(f"law of force element {name!r}", entry, sample, ((), (), ()))
