"""Functions of any mechanism as compiled programs, with the general kernels where no guard holds."""
import numpy as np

from liedyn.bridges.specialization.program_module import LETTERS, kept_module, module_text
from liedyn.bridges.specialization.references import References
from liedyn.bridges.specialization.robot_programs import RobotPrograms
from liedyn.linear.linearize import linearize
from liedyn.machine.errors import InputError, LiedynError, of_the_batch
from liedyn.mechanics.constraints.independent import all_holonomic
from liedyn.mechanics.dynamics.forward import forward_dynamics
from liedyn.mechanics.constraints.loops import rank_of
from liedyn.mechanics.dynamics.digits import ENOUGH
from liedyn.mechanics.dynamics.nullspace import RANK_TOLERANCE
from liedyn.mechanics.dynamics.singular import ACCELERATIONS, LINEARIZATION, states_with_few_digits
from liedyn.mechanics.tree.aba import aba
from liedyn.mechanics.tree.aba_derivatives import aba_derivatives
from liedyn.mechanics.tree.crba import crba
from liedyn.mechanics.tree.rnea import rnea
from liedyn.mechanics.tree.rnea_derivatives import rnea_derivatives
from liedyn.model.calls.boundary import delivered_all, rows_for_all, states, states_unchecked
from liedyn.model.calls.recursion import RECURSIONS
from liedyn.model.packed import N_LINKS

LONGEST = 200_000
"""Operations of a program that is compiled at all, which takes 0.2 ms for each."""
WITH_OUTPUTS = {"C", "D"}
"""Results of `linearize` for which outputs are traced."""
TRACED_AS = {"linearize": "linear_model", "forward_dynamics": "constrained_motion"}
"""Functions whose programs have a condition number among their results, and these programs."""
POWERS = {"linearize": LINEARIZATION, "forward_dynamics": ACCELERATIONS}
OF_REDUNDANT = 8.0
"""As `ENOUGH`, where results depend on which of the redundant rows are chosen, as loops are closed to rounding only."""
POOR = 50.0
"""Where the condition number of dependent velocities is larger, those of other references are tried as well."""
ROOM = 120_000
"""Operations of a function at all reference states together."""

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
        self.robot, self.at, self._choices, self._rank = robot, at, None, None
        self.references = self._references(None)
        self._of_outputs = {}

    def _references(self, outputs):
        return References(self.robot, lambda state: RobotPrograms(self.robot, state, None, outputs), self.at, room=ROOM)

    def run(self, name, state, results, out, outputs=None):
        """Results of a function for one state or a batch, and those of the general kernels where no guard holds."""
        module = self.module(name, results, outputs)
        lead, *rows, verdict = states_unchecked(self.robot, **state)
        shapes = self.shapes(name, results, outputs)
        made = rows_for_all(out, lead, shapes, *rows)
        written = [x for x in made if x.shape[1]]
        good, condition = np.empty(len(rows[0])), [np.empty((len(rows[0]), 1))] * (name in TRACED_AS)
        many = len(good) * int(self.robot.packed.ints[N_LINKS]) >= 5000
        getattr(module, f"{name}_a_states").on(len(good), many, *rows, *written, *condition, good, verdict)
        if not verdict[0]:
            states(self.robot, **state)
        doubtful = np.flatnonzero(good != 1.0)  # the only pass over the states of a batch
        if len(doubtful):
            for letter in LETTERS[1:]:
                batch = getattr(module, f"{name}_{letter}_states", None)
                if batch is None:
                    break
                self._try_other(batch, name, doubtful, rows, written + condition, good, verdict)
            if condition and self.robot.row_names:
                self._judge(name, doubtful, rows, condition[0], good)
            left = doubtful[good[doubtful] == 0.0]
            if len(left):
                self._general(name, results, lead, left, rows, made, outputs)
        return delivered_all(made, lead, shapes, out)

    def _judge(self, name, doubtful, rows, condition, good):
        """good becomes 0 at doubtful states where few digits may be left."""
        numbers = np.where(good[doubtful] > 0.0, condition[doubtful, 0], 0.0)
        enough = ENOUGH if self._rank == len(self.robot.row_names) else OF_REDUNDANT
        q, v = (x[doubtful] for x in rows[:2])
        few = states_with_few_digits(self.robot, q, v, self._rank, numbers, POWERS[name], enough)
        good[doubtful[few]] = 0.0

    def _try_other(self, batch, name, doubtful, rows, written, good, verdict):
        """Results by another reference, where no guard has held yet, or its dependent velocities are better."""
        poor = written[-1][doubtful, 0] > POOR if name == "forward_dynamics" else np.zeros(len(doubtful), bool)
        left = doubtful[(good[doubtful] == 0.0) | poor]
        if not len(left):
            return
        found, again = [np.empty((len(left), x.shape[1])) for x in written], np.empty(len(left))
        batch.on(len(left), False, *(x[left] for x in rows), *found, again, verdict)
        better = again > 0.0
        if name == "forward_dynamics":
            better &= (good[left] == 0.0) | (found[-1][:, 0] < written[-1][left, 0])
        for x, y in zip((*written, good), (*found, again)):
            x[left[better]] = y[better]

    def _general(self, name, results, lead, left, rows, made, outputs):
        """Rows where no guard holds, by the general kernels; an error names the first of them in the batch."""
        try:
            found = self.general(name, results, *(x[left] for x in rows), outputs=outputs)
        except LiedynError:
            for b in left:
                with of_the_batch(lead, b):
                    self.general(name, results, *(x[b] for x in rows), outputs=outputs)
            raise
        for x, y in zip(made, found):
            x[left] = np.reshape(y, (len(left), x.shape[1]))

    def general(self, name, results, *arguments, outputs=None):
        """The results of the general function."""
        if name == "forward_dynamics":
            found = forward_dynamics(self.robot, *arguments, independent="auto")
            return found.a, found.lam
        if name == "linearize":
            y, w = self.choices()
            speeds = None if all_holonomic(self.robot) else w
            found = linearize(self.robot, *arguments, independent=y, speeds=speeds, outputs=outputs,
                              results=results)
            return tuple(getattr(found, x) for x in results)
        found = OF_TREE[name](self.robot, *arguments)
        return found if isinstance(found, tuple) else (found,)

    def choices(self):
        """Coordinates and velocities of the linear models."""
        if self._choices is None:
            self._choices = self.references.first("linear_model").choices()
        return self._choices

    def shapes(self, name, results, outputs=None):
        """The shape of each result."""
        n, m = self.robot.nv, len(self.robot.row_names)
        if name == "linearize":
            y, w = self.choices()
            x, nu = len(y.names) + len(w.names), len(self.robot.actuator_names)
            known = {"A": (x, x), "B": (x, nu), "f0": (x,), "K": (n, len(y.names))}
            if WITH_OUTPUTS & set(results):
                count = len(RobotPrograms(self.robot, {}, self.choices(), outputs).output_plan().labels)
                known |= {"C": (count, x), "D": (count, nu)}
            return tuple(known[each] for each in results)
        if name == "forward_dynamics":
            return (n,), (m,)
        return tuple(tuple({"nv": n}[each] for each in shape) for shape in RECURSIONS[name].results.values())

    def module(self, name, results, outputs=None):
        """The compiled module of a function."""
        robot, elements = self.robot, self.robot.elements
        parts = (*robot.packed, results, self.at, robot.independent, robot.tree_actuators)
        parts += () if elements is None else (*elements.packed, *elements.laws, robot.t)
        if name == "linearize" and WITH_OUTPUTS & set(results):
            parts += (self.robot.outputs if outputs is None else outputs,)
        found = kept_module(self.robot, name, parts, __file__, lambda: self._text(name, results, outputs))
        q = np.array(found.REFERENCE)
        if name == "linearize" and self._choices is None:
            self._choices = RobotPrograms(self.robot, {"q": q}).choices()
        if name in TRACED_AS and self._rank is None:
            self._rank = rank_of(self.robot, q, RANK_TOLERANCE)[0]
        return found

    def _text(self, name, results, outputs):
        traces, q = self._traces(name, results, outputs)
        return module_text(name, traces, q)

    def traces(self, name, results, outputs=None):
        """The programs of a function, at as many reference states as sampled states need."""
        return self._traces(name, results, outputs)[0]

    def _traces(self, name, results, outputs):
        """These, and the configuration of the first one."""
        traced, references = TRACED_AS.get(name, name), self.references
        if name == "linearize" and WITH_OUTPUTS & set(results):
            traced, references = "model_with_outputs", self._of_outputs.setdefault(outputs, self._references(outputs))
        found = references.of(traced)
        traces = [programs.trace(traced) for programs in found]
        traces = [trace.only((*results, "condition")) for trace in traces] if name == "linearize" else traces
        count = traces[0].length()
        if count > LONGEST:
            raise InputError(f"{name} of {self.robot.name!r} is a program of {count} operations, more than {LONGEST}: "
                             f"the general ld.{name} has no such limit")
        return traces, found[0].state["q"]
