"""The syntax tree of the rule language.

Every node carries the span of the source text it was read from, so that each later stage can point at
the line that caused it.  The tree is immutable; `language.parsing.parser` builds it, `rulebase.checks` judges it.
"""

from __future__ import annotations

from dataclasses import field

from smartmem_rules.language.definitions import (
    Attribute,
    Cost,
    DtypeVariable,
    EquationSyntax,
    Input,
    Let,
    OnnxBinding,
    Operator,
    Output,
    TensorType,
)
from smartmem_rules.language.expressions import (
    NOWHERE,
    Binary,
    Binder,
    Broadcast,
    Call,
    Comprehension,
    Conditional,
    Declaration,
    Expression,
    ListOf,
    Name,
    Number,
    Reduction,
    Slice,
    Span,
    Splat,
    Subscript,
    Syntax,
    Text,
    Truth,
    Unary,
    branches_of,
    parts_of,
)
from smartmem_rules.language.rules import (
    Derive,
    Eliminate,
    IndexRule,
    Keep,
    Pattern,
    PatternAttribute,
    PatternComputed,
    PatternNumber,
    PatternOperator,
    PatternVariable,
    Rewrite,
    Rule,
    RuleLet,
    Term,
)
from smartmem_rules.records import dataclass

__all__ = [
    "NOWHERE",
    "Analysis",
    "Attribute",
    "Binary",
    "Binder",
    "Block",
    "Broadcast",
    "Call",
    "Comprehension",
    "Conditional",
    "Constant",
    "Cost",
    "Declaration",
    "Derive",
    "DtypeVariable",
    "Eliminate",
    "Entry",
    "EquationSyntax",
    "Expression",
    "Family",
    "Function",
    "Import",
    "IndexRule",
    "Input",
    "Item",
    "Keep",
    "Let",
    "ListOf",
    "Module",
    "Name",
    "Number",
    "OnnxBinding",
    "Operator",
    "OperatorFamily",
    "Output",
    "Pattern",
    "PatternAttribute",
    "PatternComputed",
    "PatternNumber",
    "PatternOperator",
    "PatternVariable",
    "Predicate",
    "Reduction",
    "Rewrite",
    "Rule",
    "RuleLet",
    "Ruleset",
    "Slice",
    "Span",
    "Splat",
    "Subscript",
    "Syntax",
    "Table",
    "TensorType",
    "Term",
    "Text",
    "Truth",
    "Unary",
    "branches_of",
    "parts_of",
]

# --- names -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Function(Declaration):
    """`function f(a, b) = e`: a compile-time function over numbers, lists and strings."""

    name: str
    parameters: tuple[str, ...]
    body: Expression


@dataclass(frozen=True, slots=True)
class OperatorFamily(Declaration):
    """`family Rectifier = Relu | Abs`: in a pattern any one of the operators, the same one wherever the name stands."""

    name: str
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Predicate(Declaration):
    """`predicate p(t, n) = condition`: a named guard; its parameters may be tensors."""

    name: str
    parameters: tuple[str, ...]
    body: Expression
    comment: str


@dataclass(frozen=True, slots=True)
class Analysis(Declaration):
    """`analysis fact(e: float): bool merge or means condition`: what is known of every element `e` of a tensor."""

    name: str
    parameter: str
    dtype: str | None
    kind: str
    merge: str
    meaning: Expression
    comment: str

    @property
    def parameters(self) -> tuple[str, ...]:
        """Of the guard that asks for the fact: one tensor."""
        return (self.parameter,)


@dataclass(frozen=True, slots=True)
class Constant(Declaration):
    """`let HALF = 0.5`: a named value for guards, attributes, definitions and, as a number, for patterns."""

    name: str
    value: Expression
    comment: str


@dataclass(frozen=True, slots=True)
class Ruleset(Declaration):
    """`ruleset late after algebra`: a set of rules and the sets that run before it."""

    name: str
    after: tuple[str, ...]
    comment: str


@dataclass(frozen=True, slots=True)
class Table(Declaration):
    """A complete table over pairs of classes: `cells[first, second]` is a tuple of words."""

    name: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: dict[tuple[str, str], tuple[str, ...]] = field(hash=False)


@dataclass(frozen=True, slots=True)
class Entry(Declaration):
    """`key value value ...;` in a block."""

    key: str
    values: tuple[int | float | str, ...]


@dataclass(frozen=True, slots=True)
class Block(Declaration):
    """`device pocl { ... }`, `schedule NAME for KIND { ... }`, `level NAME { ... }`, `layout`, `fuse`."""

    kind: str
    name: str
    subject: str | None
    entries: tuple[Entry, ...]
    comment: str


@dataclass(frozen=True, slots=True)
class Import(Declaration):
    path: str


@dataclass(frozen=True, slots=True)
class Family(Declaration):
    """`for Op, n in (Relu, 1), (Exp, 2) { items }`: the items once for each member.

    A rule of a family is named `NAME.MEMBER`, by the member's first word; its plain name stands for all of them.
    """

    variables: tuple[str, ...]
    members: tuple[tuple[Expression, ...], ...]
    items: tuple[Item, ...]


Item = (
    Import
    | OperatorFamily
    | Function
    | Predicate
    | Analysis
    | Constant
    | Ruleset
    | Family
    | Operator
    | Rule
    | Table
    | Block
)


@dataclass(frozen=True, slots=True)
class Module(Syntax):
    """One `.smr` file."""

    items: tuple[Item, ...]
    text: str = field(compare=False, repr=False)
