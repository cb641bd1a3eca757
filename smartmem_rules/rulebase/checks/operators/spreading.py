"""Names of single extents that are used as lists of extents: a star is missing in the signature, or is one too many."""

from __future__ import annotations

from collections.abc import Iterator

from smartmem_rules.language import syntax as s
from smartmem_rules.language.codes import Code
from smartmem_rules.language.diagnostics import Diagnostic
from smartmem_rules.language.expressions import nodes
from smartmem_rules.language.fixes import Edit, advice, before, edit
from smartmem_rules.language.printing.printer import print_expression

_OF_LISTS = frozenset(
    {"rank", "prod", "sum_of", "reverse", "sort", "cumsum", "distinct", "take", "drop", "permute", "unpermute"}
    | {"put", "insert", "concat", "broadcast"}
)
"""Functions whose first operand is a list."""


def check_spreading(operator: s.Operator) -> Iterator[Diagnostic]:
    """Extents of inputs that stand for one axis there and for a list of axes elsewhere."""
    single: dict[str, list[s.Span]] = {}
    lists: dict[str, s.Span] = {}
    for item in operator.inputs:
        for extent in item.type.shape if item.type is not None else ():
            if isinstance(extent, s.Name):
                single.setdefault(extent.id, []).append(extent.span)
            elif isinstance(extent, s.Splat) and isinstance(extent.operand, s.Name):
                lists.setdefault(extent.operand.id, extent.span)
    attributes = {one.name for one in operator.attributes}
    for name, places in single.items():
        uses = list(_uses_as_list(operator, name))
        place = lists.get(name) or next((span for span, _ in uses), None)
        if place is None or name in attributes:
            continue
        if name not in lists and _counted(operator, name):
            use = next(shown for _, shown in uses)
            message = f"`{name}` is one extent, but `{use}` takes it as a list"
            other = "R" if name == "S" else "S"
            fix = advice(f"write a name of its own for the list, such as `*{other}`, or use `{name}` without the star")
            yield Diagnostic(
                Code.INDEX_COUNT, "error", message, place, secondary=(places[0], "it is bound here"), fix=fix
            )
            continue
        used = f"`*{name}`" if name in lists else f"`{uses[0][1]}`"
        message = f"`{name}` is one extent here, but {used} takes it as a list of extents"
        results = [one.span for item in operator.outputs for one in item.type.shape if one == s.Name(s.NOWHERE, name)]
        fix = edit(f"write `*{name}`", *(Edit(before(one), "*") for one in (*places, *results)))
        if name in lists:
            fix = advice(f"write `*{name}` if it has all these axes, or a name of its own for one axis")
        secondary = (place, "here it is a list")
        yield Diagnostic(Code.INDEX_COUNT, "error", message, places[0], secondary=secondary, fix=fix)


def spread_extents(operator: s.Operator) -> frozenset[str]:
    """The names that are bound as one extent and used as a list of extents."""
    bound = (one for item in operator.inputs for one in (item.type.shape if item.type is not None else ()))
    return frozenset(one.id for one in bound if isinstance(one, s.Name) and any(_uses_as_list(operator, one.id)))


def _uses_as_list(operator: s.Operator, name: str) -> Iterator[tuple[s.Span, str]]:
    """Where a name stands for a list, and how that reads."""
    wanted = s.Name(s.NOWHERE, name)
    for root in (*operator.outputs, *operator.requires, *operator.lets, *operator.equations):
        for node in nodes(root):
            match node:
                case s.Splat(operand=operand) if operand == wanted:
                    yield node.span, f"*{name}"
                case s.Binder(kind="loops", bound=bound) if bound == wanted:
                    yield node.span, f"*{node.name} < {name}"
                case s.Call(function=function, arguments=(first, *_)) if function in _OF_LISTS and first == wanted:
                    yield node.span, print_expression(node)
                case _:
                    pass


def _counted(operator: s.Operator, name: str) -> bool:
    """Whether a name is also used as a number: as an extent of a result, in arithmetic, or as the end of a loop."""
    wanted = s.Name(s.NOWHERE, name)
    for root in (*operator.outputs, *operator.requires, *operator.lets, *operator.equations):
        for node in nodes(root):
            match node:
                case s.Binary(operator="+" | "-" | "*" | "/" | "//" | "%", left=left, right=right):
                    if wanted in (left, right):
                        return True
                case s.Binder(kind="loop" | "unrolled", bound=bound) if bound == wanted:
                    return True
                case _:
                    pass
    return any(len(item.type.shape) > 1 and wanted in item.type.shape for item in operator.outputs)
