"""How far apart two results are: what tests assert, and what VALIDATION.md reports of the tests marked for it."""
import numpy as np

COMPARED = []
"""How many numbers each call of `off` compared, and the error: kept for `benchmarks.validation`."""


def off(actual, expected, least=1.0):
    """Largest difference, relative to the largest number that is expected, or to `least`."""
    assert np.shape(actual) == np.shape(expected)
    difference = np.abs(np.subtract(actual, expected)).max(initial=0.0)
    error = float(difference / max(np.abs(expected).max(initial=0.0), least))
    COMPARED.append((np.size(expected), error))
    return error


def relative(actual, expected):
    """Largest difference, relative to the largest number that is expected."""
    return off(actual, expected, least=1e-300)
