"""Compilation (`liedyn.machine.compiled`): each kernel once, what is rare only when needed; what a terminal shows
meanwhile."""
import _thread
import contextlib
import os
import pty
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from llvmlite import binding
from numba import njit, types
from numba.core.errors import TypingError
from processes import KEPT, ROOT, process

from liedyn.machine.compiled import jit, late, translation
from liedyn.machine.compiled.jit import INTEGERS, VECTOR, inline, kernel

pytestmark = pytest.mark.skipif(not translation.IS_KNOWN, reason="Numba compiles kernels in its own way")


@pytest.fixture
def translated(monkeypatch):
    """Names of the functions that get machine code."""
    names, finalize = [], translation.Library.finalize

    def watched(library):
        names.append(library.name.split(".")[-1])
        finalize(library)

    monkeypatch.setattr(translation.Library, "finalize", watched)
    monkeypatch.setenv("LIEDYN_CACHE", "0")
    return names


def chain():
    """Three kernels, each called by the next; the innermost has a helper."""
    @inline
    def doubled(x, k):
        return 2.0 * x[k]

    @kernel
    def inner(x):
        total = 0.0
        for k in range(x.size):
            total += doubled(x, k)
        return total

    @kernel
    def middle(x):
        return inner(x) + inner(x[1:])

    @kernel
    def outer(x):
        return middle(x) - x[0]

    return inner, middle, outer


def test_helpers_cannot_be_called_from_python():
    """Nothing of them is there that Python could call: that is said, before and after compiled code has called them."""
    @inline
    def doubled(x):
        return 2.0 * x

    @kernel
    def outer(x):
        return doubled(x) + 1.0

    for _ in range(2):
        with pytest.raises(TypeError, match="doubled is a helper of compiled code"):
            doubled(3.0)
        assert outer(3.0) == 7.0


def test_only_what_is_called_gets_machine_code(translated):
    inner, middle, outer = chain()
    x = np.arange(4.0)
    assert outer(x) == 24.0 and translated == ["outer"]
    assert inner(x) == 12.0 and translated == ["outer", "inner"]  # goes the rest of its way
    assert middle(x) == 24.0 and translated == ["outer", "inner", "middle"]
    assert (inner(x), outer(x)) == (12.0, 24.0) and len(translated) == 3
    assert outer(x.astype(np.float32)) == 24.0 and translated[3:] == ["outer"]


def test_users_functions_call_what_waits_and_what_does_not(translated):
    inner, middle, outer = chain()
    outer(np.ones(3))

    @njit
    def calls_all(x):
        return inner(x), middle(x), outer(x)

    assert calls_all(np.arange(4.0)) == (12.0, 24.0, 24.0)
    assert sorted(translated) == ["inner", "middle", "outer"]


def test_what_numbas_own_functions_have_linked_in_is_callable():
    """A kernel around a plain compiled function around a kernel: the inner one has code, and no wrapper for Python."""
    inner, _, _ = chain()

    @njit
    def plain(x):
        return inner(x) + 1.0

    @kernel
    def outer(x):
        return plain(x) + 1.0

    x = np.arange(4.0)
    assert (outer(x), inner(x), plain(x), outer(x)) == (14.0, 12.0, 13.0, 14.0)


def test_other_versions_of_numba_give_the_same_numbers(monkeypatch):
    x = np.random.default_rng(0).normal(size=50)
    ours = [f(x) for f in chain()]
    monkeypatch.setattr(translation, "IS_KNOWN", False)
    theirs = chain()
    assert not any(isinstance(f, translation.Dispatcher) for f in theirs)
    assert ours == [f(x) for f in theirs]


def test_a_slice_of_another_shape_is_an_error_without_texts():
    """Numba's message has both shapes: with the code that makes texts of them a kernel takes seconds more."""
    @kernel
    def put(x, y):
        x[1:] = y
        return x.sum()

    x = np.zeros(4)
    assert put(x, np.ones(3)) == 3.0 and put(x, np.full(1, 2.0)) == 6.0
    with pytest.raises(ValueError, match="cannot assign slice from input of different size"):
        put(x, np.ones(2))
    assert "unicode" not in next(iter(put.inspect_llvm().values()))


def test_calls_of_llvm_are_noted_again():
    """Numba's events of its lock are off only while a kernel is compiled."""
    noted = binding.ffi.lib._lock._cblist
    before = [*noted]

    @kernel
    def wrong(x):
        return x.no_such_thing

    for function in (wrong, *chain()):
        with contextlib.suppress(TypingError):
            function(np.ones(3))
        assert noted == before and len(before) > 0


def test_operators_of_one_function_with_different_operands():
    """Each is resolved once for operands of the same types; known numbers, truths and powers are among them."""
    @kernel
    def mixed(n, x, y, truth):
        y[1:] += 2.0 * y[:3]
        return (2 * n, 2.0 * n, n * 2, 2 * x, x * x, n * x, n * n, n / 3, 3 / n, n - 1, 1 - x, n < 2, x < 2, 2 < x,
                n == 3, x != 3, x ** 2, n ** 2, x ** n, 3 ** n, truth + truth, truth * x, truth + 1.5,
                bool(n), -n, -x, n // 2, n % 2, y[1] * y[n], y[0] + n, truth == 1, 1 + 2 * 3)

    for n, x, truth in ((3, 0.7, True), (2, -1.5, False)):
        y, wanted = np.arange(4.0), np.arange(4.0)
        assert mixed(n, x, y, truth) == pytest.approx(mixed.py_func(n, x, wanted, truth), rel=1e-15)
        np.testing.assert_array_equal(y, wanted)


def test_a_mistake_in_a_kernel_is_told_with_its_name():
    @kernel
    def wrong(x):
        return x.no_such_thing

    @kernel
    def caller(x):
        return wrong(x)

    with pytest.raises(TypingError, match=r"(?s)caller.*wrong.*no_such_thing"):
        caller(np.ones(3))


# ---- late kernels


def late_kernel(name, body):
    body.__name__ = body.__qualname__ = name
    call = jit.late(INTEGERS, VECTOR, returns=types.float64)(body)

    @kernel
    def caller(ints, floats):
        return call(ints, floats) + 1.0 if ints[0] > 0 else 0.0

    return caller, next(entry for key, entry in late._LATE.items() if key.endswith(f"_{name}"))


def test_a_late_kernel_is_compiled_when_it_is_called(translated):
    caller, entry = late_kernel("sum_up", lambda ints, floats: ints[0] * floats.sum())
    assert caller(np.zeros(1, np.int64), np.ones(3)) == 0.0
    assert entry.address.value == 0 and translated == ["caller"]
    assert caller(np.full(1, 2), np.ones(3)) == 7.0 and translated == ["caller", "sum_up"]
    assert caller(np.full(1, 3), np.ones(3)) == 10.0 and len(translated) == 2


def test_users_functions_find_late_kernels_compiled(translated):
    """Their threads could not ask Python for them: one that waits for the others holds its lock."""
    caller, entry = late_kernel("sum_for_users", lambda ints, floats: ints[0] * floats.sum())

    @njit
    def users(ints, floats):
        return caller(ints, floats)

    users(np.zeros(1, np.int64), np.ones(3))
    assert entry.address.value != 0

    @kernel
    def another(ints, floats):
        return caller(ints, floats)

    another(np.zeros(1, np.int64), np.ones(3))  # read from the cache, it would still compile what it may never call
    result, = another.overloads.values()
    assert not result.reload_init


def test_ctrl_c_waits_for_a_late_kernel(monkeypatch):
    caller, entry = late_kernel("interrupted", lambda ints, floats: floats[0])
    compiles, interrupts = entry.kernel.compile, []

    def interrupted(kinds):
        if not interrupts:
            interrupts.append("asked for")
            raise KeyboardInterrupt
        compiles(kinds)

    monkeypatch.setattr(entry.kernel, "compile", interrupted)
    monkeypatch.setattr(_thread, "interrupt_main", lambda: interrupts.append("passed on"))
    assert caller(np.ones(1, np.int64), np.ones(1)) == 2.0
    assert interrupts == ["asked for", "passed on"]


def test_a_late_kernel_that_cannot_be_compiled_is_an_error(monkeypatch):
    causes = []
    monkeypatch.setattr(sys, "unraisablehook", lambda raised: causes.append(str(raised.exc_value)))
    caller, _ = late_kernel("impossible", lambda ints, floats: floats.no_such_thing)
    with pytest.raises(RuntimeError, match="impossible could not be compiled"):
        caller(np.ones(1, np.int64), np.ones(1))
    assert "no_such_thing" in causes[0]
    inner = jit.late(INTEGERS, VECTOR, returns=types.float64)(late._LATE[next(reversed(late._LATE))].kernel)
    caller, _ = late_kernel("around", lambda ints, floats: inner(ints, floats) + 1.0)
    with pytest.raises(RuntimeError, match="impossible could not be compiled"):
        caller(np.ones(1, np.int64), np.ones(1))


def test_kernels_have_the_entries_that_callers_use():
    def by_address(ints, floats):
        ints[0] = floats[0]

    jit.late(INTEGERS, VECTOR)(by_address)
    dispatcher = next(reversed(late._LATE.values())).kernel
    assert jit.address_for(dispatcher, (INTEGERS, VECTOR))
    with pytest.raises(TypeError, match="by_address is a helper of compiled code"):
        dispatcher(np.ones(1, np.int64), np.ones(1))
    with pytest.raises(TypeError, match="by_address has no C function"):
        jit.c_address(dispatcher, (INTEGERS, VECTOR))


def test_arms_and_loops_wait_for_no_contacts():
    result = process(textwrap.dedent("""
        import numpy as np, liedyn as ld
        from liedyn.machine.compiled.late import _LATE
        robot = ld.load("five_bar")
        ld.linearize(robot, robot.home, np.zeros(robot.nv), np.zeros(robot.nv))
        print(sorted(name for name, entry in _LATE.items() if entry.address.value))
        disk = ld.load("rolling_disk")
        ld.forward_dynamics(disk, disk.home, np.zeros(disk.nv), np.zeros(disk.nv))
        print(any("other_jacobians" in name for name, entry in _LATE.items() if entry.address.value))
        """), **KEPT)
    assert result.stdout.split("\n")[:2] == [
        "['liedyn_late_liedyn_linear_local_linearize_constrained', "
        "'liedyn_late_liedyn_mechanics_constraints_constraint_rows_pose_and_jacobian']", "True"]


LOOP = """
    import numpy as np
    from numba import njit, prange
    from liedyn import kernels

    @njit(parallel=True, cache=True)
    def all_of(count, model, q, v, tau, none, rows, virtual):
        found = np.zeros((count, v.size))
        for k in prange(count):
            found[k] = kernels.nullspace_dynamics(model, q, v, tau, none, rows, virtual, 1e-9)[3]
        return found
    """


def test_threads_of_users_reach_late_kernels(tmp_path):
    """A disk that rolls, in a parallel loop that holds the interpreter's lock; the second time from a cache."""
    (tmp_path / "loop.py").write_text(textwrap.dedent(LOOP))
    for _ in range(2):
        result = process(textwrap.dedent("""
            import numpy as np, liedyn as ld
            from liedyn.mechanics.constraints.independent import choose
            from loop import all_of
            disk = ld.load("rolling_disk")
            v, none = np.zeros(disk.nv), np.empty(0)
            tau = np.ones(disk.nv)
            chosen = choose(disk, disk.home, None, 1e-9)
            found = all_of(64, disk.packed, disk.home.copy(), v, tau, none, chosen.rows, chosen.virtual)
            assert np.array_equal(found, np.tile(found[0], (64, 1)))
            print(np.abs(found[0] - ld.forward_dynamics(disk, disk.home, v, tau).a).max() < 1e-12)
            """), **KEPT, NUMBA_NUM_THREADS="2", PYTHONPATH=os.pathsep.join([str(ROOT), str(tmp_path)]))
        assert result.stdout == "True\n"


KINDS = """
import numpy as np, liedyn as ld
from numba import types
from liedyn.machine.compiled import jit
from liedyn.machine.compiled.translation import Waiting

def is_usual(kind):
    if isinstance(kind, types.Array):
        return kind.mutable and kind.layout == "C"
    return all(map(is_usual, kind)) if isinstance(kind, types.BaseTuple) else True

loop, arm = ld.load("five_bar"), ld.load("panda")
rest, many = np.zeros(4), np.tile(arm.home, (3, 1))
ld.save(loop, {path!r})
ld.load({path!r})
ld.inverse_dynamics(loop, loop.home, rest, [0.1, 0.2], active=["q1", "q2"])
ld.differential_inverse_kinematics(arm, many, ld.PointTarget("panda_hand", [0.3, 0.3, 0.3]), 0.01)
ld.simulate(loop, loop.home, rest, 0.01, progress=False)
print(len([k for k in jit.KERNELS if k.overloads]) > 10,
      *(k.__name__ for k in jit.KERNELS for kinds, found in k.overloads.items()
        if not isinstance(found.entry_point, Waiting) and not all(map(is_usual, kinds))))
"""


def test_kernels_are_compiled_for_one_kind_of_array(tmp_path):
    """For arrays that cannot be written, as `robot.home`, or are in Fortran's order, they would be compiled again."""
    assert process(KINDS.format(path=str(tmp_path / "loop.toml")), **KEPT).stdout.split() == ["True"]


# ---- what is shown


def on_a_terminal(code, **environment):
    """What a process writes to stderr that is a terminal."""
    terminal, end = pty.openpty()
    here = {k: x for k, x in os.environ.items() if k != "LIEDYN_QUIET"}  # the tests may run quietly themselves
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stderr=end, stdout=subprocess.DEVNULL,
                          env=here | {"LIEDYN_CACHE": "0"} | environment) as process:
        os.close(end)
        shown = b""
        while True:
            try:
                part = os.read(terminal, 4096)
            except OSError:  # Linux: the other end is closed
                break
            if not part:
                break
            shown += part
        os.close(terminal)
    assert process.returncode == 0, shown
    return shown.decode()


SLOW = """
    import time, numpy as np
    from liedyn.machine.compiled import compile_progress as notice
    from liedyn.machine.compiled.jit import kernel
    notice.PATIENCE = 0.2
    notice.notice.counts = {counts}
    class Slow(notice._Notice):
        def one_more(self):
            time.sleep(0.5)
            super().one_more()
    notice.notice.__class__ = Slow
    for k in range(2):
        @kernel
        def slow(x):
            return x + k
        slow(1.0)
    notice.notice.end_line()
    """


def test_a_terminal_says_that_something_is_compiled():
    shown = on_a_terminal(SLOW.format(counts=False))
    assert shown.count("liedyn warmup") == 1 and shown.count("\n") == 1


def test_the_command_line_counts():
    shown = on_a_terminal(SLOW.format(counts=True))
    assert "1 functions" in shown and "2 functions" in shown and shown.count("\n") == 1


@pytest.mark.parametrize("environment", [{"LIEDYN_QUIET": "1"}])
def test_nothing_is_shown_where_it_is_not_wanted(environment):
    assert on_a_terminal(SLOW.format(counts=False), **environment) == ""


def test_pipes_stay_empty():
    assert process(textwrap.dedent(SLOW.format(counts=False)), LIEDYN_CACHE="0").stderr == ""
