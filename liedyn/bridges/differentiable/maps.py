"""The derivative of an operation as a linear map, on the arrays of any framework: applied forward and in reverse.

`tools` has functions with NumPy's names for the framework's arrays (`jax.numpy`, `numpy`); `scan(f, start, sequences)`
is its loop over the first axis of sequences: f(carried, elements) returns the next carried value and a row; scan
returns the last carried value and all rows. All arrays have the same leading axes, and arguments and results one more
axis.
"""
import numpy as np



def times(A, x):
    """A x, with leading axes."""
    return (A @ x[..., None])[..., 0]


def times_transposed(A, y):
    """A^T y, with leading axes."""
    return (y[..., None, :] @ A)[..., 0, :]


class Blocks:
    """One matrix for every result and argument, result by result."""

    def __init__(self, arguments, results):
        self.arguments, self.results = arguments, results

    def with_argument(self, size):
        """The same with one more argument."""
        return Blocks([*self.arguments, size], self.results)

    def shapes(self):
        """Shapes of the matrices without leading axes."""
        return [(y, x) for y in self.results for x in self.arguments]

    def patterns(self):
        """Masks of the entries of `dense` that can be non-zero."""
        return [np.ones(shape, bool) for shape in self.shapes()]

    def dense(self, matrices):
        """For every result and argument, result by result, the matrix of all partial derivatives, as NumPy arrays."""
        return matrices

    def forward(self, tools, scan, matrices, changes):
        """Changes of the results; None means that an argument does not change."""
        count = len(self.arguments)
        rows = [matrices[k:k + count] for k in range(0, len(matrices), count)]
        return [sum((times(A, x) for A, x in zip(row, changes) if x is not None), tools.zeros_like(row[0][..., 0]))
                for row in rows]

    def bend(self, second, changes, matrices):
        """Changes of the matrices, from the second derivatives (`Operation.second`) and changes of the arguments."""
        count = len(self.arguments)
        return [sum((times(H, x[..., None, :]) for H, x in zip(second[count * k:], changes) if x is not None),
                    0.0 * A) for k, A in enumerate(matrices)]

    def unbend(self, second, gradients):
        """Gradients by the arguments, from the gradients by the matrices."""
        count = len(self.arguments)
        return [sum((H * G[..., None]).sum((-3, -2)) for H, G in zip(second[k::count], gradients))
                for k in range(count)]

    def reverse(self, tools, scan, matrices, gradients):
        """Gradients by the arguments, from the gradients by the results."""
        count = len(self.arguments)
        return [sum(times_transposed(A, y) for A, y in zip(matrices[k::count], gradients)) for k in range(count)]


class Chain:
    """x_{k+1} = A_k x_k + B_k u_k + C_k p: for arguments q, v, u and, if there are any, parameters p; the results are
    all q and all v, as rows in the order of time."""

    def __init__(self, steps, nq, nv, nu, parameters=None):
        self.steps, self.nq, self.nv, self.nu, self.parameters = steps, nq, nv, nu, parameters

    def with_argument(self, size):
        """The same chain with `size` parameters."""
        return Chain(self.steps, self.nq, self.nv, self.nu, size)

    def shapes(self):
        """Shapes of all A, all B, and all C if there are parameters."""
        n = self.nq + self.nv
        columns = [n, self.nu] if self.parameters is None else [n, self.nu, self.parameters]
        return [(self.steps, n, count) for count in columns]

    def patterns(self):
        """Masks of the entries of `dense` that can be non-zero: forces affect later states only."""
        later = np.tri(self.steps + 1, self.steps, -1, bool)
        sizes = [size * (self.steps + 1) for size in (self.nq, self.nv)]
        last = [] if self.parameters is None else [self.parameters]
        return [pattern for size, rows in zip((self.nq, self.nv), sizes) for pattern in (
            np.ones((rows, self.nq), bool), np.ones((rows, self.nv), bool),
            np.kron(later, np.ones((size, self.nu), bool)), *(np.ones((rows, count), bool) for count in last))]

    def dense(self, matrices):
        """For every result and argument, result by result, the matrix of all partial derivatives, as NumPy arrays."""
        A, B, *C = matrices
        lead, n = A.shape[:-3], self.nq + self.nv
        before = n + self.steps * self.nu
        J = np.zeros((*lead, self.steps + 1, n, before + (self.parameters or 0)))
        J[..., 0, :, :n] = np.eye(n)
        for k in range(self.steps):
            at = n + k * self.nu
            J[..., k + 1, :, :at] = A[..., k, :, :] @ J[..., k, :, :at]
            J[..., k + 1, :, at:at + self.nu] = B[..., k, :, :]
            if C:
                J[..., k + 1, :, before:] = A[..., k, :, :] @ J[..., k, :, before:] + C[0][..., k, :, :]
        ends = [0, self.nq, n, before, *([] if self.parameters is None else [J.shape[-1]])]
        arguments = [slice(*each) for each in zip(ends, ends[1:])]
        blocks = [J[..., rows, columns] for rows in arguments[:2] for columns in arguments]
        return [block.reshape(*lead, -1, block.shape[-1]) for block in blocks]

    def forward(self, tools, scan, matrices, changes):
        """Changes of all q and v, in one row each."""
        A, B, *C = (tools.moveaxis(x, -3, 0) for x in matrices)
        dq, dv, du, *dp = changes
        lead = A.shape[1:-2]
        start = tools.concatenate([tools.zeros_like(A[0, ..., :self.nq, 0]) if dq is None else dq,
                                   tools.zeros_like(A[0, ..., self.nq:, 0]) if dv is None else dv], -1)[..., None]
        if du is None:
            pushed = tools.zeros_like(A[..., :1])
        else:
            pushed = B @ tools.moveaxis(du.reshape(*lead, self.steps, self.nu), -2, 0)[..., None]

        if C and dp[0] is not None:
            pushed = pushed + C[0] @ dp[0][..., None]

        def step(x, at):
            A, pushed = at
            x = A @ x + pushed
            return x, x

        rows = tools.concatenate([start[None], scan(step, start, (A, pushed))[1]])[..., 0]
        rows = tools.moveaxis(rows, 0, -2)
        return [rows[..., :self.nq].reshape(*lead, -1), rows[..., self.nq:].reshape(*lead, -1)]

    def reverse(self, tools, scan, matrices, gradients):
        """Gradients by q, v and u, from the gradients by all q and v."""
        lead = matrices[0].shape[:-3]
        rows = tools.concatenate([y.reshape(*lead, self.steps + 1, -1) for y in gradients], -1)[..., None]
        A, B, *C, y = (tools.flip(tools.moveaxis(x, -3, 0), (0,)) for x in (*matrices, rows))

        def step(gradient, at):
            transposed, y = at
            return transposed @ gradient + y, gradient

        start, later = scan(step, y[0], (tools.swapaxes(A, -1, -2), y[1:]))
        du = tools.moveaxis(tools.flip((tools.swapaxes(B, -1, -2) @ later)[..., 0], (0,)), 0, -2)
        dp = [(tools.swapaxes(x, -1, -2) @ later)[..., 0].sum(0) for x in C]
        return [start[..., :self.nq, 0], start[..., self.nq:, 0], du.reshape(*lead, -1), *dp]
