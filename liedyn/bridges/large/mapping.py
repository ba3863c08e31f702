"""Public functions: a function on many states, or on many parameters, in chunks on a cluster."""
# mypy: ignore-errors

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

import numpy as np

from liedyn.bridges.large.chunks import FUNCTIONS, RowError, Template, ChunkWork, computed
from liedyn.bridges.large.cluster import connected, rows_of, run
from liedyn.bridges.large.results import LargeResult, place_for
from liedyn.bridges.large.transport import digest, needed, packed
from liedyn.machine.arguments import floats, names, one_of, require_robot, whole
from liedyn.machine.errors import InputError, LiedynError, said, shown
from liedyn.machine.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from liedyn.model.robot import Robot
    from liedyn.typing import PathLike

FIRST_STATES = 16
"""Number of rows that are computed first, in the calling process: they compile the kernels, also those for lanes, and
determine names and shapes of the results."""
FIRST_PARAMETERS = 8
"""Largest number of parameters that are tried first, up to the first that does not fail."""


def map_states(function: str | Callable[..., Any], robot: Robot | None, states: dict[str, Any],
               keep: Sequence[str] | None = None, chunk: int = 10_000, save: PathLike | None = None, client: Any = None,
               progress: bool | None = None, **options: Any) -> LargeResult:
    """Compute many states, more than one call or one machine can hold, in chunks on the workers of a Dask cluster.

    ``map_states("linearize", robot, {"q": q, "v": v, "tau": tau})["A"]`` is ``linearize(robot, q, v, tau).A``.

    Parameters
    ----------
    function : str or callable
        "linearize", "forward_dynamics", "trim" or "simulate"; or a function of the robot, the states of a chunk by name
        and the options, which returns an array with a row for each state, or a dict of such arrays.
    robot : Robot or None
        None for functions without a robot.
    states : dict
        Arrays by the name of the argument, each with a row for each state: of NumPy (also `numpy.memmap`),
        of dask, or of Zarr. Other arguments are options.
    keep : sequence of str, optional
        Results that are stored. Default: A, B, C, D, f0 of `linearize`; a, lam of `forward_dynamics`; q, v, u, tau,
        freedom, reached of `trim`; q, v of `simulate` (t, a, tau, lam too if named); all results of a function.
    chunk : int
        Largest number of rows of a chunk. A chunk should take seconds, and fit into a worker's memory several times.
    save : path, optional
        Storage of the results: a Zarr group if it ends in ``.zarr``, else a folder of ``.npz`` files, accessible to the
        workers. If an interrupted job has left chunks there, the same call computes only the others.
        Default: in memory.
    client : distributed.Client, cluster, str or None
        Where it is computed: the address of a scheduler, such as ``"tcp://10.0.0.1:8786"``. Default: worker processes
        on this machine, one for each core, which end with the call. Robot and function are sent by cloudpickle:
        everyone who can access a scheduler or a worker can run programs there.
    progress : bool, optional
        A progress bar of chunks: True (needs tqdm), False, or by default for jobs longer than some seconds.
    **options
        Further arguments of the function, the same for all rows: ``independent=``, ``t_final=``, ``free=``.

    Returns
    -------
    LargeResult
        Arrays by name; failed rows with their errors.

    Raises
    ------
    InputError
        There is no such function or result, states have different lengths, an argument cannot be sent to other
        processes, the scheduler cannot be reached, or `save` contains the results of another job.
    LiedynError
        All of the first rows fail (then the error of the first one), a function raises an error that is not liedyn's,
        or workers die repeatedly; the message names chunk and row. Stored chunks remain. Or Dask is not installed.

    Notes
    -----
    Rows that fail are found by halving their chunk; all others are computed. Kernels are compiled in the calling
    process, for a few rows, and workers load them from the cache (``LIEDYN_CACHE_DIR``, if it is set and accessible to
    them). Each task computes in one thread. Chunks of a worker that dies are computed by others. An interrupted job is
    recognised by its robot, function, options, chunks and states; for dask and Zarr arrays by their shapes and first
    rows. Scripts that start worker processes need the line ``if __name__ == "__main__":``, as with `multiprocessing`.

    Examples
    --------
    >>> import numpy as np, liedyn as ld
    >>> robot = ld.load("five_bar")
    >>> q = np.tile(robot.home, (100, 1))
    >>> result = ld.map_states("linearize", robot, {"q": q, "v": 0 * q, "tau": 0 * q}, keep=["A"])  # doctest: +SKIP
    >>> result["A"].shape  # doctest: +SKIP
    (100, 4, 4)
    """
    if robot is not None:
        require_robot(robot)
    if not callable(function):
        one_of("function", function, tuple(FUNCTIONS))
        require_robot(robot)
        if function == "simulate":
            options = options | {"progress": False}
    states, count = _states(states)
    if not callable(function):
        try:
            inspect.signature(FUNCTIONS[function][0]).bind(robot, **states, **options)
        except TypeError as error:
            raise InputError(f"{function}: {error}") from None
    work = ChunkWork(function, robot, _names_kept(keep), options, one_by_one=False)

    def inputs(client, begin, end):
        return {name: _rows(client, x, begin, end) for name, x in states.items()}

    def first():
        rows = rows_of({name: _rows(None, x, 0, min(FIRST_STATES, count)) for name, x in states.items()})
        return rows, computed(work, rows, min(FIRST_STATES, count))[0]

    known = {name: [list(x.shape), digest(x) if type(x) is np.ndarray else ""] for name, x in states.items()}
    return _map(work, count, whole("chunk", chunk, 1), (save, client, progress), known, inputs, first)


def map_parameters(function: Callable[..., Any], parameters: Any, keep: Sequence[str] | None = None, chunk: int = 100,
                   save: Any = None, client: Any = None, progress: Any = None, **options: Any) -> LargeResult:
    """Compute a function of many parameters on the workers of a Dask cluster: variants of a robot, tolerances, designs.

    Parameters
    ----------
    function : callable
        ``function(parameter, **options)``, which makes a robot with `liedyn.Builder.of`, for example, and returns
        a number, an array, or a dict of them. Errors of liedyn count as a failed row.
    parameters : sequence, array or dask.bag.Bag
        Parameters, any objects that can be pickled; the rows of an array.
    keep : sequence of str, optional
        Names of the results that are stored; default: all.
    chunk : int
        Largest number of parameters of a chunk, which should take seconds.
    save, client, progress : optional
        As in `liedyn.map_states`.
    **options
        Further arguments of the function.

    Returns
    -------
    LargeResult
        Arrays by name, ``"result"`` if the function returns no dict; failed parameters with their errors.

    Raises
    ------
    InputError, LiedynError
        As `liedyn.map_states`.

    Notes
    -----
    See `liedyn.map_states`. Functions defined in a script or a notebook are sent with all that they use; modules must
    be installed on the workers.

    Examples
    --------
    >>> import liedyn as ld
    >>> def slowest(mass):
    ...     b = ld.Builder.of(ld.load("five_bar"))
    ...     b.change("body", "link2", mass=mass)
    ...     robot = b.build()
    ...     return ld.linearize(robot, robot.home, [0.0] * 4, [0.0] * 4).eigenvalues().real.max()
    >>> ld.map_parameters(slowest, [0.5, 1.0, 1.5])["result"].shape  # doctest: +SKIP
    (3,)
    """
    if not callable(function):
        raise InputError(f"expected a function of a parameter, got {shown(function)}")
    parameters = _parameters(parameters)
    work = ChunkWork(function, None, _names_kept(keep), options, one_by_one=True)

    def first():
        failures = []
        for k in range(min(FIRST_PARAMETERS, len(parameters))):
            try:
                return (), computed(work, parameters[k:k + 1], 1)[0]
            except LiedynError as error:
                failures.append(error)
        raise failures[0]

    known = digest(parameters) if isinstance(parameters, np.ndarray) else digest(list(parameters))
    return _map(work, len(parameters), whole("chunk", chunk, 1), (save, client, progress), known,
                lambda client, begin, end: parameters[begin:end], first)


def _map(work, count, chunk, how, known, inputs, first):
    """Sends chunks to workers, after the first rows have determined the shapes of the results.

    how = (save, client, progress), as for `map_states`.
    """
    save, client, progress = how
    for module in ("cloudpickle", "dask", "distributed", *(["zarr"] if str(save).endswith(".zarr") else [])):
        needed(module)
    chunk = -(-count // -(-count // chunk))  # chunks of equal size: one with a single row would compile more kernels
    data = packed(f"function {shown(work.function)} or what it takes", work)
    try:
        rows, found = first()
    except RowError as error:
        raise LiedynError(f"{_name(work.function)} fails at the first rows, from row {error.row} on: "
                          f"{error.text}") from error
    job = {"function": _name(work.function), "code": digest(work.function), "robot": digest(work.robot),
           "options": digest(work.options), "count": count, "chunk": chunk, "inputs": known,
           "first rows": digest(rows)}
    place = place_for(save, job, {name: Template(x.shape[1:], x.dtype.str) for name, x in found.items()})
    if len(place.done()) == place.chunks:
        return LargeResult(place)
    bar = Progress(progress, 0, place.chunks - len(place.done()), doing=_name(work.function), unit="chunks")
    try:
        with connected(client) as client:
            return LargeResult(place, run(client, data, place, inputs, bar.show))
    finally:
        bar.close()


def _name(function):
    return function if isinstance(function, str) else getattr(function, "__qualname__", type(function).__name__)


def _names_kept(keep):
    if keep is not None and not names("keep", keep):
        raise InputError("keep names no results; None keeps the usual ones")
    return None if keep is None else tuple(sorted(set(names("keep", keep))))


def _states(states):
    """Arrays by name, and their number of rows."""
    if not isinstance(states, dict) or not states:
        raise InputError(f"states must be a dict of arrays by the name of the argument, got {shown(states)}")
    found = {}
    for name, x in states.items():
        if not isinstance(name, str) or not name.isidentifier():
            raise InputError(f"states must be arrays by the name of the argument, not {shown(name)}")
        elsewhere = type(x).__module__.partition(".")[0] in ("dask", "zarr") and hasattr(x, "shape")
        found[name] = x if elsewhere or isinstance(x, np.memmap) else floats(name, x)
        if not len(found[name].shape) or not found[name].shape[0] or np.isnan(found[name].shape[0]):
            raise InputError(f"{name} must have a row for each state, and one at least; its shape is "
                             f"{found[name].shape}")
    counts = {name: int(x.shape[0]) for name, x in found.items()}
    if len(set(counts.values())) > 1:
        raise InputError(f"states must have as many rows each, got {counts}")
    return found, min(counts.values())


def _rows(client, x, begin, end):
    """Rows of an array: themselves, a future of them, or the place where they can be read."""
    if isinstance(x, np.ndarray):
        return np.asarray(x[begin:end])
    if type(x).__module__.startswith("zarr"):
        return x, begin, end
    return x[begin:end].compute(scheduler="synchronous") if client is None else client.compute(x[begin:end])


def _parameters(parameters):
    if type(parameters).__module__.startswith("dask.bag"):
        parameters = parameters.compute(scheduler="synchronous")
    if isinstance(parameters, np.ndarray):
        if parameters.dtype.kind not in "fiubc" or not parameters.ndim:
            raise InputError(f"parameters must be rows of numbers, got an array of {parameters.dtype}, shape "
                             f"{parameters.shape}")
    elif isinstance(parameters, str | bytes | dict) or not hasattr(parameters, "__getitem__"):
        raise InputError(f"parameters must be a sequence or an array, got {shown(parameters)}")
    else:
        try:
            parameters = list(parameters)
        except Exception as error:
            raise InputError(f"parameters must be a sequence or an array: {said(error)}") from None
    if not len(parameters):
        raise InputError("there are no parameters")
    return parameters
