"""Derivatives by the parameters of a robot: masses, lengths, springs, friction, gravity.

Parameters by name and what they change in a model (`model_parameters`, `changes`); second variations
(`second_order_sensitivity`) of links, of the frames that constraints join (`two_frames`), of constraint rows
(`row_sensitivity`, `contact_sensitivity`), of rotations and of force elements (`law_sensitivity`,
`element_sensitivity`); all of them together (`variations`), for many states (`sensitivity_columns`); partial
derivatives (`partials`); total derivatives of accelerations and linear models (`linear_model`, `sensitivities`).
"""
from liedyn.linear.sensitivity.sensitivities import sensitivities
from liedyn.linear.sensitivity.sensitivities import Sensitivity

__all__ = ["Sensitivity", "sensitivities"]
