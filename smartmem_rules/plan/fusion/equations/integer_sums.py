"""Sums of integers: those that are products of bytes, and those that floats hold exactly.

A float of 24 bits holds every integer up to 2^24. Where no sum of some terms is larger, floats give the same sums, and
the kernels for floats compute them: windows in registers, vectors of channels.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from smartmem_rules.language.blocks.schedule import ByteProducts
from smartmem_rules.plan.fusion.contraction import match_contraction
from smartmem_rules.plan.fusion.equations.program import Definition, Program
from smartmem_rules.plan.kernel.byte_factors import BYTES
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.expr import Apply, Const, Expr, Read, Reduce, Select, replaced, walk
from smartmem_rules.tensor.extents import is_symbolic

EXACT = 1 << 24
"""Up to here float32 holds every integer."""
_RANGES = {"int8": (-128, 127), "uint8": (0, 255)}


def sums_as(program: Program, products: ByteProducts | None) -> Program:
    """The program whose sums of integers are exact sums of floats, where they are and no product of bytes.

    Args:
        products: the schedule of products of bytes; None leaves all sums as they are.
    """
    if products is None:
        return program
    known = _Ranges(program.constants)
    return replace(program, definitions=[_in_floats(d, program, products, known) for d in program.definitions])


def _in_floats(definition: Definition, program: Program, products: ByteProducts, known: _Ranges) -> Definition:
    equation = definition.equation
    sums = [node for node in walk(equation.body) if isinstance(node, Reduce)]
    if len(sums) != 1 or sums[0].kind != "sum" or sums[0].dtype != "int32" or equation.scan:
        return definition
    if match_contraction(equation, program.names, program.packable, products) is not None:
        return definition
    (total,) = sums
    terms = math.prod(v.extent for v in total.variables)
    largest = known.magnitude(total.body)
    if is_symbolic(terms) or largest is None or terms * largest > EXACT:
        return definition
    body = as_floats(total.body)
    if body is None:
        return definition
    summed = Apply("cast", (replace(total, body=body, dtype="float32"),), "int32")
    changed = replace(equation, body=replaced(equation.body, total, summed))
    if match_contraction(changed, program.names, program.packable) is not None:
        return definition  # products of floats may be filtered, which rounds
    return replace(definition, equation=changed)


@dataclass(frozen=True)
class _Ranges:
    """Between which numbers the values of expressions of integers lie."""

    constants: Mapping[str, np.ndarray]

    def magnitude(self, expr: Expr) -> int | None:
        """The largest magnitude of a value and of what it is computed from; None where nothing is known."""
        try:
            return max(max(map(abs, self._range(node))) for node in walk(expr) if node.dtype in ("int32", *BYTES))
        except KeyError:
            return None

    def _range(self, expr: Expr) -> tuple[int, int]:
        match expr:
            case Const(value=value):
                return int(value), int(value)
            case Read(tensor=tensor, dtype=dtype):
                values = self.constants.get(tensor)
                if values is not None and values.size and dtype in ("int32", *BYTES):
                    return int(values.min()), int(values.max())
                return _RANGES[dtype]
            case Apply(function="cast", arguments=(inner,), dtype="int32"):
                return self._range(inner)
            case Apply(function=function, arguments=(left, right), dtype="int32"):
                return _combined(function, self._range(left), self._range(right))
            case Select(then=then, otherwise=otherwise):
                (a, b), (c, d) = self._range(then), self._range(otherwise)
                return min(a, c), max(b, d)
            case _:
                return _RANGES[expr.dtype]


def _combined(function: str, left: tuple[int, int], right: tuple[int, int]) -> tuple[int, int]:
    match function:
        case "add":
            return left[0] + right[0], left[1] + right[1]
        case "sub":
            return left[0] - right[1], left[1] - right[0]
        case "mul":
            products = [a * b for a in left for b in right]
            return min(products), max(products)
        case _:
            raise KeyError(function)


def as_floats(expr: Expr) -> Expr | None:
    """An expression of small integers computed in floats; None where an operation has no such form."""
    match expr:
        case Const(value=value):
            return Const(float(value), "float32")
        case Apply(function="sub", arguments=(Apply(function="cast", arguments=(Select() as chosen,)), zero)) if (
            zero == Apply("cast", (chosen.otherwise,), "int32")
        ):
            # what lies outside is the zero point: kernels skip products with nothing
            inside = as_floats(replace(expr, arguments=(Apply("cast", (chosen.then,), "int32"), zero)))
            return inside and Select(chosen.condition, inside, Const(0.0, "float32"), "float32")
        case Select(condition=condition, then=then, otherwise=otherwise):
            parts = as_floats(then), as_floats(otherwise)
            return Select(condition, parts[0], parts[1], "float32") if parts[0] and parts[1] else None
    match expr:
        case Apply(function="cast", arguments=(inner,)) if inner.dtype in BYTES:
            return Apply("cast", (inner,), "float32")
        case Apply(function="add" | "sub" | "mul", arguments=(left, right)):
            one, other = as_floats(left), as_floats(right)
            return replace(expr, arguments=(one, other), dtype="float32") if one and other else None
        case Read():
            return Apply("cast", (expr,), "float32")
        case _:
            return None
