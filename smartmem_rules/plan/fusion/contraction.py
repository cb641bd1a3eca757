"""Recognises contractions: sums of products whose factors depend on different output axes such as
matrix products and convolutions."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np

from smartmem_rules.language.blocks.schedule import ByteProducts
from smartmem_rules.plan.kernel.byte_factors import byte_factor
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.atoms import Div, Mod, Var
from smartmem_rules.tensor.expr import (
    Apply,
    Const,
    Equation,
    Expr,
    Read,
    Reduce,
    Select,
    free_variables,
    is_open_expression,
    own_indices,
    replaced,
    select,
    substitute_variables,
    tensors_read,
    walk,
)
from smartmem_rules.tensor.extents import is_symbolic
from smartmem_rules.tensor.index import Index, variable
from smartmem_rules.tensor.inlining import FreshNames
from smartmem_rules.tensor.ranges import largest, several, surely_below

ACCUMULATED = ("float32", "float16", "bfloat16")
"""The dtypes that contraction kernels sum, all of them in single precision."""


@dataclass(frozen=True, kw_only=True)
class MatchedContraction:
    """The parts of a contraction's equation.

    Attributes:
        space: the loop variables of the output; an axis that grouped channels share is split in two.
        coordinates: the output's indices over the space.
        reduce: the sum itself, as it stands in `body`.
        body: the right side over the space, the sum included.
        a, b: the factors; `n` occurs in `b` only.
    """

    space: tuple[Var, ...]
    coordinates: tuple[Index, ...]
    body: Expr
    reduce: Reduce
    a: Expr
    b: Expr
    batch: tuple[Var, ...]
    m: tuple[Var, ...]
    n: Var

    def in_groups_of(self, columns: int) -> bool:
        """Whether it is a convolution whose channels lie in groups of at most so many columns, all of floats."""
        grouped = any(self.n in index.variables and len(index.variables) > 1 for index in self.coordinates)
        extents = (v.extent for v in (*self.space, *self.reduce.variables))
        window = len(self.reduce.variables) > 2 and self.reduce.dtype == "float32"
        return grouped and window and not any(map(is_symbolic, extents)) and self.n.extent <= columns

    def reads(self, tensor: str) -> bool:
        """Whether a factor reads the tensor."""
        return tensor in tensors_read(self.a) or tensor in tensors_read(self.b)


def match_contraction(
    equation: Equation,
    names: FreshNames,
    constants: Mapping[str, np.ndarray],
    products: ByteProducts | None = None,
) -> MatchedContraction | None:
    """The contraction that an equation is, None if it is none.

    Args:
        constants: tensors that are known before the model runs.
        products: the schedule of products of bytes, whose sums are int32; None where the device has none.
    """
    sums = [node for node in walk(equation.body) if isinstance(node, Reduce)]
    if len(sums) != 1 or sums[0].kind != "sum":
        return None
    if sums[0].dtype not in ACCUMULATED and (products is None or sums[0].dtype != "int32"):
        return None
    product = _product(sums[0].body, constants)
    if product is None:
        return None
    equation = replace(equation, body=replaced(equation.body, sums[0], replace(sums[0], body=product)))
    values = _split_grouped(equation, product, names)
    space: list[Var] = []
    coordinates: list[Index] = []
    for var in equation.variables:
        index = values.get(var, variable(var))
        coordinates.append(index)
        space.extend(sorted(index.variables, key=lambda v: -largest(_coefficient(index, v))))
    body = substitute_variables(equation.body, values)
    (reduce,) = (node for node in walk(body) if isinstance(node, Reduce))
    assert isinstance(reduce.body, Apply)
    a, b = reduce.body.arguments
    if _constant(a, constants) and not _constant(b, constants):
        a, b = b, a
    in_a, in_b = free_variables(a), free_variables(b)
    if not any(v in in_a for v in reduce.variables) or not any(v in in_b for v in reduce.variables):
        return None
    columns = [v for v in space if v in in_b and v not in in_a]
    if not columns:
        return None
    n = max(columns, key=lambda v: largest(v.extent))
    batch = tuple(v for v in space if v in in_b and v is not n)
    m = tuple(v for v in space if v not in in_b)
    matched = MatchedContraction(
        space=tuple(space), coordinates=tuple(coordinates), body=body, reduce=reduce, a=a, b=b, batch=batch, m=m, n=n
    )
    if reduce.dtype == "int32" and not (products and _of_bytes(matched, constants, products)):
        return None
    return matched


def _of_bytes(matched: MatchedContraction, constants: Collection[str], products: ByteProducts) -> bool:
    """Whether both factors are bytes less a zero point, and a work-item has room for them."""
    k = matched.reduce.variables
    left, right = byte_factor(matched.a, (*matched.space, *k)), byte_factor(matched.b, (*matched.m, *k))
    depth, columns = math.prod(v.extent for v in k), matched.n.extent
    if left is None or right is None or is_symbolic(depth) or is_symbolic(columns):
        return False
    packed = 0 if is_constant(matched.b, constants) else depth * columns
    return depth <= products.depth and packed <= products.right_bytes


def is_constant(factor: Expr, constants: Collection[str]) -> bool:
    """Whether a factor is known before the model runs: it reads constants only, and all of its extents are numbers."""
    return all(name in constants for name in tensors_read(factor)) and not is_open_expression(factor)


def _coefficient(index: Index, var: Var) -> int:
    return next((c for atom, c in index.terms if atom == var), 0)


def _constant(expr: Expr, constants: Collection[str]) -> bool:
    return all(name in constants for name in tensors_read(expr))


def _product(body: Expr, constants: Mapping[str, np.ndarray]) -> Apply | None:
    """What is summed as a product of two factors.

    A product that takes part under a condition alone is the product of one factor under that condition, else 0, and
    the other one, where that is finite (0 times infinity or NaN would reach the sum) and may be read without it.
    """
    match body:
        case Apply(function="mul"):
            return body
        case Select(condition=condition, then=Apply(function="mul", arguments=(a, b)) as product, otherwise=Const(0)):
            nothing = Const(0.0, product.dtype)
            if _finite_everywhere(b, constants):
                return replace(product, arguments=(select(condition, a, nothing), b))
            if _finite_everywhere(a, constants):
                return replace(product, arguments=(a, select(condition, b, nothing)))
    return None


def _finite_everywhere(factor: Expr, constants: Mapping[str, np.ndarray]) -> bool:
    """Whether a factor is a finite constant for all values of the variables, also where no condition holds."""
    match factor:
        case Const(value=value):
            return math.isfinite(value)
        case Read(tensor=tensor, indices=indices):
            array = constants.get(tensor)
            return (
                array is not None
                and all(_inside(index, extent) for index, extent in zip(indices, array.shape, strict=True))
                and bool(np.isfinite(array).all())
            )
        case _:
            return False


def _inside(index: Index, extent: int) -> bool:
    low, high = index.interval
    return low >= 0 and high < extent


def _split_grouped(equation: Equation, product: Apply, names: FreshNames) -> dict[Var, Index]:
    """An output axis that one factor knows only through `v // c` is split into the group and the place in it."""
    values: dict[Var, Index] = {}
    for var in equation.variables:
        for factor in product.arguments:
            divisors = _divisors(factor, var)
            if divisors and None not in divisors and len(divisors) == 1:
                (divisor,) = divisors
                assert divisor is not None
                if var.extent % divisor == 0 and several(divisor) and surely_below(divisor, var.extent):
                    group, place = names.var(var.extent // divisor), names.var(divisor)
                    values[var] = variable(group) * divisor + variable(place)
    return values


def _divisors(expr: Expr, var: Var) -> set[int | None]:
    """By what the variable is divided wherever it occurs; None stands for an occurrence of another kind."""
    found: set[int | None] = set()
    for node in walk(expr):
        for index in own_indices(node):
            _collect_divisors(index, var, found)
    return found


def _collect_divisors(index: Index, var: Var, found: set[int | None]) -> None:
    for atom, _ in index.terms:
        match atom:
            case Var() if atom == var:
                found.add(None)
            case Div(value=value, divisor=divisor) if value == variable(var):
                found.add(divisor)
            case Div(value=value) | Mod(value=value):
                _collect_divisors(value, var, found)
            case _:
                continue


def replace_reduce(body: Expr, reduce: Reduce, accumulator: Read) -> Expr:
    """The body with the sum replaced by a read of the accumulator."""
    if body == reduce:
        return accumulator
    if isinstance(body, Apply):
        return replace(body, arguments=tuple(replace_reduce(a, reduce, accumulator) for a in body.arguments))
    return body
