"""Derivatives of closure residuals by configurations, of loops that are open: against differences."""
import numpy as np
import pytest
from closed_chains import difference

import liedyn as ld
from liedyn.machine.compiled.jit import kernel
from liedyn.machine.simd.lanes import SCALAR
from liedyn.mechanics.constraints.families.cut import cut_residual_kernel
from liedyn.mechanics.tree.kinematics import world_positions, world_size

AXES = {"revolute": 1, "prismatic": 1, "helical": 1, "cylindrical": 1, "universal": 2, "planar": 1, "spherical": 0,
        "translational": 0, "inline": 1, "fixed": 0}


@kernel
def residual_slopes(model, q, g_q):
    work = np.empty(world_size(model))
    world_positions(SCALAR, model, q, work)
    cut_residual_kernel(model, work, g_q)


@pytest.mark.parametrize("kind", AXES)
def test_of_open_loops(kind):
    rng, b = np.random.default_rng(3), ld.Builder("open")
    b.body("first", mass=1.0)
    b.body("second", mass=1.0)
    b.joint("a", "free", "ground", "first")
    b.joint("b", "free", "first", "second")
    axes = dict(zip(("axis", "axis2"), [(0.6, 0.0, 0.8), (0.0, 1.0, 0.0)][:AXES[kind]]))
    if kind == "helical":
        axes["pitch"] = 0.3
    b.loop("cut", kind, "ground", "second", parent_placement=ld.placement((0.1, 0.2, 0.3), rpy=(0.1, 0.2, 0.3)),
           child_placement=ld.placement((0.3, -0.1, 0.2), rpy=(-0.2, 0.1, 0.3)), **axes)
    robot = b.build()
    q = ld.integrate(robot, ld.neutral(robot), 0.3 * rng.normal(size=12))
    found, g = np.zeros((len(robot.row_names), 12)), ld.closure_error(robot, q)
    residual_slopes(robot.packed, q, found)
    assert np.abs(g).max() > 0.1
    wanted = np.transpose([difference(
        lambda e, d=d: ld.closure_error(robot, ld.integrate(robot, q, e * d)), 1e-3) for d in np.eye(12)])
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-10)
