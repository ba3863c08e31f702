"""Whose files of the cache are run: the user's own and the administrator's, where nobody else may write."""
import os
import stat
import types
import warnings

import pytest

import liedyn as ld
from liedyn.machine.cache import cache_files as files, trust
from liedyn.machine.cache.trust import trouble, trouble_above

pytestmark = pytest.mark.skipif(not trust.POSIX, reason="Windows has no such bits")
ME, OTHER = (os.geteuid(), os.geteuid() + 12345) if trust.POSIX else (0, 1)


def state(mode, owner=ME, group=54321):
    return types.SimpleNamespace(st_mode=stat.S_IFDIR | mode, st_uid=owner, st_gid=group)


@pytest.mark.parametrize("found, why", [
    (state(0o755), None), (state(0o700), None), (state(0o444), None), (state(0o755, 0), None), (state(0o2755), None),
    (state(0o755, OTHER), "another user"), (state(0o700, OTHER), "another user"), (state(0o777), "mode 777"),
    (state(0o775), "mode 775"), (state(0o757), "mode 757"), (state(0o720), "mode 720"), (state(0o777, 0), "mode 777"),
    (state(0o1777), "mode 1777"), (state(0o666), "mode 666"),
])
def test_owners_and_permissions(found, why):
    assert (trouble(found) or "").count(why or "") and (why is not None or trouble(found) is None)


def test_what_it_is_in():
    """In a sticky directory others make files, and move none of mine; not so where its owner is another."""
    assert trouble_above(state(0o1777, 0)) is None and trouble_above(state(0o1777)) is None
    assert trouble_above(state(0o755, 0)) is None and "mode 777" in trouble_above(state(0o777, 0))
    assert all("another user" in trouble_above(state(mode, OTHER)) for mode in (0o1777, 0o755))


def test_of_the_package_those_are_trusted_who_may_change_it():
    package = state(0o755, OTHER)
    assert trouble(state(0o755, OTHER), package) is None and trouble(state(0o755, 0), package) is None
    assert "mode 777" in trouble(state(0o777, OTHER), package)
    assert "another user" in trouble(state(0o755, OTHER + 1), package)
    assert trouble(state(0o777), state(0o777)) is None and trouble(state(0o775), state(0o775)) is None
    assert "mode 775" in trouble(state(0o775, group=1), state(0o775, group=2))


def test_a_group_of_the_user_alone(monkeypatch):
    import grp
    import pwd
    members = []
    monkeypatch.setattr(pwd, "getpwuid", lambda number: types.SimpleNamespace(pw_uid=1000, pw_gid=7, pw_name="ann"))
    monkeypatch.setattr(grp, "getgrgid", lambda group: types.SimpleNamespace(
        gr_name={7: "ann", 8: "users"}[group], gr_mem=members))
    trust._is_private.cache_clear()
    assert trouble(state(0o775, group=7)) is None and "mode 775" in trouble(state(0o775, group=8))
    assert "mode 777" in trouble(state(0o777, group=7)) and "mode 775" in trouble(state(0o775, group=9))
    members.append("bob")
    trust._is_private.cache_clear()
    assert "mode 775" in trouble(state(0o775, group=7))
    trust._is_private.cache_clear()


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A directory that is chosen as the cache, and where its files are."""
    monkeypatch.setenv("LIEDYN_CACHE_DIR", str(tmp_path / "chosen"))
    for function in (files.directories, files.cache_directory, files.warn, files._distrust):
        function.cache_clear()
    found, = files.directories()
    yield tmp_path / "chosen", found
    for function in (files.directories, files.cache_directory, files.warn, files._distrust):
        monkeypatch.undo()
        function.cache_clear()


def anew():
    """As another process sees it."""
    for function in (files.cache_directory, files.warn, files._distrust):
        function.cache_clear()


def test_what_is_made_is_trusted_whatever_the_umask(place):
    chosen, inside = place
    before = os.umask(0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            path = files.write("straight/x", b"data")
            anew()
            assert bytes(files.read("straight/x").data) == b"data"
    finally:
        os.umask(before)
    modes = [stat.S_IMODE(os.stat(each).st_mode) for each in (chosen, inside, path.parent, path)]
    assert modes == [0o755, 0o755, 0o755, 0o644]


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("mode", [0o777, 0o775, 0o757])
def test_a_directory_where_others_may_write_is_not_used(place, which, mode):
    files.write("x", b"data")
    os.chmod(place[which], mode)
    anew()
    trust._is_private.cache_clear()
    if mode == 0o775 and trouble(os.stat(place[which])) is None:
        pytest.skip("the group is the user's own")
    with pytest.warns(ld.CacheWarning, match=f"{place[which]} is not used .* other users may write to it") as warned:
        assert files.read("x") is None and files.cache_directory() is None
        assert files.write("y", b"data") is None and files.read("x") is None
    assert len(warned) == 1 and [path.name for path in place[1].iterdir()] == ["x"]
    os.chmod(place[which], 0o755)
    anew()
    assert bytes(files.read("x").data) == b"data"


@pytest.mark.skipif(ME != 0, reason="only the administrator gives files away")
@pytest.mark.parametrize("which", [0, 1])
def test_a_directory_of_another_user_is_not_used(place, which):
    files.write("x", b"data")
    os.chown(place[which], OTHER, -1)
    anew()
    with pytest.warns(ld.CacheWarning, match=f"{place[which]} is not used .* belongs to another user .number {OTHER}"):
        assert files.read("x") is None and files.write("x", b"data") is None


@pytest.mark.parametrize("change", ["mode", "owner"])
def test_a_file_that_others_may_have_written_is_not_used_and_is_replaced(place, change):
    path = files.write("x", b"data")
    if change == "mode":
        os.chmod(path, 0o666)
    elif ME == 0:
        os.chown(path, OTHER, -1)
    else:
        pytest.skip("only the administrator gives files away")
    anew()
    with pytest.warns(ld.CacheWarning, match=f"{path} is not used"):
        assert files.read("x") is None
    assert files.write("x", b"mine") == path and bytes(files.read("x").data) == b"mine"


def test_a_fifo_in_the_cache_is_as_good_as_nothing(place):
    path = files.write("x", b"data")
    path.unlink()
    os.mkfifo(path)
    assert files.read("x") is None
    assert files.write("x", b"data") == path and bytes(files.read("x").data) == b"data"
