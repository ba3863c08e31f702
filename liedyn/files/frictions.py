"""Dry friction of joints in robot files, as optional force elements."""
from liedyn.machine.arguments import positive


def require_width(function, width):
    """InputError if `width`, the rate below which friction is smooth, is neither None nor a positive number."""
    if width is not None:
        positive(f"{function}, friction", width)


def add_friction(builder, forces, width):
    """Force elements for dry friction by coordinate; the builder refuses invalid values."""
    for coordinate, force in forces.items():
        builder.friction(f"{coordinate} friction", coordinate, coulomb=force, width=width)
