"""Trees on which the recursions are tested, and how far apart two results are."""

from pathlib import Path

import numpy as np
from comparison import relative as off  # noqa: F401
from mechanisms import MOVING_KINDS, random_tree
from test_energy import STENCIL, springy_tree

from liedyn.files import load_toml
from liedyn.model import Builder

STEP = 0.01


def mixed_tree(seed=7):
    """Three joints of each kind, fixed ones too, in random order on random parents: bodies share links."""
    rng = np.random.default_rng(seed)
    kinds = rng.permutation(MOVING_KINDS * 3 + ["fixed"] * 3)
    return random_tree(rng, kinds, gravity=(0.5, -1.0, -9.81)).build()


TREES = {
    "springs": lambda: springy_tree(1),
    "floating, springs": lambda: springy_tree(2, first="free"),
    "mixed": mixed_tree,
    "panda": lambda: bundled("panda"),
    "ur5": lambda: bundled("ur5"),
    "solo12": lambda: bundled("solo12"),
    "talos": lambda: bundled("talos"),
}


def bundled(name):
    """A robot of this repository, installed or not."""
    return load_toml(Path(__file__).parents[1] / "robots" / f"{name}.toml")


def chain(count, kind="revolute", seed=3, placement=(0.1, 0.0, 0.0), **options):
    """Bodies in a row, axes at random."""
    rng = np.random.default_rng(seed)
    builder = Builder("chain")
    parent = "ground"
    for k in range(count):
        axis = {"axis": rng.normal(size=3)} if kind not in ("spherical", "free") else {}
        builder.body(f"body{k}", 1.0, (0.05, 0.0, 0.0), (1e-3, 2e-3, 2e-3))
        builder.joint(f"joint{k}", kind, parent, f"body{k}", placement, **axis, **options)
        parent = f"body{k}"
    return builder.build()


def wrenches(robot, rng, every=2):
    """A wrench on every second body, by name."""
    return {name: 10.0 * rng.normal(size=6) for name in robot.body_names[::every]}


def rate(function):
    """d function / dt at t = 0 by central differences of order 8: error h^8 f^(9) / 630 and EPS |f| / h."""
    return sum(c * (function(k * STEP) - function(-k * STEP)) for k, c in STENCIL.items()) / STEP


def gradient(function, size):
    """Columns d function / d x_k at x = 0, as the last axis."""
    return np.stack([rate(lambda t, e=e: function(t * e)) for e in np.eye(size)], axis=-1)
