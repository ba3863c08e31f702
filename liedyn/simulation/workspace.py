"""What a run carries through its compiled loops: settings, inputs and scratch arrays; and how steps can end."""
from typing import NamedTuple

import numpy as np

from liedyn.constraints.rows import holonomic_rows
from liedyn.dynamics.nullspace import solve_size
from liedyn.dynamics.terms import terms_size
from liedyn.model.packed import DOF_DAMPING, N_LINKS, N_ROWS, dofs_of
from liedyn.model.size import row_sizes
from liedyn.simulation.friction import room_for_friction
from liedyn.tree.crba import crba_size
from liedyn.tree.energy import WORK as ENERGY_WORK
from liedyn.tree.rnea import rnea_size

# what projection does with the energy
FREE_ENERGY, WANTED_ENERGY, BOUNDED_ENERGY = range(3)

STABILISATIONS = ("none", "baumgarte", "projection", "minimal")
NONE, BAUMGARTE, PROJECTION, MINIMAL = range(4)

# methods with fixed steps
RK4, RKMK, ALPHA, SDIRK, MOREAU = range(5)

# where the inputs come from
TABLE, FUNCTION = range(2)

# how a step can end
OK, SINGULAR, NOT_CLOSED, NOT_CONSISTENT, NOT_FINITE, DIVERGED, NOT_CONVERGED, TOO_SMALL = range(8)

# columns of the scalars kept with every state
CONDITION, INPUT_WORK, OTHER_WORK, N_SCALARS = range(4)


class Settings(NamedTuple):
    """Numbers that do not change during a run."""

    method: int
    formulation: int  # address of its compiled function
    stabilisation: int
    stabiliser: int  # address of its compiled function
    alpha: float  # Baumgarte's, 1/s
    beta: float
    sigma: float  # Yun and Sarkar's, 1/s
    tolerance: float  # largest residual that contradicting rows may leave [rad, sizes of the mechanism]
    rank_tolerance: float
    energy: int  # is energy an invariant to be projected on, a bound that contacts must not pass, or neither?
    all_power: bool  # is there power of moving targets or external wrenches?
    linearization: int  # address of `linearize_kernel`, if the method needs it
    input_kind: int
    input_address: int  # of a C function u(t, q, v)
    feedback_address: int  # of one that gives its derivatives by q and v, 0 if they are unknown or not used
    rho: float  # spectral radius at infinity of the generalised-alpha method
    largest: np.ndarray  # (n) speeds above which a run has diverged
    friction: int  # address of `put_drags`, 0 where nothing rubs


class Work(NamedTuple):
    """Scratch arrays; n = nv, m rows."""

    f_ext: np.ndarray  # wrenches on links, or empty
    none: np.ndarray  # empty
    table: np.ndarray  # inputs (rows, nu)
    actuators: np.ndarray  # (n, nu)
    damping: np.ndarray  # (n)
    holonomic: np.ndarray  # (m) 1 for rows with a residual
    every: np.ndarray  # (m) 1
    dependent: np.ndarray  # (2, n) 1 for coordinates, velocities that the others determine
    pivots: np.ndarray  # (2) worth of that choice when it was made, and now
    columns: np.ndarray  # (n, m + 1)
    order: np.ndarray  # (m or n)
    world: np.ndarray  # recursions in world coordinates
    solve: np.ndarray  # of the null-space formulation
    local: np.ndarray  # recursions in link coordinates
    u: np.ndarray  # (nu)
    feedback: np.ndarray  # (2, nu, n) its derivatives by q and v
    tau: np.ndarray  # (n)
    zero: np.ndarray  # (n)
    vector: np.ndarray  # (4, n)
    M: np.ndarray  # (n, n)
    h: np.ndarray  # (n)
    gamma: np.ndarray  # (m)
    L: np.ndarray  # (n, n) its Cholesky factor
    G: np.ndarray  # (m, n)
    Y: np.ndarray  # (m, n + 1)
    residual: np.ndarray  # (m)
    row_sizes: np.ndarray  # (m) what residuals are measured in: 1 rad, or the mechanism's size
    psi: np.ndarray  # (m)
    q_stage: np.ndarray  # (nq)
    q_rate: np.ndarray  # (4, nq)
    v_stage: np.ndarray  # (n)
    a_stage: np.ndarray  # (4, n)
    lam_stage: np.ndarray  # (m)
    power: np.ndarray  # (4, 2) of the inputs, and of everything else that is not in the energy
    number: np.ndarray  # (1)
    friction: np.ndarray  # what `liedyn.simulation.friction` keeps of contacts
    nearest: np.ndarray  # (2) largest condition number of a step's stages; fastest rate in the last regular one [1/s]


class Rows(NamedTuple):
    """States one after the other, written by the loops: row k + 1 is one step after row k."""

    t: np.ndarray  # (rows)
    held: np.ndarray  # (rows) row of the input table that holds from this time on
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    tau: np.ndarray
    lam: np.ndarray
    scalars: np.ndarray  # (rows, N_SCALARS)
    memory: np.ndarray  # (rows, 2 n + m) what a method carries from step to step, not a number where it begins


def make_work(robot, f_ext, inputs, contacts):
    """Scratch arrays of a run."""
    n, m, nq, links = robot.nv, int(robot.ints[N_ROWS]), robot.nq, int(robot.ints[N_LINKS])
    holonomic = np.ones(m, np.int64)
    holonomic_rows(robot.packed, holonomic)
    return Work(
        f_ext=f_ext, none=np.empty(0), table=inputs.table, actuators=inputs.actuators,
        damping=dofs_of(robot.packed)[1][:, DOF_DAMPING].copy(), holonomic=holonomic,
        every=np.ones(m, np.int64), dependent=np.zeros((2, n), np.int64), pivots=np.ones(2),
        columns=np.empty((n, m + 1)), order=np.empty(max(m, n), np.int64),
        world=np.empty(max(terms_size(robot.packed), crba_size(robot.packed))),
        solve=np.empty(solve_size(robot.packed)), local=np.empty(max(rnea_size(robot.packed), ENERGY_WORK * links)),
        u=np.zeros(inputs.actuators.shape[1]), feedback=np.zeros((2, inputs.actuators.shape[1], n)), tau=np.zeros(n),
        zero=np.zeros(n), vector=np.empty((4, n)),
        M=np.empty((n, n)), h=np.empty(n), gamma=np.empty(m), L=np.empty((n, n)), G=np.zeros((m, n)),
        Y=np.empty((m, n + 1)), residual=np.zeros(m),
        row_sizes=row_sizes(robot), psi=np.zeros(m), q_stage=np.empty(nq), q_rate=np.empty((4, nq)),
        v_stage=np.empty(n), a_stage=np.empty((4, n)), lam_stage=np.empty(m), power=np.zeros((4, 2)),
        number=np.empty(1), friction=room_for_friction(robot, contacts), nearest=np.array([0.0, np.inf]))


def make_rows(robot, count):
    """Room for that many states."""
    n, m = robot.nv, int(robot.ints[N_ROWS])
    return Rows(np.empty(count), np.zeros(count, np.int64), np.empty((count, robot.nq)), np.empty((count, n)),
                np.empty((count, n)), np.empty((count, n)), np.empty((count, m)), np.zeros((count, N_SCALARS)),
                np.full((count, 2 * n + m), np.nan))


def copy_row(rows, k, to, l):
    """Row k of one becomes row l of the other."""
    for source, target in zip(rows, to):
        target[l] = source[k]
