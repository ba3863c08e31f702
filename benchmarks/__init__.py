"""Benchmarks of liedyn: ``python -m benchmarks`` in the root of a checkout (see ``--help``).

`trees` races the recursions against Pinocchio, `loops` exact linearization against central differences. Both check that
what they time agrees before they time it.
"""
