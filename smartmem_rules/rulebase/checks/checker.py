"""All that can be known to be wrong with rule files before they run."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import TypeVar

from smartmem_rules.language import syntax as s
from smartmem_rules.language.choices import families_of
from smartmem_rules.language.codes import Code
from smartmem_rules.language.diagnostics import Diagnostic, with_certain_edits
from smartmem_rules.language.expansion import Names, expanded_modules, mentions
from smartmem_rules.language.fixes import advice
from smartmem_rules.records import dataclass
from smartmem_rules.rulebase.checks.analysis_checks import check_analysis, check_facts
from smartmem_rules.rulebase.checks.block_checks import check_block, check_level
from smartmem_rules.rulebase.checks.deep.deep_checks import DeepChecker, operators_in
from smartmem_rules.rulebase.checks.deep.dropped_attributes import check_dropped
from smartmem_rules.rulebase.checks.family_checks import check_operator_family
from smartmem_rules.rulebase.checks.index_checks import check_index_form, check_index_guards
from smartmem_rules.rulebase.checks.kind_checks import check_comparisons
from smartmem_rules.rulebase.checks.let_checks import check_loops
from smartmem_rules.rulebase.checks.matrix_checks import check_matrix
from smartmem_rules.rulebase.checks.meaning_checks import (
    check_conditions,
    check_defaults,
    check_extremes,
    check_indices,
    check_lets_of_elements,
    check_members,
    check_shapes,
)
from smartmem_rules.rulebase.checks.meant.idle_rulesets import check_idle
from smartmem_rules.rulebase.checks.meant.lengths.block_sizes import check_block_sizes
from smartmem_rules.rulebase.checks.meant.same_values import check_same_values
from smartmem_rules.rulebase.checks.operators.arithmetic import check_arithmetic
from smartmem_rules.rulebase.checks.operators.definitions import (
    check_constant,
    check_function,
    check_operator,
    check_recursion,
)
from smartmem_rules.rulebase.checks.operators.hidden_overloads import check_overloads
from smartmem_rules.rulebase.checks.operators.identities import check_domains, check_override
from smartmem_rules.rulebase.checks.operators.literals import check_literals
from smartmem_rules.rulebase.checks.operators.negative_axes import check_negative_axes
from smartmem_rules.rulebase.checks.operators.places import check_places
from smartmem_rules.rulebase.checks.operators.quotients import check_quotients
from smartmem_rules.rulebase.checks.operators.spreading import check_spreading
from smartmem_rules.rulebase.checks.operators.unread import check_unread
from smartmem_rules.rulebase.checks.relation_checks import (
    check_kept_already,
    check_relations,
    check_termination,
)
from smartmem_rules.rulebase.checks.rule_checks import (
    check_dtypes,
    check_duplicate_rewrites,
    check_eliminate,
    check_index_rule,
    check_keep,
    check_rewrite,
)
from smartmem_rules.rulebase.checks.ruleset_checks import check_ruleset_of, check_rulesets, run_by
from smartmem_rules.rulebase.checks.slip_checks import (
    check_bare_dtypes,
    check_division,
    check_dtype_guards,
    check_dtype_words,
    check_is_view,
    check_same_sides,
    commutative_names,
)
from smartmem_rules.rulebase.checks.table_checks import check_table
from smartmem_rules.rulebase.identity import BuiltIn, Identities

_LATE = {Code.NOT_DECREASING: 1, Code.INVERSE_PAIR: 2}
"""What is told last: whether a rule is right tells more than whether it pays, and that more than a second rule."""
_Kind = TypeVar("_Kind", bound=s.Syntax)
Named = (
    s.OperatorFamily
    | s.Function
    | s.Predicate
    | s.Analysis
    | s.Constant
    | s.Ruleset
    | s.Rewrite
    | s.Eliminate
    | s.IndexRule
    | s.Keep
    | s.Table
    | s.Block
)


def check(
    modules: Sequence[s.Module],
    deep: Collection[str] | None = None,
    only: Collection[str] | None = None,
    right: Collection[str] = (),
) -> list[Diagnostic]:
    """The problems of modules that are used together: errors, warnings, and warnings about two rules together.

    Each of these stand in the order of their text.

    Args:
        deep: files whose items are also tried at operand types and compared with one another; all where None.
        only: files whose messages are wanted; the others take part as far as these need them.
        right: files in which nothing is wrong as long as they are used without the others: of their items, those are
            looked at that speak of what the others define.
    """
    families = families_of(item for module in modules for item in module.items)
    written = expanded_modules(modules, families)
    identities = Identities.of(written)
    checker = _Checker([identities.identified(item) for item in written])
    found = [*check_domains(written, identities), *checker.problems(only, right)]
    found = [one for one in found if only is None or one.span.file in only]
    found += checker.deep_problems({one.span for one in found if one.severity == "error"}, deep)
    lines = {module.span.file: module.text.split("\n") for module in modules} if found else {}
    return [with_certain_edits(one, lines) for one in _in_order(found, modules)]


@dataclass
class _Checker:
    items: list[s.Item]
    functions: dict[str, s.Function] = field(default_factory=dict)
    operators: dict[str, list[s.Operator]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for function in _of(self.items, s.Function):
            self.functions.setdefault(function.name, function)
        for operator in _of(self.items, s.Operator):
            self.operators.setdefault(operator.name, []).append(operator)
        self.names = Names.of(self.items)
        self.families = families_of(self.items)
        self.commutative = commutative_names(self.operators)
        self.blocks = _of(self.items, s.Block)
        self.rulesets = _of(self.items, s.Ruleset)
        self.runners = [block for block in self.blocks if block.kind in ("level", "strategy")]
        named = {name for block in self.runners for name, _ in run_by(block)}
        rules: list[s.Rewrite | s.Eliminate] = [*_of(self.items, s.Rewrite), *_of(self.items, s.Eliminate)]
        self.declared_rulesets = {one.name for one in self.rulesets} | named
        self.known = {
            "ruleset": {one.name for one in self.rulesets} | {rule.ruleset for rule in rules if rule.ruleset},
            "table": {table.name for table in _of(self.items, s.Table)},
            "fuse": {block.name for block in self.blocks if block.kind == "fuse"},
            "layout": {block.name for block in self.blocks if block.kind == "layout"},
            "matrix": {block.name for block in self.blocks if block.kind == "matrix"},
            "strategy": {block.name for block in self.blocks if block.kind == "strategy"},
            "operator": self.operators.keys(),
        }

    def problems(self, only: Collection[str] | None, right: Collection[str] = ()) -> Iterator[Diagnostic]:
        """What each item shows by itself, and names that clash."""
        new = {name for item in self.items if item.span.file not in right and (name := getattr(item, "name", None))}
        yield from _check_names(self.items)
        yield from check_recursion(self.functions, self.names)
        yield from check_duplicate_rewrites(_of(self.items, s.Rewrite), self.operators)
        yield from check_same_values(_of(self.items, s.Rewrite))
        yield from check_kept_already(_of(self.items, s.Keep))
        yield from check_rulesets(self.rulesets, self.runners, self.known["ruleset"] | self.declared_rulesets)
        yield from check_idle(self.rulesets, self.blocks)
        for item in self.items:
            if only is not None and item.span.file not in only:
                continue
            if item.span.file not in right or not mentions(item).words.isdisjoint(new):
                yield from self._item(item)
        for overloads in self.operators.values():
            yield from check_overloads(overloads)

    def _item(self, item: s.Item) -> Iterator[Diagnostic]:
        yield from check_division(item)
        yield from check_bare_dtypes(item, self.functions)
        if isinstance(item, s.Rule):
            yield from check_conditions(item.guards, self.names.predicates)
        functions, operators, names = self.functions, self.operators, self.names
        yield from check_comparisons(item, operators)
        match item:
            case s.Function() | s.Predicate():
                yield from (*check_function(item, functions, names), *check_facts(item, names), *_body(item, names))
            case s.OperatorFamily():
                yield from check_operator_family(item, operators, self.families)
            case s.Analysis():
                yield from check_analysis(item)
            case s.Constant():
                yield from check_constant(item, functions, names, self.items)
            case s.Operator():
                yield from self._operator(item)
            case s.Rewrite():
                yield from check_rewrite(item, operators, functions, names, self.families)
                yield from check_same_sides(item, self.commutative)
                yield from check_dtype_words(item, functions)
                yield from self._ruleset(item)
            case s.Eliminate():
                yield from check_eliminate(item, operators, functions, names)
                yield from check_dtype_words(item, functions)
                yield from self._ruleset(item)
            case s.Keep():
                yield from check_keep(item, operators, functions, names)
                yield from check_dtype_words(item, functions)
            case s.IndexRule():
                yield from check_index_rule(item, functions, names)
                yield from check_index_form(names.resolved(item))  # type: ignore[arg-type]
            case s.Table():
                yield from check_table(item)
            case s.Block():
                found = [*check_block(item, self.known)]
                yield from found
                if not found:
                    yield from check_matrix(item) if item.kind == "matrix" else check_block_sizes(item)
                yield from check_level(item)

    def _operator(self, item: s.Operator) -> Iterator[Diagnostic]:
        extents = [one.id for i in item.inputs if i.type is not None for one in i.type.shape if isinstance(one, s.Name)]
        found = [*check_operator(item, self.functions, self.names)]
        found += check_conditions(item.requires, may_fail=True, numbers=extents)
        found += [*check_defaults(item), *check_shapes(item), *check_indices(item), *check_members(item)]
        found += [*check_extremes(item), *check_lets_of_elements(item), *check_arithmetic(item), *check_places(item)]
        found += [*check_spreading(item), *check_quotients(item), *check_literals(item)]
        yield from found
        if not found:
            yield from check_unread(item, self.operators[item.name])
            yield from check_negative_axes(item, self.functions)

    def _ruleset(self, rule: s.Rewrite | s.Eliminate) -> Iterator[Diagnostic]:
        if self.declared_rulesets and rule.ruleset:
            yield from check_ruleset_of(rule, self.declared_rulesets, self.blocks)

    def deep_problems(self, wrong: Collection[s.Span], files: Collection[str] | None) -> Iterator[Diagnostic]:
        """What trying and comparing shows, of items that are right by themselves."""
        meant = [item for item in self.items if files is None or item.span.file in files]
        shared = _of(self.items, s.Function) + _of(self.items, s.Predicate) + _of(self.items, s.Constant)
        mistakes = Places.of(wrong)
        if not meant or any(mistakes.lie_in(item.span) for item in shared):
            return
        resolved = {id(item): self.names.resolved(item) for item in self.items}
        operators: dict[str, list[s.Operator]] = {}
        for item in self.items:
            made = resolved[id(item)]
            if isinstance(made, s.Operator):
                operators.setdefault(made.name, []).append(made)
        functions = {name: resolved[id(item)] for name, item in self.functions.items()}
        deep = DeepChecker(operators, functions)  # type: ignore[arg-type]
        built_in = BuiltIn.of(operators)
        bad = {o.name for o in _of(self.items, s.Operator) if mistakes.lie_in(o.span)}
        right: list[s.Rewrite] = []
        for item in self.items:
            made = resolved[id(item)]
            if mistakes.lie_in(item.span):
                continue
            if isinstance(made, s.Rewrite) and not bad & operators_in(made):
                right.append(made)
            if files is not None and item.span.file not in files:
                continue
            if isinstance(item, s.Rewrite):
                if isinstance(made, s.Rewrite) and made in right[-1:]:
                    yield from self._rewrite(item, made, deep, operators)
            else:
                yield from _deep_problems(item, made, deep, built_in)
        for one in check_relations(right, operators, files):
            if files is None or one.span.file in files:
                yield one
        deep.save()

    def _rewrite(
        self, written: s.Rewrite, rule: s.Rewrite, deep: DeepChecker, operators: dict[str, list[s.Operator]]
    ) -> Iterator[Diagnostic]:
        if rule.unsound is not None:
            return
        wrong = [*check_dtypes(rule, operators), *check_dtype_guards(rule, operators), *check_loops(rule)]
        found = wrong or list(deep.rewrite(rule, written))
        yield from found
        if not found:
            yield from check_dropped(rule, operators)
        if not any(one.severity == "error" for one in found):
            yield from check_termination(rule, operators)


def _body(item: s.Function | s.Predicate, names: Names) -> Iterator[Diagnostic]:
    """A predicate that gives no truth."""
    if isinstance(item, s.Predicate):
        yield from check_conditions([item.body], names.predicates)


def _deep_problems(written: s.Item, made: s.Item, deep: DeepChecker, built_in: BuiltIn) -> Iterator[Diagnostic]:
    """What trying shows of an item that is no rewrite; in `made` predicates and constants are written out."""
    match written, made:
        case s.Operator(), s.Operator():
            yield from deep.operator(made, written)
            yield from check_override(deep, built_in, made, written)
        case s.Eliminate(), s.Eliminate():
            yield from (*check_is_view(written, deep), *check_loops(made), *deep.guards(made, written))
        case s.Keep(), s.Keep():
            yield from deep.guards(made, written)
        case s.IndexRule(), s.IndexRule():
            found = [*check_index_guards(made)]
            yield from found
            if not found:
                yield from deep.index(made, written)


def _of(items: Iterable[s.Item], kind: type[_Kind]) -> list[_Kind]:
    return [item for item in items if isinstance(item, kind)]


@dataclass(frozen=True, slots=True)
class Places:
    """Where spans begin, by file and in the order of the text."""

    begins: Mapping[str, Sequence[tuple[int, int]]]

    @staticmethod
    def of(spans: Iterable[s.Span]) -> Places:
        """The places of spans."""
        begins: dict[str, list[tuple[int, int]]] = {}
        for span in spans:
            begins.setdefault(span.file, []).append((span.line, span.column))
        return Places({file: sorted(found) for file, found in begins.items()})

    def lie_in(self, span: s.Span) -> bool:
        """Whether one of them lies in a span."""
        found = self.begins.get(span.file, ())
        first = bisect_left(found, (span.line, span.column))
        return first < len(found) and found[first] <= (span.end_line, span.end_column)


def _in_order(found: Iterable[Diagnostic], modules: Sequence[s.Module]) -> list[Diagnostic]:
    """Each message once, as the members of a family stand at one place; what is wrong before what only may be."""
    place = {module.span.file: number for number, module in reversed(list(enumerate(modules)))}
    once = {(one.code, one.span, one.message if one.severity == "error" else ""): one for one in reversed(list(found))}

    def key(one: Diagnostic) -> tuple[bool, int, int, int, int]:
        return (
            one.severity != "error",
            _LATE.get(one.code, 0),
            place.get(one.span.file, 0),
            one.span.line,
            one.span.column,
        )

    return sorted(reversed(once.values()), key=key)


def _check_names(items: Iterable[s.Item]) -> Iterator[Diagnostic]:
    first: dict[tuple[str, str], s.Span] = {}
    for item in items:
        if not isinstance(item, Named):
            continue
        kind = _namespace(item)
        if (kind, item.name) in first:
            message = f"there is a {kind} `{item.name}` already"
            secondary = (first[kind, item.name], "the first is here")
            fix = advice("give it another name")
            if first[kind, item.name] == item.place("name"):
                fix = advice("name each member of the family once")
                if not isinstance(item, s.Rule):
                    fix = advice("let its name be one that stands behind `for`, or move it out of the family")
            yield Diagnostic(Code.DUPLICATE_NAME, "error", message, item.place("name"), secondary=secondary, fix=fix)
        first.setdefault((kind, item.name), item.place("name"))


def _namespace(item: Named) -> str:
    """Rules of all sorts share one namespace, because they are switched off by name; so do functions and predicates."""
    match item:
        case s.Block():
            return item.kind
        case s.Function() | s.Predicate() | s.Analysis():
            return "function"
        case s.OperatorFamily():
            return "family"
        case s.Constant():
            return "constant"
        case s.Ruleset():
            return "rule set"
        case s.Table():
            return "table"
        case _:
            return "rule"
