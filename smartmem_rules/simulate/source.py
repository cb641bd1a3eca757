"""The OpenCL C text of a kernel as a syntax tree."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache, lru_cache
from typing import Any

from pcpp import Preprocessor
from pycparser import c_ast
from pycparser.c_parser import CParser, ParseError

from smartmem_rules.errors import SmartmemError
from smartmem_rules.records import dataclass

VECTOR = re.compile(r"(?:smr_)?(char|uchar|short|ushort|int|uint|long|ulong|half|float|double)(2|3|4|8|16)?$")
"""The element type and the width of a type's name."""

_QUALIFIERS = re.compile(r"\b(?:__global|__private|read_only|write_only|__read_only|__write_only|__kernel|inline)\b")
_CONSTANT = re.compile(r"\b__constant\b")
_LOCAL = re.compile(r"\b__local\b")
_ATTRIBUTE = re.compile(r"__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)")
_DIRECTIVE = re.compile(r"^[ \t]*#.*$", re.M)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
_NEEDS_PREPROCESSOR = re.compile(
    r"^[ \t]*#[ \t]*(?!pragma\b)|\bSMR_(?:VECTORS|CPU)\b|__(?:FILE|LINE|DATE|TIME)__|\"|\\$", re.M
)
"""Definitions, conditions, and what stands for something else; few kernels have any behind the prelude."""
_CALLS_OF_A_CHOICE = 40
"""Functions of the parser that are on the stack for each choice around a statement or an expression."""
_SCALARS = ("uchar", "ushort", "uint", "ulong", "half", "size_t", "sampler_t", "image2d_t", "bool")
_INTEGERS = ("char", "uchar", "short", "ushort", "int")
_VECTORS = ("char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "half", "float", "double")


_ITEM_BYTES = {"half": 2, "double": 8, "long": 8, "ulong": 8, "short": 2, "ushort": 2, "char": 1, "uchar": 1}


class SimulationError(SmartmemError):
    """A kernel or a device cannot be simulated; the message says what, where and what to do."""


@dataclass(frozen=True)
class Part:
    """A function that a launch of several kernels calls for some of its work-groups, counted from the first of these.

    Attributes:
        text: the function, with the launch's local memory.
        arguments: the kernel's parameters that it gets, in the order of its own.
        groups: how many work-groups are its own.
    """

    text: KernelText
    arguments: tuple[str, ...]
    groups: int


@dataclass(frozen=True, kw_only=True)
class KernelText:
    """A kernel's parameters, in order, and its body.

    Attributes:
        parts: of a launch of several kernels.
        tables: declarations of constants outside of the body.
        shared: of a function: the name and the floats of the local memory that it is handed.
    """

    parameters: tuple[str, ...]
    body: c_ast.Compound
    parts: tuple[Part, ...] = ()
    tables: tuple[c_ast.Decl, ...] = ()
    shared: tuple[str, int] | None = None

    @property
    def local_bytes(self) -> int:
        """Bytes of local memory that a work-group takes: the arrays and variables that the body declares so."""
        if self.shared is not None:
            return 4 * self.shared[1]
        return sum(_bytes(node) for node in self.body.block_items or () if _is_local(node))


@cache
def _types() -> frozenset[str]:
    """OpenCL C's own names of types, and those of the prelude."""
    names = [f"{kind}{width}" for kind in _VECTORS for width in (2, 3, 4, 8, 16)]
    names += [f"smr_{kind}{width}" for kind in ("float", *_INTEGERS) for width in (4, 8, 16)]
    return frozenset((*names, *_SCALARS))


class _Parser(CParser):  # type: ignore[misc]
    """Knows the names of types without a typedef of each before every kernel."""

    def _is_type_in_scope(self, name: str) -> bool:
        if any(name in scope for scope in self._scope_stack):  # the kernel's own meaning
            return bool(super()._is_type_in_scope(name))
        return name in _types()


class _Quiet(Preprocessor):  # type: ignore[misc]
    """Reports nothing: includes and pragmas of the target are not the simulator's."""

    def on_error(self, file: str, line: int, message: str) -> None:
        raise SimulationError(f"line {line} of a kernel's text: {message}")


def _preprocessed(text: str) -> str:
    # what kernels call is known by name; only what a form's template adds behind the prelude is read
    cut = re.search(
        r"^(?:typedef|static|__kernel|__constant|#define|#ifndef|#pragma unroll).*\Z",
        _without_prelude(text),
        re.M | re.S,
    )
    if cut is None:
        raise SimulationError("a kernel's text holds no __kernel function")
    own = cut.group(0)
    if not _NEEDS_PREPROCESSOR.search(own):
        return _DIRECTIVE.sub("", _COMMENT.sub(" ", own))
    defined = "#define SMR_VECTORS(BITS)\n"
    defined += "#define SMR_CPU\n" if text.startswith("#define SMR_CPU") else ""
    reader = _Quiet()
    reader.parse(defined + own)
    written = io.StringIO()
    reader.write(written)
    return _DIRECTIVE.sub("", written.getvalue())


def _without_prelude(text: str) -> str:
    start = text.find("#ifndef SMR_PRELUDE")
    if start < 0:
        return text
    depth = 0
    for match in re.finditer(r"^[ \t]*#[ \t]*(if|ifdef|ifndef|endif)\b.*$", text[start:], re.M):
        depth += -1 if match.group(1) == "endif" else 1
        if depth == 0:
            return text[start + match.end() :]
    raise SimulationError("the prelude of a kernel's text has no end")


def _is_local(node: object) -> bool:
    declared = isinstance(node, c_ast.Decl) and not isinstance(node.type, c_ast.PtrDecl)
    return declared and "volatile" in qualifiers(node)


def qualifiers(node: Any) -> set[str]:
    """The qualifiers of a declaration, those of what it is made of included; `volatile` stands for local memory."""
    found = set(node.quals)
    inner = node.type
    while not isinstance(inner, c_ast.IdentifierType):
        found |= set(getattr(inner, "quals", ()) or ())
        inner = inner.type
    return found


def item_size(kind: str) -> int:
    """Bytes of an element of C's arithmetic types."""
    return _ITEM_BYTES.get(kind, 4)


def _bytes(node: Any) -> int:
    elements, inner = 1, node.type
    while not isinstance(inner, c_ast.IdentifierType):
        if isinstance(inner, c_ast.ArrayDecl):
            if not isinstance(inner.dim, c_ast.Constant):
                raise SimulationError(f"the extent of the local array {node.name} is no constant ({node.coord})")
            elements *= int(inner.dim.value)
        inner = inner.type
    match = VECTOR.match(" ".join(inner.names))
    kind, width = (match.group(1), int(match.group(2) or 1)) if match else ("int", 1)
    return elements * width * item_size(kind)


@lru_cache(maxsize=512)
def parse(text: str, entry: str) -> KernelText:
    """The kernel `entry` of a program.

    Raises:
        SimulationError: the text is none that C's grammar knows, or holds no such kernel.
    """
    plain = _QUALIFIERS.sub(" ", _preprocessed(text))
    # local memory is told from a work-item's own by a qualifier that C knows and kernels have no other use for
    plain = _LOCAL.sub("volatile", _CONSTANT.sub("const", _ATTRIBUTE.sub(" ", plain)))
    try:
        with _room_for(plain):
            tree = _Parser().parse(plain)
    except ParseError as error:
        raise SimulationError(f"a kernel's text cannot be read: {error}") from None
    functions = {node.decl.name: node for node in tree.ext if isinstance(node, c_ast.FuncDef)}
    if entry in functions:
        node = functions[entry]
        tables = tuple(n for n in tree.ext if isinstance(n, c_ast.Decl) and isinstance(n.type, c_ast.ArrayDecl))
        return KernelText(
            parameters=_parameters(node), body=node.body, parts=_parts(node.body, functions, tables), tables=tables
        )
    raise SimulationError(f"a kernel's text holds no function {entry}")


@contextmanager
def _room_for(text: str) -> Iterator[None]:
    """Lets the parser call itself as often as choices stand in one another: one for each kernel of a launch."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(before + _CALLS_OF_A_CHOICE * (text.count("else") + text.count("?")))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def _parameters(function: c_ast.FuncDef) -> tuple[str, ...]:
    declared = function.decl.type.args
    return tuple(p.name for p in declared.params) if declared else ()


GIVEN = ("item", "group")
"""What a function of a launch of several kernels gets besides tensors and local memory: work-item and work-group."""


def _parts(
    body: c_ast.Compound, functions: Mapping[str, c_ast.FuncDef], tables: tuple[c_ast.Decl, ...]
) -> tuple[Part, ...]:
    """The kernels of a launch of several, `if (group < n) f(...); else ...`; none where the body is another one."""
    statements = body.block_items or ()
    local = [node for node in statements if _is_local(node)]
    choice = next((node for node in statements if isinstance(node, c_ast.If)), None)
    found: list[Part] = []
    first = 0
    while isinstance(choice, c_ast.If):
        call, condition = choice.iftrue, choice.cond
        if not isinstance(call, c_ast.FuncCall) or call.name.name not in functions or len(local) != 1:
            return ()
        function = functions[call.name.name]
        names = _parameters(function)
        handed = tuple(a.name for a in call.args.exprs[: len(names) - len(GIVEN) - 1])
        last = int(condition.right.value)
        shared = (names[-1], _bytes(local[0]) // 4)
        found.append(
            Part(
                KernelText(parameters=names[: len(handed)], body=function.body, parts=(), tables=tables, shared=shared),
                handed,
                last - first,
            )
        )
        first, choice = last, choice.iffalse
    return tuple(found)
