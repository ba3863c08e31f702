"""Files that an SDFormat file includes, put in its place: their model, with the name and the pose that are given there.

A URI is a path relative to the file, or ``model://NAME``, a folder that is looked for beside the file, in the folders
above it, and in those of the variables of `FOLDERS`. In a folder the file is the one that its model.config names with
the highest version of SDFormat, else model.sdf.
"""
import copy
import os
from pathlib import Path

from liedyn.files.paths import read_bytes
from liedyn.files.xml_elements import parse
from liedyn.machine.errors import ModelError, cut, errors_at, shown

FOLDERS = "GZ_SIM_RESOURCE_PATH", "IGN_GAZEBO_RESOURCE_PATH", "SDF_PATH", "GAZEBO_MODEL_PATH"
"""Variables of the environment with folders of models, in the order in which they are searched."""
OVERRIDES = "pose", "static", "placement_frame"
DEEPEST = 30
MOST = 1000
"""Largest depth and number of included files."""


def with_included(root, path, prepare):
    """Put included models in the place of the <include> elements within `root`, the root of the file at `path`.

    `prepare` brings the root of an included file, of whatever version, into the form of `root`. Returns URIs for which
    there is no file; their elements stay. ModelError if an included file cannot be read, holds no single model, or
    includes itself.
    """
    missing, count = [], [0]
    _put(root, Path(path), prepare, (), missing, count)
    return missing


def _put(xml, path, prepare, within, missing, count):
    for parent in list(xml.iter()):
        for k, child in enumerate(list(parent)):
            if child.tag != "include":
                continue
            uri = (child.findtext("uri") or "").strip()
            file = found(uri, path)
            if file is None:
                missing.append(uri)
                continue
            count[0] += 1
            if file in within or len(within) >= DEEPEST or count[0] > MOST:
                raise ModelError(f"includes {shown(uri)}: " + ("it includes itself" if file in within else
                                                               "too many files, or too deep within each other"))
            with errors_at(f"included {shown(uri)}"):
                parent[k] = _model(child, file, prepare, (*within, file), missing, count)


def _model(include, file, prepare, within, missing, count):
    """The model of an included file, with what its <include> says."""
    root = parse(read_bytes(file), "sdf", "SDFormat")
    prepare(root)
    models = root.findall("model")
    if len(models) != 1:
        raise ModelError(f"holds {len(models) or 'no'} <model>, where one is included")
    _put(root, file, prepare, within, missing, count)
    model = copy.deepcopy(root.find("model"))
    for each in model.iter("uri"):  # of meshes: relative to their own file
        text = (each.text or "").strip()
        if text and "://" not in text:
            each.text = str(file.parent / text)
    if include.findtext("name"):
        model.set("name", include.findtext("name").strip())
    for tag in OVERRIDES:
        given = include.find(tag)
        if given is None:
            continue
        if tag == "placement_frame":
            model.set(tag, (given.text or "").strip())
            continue
        for own in model.findall(tag):
            model.remove(own)
        model.insert(0, copy.deepcopy(given))
    return model


def found(uri, path):
    """The file of a URI in the file at `path`; None if there is none."""
    if uri.startswith("model://"):
        name = uri.removeprefix("model://")
        places = [*Path(path).resolve().parents]
        places += [Path(folder) for variable in FOLDERS
                   for folder in filter(None, os.environ.get(variable, "").split(os.pathsep))]
        candidates = [place / name for place in places]
    elif "://" in uri and not uri.startswith("file://") or not uri:
        return None
    else:
        candidates = [Path(path).resolve().parent / uri.removeprefix("file://")]
    for each in candidates:
        try:
            if each.is_dir():
                each = _in_folder(each)
            if each is not None and each.is_file():
                return each.resolve()
        except (OSError, ValueError):  # impossible names
            continue
    return None


def _in_folder(folder):
    """The file of the model in a folder."""
    config = folder / "model.config"
    if config.is_file():
        with errors_at(cut(str(config), 300)):
            xml = parse(read_bytes(config), "model", "a model.config")
        files = [(_version(each.get("version", "")), (each.text or "").strip()) for each in xml.findall("sdf")]
        if files:
            return folder / max(files)[1]
    return folder / "model.sdf"


def _version(text):
    return tuple(int(part) if part.isdigit() else 0 for part in text.split("."))
