"""Second derivatives of forward dynamics, whole or contracted with weights, from those of inverse dynamics.

Differentiating ID(q, v, FD(q, v, tau)) = tau twice, with a = FD and what `aba_derivatives` has of it,

    a_qq(j, k) = -M^-1 (ID_qq(j, k) + ID_qa(j, .) a_q(., k) + ID_qa(k, .) a_q(., j))         a_vv = -M^-1 ID_vv
    a_qv(j, k) = -M^-1 (ID_qv(j, k) + ID_qa(j, .) a_v(., k))         a_qtau(j, k) = -M^-1 ID_qa(j, .) M^-1(., k)

as ID is linear in a, and M = ID_a the same for all v. All other second derivatives are zero. For one weighted sum of
the accelerations the forces of ID have the weights -M^-1 weights, the solution of the adjoint equation: no tensor is
needed.
"""
# mypy: ignore-errors

from __future__ import annotations

from typing import TYPE_CHECKING

from liedyn.machine.compiled.jit import inline, kernel_in_place
from liedyn.machine.simd.lanes import LANES, WIDTH, load, splat, store, vector_in, width_of
from liedyn.machine.simd.registers import at_once, copy_row, load_at_once, store_at_once
from liedyn.mechanics.tree.aba import require_regular_tree
from liedyn.mechanics.tree.aba_derivatives import aba_derivatives_kernel, aba_derivatives_size
from liedyn.mechanics.tree.rnea_hessian import rnea_hessian_kernel, rnea_hessian_size, whole_lines
from liedyn.mechanics.tree.rnea_second_derivatives import rnea_second_derivatives_kernel, rnea_second_derivatives_size
from liedyn.model.calls.recursion import recursion
from liedyn.model.packed_records import dof_total

if TYPE_CHECKING:
    from liedyn.model.robot import Robot
    from liedyn.typing import Array, ArrayLike, Wrenches


@inline
def first_size(model):
    """Size of the room for first derivatives, and for the weights of forces."""
    n = dof_total(model)
    return 2 * whole_lines(n) + 4 * whole_lines(n * n)


@inline
def hessian_size(model):
    """Size of what `aba_derivatives` and `rnea_hessian` share."""
    return max(aba_derivatives_size(model), rnea_hessian_size(model))


@inline
def tensor_size(model):
    """Size of what `aba_derivatives`, `rnea_second_derivatives` and solutions for accelerations share."""
    return max(max(aba_derivatives_size(model), rnea_second_derivatives_size(model)), dof_total(model) * WIDTH)


@kernel_in_place
def aba_hessian_size(model):
    """Size of the workspace of `aba_hessian_kernel`."""
    return hessian_size(model) + first_size(model)


@kernel_in_place
def aba_second_derivatives_size(model):
    """Size of the workspace of `aba_second_derivatives_kernel`."""
    return tensor_size(model) + first_size(model)


@inline
def first_derivatives(lane, model, q, v, tau, f_ext, work, behind):
    """The accelerations a and room for as many weights; and da/dq, da/dv, M^-1 and room for a matrix.

    They are kept in the workspace from number `behind` on.
    """
    n, w = dof_total(model), width_of(lane)
    line, square, k = w * whole_lines(n), w * whole_lines(n * n), w * behind
    a, mu = vector_in(work, k, w * n), vector_in(work, k + line, w * n)
    k, size = k + 2 * line, w * n * n
    da_dq, da_dv = vector_in(work, k, size), vector_in(work, k + square, size)
    Minv, L = vector_in(work, k + 2 * square, size), vector_in(work, k + 3 * square, size)
    aba_derivatives_kernel(lane, model, q, v, tau, f_ext, work, a, L, da_dq, da_dv, Minv)
    return a, mu, (da_dq, da_dv, Minv), L


@inline
def put_product(lane, model, X, x, Y, more, Z, z):
    """Z = more Z + X Y for matrices nv x nv that begin at X[x], Y[0] and Z[z]; more is 0.0 or 1.0."""
    n = dof_total(model)
    for i in range(n):
        for j in range(0, n, at_once(lane)):
            total = splat(LANES, 0.0)
            if more > 0.0:
                total = load_at_once(lane, Z, z + i * n + j, n - j)
            for k in range(n):
                total = total + load(lane, X, x + i * n + k) * load_at_once(lane, Y, k * n + j, n - j)
            store_at_once(lane, Z, z + i * n + j, n - j, total)


@inline
def add_motion(lane, model, product, accelerations, at, results):
    """qq, qv and qtau of one force of ID, from number `at` on, with what its ID_qa, in qtau, adds to them."""
    n, (qq, qv, qtau), (da_dq, da_dv, Minv) = dof_total(model), results, accelerations
    put_product(lane, model, qtau, at, da_dq, 0.0, product, 0)
    for j in range(n):
        for k in range(n):
            both = load(lane, product, j * n + k) + load(lane, product, k * n + j)
            store(lane, qq, at + j * n + k, load(lane, qq, at + j * n + k) + both)
    put_product(lane, model, qtau, at, da_dv, 1.0, qv, at)
    put_product(lane, model, qtau, at, Minv, 0.0, product, 0)
    copy_row(lane, product, 0, n * n, qtau, at)


@inline
def solve_for_accelerations(lane, model, Minv, work, X):
    """X = -M^-1 X, over the first of three indices."""
    n, w = dof_total(model), at_once(lane)
    for c in range(0, n * n, w):
        for i in range(n):
            store_at_once(lane, work, i * w, WIDTH, load_at_once(lane, X, i * n * n + c, n * n - c))
        for f in range(n):
            total = splat(LANES, 0.0)
            for i in range(n):
                total = total - load(lane, Minv, f * n + i) * load_at_once(lane, work, i * w, WIDTH)
            store_at_once(lane, X, f * n * n + c, n * n - c, total)


@kernel_in_place
def aba_hessian_kernel(lane, model, q, v, tau, weights, f_ext, work, H_qq, H_vv, H_qv, H_qtau):
    """Second derivatives of weights . a, each nv x nv."""
    a, mu, first, product = first_derivatives(lane, model, q, v, tau, f_ext, work, hessian_size(model))
    for j in range(dof_total(model)):
        total = splat(lane, 0.0)
        for i in range(dof_total(model)):
            total = total - load(lane, first[2], j * dof_total(model) + i) * load(lane, weights, i)
        store(lane, mu, j, total)
    rnea_hessian_kernel(lane, model, q, v, a, mu, f_ext, work, H_qq, H_vv, H_qv, H_qtau)
    add_motion(lane, model, product, first, 0, (H_qq, H_qv, H_qtau))


@kernel_in_place
def aba_second_derivatives_kernel(lane, model, q, v, tau, f_ext, work, qq, vv, qv, qtau):
    """Second derivatives, each nv x nv x nv."""
    n = dof_total(model)
    a, _, first, product = first_derivatives(lane, model, q, v, tau, f_ext, work, tensor_size(model))
    rnea_second_derivatives_kernel(lane, model, q, v, a, f_ext, work, qq, vv, qv, qtau)
    for f in range(n):
        add_motion(lane, model, product, first, f * n * n, (qq, qv, qtau))
    solve_for_accelerations(lane, model, first[2], work, qq)
    solve_for_accelerations(lane, model, first[2], work, vv)
    solve_for_accelerations(lane, model, first[2], work, qv)
    solve_for_accelerations(lane, model, first[2], work, qtau)


@recursion(aba_hessian_kernel, work=aba_hessian_size,
           refuse={"singular_tree": require_regular_tree}, H_qq="nv nv", H_vv="nv nv", H_qv="nv nv", H_qtau="nv nv")
def aba_hessian(robot: Robot, q: ArrayLike, v: ArrayLike, tau: ArrayLike, weights: ArrayLike,
                f_ext: Wrenches | None = None, out: Array | None = None) -> tuple[Array, Array, Array, Array]:
    """Hessian of ``weights . a``: `aba_second_derivatives` with weights.

    Parameters
    ----------
    weights : array_like, shape (..., nv)
        Of the accelerations.

    Returns
    -------
    H_qq, H_vv, H_qv, H_qtau : ndarray, shape (..., nv, nv)
        As `aba_second_derivatives` describes them.

    Raises
    ------
    SingularConfigurationError
        The robot has massless bodies that only its loops hold.

    Examples
    --------
    >>> import liedyn as ld
    >>> panda = ld.load("panda")
    >>> q = ld.neutral(panda)
    >>> H_qq, H_vv, H_qv, H_qtau = aba_hessian(panda, q, q, q, 1.0 + q)
    >>> bool(abs(H_qq - H_qq.T).max() < 1e-9 * abs(H_qq).max())
    True
    """


@recursion(aba_second_derivatives_kernel, work=aba_second_derivatives_size,
           refuse={"singular_tree": require_regular_tree}, otherwise={"weights": aba_hessian},
           qq="nv nv nv", vv="nv nv nv", qv="nv nv nv", qtau="nv nv nv")
def aba_second_derivatives(robot: Robot, q: ArrayLike, v: ArrayLike, tau: ArrayLike, f_ext: Wrenches | None = None,
                           weights: ArrayLike | None = None,
                           out: Array | None = None) -> tuple[Array, Array, Array, Array]:
    """Second derivatives of forward dynamics: all of them, or those of one weighted sum of the accelerations.

    Parameters
    ----------
    f_ext : dict or array_like, optional
        Wrenches (moment, force) [N m, N] on bodies, constant in each body's own frame, as for `aba`.
    weights : array_like, shape (..., nv), optional
        Of the accelerations: the results are then those of ``weights . a``, a number, for about twice the time of
        `aba_derivatives`, where the whole tensors take O(nv^4).
    out : tuple of 4 ndarrays, shape (..., nv, nv, nv), with weights (..., nv, nv), optional
        Where the results go: C-contiguous float64 of the very shape of the results.

    Returns
    -------
    qq : ndarray, shape (..., nv, nv, nv), with weights (..., nv, nv)
        ``qq[i, j, k]``, with weights ``qq[j, k]``, is the second derivative of acceleration i by the coordinates j and
        k: the Hessian in the exponential's chart at q, as in `rnea_second_derivatives`; symmetric in j and k.
    vv : ndarray, of the same shape
        By the velocities j and k; symmetric.
    qv, qtau : ndarray, of the same shape
        By the coordinate j and the velocity, or force, k: ``qtau[i, j, k]`` is the derivative of the entry (i, k) of
        the inverse inertia matrix.

    Raises
    ------
    SingularConfigurationError
        The robot has massless bodies that only its loops hold.

    Notes
    -----
    Singh, Russell and Wensing 2024, IEEE T-RO 40, from those of inverse dynamics; springs and dampers of the joints
    included, loops ignored. Derivatives by v and tau, and by tau twice, are zero. Derivatives of the columns of
    `aba_derivatives`, one after the other, differ from `qq` within a ball or free joint, as they do for
    `rnea_second_derivatives`.

    Examples
    --------
    >>> import numpy as np
    >>> import liedyn as ld
    >>> panda = ld.load("panda")
    >>> q, v = ld.random_configuration(panda, rng=0), np.ones(7)
    >>> qq, vv, qv, qtau = ld.aba_second_derivatives(panda, q, v, v)
    >>> weighted = ld.aba_second_derivatives(panda, q, v, v, weights=v)[0]
    >>> qq.shape, bool(abs(weighted - qq.sum(axis=0)).max() < 1e-9 * abs(qq).max())
    ((7, 7, 7), True)
    """
