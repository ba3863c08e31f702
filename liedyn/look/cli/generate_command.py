"""``liedyn generate``: a robot's dynamics as C."""
import liedyn as ld
from liedyn.machine.texts import printable


def generate(arguments):
    """Write the files, and print their names."""
    options = {"functions": tuple(arguments.functions)} if arguments.functions else {}
    for file in ld.generate_c(ld.load(arguments.robot), arguments.c, dtype=arguments.dtype, **options):
        print(printable(file))
