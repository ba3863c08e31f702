"""Jobs too large for one machine: many rows, in chunks, on the workers of a Dask cluster.

`mapping` has the public functions, `chunks` computes one chunk, `cluster` sends chunks to workers and collects their
results, `results` stores them in memory, in .npz files or in Zarr, and `transport` serialises robots.
"""
from liedyn.bridges.large.mapping import map_parameters, map_states
from liedyn.bridges.large.results import LargeResult, open_results

__all__ = ["LargeResult", "map_parameters", "map_states", "open_results"]
