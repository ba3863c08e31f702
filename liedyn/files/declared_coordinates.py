"""Independent coordinates that a file declares, looked at as it is read."""
from liedyn.machine.by_name import by_name


def fitting(robot, file):
    """The robot of a file, without the independent coordinates that it declares where they do not fit its
    constraints."""
    # only robots that declare some need what it takes to find out, which is compiled and in a room above this one
    if not robot.independent:
        return robot
    return by_name("liedyn.mechanics.constraints.declared_independent:fitting")(robot, file)
