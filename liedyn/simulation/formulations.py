"""Accelerations inside a run, one compiled function for each formulation, called by its address.

A loop that names a kernel contains all of it: it would be compiled once more for each formulation, and the formulations
for each loop. Here a loop knows an address only. All formulations have one signature,

    status = f(ints, floats, settings, work, t, row, q, v, a, lam)

and leave the condition number in ``work.number[0]``; `lam` of no length means that multipliers are not wanted.
"""
import numpy as np
from llvmlite import ir
from numba import types, typeof
from numba.extending import intrinsic

from liedyn.constraints.rows import residual_rows, velocity_rows
from liedyn.dynamics.multiplier import multiplier_kernel
from liedyn.dynamics.nullspace import solve_accelerations, solve_multipliers
from liedyn.dynamics.stabilization import baumgarte_rows
from liedyn.dynamics.svd import svd_kernel
from liedyn.dynamics.terms import terms_in_place
from liedyn.dynamics.unified import unified_kernel
from liedyn.functions import call
from liedyn.jit import kernel, kernel_in_place
from liedyn.simulation.workspace import BAUMGARTE, FUNCTION, OK, SINGULAR


@intrinsic
def accelerations(typing, address, ints, floats, settings, work, t, row, q, v, a, lam):
    """Call the formulation at an address."""
    signature = types.int64(address, ints, floats, settings, work, t, row, q, v, a, lam)

    def codegen(context, builder, signature, arguments):
        convention, taken = context.call_conv, signature.args[1:]
        function = convention.get_function_type(types.int64, taken)
        callee = builder.inttoptr(arguments[0], ir.PointerType(function))
        _, result = convention.call_function(builder, callee, types.int64, taken, arguments[1:])
        return result

    return signature, codegen


@kernel_in_place
def input_forces(o, x, t, row, q, v):
    """x.tau = B u, u a row of the table or what the user's function says."""
    nu = x.actuators.shape[1]
    if o.input_kind == FUNCTION:
        call(o.input_address, t, q, v, v, v, x.u, 0)
    else:
        for k in range(nu):
            x.u[k] = x.table[row, k]
    for j in range(x.tau.size):
        x.tau[j] = 0.0
        for k in range(nu):
            x.tau[j] += x.actuators[j, k] * x.u[k]


@kernel_in_place
def prepare(ints, floats, o, x, t, row, q, v):
    """Inputs, M, h, G, residual, psi, and gamma with Baumgarte's pull (Spencer 2004, eq. 3.8)."""
    input_forces(o, x, t, row, q, v)
    terms_in_place(ints, floats, q, v, x.f_ext, x.world, x.M, x.h, x.G, x.gamma)
    if o.stabilisation == BAUMGARTE or o.sigma != 0.0:
        residual_rows(ints, floats, q, x.world, x.residual)
        velocity_rows(ints, floats, q, v, x.world, x.psi)
    if o.stabilisation == BAUMGARTE:
        baumgarte_rows(x.residual, x.psi, x.gamma, o.alpha, o.beta, x.gamma)


@kernel_in_place
def by_nullspace(ints, floats, o, x, t, row, q, v, a, lam):
    prepare(ints, floats, o, x, t, row, q, v)
    status, rank, ratio = solve_accelerations(ints, x.M, x.h, x.G, x.gamma, x.tau, o.rank_tolerance, x.solve, a)
    if lam.size > 0:
        solve_multipliers(lam.size, x.h.size, rank, x.solve, lam)
    x.number[0] = 1.0 / ratio
    return OK if status == 0 else SINGULAR


@kernel
def by_svd(ints, floats, o, x, t, row, q, v, a, lam):
    prepare(ints, floats, o, x, t, row, q, v)
    m = x.gamma.size
    sizes, indicator = np.empty(m), np.empty(m)
    status, rank = svd_kernel(x.M, x.h, x.G, x.residual, x.psi, x.gamma, x.tau, 0.0, 0.0, o.rank_tolerance, a,
                              lam if lam.size == m else x.lam_stage, sizes, indicator)
    x.number[0] = sizes[0] / sizes[rank - 1] if rank > 0 else 1.0
    return OK if status == 0 else SINGULAR


@kernel
def by_multipliers(ints, floats, o, x, t, row, q, v, a, lam):
    prepare(ints, floats, o, x, t, row, q, v)
    m = x.gamma.size
    status, _ = multiplier_kernel(x.M, x.h, x.G, x.residual, x.psi, x.gamma, x.tau, 0.0, 0.0, o.rank_tolerance, a,
                                  lam if lam.size == m else x.lam_stage)
    x.number[0] = np.nan
    return OK if status == 0 else SINGULAR


@kernel
def by_velocity_level(ints, floats, o, x, t, row, q, v, a, lam):
    prepare(ints, floats, o, x, t, row, q, v)
    m = x.gamma.size
    status, _ = unified_kernel(x.M, x.h, x.G, x.residual, x.psi, x.gamma, x.tau, o.sigma, o.rank_tolerance, a,
                               lam if lam.size == m else x.lam_stage)
    x.number[0] = np.nan
    return OK if status == 0 else SINGULAR


FORMULATIONS = {"nullspace": by_nullspace, "svd": by_svd, "multiplier": by_multipliers, "unified": by_velocity_level}


def address_of(name, ints, floats, settings, work, rows):
    """Address of a formulation, compiled or found in the cache for these arguments."""
    q, v = rows.q[0], rows.v[0]
    dispatcher = FORMULATIONS[name]
    arguments = tuple(typeof(x) for x in (ints, floats, settings, work, 0.0, 0, q, v, v, v))
    dispatcher.compile(arguments)
    result = dispatcher.overloads[arguments]
    return result.library.get_pointer_to_function(result.fndesc.llvm_func_name)
