"""Derivatives by the parameters of a robot: masses, lengths, springs, friction, gravity.

Names of parameters and what they change in a model (`parameters`, `changes`); second variations (`second_order`) of
links (`links`), of the frames that constraints join (`sides`), of rows (`rows`, `contacts`), of rotations (`rotations`)
and of force elements (`laws`, `elements`, `bushings`), together (`variations`); what displaces nothing, in closed form
(`at_rest`, `columns_at_rest`); partial derivatives (`partials`); total derivatives of accelerations and linear models
(`columns`, `linear_model`, `sensitivities`).
"""
from liedyn.linear.sensitivity.sensitivities import sensitivities
from liedyn.linear.sensitivity.sensitivities import Sensitivity

__all__ = ["Sensitivity", "sensitivities"]
