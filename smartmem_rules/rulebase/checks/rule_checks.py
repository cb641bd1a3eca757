"""What is wrong with rewrites, eliminations and index rules."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from smartmem_rules.language import syntax as s
from smartmem_rules.language.choices import Families
from smartmem_rules.language.codes import Code
from smartmem_rules.language.diagnostics import Diagnostic
from smartmem_rules.language.expansion import Names
from smartmem_rules.language.expressions import nodes
from smartmem_rules.language.fixes import advice, left_out, spelling
from smartmem_rules.language.patterns import OR, subpatterns
from smartmem_rules.language.printing.other_functions import operator_elsewhere
from smartmem_rules.language.printing.printer import print_expression, print_pattern
from smartmem_rules.language.roots import roots_of
from smartmem_rules.language.vocabulary import ALL_FUNCTIONS, RELAXATIONS
from smartmem_rules.rulebase.checks.analysis_checks import check_derived, check_facts
from smartmem_rules.rulebase.checks.attribute_checks import (
    attributes_bound,
    attributes_on,
    check_attributes,
    check_required_attributes,
)
from smartmem_rules.rulebase.checks.family_checks import not_chosen
from smartmem_rules.rulebase.checks.fitting_names import of_an_index_rule, unbound_operand, with_tensor_meant
from smartmem_rules.rulebase.checks.index_checks import divisors
from smartmem_rules.rulebase.checks.kind_checks import kinds_bound, kinds_in, wanted_in
from smartmem_rules.rulebase.checks.let_checks import (
    check_computed_on_left,
    check_constants,
    check_lets,
    check_order_of_lets,
    check_uses_of_terms,
    terms_of,
)
from smartmem_rules.rulebase.checks.meaning_checks import predicate_meant
from smartmem_rules.rulebase.checks.meant.copies import copy_fix
from smartmem_rules.rulebase.checks.meant.lengths.lists import check_lists
from smartmem_rules.rulebase.checks.operand_checks import (
    ABSENT_ELSEWHERE,
    check_absent_words,
    check_operands,
    check_upper_case,
)
from smartmem_rules.rulebase.checks.operators.definitions import Functions, parameters, shape_names
from smartmem_rules.rulebase.checks.purity import ATTRIBUTE, CONSTANT, impurities
from smartmem_rules.rulebase.checks.scope import Scope, head
from smartmem_rules.rulebase.patterns import joined_by

Operators = Mapping[str, Sequence[s.Operator]]
ABSENT = "_"

_NO_FAMILIES: Families = MappingProxyType({})


def check_rewrite(
    rule: s.Rewrite, operators: Operators, functions: Functions, names: Names, families: Families = _NO_FAMILIES
) -> Iterator[Diagnostic]:
    """The problems of one rewrite; a bidirectional one must hold in both directions."""
    rule = names.with_applications(rule)
    unknown = list(check_derived(rule, names))
    if unknown:
        yield from unknown
        return
    early = list(check_order_of_lets(rule))
    yield from (*early, *check_lets(rule), *check_facts(rule, names))
    for word in rule.relaxes:
        if word not in RELAXATIONS:
            place = rule.place(f"relaxes:{word}")
            known = advice(f"there are {', '.join(sorted(RELAXATIONS))}")
            fix = spelling(word, RELAXATIONS, place) or known
            if word in ("where", "let", "explores", "tags", "cites", "unsound"):
                fix = advice(f"`{word}` begins the next clause: leave the comma before it out, or write a word there")
            yield Diagnostic(Code.UNKNOWN_RELAXATION, "error", f"there is no relaxation `{word}`", place, fix=fix)
    yield from _check_roots(rule)
    yield from check_constants(rule, names)
    in_patterns = [
        one
        for pattern in (*roots_of(rule.left), rule.right)
        for one in check_pattern(pattern, operators, names, rule, families)
    ]
    lists = list(check_lists(rule, operators))
    yield from (*in_patterns, *lists)
    found = list(_check_direction(rule.left, rule.right, rule.guards, operators, functions, names))
    if rule.bidirectional and isinstance(rule.right, s.PatternVariable | s.PatternNumber):
        yield _bare(rule.right.span, both=True)
    elif rule.bidirectional and not lists:
        found += _check_direction(rule.right, rule.left, rule.guards, operators, functions, names)
    # a word that is no value of an attribute is bound by nothing, either
    told = {one.span for one in (*early, *lists)} | {one.span for one in in_patterns if one.code == Code.UNDEFINED_NAME}
    yield from dict.fromkeys(one for one in found if one.span not in told)
    tensors = frozenset(part.name for part in _walk(rule.left) if isinstance(part, s.PatternVariable))
    for guard in rule.guards:
        if predicate_meant(guard, names.predicates) is None:  # what the arguments of another function mean is unknown
            open_ = set(_in_unknown_calls(guard, found))
            yield from (one for one in impurities(guard, tensors, names) if one.span not in open_)
        yield from check_uses_of_terms(guard, rule)
    for part in _walk(rule.right):
        if isinstance(part, s.PatternAttribute):
            yield from impurities(part.value, tensors, names, ATTRIBUTE)
        elif isinstance(part, s.PatternComputed):
            yield from impurities(part.value, tensors, names, CONSTANT)
    for term in terms_of(rule):
        yield from check_pattern(term.pattern, operators, names, rule, families)


def check_dtypes(rule: s.Rewrite, operators: Operators) -> Iterator[Diagnostic]:
    """Operands that no dtype fits, and sides that cannot have the same one."""
    from smartmem_rules.analysis.types.dtypes import Dtypes  # start-up time

    dtypes = Dtypes(operators)
    left = dtypes.of(rule.left)
    right = dtypes.of(rule.right) if dtypes.conflict is None else left
    if dtypes.conflict is not None:
        pattern, reason = dtypes.conflict
        fix = advice("put a `Cast` between, or an operator that takes what comes here")
        yield Diagnostic(Code.DTYPES_DIFFER, "error", f"no dtype fits here: {reason}", pattern.span, fix=fix)
    elif not left & right:
        message = "the sides cannot have the same dtype"
        note = f"the left side is {' | '.join(sorted(left))}, the right side {' | '.join(sorted(right))}"
        fix = advice("give the right side the dtype of the left: by another operator, or `CastLike`")
        yield Diagnostic(Code.DTYPES_DIFFER, "error", message, rule.right.span, note=note, fix=fix)


def check_eliminate(
    rule: s.Eliminate | s.Keep, operators: Operators, functions: Functions, names: Names
) -> Iterator[Diagnostic]:
    """The problems of one elimination or `keep`; its guards may use inputs, attributes and extents of the operator."""
    overloads = operators.get(rule.operator)
    if overloads is None:
        yield _unknown_operator(rule.operator, rule.place("operator"), operators)
        return
    bound: set[str] = set()
    for operator in overloads:
        bound.update(item.name for item in parameters(operator))
        bound.update(shape_names(operator))
    tensors = frozenset(i.name for o in overloads for i in o.inputs if i.constant is None)
    yield from (*check_lets(rule), *check_facts(rule, names))
    kinds = kinds_in(rule, operators)
    scope = replace(_scope(bound, functions, names), kinds=kinds, wanted=wanted_in(rule.guards, kinds, operators))
    scope = replace(scope, place=f"a name of the signature of `{rule.operator}`")
    for guard in rule.guards:
        yield from (with_tensor_meant(one, rule, overloads) for one in scope.problems(guard))
        yield from impurities(guard, tensors, names)


def check_keep(rule: s.Keep, operators: Operators, functions: Functions, names: Names) -> Iterator[Diagnostic]:
    """The problems of one `keep`; it is asked when a model is imported, before anything is known of readers."""
    yield from check_eliminate(rule, operators, functions, names)
    for number, guard in enumerate(rule.guards):
        for node in nodes(guard):
            if isinstance(node, s.Call) and node.function == "uses":
                message = "what is kept cannot depend on how often something is used"
                said = f"leave `{print_expression(guard)}` out: what is kept is told by its type, value or elements"
                fix = left_out(said, [one.span for one in rule.guards], number)
                yield Diagnostic(Code.IMPURE, "error", message, head(node.span, "uses"), fix=fix)


def check_index_rule(rule: s.IndexRule, functions: Functions, names: Names) -> Iterator[Diagnostic]:
    """The problems of one equation of index arithmetic."""
    yield from check_lets(rule)
    if isinstance(rule.left, s.Name | s.Number):
        yield _bare(rule.left.span)
    places, kinds = of_an_index_rule(rule, divisors(rule.left))
    scope = _scope({node.id for node in nodes(rule.left) if isinstance(node, s.Name)}, functions, names)
    scope = replace(scope, wanted=places, kinds=kinds)
    for expression in (rule.left, rule.right, *rule.guards):
        yield from scope.problems(expression)


def check_duplicate_rewrites(rules: Sequence[s.Rewrite], operators: Operators) -> Iterator[Diagnostic]:
    """A message for each rewrite that says the same as an earlier one."""
    first: dict[object, s.Rewrite] = {}
    for rule in rules:
        renamed = {name: f"v{place}" for place, name in enumerate(dict.fromkeys(_bound_names(rule.left)))}
        key = _canonical((rule.left, rule.right, rule.bidirectional, rule.guards), renamed)
        earlier = first.setdefault(key, rule)
        if earlier is not rule and earlier.name != rule.name:
            message = f"`{rule.name}` says the same as `{earlier.name}`"
            fix = copy_fix(rule, earlier, operators)
            if rule.span == earlier.span:
                message = f"this rule is the same for each member of its family: `{rule.name}` is `{earlier.name}`"
                fix = advice("write the name that stands behind `for` where the member is meant")
            yield Diagnostic(
                Code.DUPLICATE_REWRITE,
                "error",
                message,
                rule.place("name"),
                secondary=(earlier.place("name"), f"`{earlier.name}` is here"),
                fix=fix,
            )


def check_pattern(
    pattern: s.Pattern, operators: Operators, names: Names, rule: s.Rewrite, families: Families = _NO_FAMILIES
) -> Iterator[Diagnostic]:
    """Unknown operators, operand counts, attributes and outputs in a pattern of a rule."""
    named_otherwise = names.constants.keys() | ABSENT_ELSEWHERE
    if isinstance(pattern, s.PatternVariable) and pattern.name[0].isupper() and pattern.name not in named_otherwise:
        yield from check_upper_case(pattern, rule, pattern.name in operators)
    if not isinstance(pattern, s.PatternOperator):
        return
    overloads = operators.get(pattern.operator)
    if OR in pattern.operator or pattern.operator in families:
        yield not_chosen(pattern, rule, families)
    elif overloads is None:
        yield _unknown_operator(pattern.operator, head(pattern.span, pattern.operator), operators)
    else:
        yield from check_absent_words(pattern)
        yield from check_operands(pattern, overloads, rule)
        yield from check_attributes(pattern, overloads)
        yield from _check_output(pattern, overloads)
    for argument in pattern.arguments:
        yield from check_pattern(argument, operators, names, rule, families)


def _in_unknown_calls(guard: s.Expression, found: Collection[Diagnostic]) -> Iterator[s.Span]:
    """The places inside of calls of functions that there are not: what arguments mean there is not known."""
    unknown = {one.span[:3] for one in found if one.code == Code.UNDEFINED_FUNCTION}
    for call in nodes(guard):
        if isinstance(call, s.Call) and call.span[:3] in unknown:
            yield from (part.span for part in nodes(call) if isinstance(part, s.Expression))


def _check_output(pattern: s.PatternOperator, overloads: Sequence[s.Operator]) -> Iterator[Diagnostic]:
    variadic = any(output.index for operator in overloads for output in operator.outputs)
    most = max(len(operator.outputs) for operator in overloads)
    if pattern.output is not None and not variadic and pattern.output >= most:
        message = (
            f"`{pattern.operator}` has {most} output{'' if most == 1 else 's'}, so there is no `.{pattern.output}`"
        )
        fix = advice("outputs are counted from 0; the first needs no number")
        if most == 1:
            fix = advice(f"leave `.{pattern.output}` out: its one output needs no number")
        elif pattern.output == most:
            fix = advice(f"outputs are counted from 0, and the first needs no number: the last one is `.{most - 1}`")
        yield Diagnostic(Code.UNKNOWN_OUTPUT, "error", message, pattern.place("name"), fix=fix)


def _check_direction(
    left: s.Pattern,
    right: s.Pattern,
    guards: Sequence[s.Expression],
    operators: Operators,
    functions: Functions,
    names: Names,
) -> Iterator[Diagnostic]:
    if isinstance(left, s.PatternVariable | s.PatternNumber):
        yield _bare(left.span, right if left in set(subpatterns(right)) else None)
    computed = list(check_computed_on_left(left, operators))
    if computed:
        yield from computed
        return
    yield from _check_left_attributes(left, functions, names)
    bound = set(_bound_names(left))
    scope = _scope(bound, functions, names)
    kinds = kinds_bound(left, operators)
    wanted = wanted_in((right, *guards), kinds, operators)
    scope = replace(scope, attributes=attributes_on(left, operators), bound_as=attributes_bound(left))
    scope = replace(scope, kinds=kinds, wanted=wanted)
    yield from _check_right(right, bound, operators, scope)
    for guard in guards:
        yield from scope.problems(guard)
        for term in terms_of(guard):
            yield from _check_right(term.pattern, bound, operators, scope)


def _check_left_attributes(left: s.Pattern, functions: Functions, names: Names) -> Iterator[Diagnostic]:
    """An attribute of the left side may compute with what was bound before it."""
    bound: set[str] = set()
    for part in _walk(left):
        if isinstance(part, s.PatternAttribute) and not isinstance(part.value, s.Name):
            found = _scope(bound, functions, names).problems(part.value)
            if isinstance(part.value, s.ListOf):
                text = f"a name alone binds the whole list: `{part.name} = a`; its elements are `a[0]`, `a[1]`, ..."
                found = (replace(one, fix=advice(text)) for one in found)
            yield from found
        bound.update(_binds(part))


def _check_right(right: s.Pattern, bound: set[str], operators: Operators, scope: Scope) -> Iterator[Diagnostic]:
    for part in _walk(right):
        if isinstance(part, s.PatternAttribute | s.PatternComputed):
            yield from scope.problems(part.value)
            for term in terms_of(part.value):
                yield from _check_right(term.pattern, bound, operators, scope)
        elif isinstance(part, s.PatternVariable):
            if part.name not in {*bound, *ABSENT_ELSEWHERE, ABSENT} and not part.name[0].isupper():
                yield unbound_operand(part.name, part.span, bound, scope.kinds, right)
        elif isinstance(part, s.PatternOperator):
            for kind, name in (("bundle", f"@{part.bundle}"), ("variadic", f"*{part.variadic}")):
                if getattr(part, kind) and name not in bound:
                    yield unbound_operand(name, part.place(kind), bound, scope.kinds, right)
            yield from check_required_attributes(part, operators, scope.bound_as, bound, scope.attributes)


def _walk(pattern: s.Pattern) -> Iterator[s.Pattern | s.PatternAttribute]:
    """The parts of a pattern in the order in which they bind."""
    if isinstance(pattern, s.PatternOperator):
        for argument in pattern.arguments:
            yield from _walk(argument)
        yield from pattern.attributes
    yield pattern


def _bound_names(pattern: s.Pattern) -> Iterator[str]:
    """The names that a left side binds; bundles and operand lists keep their mark as well."""
    for part in _walk(pattern):
        yield from _binds(part)


def _binds(part: s.Pattern | s.PatternAttribute) -> Iterator[str]:
    if isinstance(part, s.PatternVariable) and part.name != ABSENT:
        yield part.name
    elif isinstance(part, s.PatternAttribute) and isinstance(part.value, s.Name):
        yield part.value.id
    elif isinstance(part, s.PatternOperator):
        if part.bundle is not None:
            yield f"@{part.bundle}"
        if part.variadic is not None:
            yield part.variadic
            yield f"*{part.variadic}"


def _canonical(node: object, renamed: Mapping[str, str]) -> object:
    """A hashable form of a rule in which bound names are numbered and spans are left out."""
    if isinstance(node, tuple):
        return tuple(_canonical(part, renamed) for part in node)
    if isinstance(node, s.PatternAttribute):
        return ("attribute", node.name, _canonical(node.value, renamed))
    if isinstance(node, s.Name | s.PatternVariable):
        name = node.id if isinstance(node, s.Name) else node.name
        return (type(node).__name__, renamed.get(name, name))
    if isinstance(node, s.PatternOperator):
        marks = (node.bundle and renamed.get(f"@{node.bundle}"), node.variadic and renamed.get(node.variadic))
        parts = (_canonical(node.arguments, renamed), _canonical(node.attributes, renamed))
        return (node.operator, *parts, *marks, node.output)
    if isinstance(node, s.Syntax):
        values = (getattr(node, name) for name in s.parts_of(node))
        return (type(node).__name__, *(_canonical(value, renamed) for value in values))
    return node


def _check_roots(rule: s.Rewrite) -> Iterator[Diagnostic]:
    """Patterns that match everywhere, that are the same, or that share no tensor with the others."""
    if rule.part_of is None:
        return
    patterns = sorted(roots_of(rule.left), key=lambda pattern: (pattern.span.line, pattern.span.column))
    for place, pattern in enumerate(patterns):
        if not isinstance(pattern, s.PatternOperator):
            message = "one of the patterns is a single variable or number and would match everywhere"
            fix = advice("begin each pattern with an operator: `MatMul(x, a), MatMul(x, b) => ...`")
            yield Diagnostic(Code.BARE_LEFT_SIDE, "error", message, pattern.span, fix=fix)
        elif pattern in patterns[:place]:
            message = "two patterns of the left side are the same, so they match one tensor"
            fix = advice("leave one out, or give its operands other names")
            yield Diagnostic(Code.SAME_PATTERN, "error", message, pattern.span, fix=fix)
    _, apart = joined_by(patterns)
    for pattern in apart:
        message = "this pattern shares no tensor with the others, so nothing says which of its matches belong to theirs"
        fix = advice("give a tensor of it the name of one of theirs, or make it a rule of its own")
        yield Diagnostic(Code.NOT_JOINED, "error", message, pattern.span, fix=fix)


def _scope(bound: set[str], functions: Functions, names: Names) -> Scope:
    return Scope(
        frozenset(bound) | names.constants.keys(),
        ALL_FUNCTIONS,
        {**functions, **names.predicates, **names.analyses},
        unknown=Code.UNBOUND_VARIABLE,
        place="bound by the left side",
        has_terms=True,
    )


def _bare(span: s.Span, right: s.Pattern | None = None, both: bool = False) -> Diagnostic:
    message = "the left side is a single variable or number and would match everywhere"
    fix = advice("begin with an operator: `Add(x, 0) => x`")
    if isinstance(right, s.PatternOperator):
        fix = advice(f"exchange the sides: `{print_pattern(right)}` becomes what stands on the left now")
    if both:
        message = "from right to left, this side is a single variable or number and would match everywhere"
        fix = advice("write `=>` for `<=>`: the rule holds from left to right")
    return Diagnostic(Code.BARE_LEFT_SIDE, "error", message, span, fix=fix)


def _unknown_operator(name: str, span: s.Span, operators: Operators) -> Diagnostic:
    fix = spelling(name, operators, span) or operator_elsewhere(name, span, operators)
    if fix is None:
        fix = advice(f"define it, `operator {name}(x: T[*S]) -> y: T[*S] {{ ... }}`, or import the file that does")
    if name.lower() in ("constant", "const"):
        fix = advice("a constant operand is a plain name, and a guard asks for it: `where constant(c)`")
    return Diagnostic(Code.UNKNOWN_OPERATOR, "error", f"there is no operator `{name}`", span, fix=fix)
