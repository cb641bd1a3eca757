"""The syntax tree of the rule language.

Every node carries the span of the source text it was read from, so that each later stage can point at
the line that caused it.  The tree is immutable; `language.parsing.parser` builds it, `rulebase.checks` judges it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

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
    parts_of,
)
from smartmem_rules.language.rules import (
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

__all__ = [
    "NOWHERE",
    "Attribute",
    "Binary",
    "Binder",
    "Block",
    "Broadcast",
    "Call",
    "Comprehension",
    "Conditional",
    "Constant",
    "Declaration",
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
    "parts_of",
]

# --- operators ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TensorType(Syntax):
    """`T[*S, K]`: a dtype variable or class and a shape pattern (inputs) or shape expressions (outputs)."""

    dtype: str
    shape: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class DtypeVariable(Declaration):
    """`T: float | int` in the angle brackets of an operator."""

    name: str
    classes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Input(Declaration):
    """An input: a tensor, or with `constant` a compile-time value (`type` is then None)."""

    name: str
    type: TensorType | None
    constant: str | None  # ints | int | floats | float: the kind of the compile-time value
    optional: bool
    variadic: bool
    default: Expression | None


@dataclass(frozen=True, slots=True)
class Attribute(Declaration):
    name: str
    kind: str  # int | float | string | ints | floats | bool
    default: Expression | None
    required: bool


@dataclass(frozen=True, slots=True)
class Output(Declaration):
    """An output; `index` names the running number of a variadic one (`ys[j]: ...`)."""

    name: str
    type: TensorType
    index: str | None


@dataclass(frozen=True, slots=True)
class Let(Declaration):
    name: str
    value: Expression


@dataclass(frozen=True, slots=True)
class EquationSyntax(Declaration):
    """`y[*i, k] = body`; `view` marks a pure index map; locals give `*i < R` as index items."""

    tensor: str
    member: str | None  # the running number in `ys[j][*i] = ...`
    indices: tuple[Binder, ...]  # kind "loop" | "loops"; bound is a Name("_") where the signature gives it
    body: Expression
    view: bool
    scan: bool = False  # the body reads what this tensor and other scans hold one step before, along the first axis


@dataclass(frozen=True, slots=True)
class OnnxBinding(Declaration):
    domain: str
    name: str
    since: int
    until: int | None


@dataclass(frozen=True, slots=True)
class Operator(Declaration):
    name: str
    dtypes: tuple[DtypeVariable, ...]
    inputs: tuple[Input, ...]
    attributes: tuple[Attribute, ...]
    outputs: tuple[Output, ...]
    commutative: bool
    internal: bool
    onnx: OnnxBinding | None
    also: tuple[OnnxBinding, ...]  # further ONNX operators that it stands for
    requires: tuple[Expression, ...]
    lets: tuple[Let, ...]
    equations: tuple[EquationSyntax, ...]
    declared_class: str | None  # "ILD.Variable" ...
    declared_mapping: str | None  # "one_to_one" ...
    override: bool = False  # takes the place of a built-in definition, and says so


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


Item = Import | OperatorFamily | Function | Predicate | Constant | Ruleset | Family | Operator | Rule | Table | Block


@dataclass(frozen=True, slots=True)
class Module(Syntax):
    """One `.smr` file."""

    items: tuple[Item, ...]
    text: str = field(compare=False, repr=False)
