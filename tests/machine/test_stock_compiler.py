"""Numba's own way of compiling, beside that of `liedyn.machine.compiled.translation`, which knows few versions."""
import os
import re
import tomllib
from pathlib import Path

import numba
import numpy as np
from processes import ROOT, process

from liedyn.machine.compiled import translation

PROGRAM = """
import numba
if {stock}:
    numba.version_info = (9, 99)
import numpy as np
import liedyn as ld
from liedyn.machine.compiled import translation
assert translation.IS_KNOWN != {stock}
robot = ld.load("solo12")
q, v = ld.random_configuration(robot, 0, 5), np.linspace(-1.0, 1.0, 5 * robot.nv).reshape(5, robot.nv)
rnea, work = ld.kernels.rnea, ld.kernels.workspace(robot)

@numba.njit
def power(model, q, v, work, tau):
    rnea(ld.kernels.SCALAR, model, q, v, v, np.empty(0), work, tau)
    return tau @ v

print(*ld.center_of_mass(robot, q).ravel().tolist(), power(robot.packed, q[0], v[0], work, np.empty(robot.nv)))
"""


def test_the_same_numbers():
    """Rows in registers, and one state in a user's own function."""
    caches = Path(os.environ.get("LIEDYN_CACHE_DIR") or ROOT / ".pytest_cache")
    found = [np.array(process(PROGRAM.format(stock=stock), LIEDYN_CACHE_DIR=str(folder)).stdout.split(), float)
             for stock, folder in ((False, caches), (True, caches / "stock"))]
    assert len(found[0]) == 5 * 3 + 1
    np.testing.assert_allclose(*found, rtol=1e-12, atol=1e-12)


def test_versions_of_numba_that_may_be_installed_are_known():
    """Each release from the lowest to the last one that pyproject.toml allows, and no later one."""
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    allowed = next(each for each in listed if each.startswith("numba"))
    low, high = re.fullmatch(r"numba>=0\.(\d+),<0\.(\d+)", allowed).groups()
    assert {(0, minor) for minor in range(int(low), int(high))} == translation.KNOWN
    assert numba.version_info[:2] in translation.KNOWN
