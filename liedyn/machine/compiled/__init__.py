"""How kernels are compiled: each translated once, with what it calls, without what Numba does for other programs."""
