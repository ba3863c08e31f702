"""Who computes what Python asks for: the interpreter at once, or compiled code.

A call of one state or a few, whose kernel is neither loaded nor in the cache, is interpreted
(`liedyn.machine.program.interpret`), while another process compiles the kernel into the cache
(`liedyn.machine.program.background`). As soon as it is there, the next call of a public function loads it, and from
then on everything is as if it had always been there. In detail:

- Numba's dispatcher asks for compilation where it has no machine code: `_Chooser.compile_or_interpret` answers. What is
  loaded is called without it. Direct calls and addresses are withheld until their kernels are there.
- A kernel that is interpreted once in a public call is interpreted to its end, unless that takes longer than
  `LONGEST`: then the arrays are put back, the kernel is compiled in the foreground, and the call goes on with it.
- Many rows, runs, plans and optimal motions (`FOREGROUND`) are compiled in the foreground at once.
- Interpreted and compiled kernels leave the same layout in the same memory (`plain_intrinsics`).

``LIEDYN_INTERPRET=0`` switches it off, ``LIEDYN_BACKGROUND=0`` the other process: then a kernel is compiled in the
foreground when its interpretation has taken `LONGEST` in all. ``LIEDYN_COMPILE=never`` and ``LIEDYN_CHECK=1``
interpret everything (`liedyn.machine.program.without_compiler`).

`install` arranges it before other modules of the package are imported. It changes attributes of classes and modules
from outside: the files in which these stand belong to the stamp of every kernel (`liedyn.machine.cache.stamps`), and
what is compiled is the same with or without it.
"""
# mypy: ignore-errors
import functools
import os
import sys
import threading
import time

NEVER = os.environ.get("LIEDYN_COMPILE", "") == "never"
CHECK = os.environ.get("LIEDYN_CHECK", "0") != "0"
SWITCHED_ON = os.environ.get("LIEDYN_INTERPRET", "1") != "0"

LONGEST = 1.0
"""Seconds of interpretation in one public call, or of one kernel that nobody compiles meanwhile."""
PATIENCE = 60.0
"""Seconds of interpretation of one kernel after which the background process is not waited for any longer."""
PRICE = 1e-4
"""Seconds that a public call counts at least which goes another way for want of a kernel."""
PAUSE = 0.05
"""Seconds between two looks into the cache."""
FEW = 8
"""Most rows of a batch that are interpreted."""
FOREGROUND = tuple(f"liedyn.{name}" for name in (
    "machine.compiled.struct_values", "machine.compiled.callbacks", "machine.compiled.user_callbacks",
    "motion.simulation", "motion.gradients", "tasks.planning", "tasks.optimal_motion"))
"""Modules whose kernels are always compiled in the foreground."""


def install():
    """Arrange what the environment asks for."""
    if NEVER or CHECK:
        from liedyn.machine.program.without_compiler import install as install_everything

        install_everything(NEVER)
    elif SWITCHED_ON:
        from liedyn.machine.compiled.translation import IS_KNOWN

        if IS_KNOWN:  # else kernels are Numba's own functions
            _install_at_first()


def is_interpreting():
    """True if kernels that were needed so far are not compiled: what is timed now is no compiled code."""
    return interprets_all() or CHOOSER is not None and CHOOSER.is_waiting()


def interprets_all():
    """True if all calls from Python are interpreted, in one thread."""
    return NEVER or CHECK


class _Switch:
    """Attribute `compiles`: whatever is called is compiled, in all threads."""

    compiles = False


def compile_always():
    """From now on compile whatever is called, as `liedyn warmup` does; LiedynError where nothing may be compiled."""
    if NEVER:
        from liedyn.machine.errors import LiedynError

        raise LiedynError("nothing can be compiled, as the environment has LIEDYN_COMPILE=never")
    _Switch.compiles = True


CHOOSER = None
"""The `_Chooser` of this process, if calls may be interpreted."""


class _Here(threading.local):
    """What a thread is doing.

    Attributes
    ----------
    frame : frame
        The public call whose kernels were interpreted last. It is held, as another one could get its place in memory.
    interpreted : set
        The kernels that were.
    spent : float
        How long it took [s].
    deadline : float
        When interpretation stops, on the clock of `time.thread_time`.
    """

    frame, interpreted, spent, deadline = None, frozenset(), 0.0, 0.0


_HERE = _Here()


def _public_call():
    """The frame of the outermost function of the package that is running in this thread; a command is many calls."""
    frame, found = sys._getframe(1), None
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if name.startswith("liedyn.") and not name.startswith("liedyn.look."):
            found = frame
        frame = frame.f_back
    return found


class _Kernel:
    """A kernel for arguments of some types that is not compiled yet.

    Attributes
    ----------
    spent : float
        Seconds that interpretation has taken in public calls that would have used it.
    is_asked : bool
        The background process was asked to compile it.
    late : set
        Late kernels that were called in the same public calls: compiled code will call them, too.
    """

    def __init__(self, dispatcher, kinds):
        self.dispatcher, self.kinds, self.spent, self.is_asked, self._names = dispatcher, kinds, 0.0, False, None
        self._looked, self.late = 0.0, set()

    def is_there(self, listing):
        """True if it is loaded, or in the cache."""
        if self.kinds in self.dispatcher.overloads:
            return True
        cache = self.dispatcher._cache
        if not hasattr(cache, "cache_path") or not hasattr(cache, "alone"):  # the cache is switched off
            return False
        now = time.monotonic()
        if now - self._looked < PAUSE and self._looked:
            return False
        self._looked = now
        if not listing.begins_with(f"{cache.name}."):  # without its stamp, which takes longer than the call
            return False
        from liedyn.machine.cache.cache_files import is_there

        if self._names is None:
            self._names = [cache._file(key) for key in cache._keys(self.kinds, self.dispatcher.targetctx.codegen())]
        return any(name is not None and is_there(name) for name in self._names)


class _Listing:
    """Names in the directories of the cache, as they were when these changed last."""

    def __init__(self):
        self._known = {}

    def begins_with(self, text):
        """True if a file's name begins so."""
        return any(name.startswith(text) for names in map(self._names, self._places()) for name in names)

    @staticmethod
    def _places():
        from liedyn.machine.cache.cache_files import CARRIED, directories

        return *directories(), CARRIED

    def _names(self, place):
        try:
            changed = os.stat(place).st_mtime_ns
            if self._known.get(place, (None,))[0] != changed:
                self._known[place] = changed, [name for name in os.listdir(place) if name.endswith(".nbc")]
        except OSError:
            return []
        return self._known[place][1]


class _Chooser:
    """Knows the kernels that are not compiled yet, and decides who computes."""

    def __init__(self, background):
        self.background, self._kernels, self._listing = background, {}, _Listing()

    def known(self, dispatcher, kinds):
        """The `_Kernel`."""
        key = dispatcher, kinds
        if key not in self._kernels:
            self._kernels[key] = _Kernel(*key)
        return self._kernels[key]

    def is_waiting(self):
        """True if a kernel that was needed is not loaded."""
        return any(kernel.spent > 0.0 and kernel.kinds not in kernel.dispatcher.overloads
                   for kernel in list(self._kernels.values()))

    def is_ready(self, dispatcher, kinds):
        """True if a kernel is compiled, with what it was seen to call late, and may be used in this public call."""
        if _Switch.compiles or kinds in dispatcher.overloads or dispatcher.__module__.startswith(FOREGROUND):
            return True
        kernel = self.known(dispatcher, kinds)
        call = _public_call()
        if call is not _HERE.frame:
            _HERE.frame, _HERE.interpreted, _HERE.spent = call, set(), 0.0
        if _HERE.spent > LONGEST or kernel.spent > (PATIENCE if kernel.is_asked else LONGEST):
            return True
        if kernel in _HERE.interpreted:
            return False
        missing = [each for each in (kernel, *kernel.late) if not self._is_there(each)]
        if not missing:
            return True
        _HERE.interpreted.add(kernel)
        kernel.spent += PRICE
        return False

    def _is_there(self, kernel):
        if kernel.is_there(self._listing):
            return True
        kernel.is_asked = self.background.ask(kernel.dispatcher, kernel.kinds) if not kernel.is_asked else (
            self.background.is_alive())
        return False

    def late_is_called(self, dispatcher, kinds):
        """A late kernel is interpreted."""
        late = self.known(dispatcher, kinds)
        for kernel in _HERE.interpreted:
            if late not in kernel.late:
                kernel.late.add(late)
                self._is_there(late)

    def compile_or_interpret(self, plain, dispatcher, arguments, named):
        """What Numba's dispatcher calls with the arguments, as it has no machine code for them: that, or a function."""
        if named or _is_long(dispatcher, arguments) or dispatcher.targetoptions.get("no_cpython_wrapper"):
            return plain(dispatcher, *arguments, **named)
        kinds = tuple(map(dispatcher.typeof_pyval, arguments))
        if self.is_ready(dispatcher, kinds):
            return plain(dispatcher, *arguments)
        return functools.partial(self.interpreted, self.known(dispatcher, kinds))

    def interpreted(self, kernel, *arguments):
        """The result of a kernel, interpreted while that does not take too long."""
        from liedyn.machine.program.interpret import Stop, run

        outer, begin = _HERE.deadline, time.thread_time()
        _HERE.deadline = begin + LONGEST - _HERE.spent
        try:
            return run(kernel.dispatcher, arguments, self.worlds)
        except (Stop, NotImplementedError):
            kernel.dispatcher.compile(kernel.kinds)
            return kernel.dispatcher(*arguments)
        finally:
            spent = time.thread_time() - begin
            _HERE.deadline, _HERE.spent = outer, _HERE.spent + spent
            for each in _HERE.interpreted:
                each.spent += spent

    @functools.cached_property
    def worlds(self):
        """Worlds that look at the clock, and say which late kernels are called."""
        from liedyn.machine.program.interpret import Stop, World

        class Timed(World):
            def called(self, compiled, function):
                if compiled.targetoptions.get("forceinline"):
                    return function

                def call(*arguments):
                    if time.thread_time() > _HERE.deadline:
                        raise Stop
                    return function(*arguments)

                return call

            def late(self, kernel, kinds):
                plain = self.plain(kernel)

                def call(*arguments):
                    chooser.late_is_called(kernel, kinds)
                    return plain(*arguments)

                return call

        chooser = self
        return Timed(False), Timed(True)


def _is_long(dispatcher, arguments):
    """True for a batch of more than a few rows."""
    names = dispatcher.py_func.__code__.co_varnames[:2]
    return names == ("begin", "end") and arguments[1] - arguments[0] > FEW


def _install_at_first():
    from numba import types, typeof

    from liedyn.machine.compiled import builtin, jit, objects
    from liedyn.machine.compiled.translation import Dispatcher
    from liedyn.machine.errors import LiedynError
    from liedyn.machine.program.background import Background

    global CHOOSER
    chooser = CHOOSER = _Chooser(Background())
    plain_compilation, plain_builtin, plain_address_of = Dispatcher._compile_for_args, builtin.builtin, jit.address_of

    def compile_for_args(self, *arguments, **named):
        return chooser.compile_or_interpret(plain_compilation, self, arguments, named)

    def is_direct(dispatcher, count):
        spread = chooser.is_ready(builtin.spread, (objects.OBJECT, objects.OBJECT, types.intp))
        return chooser.is_ready(dispatcher, (objects.OBJECT,) * count) and spread

    class Withheld:
        """Stands for a builtin function until its kernel is compiled: until then it returns None, "the general way"."""

        def __init__(self, dispatcher, count):
            self._given = dispatcher, count

        def __call__(self, *given):
            if not is_direct(*self._given):
                return None
            function, kernel = plain_builtin(*self._given), self._given[0].py_func
            kernel.__globals__[kernel.__name__] = function
            return function(*given)

    def builtin_or_none(dispatcher, count):
        return plain_builtin(dispatcher, count) if is_direct(dispatcher, count) else Withheld(dispatcher, count)

    def address_of(dispatcher, *arguments):
        if not _is_long(dispatcher, (0, FEW, *arguments[2:])) and arguments[1] == 1:
            if not chooser.is_ready(dispatcher, tuple(map(typeof, arguments))):
                raise LiedynError(f"{dispatcher.__name__} is not compiled yet")
        return plain_address_of(dispatcher, *arguments)

    Dispatcher._compile_for_args = compile_for_args
    builtin.builtin, jit.address_of = builtin_or_none, address_of
