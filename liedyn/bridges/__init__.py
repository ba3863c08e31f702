"""Bridges from a robot to other systems: automatic differentiation, straight-line kernels, clusters.

`liedyn.jax`, `liedyn.torch`, `liedyn.casadi` and `liedyn.kernels` belong to this room, too.
"""
