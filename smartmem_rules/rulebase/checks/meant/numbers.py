"""Numbers of blocks that their keys do not have: what they would do to a later stage is told here."""

from __future__ import annotations

from smartmem_rules.language import syntax as s
from smartmem_rules.language.blocks.keys import Key
from smartmem_rules.language.codes import Code
from smartmem_rules.language.diagnostics import Diagnostic
from smartmem_rules.language.fixes import advice


def out_of_range(key: Key, entry: s.Entry, number: int, value: float) -> Diagnostic | None:
    """A number that the key does not have at a place among its values."""
    within = key.range_at(number if key.kind == "number" else number - 1)
    fraction = key.whole and not float(value).is_integer()
    if within.admits(value) and not fraction:
        return None
    kind = "a whole number" if key.whole else "a number"
    said = within.told(value) if within.only else f"{kind} {within.told(value)}"
    turned = abs(round(value)) if key.whole else abs(value)
    fix = _with(key, entry, number, str(turned)) if within.admits(turned) else _chosen(key, entry, number, said)
    message = f"`{key.name}` is {said}, not {value}"
    note = f"it means: {key.meaning}"
    return Diagnostic(Code.BAD_VALUE, "error", message, entry.place(f"value:{number}"), note=note, fix=advice(fix))


def _chosen(key: Key, entry: s.Entry, number: int, said: str) -> str:
    """What to write where only the author knows the number."""
    within = key.range_at(number)
    if within.only and within.usual is not None:
        return f"{_with(key, entry, number, f'{within.usual:g}')}, or another one of {', '.join(map(str, within.only))}"
    if key.most is None and len(entry.values) > key.least:
        others = [str(one) for place, one in enumerate(entry.values) if place != number]
        return f"leave `{entry.values[number]}` out: `{key.name} {' '.join(others)};`"
    shown = f"{_with(key, entry, number, 'NUMBER')} with {said}"
    if key.required or key.repeats:
        return shown
    return (
        f"{shown}, or leave it out: then it is {key.default}" if key.default != "none" else f"{shown}, or leave it out"
    )


def _with(key: Key, entry: s.Entry, number: int, text: str) -> str:
    shown = [str(one) for one in entry.values]
    shown[number] = text
    return f"write `{key.name} {' '.join(shown)};`"
