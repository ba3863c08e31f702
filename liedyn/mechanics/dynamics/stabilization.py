"""Right sides of G a = ... that reduce violations of the constraints.

    Baumgarte          g'' + 2 alpha g' + beta^2 g = 0     (Spencer 2004, eq. 3.8)
    velocity level     psi' + sigma psi = 0                (Yun and Sarkar 1998, eq. 17 and 37)

Xu and Liu 2017, eq. 52, write g'' + alpha g' + beta g = 0: their (0.5, 200) is (0.25, sqrt(200)) here. Rows without a
residual (nonholonomic ones) have g = 0 and g' = psi, and so psi' + 2 alpha psi = 0.
"""
from liedyn.machine.compiled.jit import kernel_in_place


@kernel_in_place
def baumgarte_rows(residual, psi, gamma, alpha, beta, out):
    """out = gamma - 2 alpha psi - beta^2 g."""
    for k in range(out.size):
        out[k] = gamma[k] - 2.0 * alpha * psi[k] - beta * beta * residual[k]


@kernel_in_place
def velocity_level_rows(psi, gamma, sigma, out):
    """out = gamma - sigma psi."""
    for k in range(out.size):
        out[k] = gamma[k] - sigma * psi[k]
