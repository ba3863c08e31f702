"""What imports what in the package, read from its source: rooms, modules, and the files that a function reaches."""
import ast
from functools import cache
from pathlib import Path

import liedyn

PACKAGE = Path(liedyn.__file__).parent
ROOMS = ("machine", "lie", "model", "files", "mechanics", "linear", "motion", "tasks", "control", "bridges", "look")
"""From the bottom up: a room imports what is below it."""
BESIDE = {"jax": "bridges", "torch": "bridges", "casadi": "bridges", "kernels": "bridges", "typing": "machine",
          "": "face", "__main__": "face", "errors": "face"}
"""Modules that are not in the folder of their room, by the name that users import; the face is no room."""


@cache
def modules():
    """Paths by dotted names, as ``"mechanics.tree.rnea"``; the package itself is ``""``."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        if "__pycache__" in parts:  # programs written for one robot may be kept there
            continue
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def room(module):
    """The room that a module is in."""
    head = module.split(".")[0]
    return BESIDE.get(head, head)


class _Untyped(ast.NodeTransformer):
    """Takes away what only type checkers read: what is imported for them, and annotations."""

    def visit_If(self, node):
        return None if getattr(node.test, "id", "") == "TYPE_CHECKING" else self.generic_visit(node)

    def visit_FunctionDef(self, node):
        node.returns = None
        return self.generic_visit(node)

    def visit_arg(self, node):
        node.annotation = None
        return node

    def visit_AnnAssign(self, node):
        node.annotation = ast.Constant(None)
        return self.generic_visit(node)


@cache
def tree(module):
    return _Untyped().visit(ast.parse(modules()[module].read_text()))


def _below(name):
    """The dotted name within the package, or None for other packages."""
    return name.removeprefix("liedyn").removeprefix(".") if name.split(".")[0] == "liedyn" else None


@cache
def imports(module):
    """Pairs (module, name): what a module imports from others, at the top or later; the name is None for a module."""
    found = set()
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Import):
            found |= {(_below(each.name), None) for each in node.names if _below(each.name) is not None}
        elif isinstance(node, ast.ImportFrom) and node.module and _below(node.module) is not None:
            source = _below(node.module)
            for each in node.names:
                inner = f"{source}.{each.name}" if source else each.name
                found.add((inner, None) if inner in modules() else (source, each.name))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("liedyn."):
            source, colon, name = node.value.partition(":")  # as `machine.by_name` takes it
            if colon and _below(source) in modules():
                found.add((_below(source), name))
    return frozenset(found)


@cache
def definitions(module):
    """Statements at the top of a module by the names that they define."""
    found = {}
    for node in tree(module).body:
        names = [each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)]
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names = [node.name]
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names = []
        for name in names:
            found.setdefault(name, []).append(node)
    return found


@cache
def aliases(module):
    """What names that a module imports stand for: (module, name), the name None for a module."""
    found = {}
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.ImportFrom) and node.module and _below(node.module) is not None:
            source = _below(node.module)
            for each in node.names:
                inner = f"{source}.{each.name}" if source else each.name
                found[each.asname or each.name] = (inner, None) if inner in modules() else (source, each.name)
    return found


def reached(module, name):
    """The modules in which something is that a function needs, itself and all that it calls or names."""
    seen, ahead = set(), [(module, name)]
    while ahead:
        at = ahead.pop()
        if at in seen:
            continue
        seen.add(at)
        source, what = at
        nodes = definitions(source).get(what, [])
        if not nodes and what in aliases(source):  # what a package hands on
            ahead.append(aliases(source)[what])
        for node in nodes:
            for each in ast.walk(node):
                if isinstance(each, ast.Name):
                    if each.id in definitions(source):
                        ahead.append((source, each.id))
                    elif each.id in aliases(source) and aliases(source)[each.id][1]:
                        ahead.append(aliases(source)[each.id])
                elif isinstance(each, ast.Attribute) and isinstance(each.value, ast.Name):
                    target = aliases(source).get(each.value.id)
                    if target and target[1] is None:
                        ahead.append((target[0], each.attr))
    return {source for source, what in seen if what in definitions(source)}
