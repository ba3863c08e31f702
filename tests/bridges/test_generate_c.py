"""Generated C beside liedyn: far from home, and where it has to say that there is no result."""
import re
import shutil
import subprocess

import numpy as np
import pytest
from c_programs import FLAGS, Compiled, clang, gcc, kept_program, moving_states, zig
from sprung_robots import of_users_law, sprung
from tree_cases import bundled

import liedyn as ld
from liedyn.bridges.specialization.c_names import identifiers
from liedyn.bridges.specialization.references import reference_state
from liedyn.bridges.specialization.step_programs import StepPrograms
from liedyn.model import Builder

pytestmark = pytest.mark.skipif(gcc() is None, reason="needs gcc")

OK, NOT_FINITE, GUARD, NOT_CLOSED = range(4)
TREE = ("rnea", "aba", "crba", "rnea_derivatives", "aba_derivatives", "rnea_hessian", "aba_hessian")
ALL = ("rnea", "forward_dynamics", "linearize", "close", "step")


def ball():
    """Two rods with ball joints, closed by a ball cut; springs and dampers."""
    builder = Builder("ball", gravity=(0.5, -1.0, -9.81))
    for k, (parent, place) in enumerate((("ground", (0, 0, 0)), ("rod 0", (1.0, 0, 0)))):
        builder.body(f"rod {k}", 1.0 + k, (0.5, 0.0, 0.1), (0.1, 0.2, 0.15))
        builder.joint(f"ball {k}", "spherical", parent, f"rod {k}", place, stiffness=2.0, damping=0.1)
    builder.loop("end", "spherical", "ground", "rod 1", (1.2, 0.8, 0.1), (0.9, 0.0, 0.0))
    return builder


def floating():
    """A floating base with a four-bar."""
    builder = Builder("floating")
    builder.body("base", 3.0, (0.0, 0.1, 0.0), (0.2, 0.3, 0.4))
    builder.joint("base", "free", "ground", "base")
    for k, (parent, place) in enumerate((("base", (0, 0, 0)), ("link 0", (0.5, 0, 0)), ("base", (1.0, 0, 0)))):
        builder.body(f"link {k}", 0.5, (0.2, 0.0, 0.0), (0.01, 0.02, 0.02))
        builder.joint(f"hinge {k}", "revolute", parent, f"link {k}", place, axis=(0, 0, 1), armature=0.01)
    builder.loop("pin", "revolute", "link 1", "link 2", (1.0, 0, 0), (0.5, 0, 0), axis=(0, 0, 1))
    return builder


def geared():
    """A slider and a wheel, coupled by a rack; a helical joint in the tree and a cylindrical cut."""
    builder = Builder("geared")
    builder.body("slider", 1.0, (0.1, 0.0, 0.0), (0.1, 0.1, 0.1))
    builder.joint("slide", "prismatic", "ground", "slider", axis=(1, 0, 0), stiffness=5.0)
    builder.body("wheel", 2.0, (0.0, 0.05, 0.0), (0.1, 0.2, 0.3))
    builder.joint("turn", "revolute", "slider", "wheel", axis=(0, 0, 1))
    builder.body("nut", 0.3, (0.0, 0.02, 0.1), (0.02, 0.02, 0.02))
    builder.joint("screw", "helical", "wheel", "nut", axis=(0, 1, 0), pitch=0.03, damping=0.2)
    builder.constraint("rack", "coupling", coefficients={"slide": 1.0, "turn": -0.2})
    return builder


ROBOTS = {
    "five_bar": (lambda: bundled("five_bar"), ALL, 0.7), "four_bar": (lambda: bundled("four_bar"), ALL, 0.7),
    "loader": (lambda: bundled("loader"), ALL, 0.3),
    "panda": (lambda: bundled("panda"), ("rnea", "aba", "crba", "forward_dynamics", "step"), 1.5),
    "whipple_bicycle": (lambda: bundled("whipple_bicycle"), ("forward_dynamics", "close", "step"), 0.3),
    "rolling_spheres": (lambda: bundled("rolling_spheres"), ("forward_dynamics", "step"), 0.5),
    "bricard": (lambda: bundled("bricard"), ("forward_dynamics", "step"), 0.5),
    "ball": (lambda: ball().build(), ("forward_dynamics", "close", "step"), 0.5),
    "floating": (lambda: floating().build(), (*TREE, "forward_dynamics", "close", "step"), 0.4),
    "sprung": (sprung, ("forward_dynamics", "linearize", "step"), 0.3),
    "geared": (lambda: geared().build(), (*ALL, "rnea_derivatives", "aba_derivatives"), 0.5),
}


@pytest.fixture(scope="module", params=ROBOTS)
def compiled(request, tmp_path_factory):
    build, functions, spread = ROBOTS[request.param]
    robot = build()
    return robot, Compiled(robot, tmp_path_factory.mktemp(request.param), functions=functions), spread


def off(found, expected):
    """Largest difference of rows, relative to the largest number of each row where that is above one."""
    expected = np.reshape(expected, found.shape)
    return (np.abs(found - expected).max(1) / np.maximum(1.0, np.abs(expected).max(1))).max()


def expected_of(robot, name, q, v, tau):
    """Arguments after q, and the results of liedyn in the order of the C function."""
    if name in ("aba", "aba_derivatives", "rnea", "rnea_derivatives"):
        found = getattr(ld, name)(robot, q, v, tau)
        return (v, tau), found if isinstance(found, tuple) else (found,)
    if name in ("rnea_hessian", "aba_hessian"):
        weights = np.linspace(-1.0, 2.0, robot.nv) + 0.1 * v
        second = getattr(ld, name.replace("hessian", "second_derivatives"))
        return (v, tau, weights), second(robot, q, v, tau, weights=weights)
    if name == "crba":
        return (), (ld.crba(robot, q),)
    if name == "forward_dynamics":
        found = ld.forward_dynamics(robot, q, v, tau)
        return (v, tau), (found.a, found.lam)
    if name == "linearize":
        found = ld.linearize(robot, q, v, tau)
        return (v, tau), (found.A, found.B, found.f0)
    if name == "step":
        stepped = [ld.step(robot, *state, dt=1e-4) for state in zip(q, v, tau)]
        return (v, tau, 1e-4), tuple(map(np.array, zip(*stepped)))
    return (), (ld.close(robot, q),)


def test_results(compiled):
    robot, functions, spread = compiled
    q, v, tau = moving_states(robot, 40, spread)
    for name in functions.arguments:
        at = ld.integrate(robot, q, 0.02 * v) if name == "close" else q
        arguments, expected = expected_of(robot, name, at, v, tau)
        codes, found = functions(name, at, *arguments)
        good = codes == OK
        assert good.mean() >= 0.9 and set(codes) <= {OK, GUARD}, (name, codes)
        for x, y in zip(found.values(), expected, strict=False):
            assert off(x[good], y[good]) < 1e-12, name
            assert np.isnan(x[~good]).all()


def test_no_wrong_number_without_a_notice(compiled):
    """Off the loop, where linear models do not exist; infinite; not a number; too large."""
    robot, functions, spread = compiled
    q, v, tau = moving_states(robot, 5, spread, seed=2)
    for name in set(functions.arguments) - {"close"}:
        given = expected_of(robot, name, q, v, tau)[0]
        for bad in (np.nan, np.inf, -1e60):
            for k in range(1 + len(given)):
                arguments = [np.array(x) if np.ndim(x) else np.full((len(q), 1), x) for x in (q, *given)]
                arguments[k][:, -1] = bad
                codes, found = functions(name, *arguments)
                assert (codes != OK).all() and all(np.isnan(x).all() for x in found.values()), name
    if "linearize" in functions.arguments:
        codes, found = functions("linearize", ld.integrate(robot, q, np.full(robot.nv, 1e-3)), v, tau)
        assert (codes == GUARD).all() and all(np.isnan(x).all() for x in found.values())
        codes, _ = functions("linearize", q, v + 1e-3, tau)
        assert (codes == GUARD).all()


def test_close_finds_none(compiled):
    """From far away: either a closed configuration, or a code."""
    robot, functions, _ = compiled
    if not robot.row_names or "close" not in functions.arguments:
        return
    guess = ld.random_configuration(robot, 1, 200)
    codes, found = functions("close", guess)
    good = codes == OK
    assert good.sum() >= 10
    assert np.isnan(found["q"][~good]).all()
    assert abs(ld.closure_error(robot, found["q"][good])).max() < 1e-12


def test_a_program_is_kept_for_its_sources_and_flags(tmp_path):
    """What tests run is compiled from what was generated now, whatever an earlier run has left."""
    source, header = tmp_path / "a.c", tmp_path / "a.h"
    source.write_text('#include "a.h"\nint main(void) { return CODE; }\n')
    found = {}
    for code, flags in ((3, ()), (4, ()), (3, ("-O1",)), (3, ())):
        header.write_text(f"#define CODE {code}\n")
        program = kept_program([gcc()], [*FLAGS, *flags], [source], [header])
        assert subprocess.run([program]).returncode == code
        found[code, flags] = program
    assert len(set(found.values())) == 3


def test_singular(tmp_path):
    """A stretched slider-crank, and states ever closer to it, down to where decisions are in doubt."""
    robot = bundled("slider_crank")
    functions = Compiled(robot, tmp_path, functions=("forward_dynamics", "linearize"))
    near = np.concatenate([[0.0], 10.0 ** np.arange(-12.0, -1.0)])
    q = np.array([ld.close(robot, robot.home, **{robot.coordinate_names[0]: x}) for x in near])
    zeros = np.zeros((len(q), robot.nv))
    for name in ("forward_dynamics", "linearize"):
        codes, found = functions(name, q, zeros, zeros)
        for k, code in enumerate(codes):
            if code == OK:
                arguments, expected = expected_of(robot, name, q[k:k + 1], zeros[:1], zeros[:1])
                for x, y in zip(found.values(), expected):
                    assert off(x[k:k + 1], y) < 1e-10


def test_several_references(tmp_path):
    """At home alone guards fail elsewhere; the references that are chosen by themselves hold nearly everywhere."""
    robot = bundled("five_bar")
    q, v, tau = moving_states(robot, 200, 1.5)
    one = Compiled(robot, tmp_path / "one", "-O0", functions=("linearize",), at=robot.home)
    failed = one("linearize", q, v, tau)[0] != OK
    assert 0 < failed.sum() < 40
    codes, found = Compiled(robot, tmp_path / "more", "-O0", functions=("linearize",))("linearize", q, v, tau)
    assert (codes == OK).all()
    assert off(found["A"], ld.linearize(robot, q, v, tau).A) < 1e-10


def test_float(tmp_path):
    robot = bundled("five_bar")
    functions = Compiled(robot, tmp_path, functions=ALL, dtype="float")
    q, v, tau = moving_states(robot, 20, 0.5)
    for name in ("rnea", "forward_dynamics", "close", "step"):
        arguments, expected = expected_of(robot, name, q, v, tau)
        codes, found = functions(name, q, *arguments)
        assert (codes == OK).all(), name
        for x, y in zip(found.values(), expected):
            assert off(x, y) < 1e-3, name


NAMES = ['"; system("touch ran"); /*', "*/ int x; /*", "a\nb", "back\\", "??/", "%s%n", "int", "", "9 lives", "Ü 機械",
         "_x", "x" * 300, "a.b", "a b", "../../etc"]


def test_names_get_into_no_program(tmp_path):
    """Identifiers are made, and texts are letters, digits and a few signs."""
    for k, name in enumerate(NAMES):
        builder = Builder(name or "nameless", description=name, source=name)
        for j, other in enumerate(NAMES[1:4]):
            builder.body(f"{other} {name} {j}", 1.0, (0.1, 0.2, 0.0), (0.1, 0.1, 0.1))
            builder.joint(f"{name} {other}", "revolute", "ground", f"{other} {name} {j}", axis=(0, 0, 1))
            builder.actuator(f"{name} {j} {other}", f"{name} {other}")
        Compiled(builder.build(), tmp_path / str(k), "-O0", functions=("linearize", "close", "step"))
        for file in set((tmp_path / str(k)).glob("*.[ch]")) - {tmp_path / str(k) / "driver.c"}:
            text = file.read_text()
            inside = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
            assert text.isascii() and "??" not in text and "*/" not in inside and "system(" not in inside
            assert re.fullmatch(r"[\w.]+", file.name) and len(file.name) < 30


def test_quaternions_that_are_not_of_unit_length(compiled):
    """No result, as liedyn has none; a step makes them of unit length."""
    robot, functions, spread = compiled
    if robot.nq == robot.nv:
        return
    q, v, tau = moving_states(robot, 3, spread, seed=4)
    longer = np.array(q)
    for k, name in enumerate(robot.coordinate_names):
        longer[:, k] *= 1.1 if re.search(r"\.q[xyzw]$", name) else 1.0
    assert abs(longer - q).max() > 0.01
    for name in set(functions.arguments) - {"close", "step"}:
        given = expected_of(robot, name, q, v, tau)[0]
        codes, found = functions(name, longer, *given)
        assert (codes == GUARD).all() and all(np.isnan(x).all() for x in found.values()), name
    codes, found = functions("step", longer, v, tau, 1e-4)
    assert (codes == OK).all() and off(found["q_new"], functions("step", q, v, tau, 1e-4)[1]["q_new"]) < 1e-12


@pytest.mark.parametrize("name", ["five_bar", "floating"])
def test_clang(tmp_path, name):
    """Warnings are errors, and results are the same."""
    if clang() is None:
        pytest.skip("needs clang, or the one in package ziglang")
    in_another_compiler(name, tmp_path, "-O2", compiler=clang())


def test_arm(tmp_path):
    """Cross-compiled for a processor of ARM of 32 bits, and run by an emulator."""
    if zig() is None or shutil.which("qemu-arm") is None:
        pytest.skip("needs package ziglang, and qemu-arm of qemu-user")
    target = ("-target", "arm-linux-musleabihf", "-static")
    in_another_compiler("five_bar", tmp_path, "-O2", *target, compiler=zig(), emulator=["qemu-arm"])


def in_another_compiler(name, folder, *flags, **commands):
    build, functions, spread = ROBOTS[name]
    robot = build()
    compiled = Compiled(robot, folder, *flags, functions=functions, **commands)
    q, v, tau = moving_states(robot, 20, spread)
    for name in compiled.arguments:
        at = ld.integrate(robot, q, 0.02 * v) if name == "close" else q
        arguments, expected = expected_of(robot, name, at, v, tau)
        codes, found = compiled(name, at, *arguments)
        good = codes == OK
        assert good.mean() >= 0.75 and set(codes) <= {OK, GUARD}
        for x, y in zip(found.values(), expected, strict=False):
            assert off(x[good], y[good]) < 1e-12, name


def test_project(tmp_path):
    """The example runs; nothing but math.h is needed; there is no state, and the same robot gives the same files."""
    robot = bundled("loader")
    files = ld.generate_c(robot, tmp_path / "a")
    assert [file.rsplit("/")[-1] for file in files] == ["loader.h", "loader.c", "main.c", "CMakeLists.txt"]
    again = ld.generate_c(robot, tmp_path / "b")
    texts = [open(file).read() for file in files]
    assert texts == [open(file).read() for file in again]
    assert re.findall(r"#include (\S+)", texts[1]) == ["<math.h>", '"loader.h"']
    assert not re.search(r"\b(malloc|calloc|alloca|goto)\b", texts[1])
    assert all("const" in line for line in texts[1].splitlines() if re.match(r"\s*static [^(]*\[", line))
    program = tmp_path / "example"
    subprocess.run([gcc(), *FLAGS, files[1], files[2], "-o", program, "-lm"], check=True)
    printed = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    q, v = robot.home, np.zeros(8)
    for _ in range(100):
        q, v = ld.step(robot, q, v, np.zeros(8), 1e-3)
    assert np.array(re.findall(r"= (\S+)", printed), float) == pytest.approx(q, abs=1e-8)


def test_where_no_reference_is_well_conditioned():
    """Delta's dependent velocities have a large condition number everywhere near home: it has programs all the same."""
    robot = bundled("delta")
    programs = StepPrograms(robot, reference_state(robot, ld.close(robot, robot.home)))
    assert programs.trace("forward_dynamics").length() > 1000


def test_refused(tmp_path):
    with pytest.raises(ld.InputError, match="unknown function 'inverse'"):
        ld.generate_c(bundled("four_bar"), tmp_path, functions=("inverse",))
    with pytest.raises(ld.InputError, match="dtype must be"):
        ld.generate_c(bundled("four_bar"), tmp_path, dtype="half")
    with pytest.raises(ld.InputError, match="'five_bar' has functions of users"):
        ld.generate_c(of_users_law(), tmp_path)
    with pytest.raises(ld.SingularConfigurationError, match="give others as `at`"):
        ld.generate_c(floating().build(), tmp_path, at=floating().build().home)  # all links in one line
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("names", [("a_2", "a", "A"), ("a", "A", "a_1", "a-1"), ("x" * 30, "x" * 31), ("", "+", "if")])
def test_identifiers_of_different_names_are_different(names):
    """Two of one name would be two definitions of one place, and the second one would be read."""
    made = identifiers(names, "q")
    assert len(set(made)) == len(names) and all(re.fullmatch("[A-Z][A-Z0-9_]*", each) for each in made)


def test_more_references_than_letters(tmp_path):
    """Functions of reference states have numbers."""
    robot = bundled("four_bar")
    files = ld.generate_c(robot, tmp_path, functions=("rnea",), at=np.repeat(robot.home[None], 30, axis=0))
    subprocess.run([gcc(), *FLAGS, "-c", files[1], "-o", str(tmp_path / "made.o")], check=True)
