"""Derivatives by the parameters of a robot: masses, lengths, springs, friction, gravity.

Names of parameters and what they change in a model (`parameters`, `changes`); second variations (`second_order`) of
links (`links`), of frames that constraints join (`sides`), of rows (`rows`, `contacts`), together (`variations`); partial
derivatives (`partials`); total derivatives of accelerations and linear models (`linear_model`, `sensitivities`).
"""
