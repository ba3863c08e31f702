"""Dry friction of the joints of robot files, as force elements where that is wanted."""
from liedyn.machine.arguments import positive


def require_width(function, width):
    """InputError if the rate below which friction is to be smooth is neither None nor a positive number."""
    if width is not None:
        positive(f"{function}, friction", width)


def add_friction(builder, forces, width):
    """Force elements for the forces by coordinate; what is no force is refused as the builder does."""
    for coordinate, force in forces.items():
        builder.friction(f"{coordinate} friction", coordinate, coulomb=force, width=width)
