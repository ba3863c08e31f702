"""How kernels are compiled: each is translated once, with its callees, by those passes of Numba that kernels need."""
