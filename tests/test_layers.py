"""Who may import whom: packages stand one above the other, and no modules import each other in a circle."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "smartmem_rules"
LAYERS = (
    "records", "errors", "environment", "logs", "resources", "collector", "limits", "arguments", "stages",
    "whole_files", "linear_programs", "language", "tensor", "guards", "analysis", "exchange", "statistics", "rulebase",
    "graph", "certificate", "egraph", "extraction", "writing", "plan", "provenance",
    "simulate", "invariants", "probes", "emit", "runtime", "checking", "tuning", "kept_plans", "pipeline",
    "explanation", "report", "verification", "simplification", "quantization", "planned", "room", "decoding",
    "optimized", "bundle", "doctor", "specialized", "views", "torch_backend", "api", "benchmarking", "fuzzing",
    "lsp", "reference", "onnx_backend", "schema", "cli",
)  # fmt: skip
"""From the bottom to the top: a package imports those before it only."""
MOST_MODULES = 20
MOST_LINES = 400
"""Of a module: one that grows beyond is split by what its parts do."""
FAMILIES = {frozenset({"tensor.extents", "tensor.extent_factors", "tensor.division", "tensor.ranges"})}
"""Circles that a class and the functions behind its operators make: an extent divides, and a quotient is an extent."""


@dataclass(frozen=True)
class Import:
    """One import of a module of ours.

    Attributes:
        line: where it stands.
        inside: whether it stands in a function.
        typed: whether only type checkers see it: it points down like others, but makes no circle.
        text: the line, and the one above it.
    """

    target: str
    line: int
    inside: bool
    typed: bool
    text: str


def modules() -> dict[str, Path]:
    """All modules by name, without the package's own."""
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for path in ROOT.rglob("*.py")
        if path != ROOT / "__init__.py"
    }


MODULES = modules()


def imports(path: Path) -> Iterator[Import]:
    """What a module imports of ours."""
    lines = path.read_text("utf-8").splitlines()

    def walk(node: ast.AST, inside: bool, typed: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ImportFrom) and (child.module or "").startswith("smartmem_rules"):
                package = (child.module or "").removeprefix("smartmem_rules").removeprefix(".")
                for alias in child.names:
                    full = f"{package}.{alias.name}".lstrip(".")
                    text = "\n".join(lines[max(0, child.lineno - 2) : child.lineno])
                    yield Import(full if full in MODULES else package, child.lineno, inside, typed, text)
            deeper = inside or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
            only_types = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)
            yield from walk(child, deeper, typed or only_types)

    yield from walk(ast.parse("\n".join(lines)), False, False)


@cache
def graph_of_imports() -> dict[str, list[Import]]:
    """What each module imports of ours."""
    return {name: [one for one in imports(path) if one.target and one.target != name] for name, path in MODULES.items()}


def circles(graph: Mapping[str, set[str]]) -> list[frozenset[str]]:
    """The strongly connected parts of more than one module."""
    reached: dict[str, set[str]] = {}
    for start in graph:
        seen: set[str] = set()
        stack = [start]
        while stack:
            for following in graph.get(stack.pop(), set()) - seen:
                seen.add(following)
                stack.append(following)
        reached[start] = seen
    found = {frozenset(b for b in reached[a] if a in reached.get(b, ())) for a in graph if a in reached[a]}
    return sorted((one for one in found if len(one) > 1), key=sorted)


@pytest.mark.parametrize("package", LAYERS)
def test_arrows_point_down(package: str) -> None:
    below = set(LAYERS[: LAYERS.index(package) + 1])
    wrong = [
        f"{name}:{one.line} imports {one.target}"
        for name, found in graph_of_imports().items()
        if name.split(".")[0] == package
        for one in found
        if one.target.split(".")[0] not in below
    ]
    assert not wrong, "\n".join(wrong)


def test_every_package_has_its_layer() -> None:
    assert {name.split(".")[0] for name in MODULES} == set(LAYERS)


@pytest.mark.parametrize("page", ["README.md", "docs/architecture.md"])
def test_the_table_of_folders_names_every_package(page: str) -> None:
    rows = [line for line in (ROOT.parent / page).read_text("utf-8").splitlines() if line.startswith("| `")]
    named = {
        word.split("/")[-1].split(".")[0] for row in rows for word in re.findall(r"`([\w./]+)`", row.split(" | ")[0])
    }
    assert {path.name for path in ROOT.iterdir() if (path / "__init__.py").exists()} - named == set()


@pytest.mark.parametrize("page", ["architecture.md", "glossary.md"])
def test_pages_name_modules_that_are_there(page: str) -> None:
    text = (ROOT.parent / "docs" / page).read_text("utf-8")
    named = {name for name in re.findall(r"`((?:\w+\.)+\w+)`", text) if name.split(".")[0] in LAYERS}
    packages = {".".join(path.parent.relative_to(ROOT).parts) for path in MODULES.values()}
    known = {*MODULES, *packages}
    # a module, or a name in one
    assert {name for name in named if name not in known and name.rpartition(".")[0] not in MODULES} == set()


def test_no_modules_import_each_other_in_a_circle() -> None:
    graph = {
        name: {one.target for one in found if one.target in MODULES and not one.typed}
        for name, found in graph_of_imports().items()
    }
    found = [circle for circle in circles(graph) if circle not in FAMILIES]
    assert not found, "\n".join(", ".join(sorted(circle)) for circle in found)


def test_folders_of_one_package_import_each_other_in_no_circle() -> None:
    with_folders = {above for path in MODULES.values() for above in path.parent.parents}

    def room(name: str) -> str:
        """The folder of a module; one that lies beside folders stands for itself."""
        folder = MODULES[name].parent
        return name if folder in with_folders else ".".join(folder.relative_to(ROOT).parts) or name

    graph: dict[str, set[str]] = {}
    for name, found in graph_of_imports().items():
        targets = {room(one.target) for one in found if one.target in MODULES and not one.typed}
        graph.setdefault(room(name), set()).update(targets - {room(name)})
    found = [circle for circle in circles(graph) if circle not in FAMILIES]
    assert not found, found


def test_folders_are_small() -> None:
    sizes = {folder: len(list(folder.glob("*.py"))) for folder in {path.parent for path in MODULES.values()}}
    assert {str(folder): size for folder, size in sizes.items() if size > MOST_MODULES} == {}


def test_modules_are_short() -> None:
    lengths = {name: len(path.read_text("utf-8").splitlines()) for name, path in MODULES.items()}
    assert {name: length for name, length in lengths.items() if length > MOST_LINES} == {}


def test_functions_import_for_the_sake_of_start_up_time_only() -> None:
    wrong = [
        f"{name}:{one.line} imports {one.target}"
        for name, found in graph_of_imports().items()
        for one in found
        if one.inside and "start-up" not in one.text and name.split(".")[0] != "tensor"
    ]
    assert not wrong, "\n".join(wrong)
