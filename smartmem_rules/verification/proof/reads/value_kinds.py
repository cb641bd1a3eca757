"""What a compile-time expression gives: a number, a list of numbers, or something else."""

from __future__ import annotations

from collections.abc import Mapping

from smartmem_rules.language import syntax as ast
from smartmem_rules.verification.instances.attributes import kind_of

NUMBER = "number"
LIST = "list"
OTHER = "other"
_NUMBERS = frozenset({"rank", "prod", "sum_of", "count", "extent", "index_of", "ravel"})
_LISTS = frozenset({"range", "ones", "zeros", "shape", "broadcast", "cumsum"})
_LIKE_OPERANDS = frozenset({"abs", "sign", "floor", "ceil", "round", "single", "sqrt", "int", "clamp", "ceil_div",
                            "wrap"})  # fmt: skip
_LIKE_FIRST = frozenset({"put", "drop", "take", "insert", "permute", "unpermute", "reverse"})
_ARITHMETIC = frozenset({"+", "-", "*", "/", "//", "%", "**"})
_OF_ATTRIBUTES: dict[str | None, str] = {"int": NUMBER, "float": NUMBER, "ints": LIST, "floats": LIST}


def kinds_of(operator: ast.Operator, functions: Mapping[str, ast.Function]) -> dict[str, str]:
    """The kinds of the extents, attributes and lets of a definition, by name."""
    known: dict[str, str] = {}
    for formal in operator.inputs:
        if formal.constant is not None:
            known[formal.name] = _OF_ATTRIBUTES.get(kind_of(formal), OTHER)
        elif formal.type is not None:
            for item in formal.type.shape:
                inner = item.operand if isinstance(item, ast.Splat) else item
                if isinstance(inner, ast.Name):
                    known[inner.id] = LIST if isinstance(item, ast.Splat) else NUMBER
    for attribute in operator.attributes:
        known[attribute.name] = _OF_ATTRIBUTES.get(kind_of(attribute), OTHER)
    for let in operator.lets:
        known[let.name] = kind(let.value, known, functions)
    return known


def kind(expr: ast.Expression, known: Mapping[str, str], functions: Mapping[str, ast.Function]) -> str:
    """NUMBER or LIST where an expression can give nothing else, OTHER where that is not seen."""

    def of(part: ast.Expression) -> str:
        return kind(part, known, functions)

    match expr:
        case ast.Number():
            return NUMBER
        case ast.Name(id=name):
            return known.get(name, OTHER)
        case ast.Unary(operator="-", operand=operand):
            return of(operand)
        case ast.Binary(operator=operator, left=left, right=right) if operator in _ARITHMETIC:
            return _spread(of(left), of(right))
        case ast.Conditional(then=then, otherwise=otherwise):
            return of(then) if of(then) == of(otherwise) else OTHER
        case ast.Subscript(base=base, items=(ast.Slice(),)):
            return of(base)
        case ast.Subscript(base=base, items=(item,)) if of(item) == NUMBER:
            return NUMBER if of(base) == LIST else OTHER
        case ast.ListOf(items=items):
            flat = all(of(i.operand) == LIST if isinstance(i, ast.Splat) else of(i) == NUMBER for i in items)
            return LIST if flat else OTHER
        case ast.Comprehension(body=body, binders=binders):
            inner = {**known, **{b.name: NUMBER for b in binders if of(b.bound) in (NUMBER, LIST)}}
            return LIST if kind(body, inner, functions) == NUMBER else OTHER
        case ast.Splat(operand=ast.Comprehension(body=body, binders=binders)):
            # lists beside each other, as the operands of `concat` are
            inner = {**known, **{b.name: NUMBER for b in binders if of(b.bound) in (NUMBER, LIST)}}
            return kind(body, inner, functions)
        case ast.Call(function=name, arguments=arguments):
            is_spread = any(isinstance(a, ast.Splat) for a in arguments)
            return OTHER if is_spread and name != "concat" else _call(name, [of(a) for a in arguments], functions)
        case _:
            return OTHER


def _spread(*kinds: str) -> str:
    if OTHER in kinds:
        return OTHER
    return LIST if LIST in kinds else NUMBER


def _call(name: str, kinds: list[str], functions: Mapping[str, ast.Function]) -> str:
    function = functions.get(name)
    if function is not None:
        if len(kinds) != len(function.parameters):
            return OTHER
        return kind(function.body, dict(zip(function.parameters, kinds, strict=True)), functions)
    if name in _NUMBERS:
        return NUMBER
    if name in _LISTS:
        return LIST
    if name in ("min", "max"):
        return NUMBER if kinds == [LIST] else _spread(*kinds)
    if name in _LIKE_OPERANDS:
        return _spread(*kinds)
    if name in _LIKE_FIRST:
        return LIST if kinds[:1] == [LIST] and OTHER not in kinds else OTHER
    if name == "full":
        return LIST if kinds == [NUMBER, NUMBER] else OTHER
    if name == "concat":
        return OTHER if OTHER in kinds else LIST
    return OTHER
