"""The command line, run in this process; that it is installed as `liedyn` is the business of the README's commands."""

import contextlib
import importlib
import inspect
import os
import pkgutil
import re
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from conftest import WARMED, WARMED_AT
from mechanisms import held
from numba.core.registry import CPUDispatcher
from processes import KEPT, python

import liedyn as ld
from liedyn.look.cli import main
from liedyn.look.cli.linearize_command import central_differences
from liedyn.look.cli.shared_calls import dealt
from liedyn.machine.cache import cache_files as files
from liedyn.machine.compiled import jit
from liedyn.model.calls.recursion import RECURSIONS

JOB = "linearize loader --independent boom bucket --velocity boom=0.4 bucket=-0.3"


def run(capsys, command):
    """Status, standard output and standard error of a command."""
    try:
        status = main(command.split())
    except SystemExit as stop:
        status = stop.code
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_python_m_liedyn_is_the_command():
    run = subprocess.run([sys.executable, "-m", "liedyn", "list"], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0 and "five_bar" in run.stdout


def test_list_names_every_bundled_robot(capsys):
    status, out, err = run(capsys, "list")
    assert (status, err) == (0, "")
    assert [line.split()[0] for line in out.splitlines()] == ld.bundled()


def test_info(capsys):
    status, out, err = run(capsys, "info loader")
    assert (status, err) == (0, "")
    for text in ("boom -> bucket", "lift_pin", "virtual: tilt_pin", "rank of the rows:             6",
                 "degrees of freedom:           2", "link_pin.wx", "on lift_rod"):
        assert text in out
    loader = ld.load("loader")
    assert loader.info() + "\n" == out and repr(loader.info()) == loader.info()  # the prompt shows it as it is


@pytest.mark.parametrize("name", ld.bundled())
def test_info_of_every_robot(capsys, name):
    status, out, err = run(capsys, f"info {name}")
    assert (status, err) == (0, "")
    assert "degrees of freedom:" in out


def test_the_main_job(capsys, tmp_path):
    npz, png = tmp_path / "loader.npz", tmp_path / "loader.png"
    status, out, err = run(capsys, f"{JOB} --check --save {npz} --plot {png}")
    assert (status, err) == (0, "")
    loader = ld.load("loader")
    v = ld.complete_velocity(loader, loader.home, {"boom": 0.4, "bucket": -0.3})
    ss = ld.linearize(loader, loader.home, v, 0 * v, independent=("boom", "bucket"))
    saved = np.load(npz)
    np.testing.assert_allclose(saved["A"], ss.A, rtol=1e-9)
    np.testing.assert_allclose(saved["B"], ss.B, rtol=1e-9)
    assert list(saved["states"]) == ["boom", "bucket", "velocity:boom", "velocity:bucket"]
    assert png.read_bytes().startswith(b"\x89PNG")
    for heading in ("\nA\n", "\nB\n", "eigenvalues", "closure residual", "time, exact", "time, central differences"):
        assert heading in out
    assert f"{ss.A[2, 0]:.8g}" in out
    assert float(re.search(r"largest difference.*: (\S+)", out)[1]) < 1e-9


@pytest.mark.parametrize("options", [
    "loader", "loader --independent tangent --velocity boom=1", "loader --independent auto --at boom=0.1",
    "loader --independent link_pin tilt_rod --velocity link_pin=0.4", "stewart --velocity leg1=0.1",
    "stewart --independent platform --velocity platform.rx=1 platform.y=0.4", "panda --at panda_joint4=-1",
    "cassie_like", "solo12",
])
def test_linearize_agrees_with_differences(capsys, options):
    status, out, err = run(capsys, f"linearize {options} --check")
    assert (status, err) == (0, "")
    assert float(re.search(r"largest difference.*: (\S+)", out)[1]) < 1e-6


@pytest.mark.parametrize("command, freedom", [
    ("whipple_bicycle --velocity lean=0.1 steer=-0.1 rear_wheel=-16.7", "3 degrees of freedom (7 of positions)"),
    ("whipple_bicycle --independent tangent", "3 degrees of freedom (7 of positions)"),
    ("shopping_cart --velocity cart.x=1 cart.angle=0.3", "2 degrees of freedom (4 of positions)"),
    ("rolling_spheres", "3 degrees of freedom (5 of positions)"),
])
def test_the_check_of_rolling_robots(capsys, command, freedom):
    """They have fewer independent velocities than coordinates."""
    status, out, err = run(capsys, f"linearize {command} --check")
    assert (status, err) == (0, "") and out.splitlines()[0].endswith(freedom)
    # error of order 4 with steps of 1e-3, as above
    assert float(re.search(r"largest difference.*: (\S+)", out)[1]) < 1e-8


def test_the_check_sees_a_wrong_matrix():
    """The witness is independent of the accused: it takes nothing from A."""
    robot = ld.load("five_bar")
    rest = np.zeros(robot.nv)
    ss = ld.linearize(robot, robot.home, rest, rest)
    A = ss.A.copy()
    ss.A[:] = 7.0
    np.testing.assert_allclose(central_differences(robot, ss, ss.states[:2])[0], A, atol=1e-8 * np.abs(A).max())


def test_generate_writes_c(capsys, tmp_path):
    command = f"generate four_bar --c {tmp_path / 'firmware'} --functions rnea close --dtype float"
    status, out, err = run(capsys, command)
    assert (status, err) == (0, "")
    assert out.split() == [str(tmp_path / "firmware" / name)
                           for name in ("four_bar.h", "four_bar.c", "main.c", "CMakeLists.txt")]
    assert "int four_bar_close(const four_bar_real guess[3]" in (tmp_path / "firmware" / "four_bar.h").read_text()


@pytest.mark.parametrize("command, status, said", [
    ("generate four_bar", 2, "--c"), ("generate four_bar --c /proc/none/x", 1, "/proc/none"),
    ("generate four_bar --c x --functions solve", 1, "'solve'"), ("generate four_bar --c x --dtype int", 1, "'int'"),
    ("info lodaer", 1, "'loader'"),
    ("info nothing.toml", 1, "nothing.toml"),
    ("linearize loader --independent boom", 1, "2 degrees of freedom"),
    ("linearize loader --independent boom buckett", 1, "'bucket'"),
    ("linearize loader --at bom=0.1", 1, "'boom'"),
    ("linearize loader --at boom=nan", 1, "boom"),
    ("linearize four_bar --at crank=0.3 rocker=0.3", 1, "loop 'pin'"),
    ("linearize loader --velocity link=1", 1, "--velocity link"),
    ("linearize loader --save /no/such/folder/x.npz", 1, "/no/such/folder/x.npz"),
    ("linearize loader --plot /no/such/folder/x.png", 1, "/no/such/folder/x.png"),
    ("linearize loader --at boom=1e200", 1, "boom is too large"),
    ("linearize loader --velocity boom=1e200", 1, "velocity of 'boom' is too large"),
    ("linearize loader --velocity boom=nan", 1, "velocity of 'boom' is not finite"),
    ("linearize loader --guess boom=inf", 1, "q is not finite"),
    ("linearize loader --plot x.unknown", 1, "x.unknown"),
    ("warmup --jobs -1", 2, "--jobs: '-1' is not a whole number above zero"),
    ("warmup --jobs 0", 2, "'0' is not a whole number above zero"),
    ("warmup --jobs 1.5", 2, "'1.5' is not a whole number above zero"),
    ("linearize loader --velocity boom", 2, "NAME=NUMBER"),
    ("linearize loader --velocity boom=fast", 2, "NAME=NUMBER"),
    ("linearize", 2, "ROBOT"),
    ("dance", 2, "dance"),
    ("", 2, "COMMAND"),
])
def test_bad_input_is_one_line(capsys, command, status, said):
    got, _, err = run(capsys, command)
    assert got == status
    assert err.startswith("liedyn: ") and err.count("\n") == 1 and err.endswith("\n"), err
    assert said in err


def test_robots_whose_home_is_singular(capsys, tmp_path):
    """A coin that lies flat stays there, as it touches its plane; a bob in the centre of its sphere is moved aside."""
    coin, bob = tmp_path / "coin.toml", tmp_path / "bob.toml"
    ld.save_toml(held("disk_on_plane", "free", radius=1.0, child_axis=(0.0, 0.0, 1.0)), coin)
    ld.save_toml(held("distance", length=1.0), bob)
    status, out, err = run(capsys, f"info {coin}")
    assert (status, err) == (0, "") and "mobility:                     unknown, constraint 'held'" in out
    status, _, err = run(capsys, f"linearize {coin}")
    assert status == 1 and err.count("\n") == 1 and "its disk lies flat" in err
    status, out, err = run(capsys, f"info {bob}")
    assert (status, err) == (0, "") and "degrees of freedom:           2" in out
    status, out, err = run(capsys, f"linearize {bob} --check")
    assert (status, err) == (0, "")


def test_save_says_what_it_wrote(capsys, tmp_path):
    status, out, err = run(capsys, f"linearize five_bar --save {tmp_path / 'arm.v2'}")
    assert (status, err) == (0, "")
    (file,) = tmp_path.iterdir()
    assert out.endswith(f"system written to {file}\n") and file.name == "arm.v2.npz"
    assert np.load(file)["A"].shape == (4, 4)


def test_interrupted(capsys, monkeypatch):
    def interrupted(source):
        raise KeyboardInterrupt

    monkeypatch.setattr("liedyn.look.cli.info.print_info", interrupted)
    assert run(capsys, "info panda") == (130, "", "liedyn: interrupted\n")


@pytest.mark.parametrize("command", ["list", "--help"])
def test_whoever_reads_may_stop(command):
    """The reading end of the pipe is closed before anything is written."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        code = f"import sys; from liedyn.look.cli import main; sys.exit(main([{command!r}]))"
        done = subprocess.run(
            [sys.executable, "-c", code], stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")


def test_picture_in_space(capsys, tmp_path):
    png = tmp_path / "stewart.png"
    status, out, err = run(capsys, f"linearize stewart --plot {png}")
    assert (status, err) == (0, "") and str(png) in out
    assert png.read_bytes().startswith(b"\x89PNG")


def test_no_matplotlib(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    status, _, err = run(capsys, "linearize five_bar --plot x.png")
    assert status == 1 and err == "liedyn: plotting needs matplotlib: pip install 'liedyn[plot]'\n"


def kernels_in(function, seen):
    """Add to `seen` the compiled functions that a function names, and those that they name."""
    code, given = function.__code__, inspect.getclosurevars(function)
    named = [*given.globals.values(), *given.nonlocals.values()]
    named += [getattr(each, name, None) for each in named if inspect.ismodule(each) for name in code.co_names]
    for each in named:
        if isinstance(each, CPUDispatcher) and each not in seen:
            seen.add(each)
            kernels_in(each.py_func, seen)


def test_warmup_reaches_every_kernel(capsys):
    """After it all its calls come from the cache, and every kernel is there: on its own, or in one that calls it."""
    out = os.environ.get(WARMED, "")
    for _ in range(2):
        if not out.startswith("0 kernels compiled"):
            status, out, _ = run(capsys, "warmup")
            assert status == 0
    assert out.startswith("0 kernels compiled, ")
    for module in pkgutil.walk_packages(ld.__path__, "liedyn."):
        with contextlib.suppress(ld.LiedynError):  # of an extra that is not installed, as `liedyn.torch`
            importlib.import_module(module.name)
    for declared in RECURSIONS.values():
        declared.write()
    ended = float(os.environ.get(WARMED_AT, "inf"))
    cached = {file.name.rpartition(".cpython")[0] for folder in files.directories() for file in folder.glob("*.nbc")
              if file.stat().st_mtime <= ended}
    found = {kernel for kernel in jit.KERNELS if kernel._cache.name.rpartition(".cpython")[0] in cached}
    assert len(found) > 100
    for kernel in list(found):
        kernels_in(kernel.py_func, found)
    assert not [kernel for kernel in jit.KERNELS if kernel not in found]


def test_warmup_lists_its_calls_without_making_one():
    """The list is made in every process, also in the one that only waits for others."""
    rooms = python("""
from liedyn.look.cli.warmup import calls
from liedyn.machine.compiled import jit
assert len(list(calls())) > 150
used = [k for k in jit.KERNELS if sum(k.stats.cache_hits.values()) + sum(k.stats.cache_misses.values())]
print(*{k.py_func.__module__.split(".")[1] for k in used})
""", **KEPT)
    assert set(rooms) <= {"lie", "machine", "mechanics", "model"}


def test_processes_get_neighbouring_calls():
    """Each begins with a part of its own; all calls are made, each once."""
    for count, first in ((20, {0, 6, 13}), (2, {0, 1}), (0, set())):
        pools, made = [ThreadPoolExecutor(1) for _ in range(3)], {}

        def call(k, made=made):
            made.setdefault(threading.get_ident(), []).append(k)
            return k

        assert sorted(dealt(count, pools, call)) == list(range(count))
        assert {calls[0] for calls in made.values()} == first
        for pool in pools:
            pool.shutdown()


def test_warmup_without_a_cache(capsys, monkeypatch):
    monkeypatch.setattr("liedyn.look.cli.warmup.cache_directory", lambda: None)
    status, out, err = run(capsys, "warmup")
    assert status == 1 and err.count("\n") == 1 and "LIEDYN_CACHE" in err


def test_a_guess_chooses_the_branch(capsys):
    """A five-bar whose cranks are held has two assemblies."""
    held = "--at q1=1.2 q2=-0.3"
    found = []
    for guess in ("", "--guess q3=2 q4=-2"):
        status, out, err = run(capsys, f"linearize five_bar --independent q1 q2 {held} {guess}")
        assert (status, err) == (0, "")
        found.append(float(re.search(r"q3 +(\S+)", out)[1]))
    robot = ld.load("five_bar")
    start = [*robot.home[:2], 2.0, -2.0]
    expected = [ld.close(robot, q, q1=1.2, q2=-0.3)[2] for q in (robot.home, start)]
    assert abs(expected[0] - expected[1]) > 0.5
    np.testing.assert_allclose(found, expected, rtol=1e-7)
    status, out, err = run(capsys, "linearize five_bar --guess q33=2")
    assert status == 1 and "--guess q33" in err and "did you mean" in err and err.count("\n") == 1


def test_view_writes_a_page(capsys, tmp_path):
    pytest.importorskip("viser")
    robot = ld.load("five_bar")
    run_file = ld.simulate(robot, robot.home, [0.0] * 4, 0.05).save(tmp_path / "run.npz")
    for more in ("", f" --run {run_file}"):
        page = tmp_path / "a.html"
        status, out, err = run(capsys, f"view five_bar --html {page}{more}")
        assert (status, err) == (0, "") and out == f"written: {page}\n" and page.exists()
        page.unlink()


def test_view_serves_until_it_is_interrupted(capsys, monkeypatch):
    pytest.importorskip("viser")

    def interrupted(page):
        raise KeyboardInterrupt
    monkeypatch.setattr("liedyn.look.viewer.page.Page.wait", interrupted)
    status, out, err = run(capsys, "view five_bar --modes --port 18070")
    assert (status, err) == (0, "") and "http://127.0.0.1:180" in out and "Modes(4 of 4 states" in out
