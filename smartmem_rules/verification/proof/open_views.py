"""Proves eliminations for all extents: an operator's definition is a view, and the view stays inside its operand.

The ways of one operator are those of `open_rewrites`, with more lists: axes in every order, lists of numbers of every
length up to a bound. On each way every output is a pure read of an operand, which z3 shows to stay inside, or no view
at all, which the engine leaves alone. docs/verification.md says what such a proof covers.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from smartmem_rules.analysis.index_formulas import IndexFormulas, NoFormula
from smartmem_rules.errors import causes
from smartmem_rules.language import syntax as ast
from smartmem_rules.records import dataclass
from smartmem_rules.rulebase.instances import Instances
from smartmem_rules.tensor.binding import operand_name, output_name
from smartmem_rules.tensor.builtins import DefinitionError, Unsupported, Value
from smartmem_rules.tensor.definitions.inside import OutsideError
from smartmem_rules.tensor.expr import Apply, Const
from smartmem_rules.tensor.instantiate import names_in
from smartmem_rules.tensor.views import IndexMap, map_of_equation, stays_inside
from smartmem_rules.verification.instances.attributes import Formal
from smartmem_rules.verification.instances.roles import hints_of, nodes
from smartmem_rules.verification.operators import application_to_variables, run_time_formals
from smartmem_rules.verification.proof.formulas import Unprovable
from smartmem_rules.verification.proof.open_cases import NoInstance, OpenCase
from smartmem_rules.verification.proof.open_instances import OpenInstances, open_question
from smartmem_rules.verification.proof.paths import Path, TooManyWays, ways
from smartmem_rules.verification.semantics.terms import Application, guards_hold, term_text

BOUND = 3
"""The rank of operands and the length of lists up to which a proof looks, and the number of outputs."""
MOST_WAYS = 20_000
MOST_FACTS = 12
"""Open comparisons on one way beyond which an operator counts as not proved: their number doubles with each."""
_RESOURCES = 2_000_000


@dataclass
class OpenOperator(OpenCase):
    """An instance of one operator alone: nothing else bounds its lists."""

    overload: ast.Operator | None = None
    most_named: int = BOUND
    """How long the lists of an attribute are at most."""

    def _overloads(self, pattern: ast.PatternOperator) -> list[ast.Operator]:
        return [] if self.overload is None else [self.overload]

    def _dtype(self, allowed: Sequence[str]) -> str:
        return "float32" if "float32" in allowed else allowed[0]

    def _outputs(self, pattern: ast.PatternOperator, overload: ast.Operator) -> int:
        if any(o.index is not None for o in overload.outputs):
            return 1 + self.path.choose(BOUND)
        return 1 + self.path.choose(len(overload.outputs))

    def _integers(self, name: str, formal: Formal, most: int) -> Iterator[Value]:
        if self.overload is not None and formal.name in _cuts_lists(self.overload):
            yield from range(-most - 1, most + 2)
        else:
            yield self.path.integer(name)

    def _lists(self, name: str, formal: Formal, lengths: set[int]) -> Iterator[Value]:
        for length in reversed(range(self.most_named + 1)):
            yield tuple(self.path.integer(f"{name}.{place}") for place in range(length))

    def _lists_of_axes(self, most: int) -> Iterator[Value]:
        """In every order, counted from the front or from the end, also among the axes that a list adds."""
        for length in reversed(range(self.most_named + 1)):
            for axes in itertools.permutations(range(most + length), length):
                yield axes
                for rank in {most, most + length} if axes else ():
                    yield tuple(axis - rank for axis in axes)


def prove_views(rule: ast.Eliminate, instances: Instances, z3: Any) -> int:
    """How many views an elimination makes, all of which stay inside their operands.

    Raises:
        Unprovable: one may not, none was found, or the operator is outside of what is proved.
    """
    for guard in rule.guards:
        for node in nodes(guard):
            if isinstance(node, ast.Number) and isinstance(node.value, int) and abs(node.value) >= BOUND:
                raise Unprovable(f"a guard names {node.value}, ranks are looked at up to {BOUND}")
    overloads = instances.base.operators.get(rule.operator, ())
    found = sum(_prove_overload(rule, overload, instances, z3) for overload in overloads)
    if not found:
        raise Unprovable("no view of open extents was found")
    return found


def _prove_overload(rule: ast.Eliminate, overload: ast.Operator, instances: Instances, z3: Any) -> int:
    formals = run_time_formals(overload)
    if any(f.variadic for f in formals):
        raise Unprovable(f"{rule.operator} takes any number of operands")
    pattern = application_to_variables(overload)
    alone = ast.Rewrite(overload.span, rule.name, "", pattern, pattern, False, (), (), None, "")
    hints = hints_of(rule.guards, pattern, pattern)
    proved: set[IndexMap] = set()

    def run(path: Path) -> None:
        if len(path.facts) > MOST_FACTS:
            raise Unprovable(f"more than {MOST_FACTS} comparisons of extents and attributes are open at once")
        known = OpenInstances(instances.base)
        known.path = path
        case = OpenOperator(alone, pattern, path, known, BOUND, hints, overload=overload)
        try:
            term = case.left()
        except NoInstance as refusal:
            if _reads_outside(refusal) and path.is_possible:
                raise Unprovable(f"a read may be outside: {refusal}") from refusal
            return
        if _admitted(rule, term, known):
            for map_ in _maps(term):
                _inside(map_, path, term, z3)
                proved.add(map_)

    try:
        for _ in ways(run, z3, MOST_WAYS):
            pass
    except TooManyWays:
        raise Unprovable(f"more than {MOST_WAYS} cases of ranks, attributes and extents") from None
    return len(proved)


@lru_cache(maxsize=64)
def _cuts_lists(operator: ast.Operator) -> frozenset[str]:
    """The names on which the places at which a definition cuts lists depend."""
    parts = [*(let.value for let in operator.lets), *(equation.body for equation in operator.equations)]
    slices = [node for part in parts for node in nodes(part) if isinstance(node, ast.Slice)]
    found = {n for cut in slices for end in (cut.low, cut.high) if end is not None for n in names_in(end)}
    for let in reversed(operator.lets):
        if let.name in found:
            found |= names_in(let.value)
    return frozenset(found)


def _reads_outside(failure: BaseException) -> bool:
    return any(isinstance(cause, OutsideError) for cause in causes(failure))


def _admitted(rule: ast.Eliminate, term: Application, instances: Instances) -> bool:
    try:
        return guards_hold(rule, term, instances)
    except (DefinitionError, Unsupported) as refusal:
        open_question(refusal)
        return False


def _maps(term: Application) -> Iterator[IndexMap]:
    """The views among the outputs."""
    operands = {operand_name(place): operand for place, operand in enumerate(term.operands)}
    equations = {e.tensor: e for e in term.instance.equations}
    for place in range(len(term.instance.outputs)):
        equation = equations[output_name(place)]
        read = equation.view
        if read is None and not isinstance(equation.body, Const | Apply):
            raise Unprovable("whether an output is a view hangs on extents that are open")
        operand = operands.get(read.tensor) if read is not None else None
        if operand is None:
            continue
        map_ = map_of_equation(equation, operand.type.shape)
        if map_ is not None and not any(index.gathered for index in map_.indices):
            yield map_


def _inside(map_: IndexMap, path: Path, term: Application, z3: Any) -> None:
    if stays_inside(map_):
        return
    if not any(_surely_inside(map_, path, z3, by_reach) for by_reach in (True, False)):
        raise Unprovable(f"z3 cannot show that {map_} stays inside: {_shown(term)}")


def _surely_inside(map_: IndexMap, path: Path, z3: Any, by_reach: bool) -> bool:
    formulas = IndexFormulas(z3, by_reach)
    solver = z3.SimpleSolver() if by_reach else z3.Solver()
    solver.set("rlimit", _RESOURCES)
    if by_reach:
        solver.set("arith.nl", False)  # products are numbers of their own
    try:
        outside = []
        for index, extent in zip(map_.indices, map_.source, strict=True):
            value = formulas.index(index)
            outside.append(z3.Or(value < 0, value >= formulas.extent(extent)))
        known = path.formulas(formulas)
    except NoFormula:
        raise Unprovable("a table decides an index") from None
    solver.add(z3.Or(*outside), *known, *formulas.facts)
    return bool(solver.check() == z3.unsat)


def _shown(term: Application) -> str:
    return f"{term_text(term)} on {', '.join('_' if o is None else str(o.type) for o in term.operands)}"
