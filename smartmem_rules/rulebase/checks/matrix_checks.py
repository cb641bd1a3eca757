"""What is wrong with `matrix` blocks: fragments that do not hold each element once, texts that do not exist."""

from __future__ import annotations

from collections.abc import Iterator

from smartmem_rules.language import syntax as s
from smartmem_rules.language.blocks.keys import value_place
from smartmem_rules.language.blocks.matrix import Matrix
from smartmem_rules.language.codes import Code
from smartmem_rules.language.diagnostics import Diagnostic
from smartmem_rules.language.expressions import Span
from smartmem_rules.language.fixes import advice, any_of, spelling
from smartmem_rules.language.schema import typed
from smartmem_rules.resources import templates_path


def check_matrix(block: s.Block) -> Iterator[Diagnostic]:
    """The problems of a `matrix` block whose keys and values are those of the schema."""
    unit = typed(block)
    assert isinstance(unit, Matrix)
    for name, fragment in unit.fragments.items():
        fault = fragment.fault(unit.lanes)
        if fault:
            message = f"the fragment `{name}` of `{block.name}`: {fault}"
            place = _place(block, f"{name}_lanes")
            fix = advice("write the digits so that each element of the fragment lies in exactly one place")
            note = (
                f"`{name}_lanes` and `{name}_elements` are digits of the lane's and of the element's number: how many "
                "values each has, and by how many rows and columns one more of it moves"
            )
            yield Diagnostic(Code.BAD_VALUE, "error", message, place, note=note, fix=fix)
    if unit.in_local_memory and not unit.widths:
        fix = advice("add `widths` with the columns that a load takes: `widths 64 128;`")
        message = f"`{block.name}` reads its factors from local memory, but no `widths` say how many columns at a time"
        yield Diagnostic(Code.BAD_VALUE, "error", message, value_place(block, "operands", 0), fix=fix)
    texts = {path.stem: path for path in templates_path().glob("matrix_*.cl")}
    if unit.texts not in texts:
        place = value_place(block, "texts", 0)
        message = f"codegen/ has no file `{unit.texts}.cl`"
        fix = spelling(unit.texts, texts, place) or advice(f"write one of {any_of(texts)}")
        yield Diagnostic(Code.BAD_VALUE, "error", message, place, fix=fix)


def _place(block: s.Block, key: str) -> Span:
    """Where the first value of a key stands, or that of the shape where there is none."""
    there = any(entry.key == key for entry in block.entries)
    return value_place(block, key if there else "shape", 0)
