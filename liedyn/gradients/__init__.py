"""Derivatives of whole runs, exact for the steps of the integrator itself: forwards and backwards in time."""
