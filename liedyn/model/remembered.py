"""What is worked out once for a robot and kept with it."""
import functools


def remembered(function):
    """Decorator: what a function of a robot returns is kept in `robot.memo`, by its name and its other arguments."""
    @functools.wraps(function)
    def look_up(robot, *arguments):
        key = function.__qualname__, *arguments
        if key not in robot.memo:
            robot.memo[key] = function(robot, *arguments)
        return robot.memo[key]

    return look_up
