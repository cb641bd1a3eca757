"""The declarations of built-in functions that a kernel text uses, for a driver that would parse all there are.

PoCL 3.0 puts clang's `opencl-c.h` before each program: 14,500 declarations in 980 KB, most of the time that a small
program takes to compile. Its guard is a macro, so that a program may bring its own excerpt: all overloads of the
functions that its text names, and whatever is no function. A function that only a macro of the options names is
missing then, which is an error and never another result.
"""

from __future__ import annotations

import contextlib
import hashlib
import pickle
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import takewhile
from pathlib import Path

from smartmem_rules.collector import no_collections
from smartmem_rules.records import dataclass
from smartmem_rules.resources import cache_folder
from smartmem_rules.runtime.kept_files import forget_oldest
from smartmem_rules.whole_files import write_whole

OWN_DECLARATIONS = "-D_OPENCL_H_"
"""The option with which PoCL leaves its declarations out."""
_GUARD = "#ifndef _OPENCL_H_"
_AFTER = "#pragma OPENCL EXTENSION all : disable\n#line 1\n"
"""As PoCL's own header ends; lines are counted from the kernel's first one."""
_PLACES = ("share/pocl/include", "../../pocl_binary_distribution/.libs/share/pocl/include")
"""Where PoCL has its headers, from the folder of its library: as it is built, and in the wheel."""

_HEADER, _TYPES = "_clang_opencl.h", ("opencl-c-base.h",)
"""The header of the declarations, and those that it includes of which every program keeps all."""
_MOST_KEPT = 8 << 20
"""Bytes of what was read of headers; a file is of 1.3 MB."""
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_CONTINUED = re.compile(r"\\[ \t]*\n")
_FUNCTION = re.compile(r"(\w+)\s*\(")
_NAME = re.compile(r"[A-Za-z_]\w*")
_INCLUDE = re.compile(r'#include [<"]([\w.-]+)[>"]')


@dataclass(frozen=True)
class _Condition:
    """An `#if`, with the lines of its branches up to the one that is meant.

    Attributes:
        place: its file and line, because two with the same text may be true at different times.
    """

    place: str
    branches: tuple[str, ...]


@dataclass(frozen=True)
class _Item:
    """A line of a header, or a statement.

    Attributes:
        conditions: those around it, outermost first.
        function: what it declares; empty for what every program keeps.
    """

    conditions: tuple[_Condition, ...]
    text: str
    function: str = ""


class Declarations:
    """The built-in functions that the headers in a folder declare."""

    def __init__(self, folder: Path) -> None:
        """Read the headers.

        Raises:
            OSError: there are none.
        """
        redefined = set(re.findall(r"#undef (\w+)", (folder / "_kernel.h").read_text("utf-8")))
        items = [item for item in _items(folder, _HEADER) if not _defines(item.text, redefined)]
        numbers = {conditions: k for k, conditions in enumerate(dict.fromkeys(item.conditions for item in items))}
        # few objects, which are read fast where they were kept: there are 15,000 items under 600 kinds of conditions
        self._conditions = list(numbers)
        self._under = [numbers[item.conditions] for item in items]
        self._texts = [item.text for item in items]
        self._always = [k for k, item in enumerate(items) if not item.function]
        self._places: dict[str, list[int]] = {}
        for k, item in enumerate(items):
            if item.function:
                self._places.setdefault(item.function, []).append(k)

    def before(self, text: str) -> str:
        """What a program of the text begins with when it is compiled with `OWN_DECLARATIONS`."""
        named = self._places.keys() & set(_NAME.findall(text))
        places = sorted([*self._always, *(place for name in named for place in self._places[name])])
        lines = _lines((self._conditions[self._under[place]], self._texts[place]) for place in places)
        return "\n".join(lines) + "\n" + _AFTER


def kept_declarations(folder: Path) -> Declarations:
    """Those of the headers in a folder, from the user's cache where they were read before.

    Raises:
        OSError: there are none.
    """
    cache_of_all = cache_folder()
    if cache_of_all is None:
        return Declarations(folder)
    kept = cache_of_all / "declarations" / f"{_digest(folder)}.pickle"
    try:
        with no_collections():
            found = pickle.loads(kept.read_bytes())
        if isinstance(found, Declarations):
            return found
    except Exception:  # a damaged file is like none
        pass
    made = Declarations(folder)
    with contextlib.suppress(OSError):
        kept.parent.mkdir(parents=True, exist_ok=True)
        write_whole(kept, pickle.dumps(made))
        forget_oldest(kept.parent.iterdir(), _MOST_KEPT, 0.0)
    return made


def _digest(folder: Path) -> str:
    """Of all headers in a folder, and of what reads them."""
    digest = hashlib.sha256()
    for file in (Path(__file__), *sorted(folder.glob("*.h"))):
        content = file.read_bytes()
        digest.update(f"{file.name} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()[:32]


@cache
def declarations(maps: Path = Path("/proc/self/maps")) -> Declarations | None:
    """Those of the PoCL that this process has loaded; None where its headers are not found."""
    try:
        loaded = {Path(name) for name in re.findall(r"/\S*libpocl[\w.-]*\.so\S*", maps.read_text())}
    except OSError:
        return None
    for library in loaded:
        for place in _PLACES:
            try:
                return kept_declarations(library.parent / place)
            except OSError:
                continue
    return None


def _defines(text: str, names: set[str]) -> bool:
    return text.startswith("#define ") and text.split()[1] in names


def _items(folder: Path, header: str, outer: tuple[_Condition, ...] = ()) -> Iterator[_Item]:
    """The items of a header and of those that it includes, without the guard against including it twice."""
    text = _COMMENT.sub("", _CONTINUED.sub(" ", (folder / header).read_text("utf-8")))
    conditions, statement = outer, ""
    for number, line in enumerate(map(str.strip, text.split("\n"))):
        if line.startswith("#if"):
            conditions = (*conditions, _Condition(f"{header}:{number}", (line,)))
        elif line.startswith("#el"):
            conditions = (*conditions[:-1], replace(conditions[-1], branches=(*conditions[-1].branches, line)))
        elif line.startswith("#endif"):
            conditions = conditions[:-1]
        elif included := _INCLUDE.match(line):
            yield from _items(folder, included[1], conditions)
        elif line.startswith("#"):
            if line != _GUARD.replace("#ifndef", "#define"):
                yield _Item(_without_guard(conditions), line)
        elif line:
            statement = f"{statement} {line}" if statement else line
            if statement.endswith(";") and statement.count("{") == statement.count("}"):
                function = None if header in _TYPES else _FUNCTION.search(statement)
                yield _Item(_without_guard(conditions), statement, function[1] if function else "")
                statement = ""


def _without_guard(conditions: tuple[_Condition, ...]) -> tuple[_Condition, ...]:
    return tuple(one for one in conditions if one.branches[0] != _GUARD)


def _lines(items: Iterable[tuple[tuple[_Condition, ...], str]]) -> Iterator[str]:
    """The texts of items in order, each under its conditions."""
    opened: tuple[_Condition, ...] = ()
    for conditions, text in items:
        if conditions != opened:
            yield from _turned(opened, conditions)
            opened = conditions
        yield text
    yield from _turned(opened, ())


def _turned(opened: Sequence[_Condition], wanted: Sequence[_Condition]) -> Iterator[str]:
    """The lines that lead from under some conditions to under others that follow in the header."""
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(opened, wanted, strict=False)))
    inner, further = opened[same:], wanted[same:]
    seen = len(inner[0].branches) if inner and further and inner[0].place == further[0].place else 0
    yield from ["#endif"] * (len(inner) - bool(seen))
    for condition in further:
        yield from condition.branches[seen:]
        seen = 0
