"""Every public function of one state, on every bundled robot: states, calls, and what they return as arrays.

Run as a program, ``python one_state_calls.py STATES RESULTS``, it reads states and writes results and what was
compiled.
"""
import pickle
import sys
import warnings

import numpy as np
from numba.core import event

import liedyn as ld
from liedyn.errors import LiedynError
from liedyn.mechanics.dynamics.forward import METHODS
from liedyn.model.calls.recursion import RECURSIONS

LARGE = 30
"""Degrees of freedom above which the second derivatives of ABA are only called with weights, `aba_hessian`: whole they
take a third of the time of all calls."""


def state(name):
    """A moving state near home that keeps all constraints: q, v, a, tau by name."""
    robot, rng = ld.load(name), np.random.default_rng(sum(map(ord, name)))
    q = ld.integrate(robot, robot.home, 0.02 * rng.standard_normal(robot.nv))
    v = 0.3 * rng.standard_normal(robot.nv)
    if robot.row_names:
        try:
            q = ld.close(robot, q)
        except LiedynError:
            q = ld.close(robot, robot.home)
        G = ld.constraint_jacobian(robot, q)
        v -= np.linalg.pinv(G) @ (G @ v)
    return {"q": q, "v": v, "a": rng.standard_normal(robot.nv), "tau": rng.standard_normal(robot.nv),
            "weights": rng.standard_normal(robot.nv), "dv": 0.1 * rng.standard_normal(robot.nv), "q0": q,
            "q1": ld.integrate(robot, q, 0.3 * v), "f_ext": rng.standard_normal((robot.nbodies, 6)),
            "body": robot.body_names[-1]}


def calls(robot, x):
    """Pairs of a name and a function without arguments."""
    q, v, tau = x["q"], x["v"], x["tau"]
    for name, declared in RECURSIONS.items():
        if robot.nv <= LARGE or name != "aba_second_derivatives":
            yield name, lambda declared=declared: declared.function(robot, **{n: x[n] for n in declared.inputs})
    yield "linearize", lambda: (lambda s: (s.A, s.B, s.C, s.D, s.f0, s.K, s.drift))(ld.linearize(robot, q, v, tau))
    yield "linearize in a tangent space", lambda: ld.linearize(robot, q, v, tau, independent="tangent").A
    for each in METHODS:
        yield f"forward_dynamics {each}", lambda each=each: ld.forward_dynamics(robot, q, v, tau, method=each).a
    for name in ("element_forces", "element_states"):
        yield name, lambda name=name: getattr(ld, name)(robot, q, v)
    yield "canonical_momenta", lambda: ld.canonical_momenta(robot, q, v)
    yield "underlying", lambda: ld.underlying(robot, q, v, tau)
    if robot.row_names:
        lam = np.ones(len(robot.row_names))
        yield "close", lambda: ld.close(robot, robot.home)
        yield "closure_error", lambda: ld.closure_error(robot, q)
        yield "velocity_error", lambda: ld.velocity_error(robot, q, x["a"])
        yield "constraint_jacobian", lambda: ld.constraint_jacobian(robot, q)
        yield "constraint_bias", lambda: ld.constraint_bias(robot, q, v)
        yield "constraint_wrenches", lambda: ld.constraint_wrenches(robot, q, lam)
        yield "world_constraint_wrenches", lambda: ld.world_constraint_wrenches(robot, q, lam)
        yield "virtual_coordinates", lambda: ld.virtual_coordinates(robot, q)
        yield "virtual_jacobian", lambda: ld.virtual_jacobian(robot, q)
        names = [each for each in robot.independent if each in robot.velocity_names]
        if names and len(names) == len(robot.independent):
            yield "complete_velocity", lambda: ld.complete_velocity(robot, q, dict.fromkeys(names, 0.3))


def arrays(x):
    """All numbers of a result, as a list of arrays."""
    if isinstance(x, dict):
        x = tuple(x.values())
    if isinstance(x, tuple | list):
        return [each for part in x for each in arrays(part)]
    return [np.asarray(x, float)] if x is not None and not isinstance(x, str) else []


def outcomes(states):
    """Arrays, or the error with its text, and texts of warnings, by robot and call."""
    found = {}
    for name, x in states.items():
        robot = ld.load(name)
        for what, call in calls(robot, x):
            with warnings.catch_warnings(record=True) as noted:
                warnings.simplefilter("always")
                try:
                    result = arrays(call())
                except LiedynError as error:
                    result = f"{type(error).__name__}: {error}"
            found[name, what] = result, [str(each.message) for each in noted]
    return found


if __name__ == "__main__":
    compiled = event.RecordingListener()
    event.register("numba:compile", compiled)
    with open(sys.argv[1], "rb") as file:
        given = pickle.load(file)
    with open(sys.argv[2], "wb") as file:
        pickle.dump((outcomes(given), len(compiled.buffer)), file)
