"""What is wrong with `matrix` blocks: fragments that do not hold each element once, texts that do not exist."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from smartmem_rules.language import syntax as s
from smartmem_rules.language.blocks.keys import value_place
from smartmem_rules.language.blocks.matrix import Digit, Fragment, Matrix
from smartmem_rules.language.codes import Code
from smartmem_rules.language.diagnostics import Diagnostic
from smartmem_rules.language.expressions import Span
from smartmem_rules.language.fixes import advice, any_of, replacement, spelling
from smartmem_rules.language.schema import typed
from smartmem_rules.resources import templates_path

_MOST_WAYS = 4
"""Ways to mend a fragment that a message names; of more, nothing tells which is meant."""


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
            mended = [_written(block, one) for one in _mended(name, fragment, unit.lanes)]
            if len(mended) == 1:
                ((entry, text),) = mended
                place = entry.place("value:0")
                fix = replacement(f"write `{text};`", entry.span, f"{text};")
            elif 1 < len(mended) <= _MOST_WAYS:
                place = mended[0][0].place("value:0")
                ways = " or ".join(f"`{text};` for `{_text_of(entry)};`" for entry, text in mended)
                fix = advice(f"write {ways}")
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


def _written(block: s.Block, mended: tuple[str, int, Digit]) -> tuple[s.Entry, str]:
    """The entry of a digit that is to be another one, and what is to stand there."""
    key, number, digit = mended
    entry = [one for one in block.entries if one.key == key][number]
    return entry, " ".join(map(str, (key, digit.extent, digit.rows, digit.columns)))


def _text_of(entry: s.Entry) -> str:
    return " ".join([entry.key, *(str(one) for one in entry.values)])


def _mended(name: str, fragment: Fragment, lanes: int) -> list[tuple[str, int, Digit]]:
    """The digits of which another one would mend the fragment: first how many values one has, then how far it moves."""
    for moved in (False, True):
        found: list[tuple[str, int, Digit]] = []
        for key, digits in (("lanes", fragment.lanes), ("elements", fragment.elements)):
            for number, digit in enumerate(digits):
                for other in _other_digits(digit, fragment, lanes, moved):
                    changed = (*digits[:number], other, *digits[number + 1 :])
                    made = replace(fragment, lanes=changed) if key == "lanes" else replace(fragment, elements=changed)
                    if not made.fault(lanes):
                        found.append((f"{name}_{key}", number, other))
        if found:
            return found
    return []


def _other_digits(digit: Digit, fragment: Fragment, lanes: int, moved: bool) -> Iterator[Digit]:
    if not moved:
        most = max(lanes, fragment.rows, fragment.columns)
        yield from (digit._replace(extent=extent) for extent in range(2, most + 1) if extent != digit.extent)
        return
    steps = product(range(fragment.rows), range(fragment.columns))
    yield from (digit._replace(rows=rows, columns=columns) for rows, columns in steps)


def _place(block: s.Block, key: str) -> Span:
    """Where the first value of a key stands, or that of the shape where there is none."""
    there = any(entry.key == key for entry in block.entries)
    return value_place(block, key if there else "shape", 0)
