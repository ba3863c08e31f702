"""Linear algebra on small matrices inside kernels."""
