"""Builds one instance of a left side, and the right side as the engine would."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from typing import TYPE_CHECKING, Any

from smartmem_rules.guards.constant_elements import over_elements
from smartmem_rules.language import syntax as ast
from smartmem_rules.language.expressions import conjuncts
from smartmem_rules.rulebase.patterns import is_absent, operators_of, rest_of, run_time_arguments
from smartmem_rules.tensor.builtins import DefinitionError, Unsupported, Value
from smartmem_rules.tensor.definitions.values import Scope, truth
from smartmem_rules.tensor.instantiate import Instance
from smartmem_rules.verification.instances.attributes import AttributeDraws, bind_names, formals_by_name
from smartmem_rules.verification.instances.case import EMPTY, Case, Choices, NoInstance
from smartmem_rules.verification.instances.constants import choose_constants, choose_elements
from smartmem_rules.verification.instances.draws import Extents
from smartmem_rules.verification.instances.guard_scope import Seen, complete_scope, partial_scope
from smartmem_rules.verification.instances.leaf_draws import LeafDraws
from smartmem_rules.verification.instances.requirements import Drawn
from smartmem_rules.verification.instances.roles import operator_roles
from smartmem_rules.verification.instances.signature import (
    Operands,
    Signature,
    Wanted,
    names_an_axis_twice,
    possible,
    signatures,
)
from smartmem_rules.verification.semantics.terms import (
    Leaf,
    Term,
    apply_operator,
    build_right,
    is_empty,
    least_extent,
    reads_inside,
    subterms,
)

if TYPE_CHECKING:
    from smartmem_rules.verification.instances.cases import Search

LOCAL_TRIES = 14
EMPTY_TRIES = 2
"""Of instances with a tensor of no elements: there are others from which one can be made."""
ALIKE = 0.08
"""The share of instances of which all extents are one."""


class Assembly:
    """Builds one instance; draws what the choices leave open."""

    def __init__(self, search: Search, choices: Choices) -> None:
        self.search = search
        self.choices = choices
        self.random = search.random
        self.empties = bool(choices.get(EMPTY))
        """Whether some tensor is to have no elements; else each has some."""
        self.leaves: dict[str, Leaf] = {}
        self.members: dict[str, tuple[Term, ...]] = {}
        self.values: dict[str, Value] = {}
        self.bundles: dict[str, dict[str, Value]] = {}
        self.rests: dict[str, dict[str, Value]] = {}
        """What the names of the rest of attributes stand for, defaults included."""
        self.given: dict[str, list[dict[str, Value]]] = {}
        self.terms: list[tuple[ast.Pattern, Term]] = []
        """What the operators of the left side are; no dict, as a pattern takes long to hash and few are asked for."""
        self.slots: dict[str, set[str]] = {}
        self.scope = Scope(self.values, {}, search.instances.base.functions, {})

    def choose(self, slot: str, draw: Callable[[], Any], fits: Callable[[Any], bool] | None = None) -> Any:
        """The chosen value of a slot, drawn where there is none or one that does not fit."""
        if slot not in self.choices or (fits is not None and not fits(self.choices[slot])):
            self.choices[slot] = draw()
        return self.choices[slot]

    def case(self) -> Case:
        """The whole instance. Raises NoInstance."""
        dtype = self.choose("dtype", self.search.dtype)
        self.search.draws.alike = self.choose(
            "alike", lambda: self.random.choice((2, 2, 3)) if self.random.random() < ALIKE else 0
        )
        left = self._term(self.search.left, "0", dtype)
        assert left is not None
        if not self.search.results_may_be_empty and (left.type.elements == 0 or is_empty(left) != self.empties):
            raise NoInstance("empty")
        if any(t.type.elements > self.search.most_elements for t in subterms(left)):
            raise NoInstance("too large")
        self.search.built.add(dtype)
        constants, uniform = choose_constants(self.leaves, self.search.hints, self.choose, self.random)
        given = choose_elements(
            {name: self.leaves[name] for name in constants}, uniform, self.search.elements, self.search.hints,
            lambda: self._partial_scope({}, self.values, uniform), self.choose, self.random, self.search.aims,
        )  # fmt: skip
        self._complete_scope(constants, uniform, left.type.dtype)
        case = Case(left, None, self.scope, self.choices, constants, uniform, given, slots=self.slots)
        self.scope.elements = over_elements(given.get)
        guards = self.search.rule.guards
        for guard in conjuncts(*guards) if self.search.aims else guards:
            try:
                holds = truth(guard, self.scope)
            except (DefinitionError, Unsupported):
                holds = False
            if not holds:
                case.failing.append(guard)
        if self.search.one_sided:
            case.right = left
        elif not case.failing:
            self._right(case, left)
        if case.failing:
            self.scope.queries, self.scope.term = {}, None  # they hold the scope, of which nothing more is asked
        return case

    def _right(self, case: Case, left: Term) -> None:
        try:
            right = build_right(
                self.search.right, self._leaf_or_fail, self._members_or_fail, self.bundles, self.scope,
                self.search.instances, left.type.dtype,
            )  # fmt: skip
        except (DefinitionError, Unsupported) as refusal:
            case.refusal = str(refusal)
            return
        if right.type != left.type:
            case.refusal = f"{left.type} became {right.type}"
            return
        case.right = right

    def _leaf_or_fail(self, name: str) -> Leaf:
        return self.leaves[name]

    def _members_or_fail(self, name: str) -> tuple[Term, ...]:
        return self.members[name]

    # --- the left side ---

    def _term(self, pattern: ast.Pattern, path: str, dtype: str, wanted: Wanted | None = None) -> Term | None:
        assert isinstance(pattern, ast.PatternOperator)
        arguments = run_time_arguments(pattern)
        operands: dict[int, Term | None] = {}
        for place, argument in enumerate(arguments):
            if isinstance(argument, ast.PatternOperator):
                inner = self._wanted(pattern, path, place, operands, wanted)
                operands[place] = self._term(argument, f"{path}.{place}", dtype, inner)
            elif is_absent(argument):
                operands[place] = None
            elif isinstance(argument, ast.PatternVariable) and argument.name in self.leaves:
                operands[place] = self.leaves[argument.name]
        count = len(arguments)
        if pattern.variadic is not None and pattern.variadic in self.members:
            for member in self.members[pattern.variadic]:
                operands[count] = member
                count += 1
        elif pattern.variadic is not None:
            count += self.choose(f"members:{pattern.variadic}", lambda: self.random.choice((1, 2, 3)))
        return self._apply(pattern, path, dtype, operands, count, wanted)

    def _wanted(
        self, pattern: ast.PatternOperator, path: str, place: int, operands: Operands, outer: Wanted | None
    ) -> Wanted | None:
        """What is wanted of an operand beside those before it, where instances are hard to find."""
        if not self.search.aims or pattern.variadic is not None:
            return None
        signature = self._signature(pattern, path, len(run_time_arguments(pattern)))
        return signature.wants(place, operands, outer, self.random)

    def _signature(self, pattern: ast.PatternOperator, path: str, count: int) -> Signature:
        operators = self.search.instances.base.operators
        found = signatures(operators.get(pattern.operator, ()), pattern.operator, count)
        number: int = self.choose(
            f"overload:{path}", lambda: self.random.choice(possible(found, pattern, self.search.wishes, operators))
        )
        return found[number % len(found)]

    def _apply(
        self,
        pattern: ast.PatternOperator,
        path: str,
        dtype: str,
        operands: dict[int, Term | None],
        count: int,
        wanted: Wanted | None,
    ) -> Term:
        signature = self._signature(pattern, path, count)
        outputs = self._outputs(pattern, path, signature.overload)
        before = set(self.choices)
        reason: Exception | None = None
        again = False
        for attempt in range(EMPTY_TRIES if self.empties else LOCAL_TRIES):
            again = again or attempt > LOCAL_TRIES // 2
            if attempt:
                self._forget(pattern, path, before, again)
            try:
                return self._try(pattern, path, dtype, signature, dict(operands), outputs, wanted)
            except (Unsupported, DefinitionError) as refusal:
                reason = refusal.with_traceback(None)  # else it would hold this frame, and only the collector both
                # where all was chosen before, the same would be refused again
                again = again or not self.choices.keys() - before
        raise NoInstance(reason)

    def _forget(self, pattern: ast.PatternOperator, path: str, before: set[str], again: bool) -> None:
        """Drop what was drawn for an operator; `again` also drops what was chosen for it before."""
        for slot in self.choices.keys() - before:
            # which attributes are there stays: those that are easily wrong would hardly ever be
            if again or not slot.startswith("present:"):
                del self.choices[slot]
        if again:
            names = {
                a.name for a in run_time_arguments(pattern) if isinstance(a, ast.PatternVariable)
            } - self.leaves.keys()
            names |= {a.value.id for a in pattern.attributes if isinstance(a.value, ast.Name)} - self.values.keys()
            own = {f"{kind}:{name}" for kind in ("shape", "name") for name in names} if self.search.aims else set()
            own |= {f"given:{path}", f"present:{path}"}
            own |= {f"shape:#{path}.{place}" for place in range(len(run_time_arguments(pattern)))}
            for slot in before & own:
                self.choices.pop(slot, None)

    def _outputs(self, pattern: ast.PatternOperator, path: str, overload: ast.Operator) -> int:
        least = 1 + (pattern.output or 0)
        if not any(o.index is not None for o in overload.outputs):
            return least
        other = self.given.get(pattern.operator, [])
        same = [n for g in other if isinstance(n := g.get("#outputs"), int)]
        others = [p for p in operators_of(self.search.left) if p.operator == pattern.operator]
        usual = max(least, *(1 + (p.output or 0) for p in others)) if self.random.random() < 0.8 else least

        def draw() -> int:
            if same and same[0] >= least and self.random.random() < 0.8:
                return same[0]
            return usual + self.random.choice((0, 0, 1, 1))

        return int(self.choose(f"outputs:{path}", draw))

    def _try(
        self,
        pattern: ast.PatternOperator,
        path: str,
        dtype: str,
        signature: Signature,
        operands: dict[int, Term | None],
        outputs: int,
        wanted: Wanted | None,
    ) -> Term:
        self.search.tries += 1
        overload, formals = signature.overload, signature.formals
        known = signature.known(operands, wanted)
        fresh, members = self._leaves_of(pattern, path, dtype, signature, operands, known, wanted)
        if wanted is not None:
            # asked before the operator is made, which takes most of the time of an attempt
            wanted.check_dtype(signature.result_dtype(operands, pattern.output or 0))
        before = self.leaves.keys() | self.values.keys()
        if fresh:
            self._check_guards(before, fresh, self.values)
        ordered = [operands.get(place) for place in range(len(formals))]
        values = dict(self.values)
        given = self._attributes(pattern, path, overload, ordered, known, values, outputs, fresh)
        if len(values) > len(self.values):
            self._check_guards(before | fresh.keys(), fresh, values)
        if names_an_axis_twice(overload, given, ordered, self.search.instances.base.functions):
            raise Unsupported("a list of axes names one of them twice")
        drawn = Drawn(signature, ordered, fresh, self.choices, self.scope, self.random)
        bound = {**known, **given}
        drawn.make_divisible(bound)
        drawn.make_equal(bound)
        made = self._made_before(pattern, overload, ordered, given, outputs) if self.search.aims else None
        if self.search.aims and made is None:
            is_open = pattern.bundle is None or pattern.bundle not in self.rests
            alone = len(self.search.instances.base.operators[pattern.operator]) == 1
            drawn.meet_requirements(pattern if is_open else None, path, given, self.search.most_elements, alone)
        place, instances = pattern.output or 0, self.search.instances
        term = apply_operator(pattern.operator, ordered, given, outputs, place, instances, made)
        if wanted is not None:
            wanted.check(term.type)
        if least_extent(term) < (0 if self.empties or self.search.results_may_be_empty else 1):
            raise Unsupported("a tensor has no elements")
        if self.search.strict and not reads_inside(term):
            raise Unsupported("an operand is smaller than what is read of it")
        rest: dict[str, Value] = {}
        if pattern.bundle is not None:
            rest = rest_of(pattern, term.instance.operator, {**term.instance.values, **given})
            if self.rests.get(pattern.bundle, rest) != rest:
                raise Unsupported(f"@{pattern.bundle} stands for other attributes the second time")
        bind_names(pattern, {**term.instance.values, **given}, self.values, values)
        self.values.update(values)
        self.leaves.update(fresh)
        self.given.setdefault(pattern.operator, []).append({**given, "#outputs": outputs})
        self.terms.append((pattern, term))
        if pattern.bundle is not None:
            self.bundles.setdefault(pattern.bundle, given)
            self.rests.setdefault(pattern.bundle, rest)
        if pattern.variadic is not None:
            self.members.setdefault(pattern.variadic, tuple(members))
        return term

    def _leaves_of(
        self,
        pattern: ast.PatternOperator,
        path: str,
        dtype: str,
        signature: Signature,
        operands: dict[int, Term | None],
        known: Extents,
        wanted: Wanted | None,
    ) -> tuple[dict[str, Leaf], list[Term]]:
        """The tensors that an operator reads and that are not there yet, which become its operands.

        Returns:
            All of them by name, and those that belong to the pattern's list of operands.
        """
        if len(operands) == len(signature.formals):
            return {}, []
        draws = LeafDraws(
            search=self.search,
            choose=self.choose,
            choices=self.choices,
            pattern=pattern,
            path=path,
            dtype=dtype,
            signature=signature,
            placed=self.leaves,
            known=known,
            wanted=wanted,
        )
        draws.all(operands)
        return draws.fresh, draws.members

    def _made_before(
        self,
        pattern: ast.PatternOperator,
        overload: ast.Operator,
        operands: list[Term | None],
        given: Mapping[str, Value],
        outputs: int,
    ) -> Instance | None:
        """What an overload makes of operands that it was given before: its requirements surely hold of them."""
        types = [None if o is None else o.type for o in operands]
        known = self.search.instances.known(pattern.operator, types, given, outputs)
        return known if known is not None and known.operator is overload else None

    def _attributes(
        self,
        pattern: ast.PatternOperator,
        path: str,
        overload: ast.Operator,
        operands: list[Term | None],
        known: Extents,
        values: dict[str, Value],
        outputs: int,
        fresh: Mapping[str, Leaf],
    ) -> dict[str, Value]:
        search = self.search
        roles = operator_roles(overload, search.instances.base.functions)
        earlier = self.given.get(pattern.operator, [])
        return AttributeDraws(
            guards=search.rule.guards,
            lists=search.lists,
            hints=search.hints,
            draws=search.draws,
            choose=self.choose,
            slots=self.slots,
            formals=formals_by_name(overload),
            roles=roles,
            operands=operands,
            known=known,
            seen=lambda: self._partial_scope(fresh, values),
            values=values,
            earlier=earlier,
            rests=self.rests,
            outputs=outputs,
        ).all(pattern, path)

    # --- what guards see ---

    def _check_guards(self, before: Set[str], fresh: Mapping[str, Leaf], values: dict[str, Value]) -> None:
        """Raises Unsupported where a guard of types does not hold, in searches that aim at guards."""
        if self.search.looks_early and self.search.early.guards:
            known = before | fresh.keys() | values.keys()
            self.search.early.check(before, known, lambda: self._partial_scope(fresh, values))

    def _partial_scope(
        self, fresh: Mapping[str, Leaf], values: dict[str, Value], uniform: Mapping[str, float] | None = None
    ) -> Scope:
        leaves = (*self.leaves.values(), *fresh.values())
        return partial_scope(leaves, values, self.scope.functions, uniform or {})

    def _complete_scope(self, constants: frozenset[str], uniform: Mapping[str, float], dtype: str) -> None:
        def term(pattern: ast.Pattern) -> Term:
            return dict(self.terms).get(pattern) or build_right(
                pattern, self._leaf_or_fail, self._members_or_fail, self.bundles, self.scope,
                self.search.instances, dtype,
            )  # fmt: skip

        def uses(name: str) -> int:
            return int(self.choose(f"uses:{name}", lambda: self.random.choice((1, 2, 2, 3))))

        complete_scope(
            self.scope,
            Seen(leaves=self.leaves, members=self.members, constants=constants, uniform=uniform, uses=uses, term=term),
        )
