"""Controllers and observers: inputs from states, states from measurements.

`constrained` controls mechanisms by projection (Aghili 2005), `regulation` by linear-quadratic regulators, `estimation`
has Kalman filters, `systems` converts mechanisms to and controllers from python-control. Input: linear models, weights,
measurements; output: feedback.
"""
