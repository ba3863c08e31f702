"""A process in which Numba is ready to compile, and nothing of liedyn is there; it forks for each line of its input.

A line is a job in JSON: code, folder, environment, and files for what it prints. The fork does the job, as a fresh
process would; the answer is a line with the status at its end. See `processes`.
"""
import json
import os
import sys

import numba
import numpy as np
import scipy.linalg.cython_blas  # noqa: F401  Numba looks for it when it first compiles


def job():
    """The job of this process; the first process returns from here only to end."""
    for line in sys.stdin:
        child = os.fork()
        if not child:
            return json.loads(line)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
    sys.exit()


def become(folder, environment, files):
    """All that this process has in common with the first one, but for modules, is exchanged."""
    for number, (name, mode) in enumerate(zip(files, (os.O_RDONLY, os.O_WRONLY, os.O_WRONLY))):
        file = os.open(name, mode)
        os.dup2(file, number)
        os.close(file)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv, sys.path[:1] = ["-c"], ["", *environment["PYTHONPATH"].split(os.pathsep)]
    numba.config.reload_config()  # Numba has read its variables already


if __name__ == "__main__":
    numba.njit(lambda x: x + np.ones(2).sum())(1.0)  # the first compilation takes a second longer than others
    given = job()
    become(given["folder"], given["environment"], given["files"])
    exec(compile(given["code"], "<string>", "exec"), {"__name__": "__main__"})
