"""Controllers and observers: inputs from states, states from measurements.

`constrained` controls mechanisms by projection (Aghili 2005), `regulation` by linear-quadratic regulators, `estimation`
has Kalman filters, `systems` passes mechanisms to python-control and back. In: linear models, weights, measurements;
out: feedback.
"""
