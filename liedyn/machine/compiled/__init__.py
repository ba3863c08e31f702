"""How kernels are compiled: each is translated once, together with its callees, and without passes of Numba that
kernels do not need."""
