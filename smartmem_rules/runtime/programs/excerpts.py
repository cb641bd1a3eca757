"""The part of the prelude that a program needs, for a driver that would compile all of it before each small kernel.

The prelude (`codegen/prelude.cl`) has functions for all kernels; most need few of them, and what clang takes to read
the others, and the declarations of the built-in functions that those call, is most of what a small program takes. What
is left out defines names, as a function, a macro, or functions that a macro writes, none of which occurs in what stays:
neither in the kernels nor in a condition of the preprocessor. So the program means what it meant.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from smartmem_rules.records import dataclass

PRELUDE_END = "\n#endif // SMR_PRELUDE\n"
"""How what every kernel relies on ends (codegen/prelude.cl)."""
_NAME = re.compile(r"[A-Za-z_]\w*")
_WORDS = re.compile(r"\w+|\W+")
_DEFINE = re.compile(r"#define (\w+)(?:\(([^)]*)\))?(.*)", re.DOTALL)
_CHANGE = re.compile(r"#(?:define|undef) (\w+)")
_CALL = re.compile(r"\b([A-Z]\w*)\(")
_FUNCTION = re.compile(r"static inline (?:__attribute__\(\(\w+\)\) )?\w+ (\w+)\(")
_DEPTH = 4
"""Macros that write functions by macros do so at most this deep."""
_Macros = Mapping[str, Sequence[tuple[Sequence[str], str]]]
"""The parameters and the text of each definition of a macro, of which conditions choose one."""


@dataclass(frozen=True)
class _Item:
    """Lines that stay or go together.

    Attributes:
        defines: names, one of which must be used for the item to stay; of none: it stays.
        uses: names that it needs where it stays.
    """

    text: str
    defines: frozenset[str]
    uses: frozenset[str]


def excerpt(text: str) -> str:
    """A program without what no part of it needs of the prelude with which it begins."""
    prelude, end, own = text.partition(PRELUDE_END)
    if not end or "##" in own or PRELUDE_END in own:
        return text  # names may be put together from parts
    begin, mark, rest = prelude.partition("#define SMR_PRELUDE\n")
    items = _items(rest) if mark else ()
    used = set(_NAME.findall(begin)) | set(_NAME.findall(own))
    left, stays = items, set[int]()
    while found := [item for item in left if not item.defines or not used.isdisjoint(item.defines)]:
        used.update(*(item.uses for item in found))
        stays.update(map(id, found))
        left = tuple(item for item in left if id(item) not in stays)
    return begin + mark + "\n".join(item.text for item in items if id(item) in stays) + end + own


@cache
def _items(prelude: str) -> tuple[_Item, ...]:
    blocks = [block for block in _blocks(prelude) if not block.startswith("//")]
    macros: dict[str, list[tuple[list[str], str]]] = {}
    for block in blocks:
        if found := _DEFINE.match(block):
            parameters = [one.strip() for one in (found[2] or "").split(",")]
            macros.setdefault(found[1], []).append((parameters, found[3].replace("\\\n", "\n")))
    return tuple(_item(block, macros) for block in blocks)


def _blocks(prelude: str) -> Iterator[str]:
    """Directives with the lines that continue them, functions with their attributes, and single lines."""
    lines = iter(prelude.split("\n"))
    for line in lines:
        block = [line]
        while block[-1].startswith("__attribute__"):
            block.append(next(lines, ""))
        if line.startswith("#"):
            while block[-1].rstrip().endswith("\\"):
                block.append(next(lines, ""))
        elif block[-1].endswith("{"):
            while block[-1] != "}":
                block.append(next(lines, "}"))
        yield "\n".join(block)


def _item(block: str, macros: _Macros) -> _Item:
    names = frozenset(_NAME.findall(block))
    if found := _CHANGE.match(block):
        return _Item(block, frozenset({found[1]}), names)
    if block.startswith("#"):
        return _Item(block, frozenset(), names)
    written = "\n".join([block, *_written(block, macros, _DEPTH)])
    return _Item(block, frozenset(_FUNCTION.findall(written)), names | frozenset(_NAME.findall(written)))


def _written(text: str, macros: _Macros, depth: int) -> Iterator[str]:
    """What the macros in a text may become, by each of their definitions."""
    for call in _CALL.finditer(text) if depth else ():
        for parameters, body in macros.get(call[1], ()):
            given = dict(zip(parameters, _arguments(text, call.end()), strict=False))
            made = "".join(given.get(word, word) for word in _WORDS.findall(body))
            made = re.sub(r"\s*##\s*", "", made)
            yield made
            yield from _written(made, macros, depth - 1)


def _arguments(text: str, start: int) -> list[str]:
    """The arguments of a call whose parenthesis ends before `start`."""
    found, depth = [""], 1
    for letter in text[start:]:
        depth += (letter == "(") - (letter == ")")
        if not depth:
            break
        if letter == "," and depth == 1:
            found.append("")
        else:
            found[-1] += letter
    return [one.strip() for one in found]
