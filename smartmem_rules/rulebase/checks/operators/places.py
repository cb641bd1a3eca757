"""Indices that a definition computes with as if they were fractions: a place is whole until it is converted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from smartmem_rules.language import syntax as s
from smartmem_rules.language.codes import Code
from smartmem_rules.language.diagnostics import Diagnostic
from smartmem_rules.language.fixes import replacement
from smartmem_rules.language.printing.printer import print_expression
from smartmem_rules.language.vocabulary import ELEMENT_FUNCTIONS, IMPLICIT_DTYPE_VARIABLE
from smartmem_rules.records import dataclass

_ARITHMETIC = frozenset({"+", "-", "*", "/", "**"})
_OF_INDICES = frozenset({"+", "-", "*", "//", "%"})
_CONVERTING = frozenset({"cast", "bitcast", "float"})
_FLOATS = ("float", "float16", "bfloat16", "float32", "float64")


def check_places(operator: s.Operator) -> Iterator[Diagnostic]:
    """Arithmetic of an index and a fraction, which no operand types give a meaning."""
    classes = {variable.name: variable.classes for variable in operator.dtypes}
    classes.setdefault(IMPLICIT_DTYPE_VARIABLE, ("number",))
    typed = [item for item in operator.inputs if item.type is not None and item.constant is None]
    dtypes = {item.name: item.type.dtype for item in typed if item.type is not None}
    floats = {name for name, dtype in dtypes.items() if all(one in _FLOATS for one in classes.get(dtype, (dtype,)))}
    numbers = {one.name for one in operator.attributes if one.kind == "float"}
    numbers |= {item.name for item in operator.inputs if item.constant == "float"}
    for equation in operator.equations:
        indices = {binder.name for binder in equation.indices if binder.kind != "loops"}
        finder = _Finder(dtypes, floats, numbers)
        yield from finder.problems(equation.body, frozenset(indices))


@dataclass
class _Finder:
    dtypes: dict[str, str]
    floats: set[str]
    """The operands whose elements are fractions."""
    numbers: set[str]
    """The attributes that are fractions."""
    told: set[str] = field(default_factory=set)

    def problems(self, expr: s.Expression, indices: frozenset[str]) -> Iterator[Diagnostic]:
        """What is wrong with an element; in brackets, comparisons and calls of list functions indices are meant."""
        match expr:
            case s.Binary(operator=word, left=left, right=right) if word in _ARITHMETIC:
                yield from self.problems(left, indices)
                yield from self.problems(right, indices)
                for place, other in ((left, right), (right, left)):
                    index = _index_in(place, indices)
                    if index is not None and index not in self.told and self._is_float(other):
                        self.told.add(index)
                        yield self._problem(place, other)
            case s.Unary(operator="-", operand=operand):
                yield from self.problems(operand, indices)
            case s.Conditional(then=then, otherwise=otherwise):
                yield from self.problems(then, indices)
                yield from self.problems(otherwise, indices)
            case s.Reduction(binders=binders, body=body):
                yield from self.problems(body, indices | {one.name for one in binders if one.kind == "loop"})
            case s.Call(function=function, arguments=arguments) if function in ELEMENT_FUNCTIONS.keys() - _CONVERTING:
                for argument in arguments:
                    yield from self.problems(argument, indices)
            case _:
                pass

    def _is_float(self, expr: s.Expression) -> bool:
        match expr:
            case s.Number(value=float(value)):
                return not value.is_integer()
            case s.Name(id=name):
                return name in self.numbers
            case s.Subscript(base=s.Name(id=name)):
                return name in self.floats
            case s.Unary(operator="-", operand=operand):
                return self._is_float(operand)
            case s.Binary(operator=word, left=left, right=right) if word in _ARITHMETIC:
                return self._is_float(left) or self._is_float(right)
            case _:
                return False

    def _problem(self, place: s.Expression, other: s.Expression) -> Diagnostic:
        shown = print_expression(place)
        new = f"float({shown})"
        tensor = next((name for name in sorted(self.floats) if self.dtypes[name] != "float32"), None)
        if tensor is not None:
            new = f"cast({shown}, dtype({tensor}))"
        message = f"`{shown}` is a place, which is a whole number, and `{print_expression(other)}` is a fraction"
        fix = replacement(f"convert it: write `{new}`", place.span, new)
        return Diagnostic(Code.NO_ARITHMETIC, "error", message, place.span, fix=fix)


def _index_in(expr: s.Expression, indices: frozenset[str]) -> str | None:
    """The first index of an expression that is made of indices and whole numbers only."""
    match expr:
        case s.Name(id=name):
            return name if name in indices else None
        case s.Unary(operator="-", operand=operand):
            return _index_in(operand, indices)
        case s.Binary(operator=word, left=left, right=right) if word in _OF_INDICES:
            one, other = _index_in(left, indices), _index_in(right, indices)
            if one is not None and (other is not None or isinstance(right, s.Number)):
                return one
            return other if isinstance(left, s.Number) else None
        case _:
            return None
