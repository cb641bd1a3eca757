"""Of which kind an attribute is whose default is of another kind than it says."""

from __future__ import annotations

from smartmem_rules.language import syntax as s
from smartmem_rules.language.expressions import nodes

_OF_LISTS = frozenset({"rank", "prod", "sum_of", "sort", "reverse", "cumsum", "distinct", "contains", "index_of"})


def is_list(operator: s.Operator, attribute: s.Attribute | s.Input) -> bool:
    """Whether a definition uses an attribute as a list, or its default has several members."""
    if isinstance(attribute.default, s.ListOf) and len(attribute.default.items) != 1:
        return True
    name = s.Name(s.NOWHERE, attribute.name)
    for node in nodes(operator):
        match node:
            case s.Subscript(base=base) | s.Splat(operand=base) if base == name:
                return True
            case s.Call(function=function, arguments=(first, *_)) if function in _OF_LISTS and first == name:
                return True
            case s.Call(
                function="take" | "drop" | "permute" | "unpermute" | "put" | "insert", arguments=(_, second, *_)
            ):
                if second == name:
                    return True
            case _:
                pass
    return False


def misdeclared(operator: s.Operator) -> set[str]:
    """Attributes with a list as default whose kind is that of one value: more is told of the default."""
    return {
        one.name
        for one in operator.attributes
        if isinstance(one.default, s.ListOf | s.Comprehension) and not one.kind.endswith("s")
    }
