"""The C sources of an FMU: the robot's programs and tables, and the files that are the same for all."""
from importlib.resources import files

import numpy as np

from liedyn.bridges.fmu.fmu_programs import OF_FMU, DrivenFmuPrograms
from liedyn.bridges.specialization.c_project import LANGUAGES, CProject
from liedyn.machine.program.c import function_text
from liedyn.model.size import weights

PREFIX = "robot"
"""Of the names of the robot's functions: none of the common files begins with it."""
MODEL_HEADER = """\
/* fmu_model.h: the tables of one robot, and its programs. */
#ifndef FMU_MODEL_H
#define FMU_MODEL_H

#include "{prefix}.c"

#define MODEL(name) {prefix}_##name
#define MODEL_OK {PREFIX}_OK
#define MODEL_NOT_FINITE {PREFIX}_NOT_FINITE
#define MODEL_GUARD {PREFIX}_GUARD
#define MODEL_NOT_CLOSED {PREFIX}_NOT_CLOSED
#define MODEL_TOKEN "{token}"
#define MODEL_CLOSES {closes}

/* Numbers of a configuration, of a velocity, of states, of those of position, of inputs and of outputs. */
#define NQ {nq}
#define NV {nv}
#define NX {nx}
#define NY {ny}
#define NU {nu}
#define NZ {nz}
#define NU_ROOM {nu_room}
/* Numbers of forces as the programs take them: of generalised ones, or of inputs. */
#define NF {nf}
#define NZ_ROOM {nz_room}
#define LAM_ROOM {lam_room}
#define INTERNAL_STEP {step}

static const int state_places[NY] = {{{places}}};
static const int speed_places[NX - NY] = {{{speeds}}};
static const double start_q[NQ] = {{{q}}};
static const double start_w[NX - NY] = {{{w}}};
static const double q_unit[NQ] = {{{units}}};
static const double actuators[NF * NU_ROOM] = {{{actuators}}};

#endif
"""


class FmuProject(CProject):
    """The texts of the sources.

    Parameters
    ----------
    robot : Robot
    programs : list of FmuPrograms
        At one or several reference states.
    """

    def __init__(self, robot, programs):
        super().__init__(robot, lambda name: programs, "double")
        self.states, self.plan = programs[0].states, programs[0].plan
        self.takes_inputs = isinstance(programs[0], DrivenFmuPrograms)
        self.identifier, self.prefix = self.prefix, PREFIX  # all is static: names need not differ between robots
        self.of_fmu = ["forward_dynamics"] + [name for name in OF_FMU if name != "outputs" or self.plan]

    @property
    def forces(self):
        return len(self.robot.actuator_names) if self.takes_inputs else self.robot.nv

    def robot_files(self):
        """{prefix}.h and {prefix}.c: `close`, `step` and the functions of FMUs, all for one translation unit only."""
        made = self.files(("close", "step"))
        header, source = made[f"{self.prefix}.h"], made[f"{self.prefix}.c"]
        texts = [function_text(self.prefix, name, self.language, self.traces(name), False) for name in self.of_fmu]
        header, source = (text.replace(f"\nint {PREFIX}_", f"\nstatic int {PREFIX}_") for text in (header, source))
        return {f"{PREFIX}.h": header, f"{PREFIX}.c": source + "\n" + "\n".join(texts)}

    def model_header(self, start, token, step):
        """fmu_model.h."""
        robot, states, constant = self.robot, self.states, LANGUAGES["double"].constant
        q, v = start
        nu, nz = len(robot.actuator_names), sum(len(each.labels) for each in self.plan)
        matrix = np.eye(nu) if self.takes_inputs else robot.tree_actuators

        def table(numbers):
            return ", ".join(map(constant, numbers))

        return MODEL_HEADER.format(
            prefix=PREFIX, PREFIX=PREFIX.upper(), token=token, closes=int(self.rows > 0), nq=robot.nq,
            nv=robot.nv, nx=len(states.names), ny=len(states.places), nu=nu, nz=nz, nu_room=max(nu, 1),
            nz_room=max(nz, 1), lam_room=max(self.rows, 1), step=constant(step),
            places=", ".join(map(str, states.places)), speeds=", ".join(map(str, states.speeds)), q=table(q),
            w=table(v[states.speeds]), units=table(q_units(robot)),
            nf=self.forces, actuators=table(matrix.ravel()) or "0.0")


def q_units(robot):
    """The unit of each number of q: 1 rad, or a length of the robot's size."""
    columns = weights(robot)[1]
    return [columns[robot.velocity_index(name)] if name in robot.velocity_names else 1.0
            for name in robot.coordinate_names]


def common_files(version):
    """The files that are the same for all robots, by name."""
    here = files("liedyn.bridges.fmu")
    return {name: (here / name).read_text(encoding="ascii") for name in ("fmu_core.h", f"fmi{version[0]}.c")}
