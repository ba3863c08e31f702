"""Which files of the cache may be used: their code is executed, so no other user may have written them.

A file, and its directory, must belong to the user or to the system's administrator, and only their owner may have write
permission. In the package's own directory, its owner and whoever may write to the package are trusted, too: they could
change the package itself. Windows has no such permission bits; everything is trusted there.
"""
import contextlib
import os
import stat

from liedyn.machine.typed_decorators import once


POSIX = hasattr(os, "geteuid")


def trouble(state, package=None):
    """The reason why a file with the `os.stat` `state` is not trusted, or None; `package` is the stat of the package's
    directory if the file lies in it."""
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
    """The same for a parent directory; where everybody may create files, its sticky bit must protect those of
    others."""
    return None if state.st_mode & stat.S_ISVTX and state.st_uid in (0, *_me()) else trouble(state)


def _me():
    return (os.geteuid(),) if POSIX else ()


@once
def _is_private(group):
    """True if the group has no other member; some systems give each user a group of the same name."""
    with contextlib.suppress(ImportError, KeyError):
        import grp
        import pwd

        user, found = pwd.getpwuid(os.geteuid()), grp.getgrgid(group)
        return user.pw_uid != 0 and group == user.pw_gid and found.gr_name == user.pw_name and (
            set(found.gr_mem) <= {user.pw_name})
    return False
