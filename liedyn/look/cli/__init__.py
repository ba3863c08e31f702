"""The command line: ``liedyn list``, ``info``, ``linearize``, ``generate``, ``view`` and ``warmup``.

Bad input, and Ctrl-C, end with a non-zero status and one line on stderr, never with a traceback. A reader that closes
the standard output early (head, for instance) is no error.
"""
import argparse
import os
import signal
import sys
import warnings

from liedyn.machine.errors import LiedynError
from liedyn.machine.texts import printable


class _Parser(argparse.ArgumentParser):
    def error(self, message):
        self.exit(2, f"liedyn: {printable(message)} (see {self.prog} --help)\n")


def _parser():
    parser = _Parser(prog="liedyn", description="Exact dynamics and exact state-space models of robot mechanisms.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    robot = {"metavar": "ROBOT", "help": "a bundled name (see liedyn list), or a .toml or .urdf file"}

    commands.add_parser("list", help="the bundled robots")

    info = commands.add_parser("info", help="bodies, joints, loops, degrees of freedom, redundant rows")
    info.add_argument("robot", **robot)

    linear = commands.add_parser("linearize", help="the state-space model about a state")
    linear.add_argument("robot", **robot)
    linear.add_argument("--independent", nargs="+", metavar="NAME",
                        help="independent coordinates, or auto, or tangent; default: those of the robot, else auto")
    linear.add_argument("--at", nargs="+", default=[], type=_assignment, metavar="NAME=VALUE",
                        help="coordinates to hold while the loops are closed [rad, m]; default: the home configuration")
    linear.add_argument("--guess", nargs="+", default=[], type=_assignment, metavar="NAME=VALUE",
                        help="where the search for closed loops begins [rad, m]: on the branch that is wanted; "
                             "default: the home configuration")
    linear.add_argument("--velocity", nargs="+", default=[], type=_assignment, metavar="NAME=VALUE",
                        help="velocities of independent coordinates [rad/s, m/s]; default: at rest")
    linear.add_argument("--check", action="store_true", help="compare with central differences")
    linear.add_argument("--save", metavar="FILE.npz", help="write the system")
    linear.add_argument("--plot", metavar="FILE.png", help="write a picture of the mechanism and its poles")

    generate = commands.add_parser("generate", help="the robot's dynamics as C99, for microcontrollers too")
    generate.add_argument("robot", **robot)
    generate.add_argument("--c", metavar="FOLDER", required=True, help="where header, source and example are written")
    generate.add_argument("--functions", nargs="+", metavar="NAME",
                          help="default: rnea forward_dynamics linearize close step")
    generate.add_argument("--dtype", default="double", metavar="TYPE", help="double (the default) or float")

    view = commands.add_parser("view", help="the robot on a page in the browser, to be moved and switched")
    view.add_argument("robot", **robot)
    view.add_argument("--run", metavar="FILE.npz", help="a trajectory to play, as Trajectory.save writes it")
    view.add_argument("--modes", action="store_true", help="animate the modes of the linear model about home")
    view.add_argument("--html", metavar="FILE.html", help="write a page that needs no server, and end")
    view.add_argument("--port", type=_count, default=8080, metavar="N", help="default: 8080, or the next free one")

    warmup = commands.add_parser("warmup", help="compile all kernels into the cache")
    warmup.add_argument("--jobs", type=_count, metavar="N", help="processes; default: one for each core")
    return parser


def _assignment(text):
    name, equals, value = text.partition("=")
    try:
        if not (name and equals):
            raise ValueError
        return name, float(value)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=NUMBER") from None


def _count(text):
    if not (text.isdecimal() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above zero")
    return int(text)


def _show_warning(message, category, filename, lineno, file=None, line=None):
    if issubclass(category, UserWarning):
        print(f"liedyn: warning: {_one_line(message)}", file=sys.stderr)


def _one_line(message):
    return printable(" ".join(str(message).split()))


def _failed(error, status=1):
    print(f"liedyn: {_one_line(error)}", file=sys.stderr)
    return status


def _flush():
    if sys.stdout is not None:  # None if it was closed from the beginning
        sys.stdout.flush()


def _forget_output():
    """Discards output that cannot be written, so that the interpreter does not try again at its end."""
    try:
        _flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(arguments):
    # imported here: `liedyn --help` needs no compiler
    if arguments.command in ("list", "info"):
        from liedyn.look.cli.info import print_info, print_list
        return print_list() if arguments.command == "list" else print_info(arguments.robot)
    if arguments.command == "warmup":
        from liedyn.look.cli.warmup import warmup
        return warmup(arguments.jobs)
    if arguments.command == "generate":
        from liedyn.look.cli.generate_command import generate
        return generate(arguments)
    if arguments.command == "view":
        from liedyn.look.cli.view import view
        return view(arguments)
    from liedyn.look.cli.linearize_command import linearize
    from liedyn.machine.compiled.compile_progress import notice
    notice.counts = True
    try:
        return linearize(arguments)
    finally:
        notice.end_line()


def main(argv=None):
    """Run one command.

    Parameters
    ----------
    argv : list of str, optional
        Arguments; by default those of the process.

    Returns
    -------
    status : int
        0 on success, 1 on failure, 130 after Ctrl-C; bad usage exits with 2.

    Examples
    --------
    >>> main(["info", "nonexistent"])
    1
    """
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning
        try:
            try:
                _run(_parser().parse_args(argv))
            finally:  # after --help too
                _flush()
        except BrokenPipeError:
            _forget_output()
        except KeyboardInterrupt:
            return _failed("interrupted", 128 + signal.SIGINT)
        except LiedynError as error:
            return _failed(error)
        except OSError as error:
            _forget_output()
            return _failed(f"{error.filename}: {error.strerror}" if error.filename else error.strerror or error)
    return 0
