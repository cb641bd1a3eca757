"""The generated readers are those of the schema."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from smartmem_rules.runtime.format import plan_pb2 as pb
from smartmem_rules.tensor.types import ALL_DTYPES

ROOT = Path(__file__).parents[3]
FORMAT = ROOT / "smartmem_rules" / "runtime" / "format"
TOOLS = ROOT / "build" / "schema" / "bin" / "python"


def _fields_of_python() -> set[tuple[str, str, int]]:
    messages = pb.DESCRIPTOR.message_types_by_name.values()
    return {(message.name, field.name, field.number) for message in messages for field in message.fields}


def _fields_of_schema() -> set[tuple[str, str, int]]:
    found = set()
    text = (FORMAT / "plan.proto").read_text("utf-8")
    for name, body in re.findall(r"^message (\w+) \{\n(.*?)^\}", text, re.M | re.S):
        found |= {(name, field, int(tag)) for field, tag in re.findall(r"^  [\w ]+ (\w+) = (\d+);", body, re.M)}
    return found


def _fields_of_c() -> set[tuple[str, str, int]]:
    text = (ROOT / "runtime" / "c" / "src" / "plan.pb.h").read_text("utf-8")
    tags = re.findall(r"^#define smartmem_format_([A-Z][a-z]+)_(\w+)_tag\s+(\d+)$", text, re.M)
    return {(message, field, int(tag)) for message, field, tag in tags}


def test_python_c_and_the_schema_have_the_same_fields() -> None:
    assert _fields_of_python() == _fields_of_schema() == _fields_of_c()


def test_each_element_type_has_its_number() -> None:
    assert [name.lower() for name in pb.Element.keys()[1:]] == list(ALL_DTYPES)


def test_the_schema_makes_the_committed_readers(tmp_path: Path) -> None:
    if not TOOLS.exists():
        pytest.skip("the tools of the schema are not installed; `make schema` does it")
    python = str(TOOLS)
    made = tmp_path / "smartmem_rules" / "runtime" / "format"
    source = str((FORMAT / "plan.proto").relative_to(ROOT))
    protoc = [python, "-m", "grpc_tools.protoc", "-I", ".", f"--python_out={tmp_path}", f"--pyi_out={tmp_path}", source]
    subprocess.run(protoc, cwd=ROOT, check=True)
    nanopb = [str(TOOLS.parent / "nanopb_generator"), "-q", "-I", str(FORMAT), "-D", str(tmp_path)]
    subprocess.run([*nanopb, "-f", str(FORMAT / "plan.options"), "plan.proto"], cwd=ROOT, check=True)
    for name in ("plan_pb2.py", "plan_pb2.pyi"):
        assert (made / name).read_text() == (FORMAT / name).read_text(), f"{name}: run `make schema`"
    for name in ("plan.pb.c", "plan.pb.h"):
        committed = ROOT / "runtime" / "c" / "src" / name
        assert (tmp_path / name).read_text() == committed.read_text(), f"{name}: run `make schema`"
