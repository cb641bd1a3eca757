"""What only trying shows: definitions and rewrites at operand types, guards that nothing satisfies.

Findings hold no places, so that they are kept by the content of what they are about, in memory and on disk.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from smartmem_rules.language import syntax as s
from smartmem_rules.language.cache import Findings, digest_of
from smartmem_rules.language.codes import Code
from smartmem_rules.language.diagnostics import Diagnostic
from smartmem_rules.language.expressions import nodes
from smartmem_rules.language.fixes import Fix, advice, replacement
from smartmem_rules.language.printing.printer import print_pattern
from smartmem_rules.records import dataclass
from smartmem_rules.rulebase.checks.definition_fixes import mended
from smartmem_rules.rulebase.checks.meaning_checks import elements_required
from smartmem_rules.rulebase.checks.read_fixes import read_mended

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
            note = "found by trying operand types that its signature admits"
            message = f"`{operator.name}` cannot be computed: {found['failure']}"
            place = _place_of(found.get("at"), written)
            fix = mended(found["failure"], written, place)
            if "used as an index" in found["failure"] and any(node.span == place for node in nodes(written.requires)):
                yield elements_required(written, place)
                return
            yield Diagnostic(Code.IMPOSSIBLE_DEFINITION, "error", message, place, note=note, fix=fix)
            return
        if "outside" in found:
            yield _reads_outside(self, written, operator, found)
        if "cost" in found:
            place, reason, example = found["cost"]
            note = f"for example at {example}"
            fix = advice("write what is a number from 0 on for all operands, such as `prod(S)`")
            yield Diagnostic(Code.BAD_COST, "error", reason, written.costs[place].value.span, note=note, fix=fix)
        for equation in written.equations:
            if equation.tensor in found.get("no_views", ()):
                yield _no_view(equation)
        yield from _declared(written, found)

    def rewrite(self, rule: s.Rewrite, written: s.Rewrite) -> Iterator[Diagnostic]:
        """The problems of a rewrite whose parts are right one by one."""
        names = sorted(operators_in(rule))
        found = self._known(
            ("rewrite", rule.left, rule.right, rule.bidirectional, rule.guards),
            names,
            lambda: _rewrite_finding(self, rule),
        )
        if found.get("vacuous"):
            yield _never_fires(written)
        elif "differs" in found:
            yield _sides_differ(written, found)

    def keep(self, rule: s.Keep, written: s.Keep) -> Iterator[Diagnostic]:
        """The problems of a `keep`: guards that nothing satisfies."""
        found = self._known(("keep", rule.guards), [], lambda: _keep_finding(rule))
        if "vacuous" in found:
            yield _never_fires(written)

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
            found = find()
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


def _keep_finding(rule: s.Keep) -> dict[str, Any]:
    from smartmem_rules.analysis.satisfiability import satisfiable  # start-up time

    return {"vacuous": True} if rule.guards and satisfiable(rule.guards) is False else {}


def _never_fires(rule: s.Rewrite | s.Keep) -> Diagnostic:
    message = "no values satisfy these guards, so the rule never fires"
    note = "an SMT solver found the contradiction"
    fix = advice("leave out or turn round one of the guards: together they contradict each other")
    return Diagnostic(Code.VACUOUS_GUARD, "error", message, _where(rule), note=note, fix=fix)


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
        variable = _own_step(read, written)
        if variable is not None:
            return _scan_outside(written, read, variable, outside)
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
            else axis_meant(written, read)
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


def _own_step(read: s.Subscript, written: s.Operator) -> str | None:
    """The step variable of the scan whose equation reads its own tensor."""
    assert isinstance(read.base, s.Name)
    for equation in written.equations:
        if equation.tensor == read.base.id and equation.scan and any(node is read for node in nodes(equation)):
            return equation.indices[0].name
    return None


def _scan_outside(written: s.Operator, read: s.Subscript, step: str, outside: Mapping[str, Any]) -> Diagnostic:
    """A scan that reads a step of its own that is not there: a later one, or the one before the first."""
    assert isinstance(read.base, s.Name)
    tensor, index = read.base.id, read.items[0]
    if isinstance(index, s.Binary) and index.operator == "-":
        message = f"the scan `{tensor}` reads a step before its first: nothing is computed before {step} = 0"
        fix = advice(f"say what the first step is: `if {step} == 0 then FIRST else ...`")
    else:
        message = f"the scan `{tensor}` reads a step that is not computed by then"
        fix = replacement(f"a scan reads earlier steps: write `{step} - 1`", index.span, f"{step} - 1")
    note = f"found at {written.name}{outside['example']}: {outside['reason']}"
    return Diagnostic(Code.READS_OUTSIDE, "error", message, read.span, note=note, fix=fix)


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


def _sides_differ(written: s.Rewrite, found: Mapping[str, Any]) -> Diagnostic:
    sometimes = bool(found["agreed"])
    right = found["right"].removeprefix("none: ")
    made = f"the right side is {right}"
    if right != found["right"]:
        made = f"the right side cannot be made ({right})"
    note = f"with {found['differs']} the left side is {found['left']}, {made}"
    if "symbolic" in found:
        left, right = found["symbolic"]
        note = f"for all operands the left side is {left}, the right side {right}; {note}"
    return Diagnostic(
        Code.SIDES_SOMETIMES_DIFFER if sometimes else Code.SIDES_DIFFER,
        "warning" if sometimes else "error",
        "the sides have different types",
        written.right.span,
        note=note,
        fix=_number_meant(written.right, right)
        or advice(_guard_meant(found) if sometimes else _other_type(str(found["left"]), right)),
    )


def _number_meant(right: s.Pattern, failure: str) -> Fix | None:
    """How a number of the right side, which has the element type of the left side, gets that of its neighbour."""
    told = re.search(r"operand \w+ of (\w+) is (\w+), another one \w+", failure)
    if told is None:
        return None
    for node in nodes(right):
        if not isinstance(node, s.PatternOperator) or node.operator != told[1]:
            continue
        numbers = [one for one in node.arguments if isinstance(one, s.PatternNumber) and float(one.value).is_integer()]
        others = [one for one in node.arguments if not isinstance(one, s.PatternNumber)]
        if len(numbers) == 1 and others:
            shown = print_pattern(numbers[0])
            new = f"CastLike({shown}, {print_pattern(others[0])})"
            said = f"the number {shown} takes the element type of the left side, {told[2]}: write `{new}`"
            return replacement(said, numbers[0].span, new)
    return None


def _guard_meant(found: Mapping[str, Any]) -> str:
    """The guard that excludes a use at which a tensor widens the left side beyond the only one on the right."""
    types = dict(re.findall(r"(\w+): (\w+\[[\d, ]*\])", found["differs"]))
    kept = [name for name, one in types.items() if one == found["right"]]
    wider = [name for name, one in types.items() if one == found["left"]]
    if len(kept) != 1 or len(wider) != 1 or found["left"].partition("[")[0] != found["right"].partition("[")[0]:
        return "add a guard that excludes this"
    (x,), (c,) = kept, wider
    extents, others = (re.findall(r"\d+", types[one].partition("[")[2]) for one in (c, x))
    if len(extents) > len(others) and set(extents) <= {"1"}:
        return f"`{c}` may have more axes than `{x}`: add the guard `rank({c}) <= rank({x})`"
    return f"`{c}` may spread `{x}`: add the guard `broadcast(shape({c}), shape({x})) == shape({x})`"


def _other_type(left: str, right: str) -> str:
    """How a right side gets the type of the left one; types are written as `float32[2, 3]`."""
    (dtype, _, shape), (other, _, other_shape) = left.partition("["), right.partition("[")
    if dtype != other and shape == other_shape:
        return f"the right side has to be {dtype}: put a `Cast` around it, or write an operator that gives {dtype}"
    if dtype == other and other_shape:
        return (
            "give the right side the shape of the left one: by `keepdims`, `axes`, `Reshape`, `Transpose` or `Expand`"
        )
    return "give the right side the shape and dtype of the left: by `keepdims`, `Reshape`, `Transpose` or `Cast`"


def _rewrite_finding(base: DeepChecker, rule: s.Rewrite) -> dict[str, Any]:
    """Whether the sides have one type, by proof, and where the question has no symbolic form, by trying."""
    from smartmem_rules.analysis.satisfiability import satisfiable  # start-up time
    from smartmem_rules.analysis.types.symbolic import prove_types  # start-up time
    from smartmem_rules.analysis.types.typing import ATTEMPTS, WANTED, check_types  # start-up time

    proof = prove_types(base, rule.left, rule.right, rule.guards)
    if proof is not None and proof.holds:
        vacuous = satisfiable(rule.guards) is False
        return {"agreed": 0, "proved": True} | ({"vacuous": True} if vacuous else {})
    # types that read differently do differ somewhere, unless a guard without a symbolic form excludes it
    wanted = ATTEMPTS if proof is not None else WANTED
    result = check_types(base, rule.left, rule.right, rule.guards, wanted)
    found: dict[str, Any] = {"agreed": result.agreed}
    if result.differing is not None:
        found |= {"differs": result.differing, "left": result.left, "right": result.right}
        if proof is not None and proof.shown:
            found["symbolic"] = [proof.left, proof.right]
    elif not result.agreed and rule.guards and satisfiable(rule.guards) is False:
        found["vacuous"] = True
    return found


def operators_in(rule: s.Rewrite) -> set[str]:
    """The operators that a rewrite speaks of, in its sides and in terms of its guards."""
    return {node.operator for node in nodes(rule) if isinstance(node, s.PatternOperator)}


def _where(rule: s.Rewrite | s.Keep) -> s.Span:
    """From the first guard to the last."""
    first, last = rule.guards[0].span, rule.guards[-1].span
    return first._replace(end_line=last.end_line, end_column=last.end_column)


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
