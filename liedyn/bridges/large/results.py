"""Storage of the results of a large job: in memory, in .npz files of a folder, or in Zarr."""
# mypy: ignore-errors

from __future__ import annotations

import contextlib
import errno
import json
import os
import uuid
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from liedyn.bridges.large.chunks import Template
from liedyn.bridges.large.transport import needed, require_same_job
from liedyn.machine.errors import InputError, listed, said, shown
from liedyn.machine.reading import open_regular, read_regular
from liedyn.machine.texts import printable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from liedyn.typing import Booleans, PathLike

FORMAT = 1
JOB, DONE = "job.json", "liedyn_chunks"


class LargeResult:
    """The results of a large job, by name: ``result["A"]``.

    Attributes
    ----------
    names : tuple of str
    count : int
        Rows of the job; the first axis of each array.
    chunk : int
        Rows of a chunk; the last one may have fewer.
    errors : dict
        Errors by index of the row. The results of such a row are NaN (zero or False for integers and booleans); runs of
        `simulate` that stop early keep the results so far.
    failed : ndarray of bool, shape (count,)
        True for rows that failed.
    computed : int
        Number of chunks that this call has computed; the others existed already.
    path : Path or None
        Path of the storage.

    Examples
    --------
    >>> import liedyn as ld
    >>> result = ld.open_results("results")  # doctest: +SKIP
    >>> result["A"][:10].compute().shape  # doctest: +SKIP
    (10, 4, 4)
    """

    names: tuple[str, ...]
    count: int
    chunk: int
    errors: dict[str, Any]
    computed: int
    path: Path | None

    def __init__(self, kept: Any, computed: int = 0) -> None:
        self._kept, self.computed = kept, computed
        self.names, self.count, self.chunk = tuple(kept.template), kept.count, kept.chunk
        self.path, self.errors = kept.path, dict(sorted(kept.errors.items()))

    @property
    def failed(self) -> Booleans:
        failed = np.zeros(self.count, bool)
        failed[list(self.errors)] = True
        return failed

    def __getitem__(self, name: str) -> Any:
        """An array by its name: a NumPy array for results in memory, else a dask array, of which parts are read when
        they are computed, ``result["A"][:10].compute()``."""
        if not isinstance(name, str) or name not in self.names:
            raise InputError(f"no results {shown(name)}: there are {listed(self.names)}")
        return self._kept.array(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        failed = f", {len(self.errors)} of them failed" if self.errors else ""
        return f"LargeResult({printable(', '.join(self.names))} of {self.count} rows{failed})"


def open_results(path: PathLike) -> LargeResult:
    """Open the results that `map_states` or `map_parameters` has stored.

    Parameters
    ----------
    path : path
        The argument `save` of the job.

    Returns
    -------
    LargeResult

    Raises
    ------
    InputError
        There are no results, or chunks are missing because the job was interrupted: call it again to complete it.
    LiedynError
        Dask, or Zarr for its files, is not installed.

    Examples
    --------
    >>> import liedyn as ld
    >>> result = ld.open_results("results.zarr")  # doctest: +SKIP
    """
    path = _path(path)
    try:
        job = json.loads(read_regular(path / JOB))
        _require_files(path)
        kept = _class_of(path)(path, job)
        done = kept.done()
    except (OSError, ValueError, KeyError, TypeError, AttributeError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(f"{shown(str(path))} holds no results: {said(error)}") from None
    if missing := sorted(set(range(kept.chunks)) - done):
        raise InputError(f"{shown(str(path))} is not complete: {len(missing)} of {kept.chunks} chunks are missing, the "
                         f"first is {missing[0]}; start the job again and it goes on")
    return LargeResult(kept)


def place_for(save, job, template):
    """The storage for results, which is created if it does not exist.

    Parameters
    ----------
    save : path or None
    job : dict
        Identifies this job, with "count" and "chunk".
    template : dict of Template

    Raises
    ------
    InputError
        The place contains another job's results, or something else.
    """
    job = job | {"format": FORMAT, "results": {name: [list(each.shape), each.dtype] for name, each in template.items()}}
    if save is None:
        return InMemory(None, job)
    path = _path(save)
    of_kind = _class_of(path)
    try:
        if (path / JOB).exists():
            require_same_job(path, json.loads(read_regular(path / JOB)), job)
        else:
            if path.exists() and any(path.iterdir()):
                raise InputError(f"{shown(str(path))} is there already, and holds no results of a job")
            path.mkdir(parents=True, exist_ok=True)
            of_kind.prepare(path, job)
            _write(path / JOB, json.dumps(job, indent=1).encode())
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"nothing can be kept in {shown(str(path))}: {said(error)}") from None
    return of_kind(path.resolve(), job)


def _path(path):
    if not isinstance(path, str | os.PathLike) or not str(path):
        raise InputError(f"expected the path of results, got {shown(path)}")
    try:
        return Path(path)
    except TypeError:  # a path of bytes
        raise InputError(f"expected the path of results, got {shown(path)}") from None


def _class_of(path):
    return InZarr if path.suffix == ".zarr" else InFiles


def _require_files(path):
    """OSError for anything but files and folders, such as a FIFO, on which reading would block."""
    for folder, _, files in os.walk(path):
        for name in files:
            if not os.path.isfile(os.path.join(folder, name)):
                raise OSError(errno.EINVAL, f"{name}: not a regular file")


def _write(path, data):
    """Writes all of the data or nothing, as the process may end meanwhile."""
    name = path.with_name(f"{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        name.write_bytes(data)
        os.replace(name, path)
    finally:
        with contextlib.suppress(OSError):
            name.unlink()


PLAIN = {"BytesCodec", "BloscCodec", "Crc32cCodec", "GzipCodec", "TransposeCodec", "ZstdCodec"}
"""Admitted codecs of Zarr's files: they convert numbers, and run no code from the file, as pickle would."""
MOST_CHUNKS = 10**6
"""Largest number of chunks of a job; the numbers of all chunks are kept in memory."""


class Kept:
    """Common base of all storages: rows, chunks, shapes; `errors` by row, filled by `done` and `take`.

    `write` is called on workers, which get the storage without its contents.
    """

    def __init__(self, path, job):
        self.path, self.count, self.chunk, self.errors = path, int(job["count"]), int(job["chunk"]), {}
        if not (self.count >= 0 and self.chunk > 0 and self.count <= MOST_CHUNKS * self.chunk):
            raise InputError(f"{self.count} rows in chunks of {self.chunk} are more than {MOST_CHUNKS} chunks, or none")
        self.chunks = -(-self.count // self.chunk)
        self.template = {name: Template(tuple(shape), dtype) for name, (shape, dtype) in job["results"].items()}

    def rows(self, number):
        """First row of a chunk, and the row after its last."""
        return number * self.chunk, min((number + 1) * self.chunk, self.count)

    def shape(self, name):
        return self.count, *self.template[name].shape

    def _note(self, number, errors):
        """Records errors of a chunk, whose rows are counted from its first one."""
        begin = self.rows(number)[0]
        self.errors.update({begin + int(row): text for row, text in errors.items()})

    def __getstate__(self):
        return vars(self) | {"errors": {}}

    @staticmethod
    def prepare(path, job):
        """Creates what must exist before the first chunk."""

    def done(self):
        """Numbers of the chunks that are complete; their errors are recorded."""
        return set()

    def write(self, number, arrays, errors):
        """Stores a chunk, on a worker; returns what the collecting process needs."""
        raise NotImplementedError

    def take(self, number, made):
        """Records the result of `write`."""
        self._note(number, made)


class InMemory(Kept):
    """NumPy arrays in the process that has started the job."""

    def __init__(self, path, job):
        super().__init__(path, job)
        self.arrays = {name: np.empty(self.shape(name), each.dtype) for name, each in self.template.items()}

    def __getstate__(self):
        return super().__getstate__() | {"arrays": None}

    def write(self, number, arrays, errors):
        return arrays, errors

    def take(self, number, made):
        arrays, errors = made
        begin, end = self.rows(number)
        for name, array in arrays.items():
            self.arrays[name][begin:end] = array
        self._note(number, errors)

    def array(self, name):
        return self.arrays[name]


class InFiles(Kept):
    """A folder with a file of each chunk, ``000012.npz``, its errors as JSON text in ``errors``."""

    def _file(self, number):
        return self.path / f"{number:06d}.npz"

    def done(self):
        there = set()
        for number in range(self.chunks):
            if self._file(number).exists():
                there.add(number)
                self._note(number, json.loads(str(_read(self._file(number), "errors"))))
        return there

    def write(self, number, arrays, errors):
        name = self._file(number).with_suffix(f".{uuid.uuid4().hex}.tmp")
        try:
            with open(name, "xb") as file:
                np.savez(file, errors=np.array(json.dumps(errors)), **{f"of_{key}": x for key, x in arrays.items()})
            os.replace(name, self._file(number))
        finally:
            with contextlib.suppress(OSError):
                name.unlink()
        return errors

    def array(self, name):
        da, delayed = needed("dask.array"), needed("dask").delayed(_read)
        shape, dtype = self.shape(name)[1:], self.template[name].dtype
        parts = []
        for number in range(self.chunks):
            begin, end = self.rows(number)
            part = delayed(self._file(number), f"of_{name}")
            parts.append(da.from_delayed(part, (end - begin, *shape), dtype))
        return da.concatenate(parts)


def _read(path, name):
    with open_regular(path) as archive, np.load(archive, allow_pickle=False) as file:
        return file[name]


class InZarr(Kept):
    """A Zarr group with an array for each name, and a small file of errors for each complete chunk."""

    @staticmethod
    def prepare(path, job):
        zarr = needed("zarr")
        group = zarr.open_group(path, mode="a")
        for name, (shape, dtype) in job["results"].items():
            group.create_array(name, shape=(job["count"], *shape), chunks=(job["chunk"], *[max(n, 1) for n in shape]),
                               dtype=dtype, overwrite=True)
        (path / DONE).mkdir(exist_ok=True)

    def done(self):
        there = set()
        for path in (self.path / DONE).glob("*.json"):
            there.add(int(path.stem))
            self._note(int(path.stem), json.loads(read_regular(path)))
        return there

    def write(self, number, arrays, errors):
        group = needed("zarr").open_group(self.path, mode="r+")
        begin, end = self.rows(number)
        for name, array in arrays.items():
            if array.size:
                group[name][begin:end] = array
        _write(self.path / DONE / f"{number:06d}.json", json.dumps(errors).encode())
        return errors

    def array(self, name):
        where = f"{shown(str(self.path))}, {shown(name)}"
        try:
            array = needed("zarr").open_group(self.path, mode="r", zarr_format=3)[name]
            codecs = {type(each).__name__ for each in array.metadata.codecs} - PLAIN
        except (OSError, KeyError, ValueError, AttributeError) as error:
            raise InputError(f"{where}: no array of Zarr, format 3: {said(error)}") from None
        if codecs or array.dtype != self.template[name].dtype:
            raise InputError(f"{where}: kept as {array.dtype} by {', '.join(sorted(codecs)) or 'codecs of numbers'}, "
                             "which is not how results are kept")
        return needed("dask.array").from_array(array, chunks=(self.chunk, *array.shape[1:]))
