"""Lists, tables and texts of a YAML file, made of what PyYAML's parser reads.

Not by `yaml.safe_load`: that is written in Python even where the parser in C is there (5 s for 2 MB), and what it makes
of a small file may be huge, as aliases stand for lists of aliases, and keys ``<<`` for tables of tables. Here every
value is one that stands in the file. What is not quoted is text as well, but for nothing, ``~`` and ``null``.
"""
import re

from liedyn.machine.errors import ModelError, cut, shown

DEEPEST = 20
"""Lists and tables within one another."""
MOST = 800_000
"""Texts, and begins and ends of lists and tables, in a file."""
MOST_IN_PYTHON = 200_000
"""Bytes that are read where PyYAML comes without its parser in C: in about a second."""
_TAGS = (None, "!", "tag:yaml.org,2002:str", "tag:yaml.org,2002:seq", "tag:yaml.org,2002:map")
_NOTHING = ("", "~", "null", "Null", "NULL")


def read_yaml(data):
    """What a file says, given its bytes: a dict, a list, a str or None.

    Raises
    ------
    ModelError
        It is not YAML, or holds what is not read: aliases of lists and tables, tags, directives, several documents, too
        many values, or too many lists within one another; or PyYAML is not installed.
    """
    try:
        import yaml
    except ImportError:
        raise ModelError("loops in YAML are read by PyYAML: pip install 'liedyn[yaml]'; or give them as `loops`"
                         ) from None
    loader = getattr(yaml, "CSafeLoader", None)
    if loader is None and len(data) > MOST_IN_PYTHON:
        raise ModelError(f"PyYAML comes without libyaml here, and {len(data)} bytes would take it long: give the loops "
                         "in a .loops.toml file, or as `loops`")
    if re.search(rb"^%(?!YAML )", data, re.MULTILINE):  # libyaml compares each with all others
        raise ModelError("directives (lines that begin with %) are not read")
    try:
        return _made(yaml, yaml.parse(data, Loader=loader or yaml.SafeLoader))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError(f"not YAML: {cut(' '.join(str(error).split()), 200)}") from None


def _made(yaml, events):
    """What events say, one after the other. Of a table there lies on the stack what takes its next key or value."""
    scalar, begins, table = yaml.ScalarEvent, (yaml.SequenceStartEvent, yaml.MappingStartEvent), yaml.MappingStartEvent
    ends = yaml.SequenceEndEvent, yaml.MappingEndEvent
    texts, documents, stack = {}, [], []
    put = documents.append
    for number, event in enumerate(events):
        if number > MOST:
            raise ModelError(f"more than {MOST} texts, and begins and ends of lists and tables")
        kind = type(event)
        if kind is scalar:
            value = event.value
            if event.tag is not None or event.anchor is not None or value in _NOTHING:
                _require_known_tag(event)
                value = None if event.implicit[0] and value in _NOTHING else value
                texts[event.anchor] = value
            put(value)
        elif kind in ends:
            put = stack.pop()
        elif kind in begins:
            if event.tag is not None:
                _require_known_tag(event)
            if len(stack) == DEEPEST:
                raise ModelError(f"more than {DEEPEST} lists and tables lie within one another")
            made = {} if kind is table else []
            put(made)
            stack.append(put)
            put = _Table(made).put if kind is table else made.append
        elif kind is yaml.AliasEvent:
            if event.anchor not in texts:
                raise ModelError(f"*{cut(event.anchor)}: aliases of lists and tables are not read, write them out")
            put(texts[event.anchor])
        elif kind is yaml.DocumentStartEvent and documents:
            raise ModelError("several documents in one file")
    return documents[0] if documents else None


class _Table:
    """Takes keys and values in turn."""

    def __init__(self, made):
        self.made, self.key, self.is_key = made, None, True

    def put(self, value):
        if self.is_key:
            if not isinstance(value, str):
                raise ModelError(f"expected a key, got {shown(value)}")
            if value in self.made:
                raise ModelError(f"key {shown(value)} is there twice")
            self.key = value
        else:
            self.made[self.key] = value
        self.is_key = not self.is_key


def _require_known_tag(event):
    if event.tag not in _TAGS:
        raise ModelError(f"tag {shown(event.tag)} is not read")
