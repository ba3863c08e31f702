"""Checks of an MJCF file, and of the files that it includes and attaches, before MuJoCo reads them.

MuJoCo copies replicated elements while it reads, and reads models that attach each other until the stack overflows:
files with which it would not terminate are refused here, and so is text that is not UTF-8, as its names could not be
read.
"""
import os
import re
from xml.etree.ElementTree import TreeBuilder
from xml.parsers import expat

from liedyn.files.paths import read_bytes, require_regular
from liedyn.machine.errors import ModelError, errors_at, shown

MOST_COPIES = 10_000  # largest number of copied elements; MuJoCo's time grows with its square
MOST_CELLS = 20_000_000  # largest size of a height field, 80 MB
MOST_KEYS = 10_000
DEEPEST = 500  # MuJoCo reads no deeper nesting
_NOT_UTF8 = "\ufffd"


def looked_through(path):
    """The root tag of a file that MuJoCo can read.

    ModelError if the file or one that it needs cannot be read, is not XML or not UTF-8, refers to itself, or makes too
    many elements.
    """
    try:
        models = {}
        document = _Document(path, models)
    except RecursionError:
        raise ModelError("too many files or elements in each other") from None
    plain, made = sum(each.plain for each in models.values()), document.size(document.root)
    others = plain - document.plain  # each of them is read once, and can be attached once
    if made > plain + 2 * others + MOST_COPIES:
        raise ModelError(f"its copies (replicate, flexcomp, attach) would make {made} elements of {plain}; MuJoCo "
                         f"copes with {MOST_COPIES}")
    return document.root.tag


class _Document:
    """A file with the files that it includes; `models` has all documents by path."""

    def __init__(self, path, models):
        self.folder, self.models, self.included, self.sizes = path.parent, models, set(), {}
        self.root, self.parts, self.attached = self._parsed(path), {}, {}
        models[path.resolve()], self.whole = self, None
        self.plain = sum(1 for _ in self.root.iter())
        self.folders = {""} | {name for each in self.root.iter("compiler") for key, name in each.attrib.items()
                               if key.endswith("dir")}
        for each in self.root.iter():
            if each.tag in ("body", "frame"):
                self.parts.setdefault((each.tag, each.get("name")), each)
            elif each.tag == "model" and each.get("file"):
                self.attached[each.get("name")] = self._model(each.get("file"))
        self.whole = self.size(self.root)

    def _parsed(self, path):
        """The root of a file, in which <include> elements are replaced by the elements of their files."""
        root = parsed(read_bytes(path))
        for parent in list(root.iter()):
            for k, child in reversed(list(enumerate(parent))):
                file = self._found(child.get("file"), path) if child.tag == "include" else None
                if file and file.resolve() not in self.included:  # else MuJoCo reports the error
                    self.included.add(file.resolve())
                    with errors_at(f"included {shown(file.name)}"):
                        parent[k:k + 1] = list(self._parsed(file))
        return root

    def _found(self, name, path):
        """The file named in an <include> of `path`; None if there is none."""
        candidates = [folder / name for folder in (self.folder, path.parent)] if name else []
        return next(filter(os.path.exists, candidates), None)

    def _model(self, name):
        """Number of elements of a model that can be attached."""
        file = self.folder / name
        if not os.path.exists(file):
            return 0
        file = file.resolve()
        if file not in self.models:
            with errors_at(f"model {shown(name)}"):
                _Document(file, self.models)
        if self.models[file].whole is None:
            raise ModelError(f"model {shown(name)} has itself among the models that it attaches")
        return self.models[file].whole

    def size(self, element):
        """Number of elements that MuJoCo makes of one."""
        if element in self.sizes:
            return self.sizes[element]
        self.sizes[element] = None
        _require_few(element)
        self._require_regular(element)
        if element.tag == "attach":
            own = self._attached(element)
        elif element.tag == "model":
            own = self.attached.get(element.get("name"), 0)
        else:
            own = 4 * _count(element, "count") if element.tag == "flexcomp" else 1  # a body with three joints per node
        within = own + sum(map(self.size, element))
        self.sizes[element] = within * (_count(element, "count") if element.tag == "replicate" else 1)
        return self.sizes[element]

    def _require_regular(self, element):
        """ModelError if MuJoCo would read from a pipe, a device or a folder."""
        for key, name in element.attrib.items():
            for folder in self.folders if name and (key.startswith("file") or key == "content") else ():
                if os.path.exists(self.folder / folder / name):
                    with errors_at(f"<{element.tag}>, file {shown(name)}"):
                        require_regular(self.folder / folder / name)

    def _attached(self, element):
        """Number of elements that an <attach> copies: of another model at most all, of this one a body or frame."""
        if element.get("model") is not None:
            return self.attached.get(element.get("model"), 0)
        part = self.parts.get(next(((tag, element.get(tag)) for tag in ("body", "frame") if element.get(tag)), None))
        if part is None:
            return 1
        if self.sizes.get(part, 0) is None:
            raise ModelError(f"{part.tag} {shown(part.get('name'))} attaches itself to itself")
        return self.size(part)


def _require_few(element):
    """ModelError for numbers for which MuJoCo would allocate too much memory."""
    for tag, keys, most, what in (("hfield", ("nrow", "ncol"), MOST_CELLS, "heights"),
                                  ("size", ("nkey",), MOST_KEYS, "keyframes")):
        count = _count(element, *keys) if element.tag == tag and not element.get("file") else 0
        if count > most:
            raise ModelError(f"<{tag}> {shown(element.get('name', ''))}: {count} {what}, at most {most}")


def _count(element, *keys):
    """The product of the whole numbers in some attributes; for other values MuJoCo reports the error."""
    product = 1
    for word in " ".join(element.get(key, "") for key in keys).split():
        try:
            product *= max(int(float(word)), 1)
        except (ValueError, OverflowError):
            continue
    return product


def parsed(data):
    """The root element of an XML file; tags and attributes must be UTF-8, comments need not be."""
    try:
        text, is_utf8 = data.decode("utf-8-sig"), True
    except UnicodeDecodeError:
        text, is_utf8 = data.decode(errors="replace"), False
    if "<![CDATA[" not in text:  # comments may contain dashes, which XML forbids and MuJoCo permits
        text = re.sub("<!--.*?-->", lambda comment: "\n" * comment.group().count("\n"), text, flags=re.DOTALL)
    parser, builder = expat.ParserCreate(), TreeBuilder()
    depth = 0

    def start(tag, attributes):
        nonlocal depth
        depth += 1
        if depth > DEEPEST:
            raise ModelError(f"line {parser.CurrentLineNumber}: more than {DEEPEST} elements in each other")
        if not is_utf8:
            _require_utf8(parser.CurrentLineNumber, tag, attributes)
        builder.start(tag, attributes)

    def end(tag):
        nonlocal depth
        depth -= 1
        builder.end(tag)

    parser.StartElementHandler, parser.EndElementHandler = start, end
    try:
        parser.Parse(text, True)
    except expat.ExpatError as error:
        raise ModelError(f"MuJoCo cannot read it: no XML: {error}") from None
    return builder.close()


def _require_utf8(line, tag, attributes):
    for what, value in ((f"<{tag}>", tag), *((f"<{tag}>, {key}", key + value) for key, value in attributes.items())):
        if _NOT_UTF8 in value:
            raise ModelError(f"line {line}, {what}: bytes that are not UTF-8")
