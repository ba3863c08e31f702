"""Single steps from any state: the common part of `step`, `Stepper` and users' compiled loops.

The steps are those of `simulate`, by the loop of the method, called at its address for one row at a time. Its arguments
are prepared once and stored (`liedyn.machine.compiled.struct_values`). Inputs are constant during a step. A row is
complete when its accelerations are known, which depend on the input of the following step; if that changes they are
computed again.
"""
# mypy: ignore-errors
from typing import NamedTuple

import numpy as np
from numba import types

from liedyn.machine.arguments import require_robot
from liedyn.machine.compiled.jit import (
    INTEGERS, MATRIX, VECTOR, address_for, c_kernel, call_at, inline, kernel_in_place,
)
from liedyn.machine.compiled.struct_values import Kept, functions_of, kept
from liedyn.machine.compiled.user_functions import forget_errors
from liedyn.machine.errors import InputError, listed
from liedyn.machine.linalg.vectors import copy_to
from liedyn.machine.typed_decorators import intrinsic, once
from liedyn.mechanics.contact.contact_state import place_on, statuses, surfaces_that_end
from liedyn.model.calls.boundary import wrenches
from liedyn.model.constraint_records import loop_count, loop_integer, loop_rows, refresh, switch
from liedyn.model.packed import LOOP_ACTIVE, LOOP_SIDE, OFF, ON, OPEN, PackedModel
from liedyn.model.packed_records import MODEL
from liedyn.motion.simulation.coupler_force import MOST_COUPLERS, NUMBERS, add_coupling, coupling_size
from liedyn.motion.simulation.inputs import Inputs
from liedyn.motion.simulation.integrators.moreau import DEEPEST, Moreau
from liedyn.motion.simulation.manifold_projection import CONSISTENT, constraint_state
from liedyn.motion.simulation.preparation import (
    one_sided, private_model, require_sense, scheme_of, settings_of,
)
from liedyn.motion.simulation.workspace import (
    FREE_ENERGY, OK, SETTINGS, WORK, Rows, Settings, Work, make_rows, make_work,
)

DECAY = 10.0
"""Default of `simulate` for sigma [1/s]."""
DONE, KNOWN, COUPLED = range(3)
"""Places in `about`: steps since the start, 1 if row 0 is complete, number of couplers."""

ROWS = types.NamedTuple([VECTOR, INTEGERS, *[MATRIX] * 7], Rows)
_LOOP = MODEL, SETTINGS, WORK, ROWS, types.int64, types.boolean, types.float64
_RETURNED = types.UniTuple(types.int64, 2)


class Stepping(NamedTuple):
    """All data that the steps of one robot by one method need."""

    loop: int  # address of the method's loop
    model: PackedModel  # private copy
    settings: Settings
    work: Work
    rows: Rows  # two rows: the state, and the next one
    times: VECTOR  # (2) start, dt
    about: INTEGERS  # (3)
    tau: VECTOR  # (n) inputs without couplers
    couplers: MATRIX  # (MOST_COUPLERS, NUMBERS) see `liedyn.motion.simulation.coupler_force`
    scratch: VECTOR  # (n + coupling_size)


STEPPING = types.NamedTuple(
    [types.int64, MODEL, SETTINGS, WORK, ROWS, VECTOR, INTEGERS, VECTOR, MATRIX, VECTOR], Stepping)
stepping_at = kept(STEPPING)


@intrinsic
def _loop_at(typing, address, model, settings, work, rows, count, known, energy):
    """Call a method's loop at its address."""
    def codegen(context, builder, sig, args):
        return call_at(context, builder, args[0], _RETURNED, _LOOP, args[1:])

    return _RETURNED(types.int64, *_LOOP), codegen


@inline
def same(a, b):
    for k in range(a.size):
        if a[k] != b[k]:
            return False
    return True


@inline
def put_inputs(s, n):
    """Writes the inputs of the next step to the table; row 0 is no longer complete if they change."""
    held, wanted = s.work.table[0], s.scratch[:n]
    copy_to(s.tau, wanted)
    for c in range(s.about[COUPLED]):
        add_coupling(s.model, s.rows.q[0], s.rows.v[0], s.couplers[c], s.scratch[n:], wanted)
    if not same(held, wanted):
        copy_to(wanted, held)
        s.about[KNOWN] = 0


@inline
def take_over(rows):
    """Copies row 1 to row 0."""
    rows.t[0] = rows.t[1]
    copy_to(rows.q[1], rows.q[0])
    copy_to(rows.v[1], rows.v[0])
    copy_to(rows.a[1], rows.a[0])
    copy_to(rows.tau[1], rows.tau[0])
    copy_to(rows.lam[1], rows.lam[0])
    copy_to(rows.scalars[1], rows.scalars[0])
    copy_to(rows.memory[1], rows.memory[0])


@inline
def one_step(s):
    """A step from row 0, which gets the new state, with the input in the table; returns a status. If not OK, row 0
    is unchanged."""
    status, _ = _loop_at(s.loop, s.model, s.settings, s.work, s.rows, 1, s.about[KNOWN] != 0, 0.0)
    if status == OK:
        take_over(s.rows)
        s.about[KNOWN] = 1
    return status


@c_kernel(_nrt=False)
def steps(address, count):
    """`count` steps of the `Stepping` at an address, on the time grid; returns the status of the last one."""
    s, n = stepping_at(address), stepping_at(address).tau.size
    for _ in range(count):
        s.rows.t[0] = s.times[0] + s.about[DONE] * s.times[1]
        s.rows.t[1] = s.times[0] + (s.about[DONE] + 1) * s.times[1]
        put_inputs(s, n)
        status = one_step(s)
        if status != OK:
            return status
        s.about[DONE] += 1
    return OK


@c_kernel(_nrt=False)
def complete(address, count):
    """Accelerations and forces of row 0, with the present inputs; returns a status. `count` is not used."""
    s = stepping_at(address)
    s.rows.t[0] = s.times[0] + s.about[DONE] * s.times[1]
    put_inputs(s, s.tau.size)
    status, _ = _loop_at(s.loop, s.model, s.settings, s.work, s.rows, 0, False, 0.0)
    s.rows.memory[0, :] = np.nan  # methods start anew with the next step, whose inputs may differ
    s.about[KNOWN] = 1 if status == OK else 0
    return status


@inline
def begin(s):
    """Marks row 0 as incomplete and forgets the steps before."""
    s.about[KNOWN] = 0
    s.rows.memory[0, :] = np.nan
    s.rows.scalars[0, :] = 0.0
    s.rows.lam[0, :] = 0.0
    s.work.pivots[0], s.work.pivots[1] = 1.0, 0.0  # choose the minimal coordinates anew
    s.work.nearest[0], s.work.nearest[1] = 0.0, np.inf


@c_kernel(_nrt=False)
def begin_at(address, check):
    """`begin`, at an address; returns 1 if `check` and row 0 violates a constraint or penetrates a surface."""
    s = stepping_at(address)
    begin(s)
    if check == 0:
        return 0
    for l in range(loop_count(s.model)):  # rows of contacts are checked below: those of open ones are zero
        if loop_integer(s.model, l, LOOP_SIDE) != 0 and loop_integer(s.model, l, LOOP_ACTIVE) == OPEN:
            switch(s.model, l, ON)
    constraint_state(s.model, s.work, s.rows.q[0], s.rows.v[0])
    for l in range(loop_count(s.model)):
        side, (first, count) = loop_integer(s.model, l, LOOP_SIDE), loop_rows(s.model, l)
        if side == 0 or loop_integer(s.model, l, LOOP_ACTIVE) == OFF:
            continue
        switch(s.model, l, OPEN)
        if side * s.work.residual[first] < -DEEPEST:
            return 1
        s.work.residual[first:first + count] = 0.0
        s.work.psi[first:first + count] = 0.0
    for k in range(s.work.psi.size):
        size = s.work.row_sizes[k] * CONSISTENT
        if not (abs(s.work.residual[k]) <= size and abs(s.work.psi[k]) <= size):
            return 1
    return 0


@kernel_in_place
def step(stepping, t, dt, q, v, tau):
    """One step from (t, q, v), in place, with constant tau; returns a status. If that is not OK, q and v are unchanged.

    Continues from the step before if t, q and v are its result; if tau is the same too, an evaluation is saved.
    """
    s = stepping
    if not (s.rows.t[0] == t and same(q, s.rows.q[0]) and same(v, s.rows.v[0])):
        copy_to(q, s.rows.q[0])
        copy_to(v, s.rows.v[0])
        begin(s)
    if not same(tau, s.work.table[0]):
        copy_to(tau, s.work.table[0])
        s.about[KNOWN] = 0
    s.rows.t[0], s.rows.t[1] = t, t + dt
    status = one_step(s)
    if status == OK:
        copy_to(s.rows.q[0], q)
        copy_to(s.rows.v[0], v)
    return status


# ---- preparation


class Prepared:
    """A `Stepping` with all that Python needs to call it; made by `prepare`.

    Attributes
    ----------
    s : Stepping
    robot, inputs, contacts, method, stabilisation
        The arguments from which it was made, kept alive with it.
    ends : list of int
        Numbers of the contacts whose surfaces end.
    beyond : ndarray
        For each of them, 1 if it is switched off because its point is beyond the edge, or below.
    """

    def __init__(self, robot, method, formulation, stabilisation, f_ext):
        require_robot(robot)
        self.given = robot, method, formulation, stabilisation, f_ext
        scheme = scheme_of(method, formulation, stabilisation, DECAY)
        method, stabilisation = scheme.method, scheme.stabilisation
        if method.loop is None:
            raise InputError(f"method {method.name!r} chooses its own steps: take one with fixed steps, or simulate()")
        require_sense(method, stabilisation, False)
        t, start = robot.t, (robot.t, robot.neutral, np.zeros(robot.nv))
        model = private_model(robot, t)
        contacts = one_sided(robot, model, (), ())
        self.robot, self.contacts, self.method = robot, contacts, method
        self.stepping = isinstance(method, Moreau)
        self.refuse_contacts(statuses(model)[contacts.index] != OFF)
        self.ends = list(surfaces_that_end(robot))
        self.beyond = np.zeros(len(self.ends), np.int64)
        self.inputs = Inputs(robot, None, None, start, None, False)
        forces = wrenches(robot, f_ext, ())[0]
        work = make_work(robot, forces, self.inputs, contacts, method.tableau.shape[1], formulation == "momenta")
        settings = settings_of(robot, scheme, contacts, self.inputs, len(forces) > 0, FREE_ENERGY)
        n, rows = robot.nv, make_rows(robot, 2)
        rows.t[:], rows.a[:] = np.nan, np.nan
        self.s = s = Stepping(address_for(method.loop, _LOOP), model, settings, work, rows, np.array([t, 1e-3]),
                              np.zeros(3, np.int64), np.zeros(n), np.zeros((MOST_COUPLERS, NUMBERS)),
                              np.zeros(n + coupling_size(n)))
        self.place = Kept(s)
        self.address = self.place.address
        self.decays = formulation == "unified" and stabilisation in ("none", "baumgarte")
        self.checks = not self.decays and stabilisation != "baumgarte" and len(work.psi) > 0
        self.functions = self.inputs.functions | robot.functions

    def __reduce__(self):
        return _made_again, (self.given, self.state())

    def state(self):
        """Copies of all arrays that steps change."""
        return [x.copy() for x in self._changing()]

    def put_back(self, state):
        """Restores the arrays of `state`."""
        for x, before in zip(self._changing(), state, strict=True):
            x[...] = before
        refresh(self.s.model, float(self.s.times[0] + self.s.about[DONE] * self.s.times[1]))
        forget_errors(self.functions)

    def _changing(self):
        s = self.s
        return (*s.rows, s.times, s.about, s.tau, s.couplers, s.work.table, s.work.pivots, s.work.order, s.work.nearest,
                statuses(s.model), self.beyond)

    def see_edges(self, q, anew=False):
        """Switches contacts off whose points have come over the edge of their surfaces, and on again those that are
        back and not below.

        `anew` for a state that did not follow from the last one.
        """
        status = statuses(self.s.model)
        for e, k in enumerate(self.ends):
            before = status[k]
            if before == OFF and not self.beyond[e]:  # somebody else has switched it off
                continue
            inside, gap = place_on(self.robot, k, q)
            self.beyond[e] = inside < 0.0 or gap < -DEEPEST and (anew or self.beyond[e])
            if (before == OFF) != self.beyond[e]:
                status[k], self.s.about[KNOWN] = OFF if self.beyond[e] else OPEN, 0

    def switch_beyond(self, k, on, q):
        """True if contact k is beyond the edge of its surface, and switching it needs no more than a note of that."""
        if k not in self.ends:
            return False
        e, (inside, gap) = self.ends.index(k), place_on(self.robot, k, q)
        if not (self.beyond[e] or statuses(self.s.model)[k] == OFF and on and (inside < 0.0 or gap < -DEEPEST)):
            return False
        self.beyond[e] = on
        return True

    def refuse_contacts(self, there):
        """Raises InputError for one-sided constraints with methods other than Moreau's, which do not switch them."""
        if there.any() and not self.stepping:
            raise InputError(
                f"steps of method {self.method.name!r} do not see one-sided constraints open and close: "
                f"{listed(self.contacts.names[there])} of {self.robot.name!r}; take method='moreau', switch them off, "
                "or simulate()")


def _made_again(given, state):
    """A copy, perhaps in another process."""
    made = Prepared(*given)
    made.put_back(state)
    return made


class Undone:
    """A context whose changes are undone if an error occurs."""

    def __init__(self, prepared):
        self._prepared = prepared

    def __enter__(self):
        self._state = self._prepared.state()

    def __exit__(self, kind, error, trace):
        if kind is None:
            return
        s = self._prepared.s
        self._prepared.put_back(self._state)
        s.about[KNOWN], s.work.pivots[:] = 0, (1.0, 0.0)


@once
def functions():
    """(steps, steps that release the GIL, complete, begin), each a function of an address and a number."""
    return *functions_of(steps, 2), functions_of(complete, 2)[0], functions_of(begin_at, 2)[0]
