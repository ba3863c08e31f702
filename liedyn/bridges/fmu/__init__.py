"""FMUs: robots as components for simulation tools, by the standard Functional Mock-up Interface.

`fmu_states` chooses the states, `fmu_outputs` the outputs, `fmu_programs` traces the programs, `fmu_sources` and
`fmu_description` write them, and `fmu_export` packs and compiles. The C files are the interface itself, the same for
all robots.
"""
from liedyn.bridges.fmu.fmu_export import export_fmu

__all__ = ["export_fmu"]
