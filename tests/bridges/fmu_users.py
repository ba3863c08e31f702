"""Robots whose free motion is no chaos, and instances of their FMUs as simulation tools use them (fmpy)."""
import shutil

import fmpy
import numpy as np
from fmpy.fmi2 import FMU2Model, FMU2Slave
from fmpy.fmi3 import FMU3Model, FMU3Slave
from tree_cases import bundled

from liedyn.model import Builder

CLASSES = {("3.0", "me"): FMU3Model, ("3.0", "cs"): FMU3Slave, ("2.0", "me"): FMU2Model, ("2.0", "cs"): FMU2Slave}


def held(name, stiffness, damping, of=None):
    """A bundled robot with springs and dampers in its joints, at rest at home; in those `of` only, if given."""
    builder, robot = Builder.of(bundled(name)), bundled(name)
    for joint in robot.model.joints:
        if joint.kind in ("revolute", "prismatic") and (of is None or joint.name in of):
            builder.change("joint", joint.name, stiffness=stiffness, damping=damping,
                           rest=float(robot.home[robot.coordinate_index(joint.name)]))
    return builder.build()


def floating():
    """A free body with an arm on a ball joint and a wheel: states with quaternions."""
    builder = Builder("floating", gravity=(0.0, 0.3, -0.5))
    builder.body("base", 2.0, (0.05, 0.1, 0.0), (0.2, 0.3, 0.4))
    builder.joint("base", "free", "ground", "base", damping=0.1)
    builder.body("arm", 0.5, (0.2, 0.0, 0.1), (0.02, 0.03, 0.025))
    builder.joint("ball", "spherical", "base", "arm", (0.3, 0.1, 0.0), damping=0.05)
    builder.body("wheel", 0.7, (0.01, 0.0, 0.0), (0.03, 0.02, 0.02))
    builder.joint("turn", "revolute", "base", "wheel", (0.0, 0.2, 0.1), axis=(0, 1, 0))
    builder.actuator("motor", "turn")
    return builder.build()


def driven_floating():
    """The free body and the arm, without gravity, with a force in every direction: what a regulator can hold."""
    builder = Builder("driven", gravity=(0.0, 0.0, 0.0))
    builder.body("base", 2.0, (0.05, 0.1, 0.0), (0.2, 0.3, 0.4))
    builder.joint("base", "free", "ground", "base")
    builder.body("arm", 0.5, (0.2, 0.0, 0.1), (0.02, 0.03, 0.025))
    builder.joint("ball", "spherical", "base", "arm", (0.3, 0.1, 0.0))
    return builder.build()


class Used:
    """An FMU that is unpacked and instantiated; `close` it in the end.

    Attributes
    ----------
    messages : list of str
        What it has said through its logger.
    """

    def __init__(self, file, kind="me", start=None):
        self.description, self.folder, self.messages = fmpy.read_model_description(file), fmpy.extract(file), []
        self.version, self.kind = self.description.fmiVersion, kind
        self.places = {each.name: each.valueReference for each in self.description.modelVariables}
        of = self.description.modelExchange if kind == "me" else self.description.coSimulation
        self.fmu = CLASSES[self.version, kind](
            guid=self.description.guid, unzipDirectory=self.folder, modelIdentifier=of.modelIdentifier,
            instanceName="one")
        self.fmu.instantiate(**self._logger())
        if self.version == "2.0":
            self.fmu.setupExperiment()
        self.set(start or {})
        self.fmu.enterInitializationMode()
        self.fmu.exitInitializationMode()
        if kind == "me":
            self.fmu.enterContinuousTimeMode()
        self.states = [each.variable.derivative.name for each in self.description.derivatives]
        self.inputs = [x.name for x in self.description.modelVariables if x.causality == "input"]
        self.outputs = [x.variable.name for x in self.description.outputs]

    def _logger(self):
        if self.version == "3.0":
            return {"logMessage": lambda environment, status, category, message: self.messages.append(message.decode())}
        from fmpy.fmi2 import fmi2CallbackFunctions, fmi2CallbackLoggerTYPE
        self.callbacks = fmi2CallbackFunctions()
        self.callbacks.logger = fmi2CallbackLoggerTYPE(
            lambda environment, name, status, category, message: self.messages.append(message.decode()))
        return {"callbacks": self.callbacks}

    def get(self, names):
        read = self.fmu.getFloat64 if self.version == "3.0" else self.fmu.getReal
        return np.array(read([self.places[name] for name in names]))

    def set(self, values):
        write = self.fmu.setFloat64 if self.version == "3.0" else self.fmu.setReal
        if values:
            write([self.places[name] for name in values], list(values.values()))

    def put(self, x):
        """Continuous states, as an integrator sets them."""
        x = np.ascontiguousarray(x, float)
        self.fmu.setContinuousStates(x.ctypes.data_as(fmpy.fmi1.POINTER(fmpy.fmi1.c_double)), len(x))

    def partials(self):
        """All partial derivatives of derivatives and outputs by states and inputs, a column for each seed."""
        unknowns = [self.places[f"der({name})"] for name in self.states] + [self.places[x] for x in self.outputs]
        knowns = [self.places[name] for name in self.states + self.inputs]
        return np.array([self.fmu.getDirectionalDerivative(unknowns, [known], [1.0]) for known in knowns]).T

    def rates(self):
        return self.get([f"der({name})" for name in self.states])

    def close(self):
        self.fmu.terminate()
        self.fmu.freeInstance()
        shutil.rmtree(self.folder)
