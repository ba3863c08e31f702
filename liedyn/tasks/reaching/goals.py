"""Goals of targets as arrays, or an InputError that names the target."""
import numpy as np

from liedyn.machine.arguments import floats
from liedyn.machine.errors import InputError, shown
from liedyn.model.calls.boundary import require_usable

ROTATION_TOLERANCE = 1e-9
"""Largest difference of R^T R from the identity."""


def weight_of(target, name, rows=3):
    """One factor for each of `rows` rows."""
    found = floats(name, getattr(target, name))
    if found.shape not in ((), (rows,)) or not np.isfinite(found).all() or (found < 0.0).any():
        raise InputError(f"{name} of a target must be a number or {rows}, finite and not negative, got "
                         f"{shown(getattr(target, name))}")
    return np.broadcast_to(found, (rows,)).copy()


def vectors(name, x):
    """x as (..., 3)."""
    found = floats(name, x)
    if found.shape[-1:] != (3,):
        raise InputError(f"{name} of a target must have shape (..., 3), got {found.shape}")
    require_usable(name, found)
    return found


def vector(name, x):
    found = vectors(name, x)
    if found.ndim > 1:
        raise InputError(f"{name} of a target must have shape (3,), got {found.shape}")
    return found


def units(name, x):
    size = np.linalg.norm(x, axis=-1, keepdims=True)
    if not (size > 0.0).all():
        raise InputError(f"{name} of a target must not be zero, got {shown(x.tolist())}")
    return x / size


def rotation_of(name, x):
    found = floats(name, x)
    if found.shape[-2:] != (3, 3):
        raise InputError(f"{name} must have shape (..., 3, 3), got {found.shape}")
    require_usable(name, found, 2)
    apart = np.abs(np.swapaxes(found, -1, -2) @ found - np.eye(3)).max(initial=0.0)
    if apart > ROTATION_TOLERANCE or not (np.linalg.det(found) > 0.0).all():
        raise InputError(f"{name} is no rotation: R^T R differs from the identity by {apart:.3g}, or it mirrors")
    return found


def pose_of(name, x):
    found = floats(name, x)
    if found.shape[-2:] != (4, 4):
        raise InputError(f"{name} must have shape (..., 4, 4), got {found.shape}")
    require_usable(name, found, 2)
    rotation_of(name, found[..., :3, :3])
    if np.abs(found[..., 3, :] - (0.0, 0.0, 0.0, 1.0)).max(initial=0.0) > ROTATION_TOLERANCE:
        raise InputError(f"the last row of {name} must be 0, 0, 0, 1")
    return found
