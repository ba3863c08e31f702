"""Generated C: the functions of one robot as a folder that any compiler of C99 builds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from liedyn.bridges.specialization import c_texts
from liedyn.bridges.specialization.c_names import comment, identifier, identifiers
from liedyn.bridges.specialization.references import References, references, require_programs
from liedyn.bridges.specialization.robot_programs import TREE
from liedyn.bridges.specialization.step_programs import StepPrograms
from liedyn.files.paths import path_of, writing
from liedyn.machine.arguments import names, require_robot
from liedyn.machine.errors import InputError, shown
from liedyn.machine.program.c import Language, declared, function_text
from liedyn.mechanics.constraints.closing import ITERATIONS as CLOSING_STEPS
from liedyn.mechanics.constraints.closing_steps import LARGEST_STEP, ROUNDING, SMALLEST_PART
from liedyn.model.size import row_sizes, weights
from liedyn.motion.simulation.manifold_projection import ITERATIONS, ROUNDING as PROJECTED

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from liedyn.model.robot import Robot
    from liedyn.typing import ArrayLike


PUBLIC = (*TREE, "forward_dynamics", "linearize")
"""Functions that are programs themselves."""
OF_CLOSE = ("displace", "closure_error", "closing_step")
OF_STEP = ("coordinate_rates", "unit_quaternions", "stage_accelerations")
OF_PROJECTION = ("inertia", "position_change", "velocity_change", "integrate")
"""Programs of which `close`, the stages of a step and its projection are made."""
LANGUAGES = {"double": Language("double", "", 1e-300), "float": Language("float", "f", 1e-30, 1e-4)}
NUMBERS = {
    "double": dict(largest=1e50, rounding=ROUNDING, tolerance=1e-12, projected=PROJECTED, enough=1e-8),
    "float": dict(largest=1e12, rounding=1e-6, tolerance=1e-5, projected=1e-7, enough=1e-4),
}
"""Bounds of numbers, and of errors of closed loops [rad, units of the mechanism], by type."""
ROOM = 40_000
"""Operations of a function at all reference states together."""


def generate_c(robot: Robot, folder: str | os.PathLike[str],
               functions: Sequence[str] = ("rnea", "forward_dynamics", "linearize", "close", "step"),
               at: ArrayLike | None = None, dtype: str = "double") -> list[str]:
    """Write a robot's dynamics as C99: a header, a source file, an example and a build file, for any compiler.

    The code needs `math.h` only, allocates nothing, calls nothing recursively and has no state: it runs on a
    microcontroller. Every function returns a code that says whether its result is valid, and writes NaN if not.

    Parameters
    ----------
    robot : Robot
        Any tree, with cut joints, couplings, rolling and other two-sided constraints, springs and dampers of joints.
    folder : str or path
        Where the files go; it is created, and files of the same names are replaced.
    functions : sequence of str
        Of "rnea", "aba", "crba", "rnea_derivatives", "aba_derivatives", "rnea_hessian" and "aba_hessian" (of the open
        tree; the last two are `rnea_second_derivatives` and `aba_second_derivatives` with weights), "forward_dynamics"
        and "linearize" (of the mechanism), "close" and "step" (one step of the classical Runge-Kutta method, and
        projection on the constraints).
    at : array_like, shape (nq,) or (count, nq), optional
        Reference configurations [rad, m; quaternions (x, y, z, w)], closed first. Pivots and other decisions are made
        there, and each call asks whether they are right at its state: with several, one after the other. None: home, or
        if that is singular, a configuration near it; and as many more as random closed states need.
    dtype : {"double", "float"}
        Type of all numbers. With "float", results have about five digits.

    Returns
    -------
    list of str
        Paths of the files.

    Raises
    ------
    InputError
        An unknown function or type; the robot has one-sided constraints or functions of users.
    ClosureError
        A reference configuration cannot be closed.
    SingularConfigurationError
        A function has no result at a reference configuration.
    OSError
        The files cannot be written.

    Notes
    -----
    The functions are traced from the bodies of liedyn's own kernels and simplified: no expression is evaluated that a
    constant of the robot makes zero. Pivots are accepted by threshold (Duff, Erisman and Reid 1986, section 5.4).

    Examples
    --------
    >>> import tempfile
    >>> import liedyn as ld
    >>> folder = tempfile.mkdtemp()
    >>> files = ld.generate_c(ld.load("four_bar"), folder, functions=("forward_dynamics",))
    >>> [file.rsplit("/")[-1] for file in files]
    ['four_bar.h', 'four_bar.c', 'main.c', 'CMakeLists.txt']
    """
    require_robot(robot)
    require_programs(robot, "generate_c")
    asked, known = names("functions", functions), (*PUBLIC, "close", "step")
    for each in asked:
        if each not in known:
            raise InputError(f"unknown function {shown(each)}: generate_c writes {', '.join(known)}")
    if not isinstance(dtype, str) or dtype not in LANGUAGES:
        raise InputError(f"dtype must be 'double' or 'float', got {shown(dtype)}")
    place = path_of(folder)
    programs = References(robot, lambda state: StepPrograms(robot, state),
                          None if at is None else references(robot, at), room=ROOM)
    made = CProject(robot, programs.of, dtype).files(asked)
    with writing(place):
        place.mkdir(parents=True, exist_ok=True)
        for name, text in made.items():
            (place / name).write_text(text, encoding="ascii")
    return [str(place / name) for name in made]


class CProject:
    """The texts of the files.

    Parameters
    ----------
    robot : Robot
    programs : callable
        ``programs(name)`` is a list of the `StepPrograms` of a function, at one or several reference states.
    dtype : str
    """

    def __init__(self, robot, programs, dtype):
        self.robot, self.programs, self.dtype = robot, programs, dtype
        self.language, self.prefix = LANGUAGES[dtype], identifier(robot.name)
        self.rows = len(robot.row_names)
        self._traces = {}

    def files(self, functions):
        """The text of each file, by name."""
        texts, declarations = [], []
        needed = dict.fromkeys(x for x in PUBLIC if x in functions)
        closes, steps = "close" in functions, "step" in functions
        inner = OF_CLOSE[:3 if self.rows else 1] * closes + OF_STEP * steps + OF_PROJECTION * (steps and self.rows > 0)
        for name in dict.fromkeys((*needed, *inner)):
            texts.append(function_text(self.prefix, name, self.language, self.traces(name), name in needed))
            if name in needed:
                declarations.append(self._declaration(name))
        if closes:
            texts.append(self._filled(c_texts.CLOSE if self.rows else c_texts.CLOSE_TREE, **self._of_close()))
            declarations.append(self._filled(_CLOSE_DECLARED))
        if steps:
            texts += [self._filled(c_texts.PROJECT, **self._of_projection())] * (self.rows > 0)
            texts.append(self._filled(c_texts.STEP, **self._of_step()))
            declarations.append(self._filled(_STEP_DECLARED))
        source = self._filled(c_texts.SOURCE) + "\n".join(texts)
        return {f"{self.prefix}.h": self._header("linearize" in functions, declarations), f"{self.prefix}.c": source,
                "main.c": self._main(closes, steps), "CMakeLists.txt": self._filled(c_texts.CMAKE)}

    def traces(self, name):
        """The program of a function at each reference state."""
        if name not in self._traces:
            self._traces[name] = [programs.trace(name) for programs in self.programs(name)]
        return self._traces[name]

    @property
    def forces(self):
        """The size of the forces that `step` takes."""
        return self.robot.nv

    def _filled(self, template, **more):
        constant = self.language.constant
        numbers = {name: constant(x) for name, x in NUMBERS[self.dtype].items()}
        known = numbers | dict(zero=constant(0.0), half=constant(0.5), one=constant(1.0), two=constant(2.0),
                               six=constant(6.0), fabs=f"fabs{self.language.suffix}")
        return template.format(**known | dict(
            prefix=self.prefix, PREFIX=self.prefix.upper(), real=self.language.real, nq=self.robot.nq,
            nv=self.robot.nv, nf=self.forces, rows=self.rows) | more)

    def _table(self, numbers):
        return ", ".join(self.language.constant(x) for x in numbers)

    def _of_close(self):
        if not self.rows:
            return {}
        of_rows, of_dofs = self.programs("closing_step")[0].clusters()
        rows, columns = weights(self.robot)
        count = max(of_rows) + 1 if max(of_rows) >= max(of_dofs) else max(of_dofs) + 1
        halvings = 1 + count * (2 + int(np.ceil(np.log2(1.0 / SMALLEST_PART))))
        return dict(clusters=count, cluster_of_row=", ".join(map(str, of_rows)), halvings=halvings,
                    cluster_of_dof=", ".join(map(str, of_dofs)), row_weight=self._table(rows),
                    dof_weight=self._table(columns), longest=self.language.constant(LARGEST_STEP),
                    smallest=self.language.constant(SMALLEST_PART), iterations=CLOSING_STEPS)

    def _of_projection(self):
        constant, bounds = self.language.constant, NUMBERS[self.dtype]
        return dict(row_size=self._table(row_sizes(self.robot)), iterations=ITERATIONS,
                    rounding=constant(bounds["projected"]), tolerance=constant(bounds["enough"]))

    def _of_step(self):
        project = f"""
    if (code == {self.prefix.upper()}_OK) {{
        code = {self.prefix}_project(q_new, v_new);
    }}""" * (self.rows > 0)
        return dict(project=project, indent=" " * len(f"int {self.prefix}_step("))

    def _declaration(self, name):
        trace = self.traces(name)[0]
        sizes = {x: len(values) for x, values in trace.results.items() if len(values)}
        return f"{_COMMENTS[name]}\nint {self.prefix}_{name}({declared(f'{self.prefix}_real', trace.inputs, sizes)});\n"

    def _header(self, linearizes, declarations):
        robot, PREFIX, more = self.robot, self.prefix.upper(), ""
        if linearizes:
            y, w = self.programs("linearize")[0].choices()
            more = (f"\n/* Of linear models: states x = (y, w), coordinates and then velocities, and inputs. */\n"
                    f"#define {PREFIX}_NX {len(y.names) + len(w.names)}\n"
                    f"#define {PREFIX}_NU {len(robot.actuator_names)}\n"
                    + self._places("X", (*y.names, *w.rates)) + self._places("U", robot.actuator_names))
        return self._filled(
            c_texts.HEADER, title=comment(robot.name), more=more, coordinates=self._places("Q", robot.coordinate_names),
            velocities=self._places("V", robot.velocity_names), declarations="\n".join(declarations))

    def _places(self, letter, of):
        PREFIX = self.prefix.upper()
        return "".join(f"#define {PREFIX}_{letter}_{name} {k} /* {comment(each)} */\n"
                       for k, (name, each) in enumerate(zip(identifiers(of, "number"), of)))

    def _main(self, closes, steps):
        real, robot = self.language.real, self.robot
        body = c_texts.MAIN_CLOSE * closes + c_texts.MAIN_STEP * steps
        return self._filled(
            c_texts.MAIN, home=self._table(self.programs("displace")[0].state["q"]), body=self._filled(
                body, dt=self.language.constant(1e-3)) if body else "    (void)v;\n    (void)tau;\n",
            locals=f"    {real} q_new[{robot.nq}], v_new[{robot.nv}];\n    int k;\n" * steps)


_COMMENTS = {
    "rnea": "/* Generalised forces of the open tree for accelerations a. */",
    "aba": "/* Accelerations of the open tree. */",
    "crba": "/* The joint-space inertia matrix of the open tree. */",
    "rnea_derivatives": "/* Derivatives of rnea by a displacement of q and by v, and M. */",
    "aba_derivatives": "/* Derivatives of aba by a displacement of q and by v, and the inverse of M. */",
    "rnea_hessian": "/* Second derivatives of weights . tau of the open tree, by displacements of q and by v and a. */",
    "aba_hessian": "/* Second derivatives of weights . a of the open tree, by displacements of q and by v and tau. */",
    "forward_dynamics": "/* Accelerations a of the mechanism, and multipliers lam of constraints, of least norm. */",
    "linearize": "/* The linear model d(dx)/dt = A dx + B du about a state, and f0 = dx/dt there. Loops\n"
                 " * have to be closed at q, and v has to keep them closed. */",
}
_CLOSE_DECLARED = """\
/* A configuration that satisfies the constraints, near a guess. */
int {prefix}_close(const {prefix}_real guess[{nq}], {prefix}_real q[{nq}]);
"""
_STEP_DECLARED = """\
/* One step of the classical Runge-Kutta method with constant forces, and projection on the constraints. */
int {prefix}_step(const {prefix}_real q[{nq}], const {prefix}_real v[{nv}], const {prefix}_real tau[{nf}],
                  {prefix}_real dt, {prefix}_real q_new[{nq}], {prefix}_real v_new[{nv}]);
"""
