"""Tensor expressions: what an operator computes, at concrete shapes.

An `Equation` gives every element of one tensor as a scalar expression over its loop variables.  Operators of the
rule base are instantiated into equations; fusion substitutes equations into each other; kernels are emitted from them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from smartmem_rules.records import unguarded
from smartmem_rules.tensor import printer
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.extents import is_symbolic
from smartmem_rules.tensor.index import Index
from smartmem_rules.tensor.lazy import lazy
from smartmem_rules.tensor.ranges import surely_at_most, surely_below
from smartmem_rules.tensor.substitution import rename_tensors, substitute
from smartmem_rules.tensor.types import (
    ALL_DTYPES as ALL_DTYPES,
    DTYPES as DTYPES,
    NARROW as NARROW,
    NARROW_FLOATS as NARROW_FLOATS,
    NARROW_INTEGERS as NARROW_INTEGERS,
    TensorType as TensorType,
)


def _for_others(record: object) -> dict[str, object]:
    """What another process may know of an expression: hashes of texts differ between processes."""
    return {name: value for name, value in vars(record).items() if name != "_hash"}


@unguarded(frozen=True)
class Compare:
    """`left OP right` over indices, OP one of < <= == !=."""

    operator: str
    left: Index
    right: Index

    def __str__(self) -> str:
        return printer.compare_text(self)


@unguarded(frozen=True)
class Logic:
    """`and`, `or` or `not` of conditions."""

    operator: str
    operands: tuple[Condition, ...]

    def __str__(self) -> str:
        return printer.logic_text(self)


Condition = Compare | Logic


@unguarded(frozen=True)
class Const:
    value: float | int | bool
    dtype: str

    def __str__(self) -> str:
        return printer.constant_text(self)


@unguarded(frozen=True)
class Read:
    """An element of a tensor; the indices lie inside its extents."""

    tensor: str
    indices: tuple[Index, ...]
    dtype: str

    def __str__(self) -> str:
        return printer.element_text(self.tensor, self.indices)


@unguarded(frozen=True)
class Apply:
    """An elementwise primitive (`add`, `exp`, `select`, `cast`, ...) of the result type `dtype`."""

    function: str
    arguments: tuple[Expr, ...]
    dtype: str

    @lazy
    def _hash(self) -> int:
        return hash((self.function, self.arguments, self.dtype))

    def __hash__(self) -> int:
        return self._hash

    __getstate__ = _for_others

    def __str__(self) -> str:
        return printer.apply_text(self)


@unguarded(frozen=True)
class Select:
    """`then` where the index condition holds, else `otherwise`; only the chosen side is evaluated."""

    condition: Condition
    then: Expr
    otherwise: Expr
    dtype: str

    @lazy
    def _hash(self) -> int:
        return hash((self.condition, self.then, self.otherwise, self.dtype))

    def __hash__(self) -> int:
        return self._hash

    __getstate__ = _for_others

    def __str__(self) -> str:
        return printer.select_text(self)


@unguarded(frozen=True)
class FromIndex:
    """The value of an index as an element."""

    index: Index
    dtype: str

    def __str__(self) -> str:
        return f"{self.dtype}({self.index})"


@unguarded(frozen=True)
class Reduce:
    """`kind` (sum, max, min, prod, any, all) of the body over the variables."""

    kind: str
    variables: tuple[Var, ...]
    body: Expr
    dtype: str

    @lazy
    def _hash(self) -> int:
        return hash((self.kind, self.variables, self.body, self.dtype))

    def __hash__(self) -> int:
        return self._hash

    __getstate__ = _for_others

    def __str__(self) -> str:
        return printer.reduce_text(self)


Expr = Const | Read | Apply | Select | FromIndex | Reduce


@unguarded(frozen=True)
class Equation:
    """tensor[variables] = body, for all values of the variables."""

    tensor: str
    variables: tuple[Var, ...]
    body: Expr
    type: TensorType
    scan: bool = False
    """Computed step by step along the first axis, together with the operator's other scans: it may read what they
    hold at earlier steps."""

    def __str__(self) -> str:
        return printer.equation_text(self)

    @lazy
    def view(self) -> Read | None:
        """The single read, where the equation only moves elements."""
        return self.body if isinstance(self.body, Read) else None


def children(expr: Expr) -> tuple[Expr, ...]:
    match expr:
        case Apply(arguments=arguments):
            return arguments
        case Select(then=then, otherwise=otherwise):
            return then, otherwise
        case Reduce(body=body):
            return (body,)
        case Const() | Read() | FromIndex():
            return ()


def walk(expr: Expr) -> Iterator[Expr]:
    """The expression and all below it, parents first."""
    stack = [expr]
    while stack:
        current = stack.pop()
        yield current
        # asked for by type: planning walks through millions of nodes
        kind = type(current)
        if kind is Apply:
            stack.extend(reversed(current.arguments))  # type: ignore[union-attr]
        elif kind is Select:
            stack += (current.otherwise, current.then)  # type: ignore[union-attr]
        elif kind is Reduce:
            stack.append(current.body)  # type: ignore[union-attr]


def condition_indices(condition: Condition) -> Iterator[Index]:
    match condition:
        case Compare(left=left, right=right):
            yield left
            yield right
        case Logic(operands=operands):
            for operand in operands:
                yield from condition_indices(operand)


def own_indices(expr: Expr) -> Iterator[Index]:
    """The indices that stand directly in this node."""
    match expr:
        case Read(indices=indices):
            yield from indices
        case Select(condition=condition):
            yield from condition_indices(condition)
        case FromIndex(index=index):
            yield index
        case _:
            return


def reads(expr: Expr) -> list[Read]:
    """All reads of the expression in order, integer tensors used inside indices not included."""
    return [node for node in walk(expr) if isinstance(node, Read)]


def tensors_read(expr: Expr) -> list[str]:
    """The names of all tensors that the expression needs, in first-use order."""
    names: dict[str, None] = {}
    for node in walk(expr):
        if isinstance(node, Read):
            names.setdefault(node.tensor)
        for index in own_indices(node):
            for name in sorted(index.gathered):
                names.setdefault(name)
    return list(names)


def needed(equations: Sequence[Equation], outputs: Collection[str]) -> tuple[Equation, ...]:
    """The equations that the outputs depend on."""
    producers = {equation.tensor: equation for equation in equations}
    wanted = set(outputs)
    if producers.keys() <= wanted:  # as of most operators: there is nothing to look for
        return tuple(equations)
    stack = list(outputs)
    while stack:
        equation = producers.get(stack.pop())
        if equation is not None:
            read = set(tensors_read(equation.body)) - wanted
            wanted |= read
            stack.extend(read)
    return tuple(equation for equation in equations if equation.tensor in wanted)


def is_open_expression(expr: Expr) -> bool:
    """Whether an open extent occurs in the expression."""
    for node in walk(expr):
        if isinstance(node, Reduce) and any(is_symbolic(v.extent) for v in node.variables):
            return True
        if any(index.is_open for index in own_indices(node)):
            return True
    return False


def free_variables(expr: Expr) -> frozenset[Var]:
    """The loop variables that the expression depends on and does not bind itself."""
    found: set[Var] = set()
    for index in own_indices(expr):
        found |= index.variables
    for child in children(expr):
        found |= free_variables(child)
    if isinstance(expr, Reduce):
        found -= set(expr.variables)
    return frozenset(found)


def map_condition(condition: Condition, change: Callable[[Index], Index]) -> Condition | bool:
    """The condition with its indices changed, decided where intervals suffice."""
    match condition:
        case Compare(operator=operator, left=left, right=right):
            return compare(operator, change(left), change(right))
        case Logic(operator=operator, operands=operands):
            return logic(operator, tuple(map_condition(operand, change) for operand in operands))


def compare(operator: str, left: Index, right: Index) -> Condition | bool:
    """The comparison, or its truth value where the intervals decide it."""
    low, high = (left - right).interval
    match operator:
        case "<":
            decided = True if surely_below(high, 0) else False if surely_at_most(0, low) else None
        case "<=":
            decided = True if surely_at_most(high, 0) else False if surely_below(0, low) else None
        case "==":
            decided = True if low == high == 0 else False if surely_below(0, low) or surely_below(high, 0) else None
        case "!=":
            decided = False if low == high == 0 else True if surely_below(0, low) or surely_below(high, 0) else None
        case _:
            raise ValueError(f"unknown comparison {operator}")
    return Compare(operator, left, right) if decided is None else decided


def logic(operator: str, operands: tuple[Condition | bool, ...]) -> Condition | bool:
    """`and`, `or`, `not` with decided operands removed."""
    if operator == "not":
        operand = operands[0]
        return (not operand) if isinstance(operand, bool) else Logic("not", (operand,))
    neutral = operator == "and"
    kept: list[Condition] = []
    for operand in operands:
        if isinstance(operand, bool):
            if operand is not neutral:
                return not neutral
        elif operand not in kept:
            kept.append(operand)
    if not kept:
        return neutral
    return kept[0] if len(kept) == 1 else Logic(operator, tuple(kept))


def select(condition: Condition | bool, then: Expr, otherwise: Expr) -> Expr:
    """The choice, without what the same condition within it never chooses, such as an empty part of a `Concat`."""
    if isinstance(condition, bool):
        return then if condition else otherwise
    if isinstance(then, Select) and then.condition == condition:
        then = then.then
    if isinstance(otherwise, Select) and otherwise.condition == condition:
        otherwise = otherwise.otherwise
    return then if then == otherwise else Select(condition, then, otherwise, then.dtype)


def rebuild(expr: Expr, change: Callable[[Index], Index], read: Callable[[Read], Expr]) -> Expr:
    """The expression with every index changed and then every read replaced."""
    # asked for by type, and the most frequent first: planning rebuilds tens of thousands of nodes
    if isinstance(expr, Read):
        return read(Read(expr.tensor, tuple(map(change, expr.indices)), expr.dtype))
    if isinstance(expr, Apply):
        return Apply(expr.function, tuple([rebuild(one, change, read) for one in expr.arguments]), expr.dtype)
    match expr:
        case Const():
            return expr
        case Select(condition=condition, then=then, otherwise=otherwise):
            decided = map_condition(condition, change)
            if decided is True:
                return rebuild(then, change, read)
            if decided is False:
                return rebuild(otherwise, change, read)
            return select(decided, rebuild(then, change, read), rebuild(otherwise, change, read))
        case FromIndex(index=index, dtype=dtype):
            return FromIndex(change(index), dtype)
        case Reduce(body=body):
            return replace(expr, body=rebuild(body, change, read))


def substitute_variables(expr: Expr, values: Mapping[Var, Index]) -> Expr:
    return rebuild(expr, lambda index: substitute(index, values), lambda read: read)


def substitute_reads(expr: Expr, read: Callable[[Read], Expr]) -> Expr:
    """The expression with every read replaced by what the function gives for it."""
    return rebuild(expr, lambda index: index, read)


def replaced(expr: Expr, old: Expr, new: Expr) -> Expr:
    """The expression with `new` wherever it holds `old`."""
    if expr == old:
        return new
    match expr:
        case Apply(arguments=arguments):
            return replace(expr, arguments=tuple(replaced(a, old, new) for a in arguments))
        case Select(then=then, otherwise=otherwise):
            return replace(expr, then=replaced(then, old, new), otherwise=replaced(otherwise, old, new))
        case Reduce(body=body):
            return replace(expr, body=replaced(body, old, new))
        case _:
            return expr


def rename_reads(expr: Expr, names: Mapping[str, str]) -> Expr:
    """The expression over other tensor names, also inside indices."""

    def rename(name: str) -> str:
        return names.get(name, name)

    return rebuild(
        expr,
        lambda index: rename_tensors(index, rename),
        lambda read: Read(rename(read.tensor), read.indices, read.dtype),
    )
