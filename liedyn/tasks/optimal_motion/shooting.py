"""Multiple shooting: each interval is integrated from its knot, with constant inputs.

The integrator is the classical Runge-Kutta method of order four with a fixed number of steps in an interval, in the
interval's chart; derivatives are those of its own steps, stage by stage,

    k_i = f(x_i, u)        dk_i = df/dx dx_i + df/du du        x_i = x + c_i h k_i-1

so that the program's gradient is exact for the computed motion. All intervals are integrated in parallel. The
end is the next knot, expressed in the chart of the interval (Bock and Plitt 1984). Costs are integrated with the same
stages and weights. Inputs are constant in each interval, as from digital controllers, and within their limits at all
times; constraints on states are satisfied at the knots.
"""
import numpy as np

from liedyn.motion.runge_kutta import RK4, Vectors, step
from liedyn.tasks.optimal_motion.dynamics import motion_at, rates_in
from liedyn.tasks.optimal_motion.flow import flow
from liedyn.tasks.optimal_motion.samples import Blocks, Layout, Samples, node_samples


class Shooting:
    """A motion on a mesh of N intervals with `steps` steps each; attributes as in `Collocation`."""

    name = "shooting"

    def __init__(self, charts, mesh, steps):
        N = len(mesh) - 1
        self.charts, self.mesh, self.steps = charts, mesh, steps
        self.layout = Layout(N + 1, charts.sizes[1], N, len(charts.robot.actuator_names))
        self.part, self.knots = mesh, np.arange(N + 1)
        self.row, self.chart = np.minimum(np.arange(N + 1), N - 1), np.arange(N + 1)
        self._last = None

    def evaluate(self, z):
        """Samples at the knots, samples of the quadrature, defects and their Jacobian, the motion at the knots."""
        layout, charts, N = self.layout, self.charts, len(self.mesh) - 1
        x, u, duration = layout.split(z)
        q, v = charts.states(self.chart, x, self._last)
        self._last = q
        motion = motion_at(charts, self.chart, q, v, u[self.row])
        nodes = node_samples(layout, motion, self.part, duration, self.row, np.zeros(N + 1))

        end, S, samples = self._integrate(x[:-1], u, duration)
        after = rates_in(charts, np.arange(N), type(motion)(*(each[1:] for each in motion)))
        defects = after.x - end
        columns = np.hstack([layout.local(np.arange(N), np.arange(N)), layout.of_node(np.arange(1, N + 1))])
        blocks = Blocks(np.arange(N * layout.x).reshape(N, -1), columns, np.concatenate([-S, after.dx], axis=2))
        return nodes, samples, defects.ravel(), blocks, motion

    def _integrate(self, x, u, duration):
        """Coordinates at the ends of all intervals, their derivatives by (x, u, duration), samples of all stages."""
        layout, charts, N = self.layout, self.charts, len(self.mesh) - 1
        n, nu, chart, parts = layout.x, layout.nu, np.arange(N), np.diff(self.mesh) / self.steps
        columns, of_length = layout.local(chart, chart), np.zeros((N, 1, n + nu + 1))
        S, inputs = np.tile(np.eye(n, n + nu + 1), (N, 1, 1)), np.eye(nu, n + nu + 1, n)
        q, found = None, []
        of_length[:, 0, -1] = parts
        for done in range(self.steps):
            weights = iter(RK4[-1])

            def equations(part, change, d_stage, x=x, done=done, weights=weights):
                nonlocal q
                q, v = charts.states(chart, x + change, q)
                motion = motion_at(charts, chart, q, v, u)
                of = rates_in(charts, chart, motion)
                time, dt = self.mesh[:-1] + (done + part) * parts, np.zeros((N, n + nu + 1))
                dt[:, -1] = time
                found.append(Samples(time * duration, q, v, u, dt, motion.N @ d_stage[:, :motion.N.shape[2]],
                                     motion.X @ d_stage, np.tile(inputs, (N, 1, 1)), columns, next(weights) * parts))
                return of.f, of.df @ d_stage + of.df_du @ inputs

            change, S = step(Vectors(np.zeros((N, n))), equations, RK4, duration * parts, S, of_length)
            x = x + change
        return x, S, Samples(*(np.concatenate(each) for each in zip(*found)))

    def inside(self, z, motion, k, part):
        """Coordinates in charts k[i] and inputs at fractions of intervals k[i]: the same steps, the last shortened."""
        x, u, duration = self.layout.split(z)
        charts, h, here = self.charts, duration * np.diff(self.mesh)[k] / self.steps, x[k]
        for done in range(self.steps):
            here = flow(charts, k, here, lambda _: u[k], h * np.clip(part * self.steps - done, 0.0, 1.0), 1)[-1]
        return here, u[k]

    def inputs(self, z, k, part):
        """Inputs in intervals k[i]."""
        return self.layout.split(z)[1][k]
