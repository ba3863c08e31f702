"""C of a delta robot, compiled by CMake; FMU of a loader."""
import subprocess
import tempfile

import liedyn as ld

with tempfile.TemporaryDirectory() as folder:
    delta = ld.load("delta")
    ld.generate_c(delta, f"{folder}/c", functions=("forward_dynamics",), at=delta.home)
    subprocess.run("cmake -B build && cmake --build build", shell=True, cwd=f"{folder}/c", check=True,
                   capture_output=True)
    print(ld.export_fmu(ld.load("loader"), f"{folder}/loader.fmu", outputs=["boom"]))
