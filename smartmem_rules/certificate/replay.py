"""The steps of a certificate, done again: every one states what it found, and is refused where that is not so."""

from __future__ import annotations

from typing import Unpack, cast

from smartmem_rules.certificate.graphs import ModelTerms
from smartmem_rules.certificate.rules import Applied, Bound, eliminate, rewrite, same_map
from smartmem_rules.certificate.terms import ABSENT, CONSTANT, INPUT, OUT, VIEW, Refused, Terms
from smartmem_rules.exchange.certificates import StepData
from smartmem_rules.exchange.expressions import ExchangeError, map_json, read_map
from smartmem_rules.graph.model import Graph
from smartmem_rules.language import syntax as ast
from smartmem_rules.rulebase.base import RuleBase
from smartmem_rules.tensor.views import IndexMap, compose

_LONGEST = 160
"""Characters of a term's attributes that are shown."""
UNREADABLE = (ExchangeError, KeyError, TypeError, IndexError, ValueError, AttributeError, RecursionError)
"""What reading something raises that no `optimize` wrote."""


class Replay:
    """A model's terms, and the steps that were taken on them."""

    def __init__(self, graph: Graph, base: RuleBase, terms: Terms | None = None) -> None:
        self.terms = terms or Terms(base)
        self.model = ModelTerms(graph, self.terms)
        self.rules: dict[str, ast.Rule] = {rule.name: rule for rule in base.rules()}
        self.names: dict[int, str] = {}
        self.numbers: dict[str, int] = {}
        self.count = 0
        for name, number in self.model.numbers.items():
            self._name(name, number)

    def _name(self, name: str, number: int) -> None:
        self.numbers[name] = number
        self.names.setdefault(number, name)

    def number(self, name: str) -> int:
        """The term of a name; raises Refused where there is none."""
        if name not in self.numbers:
            raise Refused(f"there is no term {name!r}")
        return self.numbers[name]

    def step(self, step: StepData) -> None:
        """Take a step as a certificate has it.

        Raises:
            Refused: it does not hold, or what it says of itself is not so.
        """
        try:
            found, _ = self.take(step)
        except UNREADABLE as error:
            raise Refused(f"the step cannot be read ({type(error).__name__}: {error})") from error
        for key in (*found, *step):
            if found.get(key) != step.get(key):
                raise Refused(f"{key} is {found.get(key)!r}, not {step.get(key)!r}")

    def take(self, step: StepData) -> tuple[StepData, Applied]:
        """Take a step of which only what cannot be computed is given; the whole step, and what it rests on."""
        kind = next((kind for kind in ("rule", "eliminate", "compose", "identity", "value") if kind in step), "")
        if not kind:
            raise Refused("this is no kind of step")
        taken: tuple[StepData, Applied] = getattr(self, f"_{kind}")(step)
        found, applied = taken
        self.terms.join(applied.left, applied.right, self.count)
        own = f"@{self.count}"
        for place, number in enumerate(applied.made):
            self._name(own if place == len(applied.made) - 1 else f"{own}.{place}", number)
        self.count += 1
        found["makes"] = [self.text(number) for number in applied.made] or [self.names[applied.right]]
        return found, applied

    # --- kinds of steps ---

    def _rule(self, step: StepData) -> tuple[StepData, Applied]:
        rule = self.rules.get(step["rule"])
        if not isinstance(rule, ast.Rewrite):
            raise Refused(f"there is no rewrite rule {step['rule']!r}")
        match = [self.number(name) for name in step["match"]]
        given = step.get("uses", {})
        backward, swapped = bool(step.get("backward")), frozenset(step.get("swapped", ()))
        applied = rewrite(self.terms, rule, backward, match, swapped, (given, self.model.uses))
        return {
            "rule": rule.name,
            "equation": rule.comment,
            "match": list(step["match"]),
            **_given(backward=backward, swapped=sorted(swapped), uses=dict(given)),
            **self._sides(applied),
        }, applied

    def _eliminate(self, step: StepData) -> tuple[StepData, Applied]:
        rule = self.rules.get(step["eliminate"])
        if not isinstance(rule, ast.Eliminate):
            raise Refused(f"there is no eliminate rule {step['eliminate']!r}")
        given, claimed = step.get("uses", {}), _claimed(step)
        applied, computed = eliminate(
            self.terms, rule, self.number(step["at"]), step["operand"], claimed, (given, self.model.uses)
        )
        return {
            "eliminate": rule.name,
            "at": step["at"],
            "operand": step["operand"],
            **_given(uses=dict(given)),
            **_shown_map(claimed, computed),
            **self._sides(applied),
        }, applied

    def _compose(self, step: StepData) -> tuple[StepData, Applied]:
        number, under = self.number(step["compose"]), self.number(step["under"])
        outer, inner = self.terms.terms[number], self.terms.terms[under]
        if outer.operator != VIEW or inner.operator != VIEW or not self.terms.equal(outer.children[0], under):
            raise Refused("this is no view of a view")
        assert isinstance(outer.key, IndexMap)
        assert isinstance(inner.key, IndexMap)
        computed, claimed = compose(inner.key, outer.key), _claimed(step)
        view = self.terms.view(inner.children[0], same_map(computed, claimed))
        needed = ((outer.children[0], under),)
        found: StepData = {"compose": step["compose"], "under": step["under"], **_shown_map(claimed, computed)}
        return found, Applied(left=number, right=view, made=(view,), bound={}, guards=[], needed=needed)

    def _identity(self, step: StepData) -> tuple[StepData, Applied]:
        number = self.number(step["identity"])
        term = self.terms.terms[number]
        if term.operator != VIEW or not isinstance(term.key, IndexMap) or not term.key.is_identity:
            raise Refused("this is no view that leaves every element at its place")
        made = Applied(left=number, right=term.children[0], made=(), bound={}, guards=[], needed=())
        return {"identity": step["identity"]}, made

    def _value(self, step: StepData) -> tuple[StepData, Applied]:
        number = self.number(step["value"])
        array = self.terms.value(number)
        constant = self.terms.constant(array, self.terms.terms[number].type)
        made = Applied(left=number, right=constant, made=(constant,), bound={}, guards=[], needed=())
        return {"value": step["value"], "sha256": self.terms.digests.of(array)}, made

    # --- what is shown ---

    def _sides(self, applied: Applied) -> StepData:
        bound = {name: self._shown(subject) for name, subject in applied.bound.items()}
        return {"bound": bound, "guards": applied.guards}

    def _shown(self, subject: Bound) -> str | list[str]:
        return self._of(subject) if isinstance(subject, int) else [self._of(one) for one in subject]

    def _of(self, number: int) -> str:
        """A term by its name, or in full where it has none."""
        return self.names[number] if number in self.names else self.text(number)

    def text(self, number: int) -> str:
        """A term over the names of its operands."""
        if number == ABSENT:
            return "_"
        term = self.terms.terms[number]
        operands = ", ".join("_" if child == ABSENT else self._of(child) for child in term.children)
        match term.operator:
            case x if x == OUT:
                return f"{operands}.{term.key}"
            case x if x == VIEW:
                return f"View({operands}; {term.key})"
            case x if x in (INPUT, CONSTANT):
                return f"{x}({term.type})"
        attributes = ", ".join(f"{name} = {value!r}" for name, value in sorted(term.attributes.items()))
        return f"{term.operator}({operands}{f'; {attributes[:_LONGEST]}' if attributes else ''})"


def _given(**values: Unpack[StepData]) -> StepData:
    """What a step says of itself only where there is something to say."""
    return cast("StepData", {name: value for name, value in values.items() if value})


def _claimed(step: StepData) -> IndexMap | None:
    return read_map(step["map"]) if "map" in step else None


def _shown_map(claimed: IndexMap | None, computed: IndexMap) -> StepData:
    return {} if claimed is None or claimed == computed else {"map": map_json(claimed)}
