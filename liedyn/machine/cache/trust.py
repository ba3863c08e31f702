"""Whose files of the cache are used: what is in them is run, so nobody else may have written it.

A file, and the directory that it is in, must belong to the user or to the system's administrator, and only their owner
may write there. In the package's own directory the owner of the package may have written as well, and whoever may write
to the package: they could change what Python runs from there anyway. Windows has no such bits, and nothing is refused.
"""
import contextlib
import functools
import os
import stat

POSIX = hasattr(os, "geteuid")


def trouble(state, package=None):
    """Why something is not to be trusted, by its `os.stat`; None if it is.

    Parameters
    ----------
    state : os.stat_result
    package : os.stat_result, optional
        The directory of the package, for what is in it.
    """
    if not POSIX:
        return None
    owners = {0, os.geteuid(), *([package.st_uid] if package else [])}
    if state.st_uid not in owners:
        return f"it belongs to another user (number {state.st_uid})"
    others = state.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    if package:
        same_group = state.st_gid == package.st_gid
        others &= ~(package.st_mode & (stat.S_IWOTH | (stat.S_IWGRP if same_group else 0)))
    if others & stat.S_IWGRP and _is_private(state.st_gid):
        others &= ~stat.S_IWGRP
    return f"other users may write to it (mode {stat.S_IMODE(state.st_mode):o})" if others else None


def trouble_above(state):
    """The same for what a directory is in: where everybody may make files, but nobody may move those of others."""
    return None if state.st_mode & stat.S_ISVTX and state.st_uid in (0, *_me()) else trouble(state)


def _me():
    return (os.geteuid(),) if POSIX else ()


@functools.cache
def _is_private(group):
    """Is a group the user's own, of nobody else? Some systems give each user one, of the same name."""
    with contextlib.suppress(ImportError, KeyError):
        import grp
        import pwd

        user, found = pwd.getpwuid(os.geteuid()), grp.getgrgid(group)
        return user.pw_uid != 0 and group == user.pw_gid and found.gr_name == user.pw_name and (
            set(found.gr_mem) <= {user.pw_name})
    return False
