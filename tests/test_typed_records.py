"""What modules give each other has a type: a dictionary of anything stays inside of the module that makes it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1] / "smartmem_rules"
ANYTHING = re.compile(r"\b(dict|Mapping|MutableMapping)\[str, (typing\.)?Any\]")
EXCEPTIONS = {
    "cli.second_plan.asked_of_second": "the options of a command, as click gives them",
    "runtime.calibration.record.Calibration.of_data": "reads from a file what `data` wrote, and refuses anything else",
    "runtime.programs.shared_programs.programs_in": "programs of OpenCL, which pyopencl gives no type of by itself",
    "statistics.MemoryStatistics.of": "reads from a file what `data` wrote",
    "statistics.NearMiss.of": "reads from a file what `data` wrote",
    "statistics.RuleSource.of": "reads from a file what `data` wrote",
    "statistics.SaturationStatistics.of": "reads from a file what `asdict` made",
    "statistics.Statistics.of": "reads from a file what `data` wrote",
    "statistics.TensorLayout.of": "reads from a file what `asdict` made",
    "verification.instances.case.Choices": "what a slot holds depends on its name; those who draw it read it",
    "verification.proof.index_proofs.Translation": "variables of z3, which has no types",
    "verification.reproduce.both_sides": "choices, as they stand in a counterexample's snippet",
}
"""Where a dictionary of anything may pass between modules, and why."""


def untyped(tree: ast.Module) -> Iterator[str]:
    """The public functions, classes and aliases of a module whose types mention a dictionary of anything."""

    def walk(body: list[ast.stmt], before: str) -> Iterator[str]:
        for one in body:
            name = before + _name(one)
            if _name(one).startswith("_") and _name(one) != "__init__":
                continue
            if isinstance(one, ast.ClassDef):
                fields = [field.annotation for field in one.body if isinstance(field, ast.AnnAssign)]
                public = [field for field in one.body if not isinstance(field, ast.AnnAssign)]
                if any(map(_is_untyped, fields)):
                    yield name
                yield from walk(public, f"{name}.")
            elif isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef):
                given = [*one.args.posonlyargs, *one.args.args, *one.args.kwonlyargs, one.args.vararg, one.args.kwarg]
                types = [argument.annotation for argument in given if argument is not None]
                if any(map(_is_untyped, (*types, one.returns))):
                    yield name
            elif isinstance(one, ast.Assign) and isinstance(one.value, ast.Subscript) and _is_untyped(one.value):
                yield name

    yield from walk(tree.body, "")


def _name(one: ast.stmt) -> str:
    if isinstance(one, ast.Assign):
        return ast.unparse(one.targets[0])
    return str(getattr(one, "name", ""))


def _is_untyped(type_: ast.expr | None) -> bool:
    return type_ is not None and ANYTHING.search(ast.unparse(type_)) is not None


def test_no_dictionary_of_anything_passes_between_modules() -> None:
    found = {
        f"{'.'.join(path.relative_to(ROOT).with_suffix('').parts)}.{name}"
        for path in ROOT.rglob("*.py")
        if not path.name.endswith("_pb2.py")
        for name in untyped(ast.parse(path.read_text("utf-8")))
    }
    assert found == set(EXCEPTIONS)


def test_what_is_looked_for() -> None:
    text = """
Alias = dict[str, Any]
_Own = dict[str, Any]
class Record:
    data: Mapping[str, Any]
    def given(self, *, options: dict[str, Any] | None = None) -> None: ...
    def _own(self, options: dict[str, Any]) -> None: ...
    def typed(self, options: dict[str, object]) -> dict[str, int]: ...
class _Own:
    data: dict[str, Any]
def several() -> list[dict[str, Any]]: ...
async def waited(found: typing.Mapping[str, typing.Any]) -> None: ...
"""
    assert list(untyped(ast.parse(text))) == ["Alias", "Record", "Record.given", "several", "waited"]
