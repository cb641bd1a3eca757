"""Rules as an egglog program."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field
from typing import NamedTuple, Protocol

from smartmem_rules.egraph.elimination import Elimination
from smartmem_rules.egraph.facts import OfConstants, deriving, fact_texts, other_guards, relation, wanted_constants
from smartmem_rules.egraph.firings import COMPOSED, Table, table_of_elimination, table_of_rewrite
from smartmem_rules.egraph.host import Host
from smartmem_rules.egraph.joint import OF_MODEL, joint_facts, shared
from smartmem_rules.egraph.matching import Application, pick
from smartmem_rules.egraph.model import WIDE, RuleStatistics
from smartmem_rules.egraph.patterns import (
    Counts,
    Left,
    Right,
    choices,
    compile_left,
    compile_rights,
    constructor,
    symmetric,
)
from smartmem_rules.guards.magnitudes import asks_for_moderate
from smartmem_rules.language import syntax as ast
from smartmem_rules.language.analyses import facts_of, term_of
from smartmem_rules.language.blocks.strategy import Phase
from smartmem_rules.language.roots import roots_of
from smartmem_rules.records import dataclass
from smartmem_rules.rulebase.packed import Index
from smartmem_rules.rulebase.patterns import operators_of, operators_of_all, right_outputs, run_time_arguments
from smartmem_rules.tensor.instantiate import Definitions

BETWEEN_RULES = " "
ENGINE = "engine"
"""The ruleset of what holds without any rule file: views compose, an identity view is its operand."""


class Rules(Definitions, Protocol):
    """What compilation needs of a rule base."""

    @property
    def rewrites(self) -> Sequence[ast.Rewrite]: ...

    @property
    def eliminates(self) -> Sequence[ast.Eliminate]: ...

    @property
    def keeps(self) -> Sequence[ast.Keep]: ...

    @property
    def index_rules(self) -> Sequence[ast.IndexRule]: ...


@dataclass(frozen=True)
class Direction:
    """A rewrite read from left to right; of a rule of several patterns the equations of all of them.

    A rule that derives a fact of its left side has no right one.
    """

    rules: tuple[ast.Rewrite, ...]
    left: ast.Pattern
    rights: tuple[ast.Pattern | None, ...]

    @property
    def sides(self) -> Mapping[str, tuple[ast.Pattern, ast.Pattern | None]]:
        """For each rule its own pattern of the left side and its right side."""
        lefts = [roots_of(rule.left)[0] for rule in self.rules] if len(roots_of(self.left)) > 1 else [self.left]
        return dict(zip([rule.name for rule in self.rules], zip(lefts, self.rights, strict=True), strict=True))


@dataclass
class Program:
    """An egglog program; rules of it are named `RULE#number`, or `RULE.1 RULE.2#number` for several patterns.

    `tables` hold what fired, where that is recorded.
    """

    shapes: dict[str, set[Counts]]
    rules: list[str] = field(default_factory=list)
    steps: dict[tuple[str, ...], str] = field(default_factory=dict)
    tables: list[Table] = field(default_factory=list)
    commutative: Collection[str] = ()
    joint: set[int] = field(default_factory=set)
    """How many patterns the rules have that have several."""
    analyses: set[str] = field(default_factory=set)
    """The analyses whose facts guards ask for."""

    def declarations(self) -> str:
        """Sorts, constructors and the engine's own functions."""
        lines = [
            "(sort T)",
            "(constructor N (i64) T :unextractable)",
            "(constructor Input (String) T)",
            "(constructor Constant (String) T)",
            "(constructor Absent () T)",
            "(constructor Out (T i64) T)",
            f"(constructor {WIDE} (i64) T)",
            "(constructor View (T String) T)",
            "(relation by_View (T String String))",
            # the older text wins: that of the imported model, which knows its tensor
            "(function meta (T) String :merge (ordering-min old new))",
            "(relation uniform (T String))",
            "(function host () PyObject :no-merge)",
            f"(ruleset {ENGINE})",
            "(ruleset load)",
        ]
        for operator, shapes in self.shapes.items():
            for counts in sorted(shapes):
                name = constructor(operator, counts)
                operands = "T " * counts[0]
                lines.append(f"(constructor {name} ({operands}String) T)")
                lines.append(f"(relation by_{name} ({operands}String String))")
            if operator in self.commutative and (2, 1) in shapes:
                lines.append(f"(relation {symmetric(operator)} (T T String T))")
        lines += [table.declaration for table in self.tables]
        lines += [f"(relation {relation(name)} (T))" for name in sorted(self.analyses)]
        lines += [f"(relation {name} (T))" for name in (OF_MODEL, *map(shared, sorted(self.joint))) if self.joint]
        lines += [f"(ruleset {name})" for name in dict.fromkeys(name for names in self.steps for name in names)]
        for names, step in self.steps.items():
            lines.append(f"(unstable-combined-ruleset {step} {' '.join(dict.fromkeys(names))} {ENGINE})")
        return "\n".join(lines)


def step_of(phase: Phase) -> str:
    """The egglog ruleset of a phase: its rule sets and what the engine does itself."""
    return f"{'_and_'.join(phase.rulesets)}_step"


def question(session: str, subject: str, texts: Sequence[str]) -> str:
    """The egglog expression that asks the host."""
    parts = ' "|" '.join([f'"{session}|{subject}"', *texts])
    return f"(py-to-string (py-call ?h (py-from-string (+ {parts}))))"


def compile_rules(
    base: Rules,
    host: Host,
    shapes: Mapping[str, set[Counts]],
    phases: Sequence[Phase],
    disable: Collection[str] = (),
    record: bool = False,
) -> Program:
    """The rules of the phases that can match at all, given which operators the model has.

    The host learns how to answer each of them.  Rules marked unsound and disabled ones are left out.  With `record`,
    each rule notes the matches that it rewrites.
    """
    rulesets = {name for phase in phases for name in phase.rulesets}
    used = [rule for rule in base.rewrites if rule.ruleset in rulesets and rule.name not in disable]
    derives = [rule for rule in base.rewrites if rule.derives is not None and rule.name not in disable]
    directions = [*_directions(used), *_derivations(deriving(used, derives))]
    eliminates = [e for e in base.eliminates if e.ruleset in rulesets and e.name not in disable]
    program = Program(
        {operator: set(counts) for operator, counts in shapes.items()}, commutative=commutative_operators(base)
    )
    _close(program.shapes, directions, base)
    program.joint = {size for d in directions if (size := len(roots_of(d.left))) > 1}
    program.analyses = {fact.analysis for d in directions for rule in d.rules for fact in facts_of(rule)}
    program.steps = {tuple(phase.rulesets): step_of(phase) for phase in phases}
    host.answers["pick"] = pick
    for operator in sorted(program.shapes.keys() & program.commutative):
        if (2, 1) in program.shapes[operator]:
            program.rules.append(_either_order(operator))
    if record:
        program.tables.append(COMPOSED)
    program.rules += _engine_rules(host.session, COMPOSED.action if record else "")
    for direction in directions:
        program.rules += _rewrites(host, direction, program, base, record)
    for eliminate in eliminates:
        host.statistics.setdefault(eliminate.name, RuleStatistics(rule=eliminate.name))
        program.rules += _eliminations(host, eliminate, program, record)
    return program


def commutative_operators(base: Definitions) -> frozenset[str]:
    return Index.of(base.operators).commutative


def _directions(rules: Sequence[ast.Rewrite]) -> Iterator[Direction]:
    sound = [rule for rule in rules if rule.unsound is None]
    for _, group in itertools.groupby(sound, lambda rule: rule.part_of or rule.name):
        together = tuple(group)
        yield Direction(together, together[0].left, tuple(rule.right for rule in together))
        if together[0].bidirectional:
            yield Direction(together, together[0].right, (together[0].left,))


def _derivations(rules: Sequence[ast.Rewrite]) -> Iterator[Direction]:
    for rule in rules:
        yield Direction((rule,), term_of(rule), (None,))


def _close(shapes: dict[str, set[Counts]], directions: Sequence[Direction], base: Definitions) -> None:
    """Add what the right sides of rules can build, until nothing new comes."""
    needed = [(direction, {one.operator for one in operators_of_all(direction.left)}) for direction in directions]
    grown = True
    while grown:
        grown = False
        for direction, operators in needed:
            if not operators <= shapes.keys():
                continue
            for counts in choices(direction.left, shapes):
                for operator, built in _built(direction, counts, base):
                    if built not in shapes.setdefault(operator, set()):
                        shapes[operator].add(built)
                        grown = True


def _built(direction: Direction, counts: Sequence[Counts], base: Definitions) -> Iterator[tuple[str, Counts]]:
    lengths = {
        pattern.variadic: chosen[0] - len(run_time_arguments(pattern))
        for pattern, chosen in zip(operators_of_all(direction.left), counts, strict=True)
        if pattern.variadic is not None
    }
    for pattern in (one for right in direction.rights if right is not None for one in operators_of(right)):
        operands = len(run_time_arguments(pattern))
        if pattern.variadic is not None:
            operands += lengths[pattern.variadic]
        yield pattern.operator, (operands, right_outputs(pattern, base.operators))


def _either_order(operator: str) -> str:
    relation = symmetric(operator)
    return (
        f"(rule ((= ?r ({constructor(operator, (2, 1))} ?a ?b ?t))) (({relation} ?a ?b ?t ?r) ({relation} ?b ?a ?t ?r))"
        f' :ruleset {ENGINE} :name "{ENGINE}#{operator}")'
    )


def _engine_rules(session: str, noted: str) -> list[str]:
    composed = question(session, "compose", ["?inner", "?outer"])
    return [
        # a view that is equal to its operand leads back to it: its powers would be new maps without end
        "(rule ((= ?r (View ?v ?outer)) (= ?v (View ?x ?inner)) (!= ?r ?v) (!= ?v ?x) (= ?h (host))"
        f' (= ?k {composed}) (!= ?k ""))'
        f' ((union ?r (View ?x ?k)) (by_View ?x ?k "{ENGINE}") {noted}) :ruleset {ENGINE} :name "{ENGINE}#compose")',
        '(rule ((= ?r (View ?x ?k)) (= 1 (count-matches ?k "I")))'
        f' ((union ?r ?x)) :ruleset {ENGINE} :name "{ENGINE}#identity")',
        f'(rule ((= ?m (meta ?c)) (= 1 (count-matches ?m "C")) (= ?h (host))'
        f' (= ?u {question(session, "uniform", ["?m"])}) (!= ?u ""))'
        f' ((uniform ?c ?u)) :ruleset {ENGINE} :name "{ENGINE}#uniform")',
        f'(rule ((= ?m (meta ?c)) (= 1 (count-matches ?m "C")) (= ?h (host))'
        f" (= ?k {question(session, 'leaf', ['?m'])}))"
        f' ((union ?c (Constant ?k))) :ruleset {ENGINE} :name "{ENGINE}#leaf")',
    ]


def _rewrites(host: Host, direction: Direction, program: Program, base: Rules, record: bool) -> Iterator[str]:
    """One egglog rule for each choice of operand counts: it unites each pattern of the left side with a right side."""
    sides, rules = direction.sides, direction.rules
    for rule in rules:
        host.statistics.setdefault(rule.name, RuleStatistics(rule=rule.name))
    for counts in choices(direction.left, program.shapes):
        left = compile_left(direction.left, counts, program.commutative)
        yield from _of_constants(host, rules[0], left)
        left.facts = [*joint_facts(direction.left, left), *fact_texts(rules[0], left), *left.facts]
        made = {rule: own for rule, (_, own) in sides.items() if own is not None}
        right = compile_rights(made, left, base.operators)
        subject = f"{rules[0].name}#{len(host.answers)}"
        host.answers[subject] = Application(
            sides, left, other_guards(rules[0]), rules[0].derives, asks_for_moderate(rules[0].relaxes)
        )
        unions = [
            f"(union {left.roots[pattern].variable} {result})"
            for (pattern, _), result in zip(sides.values(), right.results, strict=False)
        ]
        derived = rules[0].derives
        if derived is not None:
            unions.append(f"({relation(derived)} {left.roots[direction.left].variable})")
        elif record:
            backward = direction.left is not rules[0].left
            tables = [table_of_rewrite(len(program.tables) + n, r, backward, left) for n, r in enumerate(rules)]
            program.tables += tables
            unions += [table.action for table in tables]
        name = f"{BETWEEN_RULES.join(sides)}#{len(host.answers)}"
        ruleset = rules[0].ruleset if derived is None else ENGINE
        yield _rewrite(host.session, Named(subject, name, ruleset), left, right, unions)


def _of_constants(host: Host, rule: ast.Rewrite, left: Left) -> Iterator[str]:
    """The rules that look at the elements of a constant where a guard wants to know a fact of it."""
    for fact, variable, meta in wanted_constants(rule, left):
        host.answers.setdefault(relation(fact.analysis), OfConstants(fact))
        known = f'(= 1 (count-matches {meta} "C")) (= ?h (host))'
        asked = f'(= "yes" {question(host.session, relation(fact.analysis), [meta])})'
        name = f"{ENGINE}#{relation(fact.analysis)}#{len(host.answers)}#{rule.name}#{variable}#{id(left)}"
        yield (
            f"(rule ({' '.join(left.facts)} {known} {asked}) (({relation(fact.analysis)} {variable}))"
            f' :ruleset {ENGINE} :name "{name}")'
        )


class Named(NamedTuple):
    """An egglog rule: what it asks the host about, its name and its rule set."""

    subject: str
    name: str
    ruleset: str


def _rewrite(session: str, rule: Named, left: Left, right: Right, unions: Sequence[str]) -> str:
    asked = question(session, rule.subject, left.slots)
    facts = [*left.facts, "(= ?h (host))", f"(= ?k {asked})", '(!= ?k "")']
    actions = [*right.actions, *unions]
    if right.pieces == 1:
        actions = [a.replace("(pick 0)", "?k") for a in actions]
    for place in range(right.pieces if right.pieces > 1 else 0):
        piece = question(session, "pick", ["?k", f'"{place}"'])
        actions = [a.replace(f"(pick {place})", piece) for a in actions]
    return f'(rule ({" ".join(facts)})\n  ({" ".join(actions)}) :ruleset {rule.ruleset} :name "{rule.name}")'


def _eliminations(host: Host, rule: ast.Eliminate, program: Program, record: bool) -> Iterator[str]:
    """One egglog rule for each operand that the operator may read and each output that it has."""
    for counts in sorted(program.shapes.get(rule.operator, ())):
        for read in range(counts[0]):
            for output in range(counts[1]):
                subject = f"{rule.name}#{len(host.answers)}"
                host.answers[subject] = Elimination(rule=rule, operand=read, output=output, outputs=counts[1])
                operands = [f"?x{i}" for i in range(counts[0])]
                application = f"({constructor(rule.operator, counts)} {' '.join(operands)} ?t)"
                result = f"(Out {application} {output})" if counts[1] > 1 else application
                metas = [f"(= ?m{i} (meta ?x{i}))" for i in range(counts[0])]
                asked = question(host.session, subject, ["?m", "?t", *(f"?m{i}" for i in range(counts[0]))])
                facts = f'(= ?r {result}) (= ?m (meta ?r)) {" ".join(metas)} (= ?h (host)) (= ?k {asked}) (!= ?k "")'
                noted = ""
                if record:
                    program.tables.append(table_of_elimination(len(program.tables), rule, read, counts, output))
                    noted = program.tables[-1].action
                yield (
                    f'(rule ({facts}) ((union ?r (View ?x{read} ?k)) (by_View ?x{read} ?k "{rule.name}") {noted})'
                    f' :ruleset {rule.ruleset} :name "{subject}")'
                )
