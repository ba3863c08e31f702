"""Conversion of users' arguments to contiguous rows of finite float64, or a typed error."""
import math

import numpy as np

from liedyn.machine.arguments import floats, require_robot
from liedyn.machine.compiled.objects import (
    FLOAT64, READABLE, WRITEABLE, counted, extent_of, flags_of, integer, is_array,
)
from liedyn.machine.errors import InputError, of_the_batch, shown
from liedyn.machine.simd.registers import LARGEST
from liedyn.model.calls.checks import bad_quaternion, is_bounded
from liedyn.model.calls.direct import bounded, direct, general_path
from liedyn.model.packed import BODIES_AT, BODY_F, BODY_FLOATS_AT, BODY_I, BODY_LINK, HEADER, LINK_I, LINK_IQ, N_LINKS


def as_floats(name, x, size):
    """`x` as a float64 array whose last axis is `size` long; InputError if it is not numeric, or of another length."""
    x = floats(name, x)
    if x.ndim == 0 or x.shape[-1] != size:
        raise InputError(f"{name} must have shape (..., {size}), got {x.shape}")
    return x


def rows_of(name, x, lead, size):
    """`x` as (count, size) contiguous rows of usable numbers, its leading axes broadcast to `lead`."""
    x = rows_unchecked(name, x, lead, size)
    if len(x) and not is_bounded(x):
        with of_the_batch(lead, int(np.argmin(is_usable(x).all(axis=1)))):
            require_usable(name, x)
    return x


def is_usable(x):
    """A mask of the numbers that are finite, and not so large that products of a few of them overflow."""
    return np.abs(x) <= LARGEST


def require_usable(name, x, axes=1):
    """InputError if a number is not finite, or so large that products of a few of them overflow.

    The message gives the number's index along the last `axes` axes.
    """
    bad = ~is_usable(x)
    if bad.any():
        where = tuple(int(k) for k in np.argwhere(bad)[0])
        why = "not finite" if not np.isfinite(x[where]) else f"too large, beyond {LARGEST:g} products overflow"
        raise InputError(f"{name} is {why}: {name}[{', '.join(map(str, where[-axes:]))}] = {x[where]}")


def rows_unchecked(name, x, lead, size):
    """`rows_of` without the check of the numbers."""
    if x.shape[:-1] != lead:
        try:
            x = np.broadcast_to(x, lead + (size,))
        except ValueError:
            raise InputError(f"{name} {x.shape} does not broadcast to the leading axes {lead} of the state") from None
    if x.ndim != 2:
        x = x.reshape(math.prod(lead), size)
    return x if x.flags.carray else x.copy()


_CONFIGURATIONS = ("q", "q0", "q1")


def states(robot, **arrays):
    """The leading shape, then each array as (count, size) rows; `q`, `q0` and `q1` have nq columns, all others nv.

    InputError if a shape does not fit, an entry is not finite or beyond LARGEST, or a quaternion is not of unit length.
    """
    lead, rows = _rows(robot, arrays, rows_of)
    for name, q in zip(arrays, rows):
        if name in _CONFIGURATIONS and robot.nq != robot.nv:
            _require_unit_quaternions(robot, q)
    return lead, *rows


def states_unchecked(robot, **arrays):
    """`states` for a kernel that checks the numbers itself, as it reads them anyway.

    Returns the result of `states` and a verdict array for the kernel; if that is 0 afterwards, `states` raises the
    error.
    """
    lead, rows = _rows(robot, arrays, rows_unchecked)
    configurations = [q for name, q in zip(arrays, rows) if name in _CONFIGURATIONS] if robot.nq != robot.nv else []
    if any(bad_quaternion(robot.packed, q) >= 0 for q in configurations):
        states(robot, **arrays)
    return lead, *rows, np.array([1], np.int64)


def _rows(robot, arrays, make):
    """The leading shape, and rows, converted by `make` if kernels cannot use the arrays directly."""
    require_robot(robot)
    sizes = {name: robot.nq if name in _CONFIGURATIONS else robot.nv for name in arrays}
    rows = [usual_rows(x, sizes[name]) for name, x in arrays.items()]
    lead = () if rows[0] is None else rows[0].shape[:-1]
    if any(x is None or x.shape[:-1] != lead for x in rows):
        return _converted(arrays, sizes, make)
    if not lead:
        return (), [x[None] for x in rows]
    return lead, rows if make is rows_unchecked else [make(name, x, lead, sizes[name]) for name, x in zip(arrays, rows)]


@direct
def usual_rows(x, size):
    """x itself if it is a vector of `size` finite numbers of usual size, or an array of such rows, unchecked."""
    if is_array(x, FLOAT64, 2, READABLE | WRITEABLE) and extent_of(x, 1) == integer(size):
        return counted(x)
    return counted(x) if bounded(x, integer(size)).size >= 0 and flags_of(x) & WRITEABLE else general_path()


def _converted(arrays, sizes, make):
    """The common leading shape of the arrays, and their rows."""
    arrays = {name: as_floats(name, x, sizes[name]) for name, x in arrays.items()}
    leads = {x.shape[:-1] for x in arrays.values()}
    if len(leads) == 1:
        lead = leads.pop()
    else:
        try:
            lead = np.broadcast_shapes(*leads)
        except ValueError:
            shapes = ", ".join(f"{name} {x.shape}" for name, x in arrays.items())
            raise InputError(f"leading axes do not broadcast: {shapes}") from None
    return lead, [make(name, x, lead, sizes[name]) for name, x in arrays.items()]


def _require_unit_quaternions(robot, q):
    link = bad_quaternion(robot.packed, q)
    if link >= 0:
        k = int(robot.packed.ints[HEADER + LINK_I * link + LINK_IQ])
        name, length = robot.coordinate_names[k].removesuffix(".qx"), np.linalg.norm(q[:, k:k + 4], axis=1)
        worst = np.abs(length - 1.0).argmax()
        raise InputError(f"the quaternion (x, y, z, w) of joint {name!r} has length {length_not_one(length[worst])}: "
                         f"{q[worst, k:k + 4]}")


def length_not_one(length):
    """A length that should be 1, with enough digits to show the difference.

    Examples
    --------
    >>> length_not_one(2.0), length_not_one(1.0 + 6e-7)
    ('2, not 1', '1 + 6e-07, not 1')
    """
    said, apart = f"{length:.6g}", length - 1.0
    if said == "1":
        said = f"1 {'-' if apart < 0.0 else '+'} {abs(apart):.2g}"
    return f"{said}, not 1"


_NO_WRENCH = np.empty((1, 0))


def wrenches(robot, f_ext, lead):
    """Body wrenches as (count, 6 nlinks) rows in link frames; (count, 0) if there are none.

    InputError for an unknown body, a shape that does not fit, or an entry that is not finite.
    """
    count = math.prod(lead)
    if f_ext is None:
        return _NO_WRENCH if count == 1 else np.empty((count, 0))
    out = np.zeros((count, int(robot.packed.ints[N_LINKS]), 6))
    if isinstance(f_ext, dict):
        named = {name: as_floats(f"f_ext[{shown(name)}]", F, 6) for name, F in f_ext.items()}
    else:
        f_ext = as_floats("f_ext", f_ext, 6)
        if f_ext.shape[-2:] != (robot.nbodies, 6):
            raise InputError(f"f_ext must have shape (..., {robot.nbodies}, 6), got {f_ext.shape}")
        named = {name: f_ext[..., b, :] for b, name in enumerate(robot.body_names)}
    for name, F in named.items():
        b = robot.body_index(name)
        link = robot.packed.ints[robot.packed.ints[BODIES_AT] + BODY_I * b + BODY_LINK]
        at = robot.packed.ints[BODY_FLOATS_AT] + BODY_F * b
        R, p = robot.packed.floats[at:at + 9].reshape(3, 3), robot.packed.floats[at + 9:at + 12]
        F = rows_of(f"f_ext[{name!r}]", F, lead, 6)
        if link < 0:
            continue  # a body fixed to the ground does not move
        force = F[:, 3:] @ R.T
        out[:, link, :3] += F[:, :3] @ R.T + np.cross(p, force)
        out[:, link, 3:] += force
    return out.reshape(count, out.shape[1] * 6)


def rows_for(out, lead, shape, *inputs, name="out"):
    """Rows for results: those of `out`, unless it overlaps an input.

    InputError if `out` is not an array to which results of shape `lead + shape` can be written.
    """
    rows = (math.prod(lead), math.prod(shape))
    if out is None:
        return np.empty(rows)
    if not isinstance(out, np.ndarray):
        raise InputError(f"{name} must be an array, got {shown(out)}")
    if out.shape != lead + shape or out.dtype != np.float64 or not out.flags.carray:
        what = "writeable" if out.flags.writeable else "read-only"
        order = "C-contiguous" if out.flags.c_contiguous else "strided"
        raise InputError(f"{name} must be a writeable C-contiguous float64 array of shape {lead + shape}, "
                         f"got a {what} {order} {out.dtype} array of shape {out.shape}")
    return np.empty(rows) if any(np.may_share_memory(out, x) for x in inputs) else np.asarray(out).reshape(rows)


def in_users_shape(rows, lead, shape, out):
    """Results in the user's shape: in `out` if that was passed."""
    if out is None:
        return rows.reshape(lead + shape)
    if not np.may_share_memory(rows, out):
        out[...] = rows.reshape(lead + shape)
    return out


def rows_for_all(out, lead, shapes, *inputs):
    """`rows_for` for a tuple of arrays, one of each shape; new arrays also if arrays of `out` overlap."""
    if out is None:
        return tuple(rows_for(None, lead, shape) for shape in shapes)
    if not isinstance(out, (tuple, list)) or len(out) != len(shapes):
        raise InputError(f"out must be a tuple of {len(shapes)} arrays, got {shown(out)}")
    rows = tuple(rows_for(x, lead, shape, *inputs, name=f"out[{k}]") for k, (x, shape) in enumerate(zip(out, shapes)))
    for k, x in enumerate(out):
        if any(np.may_share_memory(x, y) for y in out[:k]):
            raise InputError(f"out[{k}] overlaps another array of out")
    return rows


def delivered_all(rows, lead, shapes, out):
    """`in_users_shape` for a tuple of results."""
    return tuple(map(in_users_shape, rows, [lead] * len(shapes), shapes, out or [None] * len(shapes)))
