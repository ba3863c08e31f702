"""Benchmarks of liedyn: ``python -m benchmarks`` in the root of a checkout (see ``--help``).

Each section of the report is a module: it checks that what it times agrees, times it, and prints its tables. `native`
compiles Pinocchio's C++ as the yardstick, `generated` C by CasADi; `report` puts RESULTS.md together.
"""
import os

os.environ.setdefault("LIEDYN_INTERPRET", "0")  # what is timed is compiled, from the first call on
