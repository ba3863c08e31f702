"""Calls from Python: arguments become rows of numbers, and kernels get functions for batches, single states and
users."""
