"""What an optimizer knows of operators stands in rule files: Python names none, but for what speaks ONNX."""

from __future__ import annotations

import ast
from pathlib import Path

import onnx
import pytest

from smartmem_rules.rulebase.base import load_rules

ROOT = Path(__file__).parents[1] / "smartmem_rules"
SPEAKERS = {
    "graph": "reads ONNX models",
    "checking/walk.py": "reads ONNX models",
    "fuzzing/recipes": "draws ONNX models",
    "writing": "writes ONNX models",
    "runtime/reference.py": "says where ONNX Runtime ends the process",
    "report/drawings.py": "draws the graphs of ONNX models",
    "decoding/model/graphs.py": "writes ONNX nodes around language models",
    "decoding/model/pairs.py": "reads and writes ONNX nodes of models of two decoders",
    "quantization": "writes ONNX models whose weights have few bits",
    "simplification": "reads and writes ONNX models",
    "language/printing/other_functions.py": "says what to write for operators and functions of other systems",
    "fuzzing/expected": "lists what other implementations of ONNX do wrongly, and where they round",
}
"""Modules and folders that name operators, and why they may."""
OTHER_THINGS = {
    "certificate/terms.py": {"Constant"},  # a form of terms, beside Input and View
    "egraph/model.py": {"Constant"},
    "language/roots.py": {"Beside"},  # how a rule of several patterns is written out; the shipped rules define it
    "language/syntax.py": {"Constant", "Slice"},  # classes of syntax
    "verification/mutation/mutate.py": {"Abs", "Add", "Div", "Mul", "Neg", "Sub"},  # slips of whoever writes a rule
}
"""Strings that are the names of something else as well."""
NAMES = frozenset(load_rules().operators) | {schema.name for schema in onnx.defs.get_all_schemas()}
FILES = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py"))


def named(file: str) -> set[str]:
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return texts & NAMES


def test_python_names_no_operator() -> None:
    others = [file for file in FILES if not any(file == one or file.startswith(f"{one}/") for one in SPEAKERS)]
    found = {file: names for file in others if (names := named(file) - OTHER_THINGS.get(file, set()))}
    assert found == {}


@pytest.mark.parametrize("file", [*SPEAKERS, *OTHER_THINGS])
def test_the_exceptions_name_some(file: str) -> None:
    assert any(named(one) for one in FILES if one == file or one.startswith(f"{file}/"))
    assert all(OTHER_THINGS.get(file, set()) <= named(one) for one in FILES if one == file)
