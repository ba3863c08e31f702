"""Calls from Python: what users pass becomes rows of numbers, and kernels get batches, direct and public sides."""
