"""How to mend a read of one element for each group of others, `scale[n // 32]`, where there are fewer than groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from smartmem_rules.language import syntax as s
from smartmem_rules.language.expressions import nodes
from smartmem_rules.language.fixes import Fix, advice
from smartmem_rules.language.printing.printer import print_expression
from smartmem_rules.rulebase.checks.deep.read_ways import Mend


def grouped(
    operator: s.Operator, read: s.Subscript, place: int, extent: s.Expression, helps: Callable[[Mend], bool]
) -> Fix | None:
    """The requirement that ties the number of groups to what is grouped, where it helps."""
    match read.items[place]:
        case s.Binary(operator="//", left=s.Name(id=index), right=size):
            pass
        case _:
            return None
    runs = _runs_below(operator, read, index)
    if runs is None or isinstance(extent, s.Splat):
        return None
    whole = _compared("==", _product(extent, size), runs)
    groups = s.Call(read.span, "ceil_div", (runs, size))
    enough = _compared("<=", groups, extent)
    for condition in (whole, enough):
        if not helps(_requiring(condition)):
            return None
    shown, base = print_expression(whole), print_expression(read.base)
    axis = f"axis {place} of `{base}`" if len(read.items) > 1 else f"`{base}`"
    return advice(
        f"nothing ties {axis}, which has `{print_expression(extent)}` elements, to the groups of "
        f"`{print_expression(size)}` of which `{index}` runs through `{print_expression(runs)}`: write "
        f"`require {shown}`, or `require {print_expression(enough)}` where the last group may be smaller"
    )


def _runs_below(operator: s.Operator, read: s.Subscript, index: str) -> s.Expression | None:
    """The extent below which an index runs: of a reduction around the read, of a local tensor, or of a result."""
    for equation in operator.equations:
        if all(node is not read for node in nodes(equation)):
            continue
        for binder in _binders(equation, read):
            if binder.name == index:
                return binder.bound if binder.kind == "loop" else None
        output = next((one for one in operator.outputs if one.name == equation.tensor), None)
        for number, binder in enumerate(equation.indices):
            if binder.name != index or binder.kind == "loops":
                continue
            if binder.bound != s.Name(binder.span, "_"):
                return binder.bound
            back = number - len(equation.indices)
            if output is not None and not isinstance(output.type.shape[back], s.Splat):
                return output.type.shape[back]
    return None


def _binders(equation: s.EquationSyntax, read: s.Subscript) -> Iterator[s.Binder]:
    for node in nodes(equation.body):
        if isinstance(node, s.Reduction) and any(inner is read for inner in nodes(node.body)):
            yield from node.binders


def _product(left: s.Expression, right: s.Expression) -> s.Expression:
    return s.Binary(left.span, "*", left, right)


def _compared(sign: str, left: s.Expression, right: s.Expression) -> s.Expression:
    return s.Binary(left.span, sign, left, right)


def _requiring(condition: s.Expression) -> Mend:
    return lambda operator: replace(operator, requires=(*operator.requires, condition))
