"""Check of the independent coordinates that a file declares."""
from liedyn.machine.by_name import by_name


def fitting(robot, file):
    """The robot of a file; without its declared independent coordinates if these do not fit its constraints."""
    # imported only for robots that declare some: it is compiled, and in a room above this one
    if not robot.independent:
        return robot
    return by_name("liedyn.mechanics.constraints.declared_independent:fitting")(robot, file)
