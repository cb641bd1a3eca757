"""Judges tables of operator pairs: what a cell says must be possible for generated pairs, and right where it is done.

The words follow from the classes: what only moves elements may be eliminated; two operators that reduce are kept apart;
all others fuse.  For mapping types: a many-to-many operator may take in what is elementwise or only moves elements.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import field

import numpy as np

from smartmem_rules.language import syntax as ast
from smartmem_rules.records import dataclass
from smartmem_rules.rulebase.instances import Instances
from smartmem_rules.tensor.classify import classify, moves_only
from smartmem_rules.tensor.expr import Equation, Expr, Read, own_indices, substitute_reads, walk
from smartmem_rules.tensor.inlining import FreshNames, inline
from smartmem_rules.verification.instances.case import Case
from smartmem_rules.verification.instances.cases import Search
from smartmem_rules.verification.instances.operands import draw_values
from smartmem_rules.verification.operators import application, names_of, run_time_formals, single
from smartmem_rules.verification.semantics.domains import Undefined
from smartmem_rules.verification.semantics.evaluate import TooLarge, evaluate
from smartmem_rules.verification.semantics.expressions import renamed
from smartmem_rules.verification.semantics.terms import Application, flatten, leaves, term_text
from smartmem_rules.verification.trials.comparison import Comparison
from smartmem_rules.verification.trials.outcome import Budget

PAIRS_PER_CELL = 14
_DTYPES = ("float32",)
"""What results are compared in: pairs of another type would be drawn in vain."""
_SAMPLES = 4
_LAYOUT_ORDER = ("ILI.Fixed", "ILD.Fixed", "ILI.Variable", "ILD.Variable")
_MAPPING_ORDER = ("one_to_one", "reorganize", "shuffle", "one_to_many", "many_to_many")
_MOVES = ("reorganize", "shuffle")


@dataclass(kw_only=True)
class TableOutcome:
    """What the pairs of a table gave; `pairs` counts them by cell."""

    trials: int = 0
    generated: int = 0
    pairs: dict[tuple[str, str], int] = field(default_factory=dict)
    failure: str | None = None
    untested: list[str] = field(default_factory=list)


class _Luck:
    """How often each operator was the first or the second of a pair: those that seldom are, are chosen less often."""

    def __init__(self) -> None:
        self.tries: dict[tuple[str, int], list[int]] = {}

    def choice(self, role: str, operators: Sequence[ast.Operator], source: random.Random) -> ast.Operator:
        """One of some operators."""
        counts = [self.tries.get((role, id(one)), [0, 0]) for one in operators]
        return source.choices(operators, [(1 + found) / (1 + tried) for tried, found in counts])[0]

    def note(self, role: str, operator: ast.Operator, found: bool) -> None:
        """Whether a pair with an operator was found."""
        counts = self.tries.setdefault((role, id(operator)), [0, 0])
        counts[0] += 1
        counts[1] += found


def test_table(table: ast.Table, instances: Instances, seed: int, budget: Budget) -> TableOutcome:
    """Check every cell of a table, and the cells that fuse or eliminate on generated pairs."""
    outcome = TableOutcome()
    by_layout = set(table.rows) <= set(_LAYOUT_ORDER)
    if not by_layout and not set(table.rows) <= set(_MAPPING_ORDER):
        outcome.failure = f"the rows {', '.join(table.rows)} are neither layout classes nor mapping types"
        return outcome
    for cell, words in table.cells.items():
        expected = layout_cell(*cell) if by_layout else mapping_cell(*cell)
        if tuple(words) != expected:
            outcome.failure = (
                f"{cell[0]} before {cell[1]} is {'/'.join(words)}; what these classes allow is {'/'.join(expected)}"
            )
            return outcome
    operators = _by_class(instances, by_layout, seed)
    luck = _Luck()
    budget.started = time.process_time()
    for number, ((first, second), words) in enumerate(table.cells.items()):
        if words[0] in ("keep", "break"):
            continue
        ones, others = operators.get(first, []), operators.get(second, [])
        for case in _pairs(ones, others, instances, seed + number, outcome, luck):
            if budget.spent:
                break
            if _classes(case, by_layout) != (first, second):
                continue
            failure = _compare(case, words)
            if failure is None:
                continue
            if failure:
                outcome.failure = f"{first} before {second}: {failure}"
                return outcome
            outcome.trials += 1
            outcome.pairs[first, second] = outcome.pairs.get((first, second), 0) + 1
            if outcome.pairs[first, second] >= PAIRS_PER_CELL:
                break
        if not outcome.pairs.get((first, second)):
            outcome.untested.append(f"{first} before {second}")
    return outcome


def layout_cell(first: str, second: str) -> tuple[str, str]:
    """The action and result that SmartMem's classes allow."""
    fixed = [c.endswith(".Fixed") for c in (first, second)]
    if all(fixed):
        return "eliminate_both", "gone"
    if fixed[1]:
        return "eliminate2", first
    if fixed[0]:
        return "eliminate1", second
    if first == second == "ILD.Variable":
        return "keep", first
    return "fuse", max(first, second, key=_LAYOUT_ORDER.index)


def mapping_cell(first: str, second: str) -> tuple[str, str]:
    """The action and result that DNNFusion's mapping types allow."""
    if second == "many_to_many" and first in ("one_to_many", "many_to_many"):
        return "break", "none"
    if first in _MOVES and second in _MOVES:
        return "through", "shuffle" if first == second == "shuffle" else "reorganize"
    result = max(first, second, key=_MAPPING_ORDER.index)
    return ("through" if "one_to_one" in (first, second) else "depends"), result


def _by_class(instances: Instances, by_layout: bool, seed: int) -> dict[str, list[ast.Operator]]:
    """The operators with one or two float operands, by the classes of some of their instances."""
    found: dict[str, list[ast.Operator]] = {}
    for name in sorted(instances.base.operators):
        for overload in instances.base.operators[name]:
            if not 1 <= len(run_time_formals(overload)) <= 3:
                continue
            if any(equation.scan for equation in overload.equations):
                # a scan's values depend on its own earlier steps: it is no element-by-element neighbour of anything
                continue
            search = single(overload, instances, seed)
            search.probes, search.repairs, search.dtypes = False, 2, _DTYPES
            for case in _take(search, _SAMPLES):
                assert isinstance(case.left, Application)
                own = _class(case.left, by_layout)
                if own is not None and overload not in found.setdefault(own, []):
                    found[own].append(overload)
    return found


def _take(search: Search, count: int) -> Iterator[Case]:
    for number, case in enumerate(search.cases(2 * count)):
        if case is not None and case.left.type.dtype in _DTYPES:
            yield case
        if number >= 2 * count:
            return


def _class(term: Application, by_layout: bool) -> str | None:
    types = {f"${i}": o.type for i, o in enumerate(term.operands) if o is not None}
    if len(term.instance.outputs) != 1:
        return None
    classes = classify(term.instance.equations, types)
    return classes.layout if by_layout else classes.mapping


def _classes(case: Case, by_layout: bool) -> tuple[str | None, str | None]:
    second = case.left
    assert isinstance(second, Application)
    first = second.operands[0]
    assert isinstance(first, Application)
    return _class(first, by_layout), _class(second, by_layout)


def _pairs(
    firsts: Sequence[ast.Operator],
    seconds: Sequence[ast.Operator],
    instances: Instances,
    seed: int,
    outcome: TableOutcome,
    luck: _Luck,
) -> Iterator[Case]:
    source = random.Random(seed)
    if not firsts or not seconds:
        return
    for _ in range(6 * PAIRS_PER_CELL):
        first, second = luck.choice("first", firsts, source), luck.choice("second", seconds, source)
        found = False
        span = first.span
        inner = [ast.PatternVariable(span, f"a{n}") for n in names_of(run_time_formals(first))]
        others = [ast.PatternVariable(span, f"b{n}") for n in names_of(run_time_formals(second))]
        nested: list[ast.Pattern] = [application(first.name, inner, "p", span), *others[1:]]
        pattern = application(second.name, nested, "q", span)
        rule = ast.Rewrite(span, "pair", "", pattern, pattern, False, (), ("reassociation",), None, "")
        search = Search(rule, pattern, pattern, instances, source.getrandbits(30), repairs=2)
        search.dtypes = _DTYPES
        for case in search.cases(2):
            outcome.generated += 1
            if case is not None and case.left.type.dtype in _DTYPES:
                found = True
                yield case
        luck.note("first", first, found)
        luck.note("second", second, found)


def _compare(case: Case, words: Sequence[str]) -> str | None:
    """ "" where fusing or eliminating is right, what is wrong, or None where the pair cannot be compared."""
    second = case.left
    assert isinstance(second, Application)
    first = second.operands[0]
    assert isinstance(first, Application)
    for word, one in (
        ("eliminate1", first),
        ("eliminate2", second),
        ("eliminate_both", first),
        ("eliminate_both", second),
    ):
        if words[0] == word and not all(moves_only(e.body) for e in one.instance.equations):
            return f"{one.operator} computes and cannot be eliminated"
    separate = flatten(second, "pair")
    fused = _fuse(flatten(first, "pair"), separate)
    if fused is None:
        return None
    comparison = Comparison((), frozenset({"reassociation"}))
    domain = comparison.domains(case)[0]
    try:
        values = draw_values(case, domain, random.Random(1))
        given = {name: value for name, value in values.items() if name in leaves(second)}
        apart = evaluate(separate, given, domain)[separate[-1].tensor]
        together = evaluate(fused, given, domain)[fused[-1].tensor]
    except (Undefined, TooLarge, IndexError, ZeroDivisionError):
        return None
    wrong = comparison.wrong(apart, together, domain, second.type.dtype)
    if np.any(wrong):
        types = ", ".join(str(leaf.type) for leaf in leaves(second).values())
        return f"{term_text(second)} on {types}: fused differs from apart"
    return ""


def _fuse(first: Sequence[Equation], both: Sequence[Equation]) -> list[Equation] | None:
    """The equations of a pair in which the first operator's result is never stored."""
    names = FreshNames("f")
    # inlining asks for names that occur nowhere else
    produced = renamed(first[-1], FreshNames("g"))
    fused: list[Equation] = []
    for equation in both:
        if equation.tensor == produced.tensor:
            continue
        if any(produced.tensor in i.gathered for node in walk(equation.body) for i in own_indices(node)):
            return None

        def replace(read: Read) -> Expr:
            return inline(produced, read.indices, names) if read.tensor == produced.tensor else read

        fused.append(
            Equation(equation.tensor, equation.variables, substitute_reads(equation.body, replace), equation.type)
        )
    return fused
