"""Functions of any mechanism as compiled programs, with the general kernels where no guard holds."""
import contextlib

import numpy as np

from liedyn.bridges.specialization.program_module import LETTERS, kept_module, module_text
from liedyn.bridges.specialization.references import programs_at, reference_state, sample_states
from liedyn.bridges.specialization.robot_programs import RobotPrograms
from liedyn.linear.linearize import linearize
from liedyn.machine.errors import InputError, LiedynError, SingularConfigurationError, of_the_batch
from liedyn.machine.program.evaluate import guards_hold
from liedyn.mechanics.constraints.independent import all_holonomic
from liedyn.mechanics.dynamics.forward import forward_dynamics
from liedyn.mechanics.tree.aba import aba
from liedyn.mechanics.tree.aba_derivatives import aba_derivatives
from liedyn.mechanics.tree.crba import crba
from liedyn.mechanics.tree.rnea import rnea
from liedyn.mechanics.tree.rnea_derivatives import rnea_derivatives
from liedyn.model.calls.boundary import delivered_all, rows_for_all, states, states_unchecked
from liedyn.model.calls.recursion import RECURSIONS
from liedyn.model.packed import N_LINKS

LONGEST = 40_000
"""Operations of a program that is compiled at all: longer ones take minutes, and loops are as fast."""
MOST = 6
"""Reference states at most."""


OF_TREE = {"rnea": rnea, "aba": aba, "crba": crba, "rnea_derivatives": rnea_derivatives,
           "aba_derivatives": aba_derivatives}


class MechanismPrograms:
    """The compiled programs of one robot.

    Parameters
    ----------
    robot : Robot
    at : ndarray, shape (count, nq), or None
        Reference configurations.
    """

    def __init__(self, robot, at):
        self.robot, self.at, self._references = robot, at, None

    def run(self, name, state, results, out):
        """Results of a function for one state or a batch, and those of the general kernels where no guard holds."""
        module = self.module(name, results)
        lead, *rows, verdict = states_unchecked(self.robot, **state)
        shapes = self.shapes(name, results)
        made = rows_for_all(out, lead, shapes, *rows)
        written = [x for x in made if x.shape[1]]
        good = np.empty(len(rows[0]))
        many = len(good) * int(self.robot.packed.ints[N_LINKS]) >= 5000
        self._call(module, name, "a", many, rows, written, good, verdict)
        if not verdict[0]:
            states(self.robot, **state)
        for letter in LETTERS[1:]:
            left = np.flatnonzero(good == 0.0)
            if not len(left) or not hasattr(module, f"{name}_{letter}"):
                break
            some, found = [x[left] for x in rows], [np.empty((len(left), x.shape[1])) for x in written]
            again = np.empty(len(left))
            self._call(module, name, letter, False, some, found, again, verdict)
            held = again > 0.0
            good[left] = again
            for x, y in zip(written, found):
                x[left[held]] = y[held]
        left = np.flatnonzero(good == 0.0)
        if len(left):
            self._general(name, results, lead, left, rows, made)
        return delivered_all(made, lead, shapes, out)

    @staticmethod
    def _call(module, name, letter, many, rows, written, good, verdict):
        batch = getattr(module, f"{name}_{letter}_states")
        batch.on(len(good), many, *rows, *written, good, verdict)

    def _general(self, name, results, lead, left, rows, made):
        """Rows where no guard holds, by the general kernels; an error names the first of them in the batch."""
        try:
            found = self.general(name, results, *(x[left] for x in rows))
        except LiedynError:
            for b in left:
                with of_the_batch(lead, b):
                    self.general(name, results, *(x[b] for x in rows))
            raise
        for x, y in zip(made, found):
            x[left] = np.reshape(y, (len(left), x.shape[1]))

    def general(self, name, results, *arguments):
        """The results of the general function."""
        if name == "forward_dynamics":
            found = forward_dynamics(self.robot, *arguments)
            return found.a, found.lam
        if name == "linearize":
            y, w = self.choices()
            speeds = None if all_holonomic(self.robot) else w
            found = linearize(self.robot, *arguments, independent=y, speeds=speeds)
            return tuple(getattr(found, x) for x in results)
        found = OF_TREE[name](self.robot, *arguments)
        return found if isinstance(found, tuple) else (found,)

    def choices(self):
        """Coordinates and velocities of the linear models."""
        return self.references()[0].choices()

    def references(self):
        """`RobotPrograms` at each given reference configuration, or at a regular one near home."""
        if self._references is None:
            self._references = programs_at(self.robot, self.at, RobotPrograms)
        return self._references

    def shapes(self, name, results):
        """The shape of each result."""
        n, m = self.robot.nv, len(self.robot.row_names)
        if name == "linearize":
            y, w = self.choices()
            x, nu = len(y.names) + len(w.names), len(self.robot.actuator_names)
            known = {"A": (x, x), "B": (x, nu), "f0": (x,), "K": (n, len(y.names))}
            return tuple(known[each] for each in results)
        if name == "forward_dynamics":
            return (n,), (m,)
        return tuple(tuple({"nv": n}[each] for each in shape) for shape in RECURSIONS[name].results.values())

    def module(self, name, results):
        """The compiled module of a function."""
        parts = (*self.robot.packed, results, self.at, self.robot.independent)
        return kept_module(self.robot, name, parts, __file__, lambda: module_text(name, self.traces(name, results)))

    def traces(self, name, results):
        """The programs of a function, at as many reference states as sampled states need."""
        made = [self._traced(programs, name, results) for programs in self.references()]
        if self.at is not None or not self.robot.row_names:
            return made
        rows = sample_states(self.robot)
        good = np.zeros(len(rows["q"]), bool)

        def held(trace):
            return guards_hold(trace.program, {x: rows[x] for x in trace.inputs})

        for trace in made:
            good |= held(trace)
        for k in range(len(good)):
            if good[k] or len(made) == MOST:
                continue
            with contextlib.suppress(SingularConfigurationError):
                state = reference_state(self.robot, rows["q"][k])
                trace = self._traced(RobotPrograms(self.robot, state, self.choices()), name, results)
                more = held(trace) & ~good
                if more.any():
                    made.append(trace)
                    good |= more
        return made

    def _traced(self, programs, name, results):
        if name == "linearize":
            programs.chosen = self.choices()
        trace = programs.trace("linear_model" if name == "linearize" else name)
        trace = trace.only(results) if results else trace
        count = len(trace.program.used_by([x for each in trace.results.values() for x in each]))
        if count > LONGEST:
            raise InputError(f"{name} of {self.robot.name!r} is a program of {count} operations, more than {LONGEST}: "
                             f"the general ld.{name} has no such limit")
        return trace
