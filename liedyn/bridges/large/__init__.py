"""Jobs that outgrow a machine: many rows, in chunks, on the workers of a Dask cluster.

`mapping` has the public functions, `chunks` computes one chunk, `cluster` sends chunks to workers and collects what
they make, `results` keeps it in memory, in .npz files or in Zarr, and `transport` packs robots for the way.
"""
from liedyn.bridges.large.mapping import map_parameters, map_states
from liedyn.bridges.large.results import LargeResult, open_results

__all__ = ["LargeResult", "map_parameters", "map_states", "open_results"]
