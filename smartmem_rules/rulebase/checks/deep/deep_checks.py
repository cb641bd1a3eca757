"""What only trying shows: definitions and rewrites at operand types, guards that nothing satisfies.

Findings hold no places, so that they are kept by the content of what they are about, in memory and on disk.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, cast

from smartmem_rules.language import syntax as s
from smartmem_rules.language.cache import Findings, digest_of
from smartmem_rules.language.codes import Code
from smartmem_rules.language.diagnostics import Diagnostic
from smartmem_rules.language.expressions import conjuncts, nodes
from smartmem_rules.language.fixes import advice, replacement
from smartmem_rules.language.printing.printer import print_expression
from smartmem_rules.records import dataclass
from smartmem_rules.rulebase.checks.deep.definition_fixes import mended
from smartmem_rules.rulebase.checks.deep.guard_checks import fits_nothing, never_fires
from smartmem_rules.rulebase.checks.deep.index_counts import miscounted
from smartmem_rules.rulebase.checks.deep.index_trials import IndexFinding, index_finding, sides_unequal
from smartmem_rules.rulebase.checks.deep.list_positions import outside_list
from smartmem_rules.rulebase.checks.deep.read_fixes import read_mended
from smartmem_rules.rulebase.checks.deep.scan_fixes import step_not_there
from smartmem_rules.rulebase.checks.deep.side_checks import sides_differ
from smartmem_rules.rulebase.checks.deep.side_findings import Finding, rewrite_finding
from smartmem_rules.rulebase.checks.meaning_checks import elements_required
from smartmem_rules.rulebase.checks.meant.digits import remainder_meant

_IN_MEMORY: dict[str, dict[str, Any]] = {}
_MOST_IN_MEMORY = 4096
_COST_PROBES = 8
"""Operand types at which the costs of an operator are computed."""


@dataclass
class DeepChecker:
    """Tries items of one set of modules, whose predicates and constants are written out."""

    operators: Mapping[str, Sequence[s.Operator]]
    functions: Mapping[str, s.Function]
    _disk: Findings | None = None
    _texts: dict[int, str] = field(default_factory=dict)

    def save(self) -> None:
        """Keep what was found out."""
        if self._disk is not None:
            self._disk.save()

    def operator(self, operator: s.Operator, written: s.Operator) -> Iterator[Diagnostic]:
        """The problems of a definition; `written` is the operator as its author wrote it."""
        found = self._known(("operator", operator), [], lambda: _operator_finding(self, operator))
        if "failure" in found:
            behind = outside_list(written, found["failure"])
            if behind is not None:
                yield behind
                return
            note = "found by trying operand types that its signature admits"
            message = f"`{operator.name}` cannot be computed: {found['failure']}"
            place = _place_of(found.get("at"), written)
            counted = miscounted(self, written, operator, found["failure"], place)
            if counted is not None:
                yield counted
                return
            fix = mended(found["failure"], written, place)
            if "used as an index" in found["failure"] and any(node.span == place for node in nodes(written.requires)):
                yield elements_required(written, place)
                return
            yield Diagnostic(Code.IMPOSSIBLE_DEFINITION, "error", message, place, note=note, fix=fix)
            return
        if "outside" in found:
            outside = found["outside"]
            place = _place_of(outside["at"], written)
            counted = miscounted(self, written, operator, outside["reason"], place, outside["example"])
            if counted is not None:
                yield counted
                return
            yield _reads_outside(self, written, operator, found)
        if "ordered" in found:
            yield _not_commutative(written, found["ordered"])
        if "cost" in found:
            place, reason, example = found["cost"]
            note = f"for example at {example}"
            cost = written.costs[place].value
            fix = advice("write what is a number from 0 on for all operands, such as `prod(S)`")
            if " is -" in reason:
                new = f"max(0, {print_expression(cost)})"
                fix = replacement(f"write `{new}`, or what is 0 or more for all operands", cost.span, new)
            yield Diagnostic(Code.BAD_COST, "error", reason, cost.span, note=note, fix=fix)
        for equation in written.equations:
            if equation.tensor in found.get("no_views", ()):
                yield _no_view(equation)
        yield from _declared(written, found)

    def rewrite(self, rule: s.Rewrite, written: s.Rewrite) -> Iterator[Diagnostic]:
        """The problems of a rewrite whose parts are right one by one."""
        names = sorted(operators_in(rule))
        key = "rewrite", rule.left, rule.right, rule.bidirectional, rule.guards
        found = cast("Finding", self._known(key, names, lambda: rewrite_finding(self, rule)))
        if found.get("vacuous"):
            yield never_fires(written, found["vacuous"], found["parts"], found.get("tie"), found.get("free", ()))
        elif "fits_nothing" in found:
            yield fits_nothing(written, found["fits_nothing"])
        elif "differs" in found:
            yield sides_differ(written, found)

    def guards(self, rule: s.Keep | s.Eliminate, written: s.Keep | s.Eliminate) -> Iterator[Diagnostic]:
        """Guards that nothing satisfies, of a rule that has no patterns."""
        found = self._known(("guards", rule.guards), [], lambda: _guard_finding(self, rule))
        if "vacuous" in found:
            yield never_fires(written, found["vacuous"], found["parts"])

    def index(self, rule: s.IndexRule, written: s.IndexRule) -> Iterator[Diagnostic]:
        """An index rule whose sides differ at small numbers."""
        key = "index", rule.left, rule.right, rule.guards
        found = cast("IndexFinding", self._known(key, [], lambda: index_finding(rule)))
        if "numbers" in found:
            yield sides_unequal(written, found)

    def _known(self, key: tuple[object, ...], operators: Sequence[str], find: Any) -> dict[str, Any]:
        definitions = [self._text(one) for name in operators for one in self.operators.get(name, ())]
        try:
            digest = digest_of(*map(repr, key), *definitions, self._functions_key())
        except RecursionError:
            return {}
        if digest in _IN_MEMORY:
            return _IN_MEMORY[digest]
        if self._disk is None:
            self._disk = Findings("findings")
        found = self._disk.get(digest)
        if found is None:
            found = _without_places(find())
            self._disk.put(digest, found)
        if len(_IN_MEMORY) > _MOST_IN_MEMORY:
            _IN_MEMORY.clear()
        _IN_MEMORY[digest] = found
        return found  # type: ignore[no-any-return]

    def _text(self, node: s.Syntax) -> str:
        known = self._texts.get(id(node))
        if known is None:  # of an operator that thousands of rules speak of
            known = self._texts[id(node)] = repr(node)
        return known

    def _functions_key(self) -> str:
        known = self._texts.get(0)
        if known is None:
            known = self._texts[0] = digest_of(*(repr(self.functions[name]) for name in sorted(self.functions)))
        return known


_PLACE = re.compile(r" \([^()\n]*\.smr:\d+:\d+\)|[^\s()]*\.smr:\d+:\d+: ")


def _without_places(found: Any) -> Any:
    """A finding whose texts name no places: the same rules in another folder, or other lines, get the finding, too."""
    match found:
        case str():
            return _PLACE.sub("", found)
        case dict():
            return {name: _without_places(one) for name, one in found.items()}
        case list():
            return [_without_places(one) for one in found]
        case _:
            return found


def _not_commutative(written: s.Operator, example: str) -> Diagnostic:
    """An operator whose patterns would match in both orders, though its operands cannot be exchanged."""
    place = written.place("commutative") if "commutative" in written.places else written.place("name")
    return Diagnostic(
        Code.NOT_COMMUTATIVE,
        "error",
        f"`{written.name}` gives something else when its operands are exchanged, so it is not commutative",
        place,
        note=f"for example at {written.name}{example}",
        fix=replacement("leave `commutative` out", place, "")
        if "commutative" in written.places
        else advice("leave `commutative` out"),
    )


def _no_view(equation: s.EquationSyntax) -> Diagnostic:
    """An equation that is called a view and whose elements are not all read at one place."""
    reason = "it computes with elements or reads several"
    chosen = next((n for n in nodes(equation.body) if isinstance(n, s.Subscript) and n.default is not None), None)
    if chosen is not None and equation.body is chosen:
        reason = "`else` gives elements that are no element of an operand"
    word = equation.place("view")
    marked = word._replace(end_line=equation.place("name").line, end_column=equation.place("name").column)
    fix = replacement("leave `view` out, or write one plain read", marked, "")
    message = f"`{equation.tensor}` is no view: {reason}"
    return Diagnostic(Code.NOT_A_VIEW, "error", message, equation.place("name"), fix=fix)


def _guard_finding(base: DeepChecker, rule: s.Keep | s.Eliminate) -> dict[str, Any]:
    from smartmem_rules.analysis.matches import contradiction  # start-up time

    core = contradiction(base, None, rule.guards)
    return {"vacuous": core, "parts": sum(1 for _ in conjuncts(*rule.guards))} if core else {}


def _operator_finding(base: DeepChecker, operator: s.Operator) -> dict[str, Any]:
    from smartmem_rules.analysis.tries import absent_read, tried  # start-up time

    found: dict[str, Any] = {}
    trial = tried(base, operator, 1)
    failure = trial.failure or absent_read(base, operator)
    if failure is not None:
        place, _, reason = str(failure).rpartition(": ") if ".smr:" in str(failure) else ("", "", str(failure))
        line = place.split(": ")[0].rsplit(":", 2)
        own = len(line) == 3 and line[0] == operator.span.file
        return {"failure": reason, "at": [int(line[1]) - operator.span.line, int(line[2])] if own else None}
    if trial.probes:
        instance = trial.probes[0].instance
        views = {e.tensor for e in instance.equations if e.view is not None}
        names = {f"%{n}": output.name for n, output in enumerate(operator.outputs)}
        computed = {names.get(e.tensor, e.tensor) for e in instance.equations} - {names.get(v, v) for v in views}
        found["no_views"] = sorted(e.tensor for e in operator.equations if e.view and e.tensor in computed)
        if operator.costs and (wrong := _wrong_cost(base, operator)) is not None:
            found["cost"] = wrong
    if operator.commutative and trial.probes:
        from smartmem_rules.analysis.commuting import order_matters  # start-up time

        ordered = order_matters(base, operator)
        if ordered is not None:
            found["ordered"] = ordered
    outside = _outside_finding(base, operator)
    if outside is not None:
        found["outside"] = outside
    if operator.declared_class is not None or operator.declared_mapping is not None:
        from smartmem_rules.analysis.derivation import derive  # start-up time

        derived = derive(base, operator)
        if derived is not None:
            found["class"] = [derived.layout, derived.layout_reason, derived.example]
            found["mapping"] = [derived.mapping, derived.mapping_reason, derived.example]
    return found


def _wrong_cost(base: DeepChecker, operator: s.Operator) -> list[Any] | None:
    """The number of a cost that is none at some operands, why, and the operands."""
    from smartmem_rules.analysis.tries import tried  # start-up time
    from smartmem_rules.rulebase.costs import own_costs  # start-up time
    from smartmem_rules.tensor.builtins import DefinitionError, Unsupported  # start-up time

    for probe in tried(base, operator, _COST_PROBES).probes:
        for place, cost in enumerate(operator.costs):
            only = replace(probe.instance, operator=replace(probe.instance.operator, costs=(cost,)))
            try:
                own_costs(only, probe.operands, base.functions)
            except (DefinitionError, Unsupported) as failure:
                operands = ", ".join("_" if one is None else str(one) for one in probe.operands)
                return [place, str(failure).rpartition(".smr:")[2].partition(": ")[2] or str(failure), operands]
    return None


def _outside_finding(base: DeepChecker, operator: s.Operator) -> dict[str, Any] | None:
    """What is read outside of a tensor, at the smallest operands at which that was seen."""
    from smartmem_rules.analysis.violations import smallest_violation  # start-up time

    violation = smallest_violation(base, operator)
    if violation is None:
        return None
    place, _, reason = violation.message.rpartition(": ")
    line = place.rsplit(":", 2)
    own = len(line) == 3 and line[0] == operator.span.file
    at = [int(line[1]) - operator.span.line, int(line[2])] if own else None
    return {"reason": reason, "at": at, "example": str(violation)}


def _reads_outside(base: DeepChecker, written: s.Operator, made: s.Operator, found: Mapping[str, Any]) -> Diagnostic:
    outside = found["outside"]
    from smartmem_rules.analysis.axes import axis_meant, extent_meant, scan_axes_meant  # start-up time

    later = "step" in outside["reason"]
    scans = {equation.tensor for equation in written.equations if equation.scan}
    own = re.search(r" of (\w+) is read, whose extent", outside["reason"])
    place = _place_of(outside["at"], written)
    read = _read_at(place, written)
    if read is not None and isinstance(read.base, s.Name) and read.base.id in scans and (own is not None or later):
        step = step_not_there(written, read, outside["reason"], outside["example"])
        if step is not None:
            return step
    return Diagnostic(
        Code.READS_OUTSIDE,
        "error",
        f"`{written.name}` reads what is not there: {outside['reason']}",
        place if read is None else read.span,
        note=f"for example at {written.name}{outside['example']}",
        fix=(scan_axes_meant(written, place) if "step together" in outside["reason"] else None)
        or (
            None
            if read is None
            else remainder_meant(written, read)
            or axis_meant(written, read)
            or read_mended(base, written, made, read, outside["reason"])
            or extent_meant(written, read)
        )
        or advice(
            "a scan reads earlier steps, those listed above it also in their own step; all have as many steps"
            if later
            else "add a `require` that excludes such operands, a condition around the read, or `else` and a value"
        ),
    )


def _read_at(place: s.Span, written: s.Operator) -> s.Subscript | None:
    """The read that begins at a place."""
    reads = (node for node in nodes(written) if isinstance(node, s.Subscript))
    return next((one for one in reads if one.span[:3] == place[:3]), None)


def _declared(written: s.Operator, found: Mapping[str, Any]) -> Iterator[Diagnostic]:
    for kind, declared, code in (
        ("class", written.declared_class, Code.CLASS_DIFFERS),
        ("mapping", written.declared_mapping, Code.MAPPING_DIFFERS),
    ):
        derived = found.get(kind)
        if declared is None or derived is None or derived[0] == declared:
            continue
        word, reason, example = derived
        message = f"`{written.name}` is {word}, not {declared}"
        note = f"derived from the definition: {reason}; for example at {example}"
        fix = replacement(f"write `{kind} {word}`, or leave the clause out", written.place(kind), word)
        yield Diagnostic(code, "error", message, written.place(kind), label=f"{word} follows", note=note, fix=fix)


def operators_in(rule: s.Rewrite) -> set[str]:
    """The operators that a rewrite speaks of, in its sides and in terms of its guards."""
    return {node.operator for node in nodes(rule) if isinstance(node, s.PatternOperator)}


def _place_of(at: Any, operator: s.Operator) -> s.Span:
    """The part of the operator at a line (from its first) and column; its name where that is unknown."""
    if at is not None:
        line, column = operator.span.line + at[0], at[1]
        for node in nodes(operator):
            if isinstance(node, s.Expression | s.EquationSyntax) and (node.span.line, node.span.column) == (
                line,
                column,
            ):
                return node.span
    return operator.place("name")
