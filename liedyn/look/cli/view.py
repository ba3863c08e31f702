"""A robot in the browser: ``liedyn view``."""
import liedyn as ld
from liedyn.machine.texts import printable


def view(arguments):
    """Serves the page until Ctrl-C, or writes one that needs no server."""
    robot = ld.load(arguments.robot)
    run = ld.Trajectory.load(arguments.run) if arguments.run else None
    if arguments.html:
        path = ld.export_html(robot, robot.home if run is None else run, arguments.html)
        print(f"written: {printable(str(path))}")
        return
    linear = None
    if arguments.modes:
        q = ld.close(robot, robot.home)
        linear = ld.linearize(robot, q, [0.0] * robot.nv, [0.0] * robot.nv)
        print(ld.modes(linear))
    page = ld.view(robot, trajectory=run, linear=linear, port=arguments.port)
    print(f"{printable(robot.name)}: open {page.url} in a browser; Ctrl-C ends it", flush=True)
    try:
        page.wait()
    except KeyboardInterrupt:
        print()
    finally:
        page.close()
