"""The description of a robot: declared by a :class:`Builder`, checked, and packed into two arrays for the kernels."""

from liedyn.model.builder import Builder
from liedyn.model.description import GROUND, Actuator, Body, Frame, Joint, Loop, Model
from liedyn.model.frames import placement
from liedyn.model.parts import reduced, subtree
from liedyn.model.robot import Robot

__all__ = [
    "GROUND", "Actuator", "Body", "Builder", "Frame", "Joint", "Loop", "Model", "Robot", "placement", "reduced",
    "subtree",
]
