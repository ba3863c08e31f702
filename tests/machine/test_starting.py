"""Starting: what fresh processes find in the cache, what they do without one, and what a start costs."""
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from processes import COUNT, KEPT, ROOT, interpreter, process, python

import liedyn as ld
from liedyn.machine.cache.cache_files import LOCKS
from liedyn.machine.compiled.cpu_targets import LEVELS, _level

PACKAGE = Path(ld.__file__).parent
WORK = "import liedyn as ld; robot = ld.load('ur5'); print(ld.center_of_mass(robot, robot.neutral)[2])\n"


@pytest.fixture
def small(tmp_path):
    """Code that calls a kernel of its own, and says what that returned and how many times it was compiled."""
    (tmp_path / "small.py").write_text(
        "from liedyn.machine.compiled.jit import kernel\n@kernel\ndef twice(x):\n    return 2 * x\n")
    return (f"import sys; sys.path.append({str(tmp_path)!r}); from small import twice\n"
            "print(twice(3), sum(twice.stats.cache_misses.values()))\n")


def test_import_compiles_nothing(tmp_path):
    code = ("import liedyn, liedyn.kernels; from liedyn.machine.compiled import jit\n"
            "print(len(jit.KERNELS) > 20, sum(len(k.overloads) for k in jit.KERNELS))")
    assert python(code, LIEDYN_CACHE_DIR=str(tmp_path)) == ["True", "0"]


def test_second_process_compiles_nothing(tmp_path):
    _, hits, misses = python(WORK + COUNT, LIEDYN_CACHE_DIR=str(tmp_path))
    assert int(misses) > 0
    _, hits, misses = python(WORK + COUNT, LIEDYN_CACHE_DIR=str(tmp_path))
    assert int(hits) > 0 and int(misses) == 0


def test_cache_switched_off(tmp_path):
    value, hits, misses = python(WORK + COUNT, LIEDYN_CACHE="0", LIEDYN_CACHE_DIR=str(tmp_path))
    assert float(value) and int(hits) == 0 and int(misses) > 0
    assert not any(tmp_path.iterdir())


def copied_package(tmp_path):
    home = tmp_path / "copy"
    shutil.copytree(PACKAGE, home / "liedyn", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "robots", home / "liedyn_robots", ignore=shutil.ignore_patterns("__pycache__"))
    return home


def test_a_changed_callee_makes_the_cache_stale(tmp_path):
    home = copied_package(tmp_path)
    before = float(python(WORK, home)[0])
    assert float(python(WORK, home)[0]) == before
    algebra = home / "liedyn" / "lie" / "algebra.py"
    text = algebra.read_text()
    old = "def scale(c, a):\n"
    assert text.count(old) == 1, "the helper this test changes has changed"
    algebra.write_text(text.replace(old, old + "    c = 2.0 * c\n"))
    assert float(python(WORK, home)[0]) != before


STAMPS = """
import sys, types
for name in ("liedyn", "liedyn.machine.cache"):  # without what the packages import: stamps need nothing of it
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [name.replace(".", "/")]
from liedyn.machine.cache import cache_files as files, stamps
for name in ('mechanics/tree/rnea.py', 'motion/simulation/integrators/explicit.py'):
    print(stamps.source_stamp(str(files.PACKAGE / name)))
"""


def stamps_of(home, **environment):
    """Stamps of two modules of a copied package, in an interpreter of their own."""
    return interpreter(STAMPS, home, **environment).stdout.split()


def test_what_makes_a_stamp_change(tmp_path):
    """Edits of what a module imports, at any distance, and nothing else: no docstring, no comment, no other module, no
    type of an argument."""
    home = copied_package(tmp_path)
    rnea, explicit = stamps_of(home)
    algebra, coordinates = home / "liedyn/lie/algebra.py", home / "liedyn/motion/simulation/coordinate_rates.py"
    text = algebra.read_text()
    algebra.write_text("# a comment\n" + text.replace('"""', '"""Another sentence. ', 1))
    assert stamps_of(home) == [rnea, explicit]
    coordinates.write_text(coordinates.read_text().replace("largest = 0.0", "largest = 1.0"))
    changed = stamps_of(home)
    assert changed[0] == rnea and changed[1] != explicit
    declared = home / "liedyn/mechanics/tree/rnea.py"
    typed = declared.read_text()
    found = "if TYPE_CHECKING:\n"
    declared.write_text(typed.replace("out: Array | None = None) -> Array:", "out=None) -> None:", 1).replace(
        found, found + "    from liedyn.motion.simulation.trajectory import Trajectory\n", 1))
    assert declared.read_text().count("Trajectory") == 1 and stamps_of(home) == changed
    algebra.write_text(text.replace("def scale(c, a):\n", "def scale(c, a):\n    c = 2.0 * c\n"))
    again = stamps_of(home)
    assert again[0] != rnea and again[1] not in (explicit, changed[1])


def test_what_does_not_make_a_stamp_change(tmp_path):
    """The code of the cache itself, which decides nothing about what is compiled."""
    home = copied_package(tmp_path)
    before = stamps_of(home)
    for name in ("files", "kernels", "stamps"):
        with open(home / f"liedyn/machine/cache/{name}.py", "a") as file:
            file.write("ANOTHER = 1\n")
    assert stamps_of(home) == before


def test_stamps_are_the_same_in_every_process():
    """Also where nothing is kept: the order of sets, say, is another in each process."""
    found = {tuple(stamps_of(ROOT, LIEDYN_CACHE="0", PYTHONHASHSEED=seed)) for seed in "12345"}
    assert len(found) == 1


REFUSE = """
import builtins
original = builtins.open
def refusing(name, mode="r", *arguments, **options):
    if "x" in mode and str(name).startswith({refused!r}):
        raise PermissionError(13, "Permission denied", str(name))
    return original(name, mode, *arguments, **options)
builtins.open = refusing
"""
TAIL = "from liedyn.machine.cache import cache_directory; print(cache_directory())\n"


def test_read_only_package(tmp_path, small):
    """The cache goes to the user's directory, is read there if that is read-only too, or is nowhere, which is said."""
    home, user, chosen = copied_package(tmp_path), str(tmp_path / "user"), str(tmp_path / "chosen")

    def found(refused, **environment):
        # root may write anywhere, so the directories that refuse are named here
        done = process(REFUSE.format(refused=refused) + small + TAIL, home, **environment)
        return *done.stdout.split(), done.stderr

    package = str(home / "liedyn")
    for misses in "10":
        result, compiled, where, said = found((package,), XDG_CACHE_HOME=user)
        assert (result, compiled, said) == ("6", misses, "") and where.startswith(user)
    assert found((package, user), XDG_CACHE_HOME=user) == ("6", "0", "None", "")
    *rest, said = found((chosen,), LIEDYN_CACHE_DIR=chosen)
    assert rest == ["6", "1", "None"]
    assert said.count("CacheWarning") == 1 and f"not kept on disk: not writable: {chosen}" in said


NOBODY = """
import os
try:
    import pwd
    def no_entry(uid): raise KeyError(uid)
    pwd.getpwuid = no_entry
except ImportError:
    pass
import liedyn
from liedyn.machine.cache import cache_files as files
print(len(files.directories()))
"""


def test_a_user_without_a_home(tmp_path):
    """As in containers and services: neither HOME nor an entry in the list of users."""
    nowhere = {"HOME": None, "USERPROFILE": None, "HOMEPATH": None, "XDG_CACHE_HOME": None}
    assert interpreter(NOBODY, **nowhere).stdout.split() == ["1"]
    assert python(NOBODY, **nowhere, LIEDYN_CACHE_DIR=str(tmp_path)) == ["1"]
    assert python(NOBODY, **nowhere | {"XDG_CACHE_HOME": str(tmp_path)}) == ["2"]


LIMITED = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
"""


def test_files_that_do_not_fit_are_not_kept(tmp_path, small):
    """A limit of the operating system to the size of files stands for a disk that is full."""
    pytest.importorskip("resource")
    for _ in range(2):
        done = process(LIMITED + small, LIEDYN_CACHE_DIR=str(tmp_path / "cache"))
        assert done.stdout.split() == ["6", "1"]
        assert done.stderr.count("CacheWarning") == 1 and "not kept on disk" in done.stderr
    kept = [path for path in (tmp_path / "cache").rglob("*") if path.is_file() and path.name != LOCKS]
    assert kept and all(path.suffix == ".module" for path in kept)


def test_processors_do_not_meet(tmp_path, small):
    """Code for this processor and for any of its kind side by side: neither is run for the other, nor lost."""
    kept = {"LIEDYN_CACHE_DIR": str(tmp_path / "cache")}
    for compiled in "10":
        assert python(small, **kept) == ["6", compiled]
        assert interpreter(small, **kept, NUMBA_CPU_NAME="generic").stdout.split() == ["6", compiled]


FIRST = """
from liedyn.machine.compiled import translation
finalize = translation.Library.finalize
def slow(library):
    print("compiles", flush=True)
    input()
    finalize(library)
translation.Library.finalize = slow
"""


def started(code, **environment):
    """A process that goes on while others do."""
    here = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    return subprocess.Popen([sys.executable, "-c", code], env=here, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            text=True)


@pytest.mark.parametrize("ends", ["well", "early"])
def test_two_processes_do_not_compile_the_same(tmp_path, small, ends):
    """The second one waits for what the first one compiles, unless that ends before it is done."""
    pytest.importorskip("fcntl")
    kept, (imports, call) = {"LIEDYN_CACHE_DIR": str(tmp_path / "cache")}, small.splitlines()
    first = started(FIRST + small, **kept)
    assert first.stdout.readline() == "compiles\n"
    second = started(f"{imports}\nprint('begins', flush=True)\n{call}\n", **kept)
    assert second.stdout.readline() == "begins\n"
    with pytest.raises(subprocess.TimeoutExpired):
        second.wait(3.0)
    if ends == "well":
        assert first.communicate("\n")[0] == "6 1\n"
    else:
        first.kill()
        first.communicate()
    assert second.communicate(timeout=300.0)[0] == ("6 0\n" if ends == "well" else "6 1\n")


def test_the_level_of_a_processor():
    third, fourth = set(LEVELS["x86-64-v3"]), set(LEVELS["x86-64-v4"])
    for features, level in ((set(), None), (fourth, None), (third, "x86-64-v3"), (third | fourth, "x86-64-v4"),
                            (third | fourth - {"avx512vl"}, "x86-64-v3")):
        assert _level(None, features) == level
    assert _level("generic", set()) is None
    assert [_level(level, set()) for level in LEVELS] == list(LEVELS)


def test_a_chosen_level_decides_the_width():
    code = ("from liedyn.machine.simd.lanes import WIDTH; from liedyn.machine.compiled.cpu_targets import LEVEL; "
            "print(LEVEL, WIDTH)")
    assert interpreter(code, NUMBA_CPU_NAME="x86-64-v3", NUMBA_CPU_FEATURES="").stdout.split() == ["x86-64-v3", "4"]
    assert interpreter(code, NUMBA_CPU_NAME="x86-64-v4", NUMBA_CPU_FEATURES="").stdout.split() == ["x86-64-v4", "8"]


# ---- start-up, in processor time and counts: seconds are measured by `benchmarks.starting`


STARTED = """
import sys, time
t = [time.process_time()]
import numpy, numba
t.append(time.process_time())
import liedyn as ld
t.append(time.process_time())
robot = ld.load("panda")
q = robot.neutral.copy()
ld.rnea(robot, q, q, q)
t.append(time.process_time())
print(*(after - before for before, after in zip(t, t[1:])))
"""


def test_starting_takes_less_than_importing_numba():
    """The import and the first call of a cached kernel, in processor time of one process: 0.5 and 0.2 times as much,
    busy machine or idle, and here it may be twice that; the smallest of six, as other processes only ever add."""
    imports, calls = [], []
    for _ in range(6):  # the first one may compile
        others, own, first = (float(word) for word in interpreter(STARTED, **KEPT).stdout.split())
        imports.append(own / others)
        calls.append(first / others)
        if min(imports) < 1.0 and min(calls) < 0.4:
            break
    assert min(imports) < 1.0
    assert min(calls) < 0.4


def test_open_trees_start_without_the_rest():
    code = "import sys, liedyn; print(*(name for name in sys.modules if name.split('.')[0] in ('liedyn', 'scipy')))"
    loaded = set(interpreter(code).stdout.split())
    for name in ("liedyn.mechanics.dynamics", "liedyn.motion.simulation", "liedyn.linear",
                 "liedyn.bridges.specialization", "liedyn.model.calls.checked", "scipy.linalg", "scipy.optimize",
                 "scipy.integrate", "scipy.sparse"):
        assert name not in loaded, name


def test_public_modules_are_found_without_an_import_of_their_own():
    """In a fresh process: elsewhere an import somebody else wrote would have put them there."""
    code = "import liedyn as ld; [getattr(ld, name) for name in (*ld._MODULES, 'errors')]"
    assert interpreter(code).returncode == 0


def test_linearization_starts_without_scipys_packages():
    code = "import sys, liedyn; liedyn.linearize; print(*(name for name in sys.modules if name.startswith('scipy.')))"
    loaded = set(interpreter(code).stdout.split())
    assert not loaded & {"scipy.linalg", "scipy.optimize", "scipy.special"}
