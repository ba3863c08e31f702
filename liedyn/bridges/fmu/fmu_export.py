"""FMUs: a robot as a component for simulation tools (Functional Mock-up Interface, versions 2.0 and 3.0)."""

from __future__ import annotations

import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
import uuid
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from liedyn.bridges.fmu.fmu_description import (
    Description, Variable, build_description, description_2, description_3,
)
from liedyn.bridges.fmu.fmu_outputs import outputs_of
from liedyn.bridges.fmu.fmu_programs import DrivenFmuPrograms, FmuPrograms, StateFeedback
from liedyn.bridges.fmu.fmu_sources import FmuProject, common_files
from liedyn.bridges.fmu.fmu_states import states_of
from liedyn.bridges.specialization.references import References, references, require_programs
from liedyn.files.paths import path_of, writing
from liedyn.linear.feedback import LinearFeedback, single_state
from liedyn.linear.operating_point import CLOSURE_TOLERANCE
from liedyn.machine.arguments import flag, names, one_of, positive, require_robot
from liedyn.machine.errors import InputError, LiedynError, shown
from liedyn.machine.program.expressions import Expression
from liedyn.mechanics.constraints.assembly import close
from liedyn.mechanics.constraints.loops import velocity_error
from liedyn.model.force_elements import FUNCTION, LAW, ROW
from liedyn.model.kinds import are_lengths

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal

    from liedyn.control.regulation.lqr import Regulator
    from liedyn.model.robot import Robot
    from liedyn.typing import ArrayLike

ROOM, MARGIN = 25_000, 10.0
"""Operations of a function at all reference states together: a compiler takes half a minute for as many. How much
larger than necessary pivots have to be at a configuration: a motion from one to another passes through those between
them, where a pivot may become zero."""
COMPILERS = ("cc", "gcc", "clang")
FLAGS = ("-std=c99", "-O1", "-fPIC", "-shared", "-fvisibility=hidden")
DATE = (1980, 1, 1, 0, 0, 0)
"""Of the files in an archive: the same robot gives the same FMU."""


def export_fmu(robot: Robot, file: str | os.PathLike[str], outputs: Sequence[str] | None = None,
               independent: Sequence[str] | None = None, q: ArrayLike | None = None, v: ArrayLike | None = None,
               at: ArrayLike | None = None, version: Literal["3.0", "2.0"] = "3.0", step: float = 1e-3,
               binary: bool = True, regulator: Regulator | None = None) -> str:
    """Write a robot as an FMU, a component for simulation tools: for model exchange and for co-simulation.

    The states are those of the minimal model, independent coordinates and velocities; loops are closed inside. The
    FMU contains its source code in C, and a binary for this platform; it needs no Python and no licence.

    Parameters
    ----------
    robot : Robot
        Any tree, with cut joints, couplings, rolling and other two-sided constraints, and force elements with the laws
        of liedyn; inputs may be cylinders, thrusters, winches and actuators of cut joints.
    file : str or path
        Its name usually ends with ``.fmu``; replaced if it exists.
    outputs : sequence of str, optional
        Names as for `linearize`; by default the robot's own, or the independent coordinates but for those of rotations
        of ball and free joints, whose quaternions are states. ``pose:body`` becomes
        position .x, .y, .z [m] and rotation matrix .R11 to .R33 (columns: axes of the body in the world) of its frame.
    independent : sequence of str, optional
        Independent coordinates, of the tree; by default those of the regulator, the robot's own, or chosen by pivoting
        at the start. Of a ball or free joint all or none; its states are quaternion (x, y, z, w) and position.
        Coordinates of cut joints may be outputs; those of the tree determine every motion, too.
    q : array_like, shape (nq,), optional
        Configuration at the start [rad, m; quaternions (x, y, z, w)], closed first; by default that of the regulator,
        or home.
    v : array_like, shape (nv,), optional
        Velocity at the start [rad/s, m/s], which keeps the loops closed; by default that of the regulator, or zero.
    at : array_like, shape (nq,) or (count, nq), optional
        Reference configurations, where pivots and other decisions are made, as for `generate_c`. None: the start, and
        others, if random configurations need other decisions and the code does not become too long.
    version : {"3.0", "2.0"}
        Of the standard.
    step : float
        Longest internal step of co-simulation [s], by the classical Runge-Kutta method with constant inputs and
        projection on the constraints, as in `simulate`.
    binary : bool
        False for source code only, which the importing tool compiles.
    regulator : Regulator, optional
        Of `lqr`, for this robot: u_0 - K x of the state at every instant is added to the inputs, so that the FMU is the
        regulated robot, and its inputs are disturbances, or those of an outer loop.

    Returns
    -------
    str
        The path of the file.

    Raises
    ------
    InputError
        An unknown name; an output or coordinate that is no number; a start velocity that opens loops; a regulator of
        another robot, of `dlqr`, or in other coordinates; the robot has one-sided constraints or functions of users.
    ClosureError
        The start or a reference configuration cannot be closed.
    SingularConfigurationError
        There is no model at a reference configuration, or the coordinates do not determine the motion at the start.
    LiedynError
        There is no C compiler, or it fails.
    OSError
        The file cannot be written.

    Notes
    -----
    Inputs are the robot's actuators. Directional derivatives are A, B, C and D of `linearize`, by the states of the
    FMU. Where a result does not exist, or the model's decisions are in doubt, functions return an error with a
    message, or *discard* if an integrator of model exchange may try another state: there is no wrong number. The
    standard: Modelica Association, Functional Mock-up Interface 3.0 (2022) and 2.0.5 (2024).

    Examples
    --------
    >>> import tempfile, zipfile
    >>> import liedyn as ld
    >>> file = ld.export_fmu(ld.load("four_bar"), tempfile.mkdtemp() + "/four_bar.fmu", binary=False)
    >>> [name for name in zipfile.ZipFile(file).namelist() if name.endswith(".xml")]
    ['modelDescription.xml', 'sources/buildDescription.xml']
    """
    require_robot(robot)
    require_programs(robot, "export_fmu")
    asked = None if outputs is None else names("outputs", outputs)
    version, step, binary = one_of("version", version, ("3.0", "2.0")), positive("step", step), flag("binary", binary)
    compiler, file = _compiler() if binary else None, path_of(file)
    chosen = None if independent is None else names("independent", independent)
    if regulator is not None:
        _require_regulator(robot, regulator)
        q, v = regulator.q if q is None else q, regulator.v if v is None else v
        if chosen is None and not regulator.left_out:
            chosen = [x for x in regulator.model.states if not x.startswith("velocity:")]
    start = _start(robot, q, v)
    project = _project(robot, start, asked, chosen, at, regulator)
    contents = _contents(project, start, version, step)
    if compiler:
        contents |= _compiled(compiler, project.identifier, contents, version)
    with writing(file), zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in contents.items():
            entry = zipfile.ZipInfo(name, DATE)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            archive.writestr(entry, data)
    return str(file)


def _start(robot, q, v):
    """The closed configuration and the velocity at the start."""
    q, v = robot.home if q is None else q, np.zeros(robot.nv) if v is None else v
    q, v = single_state("export_fmu takes one state", robot, q, v)
    q = close(robot, q)
    if robot.row_names:
        error = velocity_error(robot, q, v)
        row = np.abs(error).argmax()
        if abs(error[row]) > CLOSURE_TOLERANCE * max(1.0, np.abs(v).max()):
            raise InputError(f"v opens the loops of {robot.name!r}: {robot.row_names[row]} by {error[row]:.3g}; make "
                             "it consistent with complete_velocity()")
    return q, v


def _require_regulator(robot, regulator):
    """Raises InputError unless it is one of `lqr` for this robot."""
    if not isinstance(regulator, LinearFeedback) or not hasattr(regulator, "model"):
        raise InputError(f"regulator must be a Regulator of lqr(), got {shown(regulator)}")
    if hasattr(regulator.model, "h"):
        raise InputError("a regulator of dlqr() holds its inputs for a step, and an FMU has none: give one of lqr()")
    if regulator.states != regulator.model.states or regulator._following is not None:
        raise InputError("a regulator with integral action or a reference has states of its own, and the FMU none for "
                         "them: give one without")
    if regulator._robot is not robot:
        raise InputError(f"the regulator is one of the robot {regulator._robot.name!r}, not of this one")


def _law(regulator, states):
    """The regulator's law with a gain of every state of the FMU, zero for those that it leaves out."""
    known = (*states.y.names, *states.w.rates)
    missing = [name for name in regulator.model.states if name not in known]
    if missing:
        raise InputError(f"the regulator's state {missing[0]!r} is none of the FMU, {', '.join(known)}: name its "
                         "coordinates as `independent`")
    K = np.zeros((len(regulator.K), len(known)))
    K[:, [known.index(name) for name in regulator.model.states]] = regulator.K
    return StateFeedback(regulator.q, regulator.v, regulator.u, K)


def _project(robot, start, outputs, independent, at, regulator):
    states = states_of(robot, start[0], independent)
    law = None if regulator is None else _law(regulator, states)
    plan = outputs_of(robot, outputs, states.y)
    taken = {name for each in plan for name in each.labels} & set(states.names)
    # an output that is a state needs no variable of its own
    plan = [each for each in plan if not set(each.labels) <= taken]
    made = DrivenFmuPrograms if robot.elements is not None and robot.elements.driven else FmuPrograms
    programs = References(robot, lambda state: made(robot, state, states, _renumbered(plan), law),
                          None if at is None else references(robot, at), start[0], ROOM, MARGIN)
    project = FmuProject(robot, programs.of("velocity", "forward_dynamics", "partials"))
    project.direct = [name for name in states.names if name in taken]
    return project


def _renumbered(plan):
    made, first = [], 0
    for each in plan:
        made.append(each._replace(first=first))
        first += each.rows
    return made


def _contents(project, start, version, step):
    """The files of the archive but for the binary, by name."""
    sources = project.robot_files() | common_files(version)
    variables, depends = _variables(project, start)
    made = Description(project.robot.name, project.identifier, "", step, variables, depends, [f"fmi{version[0]}.c"])
    text = repr((made, [x.tobytes() for x in start], sorted(sources.items())))
    made = made._replace(token=_token(text, version))
    sources["fmu_model.h"] = project.model_header(start, made.token, step)
    described = {"3.0": description_3, "2.0": description_2}[version](made)
    contents = {"modelDescription.xml": described}
    if version == "3.0":
        contents["sources/buildDescription.xml"] = build_description(made)
    contents |= {f"sources/{name}": text for name, text in sources.items()}
    return {name: text.encode("utf-8") for name, text in contents.items()}


def _token(text, version):
    """An identifier of the contents."""
    made = uuid.UUID(bytes=hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:16], version=4)
    return f"{{{made}}}"


def _variables(project, start):
    """All variables, and what each derivative and output depends on, by value reference."""
    robot, states, (q, v) = project.robot, project.states, start
    nx, nu = len(states.names), len(robot.actuator_names)
    values = [*q[states.places], *v[states.speeds]]
    found = [Variable("time", 0, "independent", "s")]
    for k, (name, units, x) in enumerate(zip(states.names, states.units, values)):
        found.append(Variable(name, 1 + k, "output" if name in project.direct else "local", units[0], x))
    for k, (name, units) in enumerate(zip(states.names, states.units)):
        found.append(Variable(f"der({name})", 1 + nx + k, "local", units[1], of=1 + k))
    lengths = are_lengths(robot)
    for k, name in enumerate(robot.actuator_names):
        found.append(Variable(name, 1 + 2 * nx + k, "input", _unit_of_force(robot, lengths, k), 0.0))
    plan = project.plan
    labels = [(label, unit) for each in plan for label, unit in zip(each.labels, each.units)]
    for k, (label, unit) in enumerate(labels):
        found.append(Variable(label, 1 + 2 * nx + nu + k, "output", unit))
    structure = _structure(project, nx + len(labels))
    knowns = [*range(1, 1 + nx), *range(1 + 2 * nx, 1 + 2 * nx + nu)]
    unknowns = [*range(1 + nx, 1 + 2 * nx), *range(1 + 2 * nx + nu, 1 + 2 * nx + nu + len(labels))]
    depends = {unknown: [knowns[k] for k in np.flatnonzero(row)] for unknown, row in zip(unknowns, structure)}
    return _named_apart(found), depends | {1 + k: [1 + k] for k in range(nx)}


def _named_apart(variables):
    """Variables with names that are all different: an input may be named like the coordinate that it drives."""
    used = {each.name for each in variables if each.causality != "input"}
    return [each._replace(name=f"input:{each.name}") if each.causality == "input" and each.name in used else each
            for each in variables]


def _unit_of_force(robot, lengths, k):
    """The unit of an input, if it is the same for all coordinates that it drives and has no gear between both kinds."""
    driven = {bool(lengths[j]) for j in np.flatnonzero(robot.tree_actuators[:, k])}
    if robot.elements is not None and _pulls(robot.elements.laws, k):
        return "N"
    return {(True,): "N", (False,): "N.m"}.get(tuple(driven))


def _pulls(laws, k):
    """True if an input is a force between two points or along a cable."""
    return any(laws.records[element, LAW] < FUNCTION and not laws.cuts[laws.records[element, ROW]].any()
               for actuator, element, _ in laws.inputs.tolist() if actuator == k)


def _structure(project, rows):
    """A mask of the partial derivatives that are not zero everywhere."""
    found = False
    for trace in project.traces("partials"):
        J = trace.results["J"].reshape(rows, -1)
        found = found | np.array([[isinstance(x, Expression) or x != 0.0 for x in row] for row in J])
    return found


# ---- compilation


def _compiler():
    """The command of a C compiler."""
    given = os.environ.get("CC")
    command = shlex.split(given) if given else []
    for name in [command[0]] if command else COMPILERS:
        found = shutil.which(name)
        if found:
            return [found, *command[1:]]
    where = f"$CC is {given!r}, which is no program" if command else f"none of {', '.join(COMPILERS)} is installed"
    raise LiedynError(f"an FMU with a binary needs a C compiler, but {where}: install one, or give binary=False for an "
                      "FMU of source code, which simulation tools compile")


def platform_folder(version):
    """Name of this platform's folder of binaries, and the suffix of shared libraries."""
    system = {"linux": "linux", "darwin": "darwin", "win32": "windows"}.get(sys.platform, sys.platform)
    machine = platform.machine().lower()
    suffix = {"windows": ".dll", "darwin": ".dylib"}.get(system, ".so")
    if version == "2.0":
        return f"{'win' if system == 'windows' else system}{64 if sys.maxsize > 2 ** 32 else 32}", suffix
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(machine, machine)
    return f"{machine}-{system}", suffix


def _compiled(compiler, identifier, contents, version):
    """The binary, by its name in the archive."""
    folder, suffix = platform_folder(version)
    with tempfile.TemporaryDirectory() as place:
        for name, data in contents.items():
            if name.endswith((".c", ".h")):
                (Path(place) / name.split("/")[-1]).write_bytes(data)
        made = Path(place) / f"{identifier}{suffix}"
        done = subprocess.run([*compiler, *FLAGS, f"fmi{version[0]}.c", "-o", str(made), "-lm"], cwd=place,
                              capture_output=True, text=True)
        if done.returncode != 0 or not made.exists():
            raise LiedynError(f"the C compiler {compiler[0]} failed; with binary=False the FMU has source code only. "
                              f"It says:\n{done.stderr[-2000:]}")
        return {f"binaries/{folder}/{made.name}": made.read_bytes()}
