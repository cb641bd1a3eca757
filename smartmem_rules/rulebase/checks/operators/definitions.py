"""What is wrong with the definition of an operator or of a function."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from smartmem_rules.language import syntax as s
from smartmem_rules.language.codes import Code
from smartmem_rules.language.diagnostics import Diagnostic
from smartmem_rules.language.expansion import Names
from smartmem_rules.language.expressions import nodes
from smartmem_rules.language.fixes import Edit, Fix, advice, edit, inserted, replacement, spelling
from smartmem_rules.language.printing.other_functions import kind_elsewhere
from smartmem_rules.language.vocabulary import (
    ALL_FUNCTIONS,
    ATTRIBUTE_KINDS,
    CLASSES,
    CONSTANT_KINDS,
    DEFINITION_FUNCTIONS,
    DTYPE_WORDS,
    IMPLICIT_DTYPE_VARIABLE,
    LIST_FUNCTIONS,
    MAPPINGS,
)
from smartmem_rules.rulebase.checks.meant.arguments import kinds_of_operands
from smartmem_rules.rulebase.checks.meant.closed_forms import recursion_fix
from smartmem_rules.rulebase.checks.meant.lengths.extents import starred, with_extent_meant
from smartmem_rules.rulebase.checks.meant.names import bare_defaults, check_extents
from smartmem_rules.rulebase.checks.operators import order
from smartmem_rules.rulebase.checks.operators.clauses import check_costs, check_reference
from smartmem_rules.rulebase.checks.scope import Scope, children, head, index_count

Functions = Mapping[str, s.Function]


def check_function(function: s.Function | s.Predicate, functions: Functions, names: Names) -> Iterator[Diagnostic]:
    """The problems of one function or predicate; only a predicate may ask about tensors."""
    scope = Scope(frozenset(function.parameters) | names.constants.keys(), LIST_FUNCTIONS, functions)
    if isinstance(function, s.Predicate):
        scope = replace(scope, functions=ALL_FUNCTIONS, user_functions={**functions, **names.predicates})
    yield from (order.asked_of_tensors(one, function) for one in scope.problems(function.body))


def check_constant(
    constant: s.Constant, functions: Functions, names: Names, items: Sequence[s.Item]
) -> Iterator[Diagnostic]:
    """The problems of one named constant; `items` are those that may use it."""
    if not constant.name[0].isupper():
        message = f"the constant `{constant.name}` begins with a lower-case letter, like a tensor"
        fix = _in_upper_case(constant, items)
        yield Diagnostic(Code.LOWER_CASE_CONSTANT, "error", message, constant.place("name"), fix=fix)
    yield from Scope(frozenset(names.constants), LIST_FUNCTIONS, functions).problems(constant.value)


def _in_upper_case(constant: s.Constant, items: Sequence[s.Item]) -> Fix:
    """The constant's name in upper case, where it is defined and where items of its file use it."""
    new = constant.name.upper()
    edits = {constant.place("name"): Edit(constant.place("name"), new, constant.name)}
    for item in items:
        if item.span.file == constant.span.file and constant.name not in _bound_in(item):
            for node in nodes(item):
                if isinstance(node, s.Name) and node.id == constant.name:
                    edits[node.span] = Edit(node.span, new, constant.name)
    return edit(f"call it `{new}`", *edits.values())


def _bound_in(item: s.Item) -> set[str]:
    """The names that an item gives a meaning of its own."""
    own = s.Input | s.Attribute | s.Output | s.Let | s.Binder | s.PatternVariable
    found = {node.name for node in nodes(item) if isinstance(node, own)}
    return found | set(getattr(item, "parameters", ()))


def check_recursion(functions: Functions, names: Names) -> Iterator[Diagnostic]:
    """One message for each cycle of functions, predicates or constants that use one another."""
    named: dict[str, s.Function | s.Predicate | s.Constant] = {**functions, **names.predicates, **names.constants}
    bodies = {name: one.value if isinstance(one, s.Constant) else one.body for name, one in named.items()}
    uses = {name: frozenset(_used(body, names)) & named.keys() for name, body in bodies.items()}
    reported: set[str] = set()
    for name, one in named.items():
        cycle = _cycle(name, uses)
        if not cycle or reported.intersection(cycle):
            continue
        reported.update(cycle)
        path = " -> ".join(f"`{step}`" for step in (*cycle, name))
        what = "constants may not use" if isinstance(one, s.Constant) else "functions may not call"
        fix = recursion_fix([named[step] for step in cycle])
        yield Diagnostic(Code.RECURSIVE_FUNCTION, "error", f"{what} themselves: {path}", one.place("name"), fix=fix)


def check_operator(operator: s.Operator, functions: Functions, names: Names) -> Iterator[Diagnostic]:
    """The problems of one operator; overloads are judged one by one."""
    yield from _check_signature(operator)
    yield from _check_declarations(operator)
    scope = _signature_scope(operator, functions).with_names(names.constants)
    # A variadic output can be counted before it is written.
    scope = scope.with_names(output.name for output in operator.outputs if output.index)
    bare = dict(bare_defaults(operator, scope.names))
    for default in (*(item.default for item in operator.inputs), *(item.default for item in operator.attributes)):
        if default is not None:
            yield from (bare.get(found.span, found) for found in scope.problems(default))
    for number, let in enumerate(operator.lets):
        for one in scope.problems(let.value):
            yield _let_of_elements(one, let, scope) or order.in_let(one, let, operator.lets[number:])
        scope = scope.with_names([let.name])
    for condition in (*operator.requires, *operator.expects):
        yield from scope.problems(condition)
    for output in operator.outputs:
        inner = scope.with_names([output.index] if output.index else [])
        for place, extent in enumerate(output.type.shape):
            yield from with_extent_meant(_check_extent(extent, inner, operator), operator, output, place)
    yield from _check_equations(operator, scope)
    yield from check_costs(operator, scope)


def _let_of_elements(found: Diagnostic, let: s.Let, scope: Scope) -> Diagnostic | None:
    """A `let` that reads elements at an index, as a local tensor does."""
    if found.code != Code.UNDEFINED_NAME or let.name in scope.ranks:
        return None
    for read in nodes(let.value):
        if not isinstance(read, s.Subscript) or not isinstance(read.base, s.Name) or read.base.id not in scope.ranks:
            continue
        if all(item.span != found.span for item in _index_names(read)):
            continue
        names = [print_index(item) for item in read.items]
        left = ", ".join(f"{name} < EXTENT" for name in names if name)
        read_so = ", ".join(names)
        fix = advice(f"a local tensor has elements: `{let.name}[{left}] = ...`, read as `{let.name}[{read_so}]`")
        word = found.message.split("`")[1]
        message = f"`let` names one value for all elements, so the index `{word}` is not defined here"
        return replace(found, message=message, fix=fix)
    return None


def _index_names(read: s.Subscript) -> Iterator[s.Name]:
    for item in read.items:
        inner = item.operand if isinstance(item, s.Splat | s.Broadcast) else item
        if isinstance(inner, s.Name):
            yield inner


def print_index(item: s.Expression) -> str:
    """An index of a read as the left side of an equation has it; empty where it is no plain name."""
    if isinstance(item, s.Splat) and isinstance(item.operand, s.Name):
        return f"*{item.operand.id}"
    return item.id if isinstance(item, s.Name) else ""


def _check_extent(extent: s.Expression, scope: Scope, operator: s.Operator) -> Iterator[Diagnostic]:
    """An extent of an output: an expression, or `count <= BOUND` with the name of a local scalar tensor."""
    if isinstance(extent, s.Binary) and extent.operator == "<=" and isinstance(extent.left, s.Name):
        locals_ = {e.tensor for e in operator.equations if not e.indices} - {o.name for o in operator.outputs}
        yield from replace(scope, names=frozenset(locals_), place="a scalar tensor of this operator").problems(
            extent.left
        )
        extent = extent.right
    yield from scope.problems(extent)
    lists = {one.operand.id for item in operator.inputs for one in starred(item) if isinstance(one.operand, s.Name)}
    if isinstance(extent, s.Name) and extent.id in lists:
        message = f"`{extent.id}` stands for several extents, one for each axis"
        fix = replacement(f"write `*{extent.id}`", extent.span, f"*{extent.id}")
        yield Diagnostic(Code.INDEX_COUNT, "error", message, extent.span, fix=fix)


def parameters(operator: s.Operator) -> list[s.Input | s.Attribute | s.Let]:
    """What is known by name when the operator is instantiated, without the extents."""
    return [*operator.inputs, *operator.attributes, *operator.lets]


def shape_names(operator: s.Operator) -> list[str]:
    """The extents and lists of extents that the shapes of the inputs bind."""
    names: list[str] = []
    for item in operator.inputs:
        for extent in item.type.shape if item.type is not None else ():
            bound = extent.operand if isinstance(extent, s.Splat) else extent
            if isinstance(bound, s.Name):
                names.append(bound.id)
    return names


def _signature_scope(operator: s.Operator, functions: Functions) -> Scope:
    names = {item.name for item in operator.inputs} | {item.name for item in operator.attributes}
    names |= {variable.name for variable in operator.dtypes}
    names.update(shape_names(operator))
    names.add(IMPLICIT_DTYPE_VARIABLE)
    texts = frozenset(one.name for one in operator.attributes if one.kind == "string")
    extents, kinds = frozenset(shape_names(operator)), kinds_of_operands(operator)
    scope = Scope(frozenset(names), DEFINITION_FUNCTIONS, functions, extents=extents, texts=texts, kinds=kinds)
    for item in operator.inputs:
        if item.type is not None and not item.variadic:
            scope = scope.with_tensor(item.name, index_count(item.type.shape), item.span)
    return scope


def _check_signature(operator: s.Operator) -> Iterator[Diagnostic]:
    yield from _check_repeated_names(operator)
    yield from check_extents(operator)
    variables = {variable.name for variable in operator.dtypes} | {IMPLICIT_DTYPE_VARIABLE}
    for variable in operator.dtypes:
        for word in variable.classes:
            yield from _known(word, DTYPE_WORDS, Code.UNKNOWN_DTYPE, "dtype class", variable.place(f"classes:{word}"))
    types = [*(item.type for item in operator.inputs), *(output.type for output in operator.outputs)]
    for kind in types:
        if kind is not None:
            place = head(kind.span, kind.dtype)
            known = variables | DTYPE_WORDS
            for one in _known(kind.dtype, known, Code.UNKNOWN_DTYPE, "dtype", place):
                yield order.with_dtype_meant(one, kind, operator)
    for item in operator.inputs:
        if item.constant is not None:
            yield from _known(
                item.constant, CONSTANT_KINDS, Code.UNKNOWN_KIND, "kind of `const` input", item.place("kind")
            )
    for attribute in operator.attributes:
        yield from _known(
            attribute.kind, ATTRIBUTE_KINDS, Code.UNKNOWN_KIND, "kind of attribute", attribute.place("kind")
        )
    for item in operator.inputs[:-1]:
        if item.variadic:
            message = f"the variadic input `{item.name}` must be the last"
            fix = advice(f"put `{item.name}...` behind all other inputs")
            yield Diagnostic(Code.VARIADIC_NOT_LAST, "error", message, item.span, fix=fix)


def _check_repeated_names(operator: s.Operator) -> Iterator[Diagnostic]:
    first: dict[str, s.Span] = {}
    declared: list[s.Input | s.Attribute | s.Let | s.Output] = [*parameters(operator), *operator.outputs]
    for item in declared:
        if item.name in first:
            message = f"`{item.name}` has a meaning in this operator already"
            secondary = (first[item.name], "the first is here")
            fix = advice("give it another name")
            yield Diagnostic(Code.DUPLICATE_NAME, "error", message, item.place("name"), secondary=secondary, fix=fix)
        first.setdefault(item.name, item.place("name"))


def _check_declarations(operator: s.Operator) -> Iterator[Diagnostic]:
    if operator.declared_class is not None:
        yield from _known(operator.declared_class, CLASSES, Code.UNKNOWN_CLASS, "class", operator.place("class"))
    if operator.declared_mapping is not None:
        yield from _known(
            operator.declared_mapping, MAPPINGS, Code.UNKNOWN_MAPPING, "mapping type", operator.place("mapping")
        )
    if operator.reference is not None:
        yield from check_reference(operator, operator.reference)
    for onnx in (operator.onnx, *operator.also):
        if onnx is not None and onnx.until is not None and onnx.until < onnx.since:
            message = f"no opset lies in {onnx.since}..{onnx.until}"
            fix = advice(
                f"the lower version stands first: `{onnx.until}..{onnx.since}`, or `{onnx.since}..` without end"
            )
            yield Diagnostic(Code.EMPTY_OPSET_RANGE, "error", message, onnx.span, fix=fix)


def _check_equations(operator: s.Operator, scope: Scope) -> Iterator[Diagnostic]:
    outputs = {output.name: output for output in operator.outputs}
    written: dict[str, s.Span] = {}
    # A variadic output can be counted before it is written.
    scope = scope.with_names(outputs)
    for equation in operator.equations:
        if equation.scan:
            indices = [s.Splat(b.span, b.bound) if b.kind == "loops" else b.bound for b in equation.indices]
            scope = scope.with_tensor(equation.tensor, index_count(indices), equation.span)
    for equation in operator.equations:
        yield from _check_left_side(equation, operator, written)
        inner = scope.with_names([equation.member] if equation.member else [])
        inner, found = inner.after(equation.indices)
        yield from found
        later = {one.tensor for one in operator.equations} - written.keys()
        yield from (order.in_equation(one, equation, later) for one in inner.problems(equation.body))
        written.setdefault(equation.tensor, equation.place("name"))
        if equation.member is None:
            indices = [s.Splat(b.span, b.bound) if b.kind == "loops" else b.bound for b in equation.indices]
            scope = scope.with_tensor(equation.tensor, index_count(indices), equation.span)
    for name, output in outputs.items():
        if name not in written:
            message = f"no equation computes the output `{name}` of `{operator.name}`"
            read = {node.id for e in operator.equations for node in nodes(e.body) if isinstance(node, s.Name)}
            others = [e for e in operator.equations if e.tensor not in outputs and e.tensor not in read]
            fix = advice(f"add an equation `{name}[...] = ...`")
            if len(others) == 1:
                places = ", ".join("*" * (one.kind == "loops") + one.name for one in others[0].indices)
                said = f"add an equation `{name}[{places}] = {others[0].tensor}[{places}]`"
                fix = advice(f"{said}: `{others[0].tensor}` is computed, but nothing reads it")
            yield Diagnostic(Code.NO_EQUATION, "error", message, output.place("name"), fix=fix)


def _check_left_side(
    equation: s.EquationSyntax, operator: s.Operator, written: Mapping[str, s.Span]
) -> Iterator[Diagnostic]:
    tensor = equation.tensor
    output = next((output for output in operator.outputs if output.name == tensor), None)
    taken = {item.name: item.place("name") for item in parameters(operator)} | dict(written)
    if tensor in taken:
        message = f"`{tensor}` has a meaning in this operator already"
        secondary = (taken[tensor], "the first is here")
        fix = advice(f"one equation gives all elements of `{tensor}`: give this one another name, or leave it out")
        yield Diagnostic(Code.DUPLICATE_NAME, "error", message, equation.place("name"), secondary=secondary, fix=fix)
    elif output is None:
        yield from _check_local_extents(equation, operator)
    else:
        yield from _check_output_indices(equation, output)


def _check_local_extents(equation: s.EquationSyntax, operator: s.Operator) -> Iterator[Diagnostic]:
    for binder in equation.indices:
        if binder.bound == s.Name(binder.span, "_"):
            message = f"index `{binder.name}` of the local tensor `{equation.tensor}` has no extent"
            outputs = [output.name for output in operator.outputs]
            fix = spelling(equation.tensor, outputs, equation.place("name"))
            star = "*" if binder.kind == "loops" else ""
            fix = fix or order.index_of_extent(binder, shape_names(operator))
            extent = _extent_of(binder.name, equation, operator) or "EXTENT"
            wanted = advice(f"write `{star}{binder.name} < {extent}`")
            if extent != "EXTENT":
                wanted = inserted(f"write `{star}{binder.name} < {extent}`", binder.span, f" < {extent}")
            yield Diagnostic(Code.NO_EXTENT, "error", message, binder.span, fix=fix or wanted)


def _extent_of(index: str, equation: s.EquationSyntax, operator: s.Operator) -> str | None:
    """The extent of the first axis that an equation reads at an index alone, where the signature names it."""
    shapes = {item.name: item.type.shape for item in operator.inputs if item.type is not None}
    for node in nodes(equation.body):
        if isinstance(node, s.Subscript) and isinstance(node.base, s.Name) and node.base.id in shapes:
            shape = shapes[node.base.id]
            for item, extent in zip(node.items, shape, strict=False):
                if print_index(item).lstrip("*") == index and isinstance(extent, s.Splat) == isinstance(item, s.Splat):
                    inner = extent.operand if isinstance(extent, s.Splat) else extent
                    if isinstance(inner, s.Name):
                        return inner.id
                if isinstance(item, s.Splat) or isinstance(extent, s.Splat):
                    break
    return None


def _check_output_indices(equation: s.EquationSyntax, output: s.Output) -> Iterator[Diagnostic]:
    if (equation.member is None) != (output.index is None):
        inner = ", ".join((f"*{b.name}" if b.kind == "loops" else b.name) for b in equation.indices)
        if output.index:
            message, meant = f"`{output.name}` is a variadic output", f"{output.name}[{output.index}][{inner}]"
        else:
            message, meant = f"`{output.name}` is one output", f"{output.name}[{equation.member}, {inner}]"
        fix = advice(f"write `{meant}`")
        secondary = (output.span, "it is declared here")
        yield Diagnostic(Code.INDEX_COUNT, "error", message, equation.span, secondary=secondary, fix=fix)
        return
    rank = index_count(output.type.shape)
    given = index_count([s.Splat(b.span, b.bound) if b.kind == "loops" else b.bound for b in equation.indices])
    if given.contradicts(rank):
        message = f"`{equation.tensor}` has {rank}, but is written with {given}"
        secondary, fix = (
            (output.span, "its shape is given here"),
            advice("write one index for each extent of its shape"),
        )
        yield Diagnostic(Code.INDEX_COUNT, "error", message, equation.span, secondary=secondary, fix=fix)


def _known(word: str, words: frozenset[str] | set[str], code: Code, what: str, span: s.Span) -> Iterator[Diagnostic]:
    if word not in words:
        near = kind_elsewhere(word, span, words) or spelling(word, words, span)
        note = None if near else f"there are {', '.join(sorted(words))}"
        fix = near or advice("write one of these")
        if near is None and what == "dtype":
            fix = advice("write `T`, any number, or one of these dtypes and classes")
        yield Diagnostic(code, "error", f"there is no {what} `{word}`", span, note=note, fix=fix)


def _used(expression: s.Expression, names: Names) -> Iterator[str]:
    """The functions and predicates that an expression calls, and the constants that it names."""
    if isinstance(expression, s.Call):
        yield expression.function
    elif isinstance(expression, s.Name) and expression.id in names.constants:
        yield expression.id
    for part in children(expression):
        yield from _used(part, names)
    for binder in getattr(expression, "binders", ()):
        yield from _used(binder.bound, names)


def _cycle(start: str, uses: Mapping[str, frozenset[str]]) -> list[str]:
    """A way of uses from `start` back to itself, without its end; empty when there is none."""
    paths = [[start]]
    seen: set[str] = set()
    while paths:
        path = paths.pop(0)
        for callee in sorted(uses[path[-1]]):
            if callee == start:
                return path
            if callee not in seen:
                seen.add(callee)
                paths.append([*path, callee])
    return []
