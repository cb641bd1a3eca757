"""Patterns of rewrite rules as egglog facts and actions.

A pattern is compiled once for every choice of operand and output counts that its operators have in the e-graph, since
egglog constructors have a fixed number of columns.  What egglog cannot decide (guards, attributes, types) is asked of
the host in one call for each match; `Left.slots` and `Right.pieces` say in which order question and answer come.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field

from smartmem_rules.egraph.host import number_text
from smartmem_rules.language import syntax as ast
from smartmem_rules.language.roots import roots_of
from smartmem_rules.records import dataclass
from smartmem_rules.rulebase.patterns import is_absent, operators_of_all, right_outputs, run_time_arguments

NO_ATTRIBUTES = "a0"
"""The name under which every host interns the empty attributes first."""

Counts = tuple[int, int]
"""How many operands and how many outputs an application has."""
Shapes = Mapping[str, set[Counts]]
"""The counts that occur, by operator."""


def constructor(operator: str, counts: Counts) -> str:
    return f"{operator}_{counts[0]}_{counts[1]}"


def symmetric(operator: str) -> str:
    """The relation that holds the applications of a commutative operator in both orders."""
    return f"{operator}_either_order"


@dataclass(frozen=True)
class MatchedOperator:
    """An operator of a left side; the numbers are positions in `Left.slots`."""

    pattern: ast.PatternOperator
    attributes: int
    operands: tuple[int | None, ...]
    outputs: int


@dataclass(frozen=True, kw_only=True)
class Root:
    """A pattern of a left side: its egglog variable, the slot of its meta, its share of operators and of numbers."""

    variable: str
    slot: int
    operators: range
    numbers: range


@dataclass(kw_only=True)
class Left:
    """A left side: the facts that find it and the texts that the host needs to judge it."""

    facts: list[str] = field(default_factory=list)
    slots: list[str] = field(default_factory=list)
    tensors: dict[str, int] = field(default_factory=dict)
    variadics: dict[str, list[int]] = field(default_factory=dict)
    operators: list[MatchedOperator] = field(default_factory=list)
    terms: dict[ast.Pattern, int] = field(default_factory=dict)
    """The slots of what its operators give."""
    roots: dict[ast.Pattern, Root] = field(default_factory=dict)
    """Its patterns: one, or several that share operands."""
    variables: dict[str, str] = field(default_factory=dict)
    """The egglog variable of each pattern variable."""
    members: dict[str, list[str]] = field(default_factory=dict)
    """The egglog variables of each variadic list."""
    numbers: list[str] = field(default_factory=list)
    """The egglog variables of the constants that are matched by their value, in their order."""


@dataclass
class Right:
    """Right sides: the actions that build them, their results, and the constructors that they use."""

    actions: list[str] = field(default_factory=list)
    pieces: int = 0
    results: list[str] = field(default_factory=list)
    constructors: set[tuple[str, Counts]] = field(default_factory=set)


def choices(left: ast.Pattern, shapes: Shapes, limit: int = 64) -> Iterator[tuple[Counts, ...]]:
    """All choices of counts for the operators of a left side, in the order of `operators_of_all`."""
    options = []
    patterns = operators_of_all(left)
    for pattern in patterns:
        given = len(run_time_arguments(pattern))
        possible = [
            counts
            for counts in sorted(shapes.get(pattern.operator, ()))
            if (counts[0] >= given if pattern.variadic else counts[0] == given)
            and (pattern.output is None or pattern.output < counts[1])
        ]
        if not possible:
            return iter(())
        options.append(possible)
    lists = [p.variadic for p in patterns]
    fixed = [len(run_time_arguments(p)) for p in patterns]
    alike = (chosen for chosen in itertools.product(*options) if _alike(lists, fixed, chosen))
    return itertools.islice(alike, limit)


def _alike(lists: Sequence[str | None], fixed: Sequence[int], chosen: Sequence[Counts]) -> bool:
    """Whether a list that is named twice has one length."""
    lengths: dict[str, int] = {}
    for name, known, counts in zip(lists, fixed, chosen, strict=True):
        if name is not None and lengths.setdefault(name, counts[0] - known) != counts[0] - known:
            return False
    return True


def compile_left(left: ast.Pattern, counts: Sequence[Counts], commutative: Collection[str]) -> Left:
    """The facts that find a left side.

    Raises:
        ValueError: the pattern is no operator application, or a list that it names twice has two lengths.
    """
    compiled = Left()
    compiler = _LeftCompiler(compiled, iter(counts), commutative)
    for pattern in reversed(roots_of(left)):
        if not isinstance(pattern, ast.PatternOperator):
            raise ValueError("a left side must be an operator application")
        operators, numbers = len(compiled.operators), len(compiled.numbers)
        variable, slot = compiler.visit(pattern)
        assert slot is not None
        compiled.roots[pattern] = Root(
            variable=variable,
            slot=slot,
            operators=range(operators, len(compiled.operators)),
            numbers=range(numbers, len(compiled.numbers)),
        )
    return compiled


@dataclass
class _LeftCompiler:
    left: Left
    counts: Iterator[Counts]
    commutative: Collection[str]

    def visit(self, pattern: ast.Pattern) -> tuple[str, int | None]:
        """The egglog variable of a pattern and the slot of its meta; parents come after their operands."""
        if is_absent(pattern):
            return "(Absent)", None
        if isinstance(pattern, ast.PatternVariable):
            return self._variable(pattern.name)
        if isinstance(pattern, ast.PatternNumber):
            name = f"?n{len(self.left.slots)}"
            self.left.numbers.append(name)
            self.left.facts.append(f'(uniform {name} "{number_text(pattern.value)}")')
            return name, self._meta(name)
        assert isinstance(pattern, ast.PatternOperator)
        return self._operator(pattern)

    def _variable(self, name: str) -> tuple[str, int]:
        if name not in self.left.tensors:
            self.left.variables[name] = f"?v_{name}"
            self.left.tensors[name] = self._meta(f"?v_{name}")
        return self.left.variables[name], self.left.tensors[name]

    def _meta(self, name: str) -> int:
        slot = len(self.left.slots)
        self.left.slots.append(f"?m{slot}")
        self.left.facts.append(f"(= ?m{slot} (meta {name}))")
        return slot

    def _operator(self, pattern: ast.PatternOperator) -> tuple[str, int]:
        parts = [self.visit(argument) for argument in run_time_arguments(pattern)]
        counts = next(self.counts)
        if pattern.variadic is not None:
            names = [f"?v_{pattern.variadic}_{j}" for j in range(counts[0] - len(parts))]
            if self.left.members.get(pattern.variadic, names) != names:
                raise ValueError(f"*{pattern.variadic} stands for one list")
            slots = [self._meta(name) for name in names]
            self.left.variadics[pattern.variadic] = slots
            self.left.members[pattern.variadic] = names
            parts += zip(names, slots, strict=True)
        place = len(self.left.slots)
        self.left.slots.append(f"?a{place}")
        operands = " ".join(name for name, _ in parts)
        result = f"?r{place}"
        if pattern.operator in self.commutative and counts == (2, 1):
            self.left.facts.append(f"({symmetric(pattern.operator)} {operands} ?a{place} {result})")
        else:
            application = f"({constructor(pattern.operator, counts)} {operands} ?a{place})"
            if counts[1] > 1:
                application = f"(Out {application} {pattern.output or 0})"
            self.left.facts.append(f"(= {result} {application})")
        slots_of = tuple(slot for _, slot in parts)
        self.left.operators.append(MatchedOperator(pattern, place, slots_of, counts[1]))
        slot = self.left.terms[pattern] = self._meta(result)
        return result, slot


def compile_rights(
    rules: Mapping[str, ast.Pattern], left: Left, operators: Mapping[str, Sequence[ast.Operator]]
) -> Right:
    """The actions that build right sides; `?k` is the host's answer and `(pick i)` its piece number i.

    Args:
        rules: the right side of each rule, by its name.
    """
    compiled = Right()
    for rule, right in rules.items():
        compiled.results.append(_RightCompiler(compiled, left, rule, operators).visit(right, root=True))
    return compiled


@dataclass
class _RightCompiler:
    right: Right
    left: Left
    rule: str
    operators: Mapping[str, Sequence[ast.Operator]]

    def piece(self) -> str:
        place = self.right.pieces
        self.right.pieces += 1
        return f"(pick {place})"

    def visit(self, pattern: ast.Pattern, root: bool = False) -> str:
        if is_absent(pattern):
            return "(Absent)"
        if isinstance(pattern, ast.PatternVariable):
            return self.left.variables[pattern.name]
        if isinstance(pattern, ast.PatternNumber | ast.PatternComputed):
            name = f"n{self.right.pieces}"
            self.right.actions.append(f"(let {name} (Constant {self.piece()}))")
            self.right.actions.append(f"(set (meta {name}) {self.piece()})")
            return name
        assert isinstance(pattern, ast.PatternOperator)
        return self._operator(pattern, root)

    def _operator(self, pattern: ast.PatternOperator, root: bool) -> str:
        parts = [self.visit(argument) for argument in run_time_arguments(pattern)]
        if pattern.variadic is not None:
            parts += self.left.members[pattern.variadic]
        counts = len(parts), right_outputs(pattern, self.operators)
        self.right.constructors.add((pattern.operator, counts))
        name = f"o{len(self.right.actions)}"
        attributes = self.piece() if has_attributes(pattern) else f'"{NO_ATTRIBUTES}"'
        if has_attributes(pattern):
            self.right.actions.append(f"(let {name}_a {attributes})")
            attributes = f"{name}_a"
        columns = " ".join([*parts, attributes])
        application = constructor(pattern.operator, counts)
        self.right.actions.append(f"(let {name} ({application} {columns}))")
        self.right.actions.append(f'(by_{application} {columns} "{self.rule}")')
        if counts[1] > 1:
            self.right.actions.append(f"(let {name}_out (Out {name} {pattern.output or 0}))")
            name = f"{name}_out"
        if not root:
            self.right.actions.append(f"(set (meta {name}) {self.piece()})")
        return name


def has_attributes(pattern: ast.PatternOperator) -> bool:
    return bool(pattern.attributes) or pattern.bundle is not None
