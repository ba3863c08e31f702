"""Large YAML files beside URDF: read, or refused, in seconds; without libyaml only small ones."""
import time

import pytest
from test_io_urdf_loops import YAML, with_extra, write

from liedyn.files.urdf_loops import read_yaml
from liedyn.machine.errors import ModelError


def bombs():
    yield "aliases of aliases", "a0: &a0 [x]\n" + "".join(f"a{k}: &a{k} [*a{k - 1}, *a{k - 1}]\n" for k in range(1, 60))
    yield "merged tables", "a0: &a0 {x: y}\n" + "".join(
        f"a{k}: &a{k} {{<<: [*a{k - 1}, *a{k - 1}]}}\n" for k in range(1, 60))
    yield "directives", "".join(f"%TAG !a{k}! b{k}\n" for k in range(120_000)) + "---\n"
    yield "deep lists", "x: " + "[" * 2_000_000 + "\n"
    yield "deep blocks", "x:\n" + "".join(" " * k + "-\n" for k in range(2_000)) + "\n"
    yield "empty lists", "x: [" + "[]," * 650_000 + "]\n"
    yield "many words", "x: [" + "a," * 1_000_000 + "]\n"
    yield "many keys", "".join(f"k{k}: v\n" for k in range(180_000))
    yield "many documents", "--- a\n" * 300_000
    yield "a long word", "x: " + "a" * 2_000_000 + "\n"
    yield "many loops", "x: [\n" + "".join(f"[left{k}, right{k}],\n" for k in range(90_000)) + "]\n"
    yield "many joints", "joint_name: [" + ", ".join(f"joint{k}" for k in range(150_000)) + "]\n"
    yield "loops once more", "CLOSED [" + "[hook, eye], " * 150_000 + "]\n"
    yield "loops of unknown frames", "CLOSED [" + "".join(f"[hook, eye{k}], " for k in range(100_000)) + "]\n"


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in bombs()])
def test_large_yaml_is_read_or_refused_in_seconds(tmp_path, text):
    """By time of the processor, where PyYAML has its parser in C."""
    yaml = pytest.importorskip("yaml")
    if not yaml.__with_libyaml__:
        pytest.skip("without libyaml less is read")
    write(tmp_path, text.replace("CLOSED", "closed_loop:") if "CLOSED" in text else text + "closed_loop: []\n",
          "robot.yaml")
    began = time.process_time()
    try:
        with_extra(tmp_path)
    except ModelError as error:
        assert "robot.yaml: " in str(error) and len(str(error)) < 2000
    # 0.1 to 0.9 s on a quiet machine, up to twice that beside busy neighbours; what this guards against takes minutes
    assert time.process_time() - began < 5.0


def test_without_libyaml_little_is_read(monkeypatch):
    yaml = pytest.importorskip("yaml")
    monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    assert read_yaml(YAML.encode())["type"] == ["3d"]
    with pytest.raises(ModelError, match="without libyaml"):
        read_yaml(b"x: [" + b"a, " * 100_000 + b"]")
