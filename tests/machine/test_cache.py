"""The cache of compiled kernels: what is kept, what makes it stale, and what becomes of damaged files."""
import builtins
import errno
import importlib.util
import os
import stat
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numba.core.codegen import CPUCodegen

import liedyn as ld
from liedyn.machine.cache import cache_files as files, stamps
from liedyn.machine.cache import stored_kernels as kernels

PACKAGE = Path(ld.__file__).parent


# ---- files


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A directory that is the cache of this process."""
    monkeypatch.setattr(files, "directories", lambda: (tmp_path,))
    monkeypatch.setattr(files, "cache_directory", lambda: tmp_path)
    monkeypatch.setattr(kernels, "cache_directory", lambda: tmp_path)
    files.warn.cache_clear()
    stamps._module.cache_clear()
    stamps.source_stamp.cache_clear()
    return tmp_path


def as_folder(path):
    path.unlink()
    path.mkdir()


DAMAGES = {
    "empty": lambda path: path.write_bytes(b""),
    "cut short": lambda path: os.truncate(path, path.stat().st_size // 2),
    "one byte short": lambda path: os.truncate(path, path.stat().st_size - 1),
    "longer": lambda path: path.write_bytes(path.read_bytes() + b"\0"),
    "noise": lambda path: path.write_bytes(bytes(range(256)) * 2),
    "removed": lambda path: path.unlink(),
    "a folder": as_folder,
    "of another format": lambda path: path.write_bytes(path.read_bytes().replace(b"# liedyn 1 ", b"# liedyn 0 ", 1)),
    "a file of something else": lambda path: path.write_bytes(b"# liedyn 1 " + b"0" * 64 + b"\ndata"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_as_good_as_none_and_is_replaced(place, damage):
    path = files.write("x", b"some data")
    assert bytes(files.read("x").data) == b"some data" and files.read("x").path == path == place / "x"
    DAMAGES[damage](path)
    assert files.read("x") is None
    assert files.write("x", b"other data") == path and bytes(files.read("x").data) == b"other data"
    assert list(place.iterdir()) == [path]


def test_every_flipped_bit_is_seen(place):
    path = files.write("x", b"data")
    whole = path.read_bytes()
    for bit in range(8 * len(whole)):
        changed = bytearray(whole)
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(changed)
        assert files.read("x") is None, bit
    path.write_bytes(whole)
    assert bytes(files.read("x").data) == b"data"


def test_files_may_be_read_by_whom_the_users_other_files_may_be_read(place):
    """A cache filled by the administrator is there for all: temporary files of the standard library forbid that."""
    other = place / "other"
    other.write_bytes(b"")
    assert stat.S_IMODE(files.write("x", b"data").stat().st_mode) == stat.S_IMODE(other.stat().st_mode) & 0o644


class FullDisk:
    """A file that takes a few bytes and no more."""

    def __init__(self, name, mode, opener=None):
        self.file, self.name, self.room = builtins.open(name, mode), name, 10

    def write(self, data):
        self.file.write(data[:self.room])
        self.room -= len(data)
        if self.room < 0:
            self.file.flush()
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def close(self):
        self.file.close()

    def __enter__(self):
        return self

    def __exit__(self, *raised):
        self.close()


def test_a_full_disk_is_said_once_and_leaves_nothing_behind(place, monkeypatch):
    kept = files.write("kept", b"data")
    monkeypatch.setattr(files, "open", FullDisk, raising=False)
    with pytest.warns(ld.CacheWarning, match=f"{place}: {os.strerror(errno.ENOSPC)}") as warned:
        assert files.write("x", b"data") is None and files.write("kept", b"new") is None
    assert len(warned) == 1
    assert list(place.iterdir()) == [kept] and bytes(files.read("kept").data) == b"data"


def test_directories(monkeypatch):
    def found(**environment):
        for name in ("LIEDYN_CACHE", "LIEDYN_CACHE_DIR", "NUMBA_CACHE_DIR", "XDG_CACHE_HOME"):
            monkeypatch.delenv(name, raising=False)
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        return [str(path.parent) for path in files.directories.__wrapped__()]

    chosen = os.path.abspath(os.sep + "chosen")
    assert found(LIEDYN_CACHE_DIR=chosen, XDG_CACHE_HOME="/user") == [chosen]
    assert found(NUMBA_CACHE_DIR=chosen) == [chosen]
    assert found(XDG_CACHE_HOME="/user") == [str(PACKAGE), str(Path("/user/liedyn"))]
    assert found(LIEDYN_CACHE="0", LIEDYN_CACHE_DIR=chosen) == []


# ---- one small kernel


SMALL = """
from liedyn.machine.compiled.jit import kernel
@kernel
def {name}(x):
    return 2 * x + {number}
"""


def small(folder, number=1, name="small"):
    """A kernel in a module of its own, as a fresh process sees it."""
    path = folder / "small.py"
    path.write_text(SMALL.format(name=name, number=number))
    stamps._module.cache_clear()
    stamps.source_stamp.cache_clear()
    spec = importlib.util.spec_from_file_location("small", path)
    module = importlib.util.module_from_spec(spec)
    exec(compile(path.read_text(), str(path), "exec"), module.__dict__)
    return getattr(module, name)


def compiled(kernel, x=3):
    """What it returns, and how many times it was compiled for that."""
    return kernel(x), sum(kernel.stats.cache_misses.values())


@pytest.fixture
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("source")


def mutated(text, others, kind, part, noise):
    """Bytes that take the place of a file's, changed at some part of its length."""
    at = int(part * len(text))
    return {
        "kept": text, "cut": text[:at], "swapped": others[at % len(others)],
        "flipped": text[:at] + bytes([text[at] ^ 1 << at % 8]) + text[at + 1:],
        "noisy": text[:at] + noise + text[at + 10:],
    }[kind]


KINDS = st.sampled_from(["kept", "cut", "swapped", "flipped", "noisy", "a folder"])
MUTATIONS = st.tuples(KINDS, st.floats(0.0, 1.0, exclude_max=True), st.binary(max_size=20))


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_mutated_caches_heal(place, folder, data):
    """Whatever is done to the files: the result is right, and the process after the next compiles nothing."""
    compiled(small(folder))
    assert compiled(small(folder)) == (7, 0)
    paths = sorted(place.glob("*.*"))
    whole = [path.read_bytes() for path in paths]
    assert {path.suffix for path in paths} == {".nbc", ".module"}
    for path, text in zip(paths, whole):
        kind, part, noise = data.draw(MUTATIONS)
        if kind == "a folder":
            as_folder(path)
        else:
            path.write_bytes(mutated(text, whole, kind, part, noise))
    assert compiled(small(folder))[0] == 7
    assert compiled(small(folder)) == (7, 0)


def test_a_damaged_kernel_is_compiled_again_and_kept(place, folder):
    assert compiled(small(folder)) == (7, 1)
    kept, = place.glob("*.nbc")
    for damage in DAMAGES.values():
        assert compiled(small(folder)) == (7, 0)
        damage(kept)
        assert compiled(small(folder)) == (7, 1)
        assert list(place.glob("*.nbc")) == [kept]


def test_each_signature_has_a_file_of_its_own(place, folder):
    kernel = small(folder)
    assert compiled(kernel) == (7, 1) and compiled(kernel, 3.0) == (7.0, 2)
    assert len(list(place.glob("*.nbc"))) == 2
    kernel = small(folder)
    assert compiled(kernel, 3.0) == (7.0, 0) and compiled(kernel) == (7, 0)


def test_a_changed_source_is_compiled_again(place, folder):
    assert compiled(small(folder)) == (7, 1)
    assert compiled(small(folder, number=2)) == (8, 1)


def test_sources_that_changed_after_the_import_are_not_taken_for_what_was_imported(place, folder, monkeypatch):
    """An edit, or an upgrade, while a process runs: what it compiles is not kept as the new version's."""
    kernel, file = small(folder), str(folder / "small.py")
    monkeypatch.setitem(stamps._IMPORTED, file, (0, 0))
    with pytest.warns(ld.CacheWarning, match=f"{file} has changed since it was imported"):
        assert compiled(kernel) == (7, 1)
    assert not list(place.glob("*.nbc"))
    kernel = small(folder)
    os.unlink(file)
    assert compiled(kernel) == (7, 1) and not list(place.glob("*.nbc"))
    monkeypatch.delitem(stamps._IMPORTED, file)
    assert compiled(small(folder)) == (7, 1) and compiled(small(folder)) == (7, 0)


def test_versions_do_not_erase_each_other(place, folder, monkeypatch):
    """Versions of Numba, levels of optimisation and sources take turns; of one kernel the last three are kept."""
    versions = [(number, compiler) for compiler in ("one", "other") for number in (1, 2)]

    def turn(number, compiler):
        monkeypatch.setattr(kernels, "_compiler", lambda: compiler)
        kernel = small(folder, number)
        kernel(3.0)
        result, misses = compiled(kernel)
        assert result == 6 + number
        return misses

    assert [turn(*version) for version in versions[:3] * 3] == 3 * [2] + 6 * [0]
    assert turn(*versions[3]) == 2
    assert len(list(place.glob("*.nbc"))) == 2 * kernels.VERSIONS_KEPT
    assert [turn(*version) for version in versions[1:]] == 3 * [0]
    assert turn(*versions[0]) == 2


def test_a_cache_that_cannot_be_written_is_read(place, folder, monkeypatch):
    assert compiled(small(folder)) == (7, 1)
    monkeypatch.setattr(files, "cache_directory", lambda: None)
    kernel = small(folder)
    assert compiled(kernel) == (7, 0)
    with pytest.warns(ld.CacheWarning, match=f"not kept on disk: not writable: {place}"):
        assert compiled(kernel, 3.0) == (7.0, 1)


def test_what_a_read_only_cache_lacks_goes_to_the_next_directory(place, folder, tmp_path_factory, monkeypatch):
    assert compiled(small(folder)) == (7, 1)
    before, mine = sorted(place.iterdir()), tmp_path_factory.mktemp("mine")
    monkeypatch.setattr(files, "directories", lambda: (place, mine))
    monkeypatch.setattr(files, "cache_directory", lambda: mine)
    for misses in (1, 0):
        kernel = small(folder)
        assert kernel(3) == 7 and compiled(kernel, 3.0) == (7.0, misses)
    assert sorted(place.iterdir()) == before and len(list(mine.glob("*.nbc"))) == len(list(mine.glob("*.*"))) == 1


def test_what_has_come_with_the_package_is_found_and_left_alone(place, folder, tmp_path_factory, monkeypatch):
    """For the level of this processor, where there is nothing for this very one."""
    came, level = tmp_path_factory.mktemp("came"), "x86-64-v3"
    monkeypatch.setattr(kernels, "LEVEL", level)
    with monkeypatch.context() as building:
        building.setattr(files, "cache_directory", lambda: came)
        building.setattr(CPUCodegen, "magic_tuple", lambda self: (self._llvm_module.triple, level, ""))
        assert compiled(small(folder)) == (7, 1)
    monkeypatch.setattr(files, "CARRIED", came)
    monkeypatch.setattr(kernels, "CARRIED", came)
    whole = {path: path.read_bytes() for path in came.glob("*.*")}
    kernel = small(folder)
    assert compiled(kernel) == (7, 0) and kernel._cache.carried == 1 and not any(place.iterdir())
    for other in ("x86-64-v4", None):
        monkeypatch.setattr(kernels, "LEVEL", other)
        assert compiled(small(folder)) == (7, 1)
        for path in place.iterdir():
            path.unlink()
    monkeypatch.setattr(kernels, "LEVEL", level)
    for path in whole:
        DAMAGES["one byte short"](path)
    damaged = {path: path.read_bytes() for path in whole}
    assert compiled(small(folder)) == (7, 1) and compiled(small(folder)) == (7, 0)
    assert {path: path.read_bytes() for path in came.glob("*.*")} == damaged


def test_recompiling_forgets_what_was_kept(place, folder):
    kernel = small(folder)
    kernel(3)
    kept = list(place.glob("*.nbc"))
    kernel.recompile()
    assert compiled(kernel) == (7, 2) and list(place.glob("*.nbc")) == kept
