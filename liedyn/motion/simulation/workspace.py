"""Settings, inputs and scratch arrays of a run's compiled loops, and the statuses with which steps end."""
# mypy: ignore-errors
from typing import NamedTuple

import numpy as np
from numba import types

from liedyn.machine.compiled.jit import INTEGERS, MATRIX, VECTOR
from liedyn.mechanics.constraints.constraint_rows import holonomic_rows
from liedyn.mechanics.contact.sliding_friction import SLIDING_WORK, make_sliding_work
from liedyn.mechanics.dynamics.nullspace import solve_size
from liedyn.mechanics.dynamics.terms import terms_size
from liedyn.mechanics.elements.element_wrenches import LAWS_TYPE
from liedyn.mechanics.elements.forces import room_for
from liedyn.mechanics.tree.crba import crba_size
from liedyn.mechanics.tree.energy import WORK as ENERGY_WORK
from liedyn.mechanics.tree.momenta import momentum_size
from liedyn.mechanics.tree.rnea import rnea_size
from liedyn.model.force_elements import NO_ELEMENTS
from liedyn.model.packed import DOF_DAMPING, N_LINKS, N_ROWS, dofs_of
from liedyn.model.packed_records import MODEL
from liedyn.model.remembered import remembered
from liedyn.model.size import row_sizes

# use of the energy in projection
FREE_ENERGY, WANTED_ENERGY, BOUNDED_ENERGY = range(3)

STABILISATIONS = ("none", "baumgarte", "projection", "minimal")
NONE, BAUMGARTE, PROJECTION, MINIMAL = range(4)

FORMULATIONS = ("nullspace", "svd", "multiplier", "unified", "momenta")
NULLSPACE, SVD, MULTIPLIER, UNIFIED, MOMENTA = range(5)

# kinds of inputs
TABLE, FUNCTION = range(2)

# statuses of steps
OK, SINGULAR, NOT_CLOSED, NOT_CONSISTENT, NOT_FINITE, DIVERGED, NOT_CONVERGED, TOO_SMALL = range(8)

FAILED = -1
"""Status after which a user's function has failed, which the compiled loops need not check."""

MESSAGES = {
    SINGULAR: "singular: no inertia resists some motion that the constraints allow, the independent coordinates lose a "
              "motion, or sliding friction holds what it should let slide",
    NOT_CLOSED: "the constraints cannot be closed: a target out of reach, or a singular configuration",
    NOT_CONSISTENT: "no state that satisfies the constraints has the energy that is due near this one",
    NOT_FINITE: "the state is not finite any more: the motion has diverged, or an input is not a number",
    DIVERGED: "a speed has passed {largest:g}: the motion has diverged",
    NOT_CONVERGED: "the iteration of the implicit step does not converge: try a smaller dt",
    FAILED: "a function has failed",
    TOO_SMALL: "the adaptive step has become too small: a discontinuity, or a singular configuration",
}

# columns of the scalars stored with every state
CONDITION, INPUT_WORK, OTHER_WORK, N_SCALARS = range(4)


class Settings(NamedTuple):
    """Numbers that are constant during a run."""

    tableau: MATRIX  # of the explicit method, see `liedyn.motion.simulation.integrators.explicit`
    on_group: bool  # true if it is made in local coordinates of the configuration group
    rho: float  # spectral radius at infinity of the generalised-alpha method
    formulation: int
    stabilisation: int
    rate: float  # Baumgarte's feedback: phi + rate psi + stiffness g = 0
    stiffness: float
    tolerance: float  # largest residual that contradictory rows may leave [rad, sizes of the mechanism]
    rank_tolerance: float
    energy: int  # energy is restored by projection, or bounded where contacts move the state, or neither
    all_power: bool  # true if moving targets or external wrenches have power
    friction: bool  # true if some contact slides with friction
    input_kind: int
    direct: bool  # true if the inputs are the generalised forces themselves
    input_address: int  # address of a C function u(t, q, v)
    feedback_address: int  # address of its derivatives by q and v, 0 if they are unknown or not used
    largest: VECTOR  # (n) speeds above which a run has diverged


class Work(NamedTuple):
    """Scratch arrays; n = nv, m rows."""

    f_ext: VECTOR  # wrenches on links, or empty
    none: VECTOR  # empty
    table: MATRIX  # inputs (rows, nu)
    actuators: MATRIX  # (n, nu)
    drives: MATRIX  # the actuators, followed by the identity if there are force elements
    damping: VECTOR  # (n)
    holonomic: INTEGERS  # (m) 1 for rows with a residual
    every: INTEGERS  # (m) 1
    dependent: types.int64[:, ::1]  # (2, n) 1 for dependent coordinates, dependent velocities
    pivots: VECTOR  # (2) last pivot of that choice when it was made, and now
    columns: MATRIX  # (n, m + 1)
    order: INTEGERS  # (m or n)
    world: VECTOR  # recursions in world coordinates
    solve: VECTOR  # of the null-space formulation
    local: VECTOR  # recursions in link coordinates
    slopes: types.float64[:, :, ::1]  # (2, n, n) slopes of the forces of force elements, or empty
    u: VECTOR  # (nu)
    feedback: types.float64[:, :, ::1]  # (2, nu, n) its derivatives by q and v
    tau: VECTOR  # (n)
    zero: VECTOR  # (n)
    vector: MATRIX  # (4, n)
    M: MATRIX  # (n, n)
    h: VECTOR  # (n)
    gamma: VECTOR  # (m)
    L: MATRIX  # (n, n) its Cholesky factor
    G: MATRIX  # (m, n)
    Y: MATRIX  # (m, n + 1)
    sizes: MATRIX  # (2, m) singular values of G and their weights
    residual: VECTOR  # (m)
    row_sizes: VECTOR  # (m) scales of residuals: 1 rad, or the mechanism's size
    psi: VECTOR  # (m)
    q_stage: VECTOR  # (nq)
    step: VECTOR  # (nq)
    q_rate: MATRIX  # (stages, nq)
    v_stage: VECTOR  # (n)
    a_stage: MATRIX  # (stages, n)
    lam_stage: VECTOR  # (m)
    power: MATRIX  # (stages, 2) of the inputs, and of all else that changes the energy
    number: VECTOR  # (1)
    friction: SLIDING_WORK  # contact data of `liedyn.mechanics.contact.sliding_friction`
    elements: MODEL  # force elements: their measurements,
    laws: LAWS_TYPE
    element_work: VECTOR
    momenta: MATRIX  # (4 + 3 m, n) of the formulation in momenta, or empty (`liedyn.motion.simulation.momenta_run`)
    nearest: VECTOR  # (2) largest condition number of a step's stages; fastest rate in the last regular one [1/s]


def _numba_type(group):
    return types.NamedTuple([{int: types.int64, float: types.float64, bool: types.boolean}.get(kind, kind)
                             for kind in group.__annotations__.values()], group)


SETTINGS, WORK = _numba_type(Settings), _numba_type(Work)
"""Their Numba types, for `liedyn.machine.compiled.jit.late`."""


class Moment(NamedTuple):
    """A time of a run and the state then."""

    t: types.float64
    row: types.int64  # of the table of inputs
    q: VECTOR
    v: VECTOR


MOMENT = _numba_type(Moment)


class Rows(NamedTuple):
    """States one after the other, written by the loops: row k + 1 is one step after row k."""

    t: np.ndarray  # (rows)
    held: np.ndarray  # (rows) row of the input table that is used from this time on
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    tau: np.ndarray
    lam: np.ndarray
    scalars: np.ndarray  # (rows, N_SCALARS)
    memory: np.ndarray  # (rows, 2 n + m) what a method carries from step to step, NaN at its start


def make_work(robot, f_ext, inputs, contacts, stages, in_momenta=False):
    """Scratch arrays of a run by a method with `stages` stages, in momenta or not."""
    elements, actuators = robot.elements or NO_ELEMENTS, inputs.actuators
    packed, laws, drives = elements.packed, elements.laws, actuators
    if robot.elements:
        laws = laws._replace(numbers=laws.numbers.copy(), inputs=inputs.driven)
        packed, drives = packed._replace(floats=packed.floats.copy()), np.hstack([actuators, np.eye(robot.nv)])
    blank = _blank_work(robot, inputs.table.shape[1], stages, in_momenta)
    return Work(
        f_ext=f_ext.copy(), table=inputs.table, actuators=actuators, drives=drives,
        friction=make_sliding_work(robot, contacts), elements=packed, laws=laws, element_work=room_for(packed),
        **{name: x.copy() for name, x in blank.items()})


@remembered
def _blank_work(robot, nu, stages, in_momenta):
    """The arrays of `make_work` that are the same for all runs, by name."""
    n, m, nq = robot.nv, int(robot.packed.ints[N_ROWS]), robot.nq
    links, of_elements = int(robot.packed.ints[N_LINKS]), n if robot.elements else 0
    every, holonomic = np.ones((2, m), np.int64)
    holonomic_rows(robot.packed, holonomic)
    shapes = dict(
        none=0, columns=(n, m + 1), world=max(terms_size(robot.packed), crba_size(robot.packed)),
        solve=solve_size(robot.packed), u=nu,
        local=max(rnea_size(robot.packed), ENERGY_WORK * links, momentum_size(robot.packed)),
        feedback=(2, nu, n), tau=n, zero=n, vector=(4, n), M=(n, n), h=n, gamma=m, L=(n, n), G=(m, n), Y=(m, n + 1),
        sizes=(2, m), residual=m, psi=m, q_stage=nq, step=nq, q_rate=(stages, nq), v_stage=n, a_stage=(stages, n),
        lam_stage=m, power=(stages, 2), number=1,
        momenta=(4 + 3 * m if in_momenta else 0, n))
    return {name: np.zeros(shape) for name, shape in shapes.items()} | dict(
        every=every, holonomic=holonomic, slopes=np.zeros((2, of_elements, of_elements)), pivots=np.ones(2),
        damping=dofs_of(robot.packed)[1][:, DOF_DAMPING].copy(), dependent=np.zeros((2, n), np.int64),
        order=np.zeros(max(m, n), np.int64), row_sizes=row_sizes(robot), nearest=np.array([0.0, np.inf]))


def make_rows(robot, count):
    """Rows for `count` states."""
    n, m = robot.nv, int(robot.packed.ints[N_ROWS])
    return Rows(np.empty(count), np.zeros(count, np.int64), np.empty((count, robot.nq)), np.empty((count, n)),
                np.empty((count, n)), np.empty((count, n)), np.empty((count, m)), np.zeros((count, N_SCALARS)),
                np.full((count, 2 * n + m), np.nan))


def copy_row(rows, k, to, l):
    """Copies row k of `rows` to row l of `to`."""
    for source, target in zip(rows, to):
        target[l] = source[k]
