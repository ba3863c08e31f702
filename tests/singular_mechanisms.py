"""Mechanisms that lie on one line, and constraints that contradict each other."""
from dataclasses import replace

from tree_cases import bundled

from liedyn.model import Builder
from liedyn.model.build import build


def rods(builder, *rods, kind="revolute"):
    """Bodies in a row from the origin of the ground, each (name, length), lying along x at zero."""
    parent, at = "ground", 0.0
    for name, length in rods:
        builder.body(name, 1.0, (length / 2, 0.0, 0.0), (1e-3, length ** 2 / 12, length ** 2 / 12))
        builder.joint(name, kind, parent, name, (at, 0.0, 0.0))
        parent, at = name, length
    return parent, at


def vertical_slider_crank(cut="inline"):
    """Crank of 1 m and rod of 2 m; the slider moves along y: at zero all lies along x, out of the slider's reach.

    `cut` is "inline" (the tip of the rod stays on the line), or "revolute" (a pin on a sliding block).
    """
    builder = Builder("vertical slider-crank", gravity=(0.0, -9.81, 0.0))
    tip, length = rods(builder, ("crank", 1.0), ("rod", 2.0))
    if cut == "inline":
        builder.loop("guide", "inline", "ground", tip, child_placement=(length, 0.0, 0.0), axis=(0.0, 1.0, 0.0))
        builder.constraint("plane", "on_plane", "ground", tip, child_placement=(length, 0.0, 0.0), axis=(0.0, 0.0, 1.0))
    else:
        builder.body("slider", 0.5, inertia=(1e-3, 1e-3, 1e-3))
        builder.joint("slider", "prismatic", "ground", "slider", axis=(0.0, 1.0, 0.0))
        builder.loop("pin", cut, "slider", tip, child_placement=(length, 0.0, 0.0))
    return builder.build()


def linkage(*lengths, base, cut="revolute", name="linkage"):
    """Rods l1, l2, ... in a row from the origin, the tip of the last one pinned to the ground at (base, 0)."""
    builder = Builder(name, gravity=(0.0, -9.81, 0.0))
    tip, length = rods(builder, *((f"l{k + 1}", length) for k, length in enumerate(lengths)))
    builder.loop("pin", cut, "ground", tip, parent_placement=(base, 0.0, 0.0), child_placement=(length, 0.0, 0.0))
    return builder


def double_four_bar(home=0.0):
    """The bundled four_bars (A02 of the IFToMM benchmark) with another home: V at this angle, H level."""
    model = bundled("four_bars").model
    return build(replace(model, home={name: home if name[0] == "V" else -home for name in model.home}))
