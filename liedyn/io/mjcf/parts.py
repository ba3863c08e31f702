"""Files that an MJCF file names: MuJoCo opens them itself, and would wait for a FIFO, or read a device for ever."""
import html
import os
import re

from liedyn.errors import ModelError, errors_at, shown
from liedyn.io.files import read_bytes, require_regular

_TAG = re.compile(rb"""<([\w.:-]+)((?:[^<>"']|"[^"]*"|'[^']*')*)>""")
_ATTRIBUTE = re.compile(rb"""([\w.:-]+)\s*=\s*(?:"([^"]*)"|'([^']*)')""")
_READ_AT_ONCE = ("include", "model")
MOST = 1000
"""Files that are included, and those that these include."""


def require_files(path):
    """Refuse what a file names if it is there and is no regular file; so in all files that it includes.

    Raises
    ------
    ModelError
        Names the file; or too many are included.
    """
    waiting, seen = [path], set()
    folders, named = {path.parent}, set()
    while waiting:
        file = waiting.pop()
        if file in seen:
            continue
        seen.add(file)
        if len(seen) > MOST:
            raise ModelError(f"more than {MOST} files are included")
        for tag, key, value in _attributes(read_bytes(file)):
            if key.endswith("dir"):
                folders.add(path.parent / value)
            elif key.startswith("file") or key == "content":
                named.add(value)
                if tag in _READ_AT_ONCE:
                    waiting += [place for place in (path.parent / value, file.parent / value) if os.path.isfile(place)]
    for name in named:
        for place in {folder / name for folder in folders}:
            if os.path.exists(place):
                with errors_at(f"file {shown(name)}"):
                    require_regular(place)


def _attributes(data):
    """Names of elements and attributes, and values, of all that look like such; those in comments do no harm."""
    for tag, attributes in _TAG.findall(data):
        for key, one, other in _ATTRIBUTE.findall(attributes):
            yield tag.decode(), key.decode(), html.unescape(os.fsdecode(one or other)).replace("\0", "")
