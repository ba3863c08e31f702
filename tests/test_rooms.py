"""How the package is built: rooms that import only what is below them, one name for one file, one place for one thing.

The numbers and the lists of exceptions say what there is today. They may only get smaller.
"""
import re
from collections import Counter, defaultdict

import pytest
from draw_rooms import PICTURE, arrows, drawn
from rooms import PACKAGE, ROOMS, definitions, imports, modules, reached, room, tree

SHORTHANDS = {
    ("motion.simulation.trajectory", "look.animation:animate_run"), ("model.robot", "look.cli.info:description"),
    ("files.declared_coordinates", "mechanics.constraints.declared_independent:fitting"),
}
"""What is called by its name in a room above: a method that is a shorthand, a check of what a file declares."""
REACH = {
    "mechanics.tree.rnea:rnea": 27, "mechanics.dynamics.forward:forward_dynamics": 76,
    "linear.linearize:linearize": 103, "motion.simulation.simulate:simulate": 125,
    "tasks.planning.plan:ddp": 174, "linear.sensitivity.sensitivities:sensitivities": 138,
}
"""How many files a public function reaches at most; HOUSE asks for 20, 60, 75, 90, 100 and 90."""
SAME_NAME = 14
"""Names of classes that stand in several files."""
ONE_PLACE = {
    "a Newton loop on constraints": (r"range\(NEWTON_STEPS", 3),
    "a series of Bernoulli's numbers": (r"(?m)^_D = |BERNOULLI", 1),
    "a list of ball joints": (r"LINK_NV\] > 1", 1),
    "the classical tableau": (r"1 / 6, 1 / 3, 1 / 3, 1 / 6|\[1\.0, 2\.0, 2\.0, 1\.0\]", 1),
}
"""A pattern in the source, and in how many places it stands."""


def test_every_module_is_in_a_room():
    assert {room(module) for module in modules()} == {*ROOMS, "face"}


def test_imports_run_down():
    up = {(module, f"{source}:{name}") for module in modules() for source, name in imports(module)
          if room(module) != "face" and room(source) in ROOMS and ROOMS.index(room(source)) > ROOMS.index(room(module))}
    assert up == SHORTHANDS


def test_only_what_people_look_at_uses_the_face():
    users = {room(module) for module in modules() for source, _ in imports(module) if room(source) == "face"}
    assert users <= {"look", "face"}


def test_no_circles():
    """Modules can be put in an order in which each imports only what comes before; calls by name are left out."""
    needs = {module: {source for source, _ in imports(module) if source != module} for module in modules()}
    for module in modules():
        needs[module] -= {source for source, name in imports(module) if _by_name(module, source, name)}
    # a package hands on what its modules define, and they are imported as modules of it
    while True:
        free = [module for module in needs if not needs[module] & needs.keys()]
        if not free:
            break
        for module in free:
            del needs[module]
    assert not needs, needs


def _by_name(module, source, name):
    return f'"liedyn.{source}:{name}"' in modules()[module].read_text()


def test_every_file_has_a_name_of_its_own():
    names = Counter(module.split(".")[-1] for module, path in modules().items()
                    if path.name != "__init__.py" and room(module) != "face")
    assert not [name for name, count in names.items() if count > 1]


def test_names_of_classes():
    """Two kinds of records with one name are hard to find; `NamedTuple` types of kernels are all different."""
    places = defaultdict(list)
    for module in modules():
        for node in tree(module).body:
            if type(node).__name__ == "ClassDef":
                places[node.name].append(any(getattr(base, "id", "") == "NamedTuple" for base in node.bases))
    several = {name: kinds for name, kinds in places.items() if len(kinds) > 1}
    assert len(several) <= SAME_NAME, sorted(several)
    assert not [name for name, kinds in several.items() if sum(kinds) > 1]


@pytest.mark.parametrize("function", REACH)
def test_files_reached_by_a_function(function):
    found = reached(*function.split(":"))
    assert len(found) <= REACH[function], sorted(found)


@pytest.mark.parametrize("what", ONE_PLACE)
def test_one_place_for(what):
    pattern, most = ONE_PLACE[what]
    found = [path.relative_to(PACKAGE) for path in modules().values() for _ in re.findall(pattern, path.read_text())]
    assert 0 < len(found) <= most, found


def test_the_source_is_read_as_it_is():
    """The reader of imports finds what is known to be there: plain, of a module, later in a function, and by name."""
    assert ("model.packed", "N_LINKS") in imports("mechanics.tree.rnea") or definitions("mechanics.tree.rnea")
    assert any(name is None for _, name in imports("mechanics.constraints.constraint_rows"))
    assert ("look.cli.info", "print_info") in imports("look.cli")
    assert ("files.toml", "load_toml") in imports("files.load")
    assert "mechanics.tree.rnea" in reached("mechanics.tree.rnea", "rnea")


def test_the_picture_of_the_rooms_is_current():
    assert PICTURE.read_text() == drawn(arrows()), "python tests/draw_rooms.py draws it"


@pytest.mark.parametrize("page", ["ARCHITECTURE", "CONTRIBUTING"])
def test_files_that_pages_name_exist(page):
    known = {path.name for path in [*modules().values(), *(PACKAGE.parent / "tests").rglob("*.py")]}
    text = (PACKAGE.parent / "docs" / f"{page}.md").read_text()
    assert not {name.split("/")[-1] for name in re.findall(r"[\w/]+\.py\b", text)} - known
