"""The steps that a saturation took, in terms instead of classes, and those of them that a result needs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from smartmem_rules.certificate.replay import Replay
from smartmem_rules.certificate.rules import Applied, application_of
from smartmem_rules.certificate.terms import ABSENT, CONSTANT, INPUT, OUT, VIEW, Digests, Refused, Term
from smartmem_rules.egraph.constants import SMALL
from smartmem_rules.egraph.firings import Composed, Firing, Rewritten, Viewed
from smartmem_rules.egraph.model import Saturation
from smartmem_rules.exchange.certificates import StepData
from smartmem_rules.exchange.expressions import map_json
from smartmem_rules.graph.model import Graph
from smartmem_rules.language import syntax as ast
from smartmem_rules.language.expressions import nodes
from smartmem_rules.language.roots import roots_of
from smartmem_rules.provenance.classes import classes_of
from smartmem_rules.provenance.explained import ExplainedTerms
from smartmem_rules.records import dataclass
from smartmem_rules.rulebase.base import RuleBase
from smartmem_rules.rulebase.instances import attribute_key
from smartmem_rules.rulebase.patterns import (
    is_absent,
    operators_of,
    operators_of_all,
    run_time_arguments as arguments_of,
)

_TRIED = 4
"""Terms of one form that are tried as the root of a match."""


@dataclass(frozen=True, kw_only=True)
class Taken:
    """A step that was taken."""

    step: StepData
    applied: Applied


class Derivation:
    """All steps of a saturation that could be done again on terms."""

    def __init__(self, graph: Graph, base: RuleBase, saturation: Saturation, digests: Digests | None = None) -> None:
        self.saturation = saturation
        self.terms = ExplainedTerms(base, digests)
        self.replay = Replay(graph, base, self.terms)
        self.taken: list[Taken] = []
        self._of_class: dict[int, list[int]] = defaultdict(list)
        self._class_of: dict[int, int] = {}
        self._forms: dict[tuple[object, ...], list[int]] = defaultdict(list)
        self._classes = classes_of(saturation, self.replay.model.numbers)
        for name, number in self.replay.model.numbers.items():
            found = saturation.tensor_class.get(name)
            if found is not None:
                self._register(number, found)
        self._take_all(list(saturation.firings))

    # --- terms and classes ---

    def of_class(self, class_: int) -> Sequence[int]:
        """The terms that are known of a class."""
        return self._of_class[self._classes.one(class_)]

    def _register(self, number: int, class_: int) -> None:
        term = self.terms.terms[number]
        if number in self._class_of:
            return
        if term.operator == OUT and term.children[0] not in self._class_of:
            joints = self.saturation.classes[class_].nodes
            joint = next((n.children[0] for n in joints if n.operator == OUT and n.attributes["index"] == term.key), -1)
            self._register(term.children[0], joint)
        class_ = self._classes.one(class_)
        self._class_of[number] = class_
        self._of_class[class_].append(number)
        if term.operator not in (INPUT, CONSTANT):
            self._forms[self._form_of(term)].append(number)
        if term.folded is not None and term.operator != OUT and len(term.types) == 1 and term.type.elements <= SMALL:
            self._take({"value": self.replay.names.get(number, "")})

    def _form_of(self, term: Term) -> tuple[object, ...]:
        children = [ABSENT if c == ABSENT else self._class_of[c] for c in term.children]
        key = term.key[0] if isinstance(term.key, tuple) else term.key
        return term.operator, tuple(children), key

    def _note(self, number: int) -> None:
        """Register a term that a step made, by the class of its form."""
        term = self.terms.terms[number]
        if number in self._class_of:
            return
        for child in term.children:
            if child != ABSENT:
                self._note(child)
        if term.operator == CONSTANT:
            array = self.terms.arrays[number]
            if array.ndim == 0:
                wanted = f"k{self.saturation.constants.scalar(array.item(), term.type.dtype)}"
                class_ = self._classes.of_form.get((CONSTANT, (), wanted))
                if class_ is not None:
                    self._register(number, class_)
            return
        if any(child != ABSENT and child not in self._class_of for child in term.children):
            return
        class_ = self._classes.of_form.get(self._form_of(term))
        if class_ is not None:
            self._register(number, class_)

    # --- steps ---

    def _take_all(self, pending: list[Firing]) -> None:
        """Take steps as long as one more becomes possible."""
        while pending:
            left = [firing for firing in pending if not self._try(firing)]
            if len(left) == len(pending):
                return
            pending = left

    def _try(self, firing: Firing) -> bool:
        return any(self._take(step) for step in self._steps(firing))

    def _take(self, step: StepData) -> bool:
        count = self.replay.count
        try:
            _, applied = self.replay.take(step)
        except Refused:
            return False
        for number in applied.made:
            self.terms.makers.setdefault(number, count)
        self.taken.append(Taken(step=step, applied=applied))
        for number in applied.made:
            self._note(number)
        view = applied.made[-1] if applied.made else ABSENT
        if view != ABSENT and self.terms.terms[view].operator == VIEW and self.terms.terms[view].key.is_identity:  # type: ignore[attr-defined]
            self._take({"identity": self._name(view)})
        return True

    def _name(self, number: int) -> str:
        return self.replay.names[number]

    def _steps(self, firing: Firing) -> Iterator[StepData]:
        match firing:
            case Rewritten():
                yield from self._rewrites(firing)
            case Viewed():
                for number in self._results(firing.rule.operator, firing.operands, firing.attributes, firing.output):
                    yield {
                        "eliminate": firing.rule.name,
                        "at": self._name(number),
                        "operand": firing.operand,
                        "map": map_json(firing.map),
                    }
            case Composed():
                for outer in self._forms.get((VIEW, self._classes.all([firing.between]), firing.outer), ()):
                    for inner in self._forms.get((VIEW, self._classes.all([firing.source]), firing.inner), ()):
                        if self.terms.equal(self.terms.terms[outer].children[0], inner):
                            names: StepData = {"compose": self._name(outer), "under": self._name(inner)}
                            yield {**names, "map": map_json(firing.map)}

    def _results(
        self, operator: str, children: Sequence[int], attributes: Mapping[str, Any], place: int
    ) -> Iterator[int]:
        """The terms that are a result of an operator at classes."""
        form = (operator, self._classes.all(children), attribute_key(attributes))
        for number in self._forms.get(form, ())[:_TRIED]:
            if len(self.terms.terms[number].types) == 1:
                yield number
            else:
                yield from self._forms.get((OUT, (self._class_of[number],), place), ())

    def _uses(self, classes: Mapping[str, int]) -> dict[str, int]:
        metas = {name: self.saturation.classes[class_].meta for name, class_ in classes.items() if class_ != ABSENT}
        return {name: meta.uses for name, meta in metas.items() if meta is not None}

    def _rewrites(self, firing: Rewritten) -> Iterator[StepData]:
        rule = firing.rule
        left = rule.right if firing.backward else rule.left
        patterns = operators_of_all(left)
        numbers = iter(firing.numbers)
        results = iter(firing.results)
        children: list[tuple[int, ...]] = []
        for pattern in reversed(roots_of(left)):
            _classes_of(pattern, firing, numbers, results, children)
        forms = [(p, c, a) for p, c, a in zip(patterns, children, firing.attributes, strict=True)]
        asks = any(isinstance(n, ast.Call) and n.function == "uses" for n in nodes(rule.guards))
        uses = self._uses(firing.tensors) if asks else {}
        for terms, swapped in self._operands([(root, None) for root in reversed(roots_of(left))], forms, len(forms)):
            step: StepData = {"rule": rule.name, "match": [self._name(t) for t in terms]}
            if firing.backward:
                step["backward"] = True
            if swapped:
                step["swapped"] = sorted(swapped)
            if uses:
                step["uses"] = uses
            yield step

    def _matches(
        self,
        pattern: ast.Pattern,
        forms: Sequence[tuple[ast.PatternOperator, tuple[int, ...], Mapping[str, Any]]],
        end: int,
        actual: int | None,
    ) -> Iterator[tuple[tuple[int, ...], frozenset[int]]]:
        """Terms for the operators of a pattern, those before number `end`, and which of them are swapped."""
        if not isinstance(pattern, ast.PatternOperator):
            yield (), frozenset()
            return
        own, classes, attributes = forms[end - 1]
        for swap in (False, True) if len(classes) == 2 else (False,):
            order = classes[::-1] if swap else classes
            for number in self._results(own.operator, order, attributes, own.output or 0):
                if actual is not None and not self.terms.equal(number, actual):
                    continue
                children = list(application_of(self.terms, number, own.output or 0).children)
                if swap:
                    children.reverse()
                pairs = list(zip(arguments_of(own), children, strict=False))
                for terms, swapped in self._operands(pairs, forms, end - 1):
                    yield (*terms, number), swapped | ({end - 1} if swap else frozenset())

    def _operands(
        self,
        pairs: Sequence[tuple[ast.Pattern, int | None]],
        forms: Sequence[tuple[ast.PatternOperator, tuple[int, ...], Mapping[str, Any]]],
        end: int,
    ) -> Iterator[tuple[tuple[int, ...], frozenset[int]]]:
        if not pairs:
            yield (), frozenset()
            return
        *before, (last, actual) = pairs
        size = len(list(operators_of(last)))
        for terms, swapped in self._matches(last, forms, end, actual):
            for first, others in self._operands(before, forms, end - size):
                yield (*first, *terms), swapped | others

    # --- what a result needs ---

    def needed(self, goals: Iterable[tuple[int, int]], used: Iterable[int]) -> list[Taken]:
        """The steps from which equalities follow, in their order, with those that make terms which are named."""
        seen: set[tuple[int, int]] = set()
        wanted = self.terms.steps_between(goals, seen) | self._makers(used, seen)
        done: set[int] = set()
        while pending := wanted - done:
            number = max(pending)
            done.add(number)
            one = self.taken[number]
            wanted |= self.terms.steps_between(one.applied.needed, seen)
            named = [self.replay.numbers[name] for name in _names_in(one.step)]
            wanted |= self._makers([*named, *(known for _, known in one.applied.needed)], seen)
        return [self.taken[number] for number in sorted(done)]

    def _makers(self, numbers: Iterable[int], seen: set[tuple[int, int]]) -> set[int]:
        """The steps that made terms, and those by which the values of known ones are known."""
        steps: set[int] = set()
        pending, visited = list(numbers), set[int]()
        while pending:
            number = pending.pop()
            if number in visited or number == ABSENT:
                continue
            visited.add(number)
            if number in self.terms.makers:
                steps.add(self.terms.makers[number])
            term = self.terms.terms[number]
            pending += term.children
            if term.folded is not None:
                steps |= self.terms.steps_between(zip(term.children, term.folded, strict=True), seen)
                pending += term.folded
        return steps


def _classes_of(
    pattern: ast.Pattern,
    firing: Rewritten,
    numbers: Iterator[int],
    results: Iterator[int],
    found: list[tuple[int, ...]],
) -> int:
    """The class of a pattern; the classes of the operands of each of its operators go into `found`."""
    if is_absent(pattern):
        return ABSENT
    if isinstance(pattern, ast.PatternVariable):
        return firing.tensors[pattern.name]
    if isinstance(pattern, ast.PatternNumber):
        return next(numbers)
    assert isinstance(pattern, ast.PatternOperator)
    children = [_classes_of(a, firing, numbers, results, found) for a in arguments_of(pattern)]
    if pattern.variadic is not None:
        children += firing.members[pattern.variadic]
    found.append(tuple(children))
    return next(results)


def _names_in(step: StepData) -> list[str]:
    return [*step.get("match", ()), *(step[key] for key in _NAMING if key in step)]


def renamed(step: StepData, names: Mapping[str, str]) -> StepData:
    """A step over other names of terms."""
    changed: StepData = {**step}
    for key in _NAMING:
        if key in step:
            changed[key] = names.get(step[key], step[key])
    if "match" in step:
        changed["match"] = [names.get(name, name) for name in step["match"]]
    return changed


_NAMING: Final = ("at", "compose", "under", "identity", "value")
