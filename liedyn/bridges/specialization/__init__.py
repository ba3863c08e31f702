"""Functions of one robot, written for its own numbers: compiled here or for a GPU (`specialize`), and as C
(`generate_c`).

`robot_programs` and `step_programs` say which kernels are traced (`liedyn.machine.program`), `references` where their
decisions are taken, `c_project` writes them as a folder of C, and `cuda_robot` runs them on a GPU. For trees of few
degrees of freedom, `recursions` are traced without decisions: `viewpoint` chooses the equivalent model and the frame in
which most expressions are constant, `source` writes the module, and `specialize` compiles it.
"""
from liedyn.bridges.specialization.c_project import generate_c
from liedyn.bridges.specialization.cuda_robot import CudaRobot
from liedyn.bridges.specialization.specialize import Specialized, specialize

__all__ = ["CudaRobot", "Specialized", "generate_c", "specialize"]
