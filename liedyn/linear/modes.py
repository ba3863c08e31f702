"""Modes of a linear model: frequencies, damping, shapes in all coordinates, and participation of the states.

Eigenvalues at zero (rigid-body motions) are deflated first: as A V = 0 for an orthonormal V, A is block upper
triangular in a basis that begins with V, and the lower block is treated in the same way until it is regular. So Jordan
chains at zero, of rigid bodies without friction for instance, lose no digits: `eig` alone returns about +-1e-8. The
regular block is brought to Schur form. Eigenvalues that are equal to rounding (a double one of a chain splits by the
square root of rounding) form a group; quantities that are defined for the group only are shared equally among its
members.
"""
# mypy: ignore-errors

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from liedyn.machine.errors import InputError, shown
from liedyn.machine.texts import html_table, text_table

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from liedyn.linear.state_space import LocalStateSpace
    from liedyn.typing import Array, Booleans, Complexes

EQUAL = 1e-6
"""Eigenvalues whose relative difference is smaller are a group: rounding splits chains of two by 1e-8 times the
condition of their vectors."""
ZERO = 1e3
"""Singular values below this multiple of the rounding of the largest one are zero, as A itself is rounded: modes slower
than a millionth of the fastest one are rigid."""


@dataclass(frozen=True, repr=False, eq=False)
class Modes:
    """Modes of a linear model, slow ones first; of a conjugate pair the one with positive imaginary part.

    Attributes
    ----------
    eigenvalues : ndarray of complex, shape (k,)
        Eigenvalues s [1/s].
    frequencies : ndarray, shape (k,)
        Natural frequencies ``|s| / 2 pi`` [Hz].
    omega : ndarray, shape (k,)
        Natural angular frequencies ``|s|`` [rad/s].
    damped : ndarray, shape (k,)
        Frequencies of the damped oscillation, Im s [rad/s]; zero for real eigenvalues.
    damping : ndarray, shape (k,)
        Damping ratios ``-Re s / |s|``: 1 if a mode decays without oscillation, negative if it grows, 0 for rigid ones.
    rigid : ndarray of bool, shape (k,)
        True for rigid-body motions, s = 0: one for each displacement or velocity that stays constant.
    shapes : ndarray of complex, shape (k, nv)
        Displacements of all coordinates, the dependent ones too: dq(t) = Re(shape exp(s t)). The largest entry is 1;
        entries are in [rad] or [m], as their coordinates are.
    vectors : ndarray of complex, shape (k, x)
        The modes in the states of the model: right eigenvectors, A x = s x. For repeated eigenvalues, vectors with
        real displacements, if there are such.
    participation : ndarray, shape (k, x)
        Participation of each state: real part of the right times the left eigenvector; each row's sum is 1. Equal
        modes share their participation equally.
    states : tuple of str
        Names of the model's states.
    """

    eigenvalues: Complexes
    frequencies: Array
    omega: Array
    damped: Array
    damping: Array
    rigid: Booleans
    shapes: Complexes
    vectors: Complexes
    participation: Array
    states: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.eigenvalues)

    def __repr__(self) -> str:
        return f"Modes({len(self)} of {len(self.states)} states, {self.rigid.sum()} rigid)"

    def plot(self, axes: Sequence[Any] | None = None) -> tuple[Any, Any]:
        """Draw the eigenvalues in the complex plane, and the participation of the states in each mode.

        Parameters
        ----------
        axes : pair of matplotlib axes, optional
            For eigenvalues and participation. Default: a new figure.

        Returns
        -------
        axes : pair of matplotlib axes
            ``axes[0].figure.savefig(path)`` writes the picture.

        Raises
        ------
        LiedynError
            Matplotlib is not installed.

        Examples
        --------
        >>> import liedyn as ld
        >>> arm = ld.load("five_bar")
        >>> modes = ld.modes(ld.linearize(arm, arm.home, [0.0] * 4, [0.0] * 4))
        >>> modes.plot()[0].get_xlabel()
        'real part [1/s]'
        """
        from liedyn.machine.figures import COLOURS, figure
        from liedyn.machine.texts import drawn

        if axes is None:
            axes = figure((9.0, 4.2)).subplots(1, 2)
        plane, bars = axes
        size = np.abs(self.eigenvalues).max(initial=0.0)
        plane.axvline(0.0, color="#7F7F7F", lw=0.9, ls=":")
        for s in self.eigenvalues:
            both = [s] if s.imag == 0.0 else [s, s.conjugate()]
            plane.plot(np.real(both), np.imag(both), "x", color=COLOURS[5 if s.real > 1e-9 * size else 0], mew=1.8)
        for s, which in self._places():
            plane.annotate(which, (s.real, s.imag), textcoords="offset points", xytext=(5, 4))
        plane.set(xlabel="real part [1/s]", ylabel="imaginary part [rad/s]", title="eigenvalues, by number of the mode")
        plane.margins(0.15)
        if np.ptp(plane.get_xlim()) < 1e-3 * size:  # nothing but rounding
            plane.set_xlim(-0.1 * size, 0.1 * size)
        plane.grid(alpha=0.3)
        before, share = np.zeros(len(self)), np.abs(self.participation)
        share = share / np.maximum(share.sum(axis=1, keepdims=True), np.finfo(float).tiny)
        for j, name in enumerate(self.states):
            bars.barh(np.arange(len(self)), share[:, j], left=before, color=COLOURS[j % len(COLOURS)],
                      hatch=("", "//", "..", "xx")[j // len(COLOURS) % 4], edgecolor="white", label=drawn(name))
            before += share[:, j]
        bars.set(xlabel="participation", ylabel="mode", yticks=np.arange(len(self)), xlim=(0.0, 1.0))
        bars.invert_yaxis()
        bars.legend(frameon=False, loc="center left", bbox_to_anchor=(1.01, 0.5))
        return plane, bars

    def _places(self):
        """Places in the complex plane, and the numbers of the modes there."""
        places = []
        size = np.abs(self.eigenvalues).max(initial=0.0)
        for k, s in enumerate(self.eigenvalues):
            for other, numbers in places:
                if abs(s - other) <= 0.05 * size:
                    numbers.append(str(k))
                    break
            else:
                places.append((s, [str(k)]))
        return [(s, ", ".join(numbers)) for s, numbers in places]

    def _table(self):
        rows = [["mode", "Hz", "rad/s", "damping", "moves most"]]
        names = [name for name in self.states if not name.startswith("velocity:")]
        for k in range(len(self)):
            most = np.argsort(-np.abs(self.vectors[k, :len(names)]).round(6), kind="stable")[:2]
            rows.append([str(k), "rigid" if self.rigid[k] else f"{self.frequencies[k]:.4g}", f"{self.omega[k]:.4g}",
                         f"{self.damping[k].round(9) + 0.0:.4g}", ", ".join(names[i] for i in most)])
        return rows

    def __str__(self) -> str:
        return f"{self!r}\n" + text_table(self._table())

    def _repr_html_(self):
        return html_table(repr(self), self._table())


def modes(ss: LocalStateSpace) -> Modes:
    """Modes of a linear model: frequencies, damping ratios, shapes in all coordinates, participation.

    Parameters
    ----------
    ss : LocalStateSpace
        One model, as `linearize` returns it. The modes describe perturbations of its operating point, which may be at
        rest or not (f0 is left out).

    Returns
    -------
    Modes
        ``print`` shows a table.

    Raises
    ------
    InputError
        ss is no such model, or a batch of models: take ``ss[k]``.

    Notes
    -----
    Eigenvalues at zero are deflated by null spaces of A, so that rigid-body modes are exact; participation
    is the diagonal of the spectral projector (Perez-Arriaga, Verghese and Schweppe 1982) of each group of equal
    eigenvalues, from a Schur form and Sylvester's equation.

    Examples
    --------
    >>> import liedyn as ld
    >>> arm = ld.load("five_bar")
    >>> m = ld.modes(ld.linearize(arm, arm.home, [0.0] * 4, [0.0] * 4))
    >>> len(m), m.shapes.shape[1], bool(abs(m.participation.sum(axis=1) - 1.0).max() < 1e-9)
    (4, 4, True)
    """
    if not (hasattr(ss, "A") and hasattr(ss, "K")):
        raise InputError(f"modes are those of a LocalStateSpace, as linearize() gives it, not of {shown(ss)}")
    if ss.A.ndim != 2:
        raise InputError(f"modes are those of one model, and this is a batch {ss.lead}: take ss[k]")
    if not np.isfinite(ss.A).all():
        raise InputError("A has entries that are not finite")
    s, X, share = _eigen(np.asarray(ss.A), ss.K.shape[1])
    chosen = np.flatnonzero(s.imag >= 0.0)
    chosen = chosen[np.argsort(np.abs(s[chosen]), kind="stable")]
    s, X, share = s[chosen], X[:, chosen].T, share[chosen]
    shapes = X[:, :ss.K.shape[1]] @ ss.K.T
    for k, shape in enumerate(shapes):
        # a velocity that stays constant, for example
        all_of_it = shape if np.abs(shape).max(initial=0.0) > 0.0 else X[k]
        unit = all_of_it[_largest(all_of_it)]
        shapes[k], X[k] = shape / unit, X[k] / unit
    omega, rigid = np.abs(s), s == 0.0
    damping = np.where(rigid, 0.0, -s.real / np.where(rigid, 1.0, omega))
    return Modes(s, omega / (2.0 * np.pi), omega, s.imag.copy(), damping, rigid, shapes, X, share, ss.states)


def _largest(x):
    """Index of the first entry that is largest, up to rounding."""
    size = np.abs(x)
    return int((size > (1.0 - 1e-9) * size.max()).argmax())


def _eigen(A, p):
    """Eigenvalues, right eigenvectors (x, k) and participation (k, x); for a chain at zero its null vectors only.

    The first p states are displacements.
    """
    from scipy.linalg import rsf2csf, schur, solve_triangular

    n = len(A)
    if n == 0:
        return np.empty(0, complex), np.empty((0, 0), complex), np.empty((0, 0))
    # scales displacements and velocities alike: the unit of time is about that of the fastest mode
    scale = np.ones(n)
    scale[p:] = np.sqrt(np.linalg.norm(A[p:, :p], 2)) or 1.0 if 0 < p < n else 1.0
    balanced = A * scale / scale[:, None]
    Q, zeros, first = _without_zeros(balanced)
    T = Q.T @ balanced @ Q
    for begin, end in zeros:
        T[begin:, begin:end] = 0.0
    r = zeros[-1][1] if zeros else 0
    blocks, Z = schur(T[r:, r:])
    lower, Z = rsf2csf(blocks, Z)
    U = np.block([[np.eye(r), np.zeros((r, n - r))], [np.zeros((n - r, r)), Z]])
    T = np.block([[T[:r, :r], T[:r, r:] @ Z], [np.zeros((n - r, r)), lower]])
    s = np.diag(lower).copy()
    for i in np.flatnonzero(np.diag(blocks, -1)):  # conjugate pairs stay pairs in spite of rounding
        turn = 1j if s[i].imag > s[i + 1].imag else -1j
        s[i:i + 2] = blocks[i, i] + turn * np.sqrt(-blocks[i, i + 1] * blocks[i + 1, i]) * np.array([1.0, -1.0])
    X = np.zeros((n, n - r), complex)
    for k in range(n - r):
        X[r + k, k] = 1.0
        above = T[:r + k, :r + k] - s[k] * np.eye(r + k)
        size = np.spacing(np.abs(T).max(initial=1e-300))  # keeps the nearly parallel vectors of a chain finite
        np.fill_diagonal(above, np.where(np.abs(np.diag(above)) < size, size, np.diag(above)))
        X[:r + k, k] = solve_triangular(above, -T[:r + k, r + k])
    X = scale[:, None] * (Q @ U @ X)
    X /= np.abs(X).max(axis=0, initial=1e-300)
    share = np.zeros((n - r, n))
    for group in _groups(s):
        if len(group) > 1:
            X[:, group] = _standing(X[:, group], p)
        share[group] = _shared(T, Q @ U, np.concatenate([np.zeros(r, bool), np.isin(np.arange(n - r), group)]))
    if not first:
        return s, X, share
    V = scale[:, None] * Q[:, :first]
    of_zeros = _shared(T, Q @ U, np.arange(n) < r)
    return (np.concatenate([np.zeros(first), s]), np.hstack([_plain(V), X]),
            np.vstack([np.tile(of_zeros, (first, 1)), share]))


def _without_zeros(A):
    """An orthogonal basis in which A is [[N, *], [0, regular]], N strictly block upper triangular: the basis, the
    blocks of N as (begin, end), and the number of its columns that are null vectors of A."""
    n = len(A)
    Q, blocks, r = np.eye(n), [], 0
    least = ZERO * np.finfo(float).eps * np.linalg.norm(A, 2) if n else 0.0
    while r < n:
        _, sizes, V = np.linalg.svd((Q.T @ A @ Q)[r:, r:])
        count = int((sizes <= least).sum())
        if not count:
            break
        Q[:, r:] = Q[:, r:] @ np.vstack([V[len(V) - count:], V[:len(V) - count]]).T
        blocks.append((r, r + count))
        r += count
    return Q, blocks, blocks[0][1] if blocks else 0


def _groups(s):
    """Group number of each eigenvalue; eigenvalues that are equal to rounding have the same."""
    left, groups = list(np.argsort(np.abs(s), kind="stable")), []
    while left:
        group = [k for k in left if abs(s[k] - s[left[0]]) <= EQUAL * abs(s[left[0]])]
        groups.append(np.array(group))
        left = [k for k in left if k not in group]
    return groups


def _standing(X, p):
    """The eigenvectors X (n, m) of a group, combined to real displacements if m of these are independent."""
    D = X[:p]
    basis, sizes, _ = np.linalg.svd(np.hstack([D.real, D.imag]))
    m = X.shape[1]
    if len(sizes) < m or sizes[m - 1] < 1e-6 * sizes[0] or (sizes[m:] > 1e-6 * sizes[0]).any():
        return X
    return X @ np.linalg.lstsq(D, _plain(basis[:, :m]).astype(complex), rcond=None)[0]


def _plain(V):
    """Real columns of the same span, with the identity in some of the rows."""
    from scipy.linalg import qr

    _, R, order = qr(V.T, mode="economic", pivoting=True)
    reduced = np.linalg.solve(R[:, :V.shape[1]], R)  # the identity in the chosen rows
    out = np.empty_like(V)
    out[order] = reduced.T
    return out[:, np.argsort(order[:V.shape[1]])]


def _shared(T, U, chosen):
    """Each chosen eigenvalue's equal share of the diagonal of the group's spectral projector; A = U T U^H, T
    triangular.
    """
    from scipy.linalg import solve_sylvester

    lead = np.flatnonzero(chosen)
    first, rest, G = _reordered(T, lead)
    B, m = U @ G, len(lead)
    Y = solve_sylvester(first, -rest[1], rest[0]) if m < len(T) else np.empty((m, 0))
    return np.einsum("ij,ij->i", B[:, :m], (B[:, :m] + B[:, m:] @ Y.conj().T).conj()).real / m


def _reordered(T, lead):
    """T with the eigenvalues `lead` first: their block, (coupling, the other block), and the unitary basis."""
    T, G = T.astype(complex), np.eye(len(T), dtype=complex)
    for place, k in enumerate(lead):
        for i in range(k - 1, place - 1, -1):  # swap the neighbours i and i + 1 (Golub and Van Loan, 7.6.2)
            x, y = T[i, i + 1], T[i + 1, i + 1] - T[i, i]
            size = np.hypot(abs(x), abs(y))
            if size == 0.0:
                continue
            c, d = x / size, y / size
            J = np.array([[c, -d.conjugate()], [d, c.conjugate()]])
            T[:, i:i + 2] = T[:, i:i + 2] @ J
            T[i:i + 2] = J.conj().T @ T[i:i + 2]
            G[:, i:i + 2] = G[:, i:i + 2] @ J
            T[i + 1, i] = 0.0
    m = len(lead)
    return T[:m, :m], (T[:m, m:], T[m:, m:]), G
