"""How to mend a definition that cannot be computed: what its author meant, by the text around the place."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from smartmem_rules.analysis.probes import allowed_dtypes
from smartmem_rules.language import syntax as s
from smartmem_rules.language.expressions import nodes
from smartmem_rules.language.fixes import Edit, Fix, advice, any_of, edit, replacement
from smartmem_rules.language.printing.printer import print_expression
from smartmem_rules.language.vocabulary import ELEMENT_FUNCTIONS, IMPLICIT_DTYPE_VARIABLE
from smartmem_rules.tensor.binding import DTYPE_CLASSES
from smartmem_rules.tensor.expr import ALL_DTYPES

_COMPARISONS = frozenset({"<", "<=", ">", ">=", "==", "!=", "and", "or"})
_OF_OTHER_TYPES = frozenset({"isnan", "isinf", "float", "pow"})
"""Functions of elements whose result may have another type than what they are given."""
_ADDS_UP = frozenset({"sum", "prod", "mean"})


def mended(failure: str, operator: s.Operator, place: s.Span) -> Fix:
    """How to mend a definition that fails so at a place of it."""
    if failure.startswith("operands of"):
        return _one_dtype(failure, operator, place)
    if "operand is absent" in failure:
        return _default(operator, place)
    if "is a list of tensors" in failure:
        return _member(operator, place)
    if "has no value here" in failure:
        return _no_value(failure.partition(" has no value here")[0].rpartition(" ")[2], operator, place)
    if "is of truth values" in failure:
        return _asked(operator, place)
    if "its definition" in failure:
        declared = re.search(r" is (\w+), its definition (\w+)", failure)
        dtype = declared[1] if declared else "T"
        counted = _of_truth_values(operator, place, dtype) if declared is not None and declared[2] == "bool" else None
        return counted or _another_type(operator, place, dtype, declared[2] if declared else None)
    if "used as an index" in failure:
        return advice("an index is an integer tensor or a loop's variable: declare `indices: int64[*S]`")
    if "this index is a list" in failure:
        return _starred(operator, place)
    return advice("change what the message names, or add a `require` that leaves such operands out")


def _starred(operator: s.Operator, place: s.Span) -> Fix:
    """A list of indices that stands where one index does."""
    found = (one for one in nodes(operator.equations) if isinstance(one, s.Expression) and one.span == place)
    index = next(found, None)
    if index is None:
        return advice("write `*` before it")
    plain = isinstance(index, s.Name | s.Call | s.Subscript | s.ListOf | s.Comprehension)
    new = f"*{print_expression(index)}" if plain else f"*({print_expression(index)})"
    return replacement(f"write `{new}`", place, new)


def _another_type(operator: s.Operator, place: s.Span, dtype: str, found: str | None) -> Fix:
    """A result of another type than it is declared with: the type that it has, or that of an operand."""
    equation = next((one for one in operator.equations if place in (one.span, one.body.span)), None)
    output = next((one for one in operator.outputs if equation is not None and one.name == equation.tensor), None)
    if equation is None or output is None or found is None:
        return advice(f"convert the right side, `cast(..., {dtype})`, or declare the type that it has")
    operand = next((i.name for i in operator.inputs if i.type is not None and i.type.dtype == output.type.dtype), None)
    wanted = f"dtype({operand})" if operand is not None and not found.startswith(output.type.dtype) else dtype
    cast = f"cast({print_expression(equation.body)}, {wanted})"
    variables = {one.name for one in operator.dtypes} | {IMPLICIT_DTYPE_VARIABLE}
    own = [i.type.dtype for i in operator.inputs if i.type is not None and i.type.dtype in variables]
    if own and found.startswith("float"):  # what was tried stands for all types of the variable
        found = own[0]
    shape = ", ".join(print_expression(one) for one in output.type.shape)
    return advice(f"declare the type that it has, `{output.name}: {found}[{shape}]`, or convert it, `{cast}`")


def _read_at(operator: s.Operator, place: s.Span) -> s.Subscript | None:
    reads = (node for node in nodes(operator.equations) if isinstance(node, s.Subscript))
    return next((node for node in reads if node.span == place), None)


def _default(operator: s.Operator, place: s.Span) -> Fix:
    """What stands for an element of an operand that is absent."""
    read = _read_at(operator, place)
    if read is None:
        return advice("say what stands for an absent operand, `(b[m] else 0)`, or ask for it, `if present(b) then ...`")
    new, operand = f"({print_expression(read)} else 0)", print_expression(read.base)
    return replacement(
        f"say what stands for an absent operand, `{new}`, or ask `if present({operand}) then`", place, new
    )


def _member(operator: s.Operator, place: s.Span) -> Fix:
    """A read of a list of tensors as if it were a tensor."""
    read = _read_at(operator, place)
    if read is None or not isinstance(read.base, s.Name):
        return advice(
            "write before the indices which member of the list is read, `xs[j][i]`, or `xs[0][i]` of the first"
        )
    name, indices = read.base.id, ", ".join(print_expression(item) for item in read.items)
    loops = [node for node in nodes(operator.equations) if isinstance(node, s.Binder)]
    over = next((node.name for node in loops if print_expression(node.bound) == f"count({name})"), None)
    return advice(f"write before the indices which member of the list is read: `{name}[{over or 0}][{indices}]`")


def _asked(operator: s.Operator, place: s.Span) -> Fix:
    """A condition on the elements that `any` or `all` goes through."""
    loops = (one for one in nodes(operator) if isinstance(one, s.Reduction) and one.span == place)
    found = next(loops, None)
    if found is None:
        return advice("write a condition on the elements: `(x[k] != 0)`")
    new = f"({print_expression(found.body)} != 0)"
    return replacement(f"write a condition on the elements, such as `{new}`", found.body.span, new)


def _of_truth_values(operator: s.Operator, place: s.Span, dtype: str) -> Fix | None:
    """How to count: a sum of truth values is a truth value, so that each of them becomes a number first."""
    for equation in operator.equations:
        if equation.span != place and equation.body.span != place:
            continue
        for node in nodes(equation.body):
            if isinstance(node, s.Reduction) and node.kind in _ADDS_UP and _is_truth(node.body):
                body = f"cast({print_expression(node.body)}, {dtype})"
                loops = print_expression(s.Reduction(node.span, node.kind, node.binders, node.condition, _dots(node)))
                shown = loops.replace("DOTS", body)
                said = f"a `{node.kind}` of truth values is one truth value: make each of them a number, `{shown}`"
                return replacement(said, node.body.span, body)
    return None


def _dots(node: s.Syntax) -> s.Name:
    return s.Name(node.span, "DOTS")


def _is_truth(expr: s.Expression) -> bool:
    """Whether an expression is a condition by its form."""
    if isinstance(expr, s.Unary):
        return expr.operator == "not"
    return isinstance(expr, s.Truth) or (isinstance(expr, s.Binary) and expr.operator in _COMPARISONS)


def _one_dtype(failure: str, operator: s.Operator, place: s.Span) -> Fix:
    """Which of two operands of different element types is to be converted, and to which."""
    general = "convert one of them, `cast(VALUE, DTYPE)`; DTYPE may be that of an operand, `dtype(x)`"
    node = next((one for one in nodes(operator) if isinstance(one, s.Binary) and one.span == place), None)
    if node is None:
        return advice(general)
    leaves = [(one, _dtype_of(one, operator)) for one in _terms(node)]
    variables = {variable.name for variable in operator.dtypes} | {IMPLICIT_DTYPE_VARIABLE}
    known = [dtype for _, dtype in leaves if dtype is not None]
    goal = next((one for one in known if one in variables or (one in DTYPE_CLASSES and one not in ALL_DTYPES)), None)
    floats = [one for one in known if one.startswith(("float", "bfloat")) and one in ALL_DTYPES]
    if goal is None or (floats and not allowed_dtypes(operator, goal) <= frozenset(DTYPE_CLASSES["float"])):
        goal = floats[0] if floats else None  # a fraction that becomes an integer loses digits
    wrong = [one for one, dtype in leaves if dtype is not None and dtype != goal]
    if goal is None or not wrong:
        return advice(general)
    target = goal if goal in ALL_DTYPES else f"dtype({_named(operator, goal)})"
    new = f"cast({print_expression(_before_cast(wrong[0]))}, {target})"
    kept = "`, `".join(print_expression(one) for one, dtype in leaves if dtype == goal)
    said = f"`{print_expression(wrong[0])}` has another element type than `{kept}`: write `{new}`"
    return replacement(said, wrong[0].span, new) if len(wrong) == 1 else advice(said)


def _before_cast(expr: s.Expression) -> s.Expression:
    """What a cast is of: to another type it is cast at once."""
    return expr.arguments[0] if isinstance(expr, s.Call) and expr.function == "cast" else expr


def _named(operator: s.Operator, dtype: str) -> str:
    """An input of an element type that a signature names."""
    found = (item.name for item in operator.inputs if item.type is not None and item.type.dtype == dtype)
    return next(found, "x")


def _terms(expr: s.Expression) -> Iterator[s.Expression]:
    """What arithmetic joins."""
    if isinstance(expr, s.Binary):
        yield from _terms(expr.left)
        yield from _terms(expr.right)
    elif isinstance(expr, s.Unary):
        yield from _terms(expr.operand)
    else:
        yield expr


def _dtype_of(expr: s.Expression, operator: s.Operator) -> str | None:
    """The element type of an expression, as the signature names it; None where that is not plain."""
    if isinstance(expr, s.Subscript) and isinstance(expr.base, s.Name):
        name = expr.base.id
        return next((i.type.dtype for i in operator.inputs if i.name == name and i.type is not None), None)
    if isinstance(expr, s.Call) and expr.arguments:
        if expr.function in ("cast", "bitcast"):
            target = expr.arguments[-1]
            return target.id if isinstance(target, s.Name) and target.id in ALL_DTYPES else None
        place = 1 if expr.function == "select" else 0
        known = expr.function in ELEMENT_FUNCTIONS.keys() - _OF_OTHER_TYPES and place < len(expr.arguments)
        return _dtype_of(expr.arguments[place], operator) if known else None
    loops = {node.name for node in nodes(operator) if isinstance(node, s.Binder)}
    return "int64" if isinstance(expr, s.Name) and expr.id in loops else None


def _no_value(word: str, operator: s.Operator, place: s.Span) -> Fix:
    """What to write for a name that has no value where it stands."""
    asked = any(isinstance(node, s.Conditional) and node.condition.span == place for node in nodes(operator))
    if asked and any(item.name == word and item.optional for item in operator.inputs):
        return replacement(f"write `present({word})`", place, f"present({word})")
    if any(variable.name == word for variable in operator.dtypes):
        typed = [item for item in operator.inputs if item.type is not None and item.type.dtype == word]
        meant = f"dtype({typed[0].name}{'[0]' if typed[0].variadic else ''})" if typed else "dtype(x)"
        said = f"`{word}` is a dtype variable, which has no value: write `{meant}`"
        used = [node for node in nodes(operator.equations) if isinstance(node, s.Name) and node.id == word]
        return edit(said, *(Edit(node.span, meant) for node in used)) if typed and used else advice(said)
    if word in DTYPE_CLASSES:
        return advice(f"`{word}` is a class of element types; write one of them: {any_of(DTYPE_CLASSES[word])}")
    for item in operator.inputs:
        if item.type is None or not item.variadic:
            continue
        for axis, extent in enumerate(item.type.shape):
            bound = extent.operand if isinstance(extent, s.Splat) else extent
            if isinstance(bound, s.Name) and bound.id == word:
                own = (
                    f"*shape({item.name}[0])"
                    if isinstance(extent, s.Splat)
                    else f"extent({item.name}[0], {_axis(item.type.shape, axis)})"
                )
                return advice(
                    f"each member of `{item.name}` has its own `{word}`: say of which one, `{own}` for the first"
                )
    for call in _ranks_of(operator, word):
        new = f"rank(shape({print_expression(call.arguments[0])}))"
        return replacement(f"in a definition `rank` is of a list: write `{new}`", call.span, new)
    known = _known_at_import(word, operator, place)
    if known is not None:
        return known
    read = _element_of(word, operator)
    if read is not None:
        said = f"`{word}` is a tensor, and an equation computes elements: read one, `{read}`"
        named = any(isinstance(node, s.Name) and node.id == word and node.span == place for node in nodes(operator))
        return replacement(said, place, read) if named else advice(said)
    return advice(f"`{word}` is a tensor, and an equation computes elements: read one, `{word}[*i]` or `{word}[i, k]`")


def _known_at_import(word: str, operator: s.Operator, place: s.Span) -> Fix | None:
    """An operand of the run whose value is wanted at import: in a requirement, a `let` or an extent."""
    item = next((one for one in operator.inputs if one.name == word and one.type is not None), None)
    early = (operator.requires, operator.lets, operator.outputs)
    if item is None or item.type is None or item.variadic or all(node.span != place for node in nodes(early)):
        return None
    number = "float" if item.type.dtype.startswith(("float", "bfloat")) else "int"
    new = f"const {word}: {number}{'s' if item.type.shape else ''}"
    said = f"`{word}` is known when the model runs, and this when it is imported: declare `{new}`"
    return replacement(said, item.span, new) if not item.optional else advice(said)


def _element_of(word: str, operator: s.Operator) -> str | None:
    """The read of a tensor at the indices of the only equation that run over its extents."""
    kind = next((item.type for item in operator.inputs if item.name == word and not item.variadic), None)
    if kind is None or len(operator.equations) != 1 or len(operator.outputs) != 1:
        return None
    indices = operator.equations[0].indices
    shape = operator.outputs[0].type.shape
    if len(indices) != len(shape):
        return None
    over = {
        print_expression(extent): f"*{one.name}" if one.kind == "loops" else one.name
        for one, extent in zip(indices, shape, strict=True)
    }
    read = [over.get(print_expression(extent)) for extent in kind.shape]
    return f"{word}[{', '.join(one for one in read if one is not None)}]" if None not in read else None


def _axis(shape: Sequence[s.Expression], axis: int) -> int:
    """The number of an axis, from the end where several stand before it."""
    return axis - len(shape) if any(isinstance(one, s.Splat) for one in shape[:axis]) else axis


def _ranks_of(operator: s.Operator, word: str) -> Iterator[s.Call]:
    for node in nodes(operator):
        if isinstance(node, s.Call) and node.function == "rank" and len(node.arguments) == 1:
            (subject,) = node.arguments
            base = subject.base if isinstance(subject, s.Subscript) else subject
            if isinstance(base, s.Name) and base.id == word:
                yield node
