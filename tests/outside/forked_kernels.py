"""Kernels of Jupyter that are forked from one process, which has imported what all pages do: most of what they cost.

The environment of `forked_kernels` has Jupyter start `forked_kernels.py ADDRESS -f FILE ...` for a kernel named
``python3``. That small program asks the process behind the socket ADDRESS for a fork, which takes over its folder and
environment and is a kernel with the other arguments and nothing from kernels before it; and it ends when the fork does.
"""
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path


def ask(address, arguments):
    """Wait until the kernel has ended; if this process ends first, so does the kernel."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # which Jupyter sends before it shuts a kernel down
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(address)
        server.sendall(json.dumps([arguments, os.getcwd(), dict(os.environ)]).encode() + b"\n")
        server.recv(1)


def prepare():
    """What nearly all pages import and call; no thread may run when this process forks."""
    import matplotlib.pyplot  # noqa: F401
    import scipy.optimize  # noqa: F401
    from ipykernel import ipkernel, kernelapp  # noqa: F401

    import liedyn as ld

    robot = ld.load("five_bar")
    rest = [0.0] * robot.nv
    ld.linearize(robot, robot.home, rest, rest)
    ld.simulate(robot, robot.home, rest, 0.01, progress=False)


def serve(address):
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(address)
        server.listen()
        prepare()
        print("ready", flush=True)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # nobody reads on
        while True:
            asking, _ = server.accept()
            if os.fork() == 0:
                break
            asking.close()
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
    with asking.makefile() as lines:
        arguments, folder, environment = json.loads(lines.readline())
    become(arguments, folder, environment, asking)


def become(arguments, folder, environment, asking):
    def end_with_who_asked():
        asking.recv(1)
        os._exit(1)

    from ipykernel import kernelapp

    threading.Thread(target=end_with_who_asked, daemon=True).start()
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[0] = ""
    quiet = ["--log-level=40", f"--IPKernelApp.parent_handle={os.getppid()}"]
    kernelapp.launch_new_instance(argv=[*arguments, *quiet])
    os._exit(0)


@contextlib.contextmanager
def forked_kernels(**environment):
    """Environment of a program whose kernels are forks of a process that lives as long as the context."""
    environment = os.environ | environment
    if not hasattr(os, "fork"):
        yield environment
        return
    with tempfile.TemporaryDirectory() as folder:  # with a short name, as addresses have to be
        address, spec = f"{folder}/socket", Path(folder, "kernels", "python3")
        spec.mkdir(parents=True)
        (spec / "kernel.json").write_text(json.dumps({
            "argv": [sys.executable, "-S", "-E", __file__, address, "-f", "{connection_file}"],
            "display_name": "Python 3", "language": "python"}))
        backend = {"MPLBACKEND": "module://matplotlib_inline.backend_inline"}
        with subprocess.Popen([sys.executable, __file__, address], env=environment | backend, text=True,
                              stdout=subprocess.PIPE) as server:
            try:
                assert server.stdout.readline() == "ready\n"
                yield environment | {"JUPYTER_PATH": folder}
            finally:
                server.kill()


if __name__ == "__main__":
    serve(sys.argv[1]) if len(sys.argv) == 2 else ask(sys.argv[1], sys.argv[2:])
