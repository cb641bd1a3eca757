"""Kernels that check every read and write of device memory against the bounds of its tensor: the debug build.

The text of a kernel is rewritten: whatever it reads or writes through a pointer that begins as one of its parameters
goes through `SMR_AT`, coordinates of images go through `smr_texel` (codegen/checks.cl). An access outside is noted,
with the work-item, and sent to the beginning of its tensor instead, so that the kernel goes on. Vector loads may reach
over the end of a buffer as far as every allocation allows for. Arrays in private and local memory are not device memory
and are not checked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from smartmem_rules.emit.c.program import render
from smartmem_rules.plan.artefact import Source
from smartmem_rules.plan.kernel.model import Stored
from smartmem_rules.plan.kernel.storage import stored_bytes
from smartmem_rules.records import dataclass
from smartmem_rules.runtime.access_log import RECORD
from smartmem_rules.runtime.plan_file import SLACK

_FUNCTION = re.compile(
    r"(?P<kind>__kernel\b[^;{}()]*(?:\(\((?:[^()]|\([^()]*\))*\)\)[^;{}()]*)?void|static void)\s+(?P<name>\w+)\s*\("
)
_COMMENT = re.compile(r'(?P<string>"(?:[^"\\\n]|\\.)*")|/\*.*?\*/|//[^\n]*', re.S)
_UNIT = re.compile(r"^#ifdef SMR_BYTE_TILES\n.*?^#else\n(.*?)^#endif\n", re.S | re.M)
"""What a processor's matrix unit computes, whose reads nothing checks, and the same products without it."""
_TOKEN = re.compile(
    r'(?P<string>"(?:[^"\\\n]|\\.)*")'  # assembly, which begins lines with `//@`
    r"|(?P<directive>^[ \t]*\#(?:[^\n]*\\\n)*[^\n]*)"
    r"|(?P<pointer>(?:\b(?:volatile|const)\s+)*(?P<global>\b__global\s+)?(?:\b(?:const|volatile)\s+)*\b\w+\s*\*\s*(?:(?:const|restrict)\s+)?(?P<declared>[A-Za-z_]\w*)\s*=(?!=))"
    r"|(?P<deref>\*\((?:volatile )?__global (?P<constant>const )?(?:smr_)?[a-z]+(?P<lanes>\d*)\*\))"
    r"|(?P<word>(?<![\w.])[A-Za-z_]\w*)"
    r"|(?P<brace>[{}])",
    re.M,
)  # fmt: skip
_VECTOR = re.compile(r"(?:smr_)?v(?P<way>load|store)(?:_half|_bfloat)?(?P<lanes>\d*)(?:_rte)?$")


class UncheckedError(Exception):
    """A kernel accesses memory in a way that cannot be checked."""


@dataclass(frozen=True)
class Parameter:
    """A tensor that a function takes: a buffer, or an image."""

    name: str
    image: bool


@dataclass(frozen=True)
class Function:
    """A function's head: its parameters in order, None for numbers and scratch memory."""

    parameters: tuple[Parameter | None, ...]

    @property
    def extra(self) -> str:
        """What it takes besides: the log, and of each tensor its number and bytes."""
        return "".join(
            f", const int smr_tensor_{p.name}" + ("" if p.image else f", const long smr_bytes_{p.name}")
            for p in self.parameters
            if p is not None
        )


def checked(source: Source, tensors: Mapping[str, Stored]) -> Source:
    """The source with checks; its last parameter, behind those of the dimensions, is the log.

    Raises:
        UncheckedError: the text has an access that is none of those that templates write.
    """
    text = _UNIT.sub(r"\1", _COMMENT.sub(lambda found: found["string"] or " ", source.text))
    functions: dict[str, Function] = {}
    made: list[str] = []
    at = 0
    first = True
    while (head := _FUNCTION.search(text, at)) is not None:
        close = _closing(text, head.end() - 1)
        parameters = _split(text[head.end() : close])
        opening = text.index("{", close)
        end = _closing(text, opening)
        function = functions[head["name"]] = Function(tuple(map(_parameter, parameters)))
        if first:
            made.append(text[at : head.start()] + render("checks.cl", record=RECORD) + "\n")
            first = False
        else:
            made.append(text[at : head.start()])
        made.append(text[head.start() : close] + ", __global int* smr_log")
        if head["kind"].startswith("__kernel"):
            made.append(text[close : opening + 1] + "\n" + _numbers(function, source, tensors))
        else:
            made.append(function.extra + text[close : opening + 1])
        made.append(_Body(functions, function).rewritten(text[opening + 1 : end]) + "}")
        at = end + 1
    if source.entry not in functions:
        raise UncheckedError(f"a kernel's text holds no function {source.entry}")
    return replace(source, text="".join(made) + text[at:])


def _numbers(function: Function, source: Source, tensors: Mapping[str, Stored]) -> str:
    """The tensors' numbers and bytes, for the checks in a kernel."""
    lines = []
    for number, (parameter, argument) in enumerate(zip(function.parameters, source.arguments, strict=False)):
        if parameter is None:
            raise UncheckedError(f"the kernel takes {argument.tensor!r} neither as a buffer nor as an image")
        lines.append(f"const int smr_tensor_{parameter.name} = {number};")
        if not parameter.image:
            lines.append(f"const long smr_bytes_{parameter.name} = {stored_bytes(tensors[argument.tensor])};")
    return "\n".join(lines)


def _parameter(text: str) -> Parameter | None:
    words = re.findall(r"\w+", text)
    image = "image2d_t" in words
    if not words or not (image or (("__global" in words or "global" in words) and "*" in text)):
        return None
    return Parameter(words[-1], image)


def _closing(text: str, at: int) -> int:
    """The place of the bracket that closes the one at `at`."""
    pairs = {"(": ")", "[": "]", "{": "}"}
    expected: list[str] = []
    for place in range(at, len(text)):
        if text[place] in pairs:
            expected.append(pairs[text[place]])
        elif text[place] in pairs.values():
            if not expected or expected.pop() != text[place]:
                break
            if not expected:
                return place
    raise UncheckedError(f"a bracket of a kernel's text is not closed: {text[at : at + 60]!r}")


def _split(text: str) -> list[str]:
    """The parts between the commas outside of all brackets."""
    parts, depth, start = [], 0, 0
    for place, sign in enumerate(text):
        if sign in "([{":
            depth += 1
        elif sign in ")]}":
            depth -= 1
        elif sign == "," and depth == 0:
            parts.append(text[start:place])
            start = place + 1
    return [part.strip() for part in [*parts, text[start:]] if part.strip()]


@dataclass
class _Body:
    """The body of a function while it is rewritten.

    Attributes:
        bases: for each pointer in sight the parameter that it began as, None for pointers into other memory.
    """

    functions: Mapping[str, Function]
    function: Function
    bases: list[dict[str, str | None]] = field(default_factory=list)
    images: set[str] = field(default_factory=set)

    def rewritten(self, text: str) -> str:
        tensors = [p for p in self.function.parameters if p is not None]
        self.bases = [{p.name: p.name for p in tensors if not p.image}]
        self.images = {p.name for p in tensors if p.image}
        return self._text(text)

    def _base(self, name: str) -> str | None:
        return next((scope[name] for scope in reversed(self.bases) if name in scope), None)

    def _text(self, text: str, bare: bool = False) -> str:
        """A part of the body; `bare`: pointers may stand for themselves."""
        made: list[str] = []
        at = 0
        depth = len(self.bases)
        while (token := _TOKEN.search(text, at)) is not None:
            made.append(text[at : token.start()])
            written, at = self._token(text, token, bare)
            made.append(written)
        del self.bases[depth:]
        return "".join(made) + text[at:]

    def _token(self, text: str, token: re.Match[str], bare: bool) -> tuple[str, int]:
        """What a token and all that belongs to it becomes, and where it ends."""
        if token["directive"] or token["string"]:
            return token[0], token.end()
        if token["brace"]:
            if token[0] == "{":
                self.bases.append({})
            elif len(self.bases) > 1:
                self.bases.pop()
            return token[0], token.end()
        if token["pointer"]:
            return self._declaration(text, token)
        if token["deref"]:
            return self._dereference(text, token)
        word = token["word"]
        opening = _after_blanks(text, token.end())
        if text[opening : opening + 1] == "(":
            end = _closing(text, opening)
            called = self._called(word, _split(text[opening + 1 : end]))
            if called is not None:
                return called, end + 1
        base = self._base(word)
        if base is None:
            if word in self.images and not bare:
                raise UncheckedError(f"the image {word} is used in a way that cannot be checked")
            return word, token.end()
        if text[opening : opening + 1] == "[":
            end = _closing(text, opening)
            rest = text[end + 1 :].lstrip()
            writes = re.match(r"(?:[-+*/|&^]|<<|>>)?=(?!=)", rest) is not None
            return f"(*{self._at(word, base, text[opening + 1 : end], 1, writes, 0)})", end + 1
        if not bare:
            raise UncheckedError(f"{text[max(0, token.start() - 40) : token.end() + 20]!r} cannot be checked")
        return word, token.end()

    def _called(self, word: str, arguments: Sequence[str]) -> str | None:
        """What a call becomes that accesses tensors; None for any other."""
        if word in _HINTS:  # reads nothing
            return ""
        if word in self.functions or _VECTOR.match(word) or word in _CALLS or word.startswith(_ATOMIC):
            return self._call(word, arguments)
        if _COPY.match(word):
            return self._copied(word, arguments)
        return self._loaded_where(word, *arguments) if word in _WHERE else None

    def _declaration(self, text: str, token: re.Match[str]) -> tuple[str, int]:
        """A pointer that begins as another one."""
        end = text.index(";", token.end())
        value = text[token.end() : end]
        bases = {self._base(w) for w in re.findall(r"[A-Za-z_]\w*", _without_indices(value))} - {None}
        rewritten = self._text(value, bare=True)
        if token["global"]:
            if len(bases) != 1:
                raise UncheckedError(f"{token[0]}{value}: which tensor the pointer points into cannot be told")
            self.bases[-1][token["declared"]] = bases.pop()
        else:
            self.bases[-1][token["declared"]] = None
        return token[0] + rewritten, end

    def _dereference(self, text: str, token: re.Match[str]) -> tuple[str, int]:
        """`*(__global const float8*)(p + e)`: so many elements at once."""
        opening = _after_blanks(text, token.end())
        if text[opening : opening + 1] != "(":
            raise UncheckedError(f"{text[token.start() : token.end() + 20]!r} cannot be checked")
        end = _closing(text, opening)
        lanes = int(token["lanes"] or 1)
        reads = bool(token["constant"])
        slack = SLACK if reads and lanes > 1 else 0
        return token[0] + "(" + self._pointed(text[opening + 1 : end], lanes, not reads, slack) + ")", end + 1

    def _pointed(self, text: str, count: int | str, writes: bool, slack: int, before: str = "") -> str:
        """The checked form of a pointer, `p`, `p + e` or a cast of it; `before` is added to e."""
        plain = text.strip()
        cast = re.match(r"\(\s*(?:volatile\s+)?(?:__global\s+)(?:const\s+)?\w+\s*\*\s*\)\s*", plain)
        if cast is not None:
            inner = plain[cast.end() :]
            if inner.startswith("(") and _closing(inner, 0) == len(inner) - 1:
                inner = inner[1:-1]
            return cast[0] + "(" + self._pointed(inner, count, writes, slack, before) + ")"
        found = re.match(r"(?P<name>[A-Za-z_]\w*)\s*(?:\+\s*(?P<rest>.*))?$", plain, re.S)
        base = None if found is None else self._base(found["name"])
        if found is None or base is None:
            raise UncheckedError(f"{plain!r} is no pointer into a tensor")
        index = " + ".join(f"({part})" for part in (found["rest"], before) if part) or "0"
        return self._at(found["name"], base, index, count, writes, slack)

    def _at(self, name: str, base: str, index: str, count: int | str, writes: bool, slack: int) -> str:
        limit = f"smr_bytes_{base}" + (f" + {slack}" if slack else "")
        return f"SMR_AT({name}, {base}, ({self._text(index)}), {count}, {limit}, smr_tensor_{base}, {int(writes)})"

    def _call(self, word: str, arguments: Sequence[str]) -> str:
        if word in self.functions:
            return self._handed(word, arguments)
        if word in _CALLS:
            image, at = arguments[0], _CALLS[word]
            if image not in self.images:
                raise UncheckedError(f"{word}({image}, ...) reads no image of the kernel")
            size = f"get_image_width({image}), get_image_height({image})"
            before, place, behind = arguments[:at], self._text(arguments[at]), arguments[at + 1 :]
            writes = int(word.startswith("write"))
            place = f"smr_texel({place}, {size}, smr_tensor_{image}, {writes}, smr_log)"
            return f"{word}({', '.join([*before, place, *map(self._text, behind)])})"
        if word.startswith(_ATOMIC):
            # a launch notes behind the elements of a tensor that it gave up
            counter = self._pointed(arguments[0], 1, True, SLACK if word.startswith(_ATOMIC[1]) else 0)
            return f"{word}({', '.join([counter, *map(self._text, arguments[1:])])})"
        return self._vector(word, arguments)

    def _vector(self, word: str, arguments: Sequence[str]) -> str:
        """`vload4(e, p)` and its kin; through pointers into other memory they stay as they are."""
        *values, place, pointer = arguments
        names = re.findall(r"[A-Za-z_]\w*", _without_indices(pointer))
        if all(self._base(name) is None for name in names):
            return f"{word}({', '.join(map(self._text, arguments))})"
        form = _VECTOR.match(word)
        assert form is not None
        lanes, reads = int(form["lanes"] or 1), form["way"] == "load"
        before = place if lanes == 1 else f"{lanes} * ({place})"
        at = self._pointed(
            pointer, lanes, not reads, SLACK if reads and lanes > 1 else 0, before if place != "0" else ""
        )
        return f"{word}({', '.join([*map(self._text, values), '0', at])})"

    def _copied(self, word: str, arguments: Sequence[str]) -> str:
        """`nvidia_f16_copy(to, (__global const nvidia_f16_element*)(p + e), counts)`: bytes into local memory."""
        to, source, counts = arguments
        elements = f"{_COPIED_BYTES} / (int)sizeof(*{_pointer_of(source)})"
        return f"{word}({self._text(to)}, {self._pointed(source, elements, False, 0)}, {self._text(counts)})"

    def _loaded_where(self, word: str, condition: str, source: str) -> str:
        """`smr_load_half4_where(condition, p + e)`: four halves, whose place lies inside only where they are loaded."""
        place = self._pointed(source, 4, False, SLACK)
        return f"(({self._text(condition)}) ? {word}(1, {place}) : (float4)(0))"

    def _handed(self, word: str, arguments: Sequence[str]) -> str:
        """A call of another function of the text, which gets what the checks in it need."""
        extra = ["smr_log"]
        for parameter, argument in zip(self.functions[word].parameters, arguments, strict=True):
            if parameter is None:
                continue
            part = _PART.match(argument)
            if part is not None and self._base(part["whole"]) == part["whole"]:
                whole, before = part["whole"], int(part["elements"])
                extra += [f"smr_tensor_{whole}", f"smr_bytes_{whole} - {before} * (long)sizeof(*{whole})"]
                continue
            if argument not in self.images and self._base(argument) != argument:
                raise UncheckedError(f"{word} gets {argument!r}, which is no tensor of the kernel")
            extra.append(f"smr_tensor_{argument}")
            if not parameter.image:
                extra.append(f"smr_bytes_{argument}")
        given = [self._text(argument, bare=True) for argument in arguments]
        return f"{word}({', '.join([*given, *extra])})"


_PART = re.compile(r"\(__global (?:const )?\w+\*\)\((?P<whole>\w+) \+ (?P<elements>\d+)\)$")
"""A tensor that is a part of another one, to whose end it is checked."""
_HINTS = ("SMR_PREFETCH", "SMR_PREFETCH_LATER")
_WHERE = ("smr_load_half4_where", "smr_load_bfloat4_where")
_ATOMIC = ("atomic_", "smr_order_")
"""How functions of counters begin: OpenCL's, and those of codegen/order_ptx.cl."""
_COPY = re.compile(r"\w+_copy$")
_COPIED_BYTES = 16
"""What the copies of a matrix unit's text take at once (`codegen/matrix_ptx.cl`)."""
_CALLS = {"read_imagef": 2, "write_imagef": 1}
"""Functions of images, and which argument is the place."""


def _pointer_of(text: str) -> str:
    """The name of the pointer in `(type*)(p + e)`."""
    found = re.match(r"(?:\([^()]*\*\s*\))?\s*\(?\s*([A-Za-z_]\w*)", text)
    if found is None:
        raise UncheckedError(f"{text!r} is no pointer into a tensor")
    return found[1]


def _after_blanks(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _without_indices(text: str) -> str:
    """The text without what stands in square brackets and before them."""
    while (found := re.search(r"\w+\s*\[[^\[\]]*\]", text)) is not None:
        text = text[: found.start()] + text[found.end() :]
    return text
